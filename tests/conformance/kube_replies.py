#!/usr/bin/env python3
"""Answers as a real Kubernetes API server gives them, request by request.

kube_replies.py APISERVER TOP

tests/data/kube-replies.json has what kubectl sent to a kube-apiserver 1.36 and what came back:
status, headers, objects with their managed fields, tables, watch events, error messages. Here the
same requests go to our server in the same order, and the answers are compared member by member.
What differs from run to run (uids, revisions, times, ages) is replaced by a word first. Between the
recorded requests there were others; `BEFORE` and `DURING` make them again.

Differences that are meant are listed with their reasons.
"""
import json
import os
import re
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from server import Client, Server  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402

program, top = sys.argv[1:3]
tap = Tap()
G = "/apis/rec.example.test/v1/namespaces/default/gadgets"
MERGE = "application/merge-patch+json"
TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")
AGE = re.compile(r"^(\d+[ydhms])+$")

CRD = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.rec.example.test"},
    "spec": {
        "group": "rec.example.test", "scope": "Namespaced",
        "names": {"categories": ["all"], "kind": "Gadget", "listKind": "GadgetList",
                  "plural": "gadgets", "shortNames": ["gd"], "singular": "gadget"},
        "versions": [{
            "name": "v1", "served": True, "storage": True,
            "additionalPrinterColumns": [
                {"jsonPath": ".spec.size", "name": "Size", "type": "string"},
                {"jsonPath": ".status.phase", "name": "Phase", "type": "string"},
                {"jsonPath": ".metadata.creationTimestamp", "name": "Age", "type": "date"}],
            "subresources": {"status": {}, "scale": {
                "labelSelectorPath": ".status.selector", "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas"}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": {
                    "disks": {"type": "array", "items": {"type": "string"}},
                    "replicas": {"type": "integer", "minimum": 0}, "size": {"type": "string"}}},
                "status": {"type": "object", "properties": {
                    "conditions": {"type": "array", "items": {"type": "object", "properties": {
                        key: {"type": "string"}
                        for key in ("lastTransitionTime", "message", "reason", "status", "type")}}},
                    "observedGeneration": {"type": "integer"}, "phase": {"type": "string"},
                    "replicas": {"type": "integer"}, "selector": {"type": "string"}}}}}}}]}}


def workload(kind, name, container, **spec):
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": {
        "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": container, "image": "x"}]}}, **spec}}


def gadget(name="g1", finalizers=None):
    if finalizers:
        return {"apiVersion": "rec.example.test/v1", "kind": "Gadget", "spec": {"size": "10Gi"},
                "metadata": {"name": name, "finalizers": finalizers}}
    return {"apiVersion": "rec.example.test/v1", "kind": "Gadget",
            "metadata": {"name": name, "labels": {"app": "demo"}},
            "spec": {"disks": ["sda", "sdb"], "replicas": 1, "size": "10Gi"}}


def annotate(value):
    return ("PATCH", f"{G}/g1?fieldManager=kubectl-annotate",
            {"metadata": {"annotations": {"t": value}}}, MERGE)


def ready(status):
    return ("PATCH", f"{G}/g1/status?fieldManager=kubectl-patch",
            {"status": {"conditions": [{"type": "Ready", "status": status}]}}, MERGE)


DELETE = ("DELETE", f"{G}/g1", {"propagationPolicy": "Background"}, None)
CREATE = ("POST", f"{G}?fieldManager=kubectl-create", gadget(), None)
GONE = ("GONE", f"{G}/g1", None, None)
RELEASE = ("PATCH", f"{G}/g2?fieldManager=kubectl-patch", {"metadata": {"finalizers": None}}, MERGE)
DEPLOYMENT = workload("Deployment", "d1", "x")
DEPLOYMENT["metadata"]["labels"] = {"app": "d1"}

