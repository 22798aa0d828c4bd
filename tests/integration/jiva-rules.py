#!/usr/bin/env python3
"""Which replicas of JivaVolumes go to another node when theirs is lost, and how many at a time.

jiva-rules.py PROGRAMS

Nodes pretend, and the test says what targets would say of their volumes. So it is the controller alone that
is looked at: of volumes that all lost a replica with the same node, one is re-homed at a time; one that serves
no more waits for its node, as does one whose policy says so.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from cluster import STATUS, Controller, Nodes  # noqa: E402
from jiva import PATIENCE, volume  # noqa: E402
from server import Client, Server  # noqa: E402
from tap import Scratch, Tap, wait_for  # noqa: E402

programs = sys.argv[1]
tap = Tap()
VOLUMES = "/apis/openebs.io/v1alpha1/namespaces/default/jivavolumes"
STALE, NODES = "jiva.openebs.io/stale-nodes", "jiva.openebs.io/nodes"
LOST = "n1"


class Volumes:
    """JivaVolumes, and what their targets would say of them."""

    def __init__(self, client):
        self.client = client

    def get(self, name):
        reply = self.client.ask("GET", f"{VOLUMES}/{name}")
        return reply.json if reply.status == 200 else {}

    def note(self, name, key):
        return set(filter(None, self.get(name).get("metadata", {}).get("annotations", {}).get(key, "").split(",")))

    def pods(self, name, component="jiva-replica"):
        items = self.client.ask("GET", "/api/v1/namespaces/default/pods").json["items"]
        return [p for p in items if p["metadata"]["labels"].get("openebs.io/persistent-volume") == name
                and p["metadata"]["labels"].get("openebs.io/component") == component
                and p["status"].get("podIP") and "deletionTimestamp" not in p["metadata"]]

    def say(self, name, phase, status, offline=()):
        """As if its target had: its replicas are the pods, but for those on the nodes that are offline."""
        replicas = [{"replicaId": p["metadata"]["uid"], "address": p["status"]["podIP"],
                     "mode": "ERR" if p["spec"]["nodeName"] in offline else "RW",
                     "state": "Offline" if p["spec"]["nodeName"] in offline else "Healthy"} for p in self.pods(name)]
        self.client.ask("PATCH", f"{VOLUMES}/{name}/status", {"status": {
            "phase": phase, "status": status, "capacity": "16Mi", "replicaStatus": replicas}}, content_type=STATUS)

    def rehomed(self, *names):
        return {n for n in names if self.note(n, STALE)}


def make(v, nodes):
    """All volumes on the first three nodes; then there is a fourth."""
    names = ("a", "b", "frozen", "held")
    for name in names:
        it = volume(name, "16Mi")
        it["spec"]["policy"] = {"target": {"nodeSelector": {"kubernetes.io/hostname": "n2"}},
                                **({"autoScaling": False} if name == "held" else {})}
        tap.equal(v.client.ask("POST", VOLUMES, it).status, 201, f"a volume with a replica on each of three nodes: {name}")
    tap.ok(wait_for(lambda: all(len(v.pods(n)) == 3 and v.pods(n, "jiva-controller") for n in names), PATIENCE),
           "their pods run", [v.pods(n) for n in names])
    for name in names:
        v.say(name, "Ready", "RW")
    tap.ok(wait_for(lambda: all(v.note(n, NODES) == {"n1", "n2", "n3"} for n in names), PATIENCE),
           "and their nodes are noted", [v.note(n, NODES) for n in names])
    nodes.add("n4")


def share(v):
    """Somebody adds an item to a list of a child: it stays, and only what is the controller's is put back."""
    service = "/api/v1/namespaces/default/services/a-svc"
    theirs = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a-svc"}, "spec": {"ports": [
        {"name": "theirs", "port": 7000, "protocol": "TCP"}]}}
    reply = v.client.ask("PATCH", f"{service}?fieldManager=theirs", theirs,
                         content_type="application/apply-patch+yaml")
    tap.equal(reply.status, 200, "somebody adds a port to a volume's Service")

    def ports():
        return {p["name"]: p["targetPort"] for p in v.client.ask("GET", service).json["spec"]["ports"]}

    def repaired():
        events = v.client.ask("GET", "/api/v1/namespaces/default/events").json["items"]
        return sum(e.get("count", 1) for e in events if e["reason"] == "Repaired")
    v.client.ask("PATCH", service, {"metadata": {"annotations": {"orlop.io/forward": "true"}}}, content_type=STATUS)
    tap.ok(wait_for(lambda: v.client.ask("GET", service).json["metadata"]["annotations"]["orlop.io/forward"] == "false",
                    PATIENCE), "what somebody changed beside it is put back")
    tap.ok(wait_for(repaired, PATIENCE), "and an event says so")
    tap.equal(ports().get("theirs"), 7000, "the added port stays")
    version = v.client.ask("GET", service).json["metadata"]["resourceVersion"]
    portal = v.get("a")["iscsi"]["targetPortal"]
    v.client.ask("PATCH", f"{VOLUMES}/a", {"iscsi": {"targetPortal": "127.0.0.9:3260"}}, content_type=STATUS)
    tap.ok(wait_for(lambda: v.get("a")["iscsi"]["targetPortal"] == portal, PATIENCE),
           "the controller looks at the volume again")
    tap.equal((repaired(), v.client.ask("GET", service).json["metadata"]["resourceVersion"]), (1, version),
              "and repairs nothing, as nothing of its own is missing")


