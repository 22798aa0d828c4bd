#!/usr/bin/env python3
"""The data path of replicated volumes alone, with files in memory, against tgt without replication.

One and three replicas over TCP on this machine, with keys; the client is `orlop bench`, and rounds take turns. It shows what the
programs cost where a disk costs nothing; bench_volume.py measures what users get.
"""
import os
import shutil
import subprocess
import tempfile

from bench_iscsi import CELLS
from measure import PROGRAMS, free_port, medians, memory, processor, turns
from peers import IQN, SIZE, Peer, Tgt
from report import Report, arguments, parse

# Ours to the peer's.
AIMS = {
    "4K random write QD1": {},
    "4K random write QD32": {("orlop1", "tgt"): ">= 1.5", ("orlop3", "tgt"): ">= 1.05", ("orlop3", "orlop1"): ">= 0.65"},
    "4K random read QD32": {("orlop3", "tgt"): ">= 1.3"},
    "128K sequential write QD32": {("orlop1", "tgt"): ">= 1.35", ("orlop3", "tgt"): ">= 0.65"},
    "128K sequential read QD32": {},
}


class Replicated(Peer):
    """A target and its replicas, each a process."""

    replicas = 1

    def start(self):
        os.unlink(self.file)
        port, self.keepers, key = free_port(), [], f"{self.folder}/{self.name}.key"
        with open(key, "w", encoding="ascii") as file:
            file.write(os.urandom(32).hex() + "\n")
        os.chmod(key, 0o600)
        for i in range(self.replicas):
            with open(f"{self.folder}/{self.name}-{i}.log", "w", encoding="utf-8") as log:
                self.keepers.append(subprocess.Popen(
                    [f"{PROGRAMS}/orlop-replica", "replica", "serve", "--dir", f"{self.folder}/{self.name}-{i}",
                     "--target", f"127.0.0.1:{port}", "--volume", self.name, "--key-file", key], stdout=log, stderr=log))
        self.spawn(f"{PROGRAMS}/orlop-target", "target", "serve", "--volume", self.name, "--create", "--replicas",
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
    spent = [(b - a) / max(iops * (seconds + 0.2), 1) * 1e5 for a, b in zip(before, used(peer))]
    rss = max(memory(p.pid) for p in [peer.process, *getattr(peer, "keepers", [])])
    return {"iops": iops, "p50": p50, "p99": p99, "cpu": spent[0], "replicas": spent[1], "rss": rss}


def measure(report, peers, args):
    largest = []
    for name in filter(report.wants, AIMS):
        rounds = {p.name: [] for p in peers}
        for peer in turns(peers, args.rounds):
            rounds[peer.name].append(one_round(peer, CELLS[name], args.seconds))
        found = {p: medians(rows) for p, rows in rounds.items()}
        scale, unit = (CELLS[name][0] / 1e6, "MB/s") if CELLS[name][0] > 65536 else (1, "/s")
        for ours, peer in (("orlop1", "tgt"), ("orlop3", "tgt"), ("orlop3", "orlop1")):
            if peer in found:
                f, aim = found[ours], AIMS[name].get((ours, peer))
                report.row(f"{name}: {ours} / {peer}", f["iops"] * scale, unit, found[peer]["iops"] * scale, aim=aim,
                           p50=f["p50"], p99=f["p99"])
        if name == "4K random write QD32":
            row = found["orlop3"]
            report.row(f"{name}: target's CPU for 100,000, three replicas", row["cpu"], "s", aim="<= 2.0")
            report.row(f"{name}: replicas' CPU for 100,000, together", row["replicas"], "s", aim="<= 1.8")
        largest += [f["rss"] for p, f in found.items() if p != "tgt"]
    if largest:
        report.row("largest process", max(largest), "MB", aim="<= 32")


def main():
    parser = arguments(5, __doc__)
    parser.add_argument("--seconds", type=float)
    args = parse(parser)
    args.seconds = args.seconds or (0.3 if args.quick else 1.5)
    kinds = [One, Three] + ([Tgt] if shutil.which("tgtd") else [])
    with Report("replication", "Replicated volumes, files of 256 MiB in memory", args, "peer") as report:
        folder, peers = tempfile.mkdtemp(prefix="orlop-bench-", dir="/dev/shm"), []
        try:
            for number, kind in enumerate(kinds):
                peers.append(kind(folder, 40 + number))
                peers[-1].start()
            measure(report, peers, args)
        finally:
            for peer in peers:
                peer.stop()
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
