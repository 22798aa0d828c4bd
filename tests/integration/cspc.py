#!/usr/bin/env python3
"""CStorPoolClusters: pools made, grown, mended, moved, scaled and removed by editing the manifest; instances and
Deployments that come again; what cannot be done, said. Nodes and pools only pretend (tests/lib/pretend_pools.py).
Admission of our kinds is off, as when it is down: the operator has to see what cannot be. With it, and with real
pools: cspc-up.py.

cspc.py APISERVER TOP ORLOP CONTROLLER
"""
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from controller import Controller  # noqa: E402
from pretend_pools import (CLAIMS, CLUSTER, CLUSTERS, DEPLOYMENTS, DEVICES, DESTROY, GUARD, HOLD, INSTANCES, MERGE,  # noqa: E402
                           NS, PREDECESSOR, REPLICAS, Clusters, Pools, cluster, group, names_of, pool)
from server import Server  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402

program, top, orlop, controller_program = sys.argv[1:5]
tap = Tap()
RBAC = "/apis/rbac.authorization.k8s.io/v1"


def until(what, check, c, name):
    return tap.ok(wait_for(check), what, c.describe(name))


def ready(c, name, what):
    return until(what, lambda: c.is_ready(name), c, name)


def account_parts(account, binding):
    return (f"/api/v1/namespaces/{NS}/serviceaccounts/{account}", f"{RBAC}/namespaces/{NS}/rolebindings/{account}",
            f"{RBAC}/clusterrolebindings/{binding}")


def has_account(c, name):
    """How many of the three parts of a pool's account there are."""
    return sum(c.server.get(it)[0] == 200 for it in account_parts(f"orlop-pool-{name}", f"orlop-pool:{NS}:{name}"))


