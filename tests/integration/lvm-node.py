#!/usr/bin/env python3
"""The agent of a node and its device classes: spare room, stripes, orphans, metrics, and what it cannot do.

lvm-node.py APISERVER NODE LVDATA
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from server import Server  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402
from volumes import MEBI, Agent, settle, volume  # noqa: E402

apiserver, program, lvdata = sys.argv[1:4]
tap = Tap()
CLASSES = """
device-classes:
- {name: spared, volume-group: orlop, spare-gb: 1}
- {name: striped, volume-group: orlop, spare-gb: 0, stripe: 2, stripe-size: "64"}
- {name: mirrored, volume-group: orlop, spare-gb: 0, lvcreate-options: ["--type=raid1", "-m1"]}
- {name: elsewhere, volume-group: nowhere, spare-gb: 0}
lvcreate-option-classes:
- {name: together, options: ["--contiguous", "y"]}
- {name: wrong, options: ["--no-such-option"]}
"""
GROUP = 2 * (1024 - 4) * MEBI  # two disks of a gibibyte, each less an extent for LVM itself


def until(agent, what, name, **wanted):
    tap.ok(wait_for(lambda: wanted.items() <= agent.status(name).items()), what, agent.status(name))
    return agent.status(name)


def check_classes(agent):
    tap.ok(wait_for(lambda: agent.annotation("capacity.topolvm.io/striped")), "the classes are offered")
    tap.equal([agent.annotation(f"capacity.topolvm.io/{c}") for c in ("spared", "striped", "elsewhere")],
              [str(GROUP - 1024 * MEBI), str(GROUP), ""], "with spare room taken off, and only if they are there")
    tap.equal(agent.annotation("capacity.topolvm.io/00default"), "", "there is no default")
    agent.create("no-default", "8Mi")
    said = until(agent, "so who names none is refused", "no-default", code=5)
    tap.ok("name one of spared, striped" in said["message"], "and told which there are", said)
    agent.create("much", "1100Mi", vgName="spared")
    until(agent, "more than is left beside the spare room is refused", "much", code=8)
    agent.create("fits", f"{GROUP // MEBI - 1024}Mi", vgName="spared")
    until(agent, "exactly what is left is not", "fits", currentSize=f"{GROUP // MEBI - 1024}Mi")
    agent.grow("fits", "1200Mi")
    until(agent, "nor may it grow into the spare room", "fits", code=11)
    agent.delete("fits", "much")
    agent.create("odd", "8Mi", vgName="elsewhere")
    until(agent, "a group that is not there is said to be so", "odd", code=5)
    agent.create("mirror", "8Mi", vgName="mirrored")
    code = 0 if os.path.exists("/sys/class/misc/device-mapper") else 9
    if code:
        until(agent, "what this kernel cannot is said to be so", "mirror", code=code)
    agent.create("wrong", "8Mi", vgName="striped", lvcreateOptionClass="wrong")
    until(agent, "options that lvm does not take too", "wrong", code=3)
    agent.create("together", "8Mi", vgName="spared", lvcreateOptionClass="together")
    until(agent, "those of an option class are used", "together", currentSize="8Mi")
    agent.delete("no-default", "odd", "mirror", "wrong", "together")
    tap.equal(settle(agent.agree), "", "all of them go")


def check_stripes(agent):
    agent.create("striped", "64Mi", vgName="striped")
    uid = until(agent, "a striped volume", "striped", currentSize="64Mi")["volumeID"]
    tap.equal([(s["segtype"], s["stripes"]) for s in agent.lvm.report("lvs", "segtype,stripes")],
              [("striped", "2")], "has stripes")
    data = os.urandom(5 * MEBI)
    for how in ("write", "read"):
        got = subprocess.run([lvdata, f"{agent.folder}/lvm", how, f"orlop/{uid}", "100000", str(len(data))],
                             input=data if how == "write" else None, capture_output=True, check=False)
        tap.ran(got, f"{how} through both disks")
    tap.ok(got.stdout == data, "the bytes are the same")
    agent.delete("striped")
    tap.equal(settle(agent.agree), "", "it goes")


def retry(agent):
    """What could not be is tried again when it is asked for, and at no other time."""
    agent.create("filler", "1500Mi", vgName="striped")
    until(agent, "a large volume", "filler", currentSize="1504Mi")
    agent.create("small", "100Mi", vgName="striped")
    until(agent, "and a small one", "small", currentSize="104Mi")
    agent.grow("small", "1000Mi")
    until(agent, "that cannot grow beside it", "small", code=11)
    agent.delete("filler")
    tap.ok(wait_for(lambda: len(agent.all()) == 1), "then the large one goes")
    key = 'orlop_logicalvolume_resize_failures_total{node="n1",name="small"}'
    tap.equal(agent.metrics().get(key), 1, "one failure is counted")
    tap.equal(agent.status("small").get("code"), 11, "the small one is as it was")
    agent.patch("small", metadata={"annotations": {"topolvm.io/resize-requested-at": "now"}})
    until(agent, "until it is asked for again", "small", currentSize="1000Mi")
    tap.ok("code" not in agent.status("small"), "then all is well")
    metrics = agent.metrics()
    labels = '{node="n1",device_class="spared"}'
    tap.equal((metrics[f"topolvm_volumegroup_size_bytes{labels}"],
               metrics[f"topolvm_volumegroup_available_bytes{labels}"]),
              (GROUP, GROUP - 1000 * MEBI), "the metrics have TopoLVM's names")
    agent.delete("small")


def tags(agent):
    return {lv["lv_name"]: lv["lv_tags"] for lv in agent.lvm.report("lvs", "lv_name,lv_tags")}


def say_volume(agent, name, volume_id):
    said = agent.client.ask("PATCH", agent.path(name) + "/status",
                            {"status": {"volumeID": volume_id, "currentSize": "8Mi", "code": None}},
                            content_type="application/merge-patch+json")
    tap.equal(said.status, 200, f"the status of {name} says that it has a volume")


def restore(agent, volume_id):
    """While the agent is away: the object of that volume goes and comes again with another uid and without
    finalizers, as from a backup."""
    agent.patch("keep", metadata={"finalizers": None})
    agent.delete("keep")
    agent.create("keep", "8Mi", vgName="spared")
    say_volume(agent, "keep", volume_id)


def taken_over(agent):
    """An object comes whose volume TopoLVM had made, which knows no tags of ours."""
    uid = agent.create("moved", "8Mi", vgName="nobody")["metadata"]["uid"]
    until(agent, "an object without a volume", "moved", code=5)
    tap.ran(agent.lvm.run("lvcreate", "-an", "-Zn", "-Wn", "-L", "8M", "-n", uid, "orlop"), "a volume without a tag")
    say_volume(agent, "moved", uid)
    tap.ok(wait_for(lambda: tags(agent).get(uid) == "orlop.io/owner=topolvm.cybozu.com/moved"),
           "gets one when its object comes", tags(agent))
    return uid


def hide(agent):
    """A volume that is not there is lost, until it is back."""
    uid = agent.create("away", "8Mi", vgName="spared")["metadata"]["uid"]
    until(agent, "a volume", "away", currentSize="8Mi")
    tap.ran(run(lvdata, f"{agent.folder}/lvm", "rename", "orlop", uid, "hidden"), "is taken away")
    said = until(agent, "its status says that it is lost", "away", code=5)
    tap.ok("bring it back" in said["message"], "and what to do", said)
    return uid


def show(agent, uid):
    tap.ran(run(lvdata, f"{agent.folder}/lvm", "rename", "orlop", "hidden", uid), "it comes back")
    tap.ok(wait_for(lambda: not agent.status("away").get("code")), "and is as before", agent.status("away"))


def check_new_classes(agent, path):
    """The file of classes is read again while the agent runs."""
    def write(text):
        with open(path + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(path + ".new", path)
    agent.create("later", "8Mi", vgName="late")
    until(agent, "a class that there is not", "later", code=5)
    write("device-classes: [{name: late}]")
    said = 'the device classes stay as they were'
    tap.ok(wait_for(lambda: said in agent.text()), "a file that is wrong is said to be", agent.text()[-500:])
    events = "/api/v1/events?fieldSelector=reason%3DBadDeviceClasses"
    tap.ok(wait_for(lambda: agent.client.ask("GET", events).json["items"]), "by an event too")
    agent.create("before", "8Mi", vgName="striped")
    until(agent, "and the classes from before are in force", "before", currentSize="8Mi")
    write(CLASSES.replace("lvcreate-option-classes", "- {name: late, volume-group: orlop, spare-gb: 0}\n"
                          "lvcreate-option-classes"))
    until(agent, "when the class comes, the volume is made", "later", currentSize="8Mi")
    tap.ok(wait_for(lambda: agent.annotation("capacity.topolvm.io/late")), "and its room is offered")
    write(CLASSES)
    tap.ok(wait_for(lambda: not agent.annotation("capacity.topolvm.io/late")), "until it goes")
    tap.equal(agent.text().count(said), 1, "what is wrong was said once")
    agent.delete("later", "before")
    tap.equal(settle(agent.agree), "", "its volumes stay, and can be deleted")


def check_orphans(agent):
    keep = agent.create("keep", "8Mi", vgName="spared")
    until(agent, "a volume with an object", "keep", currentSize="8Mi")

    def stray(name, owner):
        return agent.lvm.run("lvcreate", "-an", "-Zn", "-Wn", "-L", "8M", "-n", name,
                             *(["--addtag", f"orlop.io/owner={owner}"] if owner else []), "orlop")
    tap.ran(stray("stray", "topolvm.io/nobody"), "one whose object is gone")
    tap.ran(stray("other", "topolvm.io/keep"), "one whose object is another now")
    tap.ran(stray("foreign", None), "one of somebody else")
    tap.ok(wait_for(lambda: agent.metrics().get('orlop_logicalvolume_orphans{node="n1"}') == 2),
           "two are orphans", agent.text()[-500:])
    moved = taken_over(agent)
    away = hide(agent)
    agent.stop()
    restore(agent, keep["metadata"]["uid"])
    agent.start("--reclaim-orphans", "--orphan-grace", "1s")
    wanted = {keep["metadata"]["uid"], "foreign", "hidden", moved}
    tap.ok(wait_for(lambda: set(agent.lvm.volumes()) == wanted), "which go when that is asked for, but for one "
           "whose object has lost its volume: it may be that", agent.lvm.volumes())
    show(agent, away)
    tap.ok(wait_for(lambda: not agent.annotation("topolvm.io/orphans")), "there are no more orphans")
    agent.grow("keep", "16Mi")
    until(agent, "one of an object that was restored is not an orphan, and grows", "keep", currentSize="16Mi")
    agent.lvm.run("lvremove", "-f", "-y", "orlop/foreign")
    agent.delete("keep", "moved", "away")


def check_hostile(agent):
    """A status that names somebody else's volume gives no power over it."""
    agent.lvm.run("lvcreate", "-an", "-Zn", "-Wn", "-L", "8M", "-n", "precious", "orlop")
    agent.create("thief", "16Gi", vgName="nobody")
    until(agent, "an object without a volume", "thief", code=5)
    stolen = agent.client.ask("PATCH", agent.path("thief") + "/status", {"status": {"volumeID": "precious"}},
                              content_type="application/merge-patch+json")
    tap.equal(stolen.status, 200, "whose status says that another's is its own")
    until(agent, "is told that it is not", "thief", code=9)
    agent.create("peek", "8Mi", vgName="spared", source="thief", accessType="ro")
    said = until(agent, "nor can it be copied by way of the thief", "peek", code=9)
    tap.ok("precious is not the object's" in said["message"], "which is said", said)
    agent.delete("peek", "thief")
    for name in ("--config", "-f", "@orlop", "orlop/precious", "../x", "a b", "$(id)"):
        status, value = agent.server.ask("POST", agent.path(), volume("group", "n1", "8Mi", vgName=name))
        tap.ok(status == 422 and "vgName" in json.dumps(value), f"a group called {name} is refused", value)
    for name in ("--config=global/activation=1", "-h", "@orlop", "$(id)"):
        agent.create("option", "8Mi", vgName="spared", lvcreateOptionClass=name)
        until(agent, f"options called {name} are none of the node's", "option", code=5)
        agent.delete("option")
        tap.ok(wait_for(lambda: "option" not in [o["metadata"]["name"] for o in agent.all()]), "and it goes")
    agent.client.ask("POST", agent.path(), {**volume("named", "n1", "8Mi", vgName="spared"), "spec": {
        "name": "-n precious; @orlop", "nodeName": "n1", "size": "8Mi", "vgName": "spared"}})
    uid = until(agent, "a suggested name goes nowhere near lvm", "named", currentSize="8Mi")["volumeID"]
    tap.ok(uid in agent.lvm.volumes() and uid.count("-") == 4, "the volume has its object's uid", uid)
    agent.delete("named")
    agent.create("after", "8Mi", vgName="spared")
    until(agent, "after its deletion", "after", currentSize="8Mi")
    tap.equal(agent.lvm.volumes().get("precious"), 8 * MEBI, "the other is there, as large as before")
    agent.lvm.run("lvremove", "-f", "-y", "orlop/precious")
    agent.stop()
    agent.start()  # what is gone is nobody's
    agent.delete("after")
    tap.ok(wait_for(lambda: not agent.all()), "and the thief can go")


