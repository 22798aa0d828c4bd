#!/usr/bin/env python3
"""JivaVolumes as users get them, against tgt with one plain file on the same disk.

`orlop up` runs three nodes with its data folder on a disk; the volumes have one and three replicas and keys, and the client
reaches them at the address of their Service. tgt serves a sparse file beside that folder, without replicas or encryption.
The client is `orlop bench`; rounds take turns over the three, and the disk is synced before each, and before writes the
page cache is emptied: what the others keep there is more than the machine has. Everything runs in a network of its own.

  fresh     volumes that were just made, for each round
  written   volumes that were written from end to end before
  flushes   the client flushes after every 32 writes

A row's CPU is processor time in microseconds of each I/O: of the target, of all replicas together, of the nodes' agents
if they pass on what comes to the Service's address (they do not where the target itself has that address), and of the
client. `of limit` is the rate as a share of what the processors could do if they did nothing else than that.
"""
import collections
import os
import shutil
import signal
import sys
import tempfile
import time

from measure import PROGRAMS, TOP, Syncs, disk_folder, forget_files, medians, memory, processor, sync_disk, turns
from peers import Tgt, bench
from report import Report, arguments, parse
from jiva import Jiva, volume  # noqa: I001
from namespaces import own_network
from system import processes
from tap import run, wait_for

MI = 1 << 20
WARM = 0.3
Work = collections.namedtuple("Work", "name block pattern reads depth")
SEQUENTIAL = Work("128K sequential writes, depth 32", 128 << 10, "sequential", 0, 32)
LARGE = Work("1M sequential writes, depth 8", MI, "sequential", 0, 8)
RANDOM = Work("4K random writes, depth 32", 4096, "random", 0, 32)
SINGLE = Work("4K random writes, depth 1", 4096, "random", 0, 1)
READS = Work("4K random reads, depth 32", 4096, "random", 100, 32)
FLUSHES = 32
# Of three replicas to tgt, in volumes that were written; with one replica all have to be as fast as tgt.
AIMS = {SEQUENTIAL: ">= 0.6", LARGE: ">= 0.5", RANDOM: ">= 0.6", SINGLE: ">= 0.5", READS: ">= 1.5"}
ONE_AIM = ">= 1.0"
SYNCS_AIM, RECOVERY_AIM = "<= 20", "<= 10"


def size_text(n):
    return f"{n >> 30} GiB" if n >= 1 << 30 else f"{n >> 20} MiB"


class Replicated:
    """A JivaVolume of a running system."""

    def __init__(self, system, name, factor, size):
        self.system, self.id, self.factor, self.size = system, name, factor, size
        self.name = "1 replica" if factor == 1 else f"{factor} replicas"
        self.make()

    def make(self):
        made = self.system.apply(volume(self.id, f"{self.size // MI}Mi", self.factor,
                                        **{"jiva.openebs.io/reclaim-policy": "Delete"}))
        if made.returncode or not self.system.ready(self.id, self.factor):
            raise RuntimeError(f"{self.id} is not ready: {made.stderr} {self.system.volume(self.id)}")

    def url(self):
        return self.system.url(self.id)  # with what a login needs

    def parts(self):
        """role -> processes"""
        return {"target": [self.system.target(self.id)], "replicas": list(self.system.replicas(self.id).values()),
                "nodes": [p["pid"] for p in self.system.status()["programs"] if p["name"].startswith("node-")]}

    def fresh(self, size):
        return Replicated(self.system, f"{self.id}-fresh", self.factor, size)

    def remove(self):
        self.system.kubectl("delete", "jivavolume", self.id, "--wait=false")
        if not wait_for(lambda: not self.system.volume(self.id), 120):
            raise RuntimeError(f"{self.id} is not gone: {self.system.volume(self.id)}")