def put_shared_account(c):
    """As an earlier version left it: one account for all pools of the namespace, and a pool that has it."""
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:orlop:pool-nodes"}
    for path in account_parts("orlop-pool", f"orlop-pool-{NS}"):
        c.server.create(path.rsplit("/", 1)[0], {
            "metadata": {"name": path.rsplit("/", 1)[1], "annotations": {"orlop.io/template-hash": "x"}},
            **({} if "serviceaccounts" in path else {"roleRef": role})})
    labels = {"app": "cstor-pool", CLUSTER: "one"}
    c.server.create(DEPLOYMENTS, {"metadata": {"name": "earlier", "labels": labels}, "spec": {
        "selector": {"matchLabels": {"of": "earlier"}}, "template": {"metadata": {"labels": {"of": "earlier"}}, "spec": {
            "serviceAccountName": "orlop-pool", "containers": [{"name": "c", "image": "i"}]}}}})
    c.server.ask("PATCH", f"{DEPLOYMENTS}/earlier/status", {"status": {
        "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1}}, MERGE)


def check_account(c, name):
    """A pool has its own account; the one that pools shared goes when no pod can have it any more."""
    def shared():
        return sum(c.server.get(it)[0] == 200 for it in account_parts("orlop-pool", f"orlop-pool-{NS}"))
    tap.equal(has_account(c, name), 3, "its account is there, with its rights")
    tap.equal(shared(), 3, "the account that pools shared stays while a Deployment names it")
    c.server.ask("PATCH", f"{DEPLOYMENTS}/earlier", {"spec": {"template": {"spec": {
        "serviceAccountName": "another", "serviceAccount": "another"}}}}, MERGE)
    c.server.ask("PATCH", f"{DEPLOYMENTS}/earlier/status", {"status": {"updatedReplicas": None}}, MERGE)
    tap.equal(shared(), 3, "and while its pod is not replaced")
    c.server.ask("PATCH", f"{DEPLOYMENTS}/earlier/status", {"status": {
        "observedGeneration": 2, "updatedReplicas": 1}}, MERGE)
    tap.ok(wait_for(lambda: not shared()), "then it goes", c.describe("one"))
    c.server.ask("DELETE", f"{DEPLOYMENTS}/earlier")


def check_life(c, pools):
    """One pool from beginning to end."""
    pools.add_node("n1", "n2", "n3")
    put_shared_account(c)
    pools.add_devices("n1", "a1", "a2", "a3", "a4", "a5", "a6")
    c.create(cluster("one", pool("n1", group("stripe", "a1"), compression="lz")))
    ready(c, "one", "a stripe of one device is ready")
    (it,) = c.instances("one")
    name, labels = it["metadata"]["name"], it["metadata"]["labels"]
    tap.ok(name.startswith("one-") and len(name) == 9, "its instance is called after it", name)
    tap.equal((labels["kubernetes.io/hostname"], labels["openebs.io/cas-type"], labels[CLUSTER],
               it["metadata"]["finalizers"], it["metadata"]["ownerReferences"][0]["name"]),
              ("n1", "cstor", "one", [HOLD, GUARD], "one"), "and has the published labels, finalizers and owner")
    spec = it["spec"]
    tap.equal((spec["hostName"], spec["nodeSelector"], spec["poolConfig"]["compression"], spec["raidGroups"]),
              ("n1", {"kubernetes.io/hostname": "n1"}, "lz4",
               [{"type": "stripe", "blockDevices": [{"blockDeviceName": "a1", "capacity": spec["raidGroups"][0][
                   "blockDevices"][0]["capacity"], "devLink": "/dev/a1"}]}]), "it says what it is to be")
    claim = c.claims("one")["a1"]
    uid = c.server.get(f"{DEVICES}/a1")[1]["metadata"]["uid"]
    tap.equal((claim["metadata"]["name"], claim["metadata"]["ownerReferences"][0]["kind"],
               HOLD in claim["metadata"]["finalizers"], claim["status"]["phase"]),
              (f"bdc-cstor-{uid}", "CStorPoolCluster", True, "Bound"), "its device is claimed")
    deployment = c.server.get(f"{DEPLOYMENTS}/{name}")[1]
    pod = deployment["spec"]["template"]["spec"]
    tap.equal((deployment["metadata"]["ownerReferences"][0]["name"], deployment["spec"]["strategy"]["type"],
               deployment["metadata"]["labels"]["app"], pod["containers"][0]["image"], pod["containers"][0]["args"],
               pod["nodeSelector"], pod["serviceAccountName"]),
              (name, "Recreate", "cstor-pool", "orlop-pool",
               ["pool", "serve", "--namespace", NS, "--name", name, "--node", "$(NODE_NAME)", "--metrics", "$(POD_IP)"],
               {"kubernetes.io/hostname": "n1"}, f"orlop-pool-{name}"),
              "its Deployment runs orlop-pool on the node")
    check_account(c, name)
    status = c.get("one")["status"]
    tap.equal((status["phase"], status["desiredInstances"], status["provisionedInstances"], status["healthyInstances"],
               status["capacity"], status["instances"][0]["guid"]),
              ("ONLINE", 1, 1, 1, {"total": "10Gi", "free": "9Gi", "used": "1Gi"}, it["status"]["guid"]),
              "the cluster counts it")
    table = c.server.kubectl("get", "cspc,cspi", "-n", NS).stdout
    tap.ok("HEALTHYINSTANCES" in table and "ONLINE" in table, "kubectl shows both", table)

    # Expansion, by kubectl.
    patch = json.dumps([{"op": "add", "path": "/spec/pools/0/raidGroups/0/blockDevices/-",
                         "value": {"blockDeviceName": "a2"}}])
    tap.ran(c.server.kubectl("patch", "cspc", "one", "-n", NS, "--type", "json", "-p", patch),
            "a device is added to the stripe")
    ready(c, "one", "the pool grows")
    tap.equal((names_of(c.instances("one")[0]["spec"]), c.get("one")["status"]["capacity"]["total"], pools.made),
              (["a1", "a2"], "20Gi", 1), "it is the same pool with two devices")
    c.edit("one", lambda s: s["pools"][0]["raidGroups"].append(group("mirror", "a3", "a4")))
    ready(c, "one", "a group is added")
    tap.equal([g["type"] for g in c.instances("one")[0]["spec"]["raidGroups"]], ["stripe", "mirror"],
              "the instance has it")
    c.edit("one", lambda s: s["pools"][0]["poolConfig"].update(roThresholdLimit=70))
    until("a setting reaches the instance",
          lambda: c.instances("one")[0]["spec"]["poolConfig"].get("roThresholdLimit") == 70, c, "one")

    # Replacement.
    pools.resilvers = False
    c.edit("one", lambda s: s["pools"][0]["raidGroups"][1]["blockDevices"][0].update(blockDeviceName="a5"))
    until("a device is replaced", lambda: "a5" in names_of(c.instances("one")[0]["spec"]), c, "one")
    tap.equal(c.claims("one")["a5"]["metadata"]["annotations"].get(PREDECESSOR), "a3", "its claim says what it replaces")
    tap.ok("a3" in c.claims("one"), "the old device is kept while it is needed")
    tap.ok("deletionTimestamp" not in c.claims("one")["a3"]["metadata"], "with all of its claim")
    c.edit("one", lambda s: s["pools"][0]["raidGroups"][1]["blockDevices"][1].update(blockDeviceName="a6"))
    until("a second replacement of the group waits", lambda: c.why(
        "one", "PoolsUpToDate", "ReplacementInProgress", "a6", "a5"), c, "one")
    tap.ok("a6" not in names_of(c.instances("one")[0]["spec"]), "and is not begun")
    pools.resilvers = True
    pools.look_again()
    ready(c, "one", "both are done, one after the other")
    until("the old devices are given back", lambda: set(c.claims("one")) == {"a1", "a2", "a5", "a6"}, c, "one")
    tap.ok(wait_for(lambda: c.server.get(f"{DEVICES}/a3")[1]["status"]["claimState"] == "Unclaimed"),
           "and free", c.server.get(f"{DEVICES}/a3"))
    tap.ok(any("a3 is given back" in e for e in c.events("DeviceReleased")), "events say so", c.events("DeviceReleased"))
    tap.equal((pools.made, pools.destroyed), (1, 0), "all of it with one pool")


def check_healing(c, pools):
    (it,) = c.instances("one")
    name, guid, uid = it["metadata"]["name"], it["status"]["guid"], it["metadata"]["uid"]
    first = c.server.get(f"{DEPLOYMENTS}/{name}")[1]["metadata"]["uid"]
    c.server.ask("DELETE", f"{DEPLOYMENTS}/{name}")
    until("a Deployment that is deleted comes again", lambda: c.server.get(f"{DEPLOYMENTS}/{name}")[1].get(
        "metadata", {}).get("uid", first) != first, c, "one")
    tap.ran(c.server.kubectl("delete", "cspi", name, "-n", NS, "--timeout=60s"), "an instance is deleted")
    until("it comes again", lambda: [i["metadata"]["uid"] for i in c.instances("one")] not in ([], [uid]), c, "one")
    ready(c, "one", "the cluster is ready again")
    (it,) = c.instances("one")
    tap.equal((it["metadata"]["name"], it["status"]["guid"], pools.made, pools.imported, pools.destroyed),
              (name, guid, 1, 1, 0), "under its name, with the pool that was there")
    until("and a Deployment of its own", lambda: c.server.get(f"{DEPLOYMENTS}/{name}")[1].get("metadata", {}).get(
        "ownerReferences", [{}])[0].get("uid") == it["metadata"]["uid"], c, "one")
    # By force, and without its node: there is nobody to ask.
    c.server.ask("PATCH", f"{INSTANCES}/{name}", {"metadata": {"finalizers": None}}, content_type=MERGE)
    c.server.ask("DELETE", f"{INSTANCES}/{name}")
    until("one that was torn out comes again too", lambda: [i["metadata"]["uid"] for i in c.instances("one")]
          not in ([], [it["metadata"]["uid"]]), c, "one")
    until("with its pool", lambda: pools.imported == 2, c, "one")
    ready(c, "one", "and is ready")
    tap.equal((c.instances("one")[0]["status"]["guid"], pools.made), (guid, 1), "imported")
    pools.set_ready("n1", False)
    until("a node that is silent has no healthy pool", lambda: c.get("one")["status"]["healthyInstances"] == 0, c, "one")
    tap.equal(c.get("one")["status"]["phase"], "OFFLINE", "the cluster says so")
    pools.set_ready("n1", True)
    ready(c, "one", "until it is back")


def check_migration(c, pools):
    (it,) = c.instances("one")
    name = it["metadata"]["name"]
    devices = names_of(it["spec"])
    c.edit("one", lambda s: s["pools"][0].update(nodeSelector={"kubernetes.io/hostname": "n2"}))
    until("a pool whose devices are elsewhere does not move", lambda: c.why(
        "one", "PoolsUpToDate", "DevicesNotAttached", "a1 is on n1", "n2"), c, "one")
    tap.equal(c.instances("one")[0]["spec"]["hostName"], "n1", "it stays")
    pools.move("n2", *devices[:-1])
    until("one device missing is enough", lambda: c.why("one", "PoolsUpToDate", "DevicesNotAttached", devices[-1])
          and "a1 is" not in c.condition("one", "PoolsUpToDate")["message"], c, "one")
    pools.move("n2", devices[-1])
    ready(c, "one", "with all of them there it moves")
    (it,) = c.instances("one")
    tap.equal((it["metadata"]["name"], it["spec"]["hostName"], it["spec"]["nodeSelector"],
               it["metadata"]["labels"]["kubernetes.io/hostname"]),
              (name, "n2", {"kubernetes.io/hostname": "n2"}, "n2"), "the instance says so")
    until("and its Deployment", lambda: c.server.get(f"{DEPLOYMENTS}/{name}")[1]["spec"]["template"]["spec"][
        "nodeSelector"] == {"kubernetes.io/hostname": "n2"}, c, "one")
    tap.equal((pools.made, pools.destroyed), (1, 0), "it is the same pool")


def replica(name, of):
    return {"apiVersion": "cstor.openebs.io/v1", "kind": "CStorVolumeReplica",
            "metadata": {"name": name, "namespace": NS, "labels": {"cstorpoolinstance.openebs.io/name": of}},
            "spec": {"targetIP": "10.0.0.1", "capacity": "1Gi", "zvolWorkers": "", "replicaid": "A1"}}


def check_scaling(c, pools):
    pools.add_devices("n3", "c1", "c2", "c3")
    c.edit("one", lambda s: s["pools"].append(pool("n3", group("mirror", "c1", "c2"))))
    ready(c, "one", "a pool is added")
    tap.equal(sorted(i["spec"]["hostName"] for i in c.instances("one")), ["n2", "n3"], "on its node")
    third = next(i for i in c.instances("one") if i["spec"]["hostName"] == "n3")["metadata"]["name"]
    c.server.create(REPLICAS, replica("v-1", third))
    c.edit("one", lambda s: s["pools"].pop())
    until("a pool with replicas is not destroyed", lambda: c.why(
        "one", "PoolsDeleted", "ReplicasExist", third, "1 volume replica lives"), c, "one")
    tap.ok(wait_for(lambda: c.events("ReplicasExist")), "an event says so")
    it = c.server.get(f"{INSTANCES}/{third}")[1]["metadata"]
    tap.ok("deletionTimestamp" not in it and DESTROY not in it.get("annotations", {}), "it is not touched", it)
    c.server.ask("DELETE", f"{REPLICAS}/v-1")
    ready(c, "one", "when they are gone it goes")
    until("its devices are given back", lambda: not set(c.claims("one")) & {"c1", "c2"}, c, "one")
    tap.equal((c.server.get(f"{INSTANCES}/{third}")[0], pools.destroyed,
               c.get("one")["status"]["desiredInstances"]), (404, 1, 1), "nothing of it is left")
    tap.ok(wait_for(lambda: c.server.get(f"{DEPLOYMENTS}/{third}")[0] == 404), "nor its Deployment")
    tap.equal(has_account(c, third), 0, "nor its account")
    c.edit("one", lambda s: s["pools"].append(pool("n3", group("mirror", "c1", "c2"))))
    ready(c, "one", "the same pool spec again is a new pool")
    tap.equal(pools.made, 3, "made anew")


def check_order(c, pools):
    """While a pool cannot be made nothing else is begun; afterwards all of it is, also two at once."""
    pools.add_devices("n2", "b1")
    c.edit("one", lambda s: s["pools"].append(pool("nowhere", group("stripe", "z1"))))
    until("a pool without a node says so", lambda: c.why("one", "PoolsProvisioned", "NodeNotFound",
                                                         "kubernetes.io/hostname=nowhere"), c, "one")
    pools.resilvers = False
    c.edit("one", lambda s: (s["pools"][0]["raidGroups"][0]["blockDevices"].append({"blockDeviceName": "b1"}),
                             s["pools"][1]["raidGroups"][0]["blockDevices"][0].update(blockDeviceName="c3")))
    until("operations wait", lambda: c.why("one", "PoolsUpToDate", "PoolsPending"), c, "one")
    tap.ok("b1" not in c.claims("one"), "not even a device is claimed")
    c.edit("one", lambda s: s["pools"].pop())
    until("until it is gone", lambda: {"b1", "c3"} <= {n for i in c.instances("one") for n in names_of(i["spec"])}, c, "one")
    tap.ok("c1" in c.claims("one"), "an expansion and a replacement go on at the same time")
    pools.resilvers = True
    pools.look_again()
    ready(c, "one", "both are done")


def lease(c, name, renewed):
    """The sign of life of a pool's process."""
    path = f"/apis/coordination.k8s.io/v1/namespaces/{NS}/leases"
    c.server.ask("DELETE", f"{path}/{name}")
    c.server.create(path, {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name},
                           "spec": {"holderIdentity": "n3", "leaseDurationSeconds": 40, "renewTime": renewed}})


def check_lost(c, pools):
    """A pool that is gone with its node: it does not say that it is well, and can be forgotten."""
    pools.add_devices("n1", "e1")
    pools.add_devices("n3", "e2")
    c.create(cluster("lost", pool("n1", group("stripe", "e1")), pool("n3", group("stripe", "e2"))))
    ready(c, "lost", "a cluster with two pools")
    it = next(i for i in c.instances("lost") if i["spec"]["hostName"] == "n3")
    name = it["metadata"]["name"]

    def forget():
        return run(orlop, "pool", "forget", "lost", "--node", "n3", "-n", NS, "--kubeconfig", c.server.kubeconfig)
    lease(c, name, time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(time.time() + 3000)))
    refused = forget()
    tap.ok(refused.returncode == 1 and "lives: its process said so" in refused.stderr and "pool delete lost --node n3"
           in refused.stderr, "a pool that lives is not forgotten", refused)
    tap.ok("orlop.io/forgotten" not in c.server.get(f"{INSTANCES}/{name}")[1]["metadata"].get("annotations", {}),
           "nor marked")
    pools.still.add(name)
    lease(c, name, "2024-01-01T00:00:00.000000Z")
    pools.set_ready("n3", False)

    def said():
        status = c.server.get(f"{INSTANCES}/{name}")[1]["status"]
        return status["phase"] == "OFFLINE" and any(
            d["type"] == "Available" and d["status"] == "Unknown" and "since 2024-01-01T00:00:00Z" in d["message"]
            for d in status.get("conditions", []))
    until("an instance whose process is silent does not say that it is well", said, c, "lost")
    c.edit("lost", lambda s: s["pools"].pop())
    until("a pool of a node that is silent waits, and says what to do", lambda: c.why(
        "lost", "PoolsDeleted", "NodeUnavailable", name, f"orlop pool forget lost -n {NS} --node n3"), c, "lost")
    tap.ran(forget(), "it is forgotten")
    tap.ok(wait_for(lambda: c.server.get(f"{INSTANCES}/{name}")[0] == 404), "and goes", c.describe("lost"))
    until("with its claims", lambda: set(c.claims("lost")) == {"e1"}, c, "lost")
    ready(c, "lost", "the cluster goes on without it")
    disk = c.server.get(f"{DEVICES}/e2")[1]
    word = json.loads(disk["metadata"].get("annotations", {}).get("orlop.io/forgotten", "{}"))
    tap.equal((word.get("force"), bool(word.get("by")), pools.disks.get("e2"), pools.broken),
              (False, True, it["status"]["guid"], []), "its disk is marked, so that nobody wipes it")
    tap.ok(any(name in e for e in c.events("PoolForgotten")), "an event says so", c.events("PoolForgotten"))
    tap.equal(has_account(c, name), 0, "its account is gone: it could not come back unseen")
    tap.ok("has no pool on node" in forget().stderr, "there is nothing more to forget")
    pools.set_ready("n3", True)
    pools.disks.pop("e2")
    pools.made -= 1  # nobody will destroy that one


def check_refusals(c, pools):
    """What is wrong outside the manifest is said, and mended without another edit."""
    pools.add_node("m1", "m2", disk="fast")
    pools.add_devices("m1", "d1", "d2", "d3")
    pools.add_devices("m1", "small", size=1 << 30)
    fast = {**pool("m1", group("stripe", "d1")), "nodeSelector": {"disk": "fast"}}
    cases = [
        ("several nodes", cluster("w1", fast), "SeveralNodes", ("disk=fast", "2 nodes", "m1, m2")),
        ("a device that does not exist", cluster("w2", pool("m1", group("stripe", "d9"))), "DeviceNotFound", ('"d9"',)),
        ("a device of another node", cluster("w3", pool("m2", group("stripe", "d1"))), "DeviceOnOtherNode", ("m1",)),
        ("a device of another cluster", cluster("w4", pool("n2", group("stripe", "a1"))), "DeviceClaimed",
         ("CStorPoolCluster one",)),
        ("a name that is too long", cluster("w" * 60, pool("m1", group("stripe", "d1"))), "NameTooLong", ("57",)),
    ]
    for what, value, reason, words in cases:
        status, reply = c.server.ask("POST", CLUSTERS, value)
        if status != 201:  # admission was faster
            tap.ok(status == 422, f"{what}: refused", reply)
            continue
        name = value["metadata"]["name"]
        until(what, lambda n=name, r=reason, w=words: c.why(n, "PoolsProvisioned", r, *w), c, name)
        tap.equal((c.instances(name), c.get(name)["status"]["phase"]), ([], "Pending"), f"{what}: nothing is made")
        tap.ran(c.server.kubectl("delete", "cspc", name, "-n", NS, "--timeout=60s"), f"{what}: goes")
    c.server.create(CLAIMS, {"apiVersion": "openebs.io/v1alpha1", "kind": "BlockDeviceClaim",
                             "metadata": {"name": "local"}, "spec": {"blockDeviceName": "d2"}})
    wait_for(lambda: c.server.get(f"{CLAIMS}/local")[1].get("status", {}).get("phase") == "Bound")
    status, _ = c.server.ask("POST", CLUSTERS, cluster("late", pool("m1", group("mirror", "d1", "d2"))))
    if status == 201:
        until("a device that a local volume has", lambda: c.why("late", "PoolsProvisioned", "DeviceClaimed", "local"),
              c, "late")
    c.server.ask("DELETE", f"{CLAIMS}/local")
    wait_for(lambda: c.server.get(f"{DEVICES}/d2")[1]["status"]["claimState"] == "Unclaimed")
    if status != 201:
        c.create(cluster("late", pool("m1", group("mirror", "d1", "d2"))))
    ready(c, "late", "is used when it is free")
    # What admission would refuse, as if it were down: past it, by writing the instance's way around.
    status, reply = c.edit("late", lambda s: s["pools"][0]["raidGroups"][0]["blockDevices"][0].update(
        blockDeviceName="small"))
    if status == 200:
        until("a smaller device does not replace", lambda: c.why("late", "PoolsUpToDate", "DeviceTooSmall", "small"),
              c, "late")
        c.edit("late", lambda s: s["pools"][0]["raidGroups"][0]["blockDevices"][0].update(blockDeviceName="d1"))
        ready(c, "late", "putting the old one back mends it")
    else:
        tap.ok(status == 422, "a smaller device is refused", reply)
    c.server.ask("PATCH", f"{CLUSTERS}/late", {"metadata": {"annotations": {"reconcile.openebs.io/disable": "true"}}},
                 content_type=MERGE)
    (it,) = c.instances("late")
    c.server.ask("DELETE", f"{DEPLOYMENTS}/{it['metadata']['name']}")
    c.server.ask("PATCH", f"{CLUSTERS}/late", {"metadata": {"annotations": {"reconcile.openebs.io/disable": None}}},
                 content_type=MERGE)
    until("what was disabled is kept again", lambda: c.server.get(
        f"{DEPLOYMENTS}/{it['metadata']['name']}")[0] == 200, c, "late")


def check_published(c, pools):
    pools.add_devices("m2", "p1", "p2", "p3", "p4")
    path = f"/apis/cstor.openebs.io/v1/namespaces/{NS}/cstorpoolclusters"

    def entries(*names):
        return [{"blockDevices": [{"blockDeviceName": n} for n in names]}]
    c.server.create(path, {
        "apiVersion": "cstor.openebs.io/v1", "kind": "CStorPoolCluster", "metadata": {"name": "pub", "namespace": NS},
        "spec": {"tolerations": [{"key": "storage", "operator": "Exists"}], "priorityClassName": "",
                 "pools": [{"nodeSelector": {"kubernetes.io/hostname": "m2"}, "dataRaidGroups": entries("p1", "p2"),
                            "writeCacheRaidGroups": entries("p3"),
                            "poolConfig": {"dataRaidGroupType": "mirror", "writeCacheGroupType": "stripe",
                                           "resources": {"limits": {"memory": "1Gi"}}}}]}})
    ready(c, "pub", "the published form")
    (it,) = c.instances("pub")
    tap.equal([(g["type"], g.get("isWriteCache", False)) for g in it["spec"]["raidGroups"]],
              [("mirror", False), ("stripe", True)], "is the same pool")
    spec = c.server.get(f"{DEPLOYMENTS}/{it['metadata']['name']}")[1]["spec"]["template"]["spec"]
    tap.equal((spec["containers"][0]["resources"], spec["tolerations"][0]["key"]),
              ({"limits": {"memory": "1Gi"}}, "storage"), "its pod has what pool and cluster ask for it")
    shown = c.server.get(f"/apis/cstor.openebs.io/v1/namespaces/{NS}/cstorpoolinstances/{it['metadata']['name']}")[1]
    tap.equal(([d["blockDeviceName"] for d in shown["spec"]["dataRaidGroups"][0]["blockDevices"]],
               shown["status"]["phase"]), (["p1", "p2"], "ONLINE"), "its instance is shown in that form too")
    while True:
        value = c.server.get(f"{path}/pub")[1]
        value["spec"]["pools"][0]["dataRaidGroups"][0]["blockDevices"][1]["blockDeviceName"] = "p4"
        if c.server.ask("PUT", f"{path}/pub", value)[0] != 409:
            break
    until("and edited in it", lambda: "p4" in names_of(c.instances("pub")[0]["spec"]), c, "pub")
    ready(c, "pub", "a device is replaced")

    # From a StoragePoolClaim.
    pools.add_devices("m2", "s1", "s2")
    old = {"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "openebs.io/v1alpha1", "kind": "StoragePoolClaim", "metadata": {"name": "spc"},
         "spec": {"name": "spc", "type": "disk", "poolSpec": {"poolType": "mirrored"}}},
        {"apiVersion": "openebs.io/v1alpha1", "kind": "CStorPool", "metadata": {"name": "spc-x", "labels": {
            "kubernetes.io/hostname": "m2", "openebs.io/storage-pool-claim": "spc"}},
         "spec": {"group": [{"blockDevice": [{"name": "s1"}, {"name": "s2"}]}]}}]}
    made = tap.ran(run(orlop, "convert", "-", stdin=json.dumps(old)), "a StoragePoolClaim is converted")
    tap.ran(c.server.kubectl("apply", "-n", NS, "-f", "-", stdin=made.stdout), "and applied")
    ready(c, "spc", "its pools are there")


