#!/usr/bin/env python3
"""Pools, replicated volumes and logical volumes beside an API server that knows Kubernetes' kinds alone, with our
definitions from deploy/crds, as on a stock cluster; and the same where our kinds are built in. Real programs on one
node: all come to what is asked for, and then nobody asks the API server for anything but Leases and watches.

only-kubernetes.py APISERVER TOP ORLOP CONTROLLER NODE
"""
import collections
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from jiva import resize, volume  # noqa: E402
from pretend_pools import cluster, group, pool  # noqa: E402
from server import MERGE, Server  # noqa: E402
from system import processes  # noqa: E402
from tap import Scratch, Tap, wait_for  # noqa: E402
from volumes import Agent  # noqa: E402
from cluster import Controller  # noqa: E402

apiserver, top, orlop, controller, node = sys.argv[1:6]
tap = Tap()
NS, PATIENCE, REST = "openebs", 120, 6
API = "/apis/openebs.io/v1alpha1/namespaces"
POOLS, INSTANCES = f"{API}/{NS}/cstorpoolclusters", f"{API}/{NS}/cstorpoolinstances"
DEVICES, CLAIMS = f"{API}/{NS}/blockdevices", f"{API}/{NS}/blockdeviceclaims"
VOLUMES, RESIZES = f"{API}/default/jivavolumes", f"{API}/default/jivavolumeresizes"
RANGE = os.getpid() % 64  # of addresses on the loopback, which others use too


class World:
    def __init__(self, server, agent):
        self.server, self.agent = server, agent

    def get(self, path):
        status, value = self.server.get(path)
        return value if status == 200 else {}

    def items(self, path):
        return self.get(path).get("items", [])

    def until(self, what, done, show):
        tap.ok(wait_for(done, PATIENCE), what, json.dumps(show(), indent=1)[-6000:])

    def phase(self, path):
        return self.get(path).get("status", {}).get("phase")


def check_pool(w):
    """A mirror on the node's sparse files: devices, claims, an instance and its process."""
    w.until("the node says which devices it has", lambda: [
        d.get("status", {}).get("state") for d in w.items(DEVICES)] == ["Active"] * 2, lambda: w.items(DEVICES))
    names = sorted(d["metadata"]["name"] for d in w.items(DEVICES))
    w.server.create(POOLS, cluster("mirror", pool("n1", group("mirror", *names))))
    w.until("a CStorPoolCluster is online", lambda: w.phase(f"{POOLS}/mirror") == "ONLINE", lambda: [
        w.get(f"{POOLS}/mirror").get("status"), w.items(INSTANCES), w.items(CLAIMS)])
    tap.equal(([c["status"]["phase"] for c in w.items(CLAIMS)],
               sorted({d["status"]["claimState"] for d in w.items(DEVICES)}),
               [i["status"]["phase"] for i in w.items(INSTANCES)]),
              (["Bound"] * 2, ["Claimed"], ["ONLINE"]), "its devices are claimed, and its pool is there")
    made = w.get(f"{POOLS}/mirror")
    ready = next(c for c in made["status"]["conditions"] if c["type"] == "Ready")
    tap.equal((ready["status"], ready["observedGeneration"], made["metadata"]["generation"]), ("True", 1, 1),
              "its status did not raise its generation")


