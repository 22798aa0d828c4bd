#!/usr/bin/env python3
"""Volumes as block devices without the kernel's initiator: a real file system, and everything that can die.

attach.py ATTACH TARGET
"""
import errno
import hashlib
import json
import os
import platform
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from attached import Mounted, Node, forget, size_of  # noqa: E402
from iscsi_target import Target  # noqa: E402
from namespaces import own_mounts  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402

attach_program, target_program = sys.argv[1:3]
tap = Tap()
os.environ["PATH"] += ":/usr/sbin:/sbin"
MIB = 1 << 20


def kernel_sends_again():
    """FUSE_NOTIFY_RESEND came with Linux 6.9."""
    return tuple(int(n) for n in platform.release().split("-")[0].split(".")[:2]) >= (6, 9)


class Writer(threading.Thread):
    """Writes and syncs a file of random bytes, piece by piece, until it is told to end."""

    def __init__(self, path):
        super().__init__()
        self.path, self.pieces, self.error, self.stop = path, 0, None, False
        self.sum = hashlib.sha256()
        self.start()

    def run(self):
        try:
            with open(self.path, "wb", buffering=0) as file:
                while not self.stop and self.pieces < 80:
                    data = os.urandom(MIB // 2)
                    file.write(data)
                    os.fsync(file.fileno())
                    self.sum.update(data)
                    self.pieces += 1
        except OSError as e:
            self.error = e

    def more(self, count):
        """Has written so many pieces from now on."""
        goal = self.pieces + count
        return wait_for(lambda: self.pieces >= goal or not self.is_alive(), 30)

    def end(self):
        self.stop = True
        self.join(60)
        return self.error


def sum_of(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() if hasattr(hashlib, "file_digest") \
            else hashlib.sha256(file.read()).hexdigest()


def used(path):
    return os.stat(path).st_blocks * 512


def flushes(target):
    """How many flushes the target has done for those who are logged in."""
    said = run(target.program, "target", "show", "--control", f"{target.folder}/control", "-o", "json")
    return sum(s["statistics"]["flushes"]["count"] for s in json.loads(said.stdout)["sessions"])


def read_error(device):
    """What a read of the device that goes to the target ends with."""
    fd = os.open(device, os.O_RDONLY)
    try:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        return len(os.pread(fd, 4096, 8 * MIB))
    except OSError as e:
        return errno.errorcode[e.errno]
    finally:
        os.close(fd)


def life(scratch, node, target):
    """A file system, its flushes and discards; the target and the worker killed under load; growth."""
    added = node.add("pvc-1", target)
    device = added.stdout.strip()
    tap.ran(added, "a volume is attached", stdout="/dev/loop")
    tap.equal((size_of(device), run("blockdev", "--getss", device).stdout.strip(),
               open(f"/sys/block/{device[5:]}/loop/dio", encoding="ascii").read().strip()),
              (128 * MIB, "512", "1"), "the device has the volume's size and blocks, and direct I/O")
    tap.equal(node.add("pvc-1", target).stdout.strip(), device, "attached again, it is the same device")
    tap.ran(node.add("pvc-1", target, "--lun", "3"), "attached otherwise, it is refused", 64 + 9,
            stderr="detach it first")
    tap.ran(run("mkfs.ext4", "-q", device), "ext4 is made")
    with Mounted(device, scratch.file("mnt")) as mount:
        before = flushes(target)
        with open(f"{mount}/flushed", "wb") as file:
            file.write(os.urandom(MIB))
            os.fsync(file.fileno())
        tap.ok(flushes(target) > before, "fsync flushes the target", f"{before} before, {flushes(target)} after")
        tap.ran(node.ask("remove", "--id", "pvc-1"), "what is mounted is not detached", 64 + 9, stderr="in use")

        writer = Writer(f"{mount}/target-killed")
        writer.more(2)
        target.stop(signal.SIGKILL)
        away = wait_for(lambda: not node.show("pvc-1")["connected"], 20)
        was = writer.pieces
        target.start()
        tap.ok(away and writer.more(3) and writer.pieces >= was + 3 and writer.end() is None,
               "the target is killed under load: writes wait, and go on without an error", writer.error)
        if kernel_sends_again():
            second = Writer(f"{mount}/worker-killed")
            second.more(2)
            os.kill(node.process("pvc-1")["worker"], signal.SIGKILL)
            tap.ok(second.more(3) and second.end() is None and node.process("pvc-1")["restarts"] == 1,
                   "the worker is killed under load: another takes its place, without an error", second.error)
        else:
            second = writer
            tap.skip("the worker is killed under load", "Linux 6.9 or later")
        run("sync", "-f", mount)
    forget(device)
    tap.ran(run("fsck.ext4", "-fn", device), "the file system is sound")
    with Mounted(device, scratch.file("mnt")) as mount:
        tap.equal((sum_of(f"{mount}/target-killed"), sum_of(second.path)),
                  (writer.sum.hexdigest(), second.sum.hexdigest()), "everything that was written is there")
        full = used(scratch.file("data"))
        for name in ("target-killed", "worker-killed"):
            if os.path.exists(f"{mount}/{name}"):
                os.unlink(f"{mount}/{name}")
        run("sync", "-f", mount)
        run("fstrim", mount)
        tap.ok(used(scratch.file("data")) < full - writer.pieces * MIB // 4, "a discard gives space back",
               f"{full} bytes before, {used(scratch.file('data'))} after")
        run(target.program, "target", "grow", "--control", scratch.file("control"), "--size", "192Mi")
        tap.ok(wait_for(lambda: read_error(device) and node.show("pvc-1")["size"] == 192 * MIB, 10),
               "the target says with the next I/O that the volume has grown", node.process("pvc-1"))
        grown = node.ask("grow", "--id", "pvc-1")
        tap.equal((grown.stdout.strip(), size_of(device), os.stat(f"{node.folder}/pvc-1/mount/volume").st_size),
                  (str(192 * MIB),) + (192 * MIB,) * 2, "a volume grows while it is mounted: file and device")
    return device


def killed(scratch, node, target, device):
    """The process is killed: its device is dead, and the next attach makes everything anew."""
    with Mounted(device, scratch.file("mnt")) as mount:
        with open(f"{mount}/kept", "w", encoding="utf-8") as file:
            file.write("kept")
            file.flush()
            os.fsync(file.fileno())
        os.kill(node.show("pvc-1")["pid"], signal.SIGKILL)
        gone = wait_for(lambda: not node.show("pvc-1")["alive"], 20)
        seen = node.show("pvc-1")
        tap.equal((gone, seen["whole"], seen["stale"]), (True, False, 1),
                  "killed, it is seen to be dead, and so is its device")
    anew = node.add("pvc-1", target)
    device = anew.stdout.strip()
    tap.ok(anew.returncode == 0 and wait_for(lambda: node.show("pvc-1")["stale"] == 0, 10)
           and attached_whole(node), "attached again, nothing of the dead one is left", anew.stderr)
    with Mounted(device, scratch.file("mnt")) as mount:
        with open(f"{mount}/kept", encoding="utf-8") as file:
            tap.equal(file.read(), "kept", "what was synced is there")
    start = time.monotonic()
    tap.ran(node.ask("remove", "--id", "pvc-1"), "detached")
    tap.ok(time.monotonic() - start < 5, "without waiting for anything", time.monotonic() - start)
    tap.equal(wait_for(lambda: not node.left(), 5), True, "no process, mount, device or folder is left")
    tap.ran(node.ask("remove", "--id", "pvc-1"), "detached again, that is no mistake")
    tap.ran(node.ask("show", "--id", "pvc-1"), "and there is nothing to show", 64 + 5, stderr="not attached")


def attached_whole(node):
    return [v["whole"] for v in node.list()] == [True]


def gone(node, target):
    """The target is away for good: with a limit I/O fails, and without one detaching fails it."""
    device = node.add("limited", target, "--fail-after", "1s").stdout.strip()
    target.stop(signal.SIGKILL)
    start = time.monotonic()
    tap.equal(read_error(device), "EIO", "--fail-after: I/O fails when the target stays away")
    tap.ok(0.9 < time.monotonic() - start < 10, "after that time", time.monotonic() - start)
    tap.ran(node.ask("grow", "--id", "limited"), "growth says that the target is away", 64 + 9)
    target.start()
    wait_for(lambda: node.show("limited")["connected"], 20)
    tap.equal(read_error(device), 4096, "and it is read again when the target is back")
    tap.ran(node.ask("remove", "--id", "limited"), "that one is detached")

    device = node.add("waiting", target).stdout.strip()
    target.stop(signal.SIGKILL)
    wait_for(lambda: not node.show("waiting")["connected"], 20)
    found = []
    reader = threading.Thread(target=lambda: found.append(read_error(device)))
    reader.start()
    wait_for(lambda: node.process("waiting").get("waiting"), 20)
    tap.ran(node.ask("remove", "--id", "waiting", "--flush-within", "300ms"),
            "what cannot be flushed is not detached", 64 + 4, stderr="cannot be flushed")
    start = time.monotonic()
    forced = node.ask("remove", "--id", "waiting", "--force")
    reader.join(20)
    tap.equal((forced.returncode, found, time.monotonic() - start < 8), (0, ["EIO"], True),
              "by force it is, at once, and I/O that waited fails")
    tap.equal(wait_for(lambda: not node.left(), 10), True, "nothing is left of it")


def refusals(scratch, node):
    """Who may log in, and what is told of those who may not."""
    secret, wrong = scratch.file("secret", "correct-horse-1\n"), scratch.file("wrong", "correct-horse-2\n")
    mutual = scratch.file("mutual", "battery-staple-1\n")
    os.makedirs(scratch.file("chap"), exist_ok=True)
    flags = ["--chap-user", "orlop", "--chap-secret-file", secret, "--mutual-user", "target", "--mutual-secret-file",
             mutual, "--initiators", "iqn.2026-01.io.orlop:node", "--block-size", "4096"]
    chap = ["--chap-user", "orlop", "--chap-secret-file"]
    with Target(target_program, scratch.file("chap"), "mem:", "16Mi", flags) as target:
        good = node.add("chap", target, *chap, secret, "--mutual-user", "target", "--mutual-secret-file", mutual)
        tap.ran(good, "CHAP, both ways", stdout="/dev/loop")
        tap.equal(run("blockdev", "--getss", good.stdout.strip()).stdout.strip(), "4096",
                  "a volume with blocks of 4096 is a device with the same")
        tap.ran(node.ask("remove", "--id", "chap"), "and it is detached")
        for name, status, words in [("a wrong secret", 64 + 7, [*chap, wrong]), ("no secret", 64 + 7, []),
                                    ("another initiator", 64 + 7, [*chap, secret, "--initiator", "iqn.2026-01.io.orlop:x"]),
                                    ("a target that does not prove itself", 64 + 14,
                                     [*chap, secret, "--mutual-user", "target", "--mutual-secret-file", wrong,
                                      "--login-within", "1s"])]:
            tap.ran(node.add("chap", target, *words), f"refused: {name}", status)
        tap.ran(node.add("chap", target, *chap, secret, iqn="iqn.2026-01.io.orlop:none"), "no such target", 64 + 5)
    tap.ran(node.add("chap", target, "--login-within", "500ms"), "nobody listens there", 64 + 14,
            stderr="Connection refused")
    for volume in ("../up", "a/b", ".hidden", "x" * 129):
        tap.ran(node.ask("add", "--id", volume, "--portal", "127.0.0.1", "--iqn", "iqn.x"),
                f"no id of a volume: {volume[:20]}", 2)
    tap.equal(node.left(), [], "nothing is left of what was refused")


# Another program's namespace of mounts would have copies of ours, and with them our devices.
if os.geteuid() or not own_mounts() or not os.path.exists("/dev/fuse") or not os.path.exists("/dev/loop-control"):
    tap.skip("attached volumes", "it takes root, FUSE and loop devices")
    tap.done()
with Scratch() as scratch:
    node = Node(attach_program, scratch.file("node"))
    try:
        with Target(target_program, scratch.path, f"file:{scratch.file('data')}", "128Mi",
                    ["--control", scratch.file("control")]) as target:
            killed(scratch, node, target, life(scratch, node, target))
            target.size = None
            gone(node, target)
        refusals(scratch, node)
    finally:
        node.clear()
tap.done()
