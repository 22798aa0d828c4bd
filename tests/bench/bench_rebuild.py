#!/usr/bin/env python3
"""What it costs a replicated volume to lose a replica, and to get it back: three replicas on this machine, files in
memory, `orlop bench` as the client.

  rebuild     of a new replica in the place of another, no client: against the same bytes written in order to a volume
              of one replica
  throttled   the same while a client writes and reads: its p99 against that without a rebuild
  frozen      a replica is stopped (SIGSTOP): the slowest write
  killed      one is killed: p99.9 of writes
  restart     the target is killed and started: until the first write is done

bench_rebuild.py [--rounds N] [--size MIB] [--folder DIR]
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "lib"))
from namespaces import own_network  # noqa: E402
from replicated import Volume  # noqa: E402
from tap import run, wait_for  # noqa: E402

PROGRAMS = os.path.join(os.environ.get("BUILD_DIR", f"{TOP}/build/release"), "cmd")
# (figure, what it is, unit, at least or at most, aim)
AIMS = [
    ("rebuild", "rebuild / one replica, written in order", "x", ">=", 0.7),
    ("throttled", "client's p99 with a rebuild / without", "x", "<=", 3),
    ("frozen", "slowest write, a replica is frozen", " ms", "<=", 500),
    ("killed", "p99.9 of writes, a replica is killed", " ms", "<=", 50),
    ("restart", "target killed to first I/O", " s", "<=", 1),
]


def identity(volume, i):
    with open(f"{volume.folder}/r{i}/id", encoding="utf-8") as f:
        return f.read().strip()


def warm(folder, size):
    """Memory that a machine's host has to provide first would be measured instead: it is used a moment before."""
    with open(f"{folder}/warm", "wb") as f:
        for _ in range(size):
            f.write(b"w" * (1 << 20))
    os.unlink(f"{folder}/warm")


def fill(volume):
    """Writes everything in order, with a flush; seconds."""
    began = time.monotonic()
    done = volume.bench("--fill", "-b", "64Ki", "-p", "sequential", "-r", "0", "-q", "16")
    if done.returncode:
        raise RuntimeError(done.stderr)
    return time.monotonic() - began


def load(volume, seconds, *words, meanwhile=None):
    """p99, p99.9 and the slowest of writes, in ms."""
    process = volume.bench("-q", "8", "-t", str(seconds), *words, wait=False)
    volume.written(200)
    if meanwhile:
        meanwhile()
    text, errors = process.communicate(timeout=120)
    if process.returncode:
        raise RuntimeError(text + errors)
    latency = json.loads(text)["latencyMicroseconds"]["write"]
    return {name: latency[name] / 1000 for name in ("p99", "p99.9", "max")}


def replace(volume, old, new, wait=True):
    """A new replica in the place of another; seconds."""
    volume.replicas[new] = volume.replica(new).start()
    wait_for(lambda: os.path.exists(f"{volume.folder}/r{new}/id"))
    words = [f"{PROGRAMS}/orlop-target", "target", "add", "--control", volume.control, "--replica", identity(volume, new),
             "--instead", identity(volume, old)]
    if not wait:
        return words
    began = time.monotonic()
    done = run(*words, timeout=600)
    took = time.monotonic() - began
    if done.returncode:
        raise RuntimeError(done.stderr)
    leave(volume, old)
    return took


def leave(volume, old):
    volume.replicas[old].kill()
    del volume.replicas[old]
    shutil.rmtree(f"{volume.folder}/r{old}")


class Members(dict):
    """Replicas by number: they come and go."""

    def __iter__(self):
        return iter(list(self.values()))


def throttled(volume, old, new):
    """p99 of a client before and during a rebuild."""
    before = load(volume, 3, "-r", "50")["p99"]
    words = replace(volume, old, new, wait=False)
    adding = []

    def begin():
        adding.append(subprocess.Popen(words, stdout=subprocess.DEVNULL))
        wait_for(lambda: "ReconstructingNewReplica" in volume.modes())
    during = load(volume, 5, "-r", "50", meanwhile=begin)["p99"]
    adding[0].wait()  # without a client it ends soon
    leave(volume, old)
    return before, during


def restart(volume):
    began = time.monotonic()
    volume.target.kill()
    volume.target.start()
    while volume.bench("-r", "0", "-n", "1", "--reconnect").returncode and time.monotonic() - began < 60:
        pass
    return time.monotonic() - began


def one_round(folder, size):
    figures = {}
    with Volume(PROGRAMS, folder + "/one", replicas=1, size=f"{size}Mi") as volume:
        warm(folder, size)
        in_order = size / fill(volume)
    shutil.rmtree(folder + "/one")
    with Volume(PROGRAMS, folder + "/three", size=f"{size}Mi") as volume:
        volume.replicas = Members(enumerate(volume.replicas))
        fill(volume)
        volume.healthy()
        warm(folder, size)
        rate = size / replace(volume, 0, 3)
        figures["rebuild"] = rate / in_order
        before, during = throttled(volume, 1, 4)
        figures["throttled"] = during / before
        volume.healthy()
        figures["frozen"] = load(volume, 3, "-r", "0", meanwhile=volume.replicas[2].freeze)["max"]
        volume.replicas[2].thaw()
        volume.healthy()
        figures["killed"] = load(volume, 3, "-r", "0", meanwhile=volume.replicas[2].kill)["p99.9"]
        volume.replicas[2].start()
        volume.healthy()
        figures["restart"] = restart(volume)
    shutil.rmtree(folder + "/three")
    print(f"    rebuild {rate:.0f} MiB/s, in order {in_order:.0f} MiB/s; p99 {before:.2f} ms, with a rebuild {during:.2f} ms; "
          f"frozen {figures['frozen']:.0f} ms; killed {figures['killed']:.1f} ms; restart {figures['restart']:.2f} s", flush=True)
    return figures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--size", type=int, default=512)
    parser.add_argument("--folder", default="/dev/shm")
    args = parser.parse_args()
    print(f"\nRebuilds and losses of a replicated volume of {args.size} MiB, three replicas, medians of {args.rounds}")
    if not own_network():
        print("  no network namespaces here")
        return
    rounds = []
    for _ in range(args.rounds):
        with tempfile.TemporaryDirectory(prefix="orlop-bench-", dir=args.folder) as folder:
            os.mkdir(folder + "/one")
            os.mkdir(folder + "/three")
            rounds.append(one_round(folder, args.size))
    print("\n  aims")
    for figure, what, unit, sign, aim in AIMS:
        value = statistics.median(r[figure] for r in rounds)
        good = value >= aim if sign == ">=" else value <= aim
        print(f"    {what:52} {value:6.2f}{unit}  aim {sign} {aim}{unit}  {'reached' if good else 'NOT reached'}")


if __name__ == "__main__":
    main()
