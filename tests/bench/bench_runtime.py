#!/usr/bin/env python3
"""The programs of `orlop up` when nothing happens, and how soon something that happens is acted on.

The peer is kubectl in the same run: a process in Go with one watch, which is the least that a
controller built on client-go is made of.
"""
import os
import statistics
import subprocess
import time

from measure import BUILD, PROGRAMS, memory, processor
from report import Report, arguments, parse
from server import Client, Server  # noqa: I001
from system import System
from tap import Scratch, wait_for


def existing(system):
    """A client of the server that the system runs, with the administrator's credentials."""
    return Client(Server(None, f"{system.folder}/apiserver").reach(system.status()["url"]))


def idle(report, system, seconds):
    pids = {p["name"]: p["pid"] for p in system.status()["programs"]}
    env = {**os.environ, "KUBECONFIG": f"{system.folder}/kubeconfig"}
    kubectl = subprocess.Popen(["kubectl", "get", "pods", "-w"], env=env, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    wait_for(lambda: False, 10)  # what the start needed is given back
    before = {name: processor(pid) for name, pid in pids.items()}
    wait_for(lambda: False, seconds)
    for name, aim in (("controller", "<= 8"), ("node-1", "<= 8"), ("apiserver", None)):
        report.row(f"{name}: memory", memory(pids[name]), "MB", aim=aim)
        report.row(f"{name}: processor time when idle", 100 * (processor(pids[name]) - before[name]) / seconds, "%")
    report.row("kubectl get pods -w: memory", memory(kubectl.pid), "MB")
    kubectl.kill()
    kubectl.wait()


def latency(report, system, rounds):
    """From a device's creation until its controller's answer is seen: two commits, two watches, and
    one reconcile between them."""
    client, watcher = existing(system), existing(system)
    path = "/apis/openebs.io/v1alpha1/namespaces/default/blockdevices"
    version = client.ask("GET", path).json["metadata"]["resourceVersion"]
    events = watcher.events(f"{path}?watch=1&resourceVersion={version}")
    times = []
    for number in range(rounds):
        name = f"d{number}"
        start = time.monotonic()
        client.ask("POST", path, {
            "metadata": {"name": name},
            "spec": {"nodeAttributes": {"nodeName": "nobody"}, "path": "/dev/x",
                     "capacity": {"storage": 1 << 30}, "details": {"deviceType": "disk"}}})
        while next(e for e in events if e["object"]["metadata"]["name"] == name)[
                "object"].get("status", {}).get("state") != "Unknown":
            pass
        times.append(1000 * (time.monotonic() - start))
        time.sleep(0.05)  # or the bucket of requests would be measured
    times.sort()
    report.row("a device of no node until it is seen to be Unknown, p50", statistics.median(times), "ms", aim="<= 5",
               p99=times[int(len(times) * 0.99)])


def caches(report, scratch, volumes):
    """A cache of 10,000 LogicalVolumes."""
    with Server(f"{PROGRAMS}/orlop-apiserver", scratch.file("lvs"), log=subprocess.DEVNULL) as server:
        client = Client(server)
        for number in range(volumes):
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
        report.row(f"{volumes:,} LogicalVolumes: until a cache is synced", 1000 * (time.monotonic() - start), "ms")
        report.row(f"{volumes:,} LogicalVolumes: memory of the process", memory(dump.pid), "MB", aim="<= 40")
        dump.kill()
        dump.wait()


def main():
    args = parse(arguments(1, __doc__))
    with Report("runtime", "The programs of a system", args, rounds="one run") as report, Scratch() as scratch:
        start = time.monotonic()
        with System(f"{PROGRAMS}/orlop", scratch.file("data"), "--nodes", "3", "--sparse-disks",
                    "3x4Gi") as system:
            report.row("orlop up, three nodes: until ready", time.monotonic() - start, "s", aim="<= 2")
            idle(report, system, 2 if args.quick else 20)
            latency(report, system, 20 if args.quick else 200)
        caches(report, scratch, 1000 if args.quick else 10000)


if __name__ == "__main__":
    main()
