#!/usr/bin/env python3
"""Files of a replica are damaged while it is down: every file, in every way, after a stop in order and after a kill.

With three replicas the volume is whole again afterwards, or the replica refuses to start and says why; every read is
what was written, every copy on the replicas' disks too, and scrub makes nothing worse. With one replica a read is
right or is refused: never wrong, never zeroes in place of data.

corruption.py PROGRAMS three|one EVERY [OFFSET]      every EVERY-th cell of the matrix, from OFFSET on
"""
import hashlib
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import chain  # noqa: E402
from damage import DAMAGES, damage  # noqa: E402
from ledger import BLOCK, Ledger, Refused  # noqa: E402
from namespaces import own_network  # noqa: E402
from replicated import Volume  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402

programs, form, every = sys.argv[1], sys.argv[2], int(sys.argv[3])
offset = int(sys.argv[4]) if len(sys.argv) > 4 else 0
tap = Tap()
SIZE, MIB, EXTENT = 16 << 20, 1 << 20, 4 << 20
# The head is the layer that is written now; the middle one is what was written between the two snapshots.
FILES = ("id", "meta", "data", "data.sums", "data.chain", "middle", "middle.map", "middle.sums", "head", "head.map",
         "head.sums")
# What is below the last snapshot does not change, so there is no earlier copy of it.
FIXED = ("id", "data", "middle", "middle.map", "middle.sums")
CELLS = [(file, how, end) for how in DAMAGES for file in FILES for end in ("stopped", "killed")
         if how != "rolled back" or file not in FIXED]


def ask(volume, *words):
    return run(f"{programs}/orlop-target", "target", words[0], "--control", volume.control, *words[1:])


def place(folder, file):
    """Where a replica has this file."""
    role, _, suffix = file.partition(".")
    if role not in ("middle", "head"):
        return f"{folder}/{file}"
    numbers = [number for number, _ in chain.layers(f"{folder}/data")]
    number = numbers[1 if role == "middle" else -1]
    return f"{folder}/data.layer{number}" + (f".{suffix}" if suffix else "")


