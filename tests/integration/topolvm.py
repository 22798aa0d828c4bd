#!/usr/bin/env python3
"""Claims on LVM: made, bound, grown, refused, taken back, deleted, kept; many at once; nodes that are
lost and forgotten. The nodes only pretend (tests/lib/pretend_volumes.py).

topolvm.py APISERVER TOP ORLOP CONTROLLER
"""
import concurrent.futures
import json
import os
import pty
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from controller import Controller  # noqa: E402
from pretend_volumes import LVS, VolumeNodes  # noqa: E402
from server import Server  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402

program, top, orlop, controller_program = sys.argv[1:5]
tap = Tap()
GI = 1 << 30
CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
VOLUMES = "/api/v1/persistentvolumes"
CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
LEGACY = "/apis/topolvm.cybozu.com/v1/logicalvolumes"
CAPACITIES = "/apis/storage.k8s.io/v1/csistoragecapacities"


def storage_class(name, provisioner="topolvm.io", parameters=None, **more):
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
            "provisioner": provisioner, "allowVolumeExpansion": True,
            "parameters": parameters or {f"{provisioner}/device-class": "ssd"}, **more}


def claim(name, size="1Gi", of="fast", mode="Block", **spec):
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
            "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": of, "volumeMode": mode,
                     "resources": {"requests": {"storage": size}}, **spec}}


class Cluster:
    """What is asked of a server in every test here."""

    def __init__(self, server):
        self.server = server

    def claim(self, name):
        return self.server.get(f"{CLAIMS}/{name}")[1]

    def phase(self, name):
        return self.claim(name).get("status", {}).get("phase")

    def capacity(self, name):
        return self.claim(name).get("status", {}).get("capacity", {}).get("storage")

    def progress(self, name):
        return self.claim(name)["status"].get("allocatedResourceStatuses", {}).get("storage")

    def condition(self, name, kind):
        for it in self.claim(name).get("status", {}).get("conditions", []):
            if it["type"] == kind:
                return it
        return None

    def items(self, path):
        return self.server.get(path)[1]["items"]

    def volume(self, name):
        return self.server.get(f"{VOLUMES}/{self.claim(name)['spec']['volumeName']}")[1]

    def lv(self, name):
        return self.server.get(f"{LVS}/pvc-{self.claim(name)['metadata']['uid']}")[1]

    def events(self, reason, name):
        return [e["message"] for e in self.items("/api/v1/namespaces/default/events")
                if e["reason"] == reason and e["involvedObject"]["name"] == name]

    def grow(self, name, size):
        patch = {"spec": {"resources": {"requests": {"storage": size}}}}
        return self.server.kubectl("patch", "pvc", name, "--type", "merge", "-p", json.dumps(patch))

    def bound(self, name, what):
        return tap.ok(wait_for(lambda: self.phase(name) == "Bound"), what, self.claim(name))

    def gone(self, path):
        return wait_for(lambda: self.server.get(path)[0] == 404)


