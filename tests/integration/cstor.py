#!/usr/bin/env python3
"""CStorVolumes in a whole system of four nodes with a pool each: made from capacity and factor alone, served over
iSCSI, with pools and target killed under a load that is checked; resized, scaled, moved, deleted.

cstor.py ORLOP
"""
import json
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from cstor import NS, CStor, counted, volume  # noqa: E402
from jiva import PATIENCE, kill, wake  # noqa: E402
from namespaces import own_network  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402

orlop = sys.argv[1]
tap = Tap()
MEBI = 1 << 20


def qemu_io(url, *commands):
    return run("qemu-io", "-f", "raw", *(w for c in commands for w in ("-c", c)), url)


def check_made(s):
    """What is made of a volume that says nothing but its size and its factor."""
    begun = time.monotonic()
    tap.ran(s.apply(volume("first", "64Mi")), "a volume is applied")
    tap.ok(s.healthy("first"), "it is Healthy, and so are its replicas", s.describe("first"))
    print(f"# after {time.monotonic() - begun:.1f} s")
    v = s.volume("first")
    spec, status = v["spec"], v["status"]
    address = s.object("services", "first", "api/v1")["spec"]["clusterIP"]
    tap.equal([spec[k] for k in ("iqn", "targetIP", "targetPort", "targetPortal", "consistencyFactor",
                                 "desiredReplicationFactor")],
              ["iqn.2016-09.com.openebs.cstor:first", address, "3260", f"{address}:3260", 2, 3], "the rest is filled in")
    replicas = s.replicas_of("first")
    tap.equal(len({r["metadata"]["annotations"]["cstorpoolinstance.openebs.io/hostname"] for r in replicas}), 3,
              "each replica is on a node of its own")
    known = {r["spec"]["replicaid"]: r["status"]["zvolGuid"] for r in replicas}
    tap.equal((status["replicaDetails"]["knownReplicas"], {r["replicaId"] for r in status["replicaStatuses"]}),
              (known, set(known.values())), "the target's replicas are those of the objects, by id and data set")
    tap.ok(wait_for(lambda: s.volume("first")["spec"].get("replicaDetails", {}).get("knownReplicas") == known, PATIENCE),
           "the spec has them too", s.volume("first")["spec"])
    for r in replicas:
        m, pool = r["metadata"], r["metadata"]["labels"]["cstorpoolinstance.openebs.io/name"]
        tap.ok(m["name"] == f"first-{pool}" and m["labels"]["openebs.io/persistent-volume"] == "first" and
               m["labels"]["cstorpoolinstance.openebs.io/uid"] ==
               s.object("cstorpoolinstances", pool)["metadata"]["uid"] and
               m["finalizers"] == ["cstorvolumereplica.openebs.io/finalizer"] and
               m["ownerReferences"][0]["uid"] == v["metadata"]["uid"] and r["spec"]["targetIP"] == address and
               r["spec"]["capacity"] == "64Mi", f"{m['name']} has the published names, labels and owner", r)
    row = s.kubectl("get", "cv", "first", "-n", NS, "--no-headers").stdout.split()
    tap.equal(row[:4], ["first", "64Mi", "Healthy", "3/3"], "kubectl shows it in a line")
    conditions = {c["type"]: c["status"] for c in status["conditions"]}
    tap.equal({k: conditions.get(k) for k in ("FullyReplicated", "Serving", "TargetReachable")},
              dict.fromkeys(("FullyReplicated", "Serving", "TargetReachable"), "True"), "its conditions say so")
    tap.ran(qemu_io(s.url("first"), "write -P 0x5a 0 8M", "write -P 0x77 63M 1M", "flush", "read -P 0x5a 0 8M"),
            "qemu-io writes to it and reads it")


def check_rights(s):
    """A pool reads the keys of volumes that have a replica on it, and no other."""
    with_replica = s.pools_with("first")
    answers = {}
    for pool in (p["metadata"]["name"] for p in s.pools_of()):
        said = s.kubectl("auth", "can-i", "get", "secrets/first-key", "-n", NS, "--as",
                         f"system:serviceaccount:{NS}:orlop-pool-{pool}")
        answers[pool] = said.stdout.strip()
    tap.equal(answers, {p: "yes" if p in with_replica else "no" for p in answers}, "pools with a replica read the key")


