#!/usr/bin/env python3
"""A replicated volume while its processes are killed, frozen and cut off and its disks fail: nothing that was
acknowledged is lost, nothing old is read, nothing fails while a quorum is there; and in the end all replicas are
the same.

The replicas' disks forget what was not flushed when they are killed (`volatile:`), as disks do that lose their power.

replication.py PROGRAMS faults SECONDS [SEED]     whatever happens, for so long
replication.py PROGRAMS target ROUNDS             the target is killed so many times
"""
import json
import os
import random
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import chain  # noqa: E402
from namespaces import own_network  # noqa: E402
from replicated import Volume  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402

programs, mode, amount = sys.argv[1], sys.argv[2], float(sys.argv[3])
seed = int(sys.argv[4]) if len(sys.argv) > 4 else int(time.time())
tap, rng = Tap(), random.Random(seed)

# What a disk does now and then, as rules of the `fault` store.
DISKS = ["write=EIO/200", "write=torn/150", "write=ENOSPC/300", "read=EIO/40", "flush=EIO/5", "flush=60ms", "any=30ms/25",
         "write=torn/400,read=EIO/100,flush=20ms", "write=40ms/10"]


def bad_disk(volume, i, pause):
    """A disk fails for a while; then it loses its power, and is as good as new."""
    replica, rules = volume.replicas[i], rng.choice(DISKS)
    print(f"# replica {i}: {rules}", flush=True)
    sound = replica.argv
    replica.stop()
    replica.argv = volume.replica(i, f"fault:{rules};{volume.stores[i]}").argv
    replica.start()
    volume.written(int(500 * pause))  # so much goes on beside it
    replica.kill()
    replica.argv = sound
    replica.start()


def hurt(volume):
    """Does something bad, and undoes it. How long it lasts is a part of the fault, not a wait for something."""
    i = rng.randrange(volume.n)
    replica, what = volume.replicas[i], rng.choice(
        ["kill", "kill", "freeze", "cut", "deaf", "stop", "target", "target-frozen", "two", "disk", "disk"])
    pause = rng.uniform(0.1, 2.5)
    print(f"# {what} {i} for {pause:.1f} s", flush=True)
    if what == "kill":
        replica.kill()
        time.sleep(pause)
        replica.start()
    elif what == "stop":
        replica.stop()
        time.sleep(pause)
        replica.start()
    elif what == "disk":
        bad_disk(volume, i, pause)
    elif what == "freeze":
        replica.freeze()
        time.sleep(pause)
        replica.thaw()
    elif what in ("cut", "deaf"):
        volume.cut(i, what == "cut")
        time.sleep(pause)
        volume.heal()
    elif what == "target":
        volume.target.kill()
        time.sleep(pause / 5)
        volume.target.start()
    elif what == "target-frozen":
        volume.target.freeze()
        time.sleep(pause / 2)
        volume.target.thaw()
    else:  # no quorum for a while: I/O waits. One after the other, or memory is lost on a quorum at once
        other = volume.replicas[(i + 1) % volume.n]
        replica.freeze()
        other.freeze()
        time.sleep(pause)
        other.thaw()
        replica.thaw()
    return what


def torment(volume, load):
    """Until the load ends. Between two losses all is whole again: two at once may cost what was not flushed."""
    counts, end = {}, time.monotonic() + amount - 3
    while time.monotonic() < end and load.poll() is None:
        what = hurt(volume)
        counts[what] = counts.get(what, 0) + 1
        if what in ("kill", "stop", "disk", "target") and not volume.healthy(300):
            tap.ok(False, "it is whole again while clients go on", volume.status())
            break
    return counts


