"""LogicalVolumes for tests: what the API says of them, and what a node's own LVM does."""
import json
import os
import subprocess
import urllib.request

from server import Client
from tap import run, wait_for

GROUPS = ("topolvm.cybozu.com", "topolvm.io")
MEBI = 1 << 20


def volume(name, node, size, group=GROUPS[0], **spec):
    """A manifest."""
    return {"apiVersion": f"{group}/v1", "kind": "LogicalVolume", "metadata": {"name": name},
            "spec": {"name": name, "nodeName": node, "size": size, **spec}}


def manifest(*objects):
    """Several, for kubectl."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})


class Lvm:
    """The LVM of a node, by its data folder."""

    def __init__(self, folder):
        self.folder = folder
        self.env = {**os.environ, "LVM_SYSTEM_DIR": f"{folder}/lvm/etc", "LVM_SUPPRESS_FD_WARNINGS": "1"}

    def run(self, *words):
        return run(*words, env=self.env)

    def report(self, command, columns):
        """Rows of lvs or vgs; [] while it cannot be asked."""
        result = self.run(command, "--reportformat", "json", "--units", "b", "--nosuffix", "-o", columns)
        if result.returncode != 0:
            return []
        return json.loads(result.stdout)["report"][0][command[:-1]]

    def volumes(self):
        """name -> size"""
        return {lv["lv_name"]: int(lv["lv_size"]) for lv in self.report("lvs", "lv_name,lv_size")}

    def free(self):
        return int(self.report("vgs", "vg_free")[0]["vg_free"])


def agree(objects, lvms):
    """"" when LVM has exactly what these objects say, on each node; else what is different."""
    for node, lvm in lvms.items():
        said = {o["status"]["volumeID"]: parse(o["status"]["currentSize"]) for o in objects
                if o["spec"]["nodeName"] == node and o.get("status", {}).get("volumeID")}
        there = lvm.volumes()
        if said != there:
            return f"{node}: objects say {said}, LVM {there}"
        wrong = [o for o in objects if o.get("status", {}).get("volumeID", o["metadata"]["uid"])
                 != o["metadata"]["uid"]]
        if wrong:
            return f"not called by their uid: {wrong}"
    return ""


def parse(quantity):
    """The quantities that the agent writes."""
    units = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}
    return int(quantity[:-2]) * units[quantity[-2:]] if quantity[-2:] in units else int(quantity)


def settle(question, seconds=60):
    """Waits until it answers ""; what it answered last."""
    last = [question()]

    def asked():
        last[0] = question()
        return last[0] == ""
    wait_for(asked, seconds)
    return last[0]


class Agent:
    """An orlop-node with a volume group of its own, if it has disks for it, and the API server that it is at."""

    def __init__(self, program, server, folder, name, *flags, disks="1x1Gi"):
        self.server, self.name, self.folder = server, name, folder
        self.client = Client(server)
        self.lvm = Lvm(folder)
        self.log = f"{folder}.log"
        self.argv = [program, "--kubeconfig", server.kubeconfig, "--name", name, "--data-dir", folder,
                     "--health-port", "0", "--discover=false", *(["--vg-disks", disks] if disks else []), *flags]
        self.process = None

    def start(self, *flags, **env):
        with open(self.log, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen([*self.argv, *flags], stderr=log, env={**os.environ, **env})
        return self

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.terminate()
        return self.process.wait(timeout=60)

    def alive(self):
        return self.process.poll() is None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        if self.alive():
            self.stop()

    def text(self):
        with open(self.log, encoding="utf-8") as log:
            return log.read()

    def metrics(self):
        """name and labels, as they are written -> value"""
        port = [line.rsplit("port=", 1)[1] for line in self.text().splitlines() if "port=" in line][-1]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as reply:
            lines = reply.read().decode().splitlines()
        return {key: float(value) for key, _, value in (line.rpartition(" ") for line in lines
                                                        if not line.startswith("#"))}

    # LogicalVolumes, by the API.

    @staticmethod
    def path(name="", group=GROUPS[0]):
        return f"/apis/{group}/v1/logicalvolumes{'/' if name else ''}{name}"

    def create(self, name, size, group=GROUPS[0], **spec):
        reply = self.client.ask("POST", self.path(group=group), volume(name, self.name, size, group, **spec))
        if reply.status != 201:
            raise AssertionError(reply.text)
        return reply.json

    def patch(self, name, **what):
        return self.client.ask("PATCH", self.path(name), what, content_type="application/merge-patch+json")

    def grow(self, name, size):
        return self.patch(name, spec={"size": size})

    def delete(self, *names):
        for name in names:
            self.client.ask("DELETE", self.path(name))

    def all(self):
        return self.client.ask("GET", self.path()).json["items"]

    def status(self, name):
        reply = self.client.ask("GET", self.path(name))
        return reply.json.get("status", {}) if reply.status == 200 else {}

    def annotation(self, key):
        node = self.client.ask("GET", f"/api/v1/nodes/{self.name}").json
        return node.get("metadata", {}).get("annotations", {}).get(key, "")

    def agree(self):
        """"" when every object has what it wants and LVM has exactly that."""
        objects = self.all()
        for each in objects:
            status, wanted = each.get("status", {}), parse(each["spec"]["size"])
            if "deletionTimestamp" in each["metadata"]:
                return f"{each['metadata']['name']} is not gone"
            if not status.get("volumeID") or parse(status["currentSize"]) < wanted or status.get("code"):
                return f"{each['metadata']['name']} is not as it is wanted: {each}"
        return agree(objects, {self.name: self.lvm})
