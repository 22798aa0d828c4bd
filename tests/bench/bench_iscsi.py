#!/usr/bin/env python3
"""orlop-target against tgt, istgt and nbdkit: the same load on the same kind of file, in one run.

Every figure is the median of rounds that take turns over the targets. The client is `orlop bench`
for iSCSI, and fio for NBD (nbdkit), on the same machine. A peer that is not installed is left out. At
queue depth 1 client and target, ours and the peers', share one processor: on a virtual machine it takes an
idle processor up to 40 us to wake, and where the scheduler puts them would decide, not what they do.

Our two back ends are compared with each other on one file, started anew for each round: the same program on two files, one
made before the other, differs by more than a tenth.
"""
import os
import shutil
import tempfile

from measure import free_port, medians, memory, processor, sync_disk, turns
from peers import Epoll, Istgt, Nbdkit, Ours, Tgt
from report import Report, arguments, parse

# name: block, pattern, percent of reads, depth, sessions
CELLS = {
    "4K random read QD1": (4096, "random", 100, 1, 1),
    "4K random write QD1": (4096, "random", 0, 1, 1),
    "4K random read QD32": (4096, "random", 100, 32, 1),
    "4K random write QD32": (4096, "random", 0, 32, 1),
    "4K random read 4xQD32": (4096, "random", 100, 32, 4),
    "4K random write 4xQD32": (4096, "random", 0, 32, 4),
    "128K sequential read QD32": (131072, "sequential", 100, 32, 1),
    "128K sequential write QD32": (131072, "sequential", 0, 32, 1),
    "128K sequential read 4xQD32": (131072, "sequential", 100, 32, 4),
    "128K sequential write 4xQD32": (131072, "sequential", 0, 32, 4),
}

# (cell, figure, peer): the ratio of ours to the peer's, memory-backed
AIMS = {
    ("4K random read QD32", "iops", "tgt"): ">= 2.0",
    ("4K random read QD32", "iops", "nbdkit"): ">= 1.4",
    ("4K random write QD32", "iops", "tgt"): ">= 2.0",
    ("4K random write QD32", "iops", "nbdkit"): ">= 1.4",
    ("128K sequential read QD32", "iops", "tgt"): ">= 3.0",
    ("128K sequential write QD32", "iops", "tgt"): ">= 1.5",
    ("4K random read QD1", "p50", "tgt"): "<= 0.5",
    ("4K random read QD1", "p50", "nbdkit"): "<= 1.0",
    ("4K random write QD1", "p50", "tgt"): "<= 0.5",
    ("4K random write QD1", "p50", "nbdkit"): "<= 1.0",
    ("4K random read QD32", "cpu", "tgt"): "<= 0.33",
    ("4K random write QD32", "cpu", "tgt"): "<= 0.33",
}
FIGURES = {"iops": "/s", "p50": "us", "cpu": "s of CPU for 100,000"}


def pin(pid, cpus):
    """All threads of a process."""
    for task in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(task), cpus)


def one_round(peer, cell, seconds):
    all_cpus = os.sched_getaffinity(0)
    cpus = {0} if cell[3] == 1 else all_cpus
    before = processor(peer.process.pid)
    pin(peer.process.pid, cpus)
    os.sched_setaffinity(0, cpus)  # and so the client's
    try:
        iops, p50, p99 = peer.load(cell, seconds)
    finally:
        os.sched_setaffinity(0, all_cpus)
    used = processor(peer.process.pid) - before
    # The warm-up is in the processor time, so it is in the number of I/Os too.
    return {"iops": iops, "p50": p50, "p99": p99, "cpu": used / max(iops * (seconds + 0.2), 1) * 1e5,
            "rss": memory(peer.process.pid)}


def unit_of(name):
    block = CELLS[name][0]
    return (block / 1e6, "MB/s") if block > 65536 else (1, "/s")


