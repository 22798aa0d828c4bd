#!/usr/bin/env python3
"""A replica comes back with files that were deleted, cut short, or rotted: nobody reads anything wrong, it does not
count before it was rebuilt, and scrub never overwrites the good copy.

damaged-replica.py PROGRAMS
"""
import os
import random
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from damage import damage  # noqa: E402
from ledger import BLOCK, Ledger  # noqa: E402
from namespaces import own_network  # noqa: E402
from replicated import Volume  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402

programs = sys.argv[1]
tap = Tap()
SIZE = 16 << 20


def ask(volume, *words):
    return run(f"{programs}/orlop-target", "target", words[0], "--control", volume.control, *words[1:])


def mode(volume, i):
    with open(f"{volume.folder}/r{i}/id", encoding="utf-8") as f:
        name = f.read().strip()
    return next(r["mode"] for r in volume.status()["volumeStatus"][0]["replicaStatus"] if r["replicaId"] == name)


def on_disk(volume, ledger, i):
    """How many blocks of the replica's file are not what was written."""
    with open(volume.data(i), "rb") as f:
        data = f.read(SIZE).ljust(SIZE, b"\0")
    return sum(data[at:at + BLOCK] != ledger.now[at:at + BLOCK] for at in range(0, SIZE, BLOCK))


def all_good(volume, ledger, what):
    """Everything is right: what is read, what scrub finds, and what is on the disks."""
    tap.ok(volume.healthy(), f"{what}: the volume is healthy again", volume.status())
    tap.equal(ledger.wrong(6), ([], 0), f"{what}: no read is wrong")
    ledger.flush()
    tap.ran(ask(volume, "scrub"), f"{what}: scrub ends")
    tap.equal(ledger.wrong(3), ([], 0), f"{what}: no read is wrong after scrub")
    ledger.flush()
    tap.equal([on_disk(volume, ledger, i) for i in range(3)], [0, 0, 0], f"{what}: all three copies are good")


def check_lost_data(volume, ledger, what, hurt):
    """The rebuild is slow, so that one can look while it goes on."""
    replica = volume.replicas[0]
    ask(volume, "rate", "--rebuild-rate", "2Mi")
    replica.stop()
    ledger.write_some(50)
    hurt(volume.data(0))
    said = len(replica.text())
    replica.start()
    tap.ok(wait_for(lambda: "has lost its data" in replica.text()[said:]), f"{what}: the replica says so",
           replica.text())
    seen = wait_for(lambda: mode(volume, 0) not in ("Offline", "Degraded") and mode(volume, 0))
    tap.ok(seen and seen != "Healthy", f"{what}: it is not Healthy before it is rebuilt", seen)
    tap.equal(ledger.wrong(3), ([], 0), f"{what}: no read is wrong meanwhile")
    tap.ok(mode(volume, 0) != "Healthy", f"{what}: which was before it was Healthy", volume.status())
    ask(volume, "rate", "--rebuild-rate", "0")
    all_good(volume, ledger, what)


def check_majority(volume, ledger):
    """Two of three have the same wrong bytes: the copy that its checksum vouches for is right."""
    good = bytes(ledger.now[1 << 20:(1 << 20) + BLOCK])
    for i in (1, 2):
        volume.replicas[i].stop()
        with open(volume.data(i), "r+b") as f:
            f.seek(1 << 20)
            f.write(b"wrong" * 800)
        volume.replicas[i].start()
        volume.healthy()
    tap.ran(ask(volume, "scrub"), "wrong majority: scrub ends")
    with open(volume.data(0), "rb") as f:
        f.seek(1 << 20)
        tap.equal(f.read(BLOCK), good, "wrong majority: scrub does not overwrite the good copy")
    all_good(volume, ledger, "wrong majority")


def check_meta(volume, ledger):
    """Of the metadata only the first superblock is left, of a replica that lacks what was written since."""
    for i in range(3):
        volume.replicas[i].stop()
        ledger.write_some(200)
        os.truncate(f"{volume.folder}/r{i}/meta", 8192)
        volume.replicas[i].start()
        all_good(volume, ledger, f"metadata of replica {i} cut to 8192 bytes")


def check_rot(volume, ledger):
    replica = volume.replicas[0]
    replica.stop()
    damage("flipped", volume.data(0), seed=random.randrange(1 << 30))
    rotten = on_disk(volume, ledger, 0)
    tap.ok(rotten > 100, "200 flipped bytes: on disk they are wrong", rotten)
    replica.start()
    tap.ok(volume.healthy(), "200 flipped bytes: the replica is taken", volume.status())
    tap.equal(ledger.wrong(4), ([], 0), "200 flipped bytes: no read is wrong")

    # Each place is read from one replica, so reads meet a third of what has rotted here; a scrub meets the rest.
    def mended():
        return ledger.wrong() == ([], 0) and on_disk(volume, ledger, 0) < rotten
    tap.ok(wait_for(mended), "200 flipped bytes: reads mend on disk what they meet", on_disk(volume, ledger, 0))
    all_good(volume, ledger, "200 flipped bytes")


def check_old_data(volume, ledger):
    """The file with the data comes from a backup; the rest does not."""
    replica, copy = volume.replicas[0], f"{volume.folder}/backup"
    replica.stop()
    shutil.copyfile(volume.data(0), copy)
    replica.start()
    volume.healthy()
    ledger.write_some(300)
    replica.stop()
    shutil.copyfile(copy, volume.data(0))
    replica.start()
    all_good(volume, ledger, "data from a backup")


if not own_network():
    tap.skip("damaged replicas", "no network namespaces here")
    tap.done()
with Scratch() as scratch:
    with Volume(programs, scratch.path, size="16Mi") as volume:
        ledger = Ledger(SIZE)
        for block in range(SIZE // BLOCK):
            ledger.write(block)
        ledger.flush()
        volume.healthy()
        check_lost_data(volume, ledger, "data deleted", os.unlink)
        check_lost_data(volume, ledger, "data cut in half", lambda path: os.truncate(path, SIZE // 2))
        check_majority(volume, ledger)
        check_meta(volume, ledger)
        check_rot(volume, ledger)
        check_old_data(volume, ledger)
        if tap.failed:
            for process in [volume.target, *volume.replicas]:
                print("\n".join("# " + line for line in process.text().splitlines()[-40:]))
tap.done()
