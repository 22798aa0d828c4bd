#!/usr/bin/env python3
"""The programs of `orlop up` when nothing happens, and how soon something that happens is acted on.

The peer is kubectl in the same run: a process in Go with one watch, which is the least that a
controller built on client-go is made of.

bench_runtime.py
"""
import os
import statistics
import subprocess
import sys
import time

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(TOP, "tests", "lib"))
from server import Client, Server  # noqa: E402
from system import System  # noqa: E402
from tap import Scratch, wait_for  # noqa: E402

BUILD = os.environ.get("BUILD_DIR", f"{TOP}/build/release")
IDLE_SECONDS, ROUNDS, VOLUMES = 20, 200, 10000


def row(name, value, unit, aim=""):
    print(f"  {name:52} {value:10.2f} {unit:6} {aim}", flush=True)


def memory(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024


def cpu(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def existing(system):
    """A client of the server that the system runs, with the administrator's credentials."""
    return Client(Server(None, f"{system.folder}/apiserver").reach(system.status()["url"]))


def idle(system):
    pids = {p["name"]: p["pid"] for p in system.status()["programs"]}
    env = {**os.environ, "KUBECONFIG": f"{system.folder}/kubeconfig"}
    kubectl = subprocess.Popen(["kubectl", "get", "pods", "-w"], env=env, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    wait_for(lambda: False, 10)  # what the start needed is given back
    before = {name: cpu(pid) for name, pid in pids.items()}
    wait_for(lambda: False, IDLE_SECONDS)
    for name, aim in (("controller", "aim 8"), ("node-1", "aim 8"), ("apiserver", "aim 12")):
        row(f"{name}: memory", memory(pids[name]), "MB", aim)
        row("  processor time when idle", 100 * (cpu(pids[name]) - before[name]) / IDLE_SECONDS, "%")
    row("kubectl get pods -w: memory", memory(kubectl.pid), "MB")
    kubectl.kill()
    kubectl.wait()


def latency(system):
    """From a device's creation until its controller's answer is seen: two commits, two watches, and
    one reconcile between them."""
    client, watcher = existing(system), existing(system)
    path = "/apis/openebs.io/v1alpha1/namespaces/default/blockdevices"
    version = client.ask("GET", path).json["metadata"]["resourceVersion"]
    events = watcher.events(f"{path}?watch=1&resourceVersion={version}")
    times = []
    for number in range(ROUNDS):
        name = f"d{number}"
        start = time.monotonic()
        client.ask("POST", path, {
            "metadata": {"name": name},
            "spec": {"nodeAttributes": {"nodeName": "nobody"}, "path": "/dev/x",
                     "capacity": {"storage": 1 << 30}, "details": {"deviceType": "disk"}},
            "status": {"claimState": "Unclaimed", "state": "Active"}})
        while next(e for e in events if e["object"]["metadata"]["name"] == name)[
                "object"]["status"]["state"] != "Unknown":
            pass
        times.append(1000 * (time.monotonic() - start))
        time.sleep(0.05)  # or the bucket of requests would be measured
    times.sort()
    row("a device of no node until it is seen to be Unknown, p50", statistics.median(times), "ms", "aim 5")
    row("  p99", times[int(len(times) * 0.99)], "ms")


def caches(scratch):
    """A cache of 10,000 LogicalVolumes."""
    with Server(f"{BUILD}/cmd/orlop-apiserver", scratch.file("lvs"), log=subprocess.DEVNULL) as server:
        client = Client(server)
        for number in range(VOLUMES):
            client.ask("POST", "/apis/topolvm.io/v1/logicalvolumes", {
                "metadata": {"name": f"pvc-{number:08}"},
                "spec": {"name": f"pvc-{number:08}", "nodeName": f"node-{number % 3}", "size": "1Gi",
                         "deviceClass": "ssd"}})
        dump = subprocess.Popen(
            [f"{BUILD}/tests/cache_dump", f"{scratch.file('lvs')}/admin.kubeconfig", "topolvm.io/v1",
             "LogicalVolume", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        start = time.monotonic()
        dump.stdin.write("wait\n")
        dump.stdin.flush()
        dump.stdout.readline()
        row("10,000 LogicalVolumes: until synced", 1000 * (time.monotonic() - start), "ms")
        row("  memory of the process", memory(dump.pid), "MB", "aim 40")
        dump.kill()
        dump.wait()


def main():
    print("the programs of a system")
    with Scratch() as scratch:
        start = time.monotonic()
        with System(f"{BUILD}/cmd/orlop", scratch.file("data"), "--nodes", "3", "--sparse-disks",
                    "3x4Gi") as system:
            row("orlop up, three nodes: until ready", time.monotonic() - start, "s", "aim 2")
            idle(system)
            latency(system)
        caches(scratch)


main()