class File(Tgt):
    """A sparse file behind tgt."""

    def __init__(self, folder, number, size):
        self.size = size
        super().__init__(folder, number)

    def fill(self):
        with open(self.file, "wb") as file:
            file.truncate(self.size)

    def parts(self):
        return {"target": [self.process.pid]}

    def fresh(self, size):
        """A tgt of its own."""
        folder = os.path.join(self.folder, "fresh")
        os.mkdir(folder)
        made = File(folder, self.number + 1, size)
        made.start()
        return made

    def remove(self):
        self.stop()
        shutil.rmtree(self.folder)


def load(target, folder, words):
    """One run of the client, and what it took."""
    sync_disk(folder)
    if words[words.index("-r") + 1] == "0":
        forget_files()
    pids = target.parts()
    before = {role: sum(map(processor, found)) for role, found in pids.items()}
    said = bench(target.url(), words)
    used = {role: sum(map(processor, found)) - before[role] for role, found in pids.items()}
    used["client"] = said["cpuSeconds"]
    warm = WARM if "-w" in words else 0
    each = 1e6 / max(said["iops"] * (said["seconds"] + warm), 1)
    figures = {f"CPU {role}": seconds * each for role, seconds in used.items() if seconds or role != "nodes"}
    limit = os.cpu_count() * 1e6 / max(sum(figures.values()), 1e-9)
    return {"iops": said["iops"], "p50": said["latencyMicroseconds"]["all"]["p50"],
            "p99": said["latencyMicroseconds"]["all"]["p99"], **figures, "of limit": said["iops"] / limit,
            "MB": max(memory(pid) for role, found in pids.items() if role != "nodes" for pid in found)}


def words_of(work, span, *more):
    return ["-b", str(work.block), "-p", work.pattern, "-r", str(work.reads), "-q", str(work.depth), "--span", str(span), *more]


def show(report, name, work, rounds, aims):
    """A row for each of ours."""
    found = {peer: medians(rows) for peer, rows in rounds.items()}
    scale, unit = (work.block / 1e6, "MB/s") if work.block > 65536 else (1, "/s")
    tgt = found.pop("tgt", None)
    for peer, f in found.items():
        report.row(f"{name}: {peer}", f.pop("iops") * scale, unit, tgt["iops"] * scale if tgt else None,
                   aim=aims.get(peer) if tgt else None, **f, **({"tgt's p50": tgt["p50"], "tgt's CPU": tgt["CPU target"]} if tgt else {}))


def measure_written(report, targets, args, span):
    for work in (SEQUENTIAL, LARGE, RANDOM, SINGLE, READS):
        for flush in ("", f", a flush every {FLUSHES}"):
            name = f"{work.name}, {size_text(span)}{flush}"
            few = span == 256 * MI and (flush or work not in (SEQUENTIAL, RANDOM))
            if few or (flush and work in (LARGE, READS)) or not report.wants(name):
                continue
            more = ["-t", str(args.seconds), "-w", str(WARM), *(["--flush-every", str(FLUSHES)] if flush else [])]
            rounds = collections.defaultdict(list)
            for target in turns(targets, args.rounds):
                rounds[target.name].append(load(target, args.folder, words_of(work, span, *more)))
            aims = {} if flush else {"1 replica": ONE_AIM, "3 replicas": AIMS[work]}
            show(report, name, work, rounds, aims)


def measure_fresh(report, targets, args, span):
    for work in (SEQUENTIAL, RANDOM):
        name = f"{work.name}, {size_text(span)}, fresh"
        if not report.wants(name):
            continue
        # What is written twice is not fresh the second time.
        count = span // work.block if work.pattern == "sequential" else span // work.block // 4
        rounds = collections.defaultdict(list)
        for target in turns(targets, args.rounds):
            made = target.fresh(span)
            try:
                rounds[target.name].append(load(made, args.folder, words_of(work, span, "-n", str(count), "-t",
                                                                            str(args.seconds))))
            finally:
                made.remove()
        show(report, name, work, rounds, {})


