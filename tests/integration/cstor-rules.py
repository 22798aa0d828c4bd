#!/usr/bin/env python3
"""Rules of the controller of cStor volumes, over pools and targets that only pretend: where replicas go, what is
promised, which are given up with a lost pool, and what a volume's end waits for.

cstor-rules.py PROGRAMS
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from cstor import volume  # noqa: E402
from pretend_cstor import API, Pretend  # noqa: E402
from server import Server  # noqa: E402
from tap import Scratch, Tap, wait_for  # noqa: E402

programs = sys.argv[1]
tap = Tap()
PATIENCE = 60
POOLS = ("a", "b", "c", "d", "e")
ZONES = {"a": "x", "b": "x", "c": "x", "d": "x", "e": "y"}
CSPIS = "/apis/openebs.io/v1alpha1/namespaces/openebs/cstorpoolinstances"
POOL = "cstorpoolinstance.openebs.io/name"


class World:
    """An API server, the controller, and those who pretend."""

    def __init__(self, server, log):
        self.server, self.pretend = server, Pretend(server, *POOLS, zones=ZONES)
        self.process = subprocess.Popen(
            [f"{programs}/orlop-controller", "--kubeconfig", server.kubeconfig, "--health-port", "off",
             "--leader-elect=false", "--controllers", "cstor-volume-controller", "--rehome-after", "2s",
             "--rehome-most", "1"], stderr=log)

    def get(self, path):
        status, value = self.server.get(path)
        return value if status == 200 else {}

    def volume(self, name):
        return self.get(f"{API}/cstorvolumes/{name}")

    def make(self, name, size="1Gi", factor=2, **more):
        self.server.create(f"{API}/cstorvolumes", volume(name, size, factor, **more))
        self.server.create("/api/v1/namespaces/openebs/pods", {
            "apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "t", "image": "orlop-target"}]},
            "metadata": {"name": f"{name}-target", "namespace": "openebs", "labels": {
                "openebs.io/cas-type": "cstor", "openebs.io/persistent-volume": name,
                "openebs.io/component": "cstor-target"}}})
        self.server.ask("PATCH", f"/api/v1/namespaces/openebs/pods/{name}-target/status",
                        {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}},
                        content_type="application/merge-patch+json")

    def pools(self, name):
        return sorted(r["metadata"]["labels"][POOL] for r in self.pretend.tick()
                      if r["metadata"]["labels"]["cstorvolume.openebs.io/name"] == name)

    def full(self, name, factor=2):
        """It has its replicas, and says so."""
        return wait_for(lambda: len(self.pools(name)) == factor and self.condition(name, "FullyReplicated") == "True" and
                        not self.volume(name)["spec"].get("leavingReplicas"), PATIENCE)

    def condition(self, name, kind, key="status"):
        return next((c.get(key) for c in self.volume(name).get("status", {}).get("conditions", [])
                     if c["type"] == kind), None)

    def remove(self, name):
        self.server.ask("DELETE", f"{API}/cstorvolumes/{name}")
        self.server.ask("DELETE", f"/api/v1/namespaces/openebs/pods/{name}-target?gracePeriodSeconds=0")
        self.pretend.members.pop(name, None)

    def gone(self, name):
        return wait_for(lambda: not self.pools(name) and not self.volume(name), PATIENCE)


def check_places(w):
    w.make("spread", factor=2)
    tap.ok(w.full("spread") and "e" in w.pools("spread"), "replicas are spread over zones", w.pools("spread"))
    w.make("near", factor=1, annotations={"orlop.io/preferred-node": "n-c"})
    tap.ok(w.full("near", 1) and w.pools("near") == ["c"], "one is near the node that is preferred", w.pools("near"))
    for name in ("app-0", "app-1", "app-2"):
        w.make(name, factor=2, labels={"openebs.io/replica-anti-affinity": "app"})
    tap.ok(wait_for(lambda: sorted(len(w.pools(f"app-{i}")) for i in range(3)) == [0, 2, 2], PATIENCE),
           "five pools are enough for two volumes of two that must be apart", [w.pools(f"app-{i}") for i in range(3)])
    taken = [p for i in range(3) for p in w.pools(f"app-{i}")]
    tap.equal(len(set(taken)), 4, "and they share none")
    late = next(i for i in range(3) if not w.pools(f"app-{i}"))
    tap.ok(wait_for(lambda: "same openebs.io/replica-anti-affinity" in
                    (w.condition(f"app-{late}", "Configured", "message") or ""), PATIENCE), "the third is told why",
           w.volume(f"app-{late}"))
    w.server.merge(f"{API}/cstorvolumes/near", {"spec": {"policy": {"target": {"luWorkers": 6}}}})
    tap.ok(wait_for(lambda: w.condition("near", "PolicyHonoured", "reason") == "TunablesIgnored", PATIENCE),
           "a setting that has no effect is said to have none", w.volume("near"))
    for name in ("spread", "near", "app-0", "app-1", "app-2"):
        w.remove(name)
        tap.ok(w.gone(name), f"{name} goes", w.volume(name))


def check_promises(w):
    """Volumes that are applied at once cannot have the same room."""
    for i in range(4):
        w.make(f"big-{i}", "6Gi", 2)
    tap.ok(wait_for(lambda: sorted(len(w.pools(f"big-{i}")) for i in range(4)) == [0, 0, 2, 2] and all(
        w.pools(f"big-{i}") or w.condition(f"big-{i}", "Configured", "reason") == "NotEnoughPools" for i in range(4)),
        PATIENCE), "of five pools of 10Gi, two volumes of two replicas of 6Gi have room",
        [(w.pools(f"big-{i}"), w.condition(f"big-{i}", "Configured", "message")) for i in range(4)])
    first = next(i for i in range(4) if w.pools(f"big-{i}"))
    w.full(f"big-{first}")
    w.server.merge(f"{API}/cstorvolumes/big-{first}", {"spec": {"capacity": "12Gi"}})
    tap.ok(wait_for(lambda: w.pools(f"big-{first}") and w.condition(f"big-{first}", "Resizing", "reason") ==
                    "OUT_OF_RANGE", PATIENCE), "nor can they grow beyond it", w.volume(f"big-{first}"))
    tap.ok(not w.volume(f"big-{first}")["spec"].get("resizeOrder"), "and nobody was told to")
    w.remove(f"big-{first}")
    tap.ok(w.gone(f"big-{first}") and wait_for(lambda: sorted(len(w.pools(f"big-{i}")) for i in range(4)) ==
                                               [0, 0, 2, 2], PATIENCE),
           "one goes, and another has its room", [w.pools(f"big-{i}") for i in range(4)])
    for i in range(4):
        w.remove(f"big-{i}")
        w.gone(f"big-{i}")


def leaving(w, *names):
    w.pretend.tick()
    return [n for n in names if w.volume(n)["spec"].get("leavingReplicas")]


def check_lost(w):
    """A pool that is lost: its replicas go elsewhere, some at a time, and only of volumes that serve."""
    names = ["one", "two", "three"]
    for name in names:
        w.make(name, factor=2, replicaPoolInfo=[{"poolName": "a"}, {"poolName": "b"}])
        tap.ok(w.full(name), f"{name} is on two pools", w.volume(name))
        w.server.merge(f"{API}/cstorvolumes/{name}", {"spec": {"replicaPoolInfo": None}})
    w.pretend.frozen.add("three")
    tap.ok(wait_for(lambda: not w.pretend.tick() or w.volume("three")["status"]["phase"] == "Offline", PATIENCE),
           "one of them does not serve")
    w.pretend.lose("a")
    most = []

    def moved():
        # A volume that gets one has it when its status was looked at last, and not yet all data.
        most.append(len([n for n in names if w.volume(n)["spec"].get("leavingReplicas") and
                         w.condition(n, "FullyReplicated") != "True"]))
        return all("a" not in [p for p in w.pools(n) if p != "a" or not leaving(w, n)] and len(w.pools(n)) >= 3
                   for n in ("one", "two"))
    tap.ok(wait_for(moved, PATIENCE), "those that serve get a replica elsewhere",
           [(n, w.pools(n), w.volume(n)["spec"].get("leavingReplicas")) for n in names])
    tap.equal(w.pools("three"), ["a", "b"], "the one that does not serve waits for its replica")
    tap.ok(wait_for(lambda: all(w.condition(n, "FullyReplicated") == "True" for n in ("one", "two")) or
                    not w.pretend.tick(), PATIENCE), "they have all data again")
    phases = {r["status"]["phase"] for r in w.pretend.list("cstorvolumereplicas")
              if r["metadata"]["labels"][POOL] == "a"}
    tap.equal(phases, {"Offline"}, "replicas of the lost pool are Offline, whatever they said last")
    tap.ok(max(most) <= 1, "no more than one volume is re-homed at a time, as it was said", most)
    going = [r for r in w.pretend.list("cstorvolumereplicas") if r["metadata"].get("deletionTimestamp")]
    tap.equal(sorted(r["metadata"]["name"] for r in going), ["one-a", "two-a"], "their old replicas wait for the pool")
    w.remove("one")
    tap.ok(wait_for(lambda: "orlop pool forget a" in (w.condition("one", "Deleting", "message") or "") or
                    not w.pretend.tick(), PATIENCE), "a volume that is deleted says for what it waits", w.volume("one"))
    w.pretend.find("a")
    tap.ok(w.gone("one"), "the pool is back: it goes", w.volume("one"))
    w.pretend.frozen.clear()
    tap.ok(w.full("two") and w.full("three"), "and the others have what they should", [w.volume("two"), w.volume("three")])
    w.pretend.lose("b")
    w.remove("three")
    tap.ok(wait_for(lambda: w.pretend.tick() and w.condition("three", "Deleting", "reason") == "PoolUnavailable",
                    PATIENCE), "a volume that is deleted waits for a lost pool", w.volume("three"))
    refused = w.server.ask("DELETE", f"{CSPIS}/b")
    tap.ok(refused[0] == 422 or refused[0] == 403, "whose instance cannot be deleted, as it has replicas", refused)
    w.server.merge(f"{CSPIS}/b", {"metadata": {"annotations": {"orlop.io/forgotten": "{}"}}})
    tap.ok(w.gone("three"), "a pool that was forgotten is not waited for", (w.volume("three"), w.pools("three")))
    w.remove("two")
    tap.ok(w.gone("two"), "all are gone", w.volume("two"))


with Scratch() as scratch, open(scratch.file("log"), "w", encoding="utf-8") as log, \
        Server(f"{programs}/orlop-apiserver", scratch.file("api"), log=log) as server:
    world = World(server, log)
    try:
        check_places(world)
        check_promises(world)
        check_lost(world)
        tap.equal(world.pretend.wrong, [], "no member lost its data set")
    finally:
        world.process.terminate()
        tap.equal(world.process.wait(60), 0, "the controller ends as it should")
    with open(scratch.file("log"), encoding="utf-8", errors="replace") as f:
        text = f.read()
    tap.ok("Sanitizer" not in text and "runtime error" not in text, "no sanitizer complained", text[-3000:])
    if tap.failed:
        print("".join(f"# {line}\n" for line in text.splitlines()[-30:]))
tap.done()
