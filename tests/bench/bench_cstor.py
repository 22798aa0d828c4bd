#!/usr/bin/env python3
"""cStor volumes as users get them, against tgt with one plain file on the same disk.

`orlop up` runs three nodes with its data folder on a disk and a pool of one sparse disk on each; a volume has three replicas with
blocks of 4 KiB and keys, and the client reaches it at the address of its Service. tgt serves a sparse file beside that folder,
without replicas, checksums or encryption. The client is `orlop bench`; rounds take turns. The memory is that of a pool's process:
before the volume is written to, and the most while it is.

`rebuild` is a replica that is made anew, against the same pool written in order through a volume with one replica.
`many` makes small volumes with three replicas all at once, waits until all are Healthy, and deletes them.
"""
import collections
import os
import shutil
import sys
import tempfile
import time

from bench_volume import MI, RANDOM, READS, SEQUENTIAL, WARM, File, load, show, size_text, words_of
from measure import PROGRAMS, TOP, disk_folder, memory, processor, turns
from peers import bench
from report import Report, arguments, parse
from cstor import NS, CStor, volume  # noqa: I001
from namespaces import own_network
from tap import wait_for

AIMS = {READS: ">= 1.3", RANDOM: ">= 0.4", SEQUENTIAL: ">= 0.5"}
BUSY_AIM, IDLE_AIM, REBUILD_AIM = "<= 256", "<= 40", ">= 0.5"
MANY_AIM, MANY_MEMORY_AIM = "<= 30", "<= 12"
PATIENCE = 300


class Volume:
    """A CStorVolume of a running system."""

    def __init__(self, system, name, factor, size):
        self.system, self.id, self.factor, self.size = system, name, factor, size
        self.name = "1 replica" if factor == 1 else f"{factor} replicas"
        made = system.apply(volume(name, f"{size // MI}Mi", factor))
        if made.returncode or not system.healthy(name, factor, PATIENCE):
            raise RuntimeError(f"{name} is not healthy: {made.stderr} {system.describe(name)}")

    def url(self):
        return self.system.url(self.id)

    def pools(self):
        return [self.system.pool_process(p) for p in self.system.pools_with(self.id)]

    def parts(self):
        return {"target": [self.system.target(self.id)], "replicas": self.pools()}

    def remove(self):
        self.system.kubectl("delete", "cv", self.id, "-n", NS, "--wait=false")
        if not wait_for(lambda: not self.system.volume(self.id), PATIENCE):
            raise RuntimeError(f"{self.id} is not gone: {self.system.describe(self.id)}")


def measure_load(report, targets, args, span):
    for work in (READS, RANDOM, SEQUENTIAL):
        name = f"{work.name}, {size_text(span)}"
        if not report.wants(name):
            continue
        rounds = collections.defaultdict(list)
        for target in turns(targets, args.rounds):
            rounds[target.name].append(load(target, args.folder, words_of(work, span, "-t", str(args.seconds), "-w", str(WARM))))
        show(report, name, work, rounds, {"3 replicas": AIMS[work]})


def measure_rebuild(report, system, args, span):
    """One replica more: everything is copied to a pool that has nothing of it."""
    if not report.wants("rebuild"):
        return
    alone = Volume(system, "alone", 1, span)
    began = time.monotonic()
    bench(alone.url(), ["--fill", "-b", "1Mi", "-p", "sequential", "-r", "0", "-q", "8"])
    written = span / MI / (time.monotonic() - began)
    began = time.monotonic()
    system.edit("alone", {"desiredReplicationFactor": 2})
    if not system.healthy("alone", 2, PATIENCE):
        raise RuntimeError(f"alone has no second replica: {system.describe('alone')}")
    report.row(f"rebuild of {size_text(span)}", span / MI / (time.monotonic() - began), "MiB/s", written, aim=REBUILD_AIM)
    alone.remove()