def show(report, store, name, row):
    """The rate beside tgt's; and what there is an aim for besides."""
    scale, unit = unit_of(name)
    ours, tgt = row["orlop"], row.get("tgt", {})
    aims = AIMS if store == "memory" else {}
    report.row(f"{store}: {name}", ours["iops"] * scale, unit, tgt.get("iops", 0) * scale or None,
               aim=aims.get((name, "iops", "tgt")) if tgt else None, p50=ours["p50"], p99=ours["p99"], MB=ours["rss"],
               **{p: f["iops"] * scale for p, f in row.items() if p not in ("orlop", "tgt")})
    for (cell, figure, peer), aim in aims.items():
        if cell == name and peer in row and (figure, peer) != ("iops", "tgt") and row[peer][figure]:
            report.row(f"{store}: {name}, {figure} / {peer}'s", ours[figure], FIGURES[figure],
                       row[peer][figure], aim=aim)


def measure(report, store, peers, args):
    found = {}
    for name in filter(report.wants, CELLS):
        rounds = {p.name: [] for p in peers}
        for peer in turns(peers, args.rounds):
            sync_disk(peer.folder)  # or the kernel writes out in this round what earlier ones have written
            rounds[peer.name].append(one_round(peer, CELLS[name], args.seconds))
        found[name] = {p: medians(rows) for p, rows in rounds.items()}
        show(report, store, name, found[name])
    return found


def compare_back_ends(report, store, folder, file, args):
    peers = [kind(folder, number, file) for number, kind in enumerate((Ours, Epoll))]
    for name in filter(report.wants, CELLS):
        rounds = {p.name: [] for p in peers}
        for peer in turns(peers, args.rounds):
            sync_disk(folder)
            peer.port = free_port()  # the kernel may still listen for the one that was killed last
            peer.start()
            try:
                rounds[peer.name].append(one_round(peer, CELLS[name], args.seconds))
            finally:
                peer.stop()
        ours, epoll = (medians(rounds[p.name]) for p in peers)
        scale, unit = unit_of(name)
        report.row(f"{store}: {name}, default back end / epoll", ours["iops"] * scale, unit, epoll["iops"] * scale, aim=">= 0.9",
                   **{"CPU / epoll's": ours["cpu"] / epoll["cpu"]})


def show_whole(report, store, found, idle):
    for how in ("read", "write"):
        one, four = found.get(f"4K random {how} QD32"), found.get(f"4K random {how} 4xQD32")
        if one and four:
            report.row(f"{store}: 4K random {how}, four sessions / one", four["orlop"]["iops"], "/s",
                       ratio=four["orlop"]["iops"] / one["orlop"]["iops"], aim=">= 1.0")
    report.row(f"{store}: memory, idle", idle, "MB", aim="<= 8")
    busy = [f["orlop"]["rss"] for n, f in found.items() if "4x" in n]
    if busy:
        report.row(f"{store}: memory after four sessions of depth 32", max(busy), "MB", aim="<= 32")


def main():
    parser = arguments(5, __doc__)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--stores", default="memory,disk")
    parser.add_argument("--back-ends", action="store_true", help="compare our back ends only; nothing is saved")
    args = parse(parser)
    args.only = args.only or (" " if args.back_ends else "")
    args.seconds = args.seconds or (0.3 if args.quick else 1.5)
    kinds = []
    for kind in (Ours,) if args.back_ends else (Ours, Tgt, Istgt, Nbdkit):
        missing = [p for p in (kind.needs, "fio" if kind is Nbdkit else "") if p and not shutil.which(p)]
        if missing:
            print(f"iSCSI: {kind.name} is left out: {missing[0]} is not installed")
        else:
            kinds.append(kind)
    with Report("iscsi", "iSCSI targets, a file of 256 MiB in memory and on a disk", args, "tgt") as report:
        for store in args.stores.split(","):
            folder = tempfile.mkdtemp(prefix="orlop-bench-", dir="/dev/shm" if store == "memory" else "/var/tmp")
            peers = []
            try:
                for number, kind in enumerate(kinds):
                    peer = kind(folder, number)
                    peer.start()
                    peers.append(peer)
                idle = memory(peers[0].process.pid)
                found = {} if args.back_ends else measure(report, store, peers, args)
                if store == "memory" and found:
                    show_whole(report, store, found, idle)
                peers.pop(0).stop()
                compare_back_ends(report, store, folder, os.path.join(folder, "orlop.volume"), args)
            finally:
                for peer in peers:
                    peer.stop()
                shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
