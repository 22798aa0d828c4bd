#!/usr/bin/env python3
"""Never two leaders: processes that are stopped, continued and killed at random write down when they lead.

leaders.py APISERVER PROBE

Each process takes part in one election and, while it leads, appends the time to a file of its own. A
leadership lasts from the first line of a process to its last one (who has lost it ends, and is started
again as another), so two that overlap are two leaders at once. Processes are stopped for longer than
the lease lasts, killed, and told to end; the server is stopped too. Afterwards, in peace, a leader that
is killed is replaced within the lease and one more try.
"""
import os
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from server import Server  # noqa: E402
from tap import Scratch, Tap, wait_for  # noqa: E402

PROCESSES, SECONDS, LEASE = 4, 20, 2
SLACK = 2  # of a busy machine
ENOUGH = 4  # leaders


def overlaps(intervals):
    """Pairs of leaderships (first, last, who) at the same time."""
    found, ordered = [], sorted(intervals)
    for i, one in enumerate(ordered):
        found += [(one, other) for other in ordered[i + 1:] if other[0] <= one[1]]
    return found


class Probe:
    def __init__(self, program, server, path):
        self.path, self.stopped_until = path, None
        self.process = subprocess.Popen([program, server.kubeconfig, "probe", str(LEASE), path],
                                        stdin=subprocess.DEVNULL)

    def interval(self):
        """(first, last, who) in seconds; None when it never led."""
        try:
            with open(self.path, encoding="ascii") as f:
                lines = [line for line in f if line.endswith("\n")]
        except FileNotFoundError:
            return None
        return (int(lines[0]) / 1e9, int(lines[-1]) / 1e9, self.path) if lines else None

    def leads(self):
        found = self.interval()
        return bool(found) and time.monotonic() - found[1] < 0.2

    def signal(self, number):
        if self.process.poll() is None:
            self.process.send_signal(number)

    def end(self):
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGKILL)
        self.process.wait()


class Crowd:
    """Always as many as they should be; those that have ended are kept for what they wrote."""

    def __init__(self, program, server, scratch):
        self.program, self.server, self.scratch, self.all = program, server, scratch, []
        self.alive = [self.add() for _ in range(PROCESSES)]
        self.peace = 0  # since when nobody is tormented

    def add(self):
        probe = Probe(self.program, self.server, self.scratch.file(f"probe-{len(self.all)}"))
        self.all.append(probe)
        return probe

    def replace_dead(self):
        self.alive = [it if it.process.poll() is None else self.add() for it in self.alive]

    def leader(self):
        return next((it for it in self.alive if it.leads()), None)

    def settled(self):
        """Somebody leads, for a while already, and everybody has seen it."""
        leader = self.leader()
        first, last, _ = (leader and leader.interval()) or (0, 0, None)
        return last - max(first, self.peace) > LEASE

    def intervals(self):
        return [it for it in (probe.interval() for probe in self.all) if it]

    def end(self):
        for it in self.alive:
            it.end()


def torment(crowd, server, chance):
    """Something happens to somebody, most often to the leader."""
    probe = crowd.leader() if chance.random() < 0.6 else None
    probe = probe or chance.choice(crowd.alive)
    what = chance.choice(["stop", "stop", "stop", "kill", "term", "server"])
    if what == "server":
        server.process.send_signal(signal.SIGSTOP)
        time.sleep(chance.uniform(0.1, 1.5))
        server.process.send_signal(signal.SIGCONT)
    elif what == "stop":
        probe.signal(signal.SIGSTOP)
        probe.stopped_until = time.monotonic() + chance.uniform(0.1, 2.5 * LEASE)
    else:
        probe.signal(signal.SIGKILL if what == "kill" else signal.SIGTERM)


def main(program, probe_program):
    tap, seed = Tap(), random.randrange(1 << 32)
    chance = random.Random(seed)
    print(f"# seed {seed}", flush=True)
    tap.equal(len(overlaps([(1, 3, "a"), (2, 4, "b"), (5, 6, "c")])), 1, "the check finds two at once")
    tap.equal(overlaps([(3, 4, "b"), (1, 2, "a")]), [], "and not those that follow each other")
    with Scratch() as scratch, Server(program, scratch.file("data")) as server:
        crowd = Crowd(probe_program, server, scratch)
        try:
            tap.ok(wait_for(crowd.leader), "one leads")
            end = time.monotonic() + SECONDS
            # Longer when chance spared the leaders.
            while time.monotonic() < end or (len(crowd.intervals()) < ENOUGH and time.monotonic() < 3 * SECONDS + end):
                torment(crowd, server, chance)
                time.sleep(chance.uniform(0.05, 0.8))
                for it in crowd.alive:
                    if it.stopped_until and time.monotonic() > it.stopped_until:
                        it.signal(signal.SIGCONT)
                        it.stopped_until = None
                crowd.replace_dead()
            for it in crowd.alive:
                it.signal(signal.SIGCONT)
            crowd.replace_dead()
            crowd.peace = time.monotonic()
            tap.ok(wait_for(crowd.settled), "in the end one leads, and goes on to")
            leader = crowd.leader()
            leader.signal(signal.SIGKILL)
            begin = time.monotonic()
            leader.process.wait()
            tap.ok(wait_for(lambda: crowd.leader() not in (None, leader)), "it is replaced")
            took = time.monotonic() - begin
            tap.ok(took < LEASE * (1 + 2 / 15 * 1.2) + SLACK, "in time", f"{took} s")
            print(f"# failover took {took:.2f} s", flush=True)
        finally:
            server.process.send_signal(signal.SIGCONT)
            crowd.end()
        intervals = crowd.intervals()
        print(f"# {len(intervals)} leaders of {len(crowd.all)} processes", flush=True)
        tap.ok(len(intervals) >= ENOUGH, "leaders changed often enough to mean something", intervals)
        tap.equal(overlaps(intervals), [], "there never were two")
    tap.done()


main(*sys.argv[1:])
