#!/usr/bin/env python3
"""Volumes of a pool against fio with io_uring on a file beside it: ratios, turn and turn about.

bench_zpool.py [SECONDS]     of each measurement; 3 unless told
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
LOAD = os.path.join(TOP, "build", "release", "tests", "bench", "zpoolload")
ROUNDS = 3
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


def main():
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 3
    subprocess.run(["ninja", "-C", os.path.join(TOP, "build", "release"), "--quiet",
                    "tests/bench/zpoolload"], check=True)
    with tempfile.TemporaryDirectory(dir=os.path.join(TOP, "build")) as folder:
        with open(os.path.join(folder, "raw"), "wb") as raw:
            for _ in range(1024):
                raw.write(os.urandom(1 << 20))
        idle = subprocess.run([LOAD, os.path.join(folder, "pool"), "idle"], check=True,
                              capture_output=True, text=True).stdout
        print("memory in kB and threads:", idle.replace("\n", "; ").strip("; "))
        print(f"load average {os.getloadavg()[0]:.1f}; the middle of {ROUNDS} rounds")
        for name, operation, size, flush in PATTERNS:
            for workers in (1, 4):
                ratios, rates, peer, cpu, memory = [], [], [], [], 0
                for _ in range(ROUNDS):
                    raw = fio(folder, operation, size, workers, flush, seconds)
                    rate, micros, kilobytes, threads = ours(folder, operation, size, workers, flush,
                                                            seconds)
                    ratios.append(rate / raw)
                    rates.append(rate)
                    peer.append(raw)
                    cpu.append(micros)
                    memory = max(memory, kilobytes)
                print(f"{name}, {workers} workers: {statistics.median(rates):.0f}/s, fio "
                      f"{statistics.median(peer):.0f}/s, ratio {statistics.median(ratios):.2f}, "
                      f"{statistics.median(cpu):.0f} us of CPU each, {memory / 1024:.0f} MB")


if __name__ == "__main__":
    main()