def check_life(c, nodes):
    server = c.server
    server.create(CLASSES, storage_class("fast", mountOptions=["noatime"]))
    server.create(CLAIMS, claim("a"))
    c.bound("a", "a claim is bound")
    pv, lv, node = c.volume("a"), c.lv("a"), c.lv("a")["spec"]["nodeName"]
    spec = pv["spec"]
    tap.equal((spec["csi"]["driver"], spec["csi"]["volumeHandle"], spec["capacity"]["storage"],
               spec["persistentVolumeReclaimPolicy"], spec["mountOptions"], spec["volumeMode"]),
              ("topolvm.io", lv["status"]["volumeID"], "1Gi", "Delete", ["noatime"], "Block"),
              "its volume says what it is")
    tap.equal(spec["nodeAffinity"]["required"]["nodeSelectorTerms"][0]["matchExpressions"],
              [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}],
              "and where")
    tap.equal((lv["spec"]["deviceClass"], lv["metadata"]["labels"],
               lv["metadata"]["finalizers"]),
              ("ssd", {"app.kubernetes.io/created-by": "topolvm-controller"},
               ["topolvm.io/logicalvolume"]), "its LogicalVolume too")
    tap.ok(wait_for(lambda: "orlop.io/claim" not in c.lv("a")["metadata"].get(
        "annotations", {})), "which is marked no more")
    tap.ran(server.kubectl("wait", "pvc/a", "--for=jsonpath={.status.phase}=Bound",
                           "--timeout=10s"), "kubectl waits for it")

    for size in ("2Gi", "3Gi"):
        tap.ran(c.grow("a", size), f"it is asked to grow to {size}")
        tap.ok(wait_for(lambda size=size: c.capacity("a") == size), "it grows", c.claim("a"))
    tap.equal((c.volume("a")["spec"]["capacity"]["storage"], c.lv("a")["spec"]["size"],
               c.progress("a"), c.claim("a")["status"]["allocatedResources"]["storage"],
               c.claim("a")["status"].get("conditions", [])),
              ("3Gi", "3Gi", None, "3Gi", []), "all say so, and nothing is left to do")

    c.grow("a", "30Gi")
    tap.ok(wait_for(lambda: c.progress("a") == "ControllerResizeInfeasible"), "too much is infeasible",
           c.claim("a"))
    said = c.condition("a", "ControllerResizeError")["message"]
    tap.equal(said, f"OUT_OF_RANGE: to grow, the volume needs 27Gi more on node {node}, which has 5Gi",
              "it says why, with figures")
    tap.equal((c.capacity("a"), c.lv("a")["spec"]["size"], c.claim("a")["status"]
               ["allocatedResources"]["storage"]), ("3Gi", "3Gi", "30Gi"), "it stays as it was")
    tap.ok(wait_for(lambda: c.events("VolumeResizeFailed", "a")), "an event says so")
    c.grow("a", "4Gi")
    tap.ok(wait_for(lambda: c.capacity("a") == "4Gi"), "asking for less mends it", c.claim("a"))
    tap.equal((c.progress("a"), c.condition("a", "ControllerResizeError")), (None, None), "entirely")

    c.grow("a", "10Gi")
    wait_for(lambda: c.progress("a") == "ControllerResizeInfeasible")
    nodes.resize(node, 16 * GI)
    tap.ok(wait_for(lambda: c.capacity("a") == "10Gi"), "what had no room grows when there is some",
           c.claim("a"))
    nodes.room[node] = 8 * GI  # and less than it says: the node itself has to refuse
    c.grow("a", "12Gi")
    tap.ok(wait_for(lambda: c.progress("a") == "ControllerResizeInfeasible"),
           "what the node refuses is infeasible too", c.claim("a"))
    tap.ok("OUT_OF_RANGE: node" in c.condition("a", "ControllerResizeError")["message"],
           "in the node's words", c.condition("a", "ControllerResizeError"))
    tap.equal((c.lv("a")["spec"]["size"], c.lv("a")["status"]["code"]), ("10Gi", 11),
              "and the promise is withdrawn")
    nodes.resize(node, 8 * GI + 10 * GI)
    tap.ok(wait_for(lambda: c.capacity("a") == "12Gi"), "until it can", c.claim("a"))
    nodes.resize(node, 8 * GI)

    server.create(CLAIMS, claim("fs", mode="Filesystem"))
    c.bound("fs", "a claim for a file system is bound")
    c.grow("fs", "2Gi")
    tap.ok(wait_for(lambda: c.progress("fs") == "NodeResizePending"), "its growth waits for the node",
           c.claim("fs"))
    tap.equal((c.volume("fs")["spec"]["capacity"]["storage"], c.capacity("fs"),
               c.volume("fs")["spec"]["csi"]["fsType"],
               c.condition("fs", "FileSystemResizePending")["status"]),
              ("2Gi", "1Gi", "ext4", "True"), "which it says")

    name = f"pvc-{c.claim('a')['metadata']['uid']}"
    for each in ("a", "fs"):
        server.kubectl("delete", "pvc", each)
    tap.ok(c.gone(f"{VOLUMES}/{name}") and c.gone(f"{LVS}/{name}"), "all goes with the claim")
    tap.ok(wait_for(lambda: not c.items(LVS) and not c.items(VOLUMES)), "of both")


