#!/usr/bin/env python3
"""Logical volumes with device-mapper: the agent runs in a guest, the API server on the machine.

lvm.py APISERVER NODE

Thick volumes with a file system that grows while it is mounted, thin ones with snapshots and clones, and
a restart of the guest, after which all are there again.
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import guest  # noqa: E402
from server import Server  # noqa: E402
from tap import Scratch, Tap, wait_for  # noqa: E402
from volumes import MEBI, Agent  # noqa: E402

apiserver, program = (os.path.abspath(word) for word in sys.argv[1:3])
tap = Tap()
MODULES = ["dm-mod", "dm-thin-pool", "ext4"]
CLASSES = """
device-classes:
- {name: thick, volume-group: orlop, default: true, spare-gb: 0}
- {name: thin, volume-group: orlop, type: thin, thin-pool: {name: pool0, overprovision-ratio: 5}}
"""
LVM_CONF = """
devices { use_devicesfile=0 obtain_device_list_from_udev=0 external_device_info_source="none" hints="none" }
global { use_aio=0 use_lvmpolld=0 notify_dbus=0 event_activation=0 }
activation { reserved_memory=0 reserved_stack=0 udev_sync=0 udev_rules=0 monitoring=0 }
"""
ENV = "export LVM_SYSTEM_DIR=/run/node/lvm/etc LVM_SUPPRESS_FD_WARNINGS=1; "
# thick volumes take 400 - 208 (the pool, its metadata and its spare) MiB
SETUP = ("mkdir -p /run/lvm-etc && cp /out/lvm.conf /run/lvm-etc && export LVM_SYSTEM_DIR=/run/lvm-etc && "
         "vgcreate -qq -y orlop /dev/ubda && "
         "lvcreate -qq -y --type thin-pool -L 200M --poolmetadatasize 4M -n pool0 orlop")


class Inside:
    """The agent's end, in the guest; Agent is the API's."""

    def __init__(self, session, agent):
        self.session, self.agent = session, agent

    def ok(self, what, command, want=None):
        result = self.session.sh(ENV + "set -e; " + command)
        said = result.stdout.strip()
        tap.ok(result.returncode == 0 and (want is None or said == want), what,
               f"{command}\nexit status {result.returncode}: {said}")
        return said

    def start(self, *flags):
        self.ok("the agent is started", f"mkdir -p /run/node; {program} --kubeconfig /out/kubeconfig --name guest "
                "--data-dir /run/node --device-classes /out/classes.yaml --health-port off --discover=false "
                f"{' '.join(flags)} >>/out/node.log 2>&1 & echo $! >/run/node.pid")

    def until(self, what, name, **wanted):
        passed = wait_for(lambda: wanted.items() <= self.agent.status(name).items(), 30)
        tap.ok(passed, what, self.agent.status(name))
        return self.agent.status(name).get("volumeID", "")

    def gone(self, what, *names):
        tap.ok(wait_for(lambda: not set(names) & {o["metadata"]["name"] for o in self.agent.all()}, 90), what,
               self.agent.all())


def check_thick(inside):
    agent = inside.agent
    agent.create("files", "32Mi")
    device = "/dev/orlop/" + inside.until("a thick volume is made", "files", currentSize="32Mi")
    inside.ok("it is a block device of that size", f"blockdev --getsize64 {device}", str(32 * MEBI))
    inside.ok("with a file system", f"mkfs.ext4 -q {device}; mkdir -p /mnt/a; mount {device} /mnt/a; "
              "head -c 8M /dev/urandom >/mnt/a/f; sha256sum </mnt/a/f >/run/sum; sync")
    agent.grow("files", "64Mi")
    inside.until("it grows while it is mounted", "files", currentSize="64Mi")
    inside.ok("the file system too", f"resize2fs {device} 2>&1 && sha256sum </mnt/a/f | cmp - /run/sum && "
              "head -c 40M /dev/zero >/mnt/a/g")
    agent.grow("files", "10Gi")
    inside.until("beyond what there is it says why not", "files", code=11, currentSize="64Mi")
    agent.delete("files")
    inside.until("while it is mounted it cannot go", "files", code=14)
    inside.ok("what is on it is untouched", "sha256sum </mnt/a/f | cmp - /run/sum; umount /mnt/a")
    inside.gone("then it can", "files")
    inside.ok("LVM has no such volume", f"test ! -e {device}; lvs --noheadings -o lv_name orlop", "pool0")
    agent.create("next", "64Mi")
    device = "/dev/orlop/" + inside.until("another in the same place", "next", currentSize="64Mi")
    inside.ok("is empty", f"blkid -p {device} || test $? = 2")


def check_thin(inside):
    agent = inside.agent
    agent.create("base", "300Mi", deviceClass="thin", group="topolvm.io")
    base = "/dev/orlop/" + inside.until("a thin volume is made", "base", currentSize="300Mi")
    inside.ok("larger than its pool's share", f"echo old | dd of={base} conv=fsync status=none; blockdev --getsize64 {base}",
              str(300 * MEBI))
    agent.create("snapshot", "300Mi", vgName="thin", source="base", accessType="ro")
    snapshot = "/dev/orlop/" + inside.until("a snapshot of it", "snapshot", currentSize="300Mi")
    agent.create("clone", "320Mi", vgName="thin", source="base", accessType="rw")
    clone = "/dev/orlop/" + inside.until("a clone that is larger", "clone", currentSize="320Mi")
    inside.ok("each has its own bytes from then on",
              f"echo new | dd of={base} conv=fsync status=none; echo own | dd of={clone} conv=fsync status=none; "
              f"head -c 3 {base}; head -c 3 {snapshot}; head -c 3 {clone}", "newoldown")
    inside.ok("a snapshot cannot be written to", f"! dd if=/dev/zero of={snapshot} bs=4k count=1 oflag=direct 2>/dev/null")
    agent.create("too-much", "200Mi", vgName="thin")
    inside.until("more than the pool may promise is refused", "too-much", code=8)
    agent.create("of-thick", "64Mi", source="next", accessType="rw")
    inside.until("a thick volume is no source", "of-thick", code=9)
    agent.delete("snapshot", "too-much", "of-thick")
    inside.gone("they go", "snapshot", "too-much", "of-thick")
    wanted = ("thin", (1000 - 620) * MEBI)

    def said():
        classes = {c["name"]: c for c in json.loads(agent.annotation("topolvm.io/device-classes"))}
        return classes["thin"]["type"], classes["thin"]["freeBytes"]
    wait_for(lambda: said() == wanted)
    tap.equal(said(), wanted, "the Node says what the pool can still promise")


guest.own_network()
with Scratch() as scratch, open(scratch.file("api.log"), "w", encoding="utf-8") as log, Server(
        apiserver, scratch.file("api"), "--address", "0.0.0.0", "--tls-san", guest.HOST_IP, log=log) as server:
    with open(server.kubeconfig, encoding="utf-8") as file:
        scratch.file("kubeconfig", file.read().replace("//127.0.0.1:", f"//{guest.HOST_IP}:"))
    scratch.file("classes.yaml", CLASSES)
    scratch.file("lvm.conf", LVM_CONF)
    with open(scratch.file("disk"), "wb") as disk:
        disk.truncate(400 * MEBI)
    agent = Agent(program, server, scratch.file("node"), "guest")
    g = guest.Guest(scratch.path, disks=[scratch.file("disk")], modules=MODULES, network=True)
    with g.session() as session:
        inside = Inside(session, agent)
        inside.ok("a volume group with a thin pool", SETUP)
        inside.start()
        tap.ok(wait_for(lambda: agent.annotation("topolvm.io/device-classes")), "both classes are offered",
               session.sh("cat /out/node.log").stdout)
        check_thick(inside)
        check_thin(inside)
        inside.ok("the agent is killed", "kill -9 $(cat /run/node.pid); sync")
    with g.session() as session:
        inside = Inside(session, agent)
        ids = {name: agent.status(name)["volumeID"] for name in ("next", "base", "clone")}
        inside.ok("after a restart no volume has a device", "ls /dev/orlop 2>/dev/null | wc -l", "0")
        inside.start("--audit", "1s")
        inside.ok("until the agent has started", f"for i in {' '.join(ids.values())}; do "
                  "until [ -e /dev/orlop/$i ]; do read -t 0.1 <> <(:) || :; done; done; "
                  f"head -c 3 /dev/orlop/{ids['base']}; head -c 3 /dev/orlop/{ids['clone']}", "newown")
        inside.ok("the pool fills up", f"dd if=/dev/zero of=/dev/orlop/{ids['base']} bs=1M seek=1 count=170 conv=fsync "
                  "status=none")
        tap.ok(wait_for(lambda: "data of the thin pool orlop/pool0 are used" in server.kubectl(
            "get", "events", "-A", "--field-selector", "reason=ThinPoolFilling").stdout, 60), "an event says so")
        agent.delete(*ids)
        inside.gone("all are removed", *ids)
        inside.ok("LVM has only the pool", "lvs --noheadings -o lv_name orlop", "pool0")
tap.done()
