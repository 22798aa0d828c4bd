#!/usr/bin/env python3
"""kill -9 of the controller at every step of a cStor volume's life, over pools and targets that only pretend.

cstor-crash.py PROGRAMS [N]      N: only each Nth step

A volume is made, gets one replica more, is moved to other pools, gets one less, grows, and goes. In each of these the
controller dies at its Nth step (base/crash.h), one after the other, until it gets through, and is started again: the
volume comes to what was asked for, nothing is made twice, no member loses its data set, and nothing is left. Then
nobody dies, and the API fails instead.
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from cstor import volume  # noqa: E402
from failing_api import FAULTS, FailingApi  # noqa: E402
from namespaces import own_network  # noqa: E402
from pretend_cstor import API, Pretend  # noqa: E402
from server import Server  # noqa: E402
from tap import Scratch, Tap, wait_for  # noqa: E402

programs = sys.argv[1]
stride = int(sys.argv[2]) if len(sys.argv) > 2 else 1
tap = Tap()
PATIENCE = 120
POOLS = ("a", "b", "c", "d", "e")
POD = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "target", "image": "orlop-target"}]}}


class World:
    """An API server, the controller, and those who pretend."""

    def __init__(self, server, scratch):
        self.server, self.scratch, self.kubeconfig = server, scratch, server.kubeconfig
        self.pretend, self.process, self.log = Pretend(server, *POOLS), None, scratch.file("controller.log")

    def start(self, crash_at=None):
        env = {**os.environ, **({"ORLOP_CRASH_AT": str(crash_at)} if crash_at else {})}
        with open(self.log, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [f"{programs}/orlop-controller", "--kubeconfig", self.kubeconfig, "--health-port", "off",
                 "--leader-elect=false", "--controllers", "cstor-volume-controller"], stderr=log, env=env)

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        if self.alive():
            self.process.kill()
        if self.process:
            self.process.wait()

    def get(self, path):
        status, value = self.server.get(path)
        return value if status == 200 else {}

    def volume(self, name):
        return self.get(f"{API}/cstorvolumes/{name}")

    def replicas(self, name):
        return [r for r in self.pretend.list("cstorvolumereplicas")
                if r["metadata"]["labels"]["cstorvolume.openebs.io/name"] == name]

    def pod(self, name):
        """The target's, which is ready."""
        self.server.create("/api/v1/namespaces/openebs/pods", {**POD, "metadata": {
            "name": f"{name}-target", "namespace": "openebs", "labels": {
                "openebs.io/cas-type": "cstor", "openebs.io/persistent-volume": name,
                "openebs.io/component": "cstor-target"}}})
        self.server.ask("PATCH", f"/api/v1/namespaces/openebs/pods/{name}-target/status",
                        {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}},
                        content_type="application/merge-patch+json")

    def left(self, name):
        """Objects with a controller of its own would be collected by the cluster: replicas are ours to delete."""
        return [r["metadata"]["name"] for r in self.replicas(name)]


def settled(world, name, factor, size, pools=None):
    """The volume is as it is wanted, in all its parts."""
    replicas, v = world.pretend.tick(), world.volume(name)
    mine = sorted(r["metadata"]["labels"]["cstorpoolinstance.openebs.io/name"] for r in replicas
                  if r["metadata"]["labels"]["cstorvolume.openebs.io/name"] == name)
    if len(mine) > 2 * factor + 1:
        world.pretend.wrong.append(f"{name} has {mine}")
    spec = v.get("spec", {})
    binding = world.get(f"/apis/rbac.authorization.k8s.io/v1/namespaces/openebs/rolebindings/{name}-replicas")
    return (len(mine) == factor and (pools is None or mine == sorted(pools)) and not spec.get("leavingReplicas") and
            not spec.get("resizeOrder") and v.get("status", {}).get("capacity") == size and
            len(spec.get("replicaDetails", {}).get("knownReplicas", {})) == factor and
            spec.get("replicationFactor") == factor and
            {s["name"] for s in binding.get("subjects", [])} == {f"orlop-pool-{p}" for p in mine} and
            {r["spec"]["capacity"] for r in world.replicas(name)} == {size})


