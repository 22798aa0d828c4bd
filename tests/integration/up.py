#!/usr/bin/env python3
"""`orlop up` and its companions: a whole system on one machine, with real kubectl.

up.py ORLOP TOP
"""
import os
import signal
import stat
import subprocess
import sys
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from system import HOST, System, processes  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402

orlop, top = sys.argv[1:3]
tap = Tap()


def deployment(name, replicas, script):
    return f"""
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}}}
spec:
  replicas: {replicas}
  selector: {{matchLabels: {{app: {name}}}}}
  template:
    metadata: {{labels: {{app: {name}}}, annotations: {HOST}}}
    spec:
      terminationGracePeriodSeconds: 2
      containers:
      - {{name: c, image: host, command: [sh, -c, '{script}']}}
"""


SERVICE = """
---
apiVersion: v1
kind: Service
metadata: {name: http}
spec:
  selector: {app: http}
  ports: [{port: 80, targetPort: 8080}]
"""


def fetch(url):
    """The status, or None when nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:
            return reply.status
    except OSError:
        return None


def leftovers(folder):
    """What must not be there when nothing runs."""
    with open("/proc/mounts", encoding="utf-8") as mounts:
        mounted = [line for line in mounts if folder in line]
    loops = [line for line in run("losetup", "-a").stdout.splitlines() if folder in line]
    return list(processes(folder).values()) + mounted + loops


def conditions(system, name):
    """Whether nodes are Ready: of one, or of all (-A)."""
    return {n["metadata"]["name"]: c["status"] for n in system.get("nodes", name)
            for c in n.get("status", {}).get("conditions", []) if c["type"] == "Ready"}


with Scratch() as scratch:
    folder = scratch.file("data")

    # What is wrong is said, and nothing is made.
    for flags, text in (
            (["--nodes", "0"], "--nodes: '0' is not a number from 1 to 100"),
            (["--nodes", "many"], "--nodes: 'many' is not a number"),
            (["--sparse-disks", "3"], "--sparse-disks takes how many and how large"),
            (["--sparse-disks", "3xbig"], "--sparse-disks takes how many and how large"),
            (["--vg-disks", "1"], "--vg-disks takes how many and how large"),
            (["--listen", "somewhere:x"], "--listen takes an address, a port, or both"),
            (["--listen", "127.0.0.1:70000"], "--listen takes an address, a port, or both")):
        tap.ran(run(orlop, "up", "--data", folder, *flags), f"orlop up {' '.join(flags)}", 2,
                stderr=text)
    tap.ok(not os.path.exists(folder), "a wrong command line makes nothing")
    tap.ran(run(orlop, "status", "--data", folder), "status of nothing", 1, stderr="there is no system in")
    tap.ran(run(orlop, "down", "--data", folder), "down of nothing", 0, stdout="nothing runs in")
    tap.ran(run(orlop, "logs", "--data", folder), "logs of nothing", 1, stderr="there is no log")

    with System(orlop, folder, "--nodes", "3", "--sparse-disks", "3x1Gi", "--vg-disks", "1x1Gi") as system:
        tap.ok("ready" in system.first and "3 nodes, 9 block devices" in system.first,
               "says when it is ready", system.first)
        mode = stat.S_IMODE(os.stat(f"{folder}/kubeconfig").st_mode)
        tap.equal(oct(mode), "0o600", "the kubeconfig is the administrator's alone")
        nodes = system.get("nodes")
        tap.equal(sorted(n["metadata"]["name"] for n in nodes), ["node-1", "node-2", "node-3"],
                  "kubectl get nodes")
        tap.ok(all(c == "True" for c in conditions(system, "-A").values()), "all are Ready")
        devices = system.get("blockdevices", "-A")
        tap.equal([d["status"]["claimState"] for d in devices], ["Unclaimed"] * 9,
                  "9 block devices that nobody claims")
        tap.ran(system.kubectl("get", "nodes,blockdevices", "-A"), "kubectl get nodes,blockdevices -A",
                stdout="blockdevice.openebs.io/sparse-")

        tap.ok({"cstorvolumes.cstor.openebs.io", "logicalvolumes.topolvm.io"} <=
               {d["metadata"]["name"] for d in system.get("crds")}, "the definitions are there")
        second = run(orlop, "up", "--data", folder)
        tap.ran(second, "a second orlop up on the same folder refuses", 1,
                stderr=f"has {folder} already")
        status = tap.ran(run(orlop, "status", "--data", folder), "orlop status", 0, stdout="ready, https://")
        tap.ok(all(f"{name} " in status.stdout for name in ("apiserver", "controller", "node-3")),
               "it lists all programs", status.stdout)

        # Pods.
        tap.ran(system.kubectl("apply", "-f", "-", stdin=deployment(
            "web", 3, "echo I am $HOSTNAME; exec sleep 1000")), "a Deployment of host processes")
        tap.ran(system.kubectl("rollout", "status", "deployment/web", "--timeout", "90s"),
                "rolls out", stdout="successfully rolled out")
        pods = system.get("pods")
        tap.equal(sorted(p["spec"]["nodeName"] for p in pods), ["node-1", "node-2", "node-3"],
                  "one on each node")
        tap.ran(system.kubectl("logs", "deployment/web"), "kubectl logs", stdout="I am")

        # Programs that are killed come back, and Pods do not notice.
        uids = sorted(p["metadata"]["uid"] for p in pods)
        sleepers = {pid for pid, words in processes(folder).items() if words == "sleep 1000"}
        tap.equal(len(sleepers), 3, "three processes")
        for name in ("node-2", "controller", "apiserver"):
            old = system.kill(name)
            tap.ok(wait_for(lambda: system.pid(name) not in (0, old)), f"{name} is started again")
        tap.ok(wait_for(lambda: all(p["restarts"] == (p["name"] not in ("node-1", "node-3"))
                                    for p in system.status()["programs"])), "and that is counted",
               system.status())
        tap.ok(system.errors().count("a program has ended and is started again") == 3,
               "and said", system.errors())
        tap.ok(wait_for(lambda: len(system.get("nodes")) == 3 and
                        all(c == "True" for c in conditions(system, "-A").values())), "all nodes are Ready")
        tap.equal(sorted(p["metadata"]["uid"] for p in system.get("pods")), uids, "the same Pods")
        tap.equal({pid for pid, words in processes(folder).items() if words == "sleep 1000"}, sleepers,
                  "the same processes")

        logs = tap.ran(run(orlop, "logs", "--data", folder, "--tail", "2"), "orlop logs", 0,
                       stdout="controller: ")
        tap.ok(sum(line.startswith("node-1: ") for line in logs.stdout.splitlines()) == 2, "two lines of each", logs.stdout)
        tap.ran(run(orlop, "logs", "--data", folder, "nobody"), "logs of nobody", 1,
                stderr="there is no log of nobody")

        # The tour of the README.
        tap.ran(system.kubectl("apply", "-f", f"{top}/examples/devices/claim.yaml"), "the README's claim")
        tap.ok(wait_for(lambda: [c.get("status", {}).get("phase") for c in
                                 system.get("blockdeviceclaims", "-A")] == ["Bound"]), "is bound")
        tap.ran(system.kubectl("delete", "-f", f"{top}/examples/devices/claim.yaml"), "and deleted")
        tap.ok(wait_for(lambda: all(d["status"]["claimState"] == "Unclaimed" for d in
                                    system.get("blockdevices", "-A"))), "its device is given back")
        tap.ran(system.kubectl("apply", "-f", f"{top}/examples/pods/hello.yaml"), "the README's Pods")
        tap.ran(system.kubectl("rollout", "status", "deployment/hello", "--timeout", "90s"), "roll out",
                stdout="successfully rolled out")
        tap.ran(system.kubectl("logs", "deployment/hello"), "and say hello", stdout="hello from 127.")
        tap.ran(system.kubectl("delete", "-f", f"{top}/examples/pods/hello.yaml"), "and are deleted")
        tap.ok(wait_for(lambda: len(system.get("pods")) == 3), "until they have ended")

        # A Service's address leads to its Pods, whichever they are.
        tap.ran(system.kubectl("apply", "-f", "-", stdin=deployment(
            "http", 2, "exec python3 -m http.server 8080 --bind $POD_IP --directory /proc/self/task")
            + SERVICE), "a Service")
        tap.ran(system.kubectl("rollout", "status", "deployment/http", "--timeout", "90s"), "its Pods run",
                stdout="successfully rolled out")
        ip = system.get("service", "http")[0]["spec"]["clusterIP"]
        tap.ok(wait_for(lambda: fetch(f"http://{ip}:80/") == 200), "is reached at its address", ip)
        system.kubectl("delete", "pods", "-l", "app=http", "--wait=false")
        tap.ok(wait_for(lambda: system.kubectl("rollout", "status", "deployment/http", "--timeout",
                                               "60s").returncode == 0 and fetch(f"http://{ip}:80/") == 200),
               "also when the Pods are others")
        for name in ("node-1", "node-2", "node-3"):
            system.kill(name)
        tap.ok(wait_for(lambda: fetch(f"http://{ip}:80/") == 200), "and after the agents were killed")
        system.kubectl("delete", "deployment,service", "http")
        tap.ok(wait_for(lambda: fetch(f"http://{ip}:80/") is None), "until it is gone")
        tap.ok(wait_for(lambda: len(system.get("pods")) == 3), "and its Pods have ended")

        # Another machine joins; here it is another folder.
        line = tap.ran(run(orlop, "token", "create", "--data", folder), "orlop token create", 0,
                       stdout="orlop node --join https://").stdout.split()
        tap.ok("--ca-hash" in line and "sha256:" in line[-1], "it says how to join", line)
        own = ["--name", "other", "--data-dir", scratch.file("other"), "--health-port", "off",
               "--discover=false", "--sparse-disks", "1x1Gi"]
        pin, token = line[-1], line[line.index("--token") + 1]
        for wrong, text in ((pin, "the cluster's authority is not the one with the public key"),
                            (token, "is not signed with this token")):
            other = wrong[:-1] + ("0" if wrong[-1] != "0" else "1")
            argv = [other if word == wrong else word for word in line[1:]]
            tap.ran(run(orlop, *argv, *own), f"a {'pin' if wrong == pin else 'token'} that is wrong", 1,
                    stderr=text)
        for turn in ("joins", "comes back with its own credentials"):
            argv = line[1:] if turn == "joins" else line[1:4]
            with subprocess.Popen([orlop, *argv, *own], stderr=subprocess.DEVNULL) as node:
                tap.ok(wait_for(lambda: conditions(system, "other") == {"other": "True"}),
                       f"another machine {turn}", conditions(system, "-A"))
                tap.ok(wait_for(lambda: sum(d["spec"]["nodeAttributes"]["nodeName"] == "other" for d in
                                            system.get("blockdevices", "-A")) == 1), "with its disk")
                node.terminate()
        system.kubectl("delete", "node", "other")
        tap.equal(oct(stat.S_IMODE(os.stat(scratch.file("other/kubeconfig")).st_mode)), "0o600",
                  "its credentials are its own")

        tap.equal(system.stop(signal.SIGINT), 0, "Ctrl-C ends it")
    tap.equal(leftovers(folder), [], "and nothing is left behind")
    tap.ran(run(orlop, "status", "--data", folder), "status says that it is stopped", 1, stdout="stopped")

    # Detached; everything is as it was.
    system = System(orlop, folder)
    try:
        up = run(orlop, "up", "--data", folder, "--nodes", "3", "--sparse-disks", "3x1Gi", "--vg-disks",
                 "1x1Gi", "--listen", "127.0.0.1:0", "--detach")
        tap.ran(up, "orlop up --detach", 0, stdout="Orlop is ready")
        tap.equal(sorted(p["metadata"]["uid"] for p in system.get("pods")), uids, "the same Pods as before")
        tap.ok(set(d["metadata"]["name"] for d in devices) <=
               set(d["metadata"]["name"] for d in system.get("blockdevices", "-A")), "the same devices")
        tap.ok(wait_for(lambda: sum(words == "sleep 1000" for words in processes(folder).values()) == 3),
               "their processes run again")

        # kill -9 of the keeper: the programs end by themselves.
        tap.ok(len(run("losetup", "-a").stdout.split(folder)) == 4, "each node has its volume group")
        os.kill(system.status()["pid"], signal.SIGKILL)
        tap.ok(wait_for(lambda: not leftovers(folder)), "without its keeper nothing runs on or stays",
               leftovers(folder))
        tap.ran(run(orlop, "up", "--data", folder, "--nodes", "3", "--listen", "127.0.0.1:0", "--detach"),
                "and it starts again", 0, stdout="Orlop is ready")
        tap.ran(run(orlop, "down", "--data", folder), "orlop down", 0, stdout="stopped")
        tap.equal(leftovers(folder), [], "nothing is left behind")

        # Everywhere, and ended while a program cannot start.
        os.rename(f"{folder}/nodes/node-1/kubeconfig", f"{folder}/kept")
        os.mkdir(f"{folder}/nodes/node-1/kubeconfig")
        with subprocess.Popen([orlop, "up", "--data", folder, "--listen", "0.0.0.0:0"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as up:
            tap.ok(wait_for(lambda: any(p["name"] == "node-1" and p["restarts"] > 1
                                        for p in system.status()["programs"])),
                   "a node that cannot start is tried again")
            os.rmdir(f"{folder}/nodes/node-1/kubeconfig")
            os.rename(f"{folder}/kept", f"{folder}/nodes/node-1/kubeconfig")
            tap.ok("ready" in up.stdout.readline(), "and comes up when it can, on every address")
            os.rename(f"{folder}/nodes/node-1/kubeconfig", f"{folder}/kept")
            os.mkdir(f"{folder}/nodes/node-1/kubeconfig")
            system.kill("node-1")
            tap.ok(wait_for(lambda: system.status()["programs"][2]["state"] == "restarting"),
                   "one that ends again")
            up.terminate()
            tap.equal(up.wait(60), 0, "does not hold up the end")
        os.rmdir(f"{folder}/nodes/node-1/kubeconfig")
        os.rename(f"{folder}/kept", f"{folder}/nodes/node-1/kubeconfig")

        # A start that fails says why and leaves nothing.
        store = f"{folder}/apiserver/store.db"
        with open(store, "r+b") as file:
            file.write(b"this is no database")
        failed = run(orlop, "up", "--data", folder, "--listen", "127.0.0.1:0")
        tap.ran(failed, "a store that is damaged", 1, stderr="the API server has ended at its start")
        tap.equal(leftovers(folder), [], "nothing is left behind then either")
    finally:
        system.__exit__()

tap.done()
