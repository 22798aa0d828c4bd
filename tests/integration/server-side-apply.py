#!/usr/bin/env python3
"""Server-side apply and managedFields, as kubectl and other clients see them.

server-side-apply.py APISERVER TOP ORLOP

Where an answer of Kubernetes' own server is known, ours must be the same but for names and times.
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from pool_objects import provide  # noqa: E402
from server import Server  # noqa: E402
from tap import Scratch, Tap  # noqa: E402

program, top, orlop = sys.argv[1:4]
tap = Tap()
VOLUMES = "/apis/cstor.openebs.io/v1/namespaces/default/cstorvolumes"


class Volumes(Server):
    """A server, and short ways to the objects of these tests."""

    def send(self, method, path, body=None, content_type="application/json", agent="test/1.0"):
        """The status and body of an answer."""
        return super().send(method, path, body, content_type, headers={"User-Agent": agent})[:2]

    def apply(self, name, body, query):
        return self.send("PATCH", f"{VOLUMES}/{name}?{query}", body, "application/apply-patch+yaml")


def volume(name, labels=None, **spec):
    metadata = {"name": name, "namespace": "default"}
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": "cstor.openebs.io/v1", "kind": "CStorVolume", "metadata": metadata,
            "spec": {"capacity": "10Gi", "replicationFactor": 1, **spec}}


def owners(answer):
    """managedFields without their times, which must be there."""
    entries = answer["metadata"].get("managedFields", [])
    return [{k: v for k, v in entry.items() if k != "time"} for entry in entries
            if entry.get("time")]


def entry(manager, operation, fields, subresource=None, version="cstor.openebs.io/v1"):
    made = {"apiVersion": version, "fieldsType": "FieldsV1", "fieldsV1": fields,
            "manager": manager, "operation": operation}
    return {**made, "subresource": subresource} if subresource else made


with Scratch() as scratch, Volumes(program, scratch.file("data")) as server:
    kubectl = server.kubectl

    kubectl("create", "namespace", "openebs")

    def expect(name, argv, status=0, stdout=None, stderr=None, stdin=None):
        return tap.ran(kubectl(*argv, stdin=stdin), name, status, stdout, stderr)

    def get(resource, name):
        result = kubectl("get", resource, name, "-o", "json", "--show-managed-fields")
        return json.loads(result.stdout) if result.returncode == 0 else {"metadata": {}}

    ssa = ["apply", "--server-side", "-f", "-"]
    labels = {"f:labels": {"f:app": {}}}

    # The same requests as were recorded of Kubernetes' own server.
    status, made = server.apply("g1", volume("g1", {"app": "demo"}),
                                "fieldManager=kubectl&fieldValidation=Strict&force=false")
    tap.equal(status, 201, "an apply creates")
    fields = {"f:metadata": labels, "f:spec": {"f:capacity": {}, "f:replicationFactor": {}}}
    tap.equal(owners(made), [entry("kubectl", "Apply", fields)], "what it says is the applier's")
    tap.equal(made["spec"]["consistencyFactor"], 1, "what it does not say is filled in")
    status, changed = server.apply("g1", volume("g1", {"app": "demo"}, capacity="15Gi"),
                                   "fieldManager=kubectl&fieldValidation=Strict&force=false")
    tap.equal((status, changed["spec"]["capacity"], changed["metadata"]["generation"]),
              (200, "15Gi", 2), "an apply changes")
    tap.equal(owners(changed), owners(made), "it owns the same")
    config = volume("g1", {"app": "demo"}, capacity="20Gi")
    answer = server.apply("g1", config, "fieldManager=other&fieldValidation=Strict&force=false")
    tap.equal(answer, (409, {
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": 'Apply failed with 1 conflict: conflict with "kubectl": .spec.capacity',
        "reason": "Conflict", "details": {"causes": [{
            "reason": "FieldManagerConflict", "message": 'conflict with "kubectl"',
            "field": ".spec.capacity"}]}, "code": 409}), "a conflict is told as the original does")
    status, forced = server.apply("g1", config,
                                  "fieldManager=other&fieldValidation=Strict&force=true")
    tap.equal((status, owners(forced)), (200, [
        entry("kubectl", "Apply", {"f:metadata": labels, "f:spec": {"f:replicationFactor": {}}}),
        entry("other", "Apply", fields)]), "force takes over")

    # kubectl
    expect("kubectl applies", ssa, stdout="g2 serverside-applied", stdin=volume("g2", {"app": "a"}))
    expect("kubectl patches", ["patch", "cv", "g2", "--type=merge", "-p",
                               '{"spec":{"capacity":"12Gi"},"metadata":{"labels":{"app":"b"}}}'])
    expect("kubectl is told of two conflicts", ssa, status=1, stderr=(
        'error: Apply failed with 2 conflicts: conflicts with "kubectl-patch" using '
        'cstor.openebs.io/v1:\n- .metadata.labels.app\n- .spec.capacity\nPlease review the fields '
        'above'), stdin=volume("g2", {"app": "a"}, capacity="13Gi"))
    before = get("cv", "g2")
    expect("a dry run", [*ssa, "--force-conflicts", "--dry-run=server"],
           stdout="serverside-applied (server dry run)",
           stdin=volume("g2", {"app": "a"}, capacity="13Gi"))
    tap.equal(get("cv", "g2"), before, "a dry run changes nothing")
    expect("diff", ["diff", "--server-side", "--force-conflicts", "-f", "-"], status=1,
           stdout="+  capacity: 13Gi", stdin=volume("g2", {"app": "a"}, capacity="13Gi"))
    expect("kubectl takes over", [*ssa, "--force-conflicts"], stdout="serverside-applied",
           stdin=volume("g2", {"app": "a"}, capacity="13Gi"))
    after = get("cv", "g2")
    tap.equal([e["manager"] for e in owners(after)], ["kubectl"], "whoever has nothing left is gone")
    expect("the same again", ssa, stdin=volume("g2", {"app": "a"}, capacity="13Gi"))
    tap.equal(get("cv", "g2"), after, "the same again writes nothing")
    expect("without the label", ssa, stdin=volume("g2", capacity="13Gi"))
    tap.ok("labels" not in get("cv", "g2")["metadata"], "what is no longer applied is removed")
    expect("label", ["label", "cv", "g2", "x=y"])
    expect("status", ["patch", "cv", "g2", "--subresource=status", "--type=merge", "-p",
                      '{"status":{"phase":"Healthy"}}'])
    tap.equal(owners(get("cv", "g2"))[1:], [
        entry("kubectl-label", "Update", {"f:metadata": {"f:labels": {".": {}, "f:x": {}}}}),
        entry("kubectl-patch", "Update", {"f:status": {".": {}, "f:phase": {}}}, "status")],
        "commands own what they change, by subresource")
    result = expect("get hides managedFields", ["get", "cv", "g2", "-o", "yaml"])
    tap.ok("managedFields" not in result.stdout, "they are hidden")

    # From client-side apply, with the fields of Kubernetes' own kinds.
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {
        "replicas": 1, "selector": {"matchLabels": {"app": "d"}}, "template": {
            "metadata": {"labels": {"app": "d"}},
            "spec": {"containers": [{"name": "x", "image": "img:1",
                                     "ports": [{"containerPort": 80}]}]}}}}
    expect("client-side apply", ["apply", "-f", "-"], stdout="created", stdin=deployment)
    made = owners(get("deploy", "d"))
    tap.equal([e["manager"] for e in made], ["kubectl-client-side-apply"], "it owns everything")
    spec = made[0]["fieldsV1"]["f:spec"]
    tap.equal((spec["f:selector"], "." in spec, spec["f:strategy"]["f:rollingUpdate"],
               spec["f:template"]["f:metadata"]),
              ({}, False, {".": {}, "f:maxSurge": {}, "f:maxUnavailable": {}},
               {"f:labels": {".": {}, "f:app": {}}}), "its fields are those of the original")
    port = 'k:{"containerPort":80,"protocol":"TCP"}'
    tap.ok(port in spec["f:template"]["f:spec"]["f:containers"]['k:{"name":"x"}']["f:ports"],
           "ports are told apart by number and protocol")
    deployment["spec"]["template"]["spec"]["containers"][0]["image"] = "img:2"
    expect("server-side apply after it", ssa, stdout="serverside-applied", stdin=deployment)
    tap.equal([(e["manager"], e["operation"]) for e in owners(get("deploy", "d"))],
              [("kubectl", "Apply"), ("kubectl-last-applied", "Apply")], "kubectl has moved to it")
    del deployment["spec"]["template"]["spec"]["containers"][0]["ports"]
    expect("and without the ports", ssa, stdin=deployment)
    tap.ok("ports" not in get("deploy", "d")["spec"]["template"]["spec"]["containers"][0],
           "what client-side apply set can be removed")
    expect("scale", ["patch", "deploy", "d", "-p", '{"spec":{"replicas":3}}'])
    del deployment["spec"]["replicas"]
    expect("replicas left to others", ssa, stdin=deployment)
    tap.equal(get("deploy", "d")["spec"]["replicas"], 3, "they stay as the others have them")

    # Our kinds in the words of both forms.
    for example in ("mirror-two-nodes", "all-roles"):
        manifest = f"{top}/examples/cspc/{example}.yaml"
        provide(server, orlop, manifest)
        expect(f"{example} is applied", ["apply", "--server-side", "-f", manifest],
               stdout="serverside-applied")
        seen = kubectl("get", "-f", manifest, "-o", "json", "--show-managed-fields").stdout
        expect(f"{example} is applied again", ["apply", "--server-side", "-f", manifest],
               stdout="serverside-applied")
        tap.equal(kubectl("get", "-f", manifest, "-o", "json", "--show-managed-fields").stdout,
                  seen, f"{example} is the same")

    # What is refused, and in which words.
    for name, query, body, code, words in (
            ("no manager", "force=true", volume("g3"), 422,
             'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for '
             'apply patch'),
            ("a long manager", "fieldManager=" + 129 * "m", volume("g3"), 422,
             "may not be more than 128 bytes"),
            ("an unprintable manager", "fieldManager=a%07b", volume("g3"), 422,
             "should only contain printable characters"),
            ("managedFields", "fieldManager=m",
             {**volume("g3"), "metadata": {"name": "g3", "managedFields": [{}]}}, 400,
             "metadata.managedFields must be nil"),
            ("two documents", "fieldManager=m", "a: 1\n---\nb: 2\n", 400, "more than one document"),
            ("no document", "fieldManager=m", "# nothing\n", 400, "error decoding YAML"),
            ("no YAML", "fieldManager=m", "a: [\n", 400, "error decoding YAML"),
            ("a list", "fieldManager=m", "- a\n", 400, "must be an object"),
            ("another kind", "fieldManager=m", "kind: Pod\napiVersion: v1\n", 400, "is a Pod"),
            ("another name", "fieldManager=m", volume("g4"), 400, "does not match the name"),
            ("an unknown field", "fieldManager=m&fieldValidation=Strict",
             volume("g3", colour="red"), 400, 'unknown field "spec.colour"'),
            ("a wrong value", "fieldManager=m", volume("g3", replicationFactor=0), 422,
             "spec.replicationFactor")):
        status, answer = server.apply("g3", body, query)
        tap.equal((status, words in answer.get("message", "")), (code, True),
                  f"{name}: {answer.get('message')}")
    status, answer = server.send("PATCH", f"{VOLUMES}/g1?force=true", {},
                                 "application/merge-patch+json")
    tap.equal((status, answer["message"]), (422, 'PatchOptions.meta.k8s.io "" is invalid: force: '
              'Forbidden: may not be specified for non-apply patch'), "force is for applying")

    # Other clients.
    status, made = server.apply("g5", "apiVersion: cstor.openebs.io/v1\nkind: CStorVolume\n"
                                "metadata: {name: g5}\nspec:\n  capacity: 1Gi\n"
                                "  replicationFactor: 1\n", "fieldManager=yaml")
    tap.equal((status, [e["manager"] for e in owners(made)]), (201, ["yaml"]), "YAML is read")
    status, made = server.send("POST", VOLUMES, volume("g6"), agent="curl/8.1 (x) y/z")
    tap.equal([e["manager"] for e in owners(made)], ["curl"], "a client without a name has its own")
    status, answer = server.send("PUT", f"{VOLUMES}/g6", {**made, "metadata": {
        **made["metadata"], "managedFields": [{}]}})
    tap.equal((status, owners(answer)), (200, []), "[{}] clears the list")
    status, answer = server.send("PUT", f"{VOLUMES}/g5", volume("g5", capacity="2Gi"))
    tap.equal([e["manager"] for e in owners(answer)], ["yaml", "test"], "no list keeps it")
    answer = server.apply("g5", {**volume("g5"), "metadata": {
        "name": "g5", "resourceVersion": "1"}}, "fieldManager=yaml&force=true")
    tap.equal((answer[0], "the object has been modified" in answer[1]["message"]), (409, True),
              "a revision that is named must be there")
tap.done()
