#!/usr/bin/env python3
"""Snapshots of a replicated volume with real processes: taken under load, listed, gone back to, deleted while replicas
are killed; replicas that were away, and one that is new, come to have them all.

snapshots.py PROGRAMS
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import chain  # noqa: E402
from namespaces import own_network  # noqa: E402
from replicated import Volume  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402

programs = sys.argv[1]
tap = Tap()
SIZE = 16 << 20


def ask(volume, *words):
    return run(f"{programs}/orlop-target", "target", words[0], "--control", volume.control, *words[1:])


def listed(volume):
    return json.loads(ask(volume, "snapshots", "-o", "json").stdout)["snapshots"]


def identity(volume, i):
    with open(f"{volume.folder}/r{i}/id", encoding="utf-8") as f:
        return f.read().strip()


def everywhere(volume, name):
    """All replicas say that they have it."""
    return wait_for(lambda: [s["replicas"] for s in listed(volume) if s["name"] == name] == [volume.n], 60)


def same(volume, name, replicas=(0, 1, 2), size=SIZE):
    """It is the same, byte by byte, on these replicas; its digest."""
    if not everywhere(volume, name):
        tap.ok(False, f"{name} is on all replicas", listed(volume))
        return None
    number = next(int(s["id"]) for s in listed(volume) if s["name"] == name)
    found = {chain.digest(volume.data(i), size, number) for i in replicas}
    tap.ok(len(found) == 1 and None not in found, f"{name} is the same on all replicas", found)
    return found.pop()


def heads_equal(volume, name, replicas=(0, 1, 2), size=SIZE):
    """The volume is the same on these replicas: what they have is compared where it lies, in order stopped."""
    volume.bench("-r", "0", "-n", "1", "--flush-every", "1")
    ok = volume.healthy() and wait_for(
        lambda: len({chain.digest(volume.data(i), size) for i in replicas}) == 1, 60)
    tap.ok(ok, name, volume.status())


def verify(volume, saved, name, *words):
    done = volume.bench("--check", "--load-map", saved, *words)
    tap.ok(done.returncode == 0, name, done.stdout + done.stderr)


def check_back(volume):
    """Write, snapshot, write, list, go back: what is read is what was kept."""
    before = f"{volume.folder}/before"
    done = volume.bench("--fill", "-b", "256Ki", "-r", "0", "-q", "8", "--verify", "--save-map", before)
    tap.equal(done.returncode, 0, "the volume is written")
    tap.ran(ask(volume, "snapshot", "--name", "first"), "a snapshot is taken", stdout="1 snapshot\n")
    kept = same(volume, "first")
    load = volume.bench("-r", "0", "-q", "16", "-t", "3", "--verify", wait=False)
    wait_for(lambda: volume.status()["sessions"], 30)
    tap.ran(ask(volume, "revert", "--name", "first"), "nobody is taken back under their feet", 1,
            stderr="initiators are logged in")
    tap.ran(ask(volume, "snapshot", "--name", "under-load"), "another is taken while clients write")
    text, errors = load.communicate(timeout=120)
    tap.ok(load.returncode == 0, "who notice nothing", text + errors)
    under = same(volume, "under-load")
    tap.ok(under != kept, "it is another")
    tap.equal(same(volume, "first"), kept, "and the first is as it was")
    tap.equal([(s["name"], s["size"], s["missingOn"]) for s in listed(volume)],
              [("first", SIZE, []), ("under-load", SIZE, [])], "both are listed")
    for words, why in ((("snapshot", "--name", "first"), "there is a snapshot called first"),
                       (("snapshot", "--name", "a/b"), "must be a snapshot's"),
                       (("snapshot-delete", "--name", "nothing"), "no snapshot is called nothing"),
                       (("revert", "--name", "first"), "later than first: under-load; delete them first")):
        tap.ran(ask(volume, *words), f"{' '.join(words)} is refused", 1, stderr=why)
    tap.ran(ask(volume, "grow", "--size", "20Mi"), "the volume grows")
    volume.bench("-r", "0", "-n", "300", "-q", "8", "--verify")
    tap.ran(ask(volume, "snapshot-delete", "--name", "under-load"), "the later one is deleted")
    tap.ran(ask(volume, "revert", "--name", "first"), "the volume goes back", stdout="20Mi")
    verify(volume, before, "and is as it was", "-b", "256Ki", "--span", "16Mi")
    heads_equal(volume, "on all replicas, with zeroes where it had grown", size=20 << 20)


def check_away(volume, size):
    """A replica that was away when snapshots were taken, deleted and gone back to, has what the others have."""
    saved = f"{volume.folder}/saved"
    volume.replicas[1].kill()
    volume.bench("-r", "0", "-n", "800", "-q", "8", "--verify", "--seed", "5")
    tap.ran(ask(volume, "snapshot", "--name", "second"), "a snapshot while a replica is away")
    done = volume.bench("-r", "0", "-n", "800", "-q", "8", "--verify", "--seed", "6", "--flush-every", "100",
                        "--save-map", saved)
    tap.equal(done.returncode, 0, "and writes")
    tap.ran(ask(volume, "snapshot", "--name", "third"), "and another")
    tap.equal([(s["name"], s["replicas"]) for s in listed(volume)],
              [("first", 2), ("second", 2), ("third", 2)], "it is known who lacks them")
    volume.bench("-r", "0", "-n", "800", "-q", "8", "--verify", "--seed", "7")
    volume.replicas[1].start()
    tap.ok(volume.healthy(), "it comes back", volume.status())
    for name in ("second", "third"):
        same(volume, name, size=size)
    volume.replicas[2].kill()
    volume.bench("-r", "0", "-n", "800", "-q", "8", "--verify", "--seed", "8")
    tap.ran(ask(volume, "snapshot-delete", "--name", "second"), "one is deleted while another is away")
    tap.ran(ask(volume, "revert", "--name", "third"), "and the volume goes back")
    verify(volume, saved, "to what it was then")
    volume.bench("-r", "0", "-n", "100", "-q", "8", "--verify", "--seed", "9", "--span", "1Mi")
    volume.replicas[2].start()
    heads_equal(volume, "nothing of what was gone back from survives on it", size=size)
    same(volume, "third", size=size)
    tap.ok(wait_for(lambda: all(len(chain.snapshots(volume.data(i))) == 2 for i in range(3)), 60),
           "and the deleted one is nowhere")


def check_new(volume, size):
    """A new replica gets every snapshot, and then counts."""
    volume.replicas.append(volume.replica(3).start())
    wait_for(lambda: os.path.exists(f"{volume.folder}/r3/id"))
    tap.ran(ask(volume, "add", "--replica", identity(volume, 3), "--instead", identity(volume, 0)),
            "a new replica takes the place of another")
    volume.replicas[0].kill()
    same(volume, "first", (1, 2, 3), size)
    same(volume, "third", (1, 2, 3), size)


def check_merge(volume, size):
    """Deletion gives the space back under load, though replicas are killed meanwhile."""
    saved = f"{volume.folder}/merged"
    load = volume.bench("-r", "30", "-q", "8", "-t", "6", "--verify", "--reconnect", "--flush-every", "50",
                        "--save-map", saved, wait=False)
    for name in ("first", "third"):
        tap.ran(ask(volume, "snapshot-delete", "--name", name), f"{name} is deleted under load")
        for i in (1, 2, 3):
            merging = len(chain.loose(volume.data(i)))
            volume.replicas[i].kill()
            print(f"# replica {i} was killed with {merging} layers")
            volume.replicas[i].start()
            tap.ok(volume.healthy(), f"replica {i} is killed, and comes back", volume.status())
    text, errors = load.communicate(timeout=120)
    tap.ok(load.returncode == 0, "the load notices nothing", text + errors)
    verify(volume, saved, "and everything that was acknowledged is there")
    tap.ok(wait_for(lambda: not any(chain.loose(volume.data(i)) for i in (1, 2, 3)), 60),
           "no layer is left", [chain.loose(volume.data(i)) for i in (1, 2, 3)])
    heads_equal(volume, "the replicas are the same", (1, 2, 3), size)
    tap.equal(listed(volume), [], "no snapshot is listed")


def check_restart(volume):
    """Snapshots outlive everything."""
    tap.ran(ask(volume, "snapshot", "--name", "kept"), "a snapshot")
    before = listed(volume)
    for process in [volume.target, *volume.replicas[1:]]:
        process.kill()
    volume.target.start()
    for replica in volume.replicas[1:]:
        replica.start()
    tap.ok(volume.healthy(90), "everything was killed, and is back", volume.status())
    tap.equal(listed(volume), before, "the snapshot is there")


if not own_network():
    tap.skip("snapshots", "no network namespaces here")
    tap.done()
with Scratch() as scratch:
    os.mkdir(scratch.file("volume"))
    with Volume(programs, scratch.file("volume"), size="16Mi") as volume:
        try:
            check_back(volume)
            check_away(volume, 20 << 20)
            check_new(volume, 20 << 20)
            check_merge(volume, 20 << 20)
            check_restart(volume)
        finally:
            if tap.failed:
                for process in [volume.target, *volume.replicas]:
                    print("\n".join("# " + line for line in process.text().splitlines()[-40:]))
tap.done()