def check_refused(s):
    tap.ran(s.apply(volume("many", "64Mi", 5)), "a volume of five replicas over four pools")
    tap.ok(wait_for(lambda: s.condition("many", "Configured").get("reason") == "NotEnoughPools", PATIENCE),
           "says that it cannot be", s.describe("many"))
    said = s.condition("many", "Configured")["message"]
    tap.ok('not enough pools are available of provided CSPC "pools": 5 more replicas of 64Mi are wanted, and 4 can be '
           "placed" in said, "with what is wrong", said)
    tap.ok(wait_for(lambda: "NotEnoughPools" in s.events_of("many"), PATIENCE), "and an event", s.events_of("many"))
    left = [o["metadata"]["name"] for kind, group in (
        ("services", "api/v1"), ("secrets", "api/v1"), ("serviceaccounts", "api/v1"), ("deployments", "apis/apps/v1"),
        ("cstorvolumereplicas", "apis/cstor.openebs.io/v1")) for o in s.list(kind, group)
        if o["metadata"]["name"].startswith(("many", "orlop-volume-many"))]
    tap.equal(left, [], "nothing was made of it")
    tap.ran(s.kubectl("delete", "cv", "many", "-n", NS, "--timeout=60s"), "it can be deleted")
    s.apply(volume("nowhere", "64Mi", 1, cluster="none"))
    tap.ok(wait_for(lambda: "it has no other pools" in s.condition("nowhere", "Configured").get("message", ""), PATIENCE),
           "a cluster that is not there has no pools", s.describe("nowhere"))
    s.kubectl("delete", "cv", "nowhere", "-n", NS, "--timeout=60s")


def history(s, name, version):
    """The phases that a replica has had since then, one after the other."""
    found = []
    for event in s.client.events(f"{s.namespaced('cstorvolumereplicas')}?watch=1&fieldSelector=metadata.name%3D{name}"
                                 f"&resourceVersion={version}&timeoutSeconds=2"):
        phase = event["object"].get("status", {}).get("phase", "")
        if not found or found[-1] != phase:
            found.append(phase)
    s.client.close()
    return found


def check_load(s, scratch):
    """Pools and target are killed under a load whose data is checked."""
    load = s.bench("first", "--verify", "--reconnect", "-q", "8", "-r", "50", "-t", "600", "--flush-every", "50",
                   "--span", "16Mi", "--save-map", scratch.file("map"), wait=False)
    pools = s.pools_with("first")
    version = s.ask("GET", s.namespaced("cstorvolumereplicas")).json["metadata"]["resourceVersion"]
    agents = s.hold_down_pools(pools[0])
    try:
        tap.ok(wait_for(lambda: s.status_of("first").get("replicas") == "2/3", PATIENCE),
               "the process of a pool is killed: two of three", s.describe("first"))
        tap.equal((s.status_of("first")["phase"], s.condition("first", "FullyReplicated")["status"]),
                  ("Healthy", "False"), "the phase is by the published rule, and a condition says the rest")
    finally:
        wake(*agents)
    tap.ok(s.healthy("first"), "it comes back, and has what it missed", s.describe("first"))
    had = history(s, f"first-{pools[0]}", version)
    order = [p for p in ("Offline", "Degraded", "Rebuilding", "Healthy") if p in had]
    tap.ok(had[-1:] == ["Healthy"] and "Offline" in had and had[had.index("Offline"):] == order,
           "its phases were in their order", had)
    print(f"# {' '.join(had)}")
    agents = s.hold_down_pools(*pools[1:3])
    try:
        tap.ok(wait_for(lambda: s.status_of("first").get("phase") == "Offline", PATIENCE), "two are killed: Offline",
               s.describe("first"))
        tap.ok("I/O waits: 1 of 3" in s.condition("first", "Serving")["message"], "I/O waits, and it says so",
               s.condition("first", "Serving"))
    finally:
        wake(*agents)
    tap.ok(s.healthy("first"), "both are back: it goes on", s.describe("first"))
    target = s.target("first")
    kill(target)
    tap.ok(wait_for(lambda: s.target("first") not in (0, target), PATIENCE) and s.healthy("first"),
           "the target is killed, and comes back", s.describe("first"))
    for pid in s.pids("orlop-sidecar", "first"):
        kill(pid)
    tap.ran(s.edit("first", {"capacity": "96Mi"}), "the size is edited, with a sidecar that was killed")
    tap.ok(wait_for(lambda: s.condition("first", "Resizing").get("status") == "Success", PATIENCE),
           "Resizing is Success", s.describe("first"))
    tap.equal((s.status_of("first")["capacity"], [r["spec"]["capacity"] for r in s.replicas_of("first")]),
              ("96Mi", ["96Mi"] * 3), "volume and replicas have the new size")
    load.send_signal(signal.SIGINT)
    text, errors = load.communicate(timeout=120)
    tap.ok(load.returncode == 0 and '"verify"' in text, "no I/O failed, nothing was lost", text + errors)
    print(f"# {json.loads(text).get('verify') if text.startswith('{') else text}")
    check = s.bench("first", "--span", "16Mi", "--load-map", scratch.file("map"), "--check")
    tap.ok(check.returncode == 0, "everything acknowledged is there", check.stdout + check.stderr)
    tap.ran(qemu_io(s.url("first"), "read -P 0 64M 16M", "read -P 0x77 63M 1M", "write -P 0x21 95M 1M"),
            "the new part can be used")


