#!/usr/bin/env python3
"""The API server against etcd: durable writes, reads, lists, watches, memory, start.

Both get the same load from the same client (apiload), turn and turn about: ours ConfigMaps of about
1 kB through the whole API, etcd as many bytes through its v3 JSON gateway, both durable.
"""
import base64
import json
import shutil
import signal
import subprocess
import sys
import time
import urllib.request

from measure import BUILD, free_port, memory, processor
from report import Report, arguments, parse
from tap import Scratch

OBJECTS = 10000
MAPS = "/api/v1/namespaces/default/configmaps"
BIG = "/api/v1/namespaces/kube-system/configmaps"  # the 10,000 that are only read


class Program:
    """A server until the block ends."""

    def __enter__(self):
        self.began = time.monotonic()
        self.process = subprocess.Popen(self.argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        text=True)
        self.wait()
        self.started = time.monotonic() - self.began
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def memory(self, field="VmRSS"):
        return memory(self.process.pid, field)

    def cpu_ms(self):
        return 1000 * processor(self.process.pid)


class Ours(Program):
    def __init__(self, folder):
        self.argv = [f"{BUILD}/cmd/orlop-apiserver", "--data-dir", folder, "--port", "0", "--plain-http"]

    def wait(self):
        self.url = self.process.stdout.readline().strip()
        self.port = int(self.url.rsplit(":", 1)[1])


class Etcd(Program):
    def __init__(self, folder):
        self.port, peer = free_port(), free_port()
        own, other = f"http://127.0.0.1:{self.port}", f"http://127.0.0.1:{peer}"
        self.url = own
        self.argv = ["etcd", "--data-dir", folder, "--listen-client-urls", own,
                     "--advertise-client-urls", own, "--listen-peer-urls", other,
                     "--initial-advertise-peer-urls", other,
                     "--initial-cluster", f"default={other}", "--log-level", "error"]

    def wait(self):
        for _ in range(1000):
            try:
                with urllib.request.urlopen(f"{self.url}/health", timeout=1) as reply:
                    if json.load(reply)["health"] == "true":
                        return
            except OSError:
                pass
            time.sleep(.01)  # it says nowhere when it is ready
        sys.exit("etcd does not start")


def load(server, mode, clients, count, first, request, target=None):
    """What apiload says, and the server's CPU time for each request."""
    before = server.cpu_ms()
    result = subprocess.run(
        [f"{BUILD}/tests/bench/apiload", mode, str(server.port), str(clients), str(count),
         str(first), request] + ([target] if target else []),
        capture_output=True, text=True, check=False, timeout=600)
    if result.returncode:
        sys.exit(f"apiload {mode} failed: {result.stdout}{result.stderr}")
    values = json.loads(result.stdout)
    values["cpu_ms"] = (server.cpu_ms() - before) / count
    return values


def config_map(size, namespace="default", value=None):
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap",
                       "metadata": {"name": "m@@@@@@@@", "namespace": namespace},
                       "data": {"value": value or "x" * size}})


def revision(server):
    with urllib.request.urlopen(f"{server.url}{MAPS}?limit=1", timeout=30) as reply:
        return json.load(reply)["metadata"]["resourceVersion"]


