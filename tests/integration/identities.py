#!/usr/bin/env python3
"""Nodes, pools and targets write what is their own, whatever roles they have: every kind that has an object, every
part of it, every verb.

identities.py APISERVER
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import identities  # noqa: E402
import pool_objects  # noqa: E402
from identities import ACCOUNT, API, Identity  # noqa: E402
from pool_objects import put  # noqa: E402
from server import Server  # noqa: E402
from tap import Scratch, Tap  # noqa: E402

program = sys.argv[1]
tap = Tap()
LVS = "/apis/topolvm.io/v1/logicalvolumes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
EVENTS = "/api/v1/namespaces/default/events"
HOLD = {"metadata": {"finalizers": ["orlop.io/test"]}}
STATUS = {"status": {"phase": "Bound"}}


def resources(server):
    """Every resource of the server that can be listed: its path, its parts, whether it has namespaces."""
    versions = ["/api/v1"] + [f"/apis/{v['groupVersion']}" for g in server.get("/apis")[1]["groups"]
                              for v in g["versions"]]
    for base in versions:
        listed = server.get(base)[1]["resources"]
        for it in listed:
            if "list" in it["verbs"] and "patch" in it["verbs"]:
                parts = [p["name"].split("/")[1] for p in listed if p["name"].startswith(it["name"] + "/")
                         and "patch" in p["verbs"]]
                yield base, it["name"], it["namespaced"], parts


def first_objects(server):
    """An object of each kind that has one which is nobody's of those who ask."""
    for base, plural, namespaced, parts in resources(server):
        for it in server.get(f"{base}/{plural}?limit=500")[1]["items"]:
            name = it["metadata"]["name"]
            if "mine" in name or name == "n1":
                continue
            where = f"{base}/namespaces/{it['metadata']['namespace']}/{plural}" if namespaced else f"{base}/{plural}"
            yield where, name, parts
            break


def foreign(server, everybody):
    """Nothing of others is written: no part, by no verb, by nobody."""
    allowed, asked, kinds = [], 0, set()
    for where, name, parts in list(first_objects(server)):
        kinds.add(where.rsplit("/", 1)[1])
        for who, identity in everybody.items():
            tries = [("PATCH", f"{where}/{name}", {"metadata": {"annotations": {"by": "me"}}}),
                     ("PATCH", f"{where}/{name}", HOLD),
                     ("DELETE", f"{where}/{name}", None),
                     ("DELETE", f"{where}?fieldSelector=metadata.name%3D{name}", None)]
            tries += [("PATCH", f"{where}/{name}/{part}", {"metadata": {"annotations": {"by": "me"}}, **(
                {"spec": {"replicas": 3}} if part == "scale" else {"status": {"x": "y"}})}) for part in parts]
            for method, path, body in tries:
                if path.endswith("/finalize"):
                    continue  # it has PUT alone, below
                status, reply = identity.ask(method, path, body, identities.MERGE if body else "application/json")
                asked += 1
                if status == 405:  # nobody deletes all namespaces at once
                    continue
                if status != 403 or "cannot" in reply["message"]:
                    allowed.append((who, method, path, status, reply.get("message")))
    tap.equal(allowed, [], f"{asked} writes of others' objects are refused by admission")
    ours = {"blockdevices", "blockdeviceclaims", "cstorpoolclusters", "cstorpoolinstances", "cstorvolumereplicas",
            "jivavolumes", "logicalvolumes"}
    tap.ok(ours | {"secrets", "configmaps", "pods", "nodes", "clusterroles", "clusterrolebindings",
                   "namespaces", "serviceaccounts"} <= kinds, f"{len(kinds)} kinds were tried", kinds)


def creations(server, everybody):
    for what, where, value in (
            ("ConfigMap", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "x"}}),
            ("Secret", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "x"}}),
            ("ServiceAccount", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "x"}}),
            ("BlockDeviceClaim", f"{API}/blockdeviceclaims", {
                "apiVersion": "openebs.io/v1alpha1", "kind": "BlockDeviceClaim", "metadata": {"name": "x"},
                "spec": {"resources": {"requests": {"storage": "1Gi"}}}}),
            ("BlockDevice of n2", f"{API}/blockdevices", identities.device("x", on="n2")),
            ("JivaVolume", f"{API}/jivavolumes", {
                "apiVersion": "openebs.io/v1alpha1", "kind": "JivaVolume", "metadata": {"name": "x"},
                "spec": {"capacity": "1Gi"}}),
            ("Lease", LEASES.format("kube-system"), {"metadata": {"name": "mine"}}),
            ("ClusterRoleBinding", f"{identities.RBAC}/clusterrolebindings", {
                "metadata": {"name": "x"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io",
                                                       "kind": "ClusterRole", "name": "cluster-admin"}}),
            ("binding of a Pod", "/api/v1/namespaces/default/pods/pod-of-other/binding", {
                "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "pod-of-other"},
                "target": {"kind": "Node", "name": "n1"}})):
        got = {who: identity.ask("POST", where, value)[0] for who, identity in everybody.items()}
        tap.equal(got, {who: 403 for who in everybody}, f"nobody makes a {what}")
    tokens = "/api/v1/namespaces/default/serviceaccounts/default/token"
    got = {who: identity.ask("POST", tokens, {"spec": {}})[0] for who, identity in everybody.items()}
    tap.equal(got, {who: 403 for who in everybody}, "nobody gets a token for nothing")


