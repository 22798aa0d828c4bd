#!/usr/bin/env python3
"""LogicalVolumes on real LVM, by kubectl alone: three nodes whose volume groups have the same name.

logical-volumes.py ORLOP LVDATA
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from server import Client, Server  # noqa: E402
from system import System  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402
from volumes import GROUPS, MEBI, Lvm, agree, manifest, settle, volume  # noqa: E402

orlop, lvdata = sys.argv[1:3]
tap = Tap()
LV = "logicalvolumes.topolvm.cybozu.com"
PATH = "/apis/topolvm.cybozu.com/v1/logicalvolumes"


class Volumes:
    """What kubectl does, and what the API says."""

    def __init__(self, system):
        self.system = system
        server = Server(None, f"{system.folder}/apiserver").reach(system.status()["url"])
        self.client = Client(server)
        self.lvms = {f"node-{i}": Lvm(f"{system.folder}/nodes/node-{i}") for i in (1, 2, 3)}

    def get(self, path):
        return self.client.ask("GET", path).json

    def all(self):
        return self.get(PATH)["items"]

    def status(self, name):
        status = self.get(f"{PATH}/{name}").get("status", {})
        return status if isinstance(status, dict) else {}  # what is not there is a Status

    def apply(self, *objects):
        return self.system.kubectl("apply", "-f", "-", stdin=manifest(*objects))

    def grow(self, name, size, kind=LV):
        return self.system.kubectl("patch", kind, name, "--type=merge", "-p",
                                   json.dumps({"spec": {"size": size}}))

    def until(self, what, name, **wanted):
        wait_for(lambda: wanted.items() <= self.status(name).items())
        tap.ok(wanted.items() <= self.status(name).items(), what, self.status(name))

    def agree(self, what):
        tap.equal(settle(lambda: agree(self.all(), self.lvms)), "", what)

    def data(self, node, how, lv, offset, size, data=None):
        return subprocess.run([lvdata, f"{self.system.folder}/nodes/{node}/lvm", how, f"orlop/{lv}",
                               str(offset), str(size)], input=data, capture_output=True, check=False)

    def events(self, name):
        return [e["reason"] for e in self.get("/api/v1/events")["items"] if e["involvedObject"]["name"] == name]

    def annotation(self, node, key):
        return self.get(f"/api/v1/nodes/{node}")["metadata"].get("annotations", {}).get(key, "")


def check_life(v):
    free = v.lvms["node-1"].free()
    tap.ok(wait_for(lambda: v.annotation("node-1", "capacity.topolvm.io/00default") == str(free)),
           "the Node says how much room there is", v.annotation("node-1", "topolvm.io/device-classes"))
    classes = json.loads(v.annotation("node-1", "topolvm.io/device-classes"))
    tap.equal([(c["name"], c["vg"], c["type"], c["default"], c["freeBytes"]) for c in classes],
              [("orlop", "orlop", "thick", True, free)], "and of what")
    tap.ran(v.apply(volume("data", "node-1", "100Mi", vgName="orlop")), "a LogicalVolume")
    v.until("gets its volume", "data", currentSize="100Mi")
    v.agree("LVM has it")
    uid = v.status("data")["volumeID"]
    tap.ok(wait_for(lambda: v.annotation("node-1", "capacity.topolvm.cybozu.com/orlop")
                    == str(free - 100 * MEBI)), "there is less room")
    head, tail = os.urandom(3 * MEBI), os.urandom(MEBI)
    tap.ran(v.data("node-1", "write", uid, 0, len(head), head), "bytes at its beginning")
    tap.ran(v.data("node-1", "write", uid, 99 * MEBI, len(tail), tail), "and at its end")

    # Another behind it, so that what grows is in two pieces.
    tap.ran(v.apply(volume("behind", "node-1", "10M", group=GROUPS[1], deviceClass="orlop")),
            "one of the other group")
    v.until("gets what LVM gives, whole extents", "behind", currentSize="12Mi")
    for size, current in (("150Mi", "152Mi"), ("300Mi", "300Mi")):
        tap.ran(v.grow("data", size), f"grown to {size}")
        v.until(f"has {current}", "data", currentSize=current)
        v.agree("LVM has it")

    def intact():
        return (v.data("node-1", "read", uid, 0, len(head)).stdout == head and
                v.data("node-1", "read", uid, 99 * MEBI, len(tail)).stdout == tail)
    tap.ok(intact(), "the bytes are there after the growth")

    tap.ran(v.grow("data", "100Gi"), "grown beyond what there is")
    v.until("says why not", "data", code=11, currentSize="300Mi", volumeID=uid)
    message = v.status("data")["message"]
    tap.ok(str(100 << 30) in message and str(v.lvms["node-1"].free()) in message,
           "with what is wanted and what is free", message)
    v.agree("and stays as it was")
    tap.ok(wait_for(lambda: "NoSpace" in v.events("data")), "an Event says so", v.events("data"))
    tap.ran(v.grow("data", "200Mi"), "it cannot shrink", 1, stderr="spec.size")
    return intact


def check_refusals(v):
    tap.ran(v.apply(volume("lost-class", "node-2", "10Mi", vgName="nobody"),
                    volume("no-options", "node-2", "10Mi", lvcreateOptionClass="nobody")), "what no node has")
    v.until("is not made: no such class", "lost-class", code=5)
    v.until("is not made: no such options", "no-options", code=5)
    tap.ok("nobody, but orlop" in v.status("lost-class")["message"], "which there are is said",
           v.status("lost-class"))
    tap.ran(v.system.kubectl("delete", LV, "lost-class", "no-options", "--timeout", "60s"), "and can go")


def check_lost(v):
    lvm = v.lvms["node-2"]
    tap.ran(v.apply(volume("gone", "node-2", "20Mi"), volume("stays", "node-2", "20Mi")), "two volumes")
    v.until("are there", "gone", currentSize="20Mi")
    v.until("both", "stays", currentSize="20Mi")
    lost = v.status("gone")["volumeID"]
    tap.ran(lvm.run("lvremove", "-f", "-y", f"orlop/{lost}"), "one is removed behind our back")
    tap.ran(lvm.run("lvcreate", "-an", "-Zn", "-Wn", "-L", "8M", "-n", "stray", "--addtag",
                    "orlop.io/owner=topolvm.io/somebody", "orlop"), "and one made in our name")
    tap.ran(lvm.run("lvcreate", "-an", "-Zn", "-Wn", "-L", "8M", "-n", "foreign", "orlop"),
            "and one of somebody else")
    tap.ran(v.grow("stays", "24Mi"), "with the next change")
    v.until("that is found: the volume is lost", "gone", code=5, volumeID=lost)
    tap.ok(wait_for(lambda: "LogicalVolumeLost" in v.events("gone")), "an Event says so", v.events("gone"))
    tap.ok(wait_for(lambda: v.annotation("node-2", "topolvm.io/orphans")), "and of the other that it is an orphan")
    tap.equal(json.loads(v.annotation("node-2", "topolvm.io/orphans")),
              [{"vg": "orlop", "lv": "stray", "sizeBytes": 8 * MEBI, "owner": "topolvm.io/somebody"}],
              "which and whose")
    tap.ok(wait_for(lambda: "OrphanedLogicalVolume" in v.events("node-2")), "an Event on the Node says so")
    tap.ok(lost not in lvm.volumes(), "the lost one is not made again")
    tap.ran(lvm.run("lvremove", "-f", "-y", "orlop/stray", "orlop/foreign"), "both go")
    tap.ran(v.system.kubectl("delete", LV, "gone", "stays", "--timeout", "60s"), "and the objects too")
    tap.ok(wait_for(lambda: not v.annotation("node-2", "topolvm.io/orphans")), "no orphans any more")


def check_race(v):
    """Room for 20 of 50."""
    lvm = v.lvms["node-3"]
    tap.ran(v.apply(*(volume(f"race-{i}", "node-3", "100Mi", group=GROUPS[i % 2]) for i in range(50))),
            "fifty where twenty fit")

    def done():
        mine = [o for o in v.all() if o["metadata"]["name"].startswith("race-")]
        made = [o for o in mine if o.get("status", {}).get("volumeID")]
        refused = [o for o in mine if o.get("status", {}).get("code") == 8 and
                   not o["status"].get("volumeID")]
        return "" if (len(made), len(refused)) == (20, 30) else f"{len(made)} made, {len(refused)} refused"
    tap.equal(settle(done), "", "exactly twenty are made, and thirty say why not")
    tap.equal(lvm.free(), 511 * 4 * MEBI - 20 * 100 * MEBI, "nothing is given twice")
    v.agree("LVM has the twenty")
    tap.ran(v.system.kubectl("delete", LV, *(f"race-{i}" for i in range(50)), "--wait=false"), "all are deleted")
    tap.ok(wait_for(lambda: len(v.all()) == 2), "and go")  # --wait would ask for each, five in a second
    v.agree("and LVM has none of them")


with Scratch() as scratch:
    folder = scratch.file("data")
    with System(orlop, folder, "--nodes", "3", "--vg-disks", "1x2Gi") as system:
        v = Volumes(system)
        intact = check_life(v)
        check_refusals(v)
        check_lost(v)
        check_race(v)
        before = {o["metadata"]["name"]: o["status"] for o in v.all()}
        tap.equal(system.stop(), 0, "everything is stopped")
    loops = run("losetup", "-a").stdout
    tap.ok(folder not in loops, "no loop device is left", loops)
    with System(orlop, folder, "--nodes", "3", "--vg-disks", "1x2Gi") as system:
        v = Volumes(system)
        tap.ok(wait_for(lambda: v.lvms["node-1"].volumes()), "and started again")
        v.agree("LVM and the objects agree")
        tap.equal({o["metadata"]["name"]: o["status"] for o in v.all()}, before, "nothing is different")
        tap.ok(intact(), "the bytes are there after the restart")
        tap.ran(system.kubectl("delete", LV, *before, "--timeout", "60s"), "all are deleted")
        v.agree("nothing is left in LVM")
        tap.equal({n: lvm.free() for n, lvm in v.lvms.items()},
                  {n: 511 * 4 * MEBI for n in v.lvms}, "and all room is free")
    loops = run("losetup", "-a").stdout
    tap.ok(folder not in loops, "no loop device is left", loops)
tap.done()
