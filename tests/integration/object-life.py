#!/usr/bin/env python3
"""How objects begin, change and end in the API server: owners, namespaces, quotas, scale, claims,
rollouts and logs, as kubectl and plain HTTP see them.

object-life.py APISERVER
"""
import concurrent.futures
import datetime
import http.client
import json
import os
import signal
import subprocess
import sys
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from tap import Scratch, Tap, run  # noqa: E402

program = sys.argv[1]
tap = Tap()
DEADLINE = 60  # seconds, for whatever the server does by itself


class Server:
    """One on loopback until the block ends; kill() ends it as a crash would."""

    def __init__(self, folder, *flags):
        self.folder, self.flags, self.status = folder, flags, None

    def __enter__(self):
        self.process = subprocess.Popen(
            [program, "--data-dir", self.folder, "--port", "0", *self.flags],
            stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.status = self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def connect(self):
        where = urllib.parse.urlsplit(self.url)
        return http.client.HTTPConnection(where.hostname, where.port, timeout=60)

    def ask(self, method, path, body=None, content_type="application/json"):
        """The status and the JSON, or text, of one request."""
        connection = self.connect()
        headers = {"Content-Type": content_type} if content_type and body is not None else {}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        reply = connection.getresponse()
        text = reply.read().decode()
        connection.close()
        try:
            return reply.status, json.loads(text)
        except ValueError:
            return reply.status, text

    def get(self, path):
        return self.ask("GET", path)

    def create(self, path, value):
        status, reply = self.ask("POST", path, value)
        if status != 201:
            raise AssertionError(f"POST {path}: {status} {reply}")
        return reply


def until(what, check):
    """Waits for something that the server does in its own time."""
    end = time.monotonic() + DEADLINE
    while not check():
        if time.monotonic() > end:
            return tap.ok(False, what, "it did not happen")
        time.sleep(0.05)
    return tap.ok(True, what)


CORE = "/api/v1"
APPS = "/apis/apps/v1"


def plural(kind, namespace="default", name=""):
    return f"{CORE}/namespaces/{namespace}/{kind}" + (f"/{name}" if name else "")


def config(name, owners=(), **metadata):
    return {"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "ownerReferences": list(owners), **metadata}}


def owner(value, block=None, **change):
    reference = {"apiVersion": value["apiVersion"], "kind": value["kind"],
                 "name": value["metadata"]["name"], "uid": value["metadata"]["uid"], **change}
    if block is not None:
        reference["blockOwnerDeletion"] = block
    return reference


def namespace(name):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def claim(name, size="1Gi", **spec):
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
            "spec": {"accessModes": ["ReadWriteOnce"],
                     "resources": {"requests": {"storage": size}}, **spec}}


def storage_class(name, grows, default=False):
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"} if default else {}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
            "metadata": {"name": name, "annotations": annotations},
            "provisioner": "csi.example.test", "parameters": {"a": "b"},
            "allowVolumeExpansion": grows}


def pod_template(app, image="example.test/a:1"):
    return {"metadata": {"labels": {"app": app}},
            "spec": {"containers": [{"name": "main", "image": image}]}}


def workload(kind, name, **spec):
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": {"app": name}},
                     "template": pod_template(name), **spec}}