# What happened between the recorded requests: method, path, body, content type.
BEFORE = {
    "07-apply-create-POST": [DELETE],
    "08-ssa-create-PATCH": [DELETE],
    "12b-wait-cond-pending-GET": [ready("False")],
    "15b-rollout-deploy-GET": [
        ("POST", "/apis/apps/v1/namespaces/default/deployments?fieldManager=kubectl-create",
         DEPLOYMENT, None),
        ("POST", "/apis/apps/v1/namespaces/default/statefulsets?fieldManager=kubectl-create",
         workload("StatefulSet", "s1", "c", serviceName="s1"), None)],
    "17b-delete-finalizer-wait-DELETE": [
        ("POST", f"{G}?fieldManager=kubectl-create", gadget("g2", ["example.test/hold"]), None)],
    "17c-delete-nowait-DELETE": [CREATE],
    "17d-delete-all-GET": [CREATE],
    "17e-delete-cascade-orphan-DELETE": [CREATE],
    "17f-delete-selector-DELETE": [GONE, CREATE],
    "17g-delete-cascade-fg-DELETE": [CREATE],
}
# What happened while a watch was open.
DURING = {
    "05-get-w-WATCH": [annotate("1")],
    "05b-get-w-one-WATCH": [annotate("2")],
    "05c-get-watch-only-WATCH": [annotate("3")],
    "12b-wait-cond-pending-WATCH": [ready("True")],
    "17b-delete-finalizer-wait-WATCH": [RELEASE],
}
# Where names sort otherwise than what happened.
ORDER = {"17d-delete-all-DELETE": "17d-delete-all-GET!", "17f-delete-selector-DELETE": "17f-delete-selector-GET!"}
# The recording had no garbage collector: an object that waits for it was there to be seen.
COLLECTED = ("17e-delete-cascade-orphan-GET", "17e-delete-cascade-orphan-WATCH", "17f-delete-selector-GET",
             "17g-delete-cascade-fg-GET", "17g-delete-cascade-fg-WATCH", "17h-wait-delete-GET",
             "17h-wait-delete-WATCH")
# Members that are not compared, with the reason. An empty `continue` is one, too: lists of custom
# resources have it there, all others and ours do not, and it says the same.
IGNORED = {
    "storageVersionHash": "a hash of how that server stores objects; opaque, and optional",
    "timeoutSeconds": "random",
}


def owner(entry):
    """Entries are in the order of their times, and here everything happens within a second."""
    return entry["operation"], entry["manager"], entry.get("subresource", "")


def plain(value, key=""):
    """The value with what differs from run to run replaced."""
    if isinstance(value, dict):
        return {k: plain(v, k) for k, v in value.items()
                if k not in IGNORED and not (k == "continue" and v == "")}
    if isinstance(value, list):
        items = [plain(v, key) for v in value]
        return sorted(items, key=owner) if key == "managedFields" else items
    if isinstance(value, str):
        if key == "uid" and value:
            return "UID"
        if key == "resourceVersion" and value:
            return "REVISION"
        if TIME.match(value):
            return "TIME"
        if key == "cells" and AGE.match(value):
            return "AGE"
    return value


def differences(expected, got, at=""):
    """Where two values differ, as lines to read."""
    if isinstance(expected, dict) and isinstance(got, dict):
        for key in sorted(set(expected) | set(got)):
            yield from differences(expected.get(key, "(missing)"), got.get(key, "(missing)"),
                                   f"{at}.{key}")
    elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        for i, (a, b) in enumerate(zip(expected, got)):
            yield from differences(a, b, f"{at}[{i}]")
    elif expected != got:
        yield f"{at}\n  expected: {json.dumps(expected)[:600]}\n       got: {json.dumps(got)[:600]}"


def misplaced(value):
    """Owners that do not come as they should: who applies first, then by time and name."""
    if isinstance(value, list):
        for item in value:
            yield from misplaced(item)
    if isinstance(value, dict):
        for item in value.values():
            yield from misplaced(item)
        keys = [(o["operation"] != "Apply", o.get("time", ""), o["manager"])
                for o in value.get("managedFields", [])]
        if keys != sorted(keys):
            yield f"owners in this order: {keys}"


