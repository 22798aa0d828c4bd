#!/usr/bin/env python3
"""How objects end: owners, deletion, namespaces, events; and that crashes change nothing of it.

object-life.py APISERVER
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from life import (CORE, Life, claim, config, namespace, owner, plural, tap,  # noqa: E402
                  until)
from server import Server  # noqa: E402
from tap import Scratch, run  # noqa: E402

program = sys.argv[1]


class Ends(Life):
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
    with Server(program, data) as server:
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

    rounds = 0
    orphans = sorted(f"orphan-{n}" for n in range(count))
    for rounds in range(3):  # and again in the middle of the work
        with Server(program, data) as server:
            server.get(maps)
            server.kill()
    with Server(program, data) as server:
        life = Life(server)
        until(f"after {rounds + 2} crashes all that is to go is gone",
              lambda: life.names(maps) == orphans)
        tap.equal([i for i in server.get(maps)[1]["items"] if "ownerReferences" in i["metadata"]], [],
                  "and the orphans are free")
        until("the namespace is gone", lambda: life.is_gone(f"{CORE}/namespaces/doomed"))
        tap.equal(server.get(plural("configmaps", "doomed"))[1]["items"], [], "with all in it")
    tap.equal(server.status, 0, "it stops when told")


with Scratch() as scratch:
    with Server(program, scratch.file("life")) as server:
        life = Ends(server)
        life.namespaces()
        life.owners()
        life.options()
    tap.equal(server.status, 0, "it stops when told")
    with Server(program, scratch.file("life"), "--event-ttl", "2") as server:
        Ends(server).events()
    crash(scratch)
    refused = run(program, "--data-dir", scratch.file("x"), "--feature-gates", "Nothing=true")
    tap.ok(refused.returncode == 2 and "no feature gate \"Nothing\"" in refused.stderr,
           "an unknown gate is refused", refused.stderr)
tap.done()
