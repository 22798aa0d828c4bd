#!/usr/bin/env python3
"""Volumes of a pool against fio with io_uring on a file beside it: ratios, turn and turn about.
"""
import json
import os
import subprocess
import tempfile

from measure import BUILD, TOP, medians
from report import Report, arguments, parse

LOAD = os.path.join(BUILD, "tests", "bench", "zpoolload")
# name, operation, bytes, flush after
PATTERNS = [
    ("4K random write, flush each", "randwrite", 4096, 1),
    ("4K random write, flush every 32", "randwrite", 4096, 32),
    ("128K sequential write", "write", 131072, 0),
    ("128K sequential read", "read", 131072, 0),
]


def ours(folder, operation, size, workers, flush, seconds):
    path = os.path.join(folder, "pool")
    out = subprocess.run([LOAD, path, operation, str(size), str(workers), str(flush), str(seconds)],
                         check=True, capture_output=True, text=True).stdout.split()
    os.unlink(path)
    return [float(x) for x in out]


def fio(folder, operation, size, workers, flush, seconds):
    path = os.path.join(folder, "raw")
    command = ["fio", "--name=x", f"--filename={path}", "--size=1g", f"--rw={operation}",
               f"--bs={size}", "--ioengine=io_uring", "--iodepth=1", f"--numjobs={workers}", "--thread",
               "--time_based", f"--runtime={seconds}", "--group_reporting", "--output-format=json"]
    command += [f"--fdatasync={flush}"] if flush else ["--end_fsync=1"] if operation == "write" else []
    if operation == "read":
        command += ["--invalidate=0"]  # ours reads a file that was just written, too
    job = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["jobs"][0]
    return job["read" if operation == "read" else "write"]["iops"]


def measure(report, folder, args):
    for name, operation, size, flush in PATTERNS:
        for workers in (1, 4):
            row = f"{name}, {workers} worker" + "s" * (workers > 1)
            if not report.wants(row):
                continue
            rounds = []
            for _ in range(args.rounds):
                raw = fio(folder, operation, size, workers, flush, args.seconds)
                rate, micros, kilobytes, _ = ours(folder, operation, size, workers, flush, args.seconds)
                rounds.append({"rate": rate, "fio": raw, "cpu": micros, "mb": kilobytes / 1024})
            f = medians(rounds)
            report.row(row, f["rate"], "/s", f["fio"], **{"CPU us": f["cpu"], "MB": f["mb"]})


def main():
    parser = arguments(3, __doc__)
    parser.add_argument("--seconds", type=float)
    args = parse(parser)
    args.seconds = args.seconds or (1 if args.quick else 3)
    subprocess.run(["ninja", "-C", BUILD, "--quiet", "tests/bench/zpoolload"], check=True)
    with Report("zpool", "Volumes of a pool, against fio on a file beside it", args, "fio",
                folder=os.path.join(TOP, "build")) as report, tempfile.TemporaryDirectory(dir=os.path.join(TOP, "build")) as folder:
        with open(os.path.join(folder, "raw"), "wb") as raw:
            for _ in range(1024):
                raw.write(os.urandom(1 << 20))
        idle = subprocess.run([LOAD, os.path.join(folder, "pool"), "idle"], check=True,
                              capture_output=True, text=True).stdout
        print("  memory in kB and threads:", idle.replace("\n", "; ").strip("; "))
        measure(report, folder, args)


if __name__ == "__main__":
    main()