class Snapshots(threading.Thread):
    """Somebody takes snapshots and deletes them again, whatever else happens; what fails is tried again. One thing in each
    rebuild: a snapshot makes it begin anew, and one every second would let none come to its end."""

    def __init__(self, volume):
        super().__init__()
        self.volume, self.over, self.taken, self.deleted = volume, threading.Event(), 0, 0
        self.rng = random.Random(seed)

    def ask(self, *words):
        return run(f"{programs}/orlop-target", "target", words[0], "--control", self.volume.control, *words[1:])

    def listed(self):
        done = self.ask("snapshots", "-o", "json")
        return json.loads(done.stdout)["snapshots"] if done.returncode == 0 else []

    def run(self):
        n, disturbed = 0, False
        while not self.over.wait(self.rng.uniform(0.2, 1.5)):
            whole = set(self.volume.modes()) == {"Healthy"}
            if disturbed and not whole:
                continue
            disturbed = not whole
            names = [s["name"] for s in self.listed()]
            if len(names) > 2 and self.rng.random() < 0.7:
                name = self.rng.choice(names)
                self.deleted += self.ask("snapshot-delete", "--name", name).returncode == 0
            elif len(names) < 6:
                n += 1
                self.taken += self.ask("snapshot", "--name", f"s{n}").returncode == 0

    def check(self):
        """All replicas have all of them, and the same in each."""
        volume = self.volume
        tap.ok(wait_for(lambda: all(s["replicas"] == volume.n for s in self.listed()), 90),
               f"of {self.taken} snapshots all that were not deleted ({self.deleted} were) are on all replicas",
               self.listed())
        return [int(s["id"]) for s in self.listed()]


def kill_targets(volume, load):
    done = 0
    while done < amount and load.poll() is None:
        volume.written(rng.randrange(1, 300))  # the load goes on after the last time
        volume.target.kill()
        volume.target.start()
        done += 1
    volume.written(100)
    load.send_signal(signal.SIGINT)
    tap.equal(done, int(amount), "so many times the target was killed")
    return {"target": done}


def check_end(volume, kept, snapshots):
    tap.ok(volume.healthy(90), "all replicas are Healthy in the end", volume.status())
    numbers = snapshots.check()
    check = volume.bench("--load-map", kept, "--check")
    tap.ok(check.returncode == 0, "everything acknowledged is there", check.stdout + check.stderr)
    tap.equal(volume.target.stop(), 0, "the target stops in order")
    tap.equal([r.stop() for r in volume.replicas], [0] * volume.n, "the replicas, too")
    for number in [None, *numbers]:
        found = {chain.digest(volume.data(i), 32 << 20, number) for i in range(volume.n)}
        tap.ok(len(found) == 1 and None not in found,
               f"{'snapshot' if number else 'all replicas'} {number or ''} the same, byte by byte", found)
    for process, name in [(volume.target, "target"), *((r, f"replica {i}") for i, r in enumerate(volume.replicas))]:
        # A snapshot may fail when a quorum is lost meanwhile: who asked for it tries again.
        bad = [line for line in process.text().splitlines() if "Sanitizer" in line or "Assertion" in line
               or ("ERROR" in line and "snapshot has failed" not in line)]
        tap.ok(not bad, f"the {name} has nothing to complain of", "\n".join(bad[:20]))


if not own_network():
    tap.skip("replication under faults", "no network namespaces here")
    tap.done()
print(f"# seed {seed}")
with Scratch() as scratch:
    stores = {i: f"volatile:file:{scratch.path}/r{i}/data" for i in range(3)}
    with Volume(programs, scratch.path, size="32Mi", stores=stores) as volume:
        kept, seconds = scratch.file("map"), amount if mode == "faults" else 3600
        load = volume.bench("--verify", "--reconnect", "-q", "16", "-r", "50", "-t", str(seconds), "--flush-every",
                            "50", "--save-map", kept, "--seed", str(seed), wait=False)
        volume.written(1)  # it is logged in: from here on it comes back by itself
        snapshots = Snapshots(volume)
        if mode == "faults":
            snapshots.start()
        counts = torment(volume, load) if mode == "faults" else kill_targets(volume, load)
        snapshots.over.set()
        if mode == "faults":
            snapshots.join()
        text, errors = load.communicate(timeout=180)
        result = json.loads(text) if text.startswith("{") else {}
        print(f"# {counts}: {result.get('latencyMicroseconds')}, {result.get('verify')}")
        tap.ok(load.returncode == 0, "no I/O failed, no block was lost, torn, old or misplaced", text + errors)
        check_end(volume, kept, snapshots)
        if tap.failed:
            for process in [volume.target, *volume.replicas]:
                print("\n".join("# " + line for line in process.text().splitlines()[-30:]))
tap.done()