def check_kinds(c, nodes):
    server = c.server
    server.create(CLASSES, storage_class("keep", "topolvm.cybozu.com", {
        "topolvm.cybozu.com/device-class": "ssd"}, reclaimPolicy="Retain"))
    server.create(CLASSES, storage_class("oldest", parameters={"topolvm.io/volume-group": "vg0"}))
    server.create(CLASSES, storage_class("plain", parameters={"x": "y"}))
    for of in ("keep", "oldest", "plain"):
        server.create(CLAIMS, claim(of, of=of))
        c.bound(of, f"a claim of the class {of} is bound")
    lv = server.get(f"{LEGACY}/{c.lv('keep')['metadata']['name']}")[1]
    tap.equal((lv["metadata"]["finalizers"], lv["spec"]["vgName"], c.lv("keep")["spec"]["deviceClass"],
               c.volume("keep")["spec"]["csi"]["driver"]),
              (["topolvm.cybozu.com/logicalvolume"], "ssd", "ssd", "topolvm.cybozu.com"),
              "both groups have it, the legacy one with its own names")
    tap.equal((c.lv("oldest")["spec"]["deviceClass"], "deviceClass" in c.lv("plain")["spec"]),
              ("vg0", False), "a volume group, and the default")
    name = lv["metadata"]["name"]
    server.kubectl("delete", "pvc", "keep")
    tap.ok(wait_for(lambda: server.get(f"{VOLUMES}/{name}")[1]["status"]["phase"] == "Released"),
           "what is to be kept is released")
    server.kubectl("delete", "pv", name)
    tap.ok(c.gone(f"{VOLUMES}/{name}"), "its volume can be deleted")
    tap.equal(server.get(f"{LVS}/{name}")[0], 200, "the LogicalVolume stays")
    server.kubectl("delete", "lv", name)
    for of in ("oldest", "plain"):
        server.kubectl("delete", "pvc", of)
    tap.ok(wait_for(lambda: not c.items(LVS)), "nothing is left")

    server.create(CLAIMS, claim("many", accessModes=["ReadWriteMany"]))
    tap.ok(wait_for(lambda: c.condition("many", "Provisioned")), "many nodes cannot use one")
    tap.ok(c.condition("many", "Provisioned")["message"].startswith("INVALID_ARGUMENT: a local"),
           "it says why")
    server.create(CLASSES, storage_class("none", parameters={"topolvm.io/device-class": "no"}))
    server.create(CLAIMS, claim("nowhere", of="none"))
    tap.ok(wait_for(lambda: c.condition("nowhere", "Provisioned")), "a class that no node has")
    tap.equal(c.condition("nowhere", "Provisioned")["message"],
              'RESOURCE_EXHAUSTED: no node that is ready and allowed has the device class "no"',
              "it says that")

    # A claim that goes before its volume is made leaves nothing.
    nodes.ignores = lambda lv: True
    server.create(CLAIMS, claim("early"))
    tap.ok(wait_for(lambda: len(c.items(LVS)) == 1), "a volume is promised")
    server.kubectl("delete", "pvc", "early", "many", "nowhere")
    tap.ok(wait_for(lambda: "deletionTimestamp" in c.items(LVS)[0]["metadata"]),
           "and not wanted any more when its claim is gone")
    nodes.ignores = lambda lv: False
    tap.ok(wait_for(lambda: not c.items(LVS) and not c.items(VOLUMES)), "so it goes")