def lose(v, nodes):
    """The node is silent, and what the targets see of that."""
    nodes.silent.add(LOST)

    def is_lost():
        conditions = v.client.ask("GET", f"/api/v1/nodes/{LOST}").json["status"]["conditions"]
        return any(c["type"] == "Ready" and c["status"] != "True" for c in conditions)
    tap.ok(wait_for(is_lost, PATIENCE), "a node is lost")
    for name in ("a", "b", "held"):
        v.say(name, "Syncing", "RW", {LOST})
    v.say("frozen", "Syncing", "Offline", {LOST, "n2"})


def main(v, nodes, controller):
    make(v, nodes)
    share(v)
    lose(v, nodes)
    tap.ok(wait_for(lambda: v.rehomed("a", "b"), PATIENCE), "a volume goes elsewhere")
    first = v.rehomed("a", "b")
    tap.equal(len(first), 1, "one, not both")
    first, other = next(iter(first)), next(iter({"a", "b"} - first))
    tap.equal(v.note(first, STALE), {LOST}, "what the lost node has is known")
    tap.ok(wait_for(lambda: v.note(first, NODES) == {"n2", "n3", "n4"}, PATIENCE), "and a new node is chosen",
           v.get(first))
    controller.kill()  # who has a place is known also to one that begins
    controller.start()
    v.say(first, "Syncing", "RW", {"n4"})
    service = f"/api/v1/namespaces/default/services/{other}-svc"
    v.client.ask("DELETE", service)
    tap.ok(wait_for(lambda: v.client.ask("GET", service).status == 200, PATIENCE),
           "another controller has looked at the other volume")
    tap.equal(v.rehomed("a", "b"), {first}, "and it still waits for its turn")
    v.client.ask("DELETE", f"{VOLUMES}/{first}")  # its place is free, although it never became whole
    tap.ok(wait_for(lambda: v.note(other, STALE) == {LOST}, PATIENCE), "the first is deleted: it has its turn",
           v.get(other))
    tap.equal(v.rehomed("frozen", "held"), set(), "who serves no more, or is told to stay, waits for its node")
    tap.equal((v.note("frozen", NODES), v.note("held", NODES)), ({"n1", "n2", "n3"}, {"n1", "n2", "n3"}),
              "and its pods go back there")


with Scratch() as scratch, open(scratch.file("log"), "w", encoding="utf-8") as log, \
        Server(f"{programs}/orlop-apiserver", scratch.file("api"), log=log) as server:
    control = Controller(f"{programs}/orlop-controller", server, "--node-monitor-grace-period", "8s",
                         "--rehome-after", "1s", "--rehome-most", "1", log=log)
    api = Client(server)
    with Nodes(server, "n1", "n2", "n3") as pretended, control:
        main(Volumes(api), pretended, control)
    api.close()
    with open(scratch.file("log"), encoding="utf-8", errors="replace") as f:
        lines = f.readlines()
    tap.equal([line for line in lines if "Sanitizer" in line or "runtime error" in line], [],
              "no sanitizer complained")
    if tap.failed:
        print("".join(f"# {line}" for line in lines[-60:]))
tap.done()
