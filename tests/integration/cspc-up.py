#!/usr/bin/env python3
"""Pools of a whole system, by kubectl alone: `orlop up --nodes 3`, ZFS on sparse devices. Every sample of the design
becomes ONLINE; each change of a pool is made by applying an edited manifest; instances that are deleted come again
with their pool; data is where it was; zdb agrees from outside; all of it goes.

cspc-up.py ORLOP TOP ZVOLDATA few|all|many

`few` has some of the samples, `all` has all of them; `many` is ten clusters of three pools each.
"""
import copy
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from server import Server  # noqa: E402
from system import System  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402

orlop, top, zvoldata = sys.argv[1:4]
how = sys.argv[4]
tap = Tap()
NS = "openebs"
SAMPLES = {"few": ["stripe", "replace-device", "migrate"],
           "all": ["stripe", "stripe-four-devices", "stripe-and-mirror", "mirror-two-nodes", "all-roles",
                   "published-form", "expand-stripe", "expand-mirror", "replace-device", "migrate"]}
DISKS = {"few": 4, "all": 18, "many": 10}[how]
PATHS = {"cspc": "openebs.io/v1alpha1", "cspi": "openebs.io/v1alpha1", "bd": "openebs.io/v1alpha1",
         "bdc": "openebs.io/v1alpha1", "deployments": "apps/v1"}
PLURALS = {"cspc": "cstorpoolclusters", "cspi": "cstorpoolinstances", "bd": "blockdevices", "bdc": "blockdeviceclaims"}


def entries(spec):
    """All places where a pool names a device."""
    for key in ("raidGroups", "dataRaidGroups", "writeCacheRaidGroups"):
        for group in spec.get(key) or []:
            yield from group["blockDevices"]


def names(cluster):
    return sorted(d["blockDeviceName"] for p in cluster["spec"]["pools"] for d in entries(p))