def measure_many(report, system, args):
    if not report.wants("many"):
        return
    names = [f"many-{i}" for i in range(args.many)]
    before = sum(memory(system.pool_process(p["metadata"]["name"])) for p in system.pools_of())
    began = time.monotonic()
    system.apply(*(volume(n, "64Mi") for n in names))

    def healthy():
        items = {v["metadata"]["name"]: v.get("status", {}).get("phase") for v in system.list("cstorvolumes")}
        return all(items.get(n) == "Healthy" for n in names)

    if not wait_for(healthy, PATIENCE):
        raise RuntimeError(f"not all of {args.many} volumes are healthy")
    report.row(f"many: {args.many} volumes until all are Healthy", time.monotonic() - began, "s", aim=MANY_AIM)
    targets = [p for n in names for p in system.pids("orlop-target", n)]
    sidecars = [p for n in names for p in system.pids("orlop-sidecar", n)]
    pools = sum(memory(system.pool_process(p["metadata"]["name"])) for p in system.pools_of()) - before
    used = sum(map(memory, targets)) + sum(map(memory, sidecars)) + pools
    report.row("many: memory of an idle volume", used / args.many, "MB", aim=MANY_MEMORY_AIM)
    pids = targets + sidecars + [system.pool_process(p["metadata"]["name"]) for p in system.pools_of()]
    start, then = time.monotonic(), sum(map(processor, pids))
    wait_for(lambda: time.monotonic() - start > args.seconds * 5, 60)
    report.row("many: processor of all of them, idle", (sum(map(processor, pids)) - then) / (time.monotonic() - start), "cores")
    began = time.monotonic()
    system.kubectl("delete", "cv", "-n", NS, "--wait=false", *names)
    if not wait_for(lambda: not any(v["metadata"]["name"].startswith("many-") for v in system.list("cstorvolumes")), PATIENCE):
        raise RuntimeError("not all volumes are gone")
    report.row(f"many: {args.many} volumes until all are gone", time.monotonic() - began, "s", aim=MANY_AIM)


def measure(report, folder, args):
    span, peers = args.span, []
    with CStor(f"{PROGRAMS}/orlop", f"{folder}/system", "--nodes", "3") as system:
        if not system.make_pools():
            raise RuntimeError(f"the pools are not online: {system.pools_of()}")
        pools = [system.pool_process(p["metadata"]["name"]) for p in system.pools_of()]
        if report.wants("memory"):
            report.row("memory of an idle pool", max(map(memory, pools)), "MB", aim=IDLE_AIM)
        try:
            if shutil.which("tgtd"):
                peers.append(File(folder, 0, span))
                peers[0].start()
            else:
                print("  tgt is not installed: there is nothing to compare with")
            peers.append(Volume(system, "bench", 3, span))
            for peer in peers:
                bench(peer.url(), ["--fill", "-b", "1Mi", "-p", "sequential", "-r", "0", "-q", "8"])
            measure_load(report, peers, args, span)
            if report.wants("memory"):
                report.row("memory of a pool after that", max(map(memory, pools)), "MB", aim=BUSY_AIM)
            peers[-1].remove()
            measure_rebuild(report, system, args, span)
            measure_many(report, system, args)
        finally:
            if peers and peers[0].name == "tgt":
                peers[0].stop()


def main():
    parser = arguments(3, __doc__)
    parser.add_argument("--seconds", type=float, help="of each measurement (2)")
    parser.add_argument("--folder", default=f"{TOP}/build/bench/data", help="on a disk, with 10 GiB free (below build)")
    parser.add_argument("--span", type=int, help="in MiB (1024)")
    parser.add_argument("--many", type=int, help="volumes at once (200)")
    args = parse(parser)
    args.seconds = args.seconds or (0.5 if args.quick else 2)
    args.span = (args.span or (128 if args.quick else 1024)) * MI
    args.many = args.many or (6 if args.quick else 200)
    disk_folder(args.folder)
    if shutil.disk_usage(args.folder).free < 10 << 30:
        sys.exit(f"{args.folder} has less than 10 GiB free: name another with --folder DIR")
    if not own_network():
        sys.exit("no network namespaces here: run it as root")
    with Report("cstor", "cStor volumes of an installed system, on a disk, with keys", args, "tgt", folder=args.folder,
                variants=["3 replicas"], columns=["of limit"]) as report:
        folder = tempfile.mkdtemp(prefix="orlop-bench-", dir=args.folder)
        try:
            measure(report, folder, args)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
