#!/usr/bin/env python3
"""The disk of a replica is full, fails, or is there twice: the volume goes on, the replica says what is wrong, and
comes back when it is mended.

replica-disks.py PROGRAMS
"""
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from namespaces import own_mounts, own_network  # noqa: E402
from replicated import REPLICA_PORT, Process, Volume  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402

programs = sys.argv[1]
tap = Tap()


def ask(volume, *words):
    return run(f"{programs}/orlop-target", "target", words[0], "--control", volume.control, *words[1:])


def room(folder, size):
    tap.ran(run("mount", "-o", f"remount,size={size}", folder), f"a disk of {size}")


def write(volume, *words):
    done = volume.bench("-r", "0", "-q", "8", "--flush-every", "20", *words)
    tap.ok(done.returncode == 0, "clients notice nothing", done.stdout + done.stderr)


def ended(replica, why):
    """It ends by itself, and says why."""
    tap.ok(wait_for(lambda: not replica.alive()) and replica.process.returncode == 1 and why in replica.text(),
           f"the replica ends: {why}", replica.text()[-2000:])


def comes_back(volume, what):
    tap.ok(volume.healthy(120), what, volume.status())


def check_full(volume):
    """A disk that is full of data: the replica waits for room, without an end."""
    replica = volume.replicas[1]
    write(volume, "--fill", "-b", "256Ki", "-p", "sequential")
    tap.ok(wait_for(lambda: "No space left on device" in replica.text()), "it says that its disk is full",
           replica.text()[-2000:])
    tap.ok(wait_for(lambda: volume.modes().count("Healthy") == 2) and replica.alive(), "it waits, and the others go on",
           volume.status())
    room(f"{volume.folder}/d1", "200m")
    comes_back(volume, "it comes back when there is room")


def check_full_meta(volume):
    """No room for the map of what is new."""
    replica = volume.replicas[1]
    tap.ran(ask(volume, "grow", "--size", "96Mi"), "the volume grows")
    write(volume, "-n", "400", "-b", "4Ki", "--span", "96Mi")
    ended(replica, "its metadata cannot be written: No space left on device")
    room(f"{volume.folder}/r1", "1m")
    replica.start()
    comes_back(volume, "started again with more room it comes back")


def check_flush(volume):
    """A disk that fails a flush: nobody knows what is on it."""
    replica = volume.replicas[2]
    sound = replica.argv
    replica.stop()
    replica.argv = volume.replica(2, f"fault:flush=EIO#5;file:{volume.data(2)}").argv
    replica.start()
    wait_for(lambda: volume.healthy(1) or not replica.alive())
    write(volume, "-n", "400", "-b", "4Ki")
    ended(replica, "its data cannot be flushed: Input/output error")
    replica.argv = sound
    replica.start()
    comes_back(volume, "on a disk that works it comes back")


def check_copy(volume):
    """A folder that was copied: who has less is not let in."""
    replica, copy = volume.replicas[0], f"{volume.folder}/copy"
    replica.stop()
    shutil.copytree(f"{volume.folder}/r0", copy)
    replica.start()
    comes_back(volume, "a replica that was copied goes on")
    write(volume, "-n", "100", "-b", "4Ki")
    twin = Process(f"{volume.folder}/copy.log", f"{programs}/orlop-replica", "replica", "serve", "--dir", copy,
                   "--volume", volume.name, "--target", f"127.0.0.1:{REPLICA_PORT}", "--key-file", volume.key).start()
    try:
        tap.ok(wait_for(lambda: "an older copy of a replica" in volume.target.text()), "its copy is refused",
               volume.target.text()[-2000:])
        write(volume, "-n", "100", "-b", "4Ki")
        comes_back(volume, "and changes nothing")
    finally:
        twin.kill()


if not own_network() or not own_mounts():
    tap.skip("disks of replicas", "no namespaces here")
    tap.done()
with Scratch() as scratch:
    # Of replica 1 half of the data, and of the metadata two pages of the map, for 32 MiB: 13 pages with all else.
    disks = {"d1": "16m", "r1": "52k"}
    try:
        for name, size in disks.items():
            os.mkdir(scratch.file(name))
            tap.ran(run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", scratch.file(name)), "a small disk")
        with open(scratch.file("d1/data"), "wb") as data:
            data.truncate(4096)
        with Volume(programs, scratch.path, size="32Mi", stores={1: f"file:{scratch.file('d1/data')}"}) as volume:
            comes_back(volume, "a volume")
            check_full(volume)
            check_full_meta(volume)
            check_flush(volume)
            check_copy(volume)
            tap.ran(ask(volume, "scrub"), "all replicas are compared")
            tap.equal([r["scrubErrors"] for r in volume.status()["volumeStatus"][0]["replicaStatus"]], [0] * 3,
                      "and are the same")
            if tap.failed:
                for process in [volume.target, *volume.replicas]:
                    print("\n".join("# " + line for line in process.text().splitlines()[-30:]))
    finally:
        for name in disks:
            run("umount", scratch.file(name))
tap.done()