def check_samples(c, pools):
    """Every sample of the design, as examples/cspc has it; after an edit, its second manifest."""
    folder = os.path.join(top, "examples", "cspc")
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        files = [os.path.join(path, f) for f in ("before.yaml", "after.yaml")] if os.path.isdir(path) else [path]
        if name in ("blockdevice.yaml", "instance.yaml"):
            continue
        used, hosts, of = [], {}, None
        for file in files:
            result = tap.ran(run(orlop, "convert", "-o", "json", file), f"{os.path.relpath(file, folder)}: is read")
            value = json.loads(result.stdout)
            of = value["metadata"]["name"]
            for each in value["spec"]["pools"]:
                host = each["nodeSelector"]["kubernetes.io/hostname"]
                pools.add_node(host)
                for disk in names_of(each):
                    if hosts.get(disk, host) != host:
                        pools.move(host, disk)
                    else:
                        pools.add_devices(host, disk)
                    hosts[disk] = host
                    used.append(disk)
            tap.ran(c.server.kubectl("apply", "-f", file), f"{os.path.relpath(file, folder)}: is applied")
            ready(c, of, f"{os.path.relpath(file, folder)}: is ready")
            wanted = sorted(n for p in value["spec"]["pools"] for n in names_of(p))
            until("with these devices", lambda w=wanted, o=of: sorted(
                n for i in c.instances(o) for n in names_of(i["spec"])) == w and sorted(c.claims(o)) == w, c, of)
        tap.ran(c.server.kubectl("delete", "cspc", of, "-n", NS, "--timeout=60s"), f"{name}: goes")
        tap.equal((c.instances(of), wait_for(lambda o=of: not c.claims(o))), ([], True), f"{name}: leaves nothing")
        for disk in set(used):
            c.server.ask("DELETE", f"{DEVICES}/{disk}")


