#!/usr/bin/env python3
"""A volume through `orlop attach`, which is FUSE and a loop device, against libiscsi alone: one target, one run.

The client of the device is fio, that of libiscsi `orlop bench`; both take completions and submit anew in batches,
at the same depth. Every figure is the median of rounds that take turns. The ratio is what the way through the
kernel and back leaves. The time of processors that the attaching process takes is beside it.
"""
import json
import os
import shutil
import signal
import tempfile

from measure import PROGRAMS, medians, processor, turns
from report import Report, arguments, parse
from attached import Node
from iscsi_target import Target
from tap import run

# name: block, fio's pattern, ours, percent of reads, depth, aim of the ratio
CELLS = {
    "4K random read QD32": (4096, "randread", "random", 100, 32, ">= 0.6"),
    "4K random write QD32": (4096, "randwrite", "random", 0, 32, ">= 0.6"),
    "128K sequential read QD32": (131072, "read", "sequential", 100, 32, ">= 0.6"),
    "128K sequential write QD32": (131072, "write", "sequential", 0, 32, ">= 0.6"),
    "4K random read QD1": (4096, "randread", "random", 100, 1, None),
    "4K random write QD1": (4096, "randwrite", "random", 0, 1, None),
}
SIZE = 256 << 20


class Direct:
    """libiscsi, in `orlop bench`."""
    name = "libiscsi"

    def __init__(self, target):
        self.target = target

    def load(self, cell, seconds):
        block, _, pattern, reads, depth, _ = cell
        said = run(f"{PROGRAMS}/orlop", "bench", "iscsi", self.target.url(), "-b", str(block), "-p", pattern, "-r",
                   str(reads), "-q", str(depth), "-w", "200ms", "-t", f"{seconds}s", "-o", "json")
        return {"iops": json.loads(said.stdout)["iops"], "cpu": 0}


class Attached:
    """The loop device, with fio."""
    name = "attach"

    def __init__(self, node, device):
        self.node, self.device = node, device

    def load(self, cell, seconds):
        block, pattern, _, _, depth, _ = cell
        worker = self.node.process("bench")["worker"]
        before = processor(worker)
        said = run("fio", "--name=load", f"--filename={self.device}", f"--size={SIZE}", "--direct=1", "--ioengine=io_uring",
                   "--fixedbufs", "--registerfiles", "--gtod_reduce=1", f"--bs={block}", f"--rw={pattern}",
                   f"--iodepth={depth}", f"--iodepth_batch_submit={max(depth // 2, 1)}",
                   f"--iodepth_batch_complete_min={max(depth // 4, 1)}", f"--iodepth_batch_complete_max={depth}",
                   "--norandommap", "--randrepeat=0", "--time_based", "--ramp_time=200ms", f"--runtime={seconds}s",
                   "--output-format=json")
        job = json.loads(said.stdout)["jobs"][0]
        iops = job["read"]["iops"] + job["write"]["iops"]
        return {"iops": iops, "cpu": (processor(worker) - before) / max(iops * (seconds + 0.2), 1) * 1e5}


def measure(report, peers, args):
    for name in filter(report.wants, CELLS):
        rounds = {p.name: [] for p in peers}
        for peer in turns(peers, args.rounds):
            rounds[peer.name].append(peer.load(CELLS[name], args.seconds))
        found = {p: medians(rows) for p, rows in rounds.items()}
        block, aim = CELLS[name][0], CELLS[name][5]
        scale, unit = (block / 1e6, "MB/s") if block > 65536 else (1, "/s")
        report.row(name, found["attach"]["iops"] * scale, unit, found["libiscsi"]["iops"] * scale, aim=aim,
                   **{"s of CPU for 100,000": found["attach"]["cpu"]})


def main():
    parser = arguments(5, __doc__)
    parser.add_argument("--seconds", type=float)
    args = parse(parser)
    args.seconds = args.seconds or (0.5 if args.quick else 2)
    folder = tempfile.mkdtemp(prefix="orlop-bench-", dir="/dev/shm")
    node = Node(f"{PROGRAMS}/orlop-attach", os.path.join(folder, "node"))
    target = Target(f"{PROGRAMS}/orlop-target", folder, f"file:{folder}/data", str(SIZE))
    try:
        with Report("attach", "A volume as a block device: FUSE and a loop device", args, "libiscsi") as report, target:
            device = node.add("bench", target).stdout.strip()
            run("fio", "--name=fill", f"--filename={device}", "--direct=1", "--rw=write", "--bs=1M", f"--size={SIZE}")
            measure(report, [Attached(node, device), Direct(target)], args)
            node.ask("remove", "--id", "bench")
    finally:
        node.clear()
        if target.process:
            target.stop(signal.SIGKILL)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
