#!/usr/bin/env python3
"""A target that is killed with -9 while it is written to, again and again: what was flushed is there, what
was acknowledged is there too (the machine itself goes on), and an initiator that connects anew goes on.

iscsi_crash.py ORLOP-TARGET ORLOP-BENCH ROUNDS
"""
import json
import os
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from iscsi_target import Target  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402

PROGRAM, BENCH, ROUNDS = sys.argv[1], sys.argv[2], int(sys.argv[3])
tap = Tap()
random.seed(int(os.environ.get("SEED", "1")))


def bench(target, *words):
    return run(BENCH, "bench", "iscsi", target.url(), "-o", "json", *words, timeout=120)


def loads(scratch, target, kind):
    """Writes until the target is killed; the map says what has to be there."""
    kept = scratch.file("map")
    words = [BENCH, "bench", "iscsi", target.url(), "-o", "json", "-r", "30", "-q", "16", "-t", "60",
             "--span", "16Mi", "--flush-every", "32", "--verify", "--save-map", kept]
    if os.path.exists(kept):
        words += ["--load-map", kept]
    if kind == "large":
        words += ["-b", "64Ki"]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def rounds(scratch, kind, store):
    with Target(PROGRAM, scratch.path, store, "16Mi", ["--control", scratch.file("control")]) as t:
        bad, reads, kept = [], 0, scratch.file("map")
        for number in range(ROUNDS):
            before = os.stat(kept).st_mtime_ns if os.path.exists(kept) else 0
            load = loads(scratch, t, kind)

            def busy():
                """Some of what it does is done."""
                shown = run(PROGRAM, "target", "show", "--control", scratch.file("control"), "-o", "json")
                return shown.returncode == 0 and json.loads(shown.stdout)["statistics"]["flushes"]["count"] > 3
            wait_for(busy, 20)
            time.sleep(random.random() / 10)  # at some moment
            t.stop(signal.SIGKILL)
            _, errors = load.communicate(timeout=60)  # it ends with its connection, and saves the map
            if not os.path.exists(kept) or os.stat(kept).st_mtime_ns == before:
                bad.append(f"round {number}: no map was saved, status {load.returncode}: {errors}")
            t.start()
            for what in ("flushed", "acknowledged"):
                checked = bench(t, "--load-map", scratch.file("map"), "--check", "--expect", what,
                                "--span", "16Mi", *(["-b", "64Ki"] if kind == "large" else []))
                if checked.returncode != 0:
                    bad.append(f"round {number}, {what}: {checked.stdout}{checked.stderr}")
            counted = json.loads(checked.stdout) if checked.stdout else {"verify": {"checked": 0}}
            reads += counted["verify"]["checked"]
        tap.ok(not bad and reads > 0, f"{kind}, {store.split(':')[0]}: {ROUNDS} kills, nothing is lost "
               f"({reads} blocks checked)", "\n".join(bad[:3]))
        tap.equal(t.stop(), 0, f"{kind}: and it ends well")


def found_out(scratch):
    """This test can fail: a store that loses a write in a hundred does not pass."""
    with Target(PROGRAM, scratch.path, f"fault:write=lost/100;file:{scratch.file('volume')}", "16Mi") as t:
        kept = scratch.file("map")
        bench(t, "-r", "0", "-q", "8", "-n", "2000", "--verify", "--save-map", kept)
        checked = bench(t, "--load-map", kept, "--check")
        lost = json.loads(checked.stdout)["verify"]["lost"] if checked.stdout else 0
        tap.ok(checked.returncode == 1 and lost > 0, "a store that loses writes is found out", checked.stderr)


with Scratch() as scratch:
    found_out(scratch)
with Scratch() as scratch:
    rounds(scratch, "small", f"file:{scratch.file('volume')}")
with Scratch() as scratch:
    rounds(scratch, "large", f"file:{scratch.file('volume')}?direct=1")
tap.done()
