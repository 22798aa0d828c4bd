#!/usr/bin/env python3
"""The API server against etcd: durable writes, reads, lists, watches, memory, start.

Both get the same load from the same client (apiload), turn and turn about: ours ConfigMaps of about
1 kB through the whole API, etcd as many bytes through its v3 JSON gateway, both durable.

bench_apiserver.py [--quick] [--no-etcd]
"""
import base64
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from tap import Scratch  # noqa: E402

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
QUICK = "--quick" in sys.argv
ETCD = shutil.which("etcd") if "--no-etcd" not in sys.argv else None
ROUNDS = 2 if QUICK else 4
OBJECTS = 10000
MAPS = "/api/v1/namespaces/default/configmaps"
BIG = "/api/v1/namespaces/kube-system/configmaps"  # the 10,000 that are only read
BUILD = os.environ.get("BUILD_DIR", f"{TOP}/build/release")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


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

    def memory(self):
        """Resident megabytes now, and at most."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as f:
            values = dict(line.split(":", 1) for line in f)
        return tuple(int(values[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))

    def cpu_ms(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


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
        self.argv = [ETCD, "--data-dir", folder, "--listen-client-urls", own,
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


def row(name, value, unit, aim=""):
    print(f"  {name:44} {value:10.2f} {unit:8} {aim}", flush=True)


def writes(scratch, ours, etcd):
    """Durable creates, turn and turn about; the middle of the ratios."""
    own = scratch.file("create", f"POST {MAPS}\n" + config_map(700))
    value = base64.b64encode(b"x" * 1024).decode()
    theirs = scratch.file("put", "POST /v3/kv/put\n" + json.dumps(
        {"key": "@@@@@@@@", "value": value}))
    first = {1: 0, 8: 1000000}
    count = {1: 500 if QUICK else 1000, 8: 4000 if QUICK else 8000}
    for clients, aim in ((1, "aim 1.5"), (8, "aim 4")):
        runs, peers = [], []
        for turn in range(ROUNDS):
            start = first[clients] + turn * count[clients]
            runs.append(load(ours, "load", clients, count[clients], start, own))
            if etcd:
                peers.append(load(etcd, "load", clients, count[clients] // 2, start, theirs))
        name = f"durable creates, {clients} client" + "s" * (clients > 1)
        row(name, middle(r["per_second"] for r in runs), "/s")
        row("  p50, p99", middle(r["p50_ms"] for r in runs), "ms",
            f"{middle(r['p99_ms'] for r in runs):.2f}")
        row("  CPU each", middle(r["cpu_ms"] for r in runs), "ms")
        if etcd:
            row("  etcd puts", middle(r["per_second"] for r in peers), "/s")
            row("  etcd CPU each", middle(r["cpu_ms"] for r in peers), "ms")
            row("  ratio", middle(a["per_second"] / b["per_second"] for a, b in zip(runs, peers)),
                "x", aim)


def reads(scratch, ours, etcd):
    request = scratch.file("get", f"GET {MAPS}/m@@@@@@@@\n")
    peer = scratch.file("range", "POST /v3/kv/range\n" + json.dumps({"key": "@@@@@@@@"}))
    runs, peers = [], []
    for _ in range(ROUNDS):
        runs.append(load(ours, "load", 8, 500, 0, request))
        runs.append(load(ours, "load", 8, 30000, 1000000, scratch.file(
            "get1", f"GET {MAPS}/m01000000\n")))
        if etcd:
            peers.append(load(etcd, "load", 8, 1000, 0, peer))
    row("gets, 8 clients", max(r["per_second"] for r in runs), "/s", "aim 10000")
    row("  CPU each", min(r["cpu_ms"] for r in runs if r["cpu_ms"]), "ms")
    if etcd:
        row("  etcd ranges", max(r["per_second"] for r in peers), "/s")


def watches(scratch, ours):
    create = scratch.file("create-watched", f"POST {MAPS}\n" + config_map(700))
    for number, (watchers, writes_) in enumerate(((1, 500), (1000, 30))):
        target = f"{MAPS}?watch=true&resourceVersion={revision(ours)}"
        values = load(ours, "watch", watchers, writes_, 3000000 + number * 10000, create, target)
        row(f"write to watch event, {watchers} watcher" + "s" * (watchers > 1) + ", p50",
            values["p50_ms"], "ms", "aim 1.5" if watchers == 1 else "")
        row("  p99", values["p99_ms"], "ms", "" if watchers == 1 else "aim 50")


def lists(scratch, folder):
    """10,000 objects of 2 kB in a server of its own: list, memory and start."""
    create = scratch.file("create-big", f"POST {BIG}\n" + config_map(1750, "kube-system"))
    with Ours(folder) as ours:
        row("memory, idle", ours.memory()[0], "MB", "aim 12")
        row("start, empty", ours.started * 1000, "ms")
        load(ours, "load", 32, OBJECTS, 0, create)
        row("memory, 10,000 objects written", ours.memory()[0], "MB", "aim 60")
    with Ours(folder) as ours:
        row("start, 10,000 objects", ours.started * 1000, "ms", "aim 300")
        row("memory, 10,000 objects", ours.memory()[0], "MB", "aim 60")
        request = scratch.file("list", f"GET {BIG}\n")
        runs = [load(ours, "load", 1, 1, 0, request) for _ in range(10)]
        row("LIST of 10,000", middle(r["p50_ms"] for r in runs), "ms", "aim 60")
        row("  size", runs[0]["bytes"] / 1e6, "MB")
        row("8 LISTs at once, each", load(ours, "load", 8, 8, 0, request)["p50_ms"], "ms")
        held = subprocess.Popen([f"{BUILD}/tests/bench/apiload", "hold", str(ours.port), "8", "8",
                                 "0", request], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        held.stdout.readline()
        time.sleep(1)  # for the server to do what it can
        row("memory while 8 wait for their reader", ours.memory()[0], "MB", "aim 120")
        held.communicate()
        row("memory at most", ours.memory()[1], "MB", "aim 120")
        row("memory after", ours.memory()[0], "MB")


with Scratch() as scratch:
    print(f"API server, {ROUNDS} rounds, middle of them" + ("" if ETCD else "; no etcd here"))
    with Ours(scratch.file("ours")) as ours:
        if ETCD:
            with Etcd(scratch.file("etcd")) as etcd:
                row("etcd: start", etcd.started * 1000, "ms")
                row("etcd: memory, idle", etcd.memory()[0], "MB")
                writes(scratch, ours, etcd)
                reads(scratch, ours, etcd)
        else:
            writes(scratch, ours, None)
            reads(scratch, ours, None)
        watches(scratch, ours)
    lists(scratch, scratch.file("lists"))