def where(world):
    with open(world.log, encoding="utf-8", errors="replace") as f:
        text = f.read()
    return text.rsplit("crash point ", 1)[-1].splitlines()[0] if "crash point" in text else "no crash"


def attempt(world, what, at, change, done):
    """The change is made while the controller is away; it dies at that step, and another goes on. True: it died."""
    world.kill()
    change()
    world.start(at)
    wait_for(lambda: not world.alive() or done(), PATIENCE)
    died = not world.alive()
    if died:
        world.start()
    tap.ok(wait_for(done, PATIENCE), f"{what}: done, though the controller died at {at} "
           f"({where(world) if died else 'not at all'})", (world.volume("v"), world.left("v"), world.pretend.wrong))
    return died


def edit(world, spec):
    world.server.merge(f"{API}/cstorvolumes/v", {"spec": spec})


def make(world):
    world.server.create(f"{API}/cstorvolumes", volume("v", "64Mi", 2))
    world.pod("v")


def remove(world):
    world.server.ask("DELETE", f"{API}/cstorvolumes/v")
    world.server.ask("DELETE", "/api/v1/namespaces/openebs/pods/v-target?gracePeriodSeconds=0")
    world.pretend.members.pop("v", None)


def gone(world):
    world.pretend.tick()
    return not world.volume("v") and not world.left("v")


def life(world, at):
    """All of it, dying at that step of each; True: it died somewhere."""
    died = attempt(world, "made", at, lambda: make(world), lambda: settled(world, "v", 2, "64Mi"))
    died |= attempt(world, "one more", at, lambda: edit(world, {"desiredReplicationFactor": 3}),
                    lambda: settled(world, "v", 3, "64Mi"))
    has = [r["metadata"]["labels"]["cstorpoolinstance.openebs.io/name"] for r in world.replicas("v")]
    others = [*sorted(set(POOLS) - set(has))[:2], has[0]]
    died |= attempt(world, "moved", at,
                    lambda: edit(world, {"replicaPoolInfo": [{"poolName": p} for p in others]}),
                    lambda: settled(world, "v", 3, "64Mi", others))
    died |= attempt(world, "one less", at,
                    lambda: edit(world, {"replicaPoolInfo": None, "desiredReplicationFactor": 2}),
                    lambda: settled(world, "v", 2, "64Mi"))
    died |= attempt(world, "grown", at, lambda: edit(world, {"capacity": "96Mi"}),
                    lambda: settled(world, "v", 2, "96Mi"))
    died |= attempt(world, "gone", at, lambda: remove(world), lambda: gone(world))
    return died


def failing(world):
    """Nobody dies, but of the controller's writes each third is spoiled."""
    api = FailingApi(world.server, world.scratch.path)
    world.kubeconfig = api.kubeconfig
    try:
        api.every = 3
        life(world, None)
        print(f"# {api.writes} writes, spoiled: {api.done}")
        tap.ok(set(api.done) <= set(FAULTS) and sum(api.done.values()) > 10, "many writes were spoiled", api.done)
    finally:
        world.kill()
        world.kubeconfig = world.server.kubeconfig
        api.close()


if not own_network():
    tap.skip("crashes of cStor volumes", "no network namespaces here")
    tap.done()
with Scratch() as scratch, open(scratch.file("api.log"), "w", encoding="utf-8") as log, \
        Server(f"{programs}/orlop-apiserver", scratch.file("api"), log=log) as server:
    world = World(server, scratch)
    try:
        step = 1
        while life(world, step):
            step += stride
        print(f"# passed {step - 1} steps")
        tap.ok(step - 1 >= 30 - stride, "making, the longest, has at least 30 steps", step - 1)
        failing(world)
        tap.equal(world.pretend.wrong, [], "no member lost its data set, and nothing was made twice")
        with open(world.log, encoding="utf-8", errors="replace") as f:
            lines = f.readlines()
        tap.equal([line for line in lines if "Sanitizer" in line or "runtime error" in line], [],
                  "no sanitizer complained")
        if tap.failed:
            print("".join(f"# {line}" for line in lines[-30:]))
    finally:
        world.kill()
tap.done()
