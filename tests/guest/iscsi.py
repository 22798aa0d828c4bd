#!/usr/bin/env python3
"""The Linux kernel's own iSCSI initiator: a guest logs in with CHAP, makes a file system, writes with fsync
all the time, grows it while it is mounted, and goes on while the target is killed with -9 and comes back.

iscsi.py ORLOP-TARGET KILLS
"""
import json
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import guest  # noqa: E402
from iscsi_target import IQN, Target  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402

PROGRAM, KILLS = os.path.abspath(sys.argv[1]), int(sys.argv[2])
MIB = 1 << 20
tap = Tap()
DISK = "/sys/class/iscsi_session/*/device/target*/*:0/block"
# Writes with fsync until /run/enough is there; counts, and stops at the first error.
LOAD = r"""
i=0
while [ ! -e /run/enough ]; do
    dd if=/dev/urandom of=/mnt/v/f$((i % 8)) bs=16k count=4 conv=fsync status=none || { echo failed >/run/count; exit 1; }
    sha1sum /mnt/v/f$((i % 8)) >/run/sum$((i % 8))
    i=$((i + 1)); echo $i >/run/count
done
"""


class Inside:
    def __init__(self, session):
        self.session = session

    def ok(self, what, command, want=None):
        result = self.session.sh("set -e; " + command)
        said = result.stdout.strip()
        tap.ok(result.returncode == 0 and (want is None or want in said), what,
               f"{command}\nexit status {result.returncode}: {said}")
        return said

    def count(self):
        text = self.session.sh("cat /run/count").stdout.strip()
        return int(text) if text.isdigit() else -1

    def goes_on(self, what):
        """More is written than was, without an error."""
        wait_for(lambda: self.count() >= 0, 60)  # it has begun
        before = self.count()
        tap.ok(before >= 0 and wait_for(lambda: self.count() > before + 2 or self.count() < 0, 60) and
               self.count() > before, what, f"{before}, then {self.count()}")


def log_in(inside, portal, password):
    node = f"iscsiadm -m node -T {IQN} -p {portal}"
    known = f"iscsiadm -m discoverydb -t st -p {portal}"
    secrets = (("authmethod", "CHAP"), ("username", "joe"), ("username_in", "volume"), ("password_in", "secret-of-target"))
    inside.session.sh(f"{known} -o new")
    for name, value in (*secrets, ("password", password)):
        inside.session.sh(f"{known} -o update -n discovery.sendtargets.auth.{name} -v {value}")
    inside.ok("discovery, with CHAP too", f"{known} -D", IQN)
    for name, value in (*secrets, ("password", "wrong-" + password)):
        inside.session.sh(f"{node} -o update -n node.session.auth.{name} -v {value}")
    inside.session.sh(f"{node} -o update -n 'node.session.initial_login_retry_max' -v 1")
    refused = inside.session.sh(f"{node} -l")
    tap.ok(refused.returncode != 0, "login with a wrong secret is refused", refused.stdout)
    inside.session.sh(f"{node} -o update -n node.session.auth.password -v {password}")
    inside.ok("login with CHAP, both ways", f"{node} -l")
    inside.ok("a disk appears", f"for i in $(seq 100); do ls {DISK} >/dev/null 2>&1 && break; sleep 0.1; done; "
              f"ln -s /dev/$(ls {DISK}) /dev/volume; blockdev --getsize64 /dev/volume", str(128 * MIB))


def grow(inside, control):
    grown = run(PROGRAM, "target", "grow", "--control", control, "--size", "256Mi", "-o", "json")
    tap.ok(grown.returncode == 0 and json.loads(grown.stdout)["size"] == 256 * MIB, "the volume grows", grown.stderr)
    inside.ok("the kernel sees it, without a logout",
              "for f in /sys/class/iscsi_session/*/device/target*/*:0/rescan; do echo 1 >$f; done; "
              "blockdev --getsize64 /dev/volume", str(256 * MIB))
    inside.ok("the mounted file system grows", "resize2fs /dev/volume 2>&1 | tail -1; df -m --output=size /mnt/v | tail -1")
    inside.goes_on("and is written all the time")


def kill(inside, target, number):
    target.stop(signal.SIGKILL)
    target.start()
    inside.goes_on(f"kill -9 and restart, {number}: no I/O error")


def test(inside, target, control):
    inside.ok("iscsid", "cp -r /etc/iscsi /run/iscsi; mount --bind /run/iscsi /etc/iscsi; "
              "echo InitiatorName=iqn.2026-01.test:guest >/etc/iscsi/initiatorname.iscsi; "
              "sed -i -E 's/^(node.conn\\[0\\].timeo.noop_out_(interval|timeout)).*/\\1 = 2/; "
              "s/^(node.session.timeo.replacement_timeout).*/\\1 = 90/' /etc/iscsi/iscsid.conf; "
              "mkdir -p /run/lock/iscsi; (iscsid -f -d 1 >/out/iscsid.log 2>&1 &) ; "
              "for i in $(seq 50); do iscsiadm -m session >/dev/null 2>&1 || [ $? != 21 ] || exit 0; sleep 0.1; done; exit 1")
    log_in(inside, f"{guest.HOST_IP}:{target.port}", "secret-of-initiator")
    inside.ok("mkfs and mount", "mkfs.ext4 -q /dev/volume; mkdir -p /mnt/v; mount /dev/volume /mnt/v")
    inside.session.sh(f"cat >/run/load.sh <<'END'\n{LOAD}END\n(bash /run/load.sh >/run/load.out 2>&1 &)")
    inside.goes_on("it is written, with fsync")
    grow(inside, control)
    for number in range(1, KILLS + 1):
        kill(inside, target, number)
    inside.ok("the load ends without an error", "touch /run/enough; "
              "for i in $(seq 300); do pgrep -f load.sh >/dev/null || break; sleep 0.1; done; cat /run/load.out; "
              "! grep -q failed /run/count")
    inside.ok("umount, check", "umount /mnt/v; e2fsck -fn /dev/volume 2>&1 | tail -1; dmesg | grep -c 'I/O error' || true", "0")
    inside.ok("what was synced is there", "mount /dev/volume /mnt/v; sha1sum --quiet -c /run/sum*; umount /mnt/v")
    inside.ok("logout", f"iscsiadm -m node -T {IQN} -u", "successful")


guest.own_network()
with Scratch() as scratch:
    control = scratch.file("control")
    flags = ["--portal", f"{guest.HOST_IP}:3260", "--control", control,
             "--chap-user", "joe", "--chap-secret-file", scratch.file("secret", "secret-of-initiator\n"),
             "--mutual-user", "volume", "--mutual-secret-file", scratch.file("mutual", "secret-of-target\n")]
    g = guest.Guest(scratch.path, modules=["sd_mod", "iscsi_tcp", "ext4"], network=True)
    with Target(PROGRAM, scratch.path, f"file:{scratch.file('volume')}", "128Mi", flags) as t:
        t.size = ""  # it comes back as large as it has become
        with g.session(timeout=500) as session:
            test(Inside(session), t, control)
        tap.equal(t.stop(), 0, "the target ends well")
tap.done()
