#!/usr/bin/env python3
"""What gives power over a node takes a right of its own: running host commands and Orlop's own images in Pods,
also by way of whatever has a template of Pods, and saying which device a BlockDevice stands for.

node-rights.py APISERVER
"""
import copy
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from server import Server  # noqa: E402
from tap import Scratch, Tap  # noqa: E402

program = sys.argv[1]
tap = Tap()
RBAC = "/apis/rbac.authorization.k8s.io/v1"
BD = "/apis/openebs.io/v1alpha1/namespaces/team/blockdevices"
MERGE = "application/merge-patch+json"
HOST = {"orlop.io/host-process": "true"}
READ_FILE = {"image": "orlop/orlop-target:1", "args": ["target", "serve", "--store", "file:/etc/shadow"]}


def container(**more):
    return {"name": "c", "image": "example.test/a:1", **more}


def template(annotations=None, **more):
    return {"metadata": {"labels": {"app": "a"}, "annotations": annotations or {}},
            "spec": {"containers": [container(**more)]}}


def once(t):
    return {**t, "spec": {**t["spec"], "restartPolicy": "Never"}}


def of(kind, version, t, name="x"):
    """An object of the kind that makes Pods of the template, or is one."""
    o = {"apiVersion": version, "kind": kind, "metadata": {"name": name}}
    if kind == "Pod":
        return {**o, "metadata": {**t["metadata"], "name": name}, "spec": t["spec"]}
    if kind == "ControllerRevision":
        return {**o, "revision": 1, "data": {"spec": {"template": t}}}
    if kind == "Job":
        return {**o, "spec": {"template": once(t)}}
    if kind == "CronJob":
        return {**o, "spec": {"schedule": "0 0 * * *", "jobTemplate": {"spec": {"template": once(t)}}}}
    spec = {"selector": {"matchLabels": {"app": "a"}}, "template": t}
    return {**o, "spec": {**spec, **({"serviceName": "x"} if kind == "StatefulSet" else {})}}


KINDS = {
    "Pod": ("v1", "/api/v1/namespaces/team/pods"),
    "Deployment": ("apps/v1", "/apis/apps/v1/namespaces/team/deployments"),
    "ReplicaSet": ("apps/v1", "/apis/apps/v1/namespaces/team/replicasets"),
    "DaemonSet": ("apps/v1", "/apis/apps/v1/namespaces/team/daemonsets"),
    "StatefulSet": ("apps/v1", "/apis/apps/v1/namespaces/team/statefulsets"),
    "ControllerRevision": ("apps/v1", "/apis/apps/v1/namespaces/team/controllerrevisions"),
    "Job": ("batch/v1", "/apis/batch/v1/namespaces/team/jobs"),
    "CronJob": ("batch/v1", "/apis/batch/v1/namespaces/team/cronjobs"),
}
WAYS = {
    "a command of the host": template(HOST, command=["cat", "/etc/shadow"]),
    "one of Orlop's images": template(**READ_FILE),
    "one of Orlop's images to begin with": {
        **template(), "spec": {"containers": [container()], "initContainers": [container(
            name="i", image="registry.test:5000/orlop-replica@sha256:00")]}},
}