def check_volume(w):
    """One replica; it grows; and it says where it is, in every version and in both forms."""
    w.server.create(VOLUMES, volume("v", "16Mi", factor=1))
    w.until("a JivaVolume is ready", lambda: w.phase(f"{VOLUMES}/v") == "Ready", lambda: w.get(f"{VOLUMES}/v"))
    portal = w.get(f"{VOLUMES}/v").get("iscsi", {}).get("targetPortal", ":")
    tap.equal(w.server.kubectl(
        "get", "jv", "v", "-o", "jsonpath={.apiVersion} {.iscsi.targetPortal} {.service.name} "
        "{.targetDeployment.name} {.replicaDeployment.name}").stdout.split(),
              ["openebs.io/v1", portal, "v-svc", "v-ctrl", "v-rep"], "kubectl shows where it is, in the version it prefers")

    def published():
        return w.get(VOLUMES.replace("v1alpha1", "v1") + "/v").get("spec", {}).get("iscsiSpec", {})
    tap.equal(f"{published().get('targetIP')}:{published().get('targetPort')}", portal, "the published form says the same")
    w.server.ask("PATCH", f"{VOLUMES}/v", {"spec": {"iscsiSpec": {"targetIP": "10.9.9.9"}}}, content_type=MERGE)
    w.until("and does not keep what is not so", lambda: published().get("targetIP") == portal.split(":", maxsplit=1)[0],
            lambda: w.get(f"{VOLUMES}/v"))
    w.server.create(RESIZES, resize("larger", "v", "32Mi"))
    w.until("a JivaVolumeResize is completed", lambda: w.phase(f"{RESIZES}/larger") == "COMPLETED",
            lambda: [w.get(f"{RESIZES}/larger"), w.get(f"{VOLUMES}/v")])
    grown = w.get(f"{VOLUMES}/v")
    tap.equal((grown["spec"]["capacity"], grown["status"]["capacity"]), ("32Mi", "32Mi"), "the volume has grown")


def check_logical_volume(w):
    w.agent.create("lv", "8Mi")
    w.until("a LogicalVolume is there", lambda: w.agent.status("lv").get("currentSize") == "8Mi", w.agent.all)
    w.agent.grow("lv", "16Mi")
    w.until("and grows", lambda: w.agent.status("lv").get("currentSize") == "16Mi", w.agent.all)


def requests(folder):
    """Those that were answered: who asked, what, and of what."""
    with open(f"{folder}/audit.log", encoding="utf-8") as log:
        for line in log:
            it = json.loads(line) if line.endswith("\n") else {}
            about = it.get("objectRef", {})
            if it.get("stage") == "ResponseComplete" and it["verb"] != "watch" and about.get("resource") != "leases":
                yield (it["user"]["username"], it["verb"], "/".join(filter(None, (
                    about.get("resource", it["requestURI"]), about.get("name"), about.get("subresource")))))


def check_rest(w):
    """What was begun may end first: the rest begins when nothing was asked for some seconds."""
    asked, end = True, time.monotonic() + PATIENCE
    while asked and time.monotonic() < end:
        seen = collections.Counter(requests(w.server.folder))
        asked = wait_for(lambda before=seen: collections.Counter(requests(w.server.folder)) - before, REST)
    tap.ok(not asked, f"nobody asks for anything but Leases and watches for {REST} s", dict(asked))


def check(name, *flags, definitions):
    with Scratch() as scratch, \
            open(f"{scratch.path}/log", "w", encoding="utf-8") as log, \
            Server(apiserver, f"{scratch.path}/api", "--service-cluster-ip-range",
                   f"127.{96 + RANGE // 4}.{RANGE % 4 * 64}.0/18", "--audit-level", "all", *flags, log=log) as server:
        if definitions:
            tap.ran(server.kubectl("apply", "-f", f"{top}/deploy/crds"), f"{name}: definitions")
            tap.ran(server.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"),
                    "are established")
        server.create("/api/v1/namespaces", {"metadata": {"name": NS}})
        try:
            with Controller(controller, server, "--leader-elect=false", "--jiva-dir", f"{scratch.path}/jiva", log=log), \
                    Agent(node, server, f"{scratch.path}/n1", "n1", "--namespace", NS, "--address", "127.0.0.1",
                          "--pod-cidr", f"127.{10 + RANGE}.1.0/24", "--run-pods", "--allow-host-commands",
                          "--stop-pods-on-exit", "--sparse-disks", "2x160Mi") as agent:
                w = World(server, agent)
                for part in (check_pool, check_volume, check_logical_volume, check_rest):
                    part(w)
        finally:
            for pid in processes(scratch.path):  # what a failed test has left
                if pid != server.process.pid:
                    os.kill(pid, 9)


check("our kinds as definitions", "--only-kubernetes", definitions=True)
check("our kinds built in", definitions=False)
tap.done()
