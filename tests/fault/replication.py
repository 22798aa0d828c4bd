#!/usr/bin/env python3
"""A replicated volume while its processes are killed, frozen and cut off: nothing that was acknowledged is
lost, nothing old is read, nothing fails while a quorum is there; and in the end all replicas are the same.

replication.py PROGRAMS SECONDS [SEED]
"""
import filecmp
import json
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from replicated import Volume, own_network  # noqa: E402
from tap import Scratch, Tap  # noqa: E402

programs, seconds = sys.argv[1], float(sys.argv[2])
seed = int(sys.argv[3]) if len(sys.argv) > 3 else int(time.time())
tap, rng = Tap(), random.Random(seed)


def hurt(volume):
    """Does something bad, and undoes it."""
    i = rng.randrange(volume.n)
    replica, what = volume.replicas[i], rng.choice(
        ["kill", "kill", "freeze", "cut", "deaf", "stop", "target", "target-frozen", "two"])
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


if not own_network():
    tap.skip("replication under faults", "no network namespaces here")
    tap.done()
print(f"# seed {seed}")
with Scratch() as scratch, Volume(programs, scratch.path, size="32Mi") as volume:
    load = volume.bench("--verify", "--reconnect", "-q", "16", "-r", "50", "-t", str(seconds), "--flush-every",
                        "50", "--save-map", scratch.file("map"), "--seed", str(seed), wait=False)
    counts, end = {}, time.monotonic() + seconds - 3
    while time.monotonic() < end and load.poll() is None:
        what = hurt(volume)
        counts[what] = counts.get(what, 0) + 1
        # Between two losses everything is whole again: two at once may cost what was not flushed.
        if what in ("kill", "stop", "target") and not volume.healthy(60):
            break
    text, errors = load.communicate(timeout=120)
    result = json.loads(text) if text.startswith("{") else {}
    print(f"# {counts}: {result.get('latencyMicroseconds')}, {result.get('verify')}")
    tap.ok(load.returncode == 0, "no I/O failed, no block was lost, torn, old or misplaced", text + errors)
    tap.ok(volume.healthy(60), "all replicas are Healthy in the end", volume.status())
    check = volume.bench("--load-map", scratch.file("map"), "--check")
    tap.ok(check.returncode == 0, "everything acknowledged is there", check.stdout + check.stderr)
    tap.equal(volume.target.stop(), 0, "the target stops in order")
    tap.equal([r.stop() for r in volume.replicas], [0] * volume.n, "the replicas, too")
    tap.ok(all(filecmp.cmp(volume.data(0), volume.data(i), shallow=False) for i in range(1, volume.n)),
           "all replicas are the same, byte by byte")
    for process, name in [(volume.target, "target"), *((r, f"replica {i}") for i, r in enumerate(volume.replicas))]:
        bad = [line for line in process.text().splitlines() if "Sanitizer" in line or "ERROR" in line
               or "Assertion" in line]
        tap.ok(not bad, f"the {name} has nothing to complain of", "\n".join(bad[:20]))
    if tap.failed:
        for process in [volume.target, *volume.replicas]:
            print("\n".join("# " + line for line in process.text().splitlines()[-30:]))
tap.done()