class Life:
    def __init__(self, server, scratch):
        self.server, self.scratch = server, scratch

    def kubectl(self, *argv, stdin=None):
        return run("kubectl", "--server", self.server.url, *argv, stdin=stdin,
                   env=self.scratch.kubectl_env())

    def expect(self, name, argv, status=0, stdout=None, stderr=None, **options):
        result = self.kubectl(*argv, **options)
        passed = result.returncode == status
        passed &= stdout is None or stdout in result.stdout
        passed &= stderr is None or stderr in result.stderr
        tap.ok(passed, name, f"exit status {result.returncode}\n{result.stdout}{result.stderr}")
        return result

    def refused(self, name, reply, status, message, reason=None):
        code, body = reply
        text = body.get("message", "") if isinstance(body, dict) else body
        tap.ok(code == status and message in text and
               (reason is None or body.get("reason") == reason), name, f"{code} {body}")
        return body

    def is_gone(self, path):
        return self.server.get(path)[0] == 404

    def names(self, path):
        return sorted(item["metadata"]["name"] for item in self.server.get(path)[1]["items"])

    # Owners

    def owners(self):
        server, maps = self.server, plural("configmaps")

        def family(name, block=None, finalizers=()):
            parent = server.create(maps, config(name, finalizers=list(finalizers)))
            child = server.create(maps, config(f"{name}-child", [owner(parent, block)]))
            grandchild = server.create(maps, config(f"{name}-grandchild", [owner(child, block)]))
            return parent, child, grandchild

        family("bg")
        self.expect("delete in the background", ["delete", "cm", "bg"], stdout="deleted")
        until("what it owned goes after it, to the third generation",
              lambda: self.is_gone(f"{maps}/bg-child") and self.is_gone(f"{maps}/bg-grandchild"))

        family("fg", block=True)
        self.expect("delete in the foreground", ["delete", "cm", "fg", "--cascade=foreground",
                                                 "--timeout=60s"], stdout="deleted")
        tap.ok(self.is_gone(f"{maps}/fg-child") and self.is_gone(f"{maps}/fg-grandchild"),
               "it goes after all that it owned")

        parent = server.create(maps, config("slow"))
        server.create(maps, config("slow-child", [owner(parent, True)],
                                   finalizers=["example.test/keep"]))
        status, reply = server.ask("DELETE", f"{maps}/slow", {"propagationPolicy": "Foreground"})
        tap.equal((status, reply["metadata"].get("finalizers")), (200, ["foregroundDeletion"]),
                  "an owner that waits says so")
        until("its dependent is deleted", lambda: "deletionTimestamp" in
              server.get(f"{maps}/slow-child")[1]["metadata"])
        tap.equal(server.get(f"{maps}/slow")[0], 200, "it waits while a finalizer holds that")
        self.expect("the finalizer is removed", ["patch", "cm", "slow-child", "--type=merge", "-p",
                                                 '{"metadata":{"finalizers":null}}'])
        until("then both are gone", lambda: self.is_gone(f"{maps}/slow-child") and
              self.is_gone(f"{maps}/slow"))

        parent = server.create(maps, config("free"))
        server.create(maps, config("free-child", [owner(parent, False)],
                                   finalizers=["example.test/keep"]))
        server.ask("DELETE", f"{maps}/free", {"propagationPolicy": "Foreground"})
        until("it does not wait for what does not block", lambda: self.is_gone(f"{maps}/free"))
        self.expect("free its child", ["patch", "cm", "free-child", "--type=merge", "-p",
                                       '{"metadata":{"finalizers":null}}'])

        family("or")
        self.expect("delete and orphan", ["delete", "cm", "or", "--cascade=orphan",
                                          "--timeout=60s"], stdout="deleted")
        child = server.get(f"{maps}/or-child")[1]
        tap.equal(child["metadata"].get("ownerReferences"), None, "the dependent has forgotten it")
        tap.equal(server.get(f"{maps}/or-grandchild")[0], 200, "and keeps what it owns")

        status, reply = server.ask("DELETE", f"{maps}/or-child?orphanDependents=true")
        tap.equal((status, reply["metadata"].get("finalizers")), (200, ["orphan"]),
                  "the old parameter in the query")
        until("orphaned again", lambda: self.is_gone(f"{maps}/or-child"))
        tap.equal(server.get(f"{maps}/or-grandchild")[1]["metadata"].get("ownerReferences"), None,
                  "by the old parameter")

        nobody = {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "no-such-uid"}
        server.create(maps, config("lost", [nobody]))
        until("an owner that never was is gone", lambda: self.is_gone(f"{maps}/lost"))
        keeper = server.create(maps, config("keeper"))
        server.create(maps, config("half", [nobody, owner(keeper)]))
        until("with one owner left, only the reference goes", lambda: [
            r["name"] for r in server.get(f"{maps}/half")[1]["metadata"]["ownerReferences"]
        ] == ["keeper"])
        server.create(maps, config("wrong-uid", [owner(keeper, uid="another")]))
        until("another uid is another owner", lambda: self.is_gone(f"{maps}/wrong-uid"))
        server.create(plural("configmaps", "kube-public"), config("far", [owner(keeper)]))
        until("an owner in another namespace is none",
              lambda: self.is_gone(plural("configmaps", "kube-public", "far")))
        unknown = {"apiVersion": "example.test/v9", "kind": "Thing", "name": "t", "uid": "u"}
        server.create(maps, config("unknown", [unknown]))
        node = server.create(f"{CORE}/nodes", {"apiVersion": "v1", "kind": "Node",
                                               "metadata": {"name": "n1"}})
        server.create(maps, config("of-node", [owner(node)]))
        server.create(maps, config("last", [nobody]))
        until("the last of them is collected", lambda: self.is_gone(f"{maps}/last"))
        tap.equal([server.get(f"{maps}/{n}")[0] for n in ("unknown", "of-node", "half")],
                  [200, 200, 200], "an owner of an unknown kind, or of the cluster, is there")

        a = server.create(maps, config("ring-a"))
        b = server.create(maps, config("ring-b", [owner(a, True)]))
        server.ask("PATCH", f"{maps}/ring-a", {"metadata": {"ownerReferences": [owner(b, True)]}},
                   "application/merge-patch+json")
        server.ask("DELETE", f"{maps}/ring-a", {"propagationPolicy": "Foreground"})
        until("a ring of owners ends", lambda: self.is_gone(f"{maps}/ring-a") and
              self.is_gone(f"{maps}/ring-b"))

    def options(self):
        server, maps = self.server, plural("configmaps")
        kept = server.create(maps, config("options"))

        def delete(body, query=""):
            return server.ask("DELETE", f"{maps}/options{query}", body)

        reply = self.refused("an unknown policy", delete({"propagationPolicy": "Sideways"}), 422,
                             'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: '
                             'Unsupported value: "Sideways": supported values: "Foreground", '
                             '"Background", "Orphan", "nil"', "Invalid")
        tap.equal(reply["details"]["causes"][0]["reason"], "FieldValueNotSupported", "its cause")
        self.refused("in the query as well", delete(None, "?propagationPolicy=x"), 422, "Unsupported")
        self.refused("two ways to say it", delete(
            {"propagationPolicy": "Orphan", "orphanDependents": True}), 422,
                     "orphanDependents and deletionPropagation cannot be both set")
        self.refused("an unknown dry run", delete({"dryRun": ["Some"]}), 422, "dryRun")
        self.refused("options that are none", delete(["x"]), 400, "DeleteOptions")
        self.refused("a wrong type", delete({"gracePeriodSeconds": "soon"}), 400, "DeleteOptions")
        self.refused("another uid", delete({"preconditions": {"uid": "x"}}), 409,
                     "UID in precondition: x", "Conflict")
        self.refused("another revision", delete({"preconditions": {"resourceVersion": "1"}}), 409,
                     "ResourceVersion in precondition", "Conflict")
        self.refused("a revision that is none", delete({"preconditions": {"resourceVersion": "x"}}),
                     409, "ResourceVersion in precondition", "Conflict")
        tap.equal(delete({"dryRun": ["All"], "gracePeriodSeconds": 0})[0], 200, "a dry run")
        tap.equal(server.get(f"{maps}/options")[0], 200, "it is still there")
        tap.equal(delete({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {
            "uid": kept["metadata"]["uid"],
            "resourceVersion": kept["metadata"]["resourceVersion"]}})[0], 200, "what is meant")
        tap.ok(self.is_gone(f"{maps}/options"), "it is gone")

        for n in range(3):
            server.create(maps, config(f"c{n}", labels={"set": "a"}))
        parent = server.get(f"{maps}/c0")[1]
        server.create(maps, config("c0-child", [owner(parent)]))
        self.refused("a collection with bad options", server.ask(
            "DELETE", f"{maps}?labelSelector=set%3Da", {"propagationPolicy": "x"}), 422, "Unsupported")
        self.refused("a collection with a precondition", server.ask(
            "DELETE", f"{maps}?labelSelector=set%3Da", {"preconditions": {"uid": "x"}}), 409, "UID")
        tap.equal(server.ask("DELETE", f"{maps}?labelSelector=set%3Da",
                             {"dryRun": ["All"]})[0], 200, "a collection, dry")
        tap.equal(len(self.names(f"{maps}?labelSelector=set%3Da")), 3, "all are there")
        tap.equal(server.ask("DELETE", f"{maps}?labelSelector=set%3Da",
                             {"propagationPolicy": "Orphan"})[0], 200, "a collection, orphaning")
        until("they go", lambda: not self.names(f"{maps}?labelSelector=set%3Da"))
        tap.equal(server.get(f"{maps}/c0-child")[0], 200, "what one of them owned stays")

    # Namespaces

    def namespaces(self):
        server = self.server
        tap.equal(self.names(f"{CORE}/namespaces"),
                  ["default", "kube-node-lease", "kube-public", "kube-system"],
                  "the namespaces that are always there")
        default = server.get(f"{CORE}/namespaces/default")[1]
        tap.equal((default["spec"], default["status"], default["metadata"]["labels"]),
                  ({"finalizers": ["kubernetes"]}, {"phase": "Active"},
                   {"kubernetes.io/metadata.name": "default"}), "what they have")
        for name in ("default", "kube-system", "kube-public", "kube-node-lease"):
            self.refused(f"{name} stays", server.ask("DELETE", f"{CORE}/namespaces/{name}"), 403,
                         f'namespaces "{name}" is forbidden: this namespace may not be deleted',
                         "Forbidden")
        self.expect("kubectl cannot either", ["delete", "ns", "default"], status=1,
                    stderr="this namespace may not be deleted")
        reply = self.refused("nothing without a namespace", server.ask(
            "POST", plural("configmaps", "nowhere"), config("a")), 404,
                             'namespaces "nowhere" not found', "NotFound")
        tap.equal(reply["details"], {"name": "nowhere", "kind": "namespaces"}, "which one is missing")
        self.expect("kubectl says so", ["create", "-n", "nowhere", "-f", "-"], status=1,
                    stderr='namespaces "nowhere" not found', stdin=json.dumps(config("a")))

        made = server.create(f"{CORE}/namespaces", {**namespace("going"),
                                                    "spec": {"finalizers": []}})
        tap.equal((made["spec"], made["status"]), ({"finalizers": ["kubernetes"]},
                                                   {"phase": "Active"}), "a new one")
        replaced = {**made, "spec": {}, "metadata": {**made["metadata"], "labels": {"a": "b"}}}
        status, reply = server.ask("PUT", f"{CORE}/namespaces/going", replaced)
        tap.equal((status, reply["spec"], reply["metadata"]["labels"]),
                  (200, {"finalizers": ["kubernetes"]},
                   {"a": "b", "kubernetes.io/metadata.name": "going"}),
                  "an update changes neither finalizers nor the label")
        maps = plural("configmaps", "going")
        server.create(maps, config("plain"))
        server.create(maps, config("held", finalizers=["example.test/keep"]))
        server.create(maps, {**config("deceptive"), "data": {"deletionTimestamp": "x"}})
        server.create(plural("persistentvolumeclaims", "going"), claim("c"))
        server.create("/apis/openebs.io/v1alpha1/namespaces/going/jivavolumes",
                      {"apiVersion": "openebs.io/v1alpha1", "kind": "JivaVolume",
                       "metadata": {"name": "j"}, "spec": {"capacity": "5Gi"}})
        status, reply = server.ask("DELETE", f"{CORE}/namespaces/going")
        tap.equal((status, reply["status"]["phase"]), (200, "Terminating"), "it is terminating")
        reply = self.refused("nothing new comes in", server.ask("POST", maps, config("late")), 403,
                             'configmaps "late" is forbidden: unable to create new content in '
                             'namespace going because it is being terminated', "Forbidden")
        tap.equal(reply["details"].get("causes"), [{
            "reason": "NamespaceTerminating", "message": "namespace going is being terminated",
            "field": "metadata.namespace"}], "with its cause")

        def conditions():
            found = server.get(f"{CORE}/namespaces/going")[1]["status"].get("conditions", [])
            return {c["type"]: (c["status"], c["reason"], c["message"]) for c in found}

        until("the conditions say what is left", lambda: conditions().get(
            "NamespaceContentRemaining") == (
                "True", "SomeResourcesRemain",
                "Some resources are remaining: configmaps. has 1 resource instances"))
        tap.equal(conditions().get("NamespaceFinalizersRemaining"), (
            "True", "SomeFinalizersRemain", "Some content in the namespace has finalizers "
            "remaining: example.test/keep in 1 resource instances"), "and why")
        tap.equal(conditions().get("NamespaceDeletionContentFailure", [""])[0], "False",
                  "nothing failed")
        tap.equal(self.names(maps), ["held"], "the rest is gone")
        self.expect("the last finalizer", ["patch", "cm", "held", "-n", "going", "--type=merge",
                                           "-p", '{"metadata":{"finalizers":null}}'])
        self.expect("the namespace goes", ["wait", "ns/going", "--for=delete", "--timeout=60s"])
        server.create(f"{CORE}/namespaces", namespace("going"))
        tap.equal(self.names(maps), [], "one of the same name begins empty")
        self.expect("kubectl deletes a namespace", ["delete", "ns", "going", "--timeout=60s"],
                    stdout="deleted")

        made = server.create(f"{CORE}/namespaces", namespace("finalized"))
        status, reply = server.ask("PUT", f"{CORE}/namespaces/finalized/finalize", {
            **made, "spec": {"finalizers": ["kubernetes", "example.test/mine"]}})
        tap.equal((status, reply["spec"]["finalizers"]), (200, ["kubernetes", "example.test/mine"]),
                  "finalize sets the finalizers")
        server.ask("DELETE", f"{CORE}/namespaces/finalized")
        until("ours goes first", lambda: server.get(f"{CORE}/namespaces/finalized")[1].get(
            "spec", {}).get("finalizers") == ["example.test/mine"])
        current = server.get(f"{CORE}/namespaces/finalized")[1]
        current["spec"]["finalizers"] = []
        server.ask("PUT", f"{CORE}/namespaces/finalized/finalize", current)
        tap.ok(self.is_gone(f"{CORE}/namespaces/finalized"), "the last one ends it")
        self.refused("finalize what is not there", server.ask(
            "PUT", f"{CORE}/namespaces/none/finalize", namespace("none")), 404, "not found")

    # Quotas

    def quotas(self):
        server = self.server
        server.create(f"{CORE}/namespaces", namespace("quota"))
        claims = plural("persistentvolumeclaims", "quota")
        quotas = plural("resourcequotas", "quota")
        server.create("/apis/storage.k8s.io/v1/storageclasses", storage_class("gold", True))
        server.create(quotas, {
            "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "disk"},
            "spec": {"hard": {
                "requests.storage": "10Gi", "persistentvolumeclaims": "5",
                "gold.storageclass.storage.k8s.io/requests.storage": "4Gi",
                "count/configmaps": "2", "count/deployments.apps": "1", "requests.cpu": "7"}}})
        server.create(quotas, {
            "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "scoped"},
            "spec": {"hard": {"persistentvolumeclaims": "0"}, "scopes": ["Terminating"]}})
        server.create(claims, claim("a", "6Gi", storageClassName=""))
        self.refused("a claim that does not fit", server.ask(
            "POST", claims, claim("b", "5Gi", storageClassName="")), 403,
                     'persistentvolumeclaims "b" is forbidden: exceeded quota: disk, requested: '
                     'requests.storage=5Gi, used: requests.storage=6Gi, limited: '
                     'requests.storage=10Gi', "Forbidden")
        self.expect("kubectl says so", ["create", "-n", "quota", "-f", "-"], status=1,
                    stderr="exceeded quota: disk, requested: requests.storage=5Gi",
                    stdin=json.dumps(claim("b", "5Gi", storageClassName="")))
        tap.equal(server.ask("POST", claims + "?dryRun=All",
                             claim("b", "4Gi", storageClassName=""))[0], 201, "a dry run that fits")
        gold = server.create(claims, claim("g", "3Gi", storageClassName="gold"))
        self.refused("the quota of a class", server.ask(
            "POST", claims, claim("h", "2Gi", storageClassName="gold")), 403,
                     "requested: gold.storageclass.storage.k8s.io/requests.storage=2Gi,"
                     "requests.storage=2Gi, used: gold.storageclass.storage.k8s.io/"
                     "requests.storage=3Gi,requests.storage=9Gi, limited: "
                     "gold.storageclass.storage.k8s.io/requests.storage=4Gi,requests.storage=10Gi")
        gold["status"] = {"phase": "Bound", "capacity": {"storage": "3Gi"}}
        tap.equal(server.ask("PUT", f"{claims}/g/status", gold)[0], 200, "it is bound")
        self.refused("growth counts", server.ask(
            "PATCH", f"{claims}/g", {"spec": {"resources": {"requests": {"storage": "6Gi"}}}},
            "application/merge-patch+json"), 403,
                     "exceeded quota: disk, requested: gold.storageclass.storage.k8s.io/"
                     "requests.storage=3Gi,requests.storage=3Gi")
        tap.equal(server.ask("PATCH", f"{claims}/g",
                             {"spec": {"resources": {"requests": {"storage": "4Gi"}}}},
                             "application/merge-patch+json")[0], 200, "growth that fits")
        maps = plural("configmaps", "quota")
        for name in ("one", "two"):
            server.create(maps, config(name))
        self.refused("counts of any kind", server.ask("POST", maps, config("three")), 403,
                     "exceeded quota: disk, requested: count/configmaps=1, used: "
                     "count/configmaps=2, limited: count/configmaps=2")
        deployments = f"{APPS}/namespaces/quota/deployments"
        server.create(deployments, workload("Deployment", "d"))
        self.refused("counts of a group", server.ask("POST", deployments,
                                                     workload("Deployment", "e")), 403,
                     "count/deployments.apps=1")

        def used():
            return server.get(f"{quotas}/disk")[1].get("status", {}).get("used")

        until("the status says what is used", lambda: used() == {
            "requests.storage": "10Gi", "persistentvolumeclaims": "2",
            "gold.storageclass.storage.k8s.io/requests.storage": "4Gi", "count/configmaps": "2",
            "count/deployments.apps": "1"})
        self.expect("kubectl describes it", ["describe", "quota", "disk", "-n", "quota"],
                    stdout="requests.storage")
        server.ask("DELETE", f"{claims}/a")
        until("what is deleted is free", lambda: (used() or {}).get("requests.storage") == "4Gi")
        tap.equal(server.ask("POST", claims, claim("b", "5Gi", storageClassName=""))[0], 201,
                  "and can be used again")
        server.create("/apis/openebs.io/v1alpha1/namespaces/quota/jivavolumes",
                      {"apiVersion": "openebs.io/v1alpha1", "kind": "JivaVolume",
                       "metadata": {"name": "j"}, "spec": {"capacity": "50Gi"}})
        tap.ok(True, "volumes of ours are not claims")

        server.create(plural("limitranges", "quota"), {
            "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "sizes"},
            "spec": {"limits": [{"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"},
                                 "max": {"storage": "2Gi"}}]}})
        for size, message in (("500Mi", "minimum storage usage per PersistentVolumeClaim is 1Gi, "
                                        "but request is 500Mi"),
                              ("3Gi", "maximum storage usage per PersistentVolumeClaim is 2Gi, "
                                      "but request is 3Gi")):
            self.refused(f"a limit range refuses {size}", server.ask(
                "POST", claims, claim("l", size, storageClassName="")), 403, message, "Forbidden")

    def quota_race(self):
        """Many create and grow at once; the quota holds exactly."""
        server = self.server
        for number in range(4):
            name = f"race{number}"
            server.create(f"{CORE}/namespaces", namespace(name))
            server.create(plural("resourcequotas", name), {
                "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"},
                "spec": {"hard": {"requests.storage": "10Gi"}}})
            claims = plural("persistentvolumeclaims", name)

            def create(n, claims=claims):
                return server.ask("POST", claims, claim(f"c{n}", "1Gi", storageClassName="gold"))[0]

            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                codes = list(pool.map(create, range(40)))
            tap.equal((codes.count(201), codes.count(403), len(self.names(claims))), (10, 30, 10),
                      f"{name}: of forty that come at once exactly ten get in")
            for each in self.names(claims)[2:]:
                server.ask("DELETE", f"{claims}/{each}")
            until(f"{name}: eight go", lambda claims=claims: len(self.names(claims)) == 2)
            for each in self.names(claims):
                server.ask("PATCH", f"{claims}/{each}/status", {"status": {
                    "phase": "Bound", "capacity": {"storage": "1Gi"}}},
                           "application/merge-patch+json")

            def grow(n, claims=claims):
                target = self.names(claims)[n % 2]
                return server.ask(
                    "PATCH", f"{claims}/{target}",
                    {"spec": {"resources": {"requests": {"storage": f"{2 + n}Gi"}}}},
                    "application/merge-patch+json")[0]

            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                list(pool.map(grow, range(8)))
            sizes = [int(item["spec"]["resources"]["requests"]["storage"][:-2])
                     for item in server.get(claims)[1]["items"]]
            tap.ok(2 < sum(sizes) <= 10, f"{name}: growth at once stays within it", sizes)

    # Scale

    def scale(self):
        server = self.server
        for kind, path in (("Deployment", "deployments"), ("ReplicaSet", "replicasets"),
                           ("StatefulSet", "statefulsets")):
            base = f"{APPS}/namespaces/default/{path}"
            made = server.create(base, workload(kind, "s1", replicas=1))
            status, reply = server.get(f"{base}/s1/scale")
            tap.equal((status, reply), (200, {
                "kind": "Scale", "apiVersion": "autoscaling/v1",
                "metadata": {key: made["metadata"][key] for key in (
                    "name", "namespace", "uid", "resourceVersion", "creationTimestamp")},
                "spec": {"replicas": 1}, "status": {"replicas": 0, "selector": "app=s1"}}),
                      f"the scale of a {kind}")
            status, scaled = server.ask("PUT", f"{base}/s1/scale",
                                        {**reply, "spec": {"replicas": 2}}, content_type=None)
            tap.equal((status, scaled["spec"]["replicas"]), (200, 2), "PUT without a type")
            self.refused("the old revision", server.ask("PUT", f"{base}/s1/scale", reply), 409,
                         "Operation cannot be fulfilled on", "Conflict")
            status, empty = server.ask("PUT", f"{base}/s1/scale", {**scaled, "spec": {}})
            tap.equal((status, empty["spec"]["replicas"]), (200, 0), "none is zero")
            body = self.refused("less than none", server.ask(
                "PATCH", f"{base}/s1/scale", {"spec": {"replicas": -1}},
                "application/merge-patch+json"), 422,
                                'Scale.autoscaling "s1" is invalid: spec.replicas: Invalid value: '
                                '-1: must be greater than or equal to 0', "Invalid")
            tap.equal(body["details"]["causes"][0]["field"], "spec.replicas", "its cause")
            self.refused("no number", server.ask("PATCH", f"{base}/s1/scale",
                                                 {"spec": {"replicas": "many"}},
                                                 "application/merge-patch+json"), 400, "integer")
            self.refused("no Scale", server.ask("PUT", f"{base}/s1/scale", made), 400, "Scale")
            self.refused("nothing to scale", server.get(f"{base}/none/scale"), 404,
                         f'{path}.apps "none" not found', "NotFound")
            self.expect("kubectl scale", ["scale", path, "s1", "--replicas=3"], stdout="scaled")
            self.expect("kubectl scale if", ["scale", path, "s1", "--replicas=4",
                                             "--current-replicas=3"], stdout="scaled")
            self.expect("kubectl scale if not", ["scale", path, "s1", "--replicas=5",
                                                 "--current-replicas=3"], status=1,
                        stderr="Expected replicas to be 3, was 4")
            tap.equal(server.get(f"{base}/s1")[1]["spec"]["replicas"], 4, "it is scaled")
            dry = server.ask("PATCH", f"{base}/s1/scale?dryRun=All",
                             [{"op": "replace", "path": "/spec/replicas", "value": 9}],
                             "application/json-patch+json")[1]
            tap.equal((dry["spec"]["replicas"], server.get(f"{base}/s1")[1]["spec"]["replicas"]),
                      (9, 4), "a dry run")
        self.refused("a pod has none", server.get(plural("pods", "default", "p/scale")), 404, "")

    # Claims, classes and StatefulSets

    def claims(self):
        server = self.server
        classes = "/apis/storage.k8s.io/v1/storageclasses"
        claims = plural("persistentvolumeclaims")
        before = server.create(claims, claim("early"))
        tap.equal(before["spec"].get("storageClassName"), None, "without a default class")
        server.create(classes, storage_class("fixed", False))
        server.create(classes, storage_class("usual", True, default=True))
        made = server.create(claims, claim("c"))
        tap.equal(made["spec"]["storageClassName"], "usual", "the default class is filled in")
        tap.equal(server.create(claims, claim("none", storageClassName=""))["spec"]
                  ["storageClassName"], "", "not where none is wanted")
        tap.equal(made["metadata"]["finalizers"], ["kubernetes.io/pvc-protection"],
                  "claims are protected")

        def resize(name, size):
            return server.ask("PATCH", f"{claims}/{name}",
                              {"spec": {"resources": {"requests": {"storage": size}}}},
                              "application/merge-patch+json")

        def bind(name, size):
            status, reply = server.ask("PATCH", f"{claims}/{name}/status", {"status": {
                "phase": "Bound", "capacity": {"storage": size}}}, "application/merge-patch+json")
            if status != 200:
                raise AssertionError(f"{status} {reply}")

        self.refused("a claim that is not bound does not grow", resize("c", "2Gi"), 422,
                     "spec: Forbidden: spec is immutable after creation except resources.requests "
                     "and volumeAttributesClassName for bound claims", "Invalid")
        tap.equal(resize("c", "1024Mi")[0], 200, "the same size in other words")
        status, reply = server.ask("PATCH", f"{claims}/c", {"spec": {"volumeName": "pv1"}},
                                   "application/merge-patch+json")
        tap.equal(status, 200, "the volume is set once")
        self.refused("not twice", server.ask("PATCH", f"{claims}/c",
                                             {"spec": {"volumeName": "pv2"}},
                                             "application/merge-patch+json"), 422, "immutable")
        bind("c", "1Gi")
        tap.equal(resize("c", "5Gi")[0], 200, "a bound claim grows")
        tap.equal(resize("c", "3Gi")[0], 200, "a growth can be taken back in part")
        self.refused("not to what there is", resize("c", "1Gi"), 422,
                     "spec.resources.requests.storage: Forbidden: field can not be less than "
                     "status.capacity")
        self.refused("nor below", resize("c", "500Mi"), 422, "status.capacity")
        self.refused("nothing else changes", server.ask(
            "PATCH", f"{claims}/c", {"spec": {"accessModes": ["ReadWriteMany"]}},
            "application/merge-patch+json"), 422, "spec is immutable")
        server.create(claims, claim("f", storageClassName="fixed"))
        bind("f", "1Gi")
        self.refused("a class that does not grow", resize("f", "2Gi"), 403,
                     'persistentvolumeclaims "f" is forbidden: only dynamically provisioned pvc '
                     'can be resized and the storageclass that provisions the pvc must support '
                     'resize', "Forbidden")
        bind("none", "1Gi")
        self.refused("no class at all", resize("none", "2Gi"), 403, "only dynamically provisioned")

        for member, value in (("parameters", {"a": "c"}), ("provisioner", "other.test"),
                              ("reclaimPolicy", "Retain")):
            self.refused(f"{member} of a class stays", server.ask(
                "PATCH", f"{classes}/usual", {member: value}, "application/merge-patch+json"), 422,
                         f"{member}: Forbidden: updates to {member} are forbidden.", "Invalid")
        tap.equal(server.ask("PATCH", f"{classes}/usual", {"allowVolumeExpansion": False},
                             "application/merge-patch+json")[0], 200, "growth can be switched off")
        self.refused("then claims stay", resize("c", "9Gi"), 403, "only dynamically provisioned")
        server.ask("PATCH", f"{classes}/usual", {"allowVolumeExpansion": True},
                   "application/merge-patch+json")

        volumes = f"{CORE}/persistentvolumes"
        volume = server.create(volumes, {
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv1"},
            "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                     "csi": {"driver": "csi.example.test", "volumeHandle": "h"}}})
        tap.equal(volume["metadata"]["finalizers"], ["kubernetes.io/pv-protection"],
                  "volumes are protected")
        server.ask("PUT", f"{volumes}/pv1/status", {**volume, "status": {"phase": "Bound"}})
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "user"},
               "spec": {"nodeName": "n1", "containers": [{"name": "m", "image": "i"}],
                        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}}
        server.create(plural("pods"), pod)
        server.ask("DELETE", f"{volumes}/pv1")
        server.ask("DELETE", f"{claims}/c")
        server.ask("DELETE", f"{claims}/none")
        until("a claim that nobody uses goes", lambda: self.is_gone(f"{claims}/none"))
        tap.equal([server.get(p)[0] for p in (f"{claims}/c", f"{volumes}/pv1")], [200, 200],
                  "what is used stays")
        server.ask("DELETE", plural("pods", "default", "user"))
        until("and goes when it is not", lambda: self.is_gone(f"{claims}/c"))
        current = server.get(f"{volumes}/pv1")[1]
        server.ask("PUT", f"{volumes}/pv1/status", {**current, "status": {"phase": "Released"}})
        until("the volume too", lambda: self.is_gone(f"{volumes}/pv1"))

    def sets(self, gate):
        server = self.server
        sets = f"{APPS}/namespaces/default/statefulsets"
        server.create(sets, workload("StatefulSet", "db", serviceName="db", volumeClaimTemplates=[
            {"metadata": {"name": "a"}, "spec": claim("a", "2Gi", storageClassName="fixed")["spec"]},
            {"metadata": {"name": "b"}, "spec": claim("b", "2Gi")["spec"]}]))

        def change(edit):
            value = server.get(f"{sets}/db")[1]
            edit(value["spec"])
            return server.ask("PUT", f"{sets}/db", value)

        def size(template, text):
            def edit(spec):
                requests = spec["volumeClaimTemplates"][template]["spec"]["resources"]["requests"]
                requests["storage"] = text
            return edit

        fixed = ("spec: Forbidden: updates to statefulset spec for fields other than 'replicas', "
                 "'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', "
                 "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden")
        if not gate:
            self.refused("with the gate off sizes stay", change(size(1, "3Gi")), 422, fixed,
                         "Invalid")
            tap.equal(change(lambda spec: spec.update(replicas=2))[0], 200, "the rest changes")
            server.ask("DELETE", f"{sets}/db")
            return
        tap.equal(change(size(1, "5Gi"))[0], 200, "a template grows with the default class")
        tap.equal(change(size(1, "3Gi"))[0], 200, "and shrinks")
        tap.equal(change(size(0, "2048Mi"))[0], 200, "the same in other words")
        self.refused("not where the class does not allow it", change(size(0, "3Gi")), 422,
                     'spec.volumeClaimTemplates[0].spec.resources.requests.storage: Forbidden: the '
                     'size can change only where the storage class allows it; the class "fixed" '
                     'has no allowVolumeExpansion: true', "Invalid")

        def access_modes(spec):
            spec["volumeClaimTemplates"][1]["spec"]["accessModes"] = ["ReadWriteMany"]

        def storage_class_name(spec):
            spec["volumeClaimTemplates"][1]["spec"]["storageClassName"] = "fixed"

        for name, edit in (
                ("serviceName", lambda spec: spec.update(serviceName="other")),
                ("podManagementPolicy", lambda spec: spec.update(podManagementPolicy="Parallel")),
                ("a template's modes", access_modes), ("a template's class", storage_class_name),
                ("a template less", lambda spec: spec["volumeClaimTemplates"].pop())):
            self.refused(f"{name} stays", change(edit), 422, fixed, "Invalid")
        for name, edit in (
                ("replicas", lambda spec: spec.update(replicas=3)),
                ("ordinals", lambda spec: spec.update(ordinals={"start": 1})),
                ("template", lambda spec: spec["template"]["spec"]["containers"][0].update(
                    image="example.test/a:2")),
                ("updateStrategy", lambda spec: spec.update(updateStrategy={"type": "OnDelete"})),
                ("minReadySeconds", lambda spec: spec.update(minReadySeconds=5)),
                ("revisionHistoryLimit", lambda spec: spec.update(revisionHistoryLimit=3)),
                ("retention", lambda spec: spec.update(persistentVolumeClaimRetentionPolicy={
                    "whenDeleted": "Delete", "whenScaled": "Retain"}))):
            status, reply = change(edit)
            tap.ok(status == 200, f"{name} changes", reply)
        self.expect("kubectl patches a size", [
            "patch", "sts", "db", "--type=json", "-p", json.dumps([{
                "op": "replace", "value": "8Gi",
                "path": "/spec/volumeClaimTemplates/1/spec/resources/requests/storage"}])],
                    stdout="patched")

    # Rollouts

    def rollouts(self):
        server = self.server
        base = f"{APPS}/namespaces/default"
        deployment = server.create(f"{base}/deployments", workload("Deployment", "web", replicas=2))
        for number in (1, 2):
            labels = {"app": "web", "pod-template-hash": f"h{number}"}
            template = pod_template("web", f"example.test/web:{number}")
            template["metadata"]["labels"] = labels
            value = workload("ReplicaSet", f"web-h{number}", replicas=0, template=template,
                             selector={"matchLabels": labels})
            value["metadata"].update(labels=labels, ownerReferences=[
                {**owner(deployment), "controller": True}],
                                     annotations={"deployment.kubernetes.io/revision": f"{number}"})
            server.create(f"{base}/replicasets", value)
        server.ask("PATCH", f"{base}/deployments/web", {
            "metadata": {"annotations": {"deployment.kubernetes.io/revision": "2"}},
            "spec": {"template": pod_template("web", "example.test/web:2")}},
                   "application/merge-patch+json")
        result = self.expect("rollout history", ["rollout", "history", "deploy/web"])
        tap.equal([line.split()[0] for line in result.stdout.splitlines()[2:] if line], ["1", "2"],
                  "both revisions are there")
        self.expect("rollout history of one", ["rollout", "history", "deploy/web", "--revision=1"],
                    stdout="example.test/web:1")
        self.expect("rollout undo", ["rollout", "undo", "deploy/web", "--to-revision=1"],
                    stdout="rolled back")
        tap.equal(server.get(f"{base}/deployments/web")[1]["spec"]["template"]["spec"]["containers"]
                  [0]["image"], "example.test/web:1", "the old image is back")

        def finished(path, status):
            current = server.get(path)[1]
            status["observedGeneration"] = current["metadata"]["generation"]
            code, reply = server.ask("PUT", f"{path}/status", {**current, "status": status})
            if code != 200:
                raise AssertionError(f"{code} {reply}")

        watching = subprocess.Popen(
            ["kubectl", "--server", server.url, "rollout", "status", "deploy/web", "--timeout=60s"],
            stdout=subprocess.PIPE, text=True, env=self.scratch.kubectl_env())
        first = watching.stdout.readline()
        tap.ok("Waiting for" in first, "rollout status waits", first)
        finished(f"{base}/deployments/web", {"replicas": 2, "updatedReplicas": 2,
                                             "readyReplicas": 2, "availableReplicas": 2})
        rest = watching.stdout.read()
        tap.ok(watching.wait() == 0 and "successfully rolled out" in rest, "and ends", rest)
        self.expect("rollout restart", ["rollout", "restart", "deploy/web"], stdout="restarted")

        for kind, path, spec in (("StatefulSet", "statefulsets", {"serviceName": "x"}),
                                 ("DaemonSet", "daemonsets", {})):
            made = server.create(f"{base}/{path}", workload(kind, "set", **spec))
            for number in (1, 2):
                server.create(f"{base}/controllerrevisions", {
                    "apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": number,
                    "metadata": {"name": f"{path}-{number}", "labels": {"app": "set"},
                                 "ownerReferences": [{**owner(made), "controller": True}]},
                    "data": {"spec": {"template": {"$patch": "replace", **pod_template(
                        "set", f"example.test/set:{number}")}}}})
            result = self.expect(f"history of a {kind}", ["rollout", "history", f"{path}/set"])
            tap.equal([line.split()[0] for line in result.stdout.splitlines()[2:] if line],
                      ["1", "2"], "both revisions")
            self.expect(f"undo of a {kind}", ["rollout", "undo", f"{path}/set", "--to-revision=1"],
                        stdout="rolled back")
            tap.equal(server.get(f"{base}/{path}/set")[1]["spec"]["template"]["spec"]["containers"]
                      [0]["image"], "example.test/set:1", "its image")
        finished(f"{base}/statefulsets/set", {"replicas": 1, "readyReplicas": 1,
                                              "updatedReplicas": 1, "currentReplicas": 1,
                                              "currentRevision": "a", "updateRevision": "a"})
        self.expect("status of a StatefulSet", ["rollout", "status", "sts/set", "--timeout=30s"],
                    stdout="roll out complete")
        finished(f"{base}/daemonsets/set", {
            "currentNumberScheduled": 1, "desiredNumberScheduled": 1, "numberMisscheduled": 0,
            "numberReady": 1, "updatedNumberScheduled": 1, "numberAvailable": 1})
        self.expect("status of a DaemonSet", ["rollout", "status", "ds/set", "--timeout=30s"],
                    stdout="successfully rolled out")

    # Logs

    def logs(self):
        server, pods = self.server, plural("pods")
        folder = os.path.join(server.folder, "pods", "default", "two")
        os.makedirs(folder)
        server.create(pods, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "two"},
                             "spec": {"nodeName": "n1", "initContainers": [
                                 {"name": "init", "image": "i"}], "containers": [
                                     {"name": "a", "image": "i"}, {"name": "b", "image": "i"}]}})
        server.create(pods, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "idle"},
                             "spec": {"containers": [{"name": "a", "image": "i"}]}})
        now = datetime.datetime.now(datetime.timezone.utc)

        def line(age, text):
            stamp = now - datetime.timedelta(seconds=age)
            return stamp.strftime("%Y-%m-%dT%H:%M:%S.%f000Z ") + text + "\n"

        lines = [line(7200, "old"), line(5, "new"), "continued\n", line(1, "newest")]
        with open(os.path.join(folder, "a.log"), "w", encoding="utf-8") as log:
            log.writelines(lines)
        with open(os.path.join(folder, "b.previous.log"), "w", encoding="utf-8") as log:
            log.write(line(3, "before"))

        def log(query="container=a", pod="two"):
            return server.get(f"{pods}/{pod}/log?{query}")

        for name, query, expected in (
                ("all", "", "old\nnew\ncontinued\nnewest\n"),
                ("the last lines", "&tailLines=2", "continued\nnewest\n"),
                ("no lines", "&tailLines=0", ""), ("more than there are", "&tailLines=99",
                                                   "old\nnew\ncontinued\nnewest\n"),
                ("of late", "&sinceSeconds=600", "new\ncontinued\nnewest\n"),
                ("since a time", "&sinceTime=" + (now - datetime.timedelta(seconds=60)).strftime(
                    "%Y-%m-%dT%H:%M:%SZ"), "new\ncontinued\nnewest\n"),
                ("the first bytes", "&limitBytes=5", "old\nn"),
                ("with times", "&timestamps=true", "".join(lines))):
            tap.equal(log("container=a" + query), (200, expected), f"log: {name}")
        tap.equal(log("container=b&previous=true"), (200, "before\n"), "log: of the one before")
        tap.equal(log("", "idle"), (200, ""), "log: of a pod without a node")
        for name, query, status, message in (
                ("which container", "", 400, "a container name must be specified for pod two, choose "
                                             "one of: [a b] or one of the init containers: [init]"),
                ("no such container", "container=c", 400, "container c is not valid for pod two"),
                ("a path", "container=..%2F..%2Fx", 400, "is not valid for pod two"),
                ("not yet", "container=b", 400,
                 'container "b" in pod "two" is waiting to start: ContainerCreating'),
                ("none before", "container=a&previous=true", 400,
                 'previous terminated container "a" in pod "two" not found'),
                ("few lines", "container=a&tailLines=-1", 422, 'PodLogOptions "two" is invalid: '
                 'tailLines: Invalid value: -1: must be greater than or equal to 0'),
                ("few bytes", "container=a&limitBytes=0", 422, "limitBytes: Invalid value: 0: must "
                                                               "be greater than or equal to 1"),
                ("no number", "container=a&tailLines=x", 400, "tailLines must be an integer")):
            self.refused(f"log: {name}", log(query), status, message)
        self.refused("log: no pod", log("", "none"), 404, 'pods "none" not found')
        os.symlink("/etc/passwd", os.path.join(folder, "init.log"))
        tap.ok(log("container=init")[0] != 200, "log: a link is not followed")
        self.expect("kubectl logs", ["logs", "two", "-c", "a", "--tail=1"], stdout="newest")
        self.expect("kubectl logs asks which", ["logs", "two", "-c", "zzz"], status=1,
                    stderr="container zzz is not valid for pod two")

        following = subprocess.Popen(
            ["kubectl", "--server", server.url, "logs", "-f", "two", "-c", "a", "--tail=1"],
            stdout=subprocess.PIPE, text=True, env=self.scratch.kubectl_env())
        tap.equal(following.stdout.readline(), "newest\n", "kubectl logs -f begins")
        with open(os.path.join(folder, "a.log"), "a", encoding="utf-8") as log_file:
            for n in range(3):
                log_file.write(line(0, f"more {n}"))
                log_file.flush()
                tap.equal(following.stdout.readline(), f"more {n}\n", "and goes on")
            log_file.write(line(0, "unfinished").rstrip("\n"))
        pod = server.get(f"{pods}/two")[1]
        pod["status"] = {"phase": "Running", "containerStatuses": [{
            "name": "a", "image": "i", "imageID": "", "ready": False, "restartCount": 0,
            "state": {"terminated": {"exitCode": 0}}}]}
        tap.equal(server.ask("PUT", f"{pods}/two/status", pod)[0], 200, "the container ends")
        tap.equal(following.stdout.read(), "unfinished", "what it last said comes")
        tap.equal(following.wait(), 0, "and the log ends")
        pod["status"]["containerStatuses"] = []
        pod["metadata"].pop("resourceVersion")
        server.ask("PUT", f"{pods}/two/status", pod)
        left = server.connect()
        left.request("GET", f"{pods}/two/log?container=a&follow=true&tailLines=0")
        left.getresponse()
        left.close()
        tap.equal(log("container=a&tailLines=1")[0], 200, "who hangs up harms nobody")

    # Events

    def events(self):
        server = self.server
        events = plural("events")
        server.create(events, {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "short"},
                               "involvedObject": {"kind": "Pod", "name": "p"}, "type": "Normal",
                               "reason": "x", "message": "y"})
        until("events are dropped", lambda: self.is_gone(f"{events}/short"))


