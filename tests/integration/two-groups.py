#!/usr/bin/env python3
"""LogicalVolumes where both API groups are apart, as on a cluster: Kubernetes' kinds alone are built in, ours
come as definitions. One node with real LVM, one controller, claims of both groups' classes.

two-groups.py APISERVER TOP ORLOP CONTROLLER NODE
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from controller import Controller  # noqa: E402
from server import Server  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402
from volumes import Agent, agree, settle  # noqa: E402

apiserver, top, orlop, controller, node = sys.argv[1:6]
tap = Tap()
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
OLD, NEW = "topolvm.cybozu.com", "topolvm.io"
FLAGS = ("--controllers", "topolvm-controller,topolvm-provisioner,persistentvolume-binder,node-lifecycle")


def claim(name, group, size):
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": f"of.{group}",
                     "volumeMode": "Block", "resources": {"requests": {"storage": size}}}}


class Cluster:
    """A server, what it was told of LogicalVolumes, and one node."""

    def __init__(self, server, agent, groups):
        self.server, self.agent, self.groups = server, agent, groups
        for group in (OLD, NEW):
            server.create(CLASSES, {
                "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": f"of.{group}"},
                "provisioner": group, "allowVolumeExpansion": True})

    def volumes(self, group):
        return self.server.get(Agent.path(group=group))[1].get("items", [])

    def all(self):
        return [lv for group in self.groups for lv in self.volumes(group)]

    def claim(self, name):
        return self.server.get(f"{CLAIMS}/{name}")[1]

    def capacity(self, name):
        return self.claim(name).get("status", {}).get("capacity", {}).get("storage")

    def agree(self, what):
        tap.equal(settle(lambda: agree(self.all(), {"n1": self.agent.lvm})), "", what)

    def has(self, name, size, what):
        tap.ok(wait_for(lambda: self.capacity(name) == size, 60), what, self.claim(name))

    def grow(self, name, size):
        tap.ran(self.server.kubectl("patch", "pvc", name, "--type", "merge", "-p", json.dumps(
            {"spec": {"resources": {"requests": {"storage": size}}}})), f"{name} is to have {size}")

    def waits(self, name):
        return any(c["type"] == "Provisioned" and c["reason"] == "ResourceExhausted"
                   for c in self.claim(name).get("status", {}).get("conditions", []))


def made(c, group):
    name = f"v-{group}"
    c.agent.create(name, "8Mi", group)
    tap.ok(wait_for(lambda: [lv for lv in c.volumes(group) if lv["metadata"]["name"] == name
                             and lv.get("status", {}).get("currentSize") == "8Mi"], 120),
           f"a volume of {group}", c.volumes(group))


def both(c):
    for name, group in (("old", OLD), ("new", NEW)):
        c.server.create(CLAIMS, claim(name, group, "256Mi"))
        c.has(name, "256Mi", f"a claim of the class of {group}")
        tap.equal([(lv["apiVersion"], lv["metadata"]["finalizers"]) for lv in c.volumes(group)],
                  [(f"{group}/v1", [f"{group}/logicalvolume"])], "its volume is of that group")
    c.agree("LVM has both")
    for name in ("old", "new"):
        c.grow(name, "320Mi")
        c.has(name, "320Mi", "it grows")
    c.agree("LVM says so too")
    # 1020 MiB in all, 640 are taken: 300 of one group, and there is none for the other.
    c.server.create(CLAIMS, claim("more", OLD, "300Mi"))
    c.has("more", "300Mi", "what is left goes to one group")
    c.server.create(CLAIMS, claim("much", NEW, "300Mi"))
    tap.ok(wait_for(lambda: c.waits("much"), 60), "and is not promised to the other", c.claim("much"))
    env = {**os.environ, "KUBECONFIG": c.server.kubeconfig}
    listed = json.loads(run(orlop, "lv", "list", "-o", "json", env=env).stdout)["items"]
    tap.equal(sorted(lv["apiVersion"] for lv in listed), [f"{OLD}/v1", f"{OLD}/v1", f"{NEW}/v1"],
              "orlop lv list shows both groups'")
    c.server.kubectl("delete", "pvc", "old", "new", "more", "--wait=false")
    c.has("much", "300Mi", "it has its volume when there is room")
    c.server.kubectl("delete", "pvc", "much", "--wait=false")
    tap.ok(wait_for(lambda: not c.all(), 60), "all go", c.all())
    c.agree("from LVM too")
    for group in (OLD, NEW):
        made(c, group)
    forgotten = run(orlop, "node", "forget", "n1", "--force", env=env)
    tap.ok("forgotten, 2 logical volumes" in forgotten.stdout, "a node is forgotten with the volumes of both",
           forgotten.stdout + forgotten.stderr)


def one(c):
    """A cluster that has the new group alone: the other class's volumes are made there too."""
    for name, group in (("old", OLD), ("new", NEW)):
        c.server.create(CLAIMS, claim(name, group, "64Mi"))
        c.has(name, "64Mi", f"a claim of the class of {group}, where there is only {NEW}")
    tap.equal(len(c.all()), 2, "both are in the one group")
    env = {**os.environ, "KUBECONFIG": c.server.kubeconfig}
    created = run(orlop, "lv", "create", "x", "--node", "n1", "--size", "64Mi", "--wait", env=env)
    tap.ok(created.returncode == 0 and len(c.all()) == 3, "orlop lv create finds it", created.stderr)
    c.agree("LVM has them")
    c.server.kubectl("delete", "pvc", "old", "new", "--wait=false")
    run(orlop, "lv", "delete", "x", env=env)
    tap.ok(wait_for(lambda: not c.all(), 60), "all go", c.all())
    tap.ran(c.server.kubectl("apply", f"-f={top}/deploy/crds/{OLD}_logicalvolumes.yaml"), "the other group comes")
    tap.ran(c.server.kubectl("wait", "--for=condition=Established", "crd", f"logicalvolumes.{OLD}",
                             "--timeout=60s"), "later")
    made(c, OLD)


for groups, test in (((OLD, NEW), both), ((NEW,), one)):
    with Scratch() as scratch, Server(apiserver, f"{scratch.path}/api", "--only-kubernetes") as server:
        crds = [crd for crd in sorted(os.listdir(f"{top}/deploy/crds"))
                if not crd.startswith("topolvm") or crd.split("_", maxsplit=1)[0] in groups]
        tap.ran(server.kubectl("apply", *(f"-f={top}/deploy/crds/{crd}" for crd in crds)),
                f"definitions for {' and '.join(groups)}")
        tap.ran(server.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"),
                "are established")
        with Agent(node, server, f"{scratch.path}/n1", "n1") as agent, \
                Controller(controller, server, f"{scratch.path}/controller.log", *FLAGS):
            tap.ok(wait_for(lambda: agent.annotation("capacity.topolvm.io/00default"), 60),
                   "the node says how much room it has")
            test(Cluster(server, agent, groups))
tap.done()