class Rights:
    def __init__(self, server):
        self.server = server

    def refused(self, name, reply, verb="run-host-commands"):
        status, value = reply
        text = value.get("message", "") if isinstance(value, dict) else value
        tap.ok(status == 403 and verb in text and "cluster scope" in text, name, f"{status} {text}")

    def tenant(self):
        server = self.server
        for kind, (version, path) in KINDS.items():
            for way, t in WAYS.items():
                self.refused(f"an editor of a namespace makes no {kind} that runs {way}",
                             server.ask("POST", path, of(kind, version, t), token="tenant-token"))
            status, value = server.ask("POST", path, of(kind, version, template(), "fine"), token="tenant-token")
            tap.ok(status == 201, f"another {kind} is fine", f"{status} {value}")
            if kind == "ControllerRevision":
                continue
            changed = copy.deepcopy(value)
            for key, part in of(kind, version, WAYS["one of Orlop's images"], "fine").items():
                if key != "metadata":
                    changed[key] = part
            self.refused(f"nor does a {kind} become one", server.ask(
                "PUT", f"{path}/fine", changed, token="tenant-token"))
        self.refused("nor does a Pod by its annotation", server.ask(
            "PATCH", f"{KINDS['Pod'][1]}/fine", {"metadata": {"annotations": HOST}}, token="tenant-token",
            content_type=MERGE))

    def admitted(self):
        """What an administrator made can be looked after by the tenant, and not be turned to something else."""
        server, path = self.server, KINDS["Deployment"][1]
        one = server.create(path, of("Deployment", "apps/v1", WAYS["one of Orlop's images"], "ours"))

        def patch(body):
            return server.ask("PATCH", f"{path}/ours", body, token="tenant-token", content_type=MERGE)

        for name, body in (("labels it", {"metadata": {"labels": {"a": "b"}}}),
                           ("scales it", {"spec": {"replicas": 3}})):
            status, value = patch(body)
            tap.ok(status == 200, f"a tenant {name}", f"{status} {value}")
        args = copy.deepcopy(one["spec"]["template"])
        args["spec"]["containers"][0]["args"][3] = "file:/etc/passwd"
        self.refused("but gives it no other argument", patch({"spec": {"template": args}}))
        self.refused("and no other annotation in its template", patch(
            {"spec": {"template": {"metadata": {"annotations": {"x": "y"}}}}}))

    def granted(self):
        server = self.server
        rule = {"apiGroups": ["orlop.io"], "resources": ["pods"], "verbs": ["run-host-commands"]}
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "host"},
                "rules": [rule]}
        binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "host"},
                   "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "host"},
                   "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "tenant"}]}
        server.create(f"{RBAC}/clusterroles", role)
        version, path = KINDS["Pod"]
        pod = of("Pod", version, WAYS["a command of the host"], "granted")
        server.create(f"{RBAC}/namespaces/team/rolebindings", {**binding, "kind": "RoleBinding"})
        self.refused("a right in a namespace is not enough: the node is not in it", server.ask(
            "POST", path, pod, token="tenant-token"))
        server.create(f"{RBAC}/clusterrolebindings", {**binding, "kind": "ClusterRoleBinding"})
        status, value = server.ask("POST", path, pod, token="tenant-token")
        tap.ok(status == 201, "who has the right in the cluster runs commands of the host", f"{status} {value}")
        status, value = server.ask("POST", path, of("Pod", version, WAYS["a command of the host"], "admin"))
        tap.ok(status == 201, "so does the administrator", f"{status} {value}")

    def devices(self):
        server = self.server

        def device(name, path, managed="false"):
            return {"apiVersion": "openebs.io/v1alpha1", "kind": "BlockDevice",
                    "metadata": {"name": name, "labels": {"ndm.io/managed": managed}},
                    "spec": {"path": path, "capacity": {"storage": "1Gi"},
                             "nodeAttributes": {"nodeName": "n"}, "details": {"deviceType": "disk"}}}

        verb = "set-device-path"
        for managed in ("true", "false"):
            self.refused(f"an editor makes no BlockDevice with managed={managed}", server.ask(
                "POST", BD, device("x", "/etc/passwd", managed), token="tenant-token"), verb)
        server.create(BD, device("sda", "/dev/sda", "true"))
        for name, change in (
                ("moves it to another path", {"spec": {"path": "/etc/passwd"}}),
                ("gives it a link", {"spec": {"devlinks": [{"kind": "by-id", "links": ["/etc/passwd"]}]}}),
                ("moves it to another node", {"spec": {"nodeAttributes": {"nodeName": "m"}}}),
                ("takes it out of the node's hands", {"metadata": {"labels": {"ndm.io/managed": "false"}}})):
            self.refused(f"nobody without the right {name}", server.ask(
                "PATCH", f"{BD}/sda", change, token="tenant-token", content_type=MERGE), verb)
        status, value = server.ask("PATCH", f"{BD}/sda", {"metadata": {"labels": {"tier": "fast"}}},
                                   token="tenant-token", content_type=MERGE)
        tap.ok(status == 200, "other labels are an editor's to set", f"{status} {value}")
        status, value = server.ask("POST", BD, device("mine", "/dev/sdb"))
        tap.ok(status == 201, "the administrator adds a device by hand", f"{status} {value}")


with Scratch() as scratch:
    tokens = scratch.file("tokens.csv")
    with open(tokens, "w", encoding="ascii") as f:
        f.write("tenant-token,tenant,uid-1\n")
    os.chmod(tokens, 0o600)
    with Server(program, scratch.file("data"), "--token-auth-file", tokens) as server:
        server.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        user = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "tenant"}
        server.create(f"{RBAC}/namespaces/team/rolebindings", {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "edit"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
            "subjects": [user]})
        server.create(f"{RBAC}/namespaces/team/roles", {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "revisions"},
            "rules": [{"apiGroups": ["apps"], "resources": ["controllerrevisions"], "verbs": ["create"]}]})
        server.create(f"{RBAC}/namespaces/team/rolebindings", {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "revisions"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "revisions"},
            "subjects": [user]})
        rights = Rights(server)
        rights.tenant()
        rights.admitted()
        rights.devices()
        rights.granted()
tap.done()
