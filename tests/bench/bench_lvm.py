#!/usr/bin/env python3
"""Logical volumes against LVM's own commands, in one run.

The peer is the least that can be done: lvcreate, lvremove, one after the other, with the same
configuration, on volume groups of the same size. Ours does the same through the API: objects, finalizers,
status read back from LVM.
"""
import collections
import os
import re
import statistics
import sys
import time

from measure import PROGRAMS
from report import Report, arguments, parse
from server import Client, Server  # noqa: I001
from tap import Scratch, wait_for
from volumes import Agent, volume

NODES, SINGLE = 3, 60
COMMAND = re.compile(r'execve\("/usr/sbin/lvm", \["[^"]*", "(\w+)"')


def bare(agents, count):
    """Seconds for that many lvcreate, and lvremove; and of each lvcreate."""
    times, names = [], [(agents[i % NODES], f"bare-{i}") for i in range(count)]
    begin = time.monotonic()
    for agent, name in names:
        start = time.monotonic()
        made = agent.lvm.run("/usr/sbin/lvm", "lvcreate", "-y", "-an", "-Zn", "-Wn", "-L", "8388608b", "-n", name,
                             "--addtag", "bench", "orlop")
        times.append(time.monotonic() - start)
        if made.returncode:
            sys.exit(made.stderr)
    middle = time.monotonic()
    for agent, name in names:
        agent.lvm.run("/usr/sbin/lvm", "lvremove", "-f", "-y", f"orlop/{name}")
    return middle - begin, time.monotonic() - middle, times


def wait_all(client, version, done, count):
    """Follows the collection until `count` objects are done."""
    finished = set()
    for event in client.events(f"{Agent.path()}?watch=1&resourceVersion={version}"):
        if done(event):
            finished.add(event["object"]["metadata"]["name"])
            if len(finished) == count:
                return


def ours(server, agents, count):
    """The same, through the API: from the first request until all are there, and until all are gone."""
    client, watcher = Client(server), Client(server)

    def version():
        return client.ask("GET", Agent.path()).json["metadata"]["resourceVersion"]
    first, begin = version(), time.monotonic()
    for i in range(count):
        name = f"v{i}"
        client.ask("POST", Agent.path(), volume(name, agents[i % NODES].name, "8Mi"))
    wait_all(watcher, first, lambda e: e["object"].get("status", {}).get("volumeID"), count)
    made = time.monotonic() - begin
    first, begin = version(), time.monotonic()
    for i in range(count):
        client.ask("DELETE", Agent.path(f"v{i}"))
    watcher.close()
    wait_all(watcher, first, lambda e: e["type"] == "DELETED", count)
    return made, time.monotonic() - begin


def single(server, agent, count):
    """From the request until the status has been seen, one at a time."""
    client, watcher, times = Client(server), Client(server), []
    version = client.ask("GET", Agent.path()).json["metadata"]["resourceVersion"]
    events = watcher.events(f"{Agent.path()}?watch=1&resourceVersion={version}")
    for i in range(count):
        start = time.monotonic()
        client.ask("POST", Agent.path(), volume(f"s{i}", agent.name, "8Mi"))
        while not next(e for e in events if e["object"]["metadata"]["name"] == f"s{i}")[
                "object"].get("status", {}).get("volumeID"):
            pass
        times.append(time.monotonic() - start)
        wait_for(lambda: False, 0.02)
    agent.client.close()  # the server has closed what was idle
    agent.delete(*(f"s{i}" for i in range(count)))
    wait_for(lambda: not agent.all())
    return times


def commands(server, scratch, count):
    """Which lvm commands an agent runs, by strace: not timed."""
    trace = scratch.file("trace")
    agent = Agent(f"{PROGRAMS}/orlop-node", server, scratch.file("traced"), "traced", disks="1x4Gi")
    agent.argv = ["strace", "-D", "-f", "-e", "trace=execve", "-o", trace, *agent.argv]
    with agent:
        wait_for(lambda: agent.annotation("capacity.topolvm.io/orlop"))
        start = os.path.getsize(trace)
        for i in range(count):
            agent.create(f"t{i}", "8Mi")
        wait_for(lambda: all(o.get("status", {}).get("volumeID") for o in agent.all()))
        with open(trace, encoding="utf-8") as file:
            file.seek(start)
            found = collections.Counter(COMMAND.findall(file.read()))
        agent.delete(*(f"t{i}" for i in range(count)))
        wait_for(lambda: not agent.all())
    return found


def measure(report, server, scratch, args):
    volumes, mid = 20 if args.quick else 200, statistics.median
    agents = [Agent(f"{PROGRAMS}/orlop-node", server, scratch.file(f"n{i}"), f"n{i}", disks="1x4Gi").start()
              for i in range(NODES)]
    try:
        for agent in agents:
            wait_for(lambda a=agent: a.annotation("capacity.topolvm.io/orlop"))
        results = [(bare(agents, volumes), ours(server, agents, volumes)) for _ in range(args.rounds)]
        for i, name in ((0, f"create {volumes}, until all have a volumeID"), (1, f"remove {volumes}, until all are gone")):
            report.row(name, mid(o[i] for _, o in results), "s", mid(b[i] for b, _ in results),
                       mid(o[i] / b[i] for b, o in results), "<= 1.3")
        command = mid(t for b, _ in results for t in b[2])
        times = sorted(single(server, agents[0], SINGLE))
        report.row("one at a time, object to volumeID, p50", 1000 * mid(times), "ms", 1000 * command,
                   p99=1000 * times[int(len(times) * 0.99)])
        report.row("what is added to lvcreate, p50", 1000 * (mid(times) - command), "ms", aim="<= 50")
    finally:
        for agent in agents:
            agent.stop()
    print("  commands for 100 volumes on one node:",
          ", ".join(f"{n} {name}" for name, n in sorted(commands(server, scratch, 100).items())))


def main():
    args = parse(arguments(3, __doc__))
    with Report("lvm", f"Logical volumes on {NODES} nodes, against LVM's own commands", args, "lvm") as report, \
            Scratch() as scratch, open(scratch.file("log"), "w", encoding="utf-8") as log, \
            Server(f"{PROGRAMS}/orlop-apiserver", scratch.file("api"), log=log) as server:
        measure(report, server, scratch, args)


if __name__ == "__main__":
    main()