def check_broken(server, scratch):
    """A node without volume groups says so, of each volume that it is asked for."""
    agent = Agent(program, server, scratch.file("n2"), "n2")
    at = agent.argv.index("--vg-disks")
    del agent.argv[at:at + 2]
    with agent:
        agent.create("nowhere", "8Mi")
        said = until(agent, "a node without a volume group says so", "nowhere", code=9)
        tap.ok("offers no volume groups" in said["message"], "and what to do", said)
        agent.delete("nowhere")
        tap.ok(wait_for(lambda: not agent.all()), "what was never made can go")
    agent = Agent(program, server, scratch.file("n4"), "n4", "--audit", "1s")
    os.mkdir(agent.folder)
    with open(f"{agent.folder}/lvm", "w", encoding="utf-8"), agent:
        agent.create("patient", "8Mi")
        tap.ok(wait_for(lambda: f"{agent.folder}/lvm" in agent.status("patient").get("message", "")),
               "a node whose LVM cannot be used says so", agent.status("patient"))
        os.remove(f"{agent.folder}/lvm")
        until(agent, "and makes the volume as soon as it can be", "patient", currentSize="8Mi")
        agent.delete("patient")
        tap.ok(wait_for(lambda: not agent.all()), "which can go")
    bad = run(program, "--kubeconfig", server.kubeconfig, "--data-dir", scratch.file("n3"), "--device-classes",
              scratch.file("bad.yaml", "device-classes: [{name: a}]"))
    tap.ran(bad, "a file of classes that is wrong", 1, stderr="a: volume-group must be")


with Scratch() as scratch, open(scratch.file("api.log"), "w", encoding="utf-8") as log, \
        Server(apiserver, scratch.file("api"), log=log) as server:
    classes = scratch.file("classes.yaml", CLASSES)
    agent = Agent(program, server, scratch.file("n1"), "n1", "--audit", "1s", "--device-classes", classes,
                  disks="2x1Gi")
    with agent:
        check_classes(agent)
        check_stripes(agent)
        retry(agent)
        check_new_classes(agent, classes)
        check_orphans(agent)
        check_hostile(agent)
        tap.equal(settle(agent.agree), "", "nothing is left")
        agent.stop()
        # Larger disks, and one more.
        at = agent.argv.index("--vg-disks")
        agent.argv[at + 1] = "3x2Gi"
        agent.start()
        tap.ok(wait_for(lambda: agent.annotation("capacity.topolvm.io/striped") == str(3 * 2044 * MEBI)),
               "the group grows with its disks", agent.annotation("topolvm.io/device-classes"))
    check_broken(server, scratch)
    tap.ok("Sanitizer" not in agent.text(), "no sanitizer complained", agent.text()[-3000:])
tap.done()