def check_failures(c, nodes, controller):
    server = c.server
    server.create(CLAIMS, claim("f"))
    c.bound("f", "a claim")
    name = c.lv("f")["metadata"]["name"]
    nodes.fails[name] = (13, "the disk is on fire")
    c.grow("f", "2Gi")
    tap.ok(wait_for(lambda: c.condition("f", "ControllerResizeError")), "a failure is said")
    tap.equal((c.condition("f", "ControllerResizeError")["message"], c.progress("f")),
              ("INTERNAL: the disk is on fire", "ControllerResizeInProgress"),
              "and will be tried again")
    tap.ok(wait_for(lambda: any(k == "topolvm.io/resize-requested-at"
                                for k in c.lv("f")["metadata"].get("annotations", {}))),
           "the node is asked to")
    metric = 'orlop_topolvm_resize_failures_total{namespace="default",persistentvolumeclaim="f"}'
    tap.ok(controller.metric(metric) >= 1, "a metric counts it")
    del nodes.fails[name]
    nodes.tried.clear()
    tap.ok(wait_for(lambda: c.capacity("f") == "2Gi"), "it works in the end", c.claim("f"))
    server.kubectl("delete", "pvc", "f")
    wait_for(lambda: not c.items(LVS))


def check_killed(c, controller):
    """Growth goes on where it was."""
    names = [f"k{n}" for n in range(6)]
    for name in names:
        c.server.create(CLAIMS, claim(name))
    wait_for(lambda: all(c.phase(name) == "Bound" for name in names))
    for name in names:
        c.server.ask("PATCH", f"{CLAIMS}/{name}", {"spec": {"resources": {"requests": {
            "storage": "2Gi"}}}}, content_type="application/merge-patch+json")
        if name in ("k1", "k3", "k5"):
            controller.signal(9)
            controller.wait()
            controller.start()
    tap.ok(wait_for(lambda: all(c.capacity(name) == "2Gi" and not c.progress(name) for name in names)),
           "claims grow though the controller is killed", [c.claim(name)["status"] for name in names])
    tap.equal({c.lv(name)["spec"]["size"] for name in names}, {"2Gi"}, "once each")
    c.server.kubectl("delete", "pvc", *names)
    wait_for(lambda: not c.items(LVS))


def check_capacity(c, nodes):
    server = c.server

    def published():
        return sorted((it["storageClassName"], it["capacity"],
                       it["nodeTopology"]["matchLabels"]["kubernetes.io/hostname"])
                      for it in c.items(CAPACITIES) if it["storageClassName"] == "fast")

    tap.ok(wait_for(lambda: published() == [("fast", "8Gi", n) for n in sorted(nodes.names)]),
           "capacity is published", published())
    tap.ok(server.get("/apis/storage.k8s.io/v1/csidrivers/topolvm.io")[1]["spec"]["storageCapacity"],
           "the driver says that it is")
    server.create(CLASSES, storage_class("late", volumeBindingMode="WaitForFirstConsumer"))
    server.create(CLAIMS, claim("w", "6Gi", of="late", mode="Filesystem"))
    server.create(CLAIMS, claim("v", "1Gi", of="late", mode="Filesystem"))
    tap.ok(wait_for(lambda: c.events("WaitForFirstConsumer", "w")), "a claim waits for its consumer")
    tap.equal(c.items(LVS), [], "nothing is made yet")
    nodes.resize("n1", 2 * GI)
    nodes.resize("n3", 6 * GI)
    wait_for(lambda: [it[1] for it in published()] == ["2Gi", "6Gi", "8Gi"])
    server.create("/api/v1/namespaces/default/pods", {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "user"},
        "spec": {"containers": [{"name": "c", "image": "i"}], "volumes": [
            {"name": x, "persistentVolumeClaim": {"claimName": x}} for x in ("w", "v")]}})
    c.bound("w", "it is bound when there is one")
    c.bound("v", "so is the other")
    tap.ok(wait_for(lambda: server.get("/api/v1/namespaces/default/pods/user")[1]["spec"].get(
        "nodeName") == "n2"), "where there is room for both, and there the pod runs")
    server.kubectl("delete", "pod", "user", "--now")
    server.kubectl("delete", "pvc", "w", "v")
    wait_for(lambda: not c.items(LVS))
    nodes.refusals = 0
    check_consumers(c, nodes)
    server.kubectl("delete", "storageclass", "late")
    tap.ok(wait_for(lambda: not [it for it in c.items(CAPACITIES)
                                 if it["storageClassName"] == "late"]), "it goes with the class")