def check_power(s, scratch):
    """All pools of a volume and its target are killed at once: what was flushed is there."""
    tap.ok(wait_for(lambda: not s.status_of("first").get("initiators"), PATIENCE), "nobody is logged in")
    load = s.bench("first", "--verify", "-q", "8", "-r", "0", "-t", "600", "--flush-every", "16", "--span", "16Mi",
                   "--save-map", scratch.file("power"), wait=False)
    tap.ok(wait_for(lambda: s.status_of("first").get("initiators"), PATIENCE), "another load writes")
    killed = [s.target("first"), *(s.pool_process(p) for p in s.pools_with("first"))]
    for pid in killed:
        kill(pid)
    load.communicate(timeout=120)  # it ends with its connection: later flushes would count what came before the crash
    tap.ok(wait_for(lambda: s.target("first") not in (0, killed[0]), PATIENCE) and s.healthy("first"),
           "all pools and the target are killed at once, and come back", s.describe("first"))
    check = s.bench("first", "--span", "16Mi", "--load-map", scratch.file("power"), "--check", "--expect", "flushed")
    tap.ok(check.returncode == 0, "everything flushed is there", check.stdout + check.stderr)


def check_silence(s):
    """A pool whose process stays away: its replica is Offline, and is told so by the controller."""
    pool = s.pools_with("first")[0]
    s.kubectl("scale", "deployment", pool, "-n", NS, "--replicas=0")
    tap.ok(wait_for(lambda: s.phases("first").count("Offline") == 1, PATIENCE), "a pool rests: its replica is Offline",
           s.describe("first"))
    s.kubectl("scale", "deployment", pool, "-n", NS, "--replicas=1")
    tap.ok(s.healthy("first"), "it is back", s.describe("first"))


def check_scale(s):
    """More, fewer, elsewhere."""
    tap.ran(s.edit("first", {"desiredReplicationFactor": 4}), "four replicas are wanted")
    tap.ok(s.healthy("first", 4), "there are", s.describe("first"))
    tap.ok(wait_for(lambda: [s.volume("first")["spec"][k] for k in ("replicationFactor", "consistencyFactor")] == [4, 3],
                    PATIENCE), "the spec says what has become of it", s.volume("first")["spec"])
    tap.ran(s.edit("first", {"desiredReplicationFactor": 2}), "two are wanted")
    tap.ok(s.healthy("first", 2), "two are left", s.describe("first"))
    tap.ok(wait_for(lambda: not s.volume("first")["spec"].get("leavingReplicas"), PATIENCE), "who left is forgotten",
           s.describe("first"))
    tap.ran(qemu_io(s.url("first"), "read -P 0x77 63M 1M", "read -P 0x21 95M 1M"), "the data is there")
    every = {p["metadata"]["name"] for p in s.pools_of()}
    others = sorted(every - set(s.pools_with("first")))
    tap.ran(s.edit("first", {"replicaPoolInfo": [{"poolName": p} for p in others]}), "all are to be in other pools")
    tap.ok(wait_for(lambda: s.pools_with("first") == others, PATIENCE) and s.healthy("first", 2),
           "they are, with the data", s.describe("first"))
    tap.ran(qemu_io(s.url("first"), "read -P 0x77 63M 1M", "read -P 0x21 95M 1M"), "which is the same")
    tap.ran(s.edit("first", {"replicaPoolInfo": None, "desiredReplicationFactor": 3}), "three, wherever")
    tap.ok(s.healthy("first"), "there are", s.describe("first"))
    away = s.pools_with("first")[0]
    s.kubectl("annotate", "cspi", away, "-n", NS, "orlop.io/evacuate=true")
    tap.ok(wait_for(lambda: away not in s.pools_with("first"), PATIENCE) and s.healthy("first"),
           "a pool is evacuated", s.describe("first"))
    s.kubectl("annotate", "cspi", away, "-n", NS, "orlop.io/evacuate-")