class Cluster:
    """What is asked of the system."""

    def __init__(self, system):
        self.system, self.free, self.given, self.made = system, {}, {}, 0
        with open(f"{system.folder}/kubeconfig", encoding="utf-8") as f:
            url = re.search(r"server: *(\S+)", f.read()).group(1)
        self.server = Server(None, f"{system.folder}/apiserver").reach(url)
        for it in self.get("bd"):
            self.free.setdefault(it["spec"]["nodeAttributes"]["nodeName"], []).append(it["metadata"]["name"])
        self.nodes = sorted(self.free)

    def get(self, kind, name=None):
        """One, {} if it is not there; or all."""
        group = f"/apis/{PATHS[kind]}" if kind in PATHS else "/api/v1"
        path = f"{group}/namespaces/{NS}/{PLURALS.get(kind, kind)}" + (f"/{name}" if name else "")
        status, value = self.server.get(path)
        return (value if status == 200 else {}) if name else value.get("items", [])

    def path_of(self, name, node):
        """Of a file that is a device there: the node's own folder has it."""
        return f"{self.system.folder}/nodes/{node}/sparse/{name}"

    def shared(self, node):
        """A disk that two machines can see, of which one has it: its BlockDevice is made by hand."""
        self.made += 1
        name = f"shared-{self.made}"
        path = self.path_of(name, node)
        with open(path, "wb") as f:
            f.truncate(160 << 20)
        self.server.create(f"/apis/openebs.io/v1alpha1/namespaces/{NS}/blockdevices", {
            "apiVersion": "openebs.io/v1alpha1", "kind": "BlockDevice",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": node, "ndm.io/managed": "false"}},
            "spec": {"nodeAttributes": {"nodeName": node}, "path": path, "capacity": {"storage": 160 << 20},
                     "details": {"deviceType": "sparse"}}})
        return name

    def attach(self, device, node):
        """The same disk, on another machine."""
        path = self.path_of(device, node)
        if not os.path.exists(path):
            os.link(self.get("bd", device)["spec"]["path"], path)
        self.system.kubectl("patch", "bd", device, "-n", NS, "--type", "merge", "-p", json.dumps(
            {"metadata": {"labels": {"kubernetes.io/hostname": node}},
             "spec": {"nodeAttributes": {"nodeName": node}, "path": path}}))

    def real(self, value, of):
        """The manifest with nodes and devices that exist; the same ones for the same names of a sample."""
        value = copy.deepcopy(value)
        value["metadata"].update(name=of, namespace=NS)
        for spec in value["spec"]["pools"]:
            host = (of, spec["nodeSelector"]["kubernetes.io/hostname"])
            if host not in self.given:
                others = {node for (cluster, _), node in self.given.items() if cluster == of}
                self.given[host] = max((n for n in self.nodes if n not in others), key=lambda n: len(self.free[n]))
            node = spec["nodeSelector"]["kubernetes.io/hostname"] = self.given[host]
            for entry in entries(spec):
                key = (of, entry["blockDeviceName"])
                if key not in self.given:
                    self.given[key] = self.shared(node) if of == "migrate" else self.free[node].pop()
                entry["blockDeviceName"] = self.given[key]
                entry.pop("capacity", None)
        return value

    def apply(self, value, what):
        tap.ran(self.system.kubectl("apply", "-f", "-", stdin=json.dumps(value)), what)

    def is_ready(self, name):
        value = self.get("cspc", name)
        return any(c["type"] == "Ready" and c["status"] == "True" and
                   c["observedGeneration"] == value["metadata"]["generation"]
                   for c in value.get("status", {}).get("conditions", []))

    def describe(self, name):
        parts = [self.get("cspc", name).get("status")] + [
            (i["metadata"]["name"], i.get("status")) for i in self.instances(name)]
        return "\n".join(json.dumps(p) for p in parts) + "\n" + self.system.kubectl(
            "get", "pods", "-n", NS, "-o", "wide").stdout

    def ready(self, name, what, seconds=180):
        return tap.ok(wait_for(lambda: self.is_ready(name), seconds), what, self.describe(name))

    def instances(self, name):
        return [i for i in self.get("cspi") if i["metadata"]["labels"]["openebs.io/cstor-pool-cluster"] == name]

    def guids(self, name):
        return sorted(i["status"]["guid"] for i in self.instances(name))

    def path(self, device):
        return self.get("bd", device)["spec"]["path"]

    def stop(self, instance, replicas=0):
        """Its process ends, and the pool is exported."""
        self.system.kubectl("scale", "deployment", instance, "-n", NS, f"--replicas={replicas}")
        if not replicas:
            wait_for(lambda: not [p for p in self.get("pods") if p["metadata"]["name"].startswith(instance)])

    def data(self, name, *verbs):
        """Writes, verifies or removes 8 MiB in a volume of the cluster's only pool, while nobody has it open."""
        (it,) = self.instances(name)
        self.stop(it["metadata"]["name"])
        paths = [self.path(d["blockDeviceName"]) for d in entries(it["spec"])]
        for verb in verbs:
            tap.ran(run(zvoldata, verb, "data", "8", "7", *paths), f"{name}: data: {verb}")
        self.stop(it["metadata"]["name"], 1)
        wait_for(lambda: self.get("deployments", it["metadata"]["name"]).get("status", {}).get("readyReplicas"), 120)


def read(file):
    return json.loads(run(orlop, "convert", "-o", "json", file).stdout)


def manifests(name):
    """The manifest of a sample and, of an edit, what it is edited to."""
    folder = os.path.join(top, "examples", "cspc")
    if os.path.isdir(os.path.join(folder, name)):
        return [read(os.path.join(folder, name, f"{when}.yaml")) for when in ("before", "after")]
    return [read(os.path.join(folder, f"{name}.yaml"))]


def check_zdb(c, name):
    """What is on the devices, as ZFS' own tool reads it."""
    for it in c.instances(name):
        said = {d["blockDeviceName"] for d in it["status"]["devices"]}
        tap.equal(said, {d["blockDeviceName"] for d in entries(it["spec"])}, f"{name}: the pool has these devices")
        for device in entries(it["spec"]):
            shown = run("zdb", "-l", c.path(device["blockDeviceName"])).stdout
            found = re.search(r"^    pool_guid: (\d+)$", shown, re.M)
            if found:  # caches and spares do not say it
                tap.equal(found.group(1), it["status"]["guid"], f"{name}: zdb says the same of {device['blockDeviceName']}")


def edit(c, name, after):
    before = c.guids(name)
    c.data(name, "write")
    if name == "migrate":
        target = c.real(after, name)["spec"]["pools"][0]["nodeSelector"]["kubernetes.io/hostname"]
        refused = c.system.kubectl("apply", "-f", "-", stdin=json.dumps(c.real(after, name)))
        tap.ok(refused.returncode and "attach all devices" in refused.stderr, "migrate: is refused before the disks moved",
               refused.stderr)
        for device in names(c.real(after, name)):
            c.attach(device, target)
        c.apply(c.real(after, name), "migrate: the node selector is edited")
        tap.ok(wait_for(lambda: c.instances(name)[0]["spec"]["hostName"] == target, 180), "migrate: it moves",
               c.describe(name))
    else:
        c.apply(c.real(after, name), f"{name}: is edited")
    c.ready(name, f"{name}: is as it is wanted")
    wanted = names(c.real(after, name))
    tap.ok(wait_for(lambda: sorted(d["blockDeviceName"] for d in c.instances(name)[0]["status"]["devices"]) == wanted,
                    120), f"{name}: ZFS has these devices", c.describe(name))
    tap.equal(c.guids(name), before, f"{name}: it is the same pool")
    c.data(name, "verify", "remove")
    c.ready(name, f"{name}: is ready again")


