#!/usr/bin/env python3
"""Access to the API server: reviews, roles, the audit log, and what lies on the disk.

access.py APISERVER
"""
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from server import Server  # noqa: E402
from tap import Scratch, Tap, run  # noqa: E402

program = sys.argv[1]
tap = Tap()
PROTOBUF = "application/vnd.kubernetes.protobuf"


def varint(n):
    out = b""
    while n >= 128:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def envelope(version, kind, message):
    return (b"k8s\0" + field(1, field(1, version) + field(2, kind)) + field(2, message)
            + field(3, "") + field(4, ""))


def contains(folder, text):
    """The files of a folder that have the text in them."""
    found = []
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            with open(path, "rb") as f:
                if text.encode() in f.read():
                    found.append(name)
    return found


with Scratch() as scratch:
    data = scratch.file("data")

    def expect(server, name, argv, status=0, stdout=None, stderr=None, **options):
        return tap.ran(server.kubectl(*argv, **options), name, status, stdout, stderr)

    with Server(program, data) as server:
        expect(server, "can-i", ["auth", "can-i", "list", "pods"], stdout="yes")
        expect(server, "can-i on a subresource", ["auth", "can-i", "get", "pods", "--subresource=log"],
               stdout="yes")
        expect(server, "can-i on a path", ["auth", "can-i", "get", "/metrics"], stdout="yes")
        expect(server, "can-i --list", ["auth", "can-i", "--list"], stdout="*.*")
        expect(server, "the default roles", ["get", "clusterrole", "view", "-o", "yaml"],
               stdout="cstorpoolclusters")
        expect(server, "and bindings", ["get", "clusterrolebinding", "cluster-admin", "-o", "yaml"],
               stdout="system:masters")
        expect(server, "create role", ["create", "role", "reader", "--verb=get,list",
                                       "--resource=pods,configmaps"], stdout="created")
        expect(server, "create rolebinding", ["create", "rolebinding", "readers", "--role=reader",
                                              "--user=jane", "--serviceaccount=default:robot"],
               stdout="created")
        expect(server, "create clusterrole that is filled", [
            "create", "clusterrole", "all", "--aggregation-rule=team=a"], stdout="created")
        expect(server, "create one that fills it", ["create", "-f", "-"], stdin={
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
             "metadata": {"name": "part", "labels": {"team": "a"}},
             "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]})
        expect(server, "it is filled", ["wait", "clusterrole/all", "--timeout=20s",
                                        "--for=jsonpath={.rules[0].resources[0]}=nodes"])
        expect(server, "create serviceaccount", ["create", "serviceaccount", "robot"], stdout="created")
        expect(server, "create namespace", ["create", "namespace", "team"], stdout="created")
        expect(server, "create secret", ["create", "secret", "generic", "hidden",
                                         "--from-literal=password=hunter-of-plain-text"])
        expect(server, "patch secret", ["patch", "secret", "hidden", "-p",
                                        '{"stringData":{"other":"second-plain-text"}}'])
        secret = server.get("/api/v1/namespaces/default/secrets/hidden")[1]
        tap.equal((secret["data"], "stringData" in secret), (
            {"password": "aHVudGVyLW9mLXBsYWluLXRleHQ=", "other": "c2Vjb25kLXBsYWluLXRleHQ="}, False),
                  "text in a Secret is kept with the rest of its data")
        expect(server, "delete a secret", ["delete", "secret", "hidden"], stdout="deleted")
        expect(server, "create another", ["create", "secret", "generic", "kept",
                                          "--from-literal=password=hunter-of-plain-text"])

        def review(kind, spec, namespace=None):
            path = "/apis/authorization.k8s.io/v1/"
            path += f"namespaces/{namespace}/" if namespace else ""
            body = {"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec}
            return server.ask("POST", path + kind.lower() + "s", body)

        pods = {"namespace": "default", "verb": "list", "resource": "pods"}
        for name, kind, spec, expected in (
                ("a user that is bound", "SubjectAccessReview",
                 {"user": "jane", "resourceAttributes": pods}, True),
                ("another user", "SubjectAccessReview",
                 {"user": "john", "resourceAttributes": pods}, False),
                ("another verb", "SubjectAccessReview",
                 {"user": "jane", "resourceAttributes": {**pods, "verb": "delete"}}, False),
                ("another namespace", "SubjectAccessReview",
                 {"user": "jane", "resourceAttributes": {**pods, "namespace": "team"}}, False),
                ("a service account", "SubjectAccessReview",
                 {"user": "system:serviceaccount:default:robot", "resourceAttributes": pods}, True),
                ("a group", "SubjectAccessReview",
                 {"groups": ["system:masters"], "resourceAttributes": pods}, True),
                ("strangers see health", "SubjectAccessReview",
                 {"user": "system:anonymous", "groups": ["system:unauthenticated"],
                  "nonResourceAttributes": {"path": "/healthz", "verb": "get"}}, True),
                ("strangers do not see the API", "SubjectAccessReview",
                 {"user": "system:anonymous", "groups": ["system:unauthenticated"],
                  "nonResourceAttributes": {"path": "/apis", "verb": "get"}}, False)):
            code, answer = review(kind, spec)
            tap.equal((code, answer.get("status", {}).get("allowed")), (201, expected), name)
        code, answer = review("SubjectAccessReview", {"user": "jane", "resourceAttributes": pods})
        tap.equal(answer["status"].get("reason"),
                  'RBAC: allowed by RoleBinding "readers/default" of Role "reader" to User "jane"',
                  "it says why")
        code, answer = review("LocalSubjectAccessReview",
                              {"user": "jane", "resourceAttributes": {"verb": "list", "resource": "pods"}},
                              "default")
        tap.equal((code, answer["status"]["allowed"]), (201, True), "a local review")
        code, answer = review("LocalSubjectAccessReview", {"user": "jane", "resourceAttributes": pods},
                              "team")
        tap.equal(code, 422, "a local review of another namespace")
        code, answer = review("SubjectAccessReview", {"resourceAttributes": pods})
        tap.equal(code, 422, "a review of nobody")
        code, answer = review("SelfSubjectAccessReview", {})
        tap.equal(code, 422, "a review of nothing")
        code, answer = review("SelfSubjectRulesReview", {"namespace": "default"})
        tap.ok(code == 201 and answer["status"]["resourceRules"] and not answer["status"]["incomplete"],
               "a review of the rules", answer)
        tap.equal(server.get("/apis/authorization.k8s.io/v1/subjectaccessreviews")[0], 405,
                  "reviews are not kept")

        question = envelope("authorization.k8s.io/v1", "SelfSubjectAccessReview", field(
            2, field(1, field(1, "default") + field(2, "list") + field(5, "pods"))))
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        reply = server.request("POST", path, question, content_type=PROTOBUF,
                               headers={"Accept": PROTOBUF + ",application/json"})
        tap.equal((reply.status, reply.headers["Content-Type"], reply.json["status"]),
                  (201, "application/json", {"allowed": True}), "a question in protobuf")
        reply = server.request("POST", path, question, content_type=PROTOBUF,
                               headers={"Accept": PROTOBUF})
        tap.ok(reply.status == 201 and reply.headers["Content-Type"] == PROTOBUF
               and reply.body.startswith(b"k8s\0") and b"\x1a\x02\x08\x01" in reply.body,
               "and the answer, for who takes nothing else", reply.body)
        code, answer = server.ask("POST", path, question[:-20], PROTOBUF)
        tap.equal((code, answer["reason"]), (400, "BadRequest"), "a question that is cut off")
        code, answer = server.ask(
            "POST", "/apis/snapshot.storage.k8s.io/v1/namespaces/default/volumesnapshots",
            envelope("snapshot.storage.k8s.io/v1", "VolumeSnapshot", b""), PROTOBUF)
        tap.equal((code, answer["reason"]), (415, "UnsupportedMediaType"),
                  "a kind that cannot be had in protobuf")
        lease = envelope("coordination.k8s.io/v1", "Lease", field(1, field(1, "leader")) + field(
            2, field(1, "me") + varint(2 << 3) + varint(15)))
        code, answer = server.ask("POST", "/apis/coordination.k8s.io/v1/namespaces/default/leases",
                                  lease, PROTOBUF)
        tap.equal((code, answer.get("spec")),
                  (201, {"holderIdentity": "me", "leaseDurationSeconds": 15}), "a lease in protobuf")
        reply = server.request("GET", "/version")
        tap.ok(len(reply.headers.get("Audit-Id", "")) == 36, "answers have an Audit-Id", reply.headers)
        reply = server.request("GET", "/version", headers={"Audit-ID": "mine-1"})
        tap.equal(reply.headers.get("Audit-Id"), "mine-1", "the client's own, if it has one")
    tap.equal(server.status, 0, "it stops when told")

    tap.equal(contains(data, "hunter-of-plain-text") + contains(data, "second-plain-text")
              + contains(data, "aHVudGVyLW9mLXBsYWluLXRleHQ"), [], "no Secret is on the disk")
    tap.equal(os.stat(f"{data}/encryption.key").st_mode & 0o777, 0o600, "the key is ours alone")
    with open(f"{data}/audit.log", encoding="utf-8") as f:
        events = [json.loads(line) for line in f]
    created = [e for e in events if e["verb"] == "create"
               and e.get("objectRef", {}).get("resource") == "secrets"]
    tap.equal([(e["objectRef"]["name"], e["responseStatus"]["code"], e["stage"], e["user"]["username"])
               for e in created],
              [("hidden", 201, "ResponseComplete", "kubernetes-admin"),
               ("kept", 201, "ResponseComplete", "kubernetes-admin")], "writes are in the audit log")
    tap.equal([e["verb"] for e in events if e["verb"] in ("get", "list", "watch")], [],
              "reads are not")
    tap.equal(len({e["auditID"] for e in events}), len(events), "each has an identity of its own")

    with Server(program, data, "--audit-level", "all", "--audit-log-path",
                scratch.file("other.log")) as server:
        result = expect(server, "Secrets come back after a restart", [
            "get", "secret", "kept", "-o", "jsonpath={.data.password}"])
        tap.equal(result.stdout, "aHVudGVyLW9mLXBsYWluLXRleHQ=", "as they were")
        server.get("/healthz?token=abc")
        server.get("/nowhere")
    with open(scratch.file("other.log"), encoding="utf-8") as f:
        uris = [json.loads(line)["requestURI"] for line in f]
    tap.ok("/healthz?token=[redacted]" in uris and "/nowhere" in uris,
           "everything is in it at level all", uris)
    result = run(program, "--data-dir", data, "--audit-level", "some")
    tap.equal(result.returncode, 2, "a level that there is not")

    os.rename(f"{data}/encryption.key", f"{data}/away")
    result = run(program, "--data-dir", data, "--port", "0", timeout=30)
    tap.ok(result.returncode == 1 and "not in the key file" in result.stderr
           and not os.path.exists(f"{data}/encryption.key"), "without its key it does not start",
           result.stderr)
    with open(f"{data}/away", encoding="utf-8") as f:
        old = f.read()
    with open(f"{data}/encryption.key", "w", encoding="utf-8") as f:
        os.fchmod(f.fileno(), 0o600)
        f.write("0123456789abcdef" * 4 + "\n" + old)
    with Server(program, data) as server:
        expect(server, "with a new key before the old one", ["get", "secret", "kept"])
    with open(f"{data}/encryption.key", "w", encoding="utf-8") as f:
        f.write("0123456789abcdef" * 4 + "\n")
    started = time.monotonic()
    with Server(program, data) as server:
        tap.ok(time.monotonic() - started < 10, "it starts in a moment")
        expect(server, "and then without the old one", ["get", "secret", "kept"])
        revision = server.kubectl("get", "clusterroles", "-o", "jsonpath={.metadata.resourceVersion}")
    with Server(program, data) as server:
        again = server.kubectl("get", "clusterroles", "-o", "jsonpath={.metadata.resourceVersion}")
        tap.equal(again.stdout, revision.stdout, "a start writes nothing when nothing is missing")
tap.done()
