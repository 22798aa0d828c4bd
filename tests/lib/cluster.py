"""An embedded cluster for a test: orlop-controller beside an API server, and nodes that only pretend.

A node that pretends says that it is ready, renews its lease, and says of every pod that is bound to it
that it runs: what orlop-node does, without running anything.
"""
import json
import os
import subprocess
import threading
import time

from server import Client

STATUS = "application/merge-patch+json"


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


class Controller:
    """orlop-controller with the controllers of an embedded cluster."""

    def __init__(self, program, server, *flags, log=None):
        self.argv = [program, "--embedded", "--health-port", "off", "--kubeconfig",
                     os.path.join(server.folder, "controller.kubeconfig"), *flags]
        self.log, self.process = log, None

    def start(self):
        self.process = subprocess.Popen(self.argv, stderr=self.log)
        return self

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.terminate()
        try:
            return self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()


class Nodes:
    """Nodes that pretend. `broken` pods never become ready; `silent` nodes say nothing."""

    def __init__(self, server, *names, **allocatable):
        self.server, self.names = server, list(names)
        self.allocatable = {"cpu": "4", "memory": "8Gi", "pods": "110", **allocatable}
        self.silent, self.ended, self.most = set(), threading.Event(), {}
        self.is_broken = lambda pod: False
        self.threads, self.addresses = [], 0

    def _node(self, client, name):
        client.ask("POST", "/api/v1/nodes", {
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}})
        client.ask("PATCH", f"/api/v1/nodes/{name}/status", {"status": {
            "allocatable": self.allocatable, "capacity": self.allocatable,
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady",
                            "lastTransitionTime": now()}]}}, content_type=STATUS)

    def _renew(self, client, name):
        path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
        spec = {"holderIdentity": name, "leaseDurationSeconds": 40,
                "renewTime": time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())}
        if client.ask("PATCH", f"{path}/{name}", {"spec": spec}, content_type=STATUS).status == 404:
            client.ask("POST", path, {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                                      "metadata": {"name": name}, "spec": spec})

    def _heartbeats(self):
        client = Client(self.server)
        while not self.ended.wait(1):
            for name in self.names:
                if name not in self.silent:
                    try:
                        self._renew(client, name)
                    except (OSError, ValueError):
                        client.close()
        client.close()

    def _run(self, client, pod):
        metadata, node = pod["metadata"], pod["spec"].get("nodeName")
        status = pod.get("status", {})
        ready = any(c["type"] == "Ready" and c["status"] == "True"
                    for c in status.get("conditions", []))
        if node not in self.names or node in self.silent or "deletionTimestamp" in metadata:
            return
        broken = self.is_broken(pod)
        if status.get("phase") == "Running" and ready != broken:
            return
        self.addresses += 1
        conditions = [c for c in status.get("conditions", []) if c["type"] not in ("Ready",)]
        conditions.append({"type": "Ready", "status": "False" if broken else "True",
                           "lastTransitionTime": now()})
        client.ask("PATCH", f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
                   "/status", {"metadata": {"uid": metadata["uid"]}, "status": {
                       "phase": "Running", "podIP": f"127.1.{self.addresses // 250}."
                       f"{self.addresses % 250 + 1}", "conditions": conditions}},
                   content_type=STATUS)

    def _agent(self):
        client = Client(self.server)
        while not self.ended.wait(0.02):
            try:
                for pod in client.ask("GET", "/api/v1/pods").json.get("items", []):
                    self._run(client, pod)
            except (OSError, ValueError, json.JSONDecodeError):
                client.close()
        client.close()

    def __enter__(self):
        client = Client(self.server)
        for name in self.names:
            self._node(client, name)
            self._renew(client, name)
        client.close()
        for work in (self._heartbeats, self._agent):
            self.threads.append(threading.Thread(target=work))
            self.threads[-1].start()
        return self

    def add(self, name):
        client = Client(self.server)
        self._node(client, name)
        self.names.append(name)
        client.close()

    def __exit__(self, *_):
        self.ended.set()
        for thread in self.threads:
            thread.join()
