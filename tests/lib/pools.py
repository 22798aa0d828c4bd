"""Pools for tests: sparse files as BlockDevices that are claimed, CStorPoolInstances, and orlop-pool."""
import os
import re
import subprocess
import urllib.request

from server import Client
from tap import run, wait_for

SEED = "/apis/openebs.io/v1alpha1"
PUBLISHED = "/apis/cstor.openebs.io/v1"
NS = "openebs"
MEBI = 1 << 20


def in_ns(plural, name="", group=SEED):
    return f"{group}/namespaces/{NS}/{plural}" + (f"/{name}" if name else "")


def group(kind, *names, **roles):
    return {"type": kind, "blockDevices": [{"blockDeviceName": n} for n in names], **roles}


class Api(Client):
    """A client that fails loudly."""

    def must(self, method, path, body=None, **options):
        reply = self.ask(method, path, body, **options)
        if reply.status not in (200, 201, 202):
            raise AssertionError(f"{method} {path}: {reply.status} {reply.text}")
        return reply.json

    def must_merge(self, path, value):
        reply = self.merge(path, value)
        if reply.status != 200:
            raise AssertionError(f"PATCH {path}: {reply.status} {reply.text}")
        return reply.json

    def must_create(self, path, value):
        reply = self.create(path, value)
        if reply.status not in (200, 201):
            raise AssertionError(f"POST {path}: {reply.status} {reply.text}")
        return reply.json

    def get(self, path):
        reply = self.ask("GET", path)
        return reply.status, reply.value

    def namespace(self, name=NS):
        if self.get(f"/api/v1/namespaces/{name}")[0] == 404:
            self.must("POST", "/api/v1/namespaces",
                      {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        return self


class Disks:
    """Files, their BlockDevices on a node, and claims of a cluster that have them."""

    def __init__(self, client, folder, cluster="c1", node="n1"):
        self.client, self.folder, self.cluster, self.node = client, folder, cluster, node
        os.makedirs(folder, exist_ok=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def file(self, name, size=128 * MEBI):
        with open(self.path(name), "ab") as f:
            f.truncate(size)

    def make(self, *names, size=128 * MEBI, predecessor=None, claim=True):
        for name in names:
            self.file(name, size)
            self.device(name, size)
            if claim:
                self.claim(name, predecessor)
        return names

    def device(self, name, size, state="Active"):
        self.client.must_create(in_ns("blockdevices"), {
            "apiVersion": "openebs.io/v1alpha1", "kind": "BlockDevice",
            "metadata": {"name": name, "namespace": NS, "labels": {"kubernetes.io/hostname": self.node}},
            "spec": {"nodeAttributes": {"nodeName": self.node}, "path": self.path(name),
                     "capacity": {"storage": size}},
            "status": {"state": state, "claimState": "Unclaimed"}})

    def claim(self, name, predecessor=None):
        made = self.client.must_create(in_ns("blockdeviceclaims"), {
            "apiVersion": "openebs.io/v1alpha1", "kind": "BlockDeviceClaim",
            "metadata": {"name": f"bdc-{name}", "namespace": NS,
                         "labels": {"openebs.io/cstor-pool-cluster": self.cluster},
                         "finalizers": ["cstorpoolcluster.openebs.io/finalizer"],
                         **({"annotations": {"openebs.io/bd-predecessor": predecessor}} if predecessor else {})},
            "spec": {"blockDeviceName": name}, "status": {"phase": "Bound"}})
        ref = {"apiVersion": "openebs.io/v1alpha1", "kind": "BlockDeviceClaim", "namespace": NS,
               "name": f"bdc-{name}", "uid": made["metadata"]["uid"]}
        self.change(name, {"spec": {"claimRef": ref}, "status": {"claimState": "Claimed"}})

    def change(self, name, patch):
        self.client.must_merge(in_ns("blockdevices", name), patch)

    def predecessor(self, name):
        """What the claim of a device says of whose place it takes; None when there is no claim."""
        status, claim = self.client.get(in_ns("blockdeviceclaims", f"bdc-{name}"))
        if status != 200:
            return None
        return claim["metadata"].get("annotations", {}).get("openebs.io/bd-predecessor", "")


class Pool:
    """A CStorPoolInstance, and the process that owns it."""

    def __init__(self, program, server, client, folder, name, *flags, node="n1", cluster="c1"):
        self.program, self.server, self.client, self.name = program, server, client, name
        self.node, self.cluster, self.flags = node, cluster, flags
        self.log, self.faults_file = f"{folder}/{name}.log", f"{folder}/{name}.faults"
        self.sparse_dir = folder  # files elsewhere are no devices
        self.process = None

    # the object

    def create(self, *groups, config=None, api=SEED, spec=None, **metadata):
        return self.client.must("POST", in_ns("cstorpoolinstances", group=api), {
            "apiVersion": api.removeprefix("/apis/"), "kind": "CStorPoolInstance",
            "metadata": {"name": self.name, "namespace": NS,
                         "labels": {"openebs.io/cstor-pool-cluster": self.cluster}, **metadata},
            "spec": spec or {"hostName": self.node, "nodeSelector": {"kubernetes.io/hostname": self.node},
                             "poolConfig": {"defaultRaidGroupType": "mirror", **(config or {})},
                             "raidGroups": list(groups)}})

    def get(self):
        status, value = self.client.get(in_ns("cstorpoolinstances", self.name))
        return value if status == 200 else None

    def patch(self, patch):
        return self.client.must_merge(in_ns("cstorpoolinstances", self.name), patch)

    def groups(self, *groups):
        self.patch({"spec": {"raidGroups": list(groups)}})

    def annotate(self, key, value):
        self.patch({"metadata": {"annotations": {key: value}}})

    def delete(self):
        self.client.must("DELETE", in_ns("cstorpoolinstances", self.name))

    @property
    def zname(self):
        return "cstor-" + self.get()["metadata"]["uid"]

    def status(self):
        return (self.get() or {}).get("status", {})

    def phase(self):
        return self.status().get("phase", "")

    def condition(self, kind):
        for c in self.status().get("conditions", []):
            if c["type"] == kind:
                return c
        return {}

    def states(self):
        """name -> state"""
        return {d["blockDeviceName"]: d["state"] for d in self.status().get("devices", [])}

    def wait(self, phase="ONLINE", seconds=90):
        wait_for(lambda: self.phase() == phase, seconds)
        return self.phase()

    def events(self):
        """Reasons of what was told of it."""
        _, value = self.client.get(f"/api/v1/namespaces/{NS}/events")
        return [e["reason"] for e in value["items"] if e["involvedObject"]["name"] == self.name]

    # the process

    def start(self, **env):
        argv = [self.program, "pool", "serve", "--kubeconfig", self.server.kubeconfig, "--namespace", NS, "--name",
                self.name, "--look-every", "200ms", "--write-every", "200ms", "--sign-every", "100ms",
                "--metrics", "127.0.0.1:0", "--sparse-dir", self.sparse_dir, *self.flags]
        with open(self.log, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(argv, stderr=log, env={
                **os.environ, "ORLOP_POOL_FAULTS": self.faults_file, **env})
        return self

    def faults(self, *lines):
        """What devices do from now on, where the program was built for tests."""
        told = "devices misbehave as they are told"
        before = self.text().count(told)
        with open(self.faults_file + ".new", "w", encoding="utf-8") as f:
            f.write("".join(line + "\n" for line in lines))
        os.replace(self.faults_file + ".new", self.faults_file)
        if self.alive():
            wait_for(lambda: self.text().count(told) > before)

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        if self.alive():
            self.process.kill()
        if self.process:
            self.process.wait()

    def stop(self):
        self.process.terminate()
        return self.process.wait(timeout=90)

    def text(self):
        try:
            with open(self.log, encoding="utf-8", errors="replace") as f:
                return f.read()
        except FileNotFoundError:
            return ""

    def metrics(self):
        port = re.findall(r"serves health and metrics port=(\d+)", self.text())[-1]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as reply:
            return reply.read().decode()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.kill()


def zdb(folder, pool, *flags):
    """What Debian's zdb says of a pool that nobody has open."""
    return run("/usr/sbin/zdb", "-e", "-p", folder, *flags, pool)
