#!/usr/bin/env python3
"""Replicated volumes against tgt without replication: the same load in one run.

One and three replicas over TCP on this machine, with keys, all with files in memory; the client is `orlop bench`. All
figures are medians of rounds that take turns.

bench_replication.py [--rounds N] [--seconds S] [--only TEXT]
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from bench_iscsi import BUILD, CELLS, IQN, SIZE, Peer, Tgt, free_port, memory, processor  # noqa: E402
from replicated import make_key  # noqa: E402

NAMES = ["4K random write QD1", "4K random write QD32", "4K random read QD32", "128K sequential write QD32",
         "128K sequential read QD32"]
# (cell, figure, ours, peer, at least or at most, ratio)
AIMS = [
    ("4K random write QD32", "iops", "orlop1", "tgt", ">=", 1.5),
    ("4K random write QD32", "iops", "orlop3", "tgt", ">=", 1.05),
    ("4K random write QD32", "iops", "orlop3", "orlop1", ">=", 0.65),
    ("4K random read QD32", "iops", "orlop3", "tgt", ">=", 1.3),
    ("128K sequential write QD32", "iops", "orlop1", "tgt", ">=", 1.35),
    ("128K sequential write QD32", "iops", "orlop3", "tgt", ">=", 0.65),
]


class Replicated(Peer):
    """A target and its replicas, each a process."""

    replicas = 1

    def start(self):
        os.unlink(self.file)
        port, self.keepers, key = free_port(), [], make_key(f"{self.folder}/{self.name}-key")
        for i in range(self.replicas):
            with open(f"{self.folder}/{self.name}-{i}.log", "w", encoding="utf-8") as log:
                self.keepers.append(subprocess.Popen(
                    [f"{BUILD}/cmd/orlop-replica", "replica", "serve", "--dir", f"{self.folder}/{self.name}-{i}",
                     "--target", f"127.0.0.1:{port}", "--volume", self.name, "--key-file", key],
                    stdout=log, stderr=log))
        self.spawn(f"{BUILD}/cmd/orlop-target", "target", "serve", "--volume", self.name, "--create", "--replicas",
                   str(self.replicas), "--size", str(SIZE), "--iqn", IQN, "--portal", f"127.0.0.1:{self.port}",
                   "--replica-listen", f"127.0.0.1:{port}", "--key-file", key)
        # As the peer's: a file that is all there.
        self.load((1 << 20, "sequential", 0, 8, 1), 1)

    def stop(self):
        for process in [self.process, *self.keepers]:
            process.kill()
            process.wait()


class One(Replicated):
    name, replicas = "orlop1", 1


class Three(Replicated):
    name, replicas = "orlop3", 3


def used(peer):
    """Processor seconds of the target, and of its replicas."""
    return processor(peer.process.pid), sum(processor(k.pid) for k in getattr(peer, "keepers", []))


def one_round(peer, cell, seconds):
    before = used(peer)
    iops, p50, p99 = peer.load(cell, seconds)
    spent = [(b - a) / (iops * (seconds + 0.2)) * 1e5 for a, b in zip(before, used(peer))]
    rss = max(memory(p.pid) for p in [peer.process, *getattr(peer, "keepers", [])])
    return {"iops": iops, "p50": p50, "p99": p99, "cpu": spent[0], "replicas": spent[1], "rss": rss}


def measure(peers, args):
    figures = {}
    for name in [n for n in NAMES if args.only in n]:
        rounds = {p.name: [] for p in peers}
        for number in range(args.rounds):
            for peer in peers[number % len(peers):] + peers[:number % len(peers)]:
                rounds[peer.name].append(one_round(peer, CELLS[name], args.seconds))
        figures[name] = {p: {f: statistics.median(r[f] for r in rows) for f in rows[0]}
                         for p, rows in rounds.items()}
        print(f"\n  {name}")
        for peer, f in figures[name].items():
            block = CELLS[name][0]
            rate = f"{f['iops'] * block / 1e6:8.0f} MB/s" if block > 65536 else f"{f['iops']:8.0f} IOPS"
            print(f"    {peer:8} {rate}  p50 {f['p50']:7.0f} us  p99 {f['p99']:7.0f} us  CPU {f['cpu']:5.2f} + "
                  f"{f['replicas']:5.2f} s/100k  largest process {f['rss']:4.0f} MB", flush=True)
    return figures


def judge(figures):
    print("\n  aims")

    def line(what, value, sign, aim, unit="x"):
        good = value >= aim if sign == ">=" else value <= aim
        print(f"    {what:52} {value:6.2f}{unit}  aim {sign} {aim}{unit}  {'reached' if good else 'NOT reached'}")
    for cell, figure, ours, peer, sign, aim in AIMS:
        row = figures.get(cell, {})
        if peer in row:
            line(f"{cell}: {ours} / {peer}", row[ours][figure] / row[peer][figure], sign, aim)
    row = figures.get("4K random write QD32", {}).get("orlop3")
    if row:
        line("target's CPU s per 100k writes, three replicas", row["cpu"], "<=", 2.0, " s")
        line("replicas' CPU s per 100k writes, together", row["replicas"], "<=", 1.8, " s")
    if figures:
        line("largest process", max(f[p]["rss"] for f in figures.values() for p in f if p != "tgt"), "<=", 32, " MB")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    kinds = [One, Three] + ([Tgt] if shutil.which("tgtd") else [])
    print(f"\nReplicated volumes, memory-backed files of 256 MiB, medians of {args.rounds}")
    folder, peers = tempfile.mkdtemp(prefix="orlop-bench-", dir="/dev/shm"), []
    try:
        for number, kind in enumerate(kinds):
            peers.append(kind(folder, 40 + number))
            peers[-1].start()
        judge(measure(peers, args))
    finally:
        for peer in peers:
            peer.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