def check_deletion(c, pools):
    third = next(i for i in c.instances("one") if i["spec"]["hostName"] == "n3")["metadata"]["name"]
    c.server.create(REPLICAS, replica("v-2", third))
    c.server.kubectl("delete", "cspc", "one", "-n", NS, "--wait=false", "--cascade=foreground")
    until("a cluster with replicas waits", lambda: c.why("one", "PoolsDeleted", "ReplicasExist", third), c, "one")
    tap.ok(wait_for(lambda: len(c.instances("one")) == 1), "its other pool goes", c.describe("one"))
    it = c.server.get(f"{INSTANCES}/{third}")[1]
    tap.ok(DESTROY not in it["metadata"].get("annotations", {}) and it["status"]["guid"] in pools.disks.values(),
           "the one with replicas stays", it)
    c.server.ask("DELETE", f"{REPLICAS}/v-2")
    tap.ok(wait_for(lambda: c.server.get(f"{CLUSTERS}/one")[0] == 404), "then it is gone", c.describe("one"))
    tap.ok(wait_for(lambda: not c.claims("one")), "and its claims", c.describe("one"))
    names = [i["metadata"]["name"] for i in c.items(CLUSTERS)]
    tap.ran(c.server.kubectl("delete", "cspc", "--all", "-n", NS, "--timeout=60s"), "all go")
    tap.ok(names and wait_for(lambda: not c.items(INSTANCES) and not c.items(CLAIMS) and not c.items(DEPLOYMENTS)),
           "nothing is left", [c.items(INSTANCES), c.items(CLAIMS), c.items(DEPLOYMENTS)])
    tap.equal((pools.disks, pools.made), ({}, pools.destroyed), "every pool that was made was destroyed")


with Scratch() as scratch, open(scratch.file("api.log"), "w", encoding="utf-8") as log, \
        Server(program, scratch.file("api"), "--feature-gates", "OrlopAdmission=false", log=log) as server:
    server.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}})
    controller = Controller(controller_program, server, scratch.file("controller.log"), "--controllers", "cspc-operator",
                            "--leader-elect=false")
    # With the rights that the controller has in a cluster, not an administrator's.
    controller.flags = ("--kubeconfig", os.path.join(server.folder, "controller.kubeconfig"), *controller.flags)
    with Pools(server) as pools, controller:
        c = Clusters(server)
        for check in (check_life, check_healing, check_migration, check_scaling, check_order, check_lost, check_refusals,
                      check_published, check_samples, check_deletion):
            check(c, pools)
        tap.equal(pools.broken, [], "nothing was broken meanwhile")
        tap.equal([line for line in controller.lines() if line["level"] == "error"], [], "no errors were logged")
    with open(scratch.file("controller.log"), encoding="utf-8") as text:
        said = text.read()
    tap.ok("Sanitizer" not in said, "no sanitizer complained", said[-3000:])
tap.done()