def check_consumers(c, nodes):
    """Twelve pods with a claim each, room for six."""
    server, pods = c.server, "/api/v1/namespaces/default/pods"
    for node in nodes.names:
        nodes.resize(node, 2 * GI)
    for n in range(12):
        server.create(CLAIMS, claim(f"p{n}", of="late", mode="Filesystem"))
        server.create(pods, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"p{n}"},
                             "spec": {"containers": [{"name": "c", "image": "i"}], "volumes": [
                                 {"name": "v", "persistentVolumeClaim": {"claimName": f"p{n}"}}]}})

    def state():
        return tuple(sum(it.get("status", {}).get("phase") == phase for it in c.items(path))
                     for path, phase in ((CLAIMS, "Bound"), (pods, "Running")))
    tap.ok(wait_for(lambda: state() == (6, 6)), "of many pods those run for which there is room", state())
    nodes.resize("n2", 4 * GI)
    tap.ok(wait_for(lambda: state() == (8, 8)), "two more when there is more", state())
    tap.equal(nodes.refusals, 0, "and no node was asked for more than it had")
    server.kubectl("delete", "pod", "--all", "--now")
    server.kubectl("delete", "pvc", "--all")
    wait_for(lambda: not c.items(LVS))
    for node in nodes.names:
        nodes.resize(node, 8 * GI)


def check_race(c, nodes, controller):
    """Fifty claims, room for twenty (8 + 8 + 4)."""
    server = c.server
    nodes.resize("n3", 4 * GI)
    nodes.refusals, nodes.least = 0, GI
    for number in range(2):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            pool.map(lambda n: server.create(CLAIMS, claim(f"r{n:02}")), range(50))
            if number:
                wait_for(lambda: len(c.items(LVS)) >= 5)
                controller.signal(9)
                controller.wait()
                controller.start()

        def state():
            found = c.items(CLAIMS)
            return (sum(it.get("status", {}).get("phase") == "Bound" for it in found),
                    sum(any(x["type"] == "Provisioned" and x["reason"] == "ResourceExhausted"
                            for x in it.get("status", {}).get("conditions", [])) for it in found))
        how = ", the controller killed meanwhile" if number else ""
        tap.ok(wait_for(lambda: state() == (20, 30)), f"of fifty twenty are bound, thirty say why{how}",
               state())
        tap.equal((len(c.items(LVS)), len(c.items(VOLUMES)), nodes.least), (20, 20, 0),
                  "no node gave more than it had")
        # What a controller was writing when it was killed, the next may not have seen yet.
        tap.ok(nodes.refusals <= number, "nor was it asked for more", nodes.refusals)
        waiting = [it for it in c.items(CLAIMS) if it["status"]["phase"] == "Pending"]
        message = waiting[0]["status"]["conditions"][0]["message"]
        tap.equal(message, 'RESOURCE_EXHAUSTED: no node has room for 1Gi of the device class "ssd": n1 '
                  "has 0, n2 has 0, n3 has 0", "with figures")
        if not number:
            tap.equal(controller.metric("orlop_topolvm_claims_waiting"), 30, "a metric counts them")
            tap.equal(controller.metric(
                'orlop_topolvm_reserved_bytes{node="n1",device_class="ssd"}'), 0, "nothing is owed")
            nodes.resize("n3", 5 * GI)
            tap.ok(wait_for(lambda: state()[0] == 21), "one more when there is room for one more")
        server.kubectl("delete", "pvc", "--all", "--wait=false")
        tap.ok(wait_for(lambda: not (c.items(CLAIMS) or c.items(LVS) or c.items(VOLUMES))),
               "all go again")
        nodes.resize("n3", 4 * GI)
        nodes.least = GI
    nodes.resize("n3", 8 * GI)