def check_object_lost(s):
    """Somebody deletes a replica: it is made anew in another pool, or, where there is none, in the same one."""
    for pinned in (False, True):
        pools = s.pools_with("first")
        s.edit("first", {"replicaPoolInfo": [{"poolName": p} for p in pools] if pinned else None})
        uids = {r["metadata"]["uid"] for r in s.replicas_of("first")}
        tap.ran(s.kubectl("delete", "cvr", f"first-{pools[0]}", "-n", NS, "--timeout=120s"),
                "a replica's object is deleted")
        tap.ok(wait_for(lambda u=uids: len({r["metadata"]["uid"] for r in s.replicas_of("first")} & u) == 2 and
                        len(s.replicas_of("first")) == 3, PATIENCE) and s.healthy("first"),
               "another is made and filled" + (" in the pool that was named" if pinned else ""), s.describe("first"))
        tap.ok(wait_for(lambda: not s.volume("first")["spec"].get("leavingReplicas"), PATIENCE), "nobody is leaving",
               s.volume("first")["spec"])
        tap.equal(s.pools_with("first") == pools, pinned, "where it was, if that was said")
    s.edit("first", {"replicaPoolInfo": None})
    tap.ran(qemu_io(s.url("first"), "read -P 0x77 63M 1M", "read -P 0x21 95M 1M"), "the data is there")


def check_room(s):
    """Promises of thick pools are kept."""
    total = min(int(p["status"]["capacity"]["total"]) if str(p["status"]["capacity"]["total"]).isdigit() else 0
                for p in s.pools_of()) or 300 * MEBI
    tap.ran(s.apply(volume("large", f"{total * 10}", 2)), "a volume larger than the pools")
    tap.ok(wait_for(lambda: "neither used nor promised" in s.condition("large", "Configured").get("message", ""),
                    PATIENCE), "is refused where promises are kept", s.describe("large"))
    s.kubectl("delete", "cv", "large", "-n", NS, "--timeout=60s")
    before = s.status_of("first")["capacity"]
    tap.ran(s.edit("first", {"capacity": f"{total * 10}"}), "a volume is to grow beyond its pools")
    tap.ok(wait_for(lambda: s.condition("first", "Resizing").get("reason") == "OUT_OF_RANGE", PATIENCE),
           "that is refused", s.describe("first"))
    tap.equal((s.status_of("first")["capacity"], {r["spec"]["capacity"] for r in s.replicas_of("first")}),
              (before, {before}), "and nothing has grown")


