#!/usr/bin/env python3
"""What it costs a replicated volume to lose a replica, and to get it back: three replicas on this machine, with a key, on a
disk; `orlop bench` is the client.

  whole       rebuild of a new replica in the place of another, no client: against the same bytes written in order to a
              volume of one replica
  1 %         a replica is away while a hundredth of the volume is written, in blocks of 64 KiB, and comes back
  crash       everything is killed while a client writes at random, and started again: until all replicas are in sync
  throttled   a whole rebuild while a client writes and reads: its p99 against that without a rebuild
  frozen      a replica is stopped (SIGSTOP): the slowest write
  killed      one is killed: p99.9 of writes
  restart     the target is killed and started: until the first write is done

`MiB sent` is what passed over the network meanwhile, in all directions (what one replica sends to another goes through the
target, and counts twice); `MiB read` is what replicas read from their files.
"""
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from measure import PROGRAMS, TOP, disk_folder, processor, sync_disk
from report import Report, arguments, parse
from namespaces import own_network  # noqa: I001
from replicated import Volume
from tap import run, wait_for

KEY = "0123456789abcdef0123456789abcdef\n"


class Keyed(Volume):
    """A volume whose target and replicas prove to each other that they know its key."""

    def __init__(self, folder, **options):
        os.makedirs(folder)
        self.key = f"{folder}/key"
        with open(self.key, "w", encoding="ascii") as file:
            file.write(KEY)
        super().__init__(PROGRAMS, folder, extra=["--key-file", self.key], **options)

    def replica(self, i, store=None):
        made = super().replica(i, store)
        made.argv += ("--key-file", self.key)
        return made


class Traffic:
    """What passes over the network, and what replicas read, also those that are started in it, in `with`: MiB."""

    def __init__(self, volume):
        self.volume = volume

    def look(self):
        with open("/proc/net/dev", encoding="ascii") as file:
            sent = next(int(line.split()[1]) for line in file if line.split()[0] == "lo:")
        read = {}
        for replica in filter(lambda r: r.alive(), self.volume.replicas):
            with open(f"/proc/{replica.process.pid}/io", encoding="ascii") as file:
                read[replica.process.pid] = int(file.readline().split()[1])
        return sent, read

    def __enter__(self):
        self.sent, self.read = self.look()
        return self

    def __exit__(self, kind, *_):
        if not kind:
            sent, read = self.look()
            self.sent = (sent - self.sent) / (1 << 20)
            self.read = sum(n - self.read.get(pid, 0) for pid, n in read.items()) / (1 << 20)


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
    """Writes everything in order, and has it made durable at the end, as a rebuild does; seconds."""
    began = time.monotonic()
    client = volume.bench("--fill", "-b", "64Ki", "-p", "sequential", "-r", "0", "-q", "16", "--flush-every", "1000000", wait=False)
    errors = client.communicate(timeout=3600)[1]
    if client.returncode:
        raise RuntimeError(errors)
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
    done = run(*words, timeout=3600)
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


def one_percent(volume, i, size):
    """A replica misses a hundredth of the volume: seconds until it has it."""
    volume.replicas[i].kill()
    done = volume.bench("-b", "64Ki", "-r", "0", "-q", "8", "-n", str(size * 16 // 100), "--flush-every", "1000000")
    if done.returncode:
        raise RuntimeError(done.stderr)
    began = time.monotonic()
    with Traffic(volume) as traffic:
        volume.replicas[i].start()
        if not wait_for(lambda: volume.modes().count("Healthy") == volume.n, 600):
            raise RuntimeError(f"replica {i} is not mended: {volume.modes()}")
    return time.monotonic() - began, traffic


def crash(volume):
    """Everything is killed in the midst of writes: seconds until all replicas are in sync."""
    client = volume.bench("-r", "0", "-q", "32", "-t", "60", wait=False)
    wait_for(lambda: processor(client.pid) > 0.3)
    for process in [volume.target, *volume.replicas]:
        process.kill()
    client.kill()
    client.communicate()
    began = time.monotonic()
    with Traffic(volume) as traffic:
        for process in [*volume.replicas, volume.target]:
            process.start()
        if not volume.healthy(600):
            raise RuntimeError(f"the replicas are not in sync: {volume.modes()}")
    return time.monotonic() - began, traffic


def one_round(folder, size):
    figures = {}
    with Keyed(folder + "/one", replicas=1, size=f"{size}Mi") as volume:
        sync_disk(folder)
        warm(folder, size)
        figures["in order"] = size / fill(volume)
    shutil.rmtree(folder + "/one")
    with Keyed(folder + "/three", size=f"{size}Mi") as volume:
        volume.replicas = Members(enumerate(volume.replicas))
        fill(volume)
        volume.healthy()
        sync_disk(folder)
        warm(folder, size)
        figures["whole"] = size / replace(volume, 0, 3)
        for name, (seconds, traffic) in (("1 %", one_percent(volume, 2, size)), ("crash", crash(volume))):
            figures.update({name: seconds, f"{name} sent": traffic.sent, f"{name} read": traffic.read})
        before, during = throttled(volume, 1, 4)
        figures.update({"p99": during, "p99 before": before})
        volume.healthy()
        figures["frozen"] = load(volume, 3, "-r", "0", meanwhile=volume.replicas[2].freeze)["max"]
        volume.replicas[2].thaw()
        volume.healthy()
        figures["killed"] = load(volume, 3, "-r", "0", meanwhile=volume.replicas[2].kill)["p99.9"]
        volume.replicas[2].start()
        volume.healthy()
        figures["restart"] = restart(volume)
    shutil.rmtree(folder + "/three")
    return figures


def main():
    parser = arguments(3, __doc__)
    parser.add_argument("--size", type=int, help="in MiB (4096)")
    parser.add_argument("--folder", default=f"{TOP}/build/bench/data", help="on a disk, with five times the size free (below build)")
    args = parse(parser)
    size = args.size or (256 if args.quick else 4096)
    disk_folder(args.folder)
    if not own_network():
        sys.exit("no network namespaces here: run it as root")
    with Report("rebuild", f"Rebuilds and losses of a volume of {size} MiB, three replicas, on a disk, with a key", args,
                folder=args.folder) as report:
        rounds = []
        for _ in range(args.rounds):
            with tempfile.TemporaryDirectory(prefix="orlop-bench-", dir=args.folder) as folder:
                rounds.append(one_round(folder, size))
        f = {name: statistics.median(r[name] for r in rounds) for name in rounds[0]}
        report.row("rebuild of all / one replica written in order", f["whole"], "MiB/s", f["in order"], aim=">= 0.7")
        for name, what in (("1 %", "a replica misses 1 %: until it has it"), ("crash", "everything is killed: until all are in sync")):
            report.row(what, f[name], "s", **{"MiB sent": f[f"{name} sent"], "MiB read": f[f"{name} read"]})
        report.row("client's p99 with a rebuild / without", f["p99"], "ms", f["p99 before"], aim="<= 3")
        report.row("slowest write while a replica freezes", f["frozen"], "ms", aim="<= 500")
        report.row("p99.9 of writes while a replica is killed", f["killed"], "ms", aim="<= 50")
        report.row("target killed to first I/O", f["restart"], "s", aim="<= 1")


if __name__ == "__main__":
    main()