def check_commands(c, nodes, scratch):
    server = c.server
    env = {**os.environ, "KUBECONFIG": server.kubeconfig, "HOME": scratch.path}

    def orlop_ran(name, *argv, status=0, stdout=None, stderr="", env=env):
        result = run(orlop, *argv, env=env)
        out = re.sub(r"\b\d+s\b", "9s", result.stdout)
        tap.ok(result.returncode == status and (stdout is None or out == stdout) and
               result.stderr == stderr, name, f"{result.returncode}\n{result.stdout}{result.stderr}")
        return result

    lv = "logicalvolume.topolvm.cybozu.com"
    orlop_ran("nothing to list", "lv", "list", stderr="No resources found\n")
    orlop_ran("nothing to audit", "lv", "audit", stdout="Nodes and objects say the same.\n")
    orlop_ran("a volume is made", "lv", "create", "x", "--node", "n1", "--size", "1Gi", "--wait",
              stdout=f"{lv}/x created\n")
    orlop_ran("another, of a class", "lv", "create", "y", "-n", "n2", "-s", "2Gi", "-c", "ssd",
              "-w", "-o", "name", stdout=f"{lv}/y\n")
    orlop_ran("a table", "lv", "list", stdout="""\
NAME   NODE   CLASS    SIZE   CURRENT   STATE   MESSAGE   AGE
x      n1     <none>   1Gi    1Gi       Ready   <none>    9s
y      n2     ssd      2Gi    2Gi       Ready   <none>    9s
""")
    ids = [it["status"]["volumeID"] for it in c.items(LVS)]
    orlop_ran("a wide one", "lv", "list", "-o", "wide", "x", stdout=f"""\
NAME   NODE   CLASS    SIZE   CURRENT   STATE   MESSAGE   AGE   CLAIM    VOLUME ID
x      n1     <none>   1Gi    1Gi       Ready   <none>    9s    <none>   {ids[0]}
""")
    orlop_ran("names", "lv", "list", "-o", "name", "--node", "n2", stdout=f"{lv}/y\n")
    found = json.loads(orlop_ran("json", "lv", "list", "-o", "json").stdout)
    tap.equal((found["kind"], [it["metadata"]["name"] for it in found["items"]]),
              ("List", ["x", "y"]), "is a list")
    one = orlop_ran("yaml", "lv", "list", "-o", "yaml", "y").stdout
    tap.ok(one.startswith("apiVersion: topolvm.cybozu.com/v1\nkind: LogicalVolume\n") and
           "  vgName: ssd\n" in one, "is the object", one)
    tap.ran(server.kubectl("get", "logicalvolumes", "y"), "kubectl has its columns", stdout="""\
NAME   NODE   CLASS   SIZE   CURRENT   MESSAGE   AGE
y      n2     ssd     2Gi    2Gi""")
    orlop_ran("it grows", "lv", "resize", "x", "3Gi", "--wait", stdout=f"{lv}/x resized\n")
    orlop_ran("not beyond what there is", "lv", "resize", "x", "50Gi", "--wait", status=1,
              stdout=f"{lv}/x resized\n", stderr="orlop lv resize: x: OUT_OF_RANGE: 47Gi are wanted, "
              f"{5 * GI} are free\n")
    orlop_ran("that is taken back", "lv", "resize", "x", "3Gi", stdout=f"{lv}/x resized\n")
    orlop_ran("it does not shrink", "lv", "resize", "x", "1Gi", status=1, stdout="",
              stderr='orlop lv resize: LogicalVolume.topolvm.cybozu.com "x" is invalid: spec.size: '
              'Forbidden: "1Gi": a volume cannot shrink; it has 3Gi, ask for that or more\n')
    orlop_ran("a node that is none", "lv", "create", "z", "-n", "n9", "-s", "1Gi", status=1,
              stdout="", stderr='orlop lv create: nodes "n9" not found\n')
    orlop_ran("a size that is none", "lv", "create", "z", "-n", "n1", "-s", "much", status=2,
              stderr="orlop lv create: --size: \"much\" is not a quantity: write a number with at most "
              "one suffix of n u m k M G T P E, Ki Mi Gi Ti Pi Ei or an exponent, such as 100Gi, 1.5Ti, "
              "250m or 1e3\nTry 'orlop lv create --help'.\n")
    orlop_ran("no size at all", "lv", "create", "z", "-n", "n1", status=2, stderr="orlop lv create: "
              "--size SIZE is missing\n"
              "Try 'orlop lv create --help'.\n")

    server.create(CLAIMS, claim("c"))
    c.bound("c", "a claim")
    name = c.lv("c")["metadata"]["name"]
    orlop_ran("what a claim has grows with it", "lv", "resize", name, "2Gi", status=1,
              stderr=f"orlop lv resize: {name} is the volume of a claim and grows with it: kubectl "
              "patch pvc c -n default -p "
              '\'{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}\'\n')
    orlop_ran("and goes with it", "lv", "delete", name, status=1, stderr=f"orlop lv delete: {name}: "
              f"PersistentVolume {name} stands for it: delete its claim instead, or say --force if "
              "its data may go\n")
    server.kubectl("delete", "pvc", "c")
    wait_for(lambda: len(c.items(LVS)) == 2)

    server.ask("PATCH", "/api/v1/nodes/n1", {"metadata": {"annotations": {
        "topolvm.io/orphans": json.dumps([{"vg": "vg0", "lv": "old", "sizeBytes": GI,
                                           "owner": "topolvm.io/gone"}])}}},
               content_type="application/merge-patch+json")
    server.ask("PATCH", f"{LVS}/y/status", {"status": {"code": 5, "message": "it is gone"}},
               content_type="application/merge-patch+json")
    orlop_ran("the audit finds both", "lv", "audit", status=1, stdout="""\
FINDING   NODE   NAME      SIZE   MESSAGE
Orphan    n1     vg0/old   1Gi    it belonged to topolvm.io/gone; remove it there: lvremove vg0/old
Lost      n2     y         2Gi    it is gone
""")
    tap.equal([it["finding"] for it in json.loads(run(orlop, "lv", "audit", "-o", "json",
                                                      env=env).stdout)], ["Orphan", "Lost"], "as JSON")
    server.ask("PATCH", "/api/v1/nodes/n1", {"metadata": {"annotations": {
        "topolvm.io/orphans": None}}}, content_type="application/merge-patch+json")
    orlop_ran("they are deleted", "lv", "delete", "x", "y", "--wait",
              stdout=f'{lv} "x" deleted\n{lv} "y" deleted\n')
    orlop_ran("what is gone is not there", "lv", "delete", "x", status=1, stdout="",
              stderr='orlop lv delete: x: logicalvolumes.topolvm.cybozu.com "x" not found\n')

    # On a terminal it says what it waits for.
    nodes.ignores = lambda lv: True
    ours, theirs = pty.openpty()
    result = subprocess.run([orlop, "lv", "create", "t", "-n", "n1", "-s", "1Gi", "-w", "-t", "1"],
                            env=env, stdout=subprocess.PIPE, stderr=theirs, timeout=60, check=False)
    os.close(theirs)
    said = b""
    try:
        while part := os.read(ours, 65536):
            said += part
    except OSError:  # nobody has the other end
        pass
    os.close(ours)
    said = said.decode()
    tap.ok(result.returncode == 1 and "\r\x1b[Kt: waiting for node n1, 0 s" in said and
           "waiting for node n1: not done in 1 s; `orlop lv list t` shows how far it is" in said,
           "a line tells what is waited for", said)
    nodes.ignores = lambda lv: False
    run(orlop, "lv", "delete", "t", "--wait", env=env)

    # Where the API is.
    folder = scratch.file("up")
    os.mkdir(folder)
    os.symlink(server.kubeconfig, os.path.join(folder, "kubeconfig"))
    bare = {k: v for k, v in env.items() if k != "KUBECONFIG"}
    for how, argv, more in (("--kubeconfig", ("--kubeconfig", server.kubeconfig), {}),
                            ("--data", ("--data", folder), {"KUBECONFIG": "/nowhere"}),
                            ("$ORLOP_DATA", (), {"ORLOP_DATA": folder})):
        orlop_ran(f"found by {how}", "lv", "audit", *argv, env={**bare, **more},
                  stdout="Nodes and objects say the same.\n")
    tap.ran(run(orlop, "lv", "list", "--data", "/nowhere", env=bare), "not found", status=1,
            stderr="/nowhere/kubeconfig")