def fill(volume, ledger):
    """Content in every megabyte, two snapshots, and a layer above each; ends flushed. What the snapshots have."""
    contents = {}
    for name in ("first", "second", None):
        for at in range(0, SIZE // BLOCK, MIB // BLOCK):
            for block in ledger.random.sample(range(at, at + MIB // BLOCK), 24):
                ledger.write(block)
        ledger.flush()
        if name:
            tap.ran(ask(volume, "snapshot", "--name", name), f"a snapshot {name}")
            contents[name] = bytes(ledger.now)
    return contents


def make_donor(folder, replicas):
    """Another volume of the same form; the folder of one of its replicas."""
    os.mkdir(folder)
    with Volume(programs, folder, size=f"{SIZE >> 20}Mi", replicas=replicas) as volume:
        ledger = Ledger(SIZE, seed=99)
        fill(volume, ledger)
        ledger.drop()
        volume.replicas[0].stop()
    return f"{folder}/r0"


def end(replica, how):
    if how == "stopped":
        replica.stop()
    else:
        replica.kill()


def last_words(text):
    """What a replica said at its end, for people."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("==")]
    return lines[-1][-300:] if lines else "nothing"


class Three:
    """The matrix with three replicas, all cells with one volume that goes on."""

    def __init__(self, volume, ledger, donor, seed):
        self.volume, self.ledger, self.donor, self.seed = volume, ledger, donor, seed
        self.kept, self.mended = {}, 0

    def differ(self):
        """
        Replicas on whose disk is not what was written; those on whose disk snapshots are not what they were. A flush is
        done when two of three have it, and what was mended is on disk with the next one.
        """
        def look():
            nonlocal found
            self.ledger.write_some(1)
            found = [chain.digests(self.volume.data(i), SIZE) for i in range(3)]
            right = hashlib.sha256(self.ledger.now).hexdigest()
            return all(digests[0] == right for digests in found)
        found = []
        wait_for(look, 10)
        right = hashlib.sha256(self.ledger.now).hexdigest()
        return ([i for i in range(3) if found[i][0] != right],
                [i for i in range(3) if any(found[i].get(s) != digest for s, digest in self.kept.items())])

    def restore(self, i, copy):
        """What was refused: as it was before the damage."""
        folder = f"{self.volume.folder}/r{i}"
        self.volume.replicas[i].kill()
        shutil.rmtree(folder)
        shutil.copytree(copy, folder)
        self.volume.replicas[i].start()

    def cell(self, i, file, how, ending):
        volume, ledger, replica = self.volume, self.ledger, self.volume.replicas[i]
        folder, name = f"{volume.folder}/r{i}", f"{file} {how}, {ending}"
        earlier, before = f"{volume.folder}/earlier", f"{volume.folder}/before"
        for path in (earlier, before):
            shutil.rmtree(path, ignore_errors=True)
        if how == "rolled back":
            replica.stop()
            shutil.copytree(folder, earlier)
            replica.start()
            volume.healthy()
        if (file, how) == ("data.chain", "rolled back"):
            tap.ran(ask(volume, "snapshot", "--name", "extra"), "a snapshot that an older list does not have")
        ledger.write_some(40)
        ledger.write_some(20, flush=False)
        end(replica, ending)
        shutil.copytree(folder, before)
        ledger.write_some(10, flush=False)
        changed = damage(how, place(folder, file), os.path.isdir(earlier) and place(earlier, file),
                         place(self.donor, file), self.seed)
        said = len(replica.text())
        replica.start()
        wait_for(lambda: not replica.alive() or volume.healthy(0), 60)
        words = replica.text()[said:]
        if not replica.alive():
            outcome = "refused: " + last_words(words)
            self.restore(i, before)
        elif "has lost its data" in words:
            outcome = "rebuilt as lost"
        else:
            outcome = "compared"
        healthy = volume.healthy()
        wrong, refused = ledger.wrong(4)
        scrub = ask(volume, "scrub")
        mended = sum(r["scrubErrors"] for r in volume.status()["volumeStatus"][0]["replicaStatus"])
        after, refused_after = ledger.wrong()
        differ, snapshots = self.differ()
        if i in snapshots:  # blocks of a snapshot that rot are not returned, but mended only in what is written now
            outcome += "; its snapshots have rotten blocks"
            snapshots.remove(i)
        outcome += f"; scrub mended {mended - self.mended}" if mended != self.mended else ""
        self.mended = mended
        good = healthy and not (wrong or after or refused or refused_after or differ or snapshots or scrub.returncode)
        tap.ok(good, f"{name}: {outcome if changed else 'nothing to change'}",
               f"healthy {healthy}, wrong {len(wrong)} {wrong[:5]}, after scrub {len(after)}, refused {refused}, "
               f"copies that differ {differ}, snapshots {snapshots}\n{scrub.stdout}{scrub.stderr}{words}"
               + volume.target.text()[-3000:])
        if os.environ.get("VERBOSE"):
            print("\n".join("#   " + line for line in words.splitlines()), flush=True)
        if (file, how) == ("data.chain", "rolled back"):
            tap.ran(ask(volume, "snapshot-delete", "--name", "extra"), "it is deleted")
            wait_for(lambda: all(len(chain.loose(volume.data(k))) == 2 for k in range(3)), 60)
        return good and ("rotten" not in outcome or self.renew(i))

    def renew(self, i):
        """All of it anew, before the next replica is damaged: two of three that rot in one place are too many."""
        replica = self.volume.replicas[i]
        replica.stop()
        os.unlink(self.volume.data(i))
        replica.start()
        good = self.volume.healthy() and self.differ() == ([], [])
        return tap.ok(good, f"replica {i} is made anew from the others", self.volume.status())

    def revert(self, contents):
        """The snapshots are what they were."""
        for name in ("second", "first"):
            self.ledger.logout()
            tap.ran(ask(self.volume, "revert", "--name", name), f"the volume goes back to {name}")
            self.ledger.now = bytearray(contents[name])
            tap.equal(self.ledger.wrong(3), ([], 0), "which is as it was")
            tap.ran(ask(self.volume, "snapshot-delete", "--name", name), "and is deleted")


def check_three(scratch):
    donor = make_donor(scratch.file("donor"), 3)
    folder = scratch.file("volume")
    os.mkdir(folder)
    with Volume(programs, folder, size=f"{SIZE >> 20}Mi") as volume:
        ledger = Ledger(SIZE)
        contents = fill(volume, ledger)
        matrix = Three(volume, ledger, donor, 1)
        tap.ok(volume.healthy(), "a volume", volume.status())
        matrix.kept = {s: digest for s, digest in chain.digests(volume.data(0), SIZE).items() if s}
        tap.equal(matrix.differ(), ([], []), "is on its three replicas")
        for number, (file, how, ending) in enumerate(CELLS[offset::every]):
            matrix.seed = number
            if not matrix.cell(number % 3, file, how, ending):
                return  # what follows would say nothing of its own
        matrix.revert(contents)


class One:
    """The matrix with one replica: each cell begins with a copy of the same folder."""

    def __init__(self, volume, ledger, donor):
        self.volume, self.ledger, self.donor = volume, ledger, donor
        self.written, self.unflushed, self.said = {}, {}, 0

    def prepare(self):
        """An earlier copy, and those of a replica that was stopped and of one that was killed."""
        volume, ledger, replica = self.volume, self.ledger, self.volume.replicas[0]
        folder = f"{volume.folder}/r0"
        replica.stop()
        shutil.copytree(folder, f"{volume.folder}/earlier")
        replica.start()
        volume.healthy()
        ledger.write_some(400)
        replica.stop()
        shutil.copytree(folder, f"{volume.folder}/stopped")
        self.written["stopped"] = bytes(ledger.now)
        replica.start()
        volume.healthy()
        for block in range(8):
            ledger.write(block)
        ledger.flush()
        self.written["killed"] = bytes(ledger.now)
        for block in range(8, 16):
            ledger.write(block)
        replica.kill()
        shutil.copytree(folder, f"{volume.folder}/killed")
        self.unflushed = {"stopped": range(0), "killed": range(8, 16)}
        ledger.drop()
        volume.target.kill()

    def cell(self, file, how, ending, seed):
        volume, folder, name = self.volume, f"{self.volume.folder}/r0", f"one replica, {file} {how}, {ending}"
        shutil.rmtree(folder)
        shutil.copytree(f"{volume.folder}/{ending}", folder)
        # Near what was being written when it was killed checksums do not count: of that only another replica can tell.
        start = 2 * EXTENT if ending == "killed" and file in ("data", "head") else 0
        changed = damage(how, place(folder, file), place(f"{volume.folder}/earlier", file),
                         place(self.donor, file), seed, start)
        replica, self.said = volume.replicas[0], len(volume.replicas[0].text())
        volume.target.start()
        replica.start()
        wait_for(lambda: volume.healthy(0) or self.refused(), 30)
        wrong, refused = self.read(ending)
        outcome = "right data" if not refused else f"{refused} reads refused"
        words = replica.text()[self.said:]
        if self.refused():
            outcome += ": " + last_words(words)
        tap.ok(not wrong, f"{name}: {outcome if changed else 'nothing to change'}",
               f"wrong {len(wrong)} {wrong[:5]}\n{words}")
        self.ledger.drop()
        volume.target.kill()
        replica.kill()

    def refused(self):
        replica = self.volume.replicas[0]
        return not replica.alive() or "has lost its data" in replica.text()[self.said:]

    def read(self, ending):
        """All of it while the volume serves; else one read, which must not be answered with data."""
        ledger = self.ledger
        ledger.now = bytearray(self.written[ending])
        try:
            if self.refused():
                ledger.login()
                ledger.session.sock.settimeout(5)
                return ([0] if ledger.read(0) else []), "none of the"
            wrong, refused = ledger.wrong()
            return [block for block in wrong if block not in self.unflushed[ending]], refused
        except (Refused, OSError):
            ledger.drop()
            return [], "all"


def check_one(scratch):
    donor = make_donor(scratch.file("donor"), 1)
    folder = scratch.file("volume")
    os.mkdir(folder)
    with Volume(programs, folder, size=f"{SIZE >> 20}Mi", replicas=1, extra=("--fail-seconds", "1")) as volume:
        ledger = Ledger(SIZE)
        fill(volume, ledger)
        matrix = One(volume, ledger, donor)
        matrix.prepare()
        for number, cell in enumerate(CELLS[offset::every]):
            matrix.cell(*cell, number)


if not own_network():
    tap.skip("damaged files of replicas", "no network namespaces here")
    tap.done()
with Scratch() as scratch:
    check_three(scratch) if form == "three" else check_one(scratch)
tap.done()