def check_healing(c):
    before = c.guids("stripe")
    (it,) = c.instances("stripe")
    tap.ran(c.system.kubectl("delete", "cspi", it["metadata"]["name"], "-n", NS, "--timeout=120s"), "an instance is deleted")
    tap.ok(wait_for(lambda: [i["metadata"]["uid"] for i in c.instances("stripe")] not in ([], [it["metadata"]["uid"]]), 120),
           "it comes again", c.describe("stripe"))
    c.ready("stripe", "and is ready")
    tap.equal((c.guids("stripe"), c.instances("stripe")[0]["metadata"]["name"]), (before, it["metadata"]["name"]),
              "with its name and its pool")


def check_samples(c):
    parts = {name: manifests(name) for name in SAMPLES[how]}
    for name, values in parts.items():
        c.apply(c.real(values[0], name), f"{name}: is applied")
    for name, values in parts.items():
        c.ready(name, f"{name}: is ready")
        tap.equal([i["status"]["phase"] for i in c.instances(name)], ["ONLINE"] * len(values[0]["spec"]["pools"]),
                  f"{name}: its pools are ONLINE")
        check_zdb(c, name)
    for name, values in parts.items():
        if len(values) > 1:
            edit(c, name, values[1])
    check_healing(c)
    pool = c.instances("stripe")[0]["metadata"]["name"]
    for verb, kind, answer in (("patch", "cspi", "yes"), ("list", "secrets", "no"), ("delete", "cspc", "no"),
                               ("list", "nodes", "yes"), ("delete", "nodes", "no")):
        said = c.system.kubectl("auth", "can-i", verb, kind, "-n", NS, "--as",
                                f"system:serviceaccount:{NS}:orlop-pool-{pool}")
        tap.equal(said.stdout.strip(), answer, f"may it {verb} {kind}? {answer}")


def check_many(c):
    for n in range(10):
        pools = [{"nodeSelector": {"kubernetes.io/hostname": node}, "poolConfig": {"defaultRaidGroupType": "stripe"},
                  "raidGroups": [{"blockDevices": [{"blockDeviceName": c.free[node].pop()}]}]} for node in c.nodes]
        c.apply({"apiVersion": "openebs.io/v1alpha1", "kind": "CStorPoolCluster", "metadata": {
            "name": f"many-{n}", "namespace": NS}, "spec": {"pools": pools}}, f"cluster {n} is applied")
    for n in range(10):
        c.ready(f"many-{n}", f"cluster {n} is ready", 600)
    tap.equal(len({g for n in range(10) for g in c.guids(f"many-{n}")}), 30, "thirty pools")


with Scratch() as scratch:
    system = System(orlop, scratch.file("up"), "--nodes", "3", "--sparse-disks", f"{DISKS}x160Mi")
    with system:
        c = Cluster(system)
        (check_many if how == "many" else check_samples)(c)
        went = tap.ran(system.kubectl("delete", "cspc", "--all", "-n", NS, "--timeout=120s", timeout=400), "all go")
        for it in c.get("cspc") if went.returncode else []:
            print("#", c.describe(it["metadata"]["name"]).replace("\n", "\n# "))
        tap.ok(wait_for(lambda: not c.get("cspi") and not c.get("bdc") and not c.get("deployments"), 180),
               "nothing is left", [c.get("cspi"), c.get("bdc")])
        tap.ok(wait_for(lambda: all(b["status"]["claimState"] == "Unclaimed" for b in c.get("bd")), 180),
               "every device is free again", [b for b in c.get("bd") if b["status"]["claimState"] != "Unclaimed"])
    for name in sorted(os.listdir(scratch.file("up/logs"))):
        with open(scratch.file(f"up/logs/{name}"), encoding="utf-8", errors="replace") as log:
            text = log.read()
        tap.ok("Sanitizer" not in text, f"no sanitizer complained in {name}", text[-3000:])
tap.done()