def check_forget(c, nodes, scratch):
    server = c.server
    env = {**os.environ, "KUBECONFIG": server.kubeconfig, "HOME": scratch.path}

    def forget(*argv):
        return run(orlop, "node", "forget", *argv, env=env)

    def age_lease():
        """It looks old to whom goes by the wall clock; False when a renewal came after it."""
        lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n3"
        old = {"spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}}
        server.ask("PATCH", lease, old, content_type="application/merge-patch+json")
        return server.get(lease)[1]["spec"]["renewTime"] == old["spec"]["renewTime"]

    for node in ("n1", "n3"):
        run(orlop, "lv", "create", f"on-{node}", "-n", node, "-s", "1Gi", "--wait", env=env)
    result = tap.ran(forget("n3"), "a node that lives is not forgotten", status=1)
    tap.ok(re.fullmatch(r"orlop node forget: node n3 lives: it renewed its lease \d+ s ago\. Stop it "
                        r"first, or say --force if you know better\n", result.stderr),
           "it says why", result.stderr)
    nodes.silent = {"n3"}
    wait_for(age_lease)
    tap.ran(forget("n3"), "nor one that is Ready, if this machine's clock is a year off", status=1,
            stderr="node n3 lives: it is Ready. Stop it first")
    server.ask("DELETE", f"{LVS}/on-n3")
    ready = "/api/v1/nodes/n3"

    def is_ready():
        return [x["status"] for x in server.get(ready)[1]["status"]["conditions"]
                if x["type"] == "Ready"] == ["True"]
    tap.ok(wait_for(lambda: not is_ready()), "a node falls silent")
    tap.ok(wait_for(lambda: c.events("NodeUnavailable", "on-n3")), "its volume waits and says so")
    tap.equal(c.events("NodeUnavailable", "on-n3")[0], "To be removed, it waits for node n3, which is "
              "not ready; if it will not be back, run: orlop node forget n3", "and what to do")
    age_lease()
    tap.ran(forget("n3"), "then it can be forgotten", stdout="node/n3 forgotten, 1 logical volumes "
            "and 0 pools do not wait for it any more\n")
    tap.ok(c.gone(f"{LVS}/on-n3") and c.gone(ready), "nothing waits for it any more")
    tap.ok(wait_for(lambda: len(c.events("NodeForgotten", "on-n3")) == 2 and
                    c.events("NodeForgotten", "n3")), "events tell of it")
    tap.ok("forgotten by kubernetes-admin at 20" in " ".join(c.events("NodeForgotten", "on-n3")),
           "and who said so", c.events("NodeForgotten", "on-n3"))
    tap.ok(wait_for(lambda: not [x for x in c.items(CAPACITIES)
                                 if x["metadata"]["labels"]["orlop.io/node"] == "n3"]),
           "its capacity goes with it")
    tap.ran(forget("n3"), "nobody is forgotten twice", status=1,
            stderr="there is no node n3, and no LogicalVolume or pool of it")
    tap.ran(forget("n1", "--force"), "by force one that lives", stdout="node/n1 forgotten, 1 logical")


with Scratch() as scratch, open(scratch.file("log"), "a+", encoding="utf-8") as log, \
        Server(program, scratch.file("data"), log=log) as server, \
        VolumeNodes(server, "n1", "n2", "n3", room=8 * GI) as nodes:
    cluster = Cluster(server)
    with Controller(controller_program, server, scratch.file("controller.log"), "--embedded",
                    "--node-monitor-grace-period", "4s") as controller:
        check_life(cluster, nodes)
        check_kinds(cluster, nodes)
        check_failures(cluster, nodes, controller)
        check_killed(cluster, controller)
        check_capacity(cluster, nodes)
        check_commands(cluster, nodes, scratch)
        check_race(cluster, nodes, controller)
        check_forget(cluster, nodes, scratch)
        tap.equal(controller.stop(), 0, "it stops when told")
    if tap.failed:
        with open(controller.log, encoding="utf-8") as said:
            print("# ".join(["", *said.readlines()[-60:]]))
tap.done()