def own(n1, pool, old_pool, target):
    def fine(what, result, status=200):
        tap.ok(result[0] == status, what, result)

    fine("a node makes its device", n1.ask("POST", f"{API}/blockdevices", identities.device("new", on="n1")), 201)
    fine("and changes it", n1.patch(f"{API}/blockdevices/new", HOLD))
    fine("a node writes the status of a claim for its device", n1.patch(f"{API}/blockdeviceclaims/bdc-mine/status",
                                                                            STATUS))
    status, reply = n1.patch(f"{API}/blockdeviceclaims/bdc-mine", {"metadata": {"labels": {"a": "b"}}})
    tap.ok(status == 403 and "it would change metadata.labels, and may change only" in reply["message"],
           "but not its labels", reply)
    fine("a node holds its logical volume", n1.patch(f"{LVS}/lv-mine", HOLD))
    status, reply = n1.patch(f"{LVS}/lv-mine", {"spec": {"size": "2Gi"}})
    tap.ok(status == 403 and "it would change spec.size" in reply["message"], "but does not grow it", reply)
    status, reply = n1.patch(f"{API}/blockdevices/bd-other", {"spec": {"nodeAttributes": {"nodeName": "n1"}}})
    tap.ok(status == 403 and 'node "n1" may not update blockdevices "bd-other": it may write only devices of its own'
           in reply["message"], "a node takes no device that another one has", reply)
    status, reply = n1.patch(f"{API}/blockdevices/new", {"spec": {"nodeAttributes": {"nodeName": "n2"}}})
    tap.equal(status, 403, "nor gives one away")
    fine("a pool holds its instance", pool.patch(f"{API}/cstorpoolinstances/mine", HOLD))
    fine("and writes its status", pool.patch(f"{API}/cstorpoolinstances/mine/status", {"status": {"phase": "ONLINE"}}))
    fine("a pool holds its replica", pool.patch(f"{API}/cstorvolumereplicas/cvr-mine", HOLD))
    fine("and so does one of an earlier version", old_pool.patch(f"{API}/cstorvolumereplicas/cvr-mine", {
        "metadata": {"finalizers": None}}))
    fine("a pool says that it lives", pool.ask("POST", LEASES.format("default"), {"metadata": {"name": "mine"}}), 201)
    tap.equal(pool.ask("POST", LEASES.format("default"), {"metadata": {"name": "other"}})[0], 403,
              "and not that another does")
    status, reply = pool.patch(f"{API}/cstorpoolinstances/mine", {"metadata": {"annotations": {
        "orlop.io/destroy-pool": "now"}}})
    tap.ok(status == 403 and "metadata.annotations" in reply["message"], "a pool gives itself no orders", reply)
    fine("a pool gives back a claim of its own", pool.ask("DELETE", f"{API}/blockdeviceclaims/bdc-mine"))
    fine("a target writes the status of its volume", target.patch(f"{API}/jivavolumes/mine/status", {
        "status": {"status": "RW"}}))
    tap.equal(target.patch(f"{API}/jivavolumes/mine", {"metadata": {"annotations": {
        "jiva.openebs.io/reclaim-policy": "Delete"}}})[0], 403,
              "and nothing else of it")
    event = {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default", "name": "mine"},
             "source": {"component": "orlop-pool", "host": "n2"}}
    fine("a pool makes an event", pool.ask("POST", EVENTS, event), 201)
    tap.equal([who.patch(f"{EVENTS}/e", {"count": 2})[0] for who in (pool, target, n1)], [200, 403, 403],
              "which no other program changes")


with Scratch() as scratch, Server(program, scratch.file("data"), "--log-level", "warn") as server:
    identities.allow_everything(server)
    for name in ("n1", "n2"):
        put(server, pool_objects.node(name))
    server.create("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "orlop-pool"}})
    server.create("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "others"}})
    server.create("/api/v1/namespaces/default/secrets", {"metadata": {"name": "others"}})
    identities.make_objects(server)
    put(server, identities.device("bd-free", on="n2"))
    put(server, pool_objects.cluster(pool_objects.pool("n2", identities.group("stripe", "bd-free")), name="cluster"))
    everybody = {"node": identities.node(server, "n1"), "pool": identities.pool(server, "mine"),
                 "pool of a Pod": identities.pool_of_pod(server, "mine"),
                 "target": Identity(server, ACCOUNT + "orlop-volume-mine"),
                 "replica": Identity(server, ACCOUNT + "orlop-replica"),
                 "CSI node": Identity(server, ACCOUNT + "orlop-csi-node", node_name="n1"),
                 "a pool without a Pod": Identity(server, ACCOUNT + "orlop-pool"),
                 "a node without a name": Identity(server, "jane", "system:nodes")}
    identities.pool_of_pod(server, "other")
    foreign(server, everybody)
    creations(server, everybody)
    own(everybody["node"], everybody["pool"], everybody["pool of a Pod"], everybody["target"])
    tap.equal(Identity(server, "jane").patch(f"{API}/jivavolumes/mine", HOLD)[0], 200,
              "people are held by roles alone")
tap.done()