class Replay:
    """Sends recorded requests, with the revisions and uids that this server gave instead."""

    def __init__(self, server):
        self.server, self.client = server, Client(server)
        self.known = {}  # what the recording has -> what is so here

    def learn(self, recorded, got):
        if isinstance(recorded, dict) and isinstance(got, dict):
            for key, value in recorded.items():
                if key in ("resourceVersion", "uid") and isinstance(got.get(key), str):
                    self.known[value] = got[key]
                else:
                    self.learn(value, got.get(key))
        elif isinstance(recorded, list) and isinstance(got, list):
            for a, b in zip(recorded, got):
                self.learn(a, b)

    def own(self, value, key=""):
        if isinstance(value, dict):
            return {k: self.own(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [self.own(v) for v in value]
        return self.known.get(value, value) if key in ("resourceVersion", "uid") else value

    def bridge(self, requests):
        for method, path, body, content_type in requests:
            if method == "GONE":
                self.wait_until_gone(path)
                continue
            reply = Client(self.server).ask(method, path, body,
                                            content_type=content_type or "application/json")
            if reply.status not in (200, 201):
                tap.ok(False, f"between: {method} {path}", f"{reply.status} {reply.body}")

    def wait_until_gone(self, path):
        """The garbage collector needs a moment for what it has to do."""
        if not wait_for(lambda: Client(self.server).ask("GET", path).status == 404):
            raise TimeoutError(f"{path} is still there")

    def step(self, step):
        path = re.sub(r"resourceVersion=(\d+)",
                      lambda m: "resourceVersion=" + self.known.get(m[1], m[1]), step["path"])
        headers = {"Accept": step["Accept"], "User-Agent": "kubectl/v1.36.4 (linux/amd64)"}
        body = json.dumps(self.own(step["body"])).encode() if "body" in step else None
        if "Content-Type" in step:
            headers["Content-Type"] = step["Content-Type"]
        client = Client(self.server, timeout=20)
        response = client.send(step["method"], path, body, headers=headers,
                               content_type=step.get("Content-Type"))
        found = list(differences(step["status"], response.status, "status"))
        for name, value in step["headers"].items():
            found += differences(value, response.headers.get(name), name)
        if "events" in step:
            got = self.events(step, response)
            self.learn(step["events"], got)
            for event in step["events"]:
                if event["type"] == "BOOKMARK" and "spec" in event["object"]:
                    # Of built-in kinds it encodes all members of an object that has none.
                    event["object"] = {k: v for k, v in event["object"].items()
                                       if k not in ("spec", "status")}
            found += differences(plain(step["events"]), plain(got), "events")
        else:
            got = json.loads(response.read())
            strip_descriptions(got)
            self.learn(step["reply"], got)
            found += differences(plain(step["reply"]), plain(got), "reply")
        client.close()
        found += misplaced(got)
        tap.ok(not found, step["name"], "\n".join(found))

    def events(self, step, response):
        got = []
        changes = threading.Timer(0, self.bridge, [DURING.get(step["name"], [])])
        changes.start()
        try:
            while len(got) < len(step["events"]):
                line = response.readline()
                if not line:
                    break
                event = json.loads(line)
                strip_descriptions(event)
                got.append(event)
        except OSError:
            pass  # what is missing will be seen
        changes.join()
        return got


def strip_descriptions(value):
    if isinstance(value, dict):
        value.pop("description", None)
        for v in value.values():
            strip_descriptions(v)
    elif isinstance(value, list):
        for v in value:
            strip_descriptions(v)


def main():
    with open(f"{top}/tests/data/kube-replies.json", encoding="utf-8") as f:
        steps = json.load(f)
    steps.sort(key=lambda s: ORDER.get(s["name"], s["name"]))
    with Scratch() as scratch, Server(program, scratch.file("data")) as server:
        replay = Replay(server)
        replay.bridge([("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD, None)])
        kubeconfig = ["--kubeconfig", server.kubeconfig] if server.context else ["-s", server.url]
        run("kubectl", *kubeconfig, "wait", "--for=condition=established", "--timeout=30s",
            "crd/gadgets.rec.example.test", env=scratch.kubectl_env())
        for step in steps:
            if step["name"] in COLLECTED:
                continue
            replay.bridge(BEFORE.get(step["name"], []))
            replay.step(step)
    tap.done()


main()