def middle(values):
    values = sorted(values)
    return values[len(values) // 2]


def writes(report, scratch, ours, etcd, args):
    """Durable creates, turn and turn about; the middle of the ratios."""
    own = scratch.file("create", f"POST {MAPS}\n" + config_map(700))
    value = base64.b64encode(b"x" * 1024).decode()
    theirs = scratch.file("put", "POST /v3/kv/put\n" + json.dumps(
        {"key": "@@@@@@@@", "value": value}))
    first = {1: 0, 8: 1000000}
    count = {1: 500 if args.quick else 1000, 8: 4000 if args.quick else 8000}
    for clients, aim in ((1, ">= 1.5"), (8, ">= 4")):
        runs, peers = [], []
        for turn in range(args.rounds):
            start = first[clients] + turn * count[clients]
            runs.append(load(ours, "load", clients, count[clients], start, own))
            if etcd:
                peers.append(load(etcd, "load", clients, count[clients] // 2, start, theirs))
        more = {"p50 ms": middle(r["p50_ms"] for r in runs), "p99 ms": middle(r["p99_ms"] for r in runs),
                "CPU ms": middle(r["cpu_ms"] for r in runs)}
        name = f"durable creates, {clients} client" + "s" * (clients > 1)
        if not etcd:
            report.row(name, middle(r["per_second"] for r in runs), "/s", **more)
            continue
        report.row(name, middle(r["per_second"] for r in runs), "/s", middle(r["per_second"] for r in peers),
                   middle(a["per_second"] / b["per_second"] for a, b in zip(runs, peers)), aim, **more,
                   **{"etcd's CPU ms": middle(r["cpu_ms"] for r in peers)})


def reads(report, scratch, ours, etcd, args):
    request = scratch.file("get", f"GET {MAPS}/m@@@@@@@@\n")
    peer = scratch.file("range", "POST /v3/kv/range\n" + json.dumps({"key": "@@@@@@@@"}))
    runs, peers = [], []
    for _ in range(args.rounds):
        runs.append(load(ours, "load", 8, 500, 0, request))
        runs.append(load(ours, "load", 8, 30000, 1000000, scratch.file(
            "get1", f"GET {MAPS}/m01000000\n")))
        if etcd:
            peers.append(load(etcd, "load", 8, 500, 0, peer))
    best = max(r["per_second"] for r in runs)
    report.row("gets, 8 clients", best, "/s", aim=">= 10000", **{"CPU ms": min(r["cpu_ms"] for r in runs if r["cpu_ms"])},
               **({"etcd's": max(r["per_second"] for r in peers)} if peers else {}))


def watches(report, scratch, ours):
    create = scratch.file("create-watched", f"POST {MAPS}\n" + config_map(700))
    for number, (watchers, writes_) in enumerate(((1, 500), (1000, 30))):
        target = f"{MAPS}?watch=true&resourceVersion={revision(ours)}"
        values = load(ours, "watch", watchers, writes_, 3000000 + number * 10000, create, target)
        name = f"write to watch event, {watchers:,} watcher" + "s" * (watchers > 1)
        report.row(f"{name}, p50", values["p50_ms"], "ms", aim="<= 1.5" if watchers == 1 else None)
        report.row(f"{name}, p99", values["p99_ms"], "ms", aim=None if watchers == 1 else "<= 50")


def lists(report, scratch, folder):
    """10,000 objects of 2 kB in a server of its own: list, memory and start."""
    create = scratch.file("create-big", f"POST {BIG}\n" + config_map(1750, "kube-system"))
    with Ours(folder) as ours:
        report.row("memory, idle", ours.memory(), "MB", aim="<= 12")
        report.row("start, empty", ours.started * 1000, "ms")
        load(ours, "load", 32, OBJECTS, 0, create)
        report.row("memory, 10,000 objects written", ours.memory(), "MB", aim="<= 60")
    with Ours(folder) as ours:
        report.row("start, 10,000 objects", ours.started * 1000, "ms", aim="<= 300")
        report.row("memory, 10,000 objects", ours.memory(), "MB", aim="<= 60")
        request = scratch.file("list", f"GET {BIG}\n")
        runs = [load(ours, "load", 1, 1, 0, request) for _ in range(10)]
        report.row("LIST of 10,000", middle(r["p50_ms"] for r in runs), "ms", aim="<= 60", MB=runs[0]["bytes"] / 1e6)
        report.row("8 LISTs at once, each", load(ours, "load", 8, 8, 0, request)["p50_ms"], "ms")
        held = subprocess.Popen([f"{BUILD}/tests/bench/apiload", "hold", str(ours.port), "8", "8",
                                 "0", request], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        held.stdout.readline()
        time.sleep(1)  # for the server to do what it can
        report.row("memory while 8 wait for their reader", ours.memory(), "MB", aim="<= 120")
        held.communicate()
        report.row("memory at most", ours.memory("VmHWM"), "MB", aim="<= 120")
        report.row("memory after", ours.memory(), "MB")


def main():
    args = parse(arguments(4, __doc__))
    with Report("apiserver", "The API server against etcd", args, "etcd") as report, Scratch() as scratch:
        with Ours(scratch.file("ours")) as ours:
            if shutil.which("etcd"):
                with Etcd(scratch.file("etcd")) as etcd:
                    report.row("etcd's start", etcd.started * 1000, "ms")
                    report.row("etcd's memory, idle", etcd.memory(), "MB")
                    writes(report, scratch, ours, etcd, args)
                    reads(report, scratch, ours, etcd, args)
            else:
                print("  no etcd here")
                writes(report, scratch, ours, None, args)
                reads(report, scratch, ours, None, args)
            watches(report, scratch, ours)
        lists(report, scratch, scratch.file("lists"))


if __name__ == "__main__":
    main()