def check_config(s):
    """A CStorVolumeConfig, with a policy that it names."""
    config = {"apiVersion": "cstor.openebs.io/v1", "kind": "CStorVolumeConfig",
              "metadata": {"name": "claimed", "namespace": NS, "labels": {"openebs.io/cstor-pool-cluster": "pools"},
                           "annotations": {"openebs.io/volume-policy": "fast"}},
              "spec": {"capacity": {"storage": "32Mi"}, "provision": {"replicaCount": 1}}}
    policy = {"apiVersion": "cstor.openebs.io/v1", "kind": "CStorVolumePolicy",
              "metadata": {"name": "fast", "namespace": NS},
              "spec": {"target": {"queueDepth": "17"}, "replica": {"compression": "lz4"},
                       "provision": {"blockSize": 8192}}}

    def it():
        return s.object("cstorvolumeconfigs", "claimed")

    s.apply(config)
    tap.ok(wait_for(lambda: it().get("status", {}).get("condition", [{}])[0].get("reason") == "NoPolicy", PATIENCE),
           "a config whose policy is missing says so", it())
    s.apply(policy)
    tap.ok(wait_for(lambda: it().get("status", {}).get("phase") == "Bound", PATIENCE) and s.healthy("claimed", 1),
           "with the policy it is Bound", it())
    replica = s.replicas_of("claimed")[0]
    tap.equal((replica["spec"]["compression"], replica["spec"]["blockSize"]), ("lz4", 8192), "its replica is as the policy says")
    pods = [p for p in s.list("pods", "api/v1") if p["metadata"]["name"].startswith("claimed-target")]
    tap.ok(any("17" in c.get("args", []) for p in pods for c in p["spec"]["containers"]), "and so is its target", pods)
    tap.ok(wait_for(lambda: [p["poolName"] for p in it()["spec"]["policy"].get("replicaPoolInfo", [])] ==
                    s.pools_with("claimed") == it()["status"]["poolInfo"], PATIENCE), "the pool is written into it", it())
    other = next(p["metadata"]["name"] for p in s.pools_of() if p["metadata"]["name"] not in s.pools_with("claimed"))
    edit = {"spec": {"capacity": {"storage": "48Mi"}, "policy": {"replicaPoolInfo": [{"poolName": other}]}}}
    s.kubectl("patch", "cvc", "claimed", "-n", NS, "--type=merge", "-p", json.dumps(edit))
    tap.ok(wait_for(lambda: it()["status"].get("capacity", {}).get("storage") == "48Mi" and
                    it()["status"]["poolInfo"] == [other] and s.healthy("claimed", 1, 1), PATIENCE),
           "one edit grows the volume and moves it to another pool", it())
    tap.ran(s.kubectl("delete", "cvc", "claimed", "-n", NS, "--timeout=120s"), "the config is deleted")
    tap.equal((s.volume("claimed"), s.replicas_of("claimed")), ({}, []), "and its volume was gone before")


def check_deleted(s):
    tap.ran(s.kubectl("delete", "cv", "first", "-n", NS, "--timeout=120s"), "the volume is deleted")
    names = ("first", "orlop-volume-first")
    kinds = (("services", "api/v1"), ("secrets", "api/v1"), ("serviceaccounts", "api/v1"), ("pods", "api/v1"),
             ("deployments", "apis/apps/v1"), ("roles", "apis/rbac.authorization.k8s.io/v1"),
             ("rolebindings", "apis/rbac.authorization.k8s.io/v1"),
             ("cstorvolumereplicas", "apis/cstor.openebs.io/v1"))
    tap.ok(wait_for(lambda: not [o for kind, group in kinds for o in s.list(kind, group)
                                 if o["metadata"]["name"].startswith(names)], PATIENCE), "nothing is left of it",
           [o["metadata"]["name"] for kind, group in kinds for o in s.list(kind, group)])
    tap.ran(s.kubectl("delete", "cspc", "pools", "-n", NS, "--timeout=120s"), "and the pools can go")


if not own_network():
    tap.skip("cStor volumes", "no network namespaces here")
    tap.done()
with Scratch() as scratch, CStor(orlop, scratch.file("data"), "--nodes", "4", "--sparse-disks", "1x512Mi",
                                 "--lost-after", "10m") as system:
    tap.ok(system.make_pools(), "four pools are ONLINE", system.describe(""))
    check_made(system)
    check_rights(system)
    check_refused(system)
    check_load(system, scratch)
    check_power(system, scratch)
    check_silence(system)
    check_scale(system)
    check_object_lost(system)
    check_room(system)
    check_config(system)
    check_deleted(system)
    tap.equal(system.complaints(), "", "no sanitizer complained")
    if tap.failed:
        print("\n".join("# " + line for line in run("tail", "-n", "40", f"{system.folder}/logs/controller.log")
                        .stdout.splitlines()))
        if os.environ.get("KEEP_LOGS"):
            run("cp", "-r", f"{system.folder}/logs", f"{system.folder}/nodes", os.environ["KEEP_LOGS"])
tap.done()