def measure_syncs(report, targets, args, span):
    """How often a replica syncs a file, once it has been written to for a while: for long enough that what replicas sync by
    themselves, every half a minute, has its share."""
    for target in targets:
        name = f"syncs of a replica for 1,000 random writes of 4K, {size_text(span)}: {target.name}"
        if target.name == "tgt" or not report.wants(name):
            continue
        bench(target.url(), words_of(RANDOM, span, "-t", str(2 * args.seconds)))
        with Syncs(args.folder, target.parts()["replicas"]) as syncs:
            writes = bench(target.url(), words_of(RANDOM, span, "-t", "2" if args.quick else "32"))["ios"]
        if syncs.count is None:
            print(f"  {name}: not known; it takes perf, and a file system with a trace point")
        else:
            report.row(name, syncs.count * 1000 / writes / target.factor, "", aim=SYNCS_AIM)


def kill_all(system):
    """Everything of the system at once."""
    system.stop(signal.SIGKILL)
    while (left := processes(system.folder)):
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def measure_recovery(report, system, target, args, span):
    name = f"everything is killed while {size_text(span)} are written: {target.name}"
    if not report.wants(name):
        return
    client = system.bench(target.id, *words_of(RANDOM, span, "-t", "60"), wait=False)
    wait_for(lambda: processor(client.pid) > 0.2)
    kill_all(system)
    client.kill()
    client.communicate()
    began = time.monotonic()
    system.start()
    started = time.monotonic() - began
    if not wait_for(lambda: run(f"{PROGRAMS}/orlop", "bench", "iscsi", target.url(), "-r", "0", "-n", "1").returncode == 0, 120):
        raise RuntimeError(f"{target.id} takes no writes: {system.volume(target.id)}")
    first = time.monotonic() - began
    if not system.ready(target.id, target.factor):
        raise RuntimeError(f"{target.id} has not recovered: {system.volume(target.id)}")
    report.row(f"{name}, until the first write", first, "s", aim=RECOVERY_AIM, **{"API server": started})
    report.row(f"{name}, until all replicas are in sync", time.monotonic() - began, "s")


def measure(report, folder, args):
    largest, peers = args.spans[-1], []
    with Jiva(f"{PROGRAMS}/orlop", f"{folder}/system", "--nodes", "3") as system:
        try:
            if shutil.which("tgtd"):
                peers.append(File(folder, 0, largest))
                peers[0].start()
            else:
                print("  tgt is not installed: there is nothing to compare with")
            peers += [Replicated(system, f"bench-{n}", n, largest) for n in (1, 3)]
            for span in (s for s in args.spans if s != 256 * MI):
                measure_fresh(report, peers, args, span)
            for peer in peers:
                bench(peer.url(), ["--fill", "-b", "1Mi", "-p", "sequential", "-r", "0", "-q", "8"])
            for span in args.spans:
                measure_written(report, peers, args, span)
            measure_syncs(report, peers, args, largest)
            measure_recovery(report, system, peers[-1], args, largest)
        finally:
            if peers and peers[0].name == "tgt":
                peers[0].stop()


def main():
    parser = arguments(5, __doc__)
    parser.add_argument("--seconds", type=float, help="of each measurement (2)")
    parser.add_argument("--folder", default=f"{TOP}/build/bench/data", help="on a disk, with 25 GiB free (below build)")
    parser.add_argument("--spans", help="in MiB (64,256,1024,4096)")
    args = parse(parser)
    args.seconds = args.seconds or (0.5 if args.quick else 2)
    args.spans = [int(n) * MI for n in (args.spans or ("64,256" if args.quick else "64,256,1024,4096")).split(",")]
    disk_folder(args.folder)
    needed, free = 6 * args.spans[-1], shutil.disk_usage(args.folder).free
    if free < needed:
        sys.exit(f"{args.folder} has {free >> 30} GiB free and {needed >> 30} GiB are needed: name another with --folder DIR")
    if not own_network():
        sys.exit("no network namespaces here: run it as root")
    with Report("volume", "JivaVolumes of an installed system, on a disk, with keys", args, "tgt", folder=args.folder,
                variants=["1 replica", "3 replicas"], columns=["of limit"]) as report:
        folder = tempfile.mkdtemp(prefix="orlop-bench-", dir=args.folder)
        try:
            measure(report, folder, args)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
