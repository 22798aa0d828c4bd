#!/usr/bin/env python3
"""Kinds that users define, as kubectl sees them.

custom-resources.py APISERVER TOP
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from server import Server  # noqa: E402
from tap import Scratch, Tap  # noqa: E402

program, top = sys.argv[1:3]
tap = Tap()


def definition(plural, kind, versions, group="rec.example.test", scope="Namespaced", **names):
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}"},
            "spec": {"group": group, "scope": scope,
                     "names": {"plural": plural, "kind": kind, **names}, "versions": versions}}


def version(name, spec, storage=True, **more):
    return {"name": name, "served": True, "storage": storage,
            "schema": {"openAPIV3Schema": {"type": "object", "description": "A gadget", "properties": {
                "spec": spec,
                "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}},
            **more}


SPEC = {
    "type": "object", "description": "desired state", "required": ["size"], "properties": {
        "size": {"type": "string", "description": "size of the gadget", "pattern": "^[0-9]+[KMG]i$"},
        "replicas": {"type": "integer", "minimum": 0, "maximum": 10, "default": 1},
        "mode": {"type": "string", "enum": ["fast", "safe"], "default": "safe"},
        "labels": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 5}},
        "disks": {"type": "array", "maxItems": 3, "x-kubernetes-list-type": "set",
                  "items": {"type": "string"}},
        "ports": {"type": "array", "x-kubernetes-list-type": "map",
                  "x-kubernetes-list-map-keys": ["name"],
                  "items": {"type": "object", "required": ["name"], "properties": {
                      "name": {"type": "string"},
                      "port": {"x-kubernetes-int-or-string": True}}}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}
COLUMNS = [{"name": "Size", "type": "string", "jsonPath": ".spec.size"},
           {"name": "Ready", "type": "string",
            "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
           {"name": "Mode", "type": "string", "jsonPath": ".spec.mode", "priority": 1,
            "description": "How it runs"},
           {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}]
GADGETS = definition(
    "gadgets", "Gadget",
    [version("v1", SPEC, additionalPrinterColumns=COLUMNS,
             selectableFields=[{"jsonPath": ".spec.mode"}],
             subresources={"status": {}, "scale": {
                 "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
                 "labelSelectorPath": ".status.selector"}})],
    shortNames=["gd"], categories=["all"])


def gadget(name, **spec):
    return {"apiVersion": "rec.example.test/v1", "kind": "Gadget", "metadata": {"name": name},
            "spec": {"size": "10Gi", **spec}}


GROUP = "/apis/rec.example.test"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PLACE = f"{GROUP}/v1/namespaces/default/gadgets"

with Scratch() as scratch:
    data = scratch.file("data")

    def expect(server, name, argv, status=0, stdout=None, stderr=None, stdin=None):
        return tap.ran(server.kubectl(*argv, stdin=stdin), name, status, stdout, stderr)

    def established(server, name):
        expect(server, f"{name} is established", [
            "wait", f"crd/{name}", "--for=condition=established", "--timeout=20s"])

    def refused(server, name, object_, text, cause=None, place=PLACE, method="POST", code=422):
        status, reply, _ = server.send(method, place, object_)
        fields = [(c["field"], c["reason"]) for c in reply.get("details", {}).get("causes", [])]
        tap.ok(status == code and text in reply["message"] and (cause is None or cause in fields),
               name, f"{status} {json.dumps(reply, indent=1)}")

    with Server(program, data) as server:
        status, plain, _ = server.send("GET", "/apis")
        tap.ok("rec.example.test" not in [g["name"] for g in plain["groups"]],
               "there is no such group at first", plain)
        status, index, _ = server.send("GET", "/openapi/v3")
        before = index["paths"]
        expect(server, "create the definition", ["create", "-f", "-"], stdin=GADGETS,
               stdout="gadgets.rec.example.test created")
        established(server, "gadgets.rec.example.test")
        status, crd, _ = server.send("GET", f"{CRDS}/gadgets.rec.example.test")
        tap.equal(crd["spec"]["names"],
                  {"plural": "gadgets", "kind": "Gadget", "shortNames": ["gd"],
                   "categories": ["all"], "listKind": "GadgetList", "singular": "gadget"},
                  "names that follow from others are filled in")
        tap.equal(crd["status"]["acceptedNames"], crd["spec"]["names"], "its names are accepted")
        tap.equal(crd["status"]["storedVersions"], ["v1"], "the stored version is recorded")
        tap.equal([(c["type"], c["status"], c["reason"]) for c in crd["status"]["conditions"]],
                  [("NamesAccepted", "True", "NoConflicts"),
                   ("Established", "True", "InitialNamesAccepted")], "its conditions")

        # Discovery and schemas.
        status, plain, _ = server.send("GET", f"{GROUP}/v1")
        tap.equal([(r["name"], r["kind"], r.get("shortNames"), r.get("categories"))
                   for r in plain["resources"]],
                  [("gadgets", "Gadget", ["gd"], ["all"]),
                   ("gadgets/status", "Gadget", None, None), ("gadgets/scale", "Scale", None, None)],
                  "plain discovery has the kind and its subresources")
        status, all_groups, _ = server.send(
            "GET", "/apis", headers={"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;"
                                            "as=APIGroupDiscoveryList"})
        found = [g for g in all_groups["items"] if g["metadata"].get("name") == "rec.example.test"]
        tap.equal([r["resource"] for g in found for v in g["versions"] for r in v["resources"]],
                  ["gadgets"], "aggregated discovery has it")
        status, index, _ = server.send("GET", "/openapi/v3")
        tap.ok("apis/rec.example.test/v1" in index["paths"] and
               {k: v for k, v in index["paths"].items() if k in before} == before,
               "the index has one document more, and the others are as they were")
        expect(server, "api-resources", ["api-resources", "--api-group=rec.example.test"],
               stdout="gadgets   gd           rec.example.test/v1   true         Gadget")
        expect(server, "explain", ["explain", "gadgets.spec.size"], stdout="size of the gadget")
        expect(server, "explain all", ["explain", "gd", "--recursive"], stdout="replicas")

        # Objects.
        expect(server, "create", ["create", "-f", "-"], stdin=gadget("g1"),
               stdout="gadget.rec.example.test/g1 created")
        status, g1, _ = server.send("GET", f"{PLACE}/g1")
        tap.equal(g1["spec"], {"size": "10Gi", "replicas": 1, "mode": "safe"}, "defaults are set")
        expect(server, "get by short name", ["get", "gd"], stdout="NAME   SIZE   READY   AGE")
        expect(server, "get wide", ["get", "gd", "-o", "wide"], stdout="MODE")
        expect(server, "get all has it", ["get", "all"], stdout="gadget.rec.example.test/g1")
        expect(server, "a status", ["patch", "gd", "g1", "--subresource=status", "--type=merge", "-p",
                                    '{"status":{"conditions":[{"type":"Other","status":"x"},'
                                    '{"type":"Ready","status":"True"}]}}'])
        expect(server, "a condition in a column", ["get", "gd", "g1"], stdout="True")
        expect(server, "wait for it", ["wait", "gd/g1", "--for=condition=Ready", "--timeout=20s"])
        expect(server, "edit", ["patch", "gd", "g1", "--type=merge", "-p", '{"spec":{"replicas":3}}'])
        status, g1, _ = server.send("GET", f"{PLACE}/g1")
        tap.equal((g1["metadata"]["generation"], g1["status"]["conditions"][1]["status"]),
                  (2, "True"), "a status of its own counts no generation and stays")
        expect(server, "strategic patches are not for them",
               ["patch", "gd", "g1", "--type=strategic", "-p", "{}"], status=1)
        expect(server, "apply", ["apply", "-f", "-"], stdin=gadget("g2"), stdout="created")
        expect(server, "apply again", ["apply", "-f", "-"], stdin=gadget("g2"), stdout="unchanged")
        expect(server, "apply a change", ["apply", "-f", "-"], stdin=gadget("g2", mode="fast"),
               stdout="configured")
        result = expect(server, "a selectable field", ["get", "gd", "-o", "name", "--field-selector",
                                                       "spec.mode=fast"])
        tap.equal(result.stdout, "gadget.rec.example.test/g2\n", "selects")
        expect(server, "a field that is not", ["get", "gd", "--field-selector", "spec.size=10Gi"],
               status=1, stderr="field label not supported: spec.size")

        # What is refused, in the words of the original.
        refused(server, "too large", gadget("x", replicas=20),
                'Gadget.rec.example.test "x" is invalid: spec.replicas: Invalid value: 20: '
                "spec.replicas in body should be less than or equal to 10",
                ("spec.replicas", "FieldValueInvalid"))
        refused(server, "a wrong type", gadget("x", replicas="three"),
                'spec.replicas: Invalid value: "string": spec.replicas in body must be of type '
                'integer: "string"', ("spec.replicas", "FieldValueTypeInvalid"))
        refused(server, "a word", gadget("x", mode="slow"),
                'spec.mode: Unsupported value: "slow": supported values: "fast", "safe"',
                ("spec.mode", "FieldValueNotSupported"))
        refused(server, "a pattern", gadget("x", size="ten"),
                "spec.size in body should match '^[0-9]+[KMG]i$'")
        refused(server, "too many", gadget("x", disks=["a", "b", "c", "d"]),
                "spec.disks: Too many: 4: must have at most 3 items",
                ("spec.disks", "FieldValueTooMany"))
        refused(server, "twice in a set", gadget("x", disks=["a", "a"]),
                'spec.disks[1]: Duplicate value: "a"', ("spec.disks[1]", "FieldValueDuplicate"))
        refused(server, "twice in a map", gadget("x", ports=[{"name": "a"}, {"name": "a"}]),
                'spec.ports[1]: Duplicate value: {"name":"a"}')
        refused(server, "a long value", gadget("x", labels={"k": "abcdef"}),
                "spec.labels.k: Too long: may not be more than 5 bytes",
                ("spec.labels.k", "FieldValueTooLong"))
        missing = gadget("x")
        del missing["spec"]["size"]
        refused(server, "nothing where something is required", missing,
                'is invalid: spec.size: Required value', ("spec.size", "FieldValueRequired"))
        refused(server, "an update too", {**gadget("g2", replicas=-1)},
                "should be greater than or equal to 0", place=f"{PLACE}/g2", method="PUT")
        bad = gadget("x", replicaz=1, free={"any": 1})
        refused(server, "an unknown field, strictly", bad,
                'Gadget in version "v1" cannot be handled as a Gadget: strict decoding error: '
                'unknown field "spec.replicaz"', place=f"{PLACE}?fieldValidation=Strict", code=400)
        expect(server, "kubectl is strict", ["create", "-f", "-"], stdin=bad, status=1,
               stderr='unknown field "spec.replicaz"')
        status, pruned, warnings = server.send("POST", f"{PLACE}?fieldValidation=Warn", bad)
        tap.equal((status, pruned["spec"].get("replicaz"), pruned["spec"]["free"], warnings),
                  (201, None, {"any": 1}, ['299 - "unknown field \\"spec.replicaz\\""']),
                  "else it is dropped with a warning")
        status, pruned, warnings = server.send(
            "POST", f"{PLACE}?fieldValidation=Ignore&dryRun=All",
            {**bad, "metadata": {"name": "y"}})
        tap.equal((status, pruned["spec"].get("replicaz"), warnings), (201, None, []),
                  "or without one")

        # Watches end with the kind.
        watching = server.kubectl_begin("get", "gd", "-w", "-o", "name")
        listed = {watching.stdout.readline().strip() for _ in range(3)}
        tap.equal(listed, {f"gadget.rec.example.test/{n}" for n in ("g1", "g2", "x")},
                  "a watch sees what there is")

        # A second version.
        spec2 = {"type": "object", "properties": {
            "size": {"type": "string"}, "colour": {"type": "string", "default": "red"}}}
        GADGETS["spec"]["versions"].append(version("v2", spec2, storage=False))
        GADGETS["spec"]["versions"].append(version("v1beta1", SPEC, storage=False, deprecated=True))
        status, _, _ = server.send("PATCH", f"{CRDS}/gadgets.rec.example.test",
                                      {"spec": {"versions": GADGETS["spec"]["versions"]}},
                                      "application/merge-patch+json")
        tap.equal(status, 200, "a definition is given more versions")
        expect(server, "they are served", ["wait", "gadgets.v2.rec.example.test/g1", "--for=jsonpath="
                                           "{.spec.colour}=red", "--timeout=20s"])
        status, second, _ = server.send("GET", f"{GROUP}/v2/namespaces/default/gadgets/g1")
        tap.equal((second["apiVersion"], second["spec"]),
                  ("rec.example.test/v2", {"size": "10Gi", "colour": "red"}),
                  "an object in another version is pruned and defaulted by that")
        status, group, _ = server.send("GET", GROUP)
        tap.equal([v["version"] for v in group["versions"]], ["v2", "v1", "v1beta1"],
                  "versions are in order")
        status, _, warnings = server.send("GET", f"{GROUP}/v1beta1/namespaces/default/gadgets/g1")
        tap.equal(warnings, ['299 - "rec.example.test/v1beta1 Gadget is deprecated; '
                             'use rec.example.test/v2 Gadget"'], "a deprecated version says so")
        status, crd, _ = server.send("GET", f"{CRDS}/gadgets.rec.example.test")
        crd["spec"]["versions"] = [{**crd["spec"]["versions"][1], "storage": True}]
        refused(server, "a version in which objects are stored cannot go", crd,
                'status.storedVersions[0]: Invalid value: "v1": missing from spec.versions',
                place=f"{CRDS}/gadgets.rec.example.test", method="PUT")
        for field, value in (("scope", "Cluster"), ("names", {**crd["spec"]["names"], "kind": "X"})):
            status, crd, _ = server.send("GET", f"{CRDS}/gadgets.rec.example.test")
            crd["spec"][field] = value
            refused(server, f"{field} stays as it is", crd, "field is immutable",
                    place=f"{CRDS}/gadgets.rec.example.test", method="PUT")
        server.kill()
        watching.kill()
        watching.wait()

    with Server(program, data) as server:
        status, g1, _ = server.send("GET", f"{PLACE}/g1")
        tap.equal((status, g1["spec"]["replicas"]), (200, 3), "all is there after a crash")

        # Our own.
        expect(server, "our own definitions can be applied",
               ["apply", "--server-side=false", "-f", f"{top}/deploy/crds"], stdout="created")
        expect(server, "all are established", ["wait", "crd", "--all", "--for=condition=established",
                                               "--timeout=20s"])
        expect(server, "the tables go on serving", ["create", "-f", "-"], status=1,
               stderr="unknown field",
               stdin={"apiVersion": "openebs.io/v1alpha1", "kind": "JivaVolume",
                      "metadata": {"name": "j"}, "spec": {"capacity": "5Gi", "colour": "red"}})
        expect(server, "an object of a table", ["create", "-f", "-"], stdin={
            "apiVersion": "openebs.io/v1alpha1", "kind": "JivaVolume", "metadata": {"name": "j"},
            "spec": {"capacity": "5Gi"}})
        expect(server, "the definition of a table goes",
               ["delete", "crd", "jivavolumes.openebs.io", "--timeout=20s"], stdout="deleted")
        expect(server, "its objects stay", ["get", "jv", "j"], stdout="j")

        # Rules and conversion webhooks have a script of their own; what is no webhook is refused.
        hooked = definition("hooks", "Hook", [version("v1", SPEC)])
        hooked["spec"]["conversion"] = {"strategy": "Webhook"}
        expect(server, "a conversion webhook that is nowhere", ["create", "-f", "-"], stdin=hooked,
               status=1, stderr="required when strategy is set to Webhook")

        # Another storage version, one that is not served, a kind of the whole cluster.
        spec2 = {"type": "object", "properties": {"b": {"type": "string", "default": "new"}}}
        spec1 = {"type": "object", "properties": {"a": {"type": "string"}}}
        things = definition("things", "Thing", [version("v1", spec1)], scope="Cluster",
                            group="other.test")
        expect(server, "a kind of the whole cluster", ["create", "-f", "-"], stdin=things)
        established(server, "things.other.test")
        expect(server, "an object of it", ["create", "-f", "-"], stdin={
            "apiVersion": "other.test/v1", "kind": "Thing", "metadata": {"name": "t"},
            "spec": {"a": "x"}, "status": {"seen": 1}})
        things["spec"]["versions"] = [version("v2", spec2), version("v1", spec1, storage=False),
                                      {**version("v0", spec1, storage=False), "served": False}]
        expect(server, "a new version to store", ["apply", "-f", "-"], stdin=things,
               stdout="configured")
        expect(server, "both are recorded", ["wait", "crd/things.other.test", "--for=jsonpath="
                                             "{.status.storedVersions[1]}=v2", "--timeout=20s"])
        expect(server, "what was stored before is shown in it", [
            "wait", "things.v2.other.test/t", "--for=jsonpath={.spec.b}=new", "--timeout=20s"])
        status, _, _ = server.send("GET", "/apis/other.test/v0/things")
        tap.equal(status, 404, "a version that is not served is not there")
        status, thing, _ = server.send("PATCH", "/apis/other.test/v1/things/t",
                                          {"status": {"seen": 2}}, "application/merge-patch+json")
        tap.equal((thing["spec"], thing["metadata"]["generation"]), ({"a": "x"}, 2),
                  "without /status it is like any other field")

        # Names that are taken.
        other = definition("widgets", "Gadget", [version("v1", SPEC)])
        status, _, _ = server.send("POST", CRDS, other)
        expect(server, "a kind that is taken", [
            "wait", "crd/widgets.rec.example.test", "--for=condition=NamesAccepted=False",
            "--timeout=20s"])
        status, crd, _ = server.send("GET", f"{CRDS}/widgets.rec.example.test")
        tap.equal([(c["status"], c["reason"], c["message"]) for c in crd["status"]["conditions"]],
                  [("False", "ListKindConflict", '"GadgetList" is already in use'),
                   ("False", "NotAccepted", "not all names are accepted")], "is said to be")
        status, _, _ = server.send("GET", f"{GROUP}/v1/widgets")
        tap.equal(status, 404, "is not served")

        # The end.
        held = gadget("held")
        held["metadata"]["finalizers"] = ["example.test/hold"]
        expect(server, "an object with a finalizer", ["create", "-f", "-"], stdin=held)
        watching = server.kubectl_begin("get", "gd", "-w", "-o", "name", stderr=subprocess.DEVNULL)
        watching.stdout.readline()
        expect(server, "delete the definition", ["delete", "crd", "gadgets.rec.example.test",
                                                 "--wait=false"], stdout="deleted")
        expect(server, "it says that it ends", ["wait", "crd/gadgets.rec.example.test",
                                                "--for=condition=Terminating", "--timeout=20s"])
        expect(server, "objects without finalizers go", ["wait", "gd/g1", "--for=delete",
                                                         "--timeout=20s"])
        refused(server, "nothing can be created", gadget("late"), "does not allow this method",
                code=405)
        status, left, _ = server.send("GET", PLACE)
        tap.equal([g["metadata"]["name"] for g in left["items"]], ["held"], "the held one is there")
        expect(server, "let it go", ["patch", "gd", "held", "--type=merge", "-p",
                                     '{"metadata":{"finalizers":null}}'])
        expect(server, "the definition is gone", ["wait", "crd/gadgets.rec.example.test",
                                                  "--for=delete", "--timeout=20s"])
        expect(server, "the name it held is free", [
            "wait", "crd/widgets.rec.example.test", "--for=condition=established", "--timeout=20s"])
        status, _, _ = server.send("GET", PLACE)
        tap.equal(status, 404, "the kind is not served any more")
        try:
            tap.ok(watching.wait(timeout=20) is not None, "its watch has ended")
        except subprocess.TimeoutExpired:
            watching.kill()
            tap.ok(False, "its watch has ended")
        expect(server, "define it again", ["create", "-f", "-"], stdin=definition(
            "gadgets", "Thing", [version("v1", SPEC)]))
        established(server, "gadgets.rec.example.test")
        status, left, _ = server.send("GET", PLACE)
        tap.equal(left["items"], [], "nothing of before has come back")
    tap.equal(server.status, 0, "it stops when told")
tap.done()
