#!/usr/bin/env python3
"""The client and the informer against a real server: credentials, namespaces, a large collection.

informer.py APISERVER CACHE_DUMP [sanitized]
"""
import base64
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from server import Client, Server  # noqa: E402
from tap import Scratch, Tap, wait_for  # noqa: E402

SANITIZED = sys.argv[3:] == ["sanitized"]
MAPS = "/api/v1/namespaces/{}/configmaps"
VOLUMES = "/apis/topolvm.cybozu.com/v1/logicalvolumes"
MANY = 3000
tap = Tap()


class Cache:
    def __init__(self, *argv, **options):
        self.process = subprocess.Popen([sys.argv[2], *argv], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, **options)

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def names(self):
        line, names = self.ask("dump"), set()
        while line and line != "end":
            names.add(json.loads(line)["metadata"]["name"])
            line = self.process.stdout.readline().strip()
        return names

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


def kubeconfig(scratch, name, cluster, user):
    return scratch.file(name, json.dumps({
        "kind": "Config", "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": cluster}], "users": [{"name": "u", "user": user}]}))


def credentials(scratch, server):
    with open(server.kubeconfig, encoding="utf-8") as f:
        text = f.read()

    def data(name):
        return re.search(rf"{name}: *(\S+)", text).group(1)
    pair = {"client-certificate-data": data("client-certificate-data"),
            "client-key": scratch.file("key.pem", base64.b64decode(data("client-key-data")).decode())}
    authority = {"certificate-authority": os.path.relpath(server.ca, scratch.path)}
    token = scratch.file("token", server.create(
        "/api/v1/namespaces/kube-system/serviceaccounts/informer/token",
        {"spec": {}})["status"]["token"] + "\n")
    by_name = {"server": f"https://127.0.0.1:{server.port}", "tls-server-name": "kubernetes.default.svc"}
    wrong_name = {**by_name, "tls-server-name": "elsewhere.example"}
    return {
        "a certificate in data, its key in a file": (authority | {"server": server.url}, pair, "synced"),
        "a token in a file": (authority | {"server": server.url}, {"tokenFile": token}, "synced"),
        "a server by another name": (authority | by_name, pair, "synced"),
        "a server whose name is not in its certificate": (authority | wrong_name, pair, "failed"),
        "an authority that did not sign": ({"server": server.url}, pair, "failed"),
        "nobody": (authority | {"server": server.url}, {}, "failed"),
    }


def set_up(server):
    server.create("/api/v1/namespaces", {"metadata": {"name": "other"}})
    for ns in ("default", "other"):
        server.create(MAPS.format(ns), {"metadata": {"name": f"in-{ns}"}})
    server.create("/api/v1/namespaces/kube-system/serviceaccounts", {"metadata": {"name": "informer"}})
    server.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
        "metadata": {"name": "informer"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": "informer", "namespace": "kube-system"}]})


def test_credentials(scratch, server):
    for number, (name, (cluster, user, result)) in enumerate(credentials(scratch, server).items()):
        path = kubeconfig(scratch, f"kubeconfig-{number}", cluster, user)
        with Cache(path, "v1", "ConfigMap", "default", "0", "0", "2000",
                   stderr=subprocess.DEVNULL) as cache:
            answer = cache.ask("wait")
            tap.ok(answer.startswith(result), f"{name}: {result}", answer)


def test_namespaces(server):
    for ns, wanted, not_wanted in (("default", "in-default", "in-other"), ("other", "in-other", "in-default")):
        with Cache(server.kubeconfig, "v1", "ConfigMap", ns) as cache:
            cache.ask("wait")
            names = cache.names()
            tap.ok(wanted in names and not_wanted not in names, f"only what is in {ns}", names)
    with Cache(server.kubeconfig, "v1", "ConfigMap", "-") as cache:
        cache.ask("wait")
        tap.ok(cache.names() >= {"in-default", "in-other"}, "all namespaces")
        server.create(MAPS.format("other"), {"metadata": {"name": "late"}})
        tap.ok(wait_for(lambda: "late" in cache.names()), "and what comes later")
        server.ask("DELETE", MAPS.format("other") + "/late")
        tap.ok(wait_for(lambda: "late" not in cache.names()), "and what goes")
        tap.equal(cache.ask("chain"), "ok", "handlers were told in order")


def test_many(server):
    with Cache(server.kubeconfig, "topolvm.cybozu.com/v1", "LogicalVolume", "-") as cache:
        cache.ask("wait")
        idle = int(cache.ask("memory"))
    client = Client(server)
    for i in range(MANY):
        reply = client.ask("POST", VOLUMES, {
            "apiVersion": "topolvm.cybozu.com/v1", "kind": "LogicalVolume",
            "metadata": {"name": f"pvc-{i:08d}", "annotations": {"note": "x" * 600}},
            "spec": {"name": f"pvc-{i}", "nodeName": "n", "size": "1Gi", "deviceClass": "ssd"}})
        if reply.status != 201:
            raise AssertionError(reply.text)
    with Cache(server.kubeconfig, "topolvm.cybozu.com/v1", "LogicalVolume", "-") as cache:
        tap.equal(cache.ask("wait"), "synced", f"{MANY} objects are listed")
        grown = (int(cache.ask("memory")) - idle) / 1024
        tap.equal(len(cache.names()), MANY, "all of them")
        # Two kilobytes each, and a page of the list; a sanitizer's own memory does not count.
        tap.ok(SANITIZED or grown < 5 + 2 * MANY / 1024, "they take little more than their text",
               f"{grown:.1f} MB")


def main():
    with Scratch() as scratch, open(scratch.file("log"), "w", encoding="utf-8") as log, \
            Server(sys.argv[1], scratch.file("data"), log=log) as server:
        set_up(server)
        test_credentials(scratch, server)
        test_namespaces(server)
        test_many(server)
    tap.done()


main()
