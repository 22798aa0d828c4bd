#!/usr/bin/env python3
"""Local volumes as users have them: a whole system with LVM, the examples, claims by kubectl, many at
once while the controller is killed, and the command line.

local-volumes.py ORLOP TOP
"""
import json
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from server import Client, Server  # noqa: E402
from system import System  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402
from volumes import MEBI, Lvm, agree, manifest, settle  # noqa: E402

orlop, top = sys.argv[1:3]
tap = Tap()
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
LVS = "/apis/topolvm.io/v1/logicalvolumes"
NODES = ("node-1", "node-2", "node-3")
EXTENTS = 511  # of 4 MiB: what LVM leaves of a disk of 2 GiB


def claim(name, size):
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "local-now",
                     "volumeMode": "Block", "resources": {"requests": {"storage": size}}}}


class Local:
    """What is asked of the system."""

    def __init__(self, system):
        self.system = system
        server = Server(None, f"{system.folder}/apiserver").reach(system.status()["url"])
        self.client = Client(server)
        self.lvms = {node: Lvm(f"{system.folder}/nodes/{node}") for node in NODES}

    def get(self, path):
        return self.client.ask("GET", path).json

    def claim(self, name):
        return self.get(f"{CLAIMS}/{name}")

    def capacity(self, name):
        return self.claim(name).get("status", {}).get("capacity", {}).get("storage")

    def grow(self, name, size):
        patch = json.dumps({"spec": {"resources": {"requests": {"storage": size}}}})
        return self.system.kubectl("patch", "pvc", name, "-p", patch)

    def agree(self, what):
        tap.equal(settle(lambda: agree(self.get(LVS)["items"], self.lvms)), "", what)

    def orlop(self, *words):
        return run(orlop, *words, "--data", self.system.folder)


def check_claim(v):
    tap.ran(v.system.kubectl("apply", "-f", f"{top}/examples/topolvm/storageclass.yaml",
                             "-f", f"{top}/examples/topolvm/claim.yaml"), "the examples are applied")
    tap.ran(v.system.kubectl("wait", "pvc/scratch", "--for=jsonpath={.status.phase}=Bound",
                             "--timeout=60s"), "the claim is bound")
    v.agree("LVM has its volume")
    for size in ("200Mi", "300Mi"):
        tap.ran(v.grow("scratch", size), f"it is asked for {size}")
        tap.ok(wait_for(lambda size=size: v.capacity("scratch") == size), "and gets it", v.claim("scratch"))
    v.agree("LVM has grown it")
    v.grow("scratch", "9Gi")

    def progress():
        return v.claim("scratch")["status"].get("allocatedResourceStatuses", {}).get("storage")
    tap.ok(wait_for(lambda: progress() == "ControllerResizeInfeasible"), "more than there is is infeasible",
           v.claim("scratch"))
    v.grow("scratch", "400Mi")
    tap.ok(wait_for(lambda: v.capacity("scratch") == "400Mi" and progress() is None),
           "less than that is not", v.claim("scratch"))
    v.agree("LVM has as much")
    listed = v.orlop("lv", "list", "-o", "wide")
    tap.ran(listed, "orlop lv list finds the system", stdout="default/scratch")
    tap.ran(v.orlop("lv", "audit"), "and nothing is wrong", stdout="Nodes and objects say the same.\n")
    tap.ran(v.system.kubectl("delete", "pvc", "scratch", "--timeout=60s"), "the claim is deleted")
    tap.ok(wait_for(lambda: not v.get(LVS)["items"]), "its volume goes")
    v.agree("LVM has none")


def check_race(v):
    """Room for 21 of 73 extents; one is there, so of fifty twenty can be."""
    size = f"{73 * 4}Mi"
    v.system.kubectl("apply", "-f", "-", stdin=manifest(claim("first", size)))
    tap.ok(wait_for(lambda: v.capacity("first") == size), "a first claim")
    made = v.system.kubectl("create", "-f", "-", stdin=manifest(*(claim(f"r{n:02}", size)
                                                                  for n in range(50))))
    tap.ran(made, "fifty claims at once")
    for _ in range(2):
        pid = next(p["pid"] for p in v.system.status()["programs"] if p["name"] == "controller")
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda pid=pid: any(p["name"] == "controller" and p["pid"] not in (pid, 0)
                                     and p["state"] == "running"
                                     for p in v.system.status()["programs"]))

    def done():
        found = [c for c in v.get(CLAIMS)["items"] if c["metadata"]["name"] != "first"]
        bound = sum(c.get("status", {}).get("phase") == "Bound" for c in found)
        why = sum(any(x["reason"] == "ResourceExhausted" for x in c.get("status", {}).get("conditions", []))
                  for c in found)
        return "" if (bound, why) == (20, 30) else f"{bound} bound, {why} say why not"
    tap.equal(settle(done, 90), "", "twenty are bound, thirty say why not, the controller killed twice")
    v.agree("LVM has what the objects say")
    tap.equal(sorted(lvm.free() for lvm in v.lvms.values()), [(EXTENTS - 7 * 73) * 4 * MEBI] * 3,
              "all room is used, and none of it twice")
    tap.ran(v.system.kubectl("delete", "pvc", "--all", "--timeout=120s"), "all go")
    tap.ok(wait_for(lambda: not v.get(LVS)["items"]), "with their volumes")
    v.agree("and LVM has none of them")


with Scratch() as scratch:
    with System(orlop, scratch.file("data"), "--nodes", "3", "--vg-disks", "1x2Gi") as system:
        local = Local(system)
        check_claim(local)
        check_race(local)
        tap.equal(system.stop(), 0, "everything is stopped")
    tap.ok(scratch.path not in run("losetup", "-a").stdout, "no loop device is left")
tap.done()