def crash(scratch):
    """Killed at any moment, the collection is finished by whoever comes next."""
    data = scratch.file("crash")
    maps = plural("configmaps")
    count = 40
    with Server(data) as server:
        for policy in ("Background", "Foreground", "Orphan"):
            parent = server.create(maps, config(policy.lower()))
            for n in range(count):
                server.create(maps, config(f"{policy.lower()}-{n}", [owner(parent, True)]))
        server.create(f"{CORE}/namespaces", namespace("doomed"))
        for n in range(count):
            server.create(plural("configmaps", "doomed"), config(f"c{n}"))
        for policy in ("Background", "Foreground", "Orphan"):
            server.ask("DELETE", f"{maps}/{policy.lower()}", {"propagationPolicy": policy})
        server.ask("DELETE", f"{CORE}/namespaces/doomed")
        server.kill()

    def left(server):
        return sorted(i["metadata"]["name"] for i in server.get(maps)[1]["items"])

    rounds = 0
    orphans = sorted(f"orphan-{n}" for n in range(count))
    for rounds in range(3):  # and again in the middle of the work
        with Server(data) as server:
            server.get(maps)
            server.kill()
    with Server(data) as server:
        life = Life(server, scratch)
        until(f"after {rounds + 2} crashes all that is to go is gone", lambda: left(server) == orphans)
        tap.equal([i["metadata"].get("ownerReferences") for i in server.get(maps)[1]["items"]],
                  [None] * count, "and the orphans are free")
        until("the namespace is gone", lambda: life.is_gone(f"{CORE}/namespaces/doomed"))
        tap.equal(server.get(plural("configmaps", "doomed"))[1]["items"], [], "with all in it")
    tap.equal(server.status, 0, "it stops when told")


with Scratch() as scratch:
    with Server(scratch.file("life")) as server:
        life = Life(server, scratch)
        life.namespaces()
        life.owners()
        life.options()
        life.quotas()
        life.quota_race()
        life.scale()
        life.claims()
        life.sets(gate=True)
        life.rollouts()
        life.logs()
    tap.equal(server.status, 0, "it stops when told")
    with Server(scratch.file("life"), "--event-ttl", "2", "--feature-gates",
                "StatefulSetVolumeExpansion=false") as server:
        life = Life(server, scratch)
        server.ask("DELETE", f"{APPS}/namespaces/default/statefulsets/db")
        life.sets(gate=False)
        life.events()
    crash(scratch)
    refused = run(program, "--data-dir", scratch.file("x"), "--feature-gates", "Nothing=true")
    tap.ok(refused.returncode == 2 and "no feature gate \"Nothing\"" in refused.stderr,
           "an unknown gate is refused", refused.stderr)
tap.done()
