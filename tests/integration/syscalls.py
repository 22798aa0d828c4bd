#!/usr/bin/env python3
"""What one write of 4 KiB at queue depth 1 costs in system calls: a target with a file, and a target and a replica of a
volume that has three. A bound that is broken is a call that came back, or a wake-up that nobody needs.

syscalls.py PROGRAMS
"""
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from iscsi_target import ReplicatedTarget, Target  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402

programs, WRITES = sys.argv[1], 1000
tap = Tap()


class Counter:
    """The system calls of a process while it is entered: {name: calls}."""

    def __init__(self, scratch, pid):
        self.pid, self.out, self.calls = pid, scratch.file(f"calls-{pid}"), {}

    def traced(self):
        with open(f"/proc/{self.pid}/status", encoding="ascii") as status:
            return "TracerPid:\t0\n" not in status.read()

    def __enter__(self):
        self.strace = subprocess.Popen(["strace", "-f", "-c", "-o", self.out, "-p", str(self.pid)],
                                       stderr=subprocess.DEVNULL)
        wait_for(lambda: self.traced() or self.strace.poll() is not None, 20)
        return self

    def __exit__(self, *_):
        self.strace.send_signal(signal.SIGINT)
        self.strace.wait(20)
        with open(self.out, encoding="utf-8") as table:
            for row in (text.split() for text in table):
                if len(row) >= 5 and row[3].isdigit() and row[-1] != "total":
                    self.calls[row[-1]] = int(row[3])


def load(target, *words):
    env = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
    done = run(f"{programs}/orlop-bench", "bench", "iscsi", target.url(), "-r", "0", *words, env=env)
    tap.ok(done.returncode == 0, f"writes {' '.join(words)}", done.stderr)


def check(calls, most, name):
    each = {call: round(n / WRITES, 2) for call, n in calls.items() if n >= WRITES / 20}
    total = sum(calls.values()) / WRITES
    tap.ok(0 < total <= most, f"{name} makes at most {most} system calls for a write at depth 1", each)
    print(f"# {total:.2f}: {each}")


if run("strace", "-c", "-o", "/dev/null", "true").returncode:
    tap.skip("system calls", "strace is not allowed here")
    tap.done()
with Scratch() as scratch:
    for io, most in (("uring", 3.6), ("epoll", 4.6)):
        os.mkdir(scratch.file(io))
        with Target(f"{programs}/orlop-target", scratch.file(io), f"file:{scratch.file(io)}/data", "16Mi",
                    ["--io", io]) as target:
            load(target, "-b", "1Mi", "-p", "sequential", "-n", "16")
            with Counter(scratch, target.process.pid) as counter:
                load(target, "-b", "4Ki", "-q", "1", "-n", str(WRITES))
            check(counter.calls, most, f"a target with a file on {io}")
    os.mkdir(scratch.file("replicated"))
    with ReplicatedTarget(f"{programs}/orlop-target", scratch.file("replicated"), 3, "16Mi") as target:
        load(target, "-b", "1Mi", "-p", "sequential", "-n", "16")
        with Counter(scratch, target.process.pid) as counter, Counter(scratch, target.keepers[0].pid) as keeper:
            load(target, "-b", "4Ki", "-q", "1", "-n", str(WRITES))
        # One wake-up for the command, one for each acknowledgement, and two for what was sent.
        check(counter.calls, 6.5, "the target of three replicas")
        check(keeper.calls, 3.6, "a replica")
tap.done()
