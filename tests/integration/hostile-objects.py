#!/usr/bin/env python3
"""Objects that somebody wrote to do harm: names that would become paths or options, more labels than anybody needs,
schemas and rules that cost too much, webhooks and logs that would reach elsewhere. Each is refused, says why, and
leaves the API server as it was.

hostile-objects.py APISERVER
"""
import base64
import http.server
import os
import ssl
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from server import Server  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402

program = sys.argv[1]
tap = Tap()
API = "/apis/openebs.io/v1alpha1/namespaces/default"
CORE = "/api/v1/namespaces/default"
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
MERGE = "application/merge-patch+json"


def refused(result, name, text, code=422):
    tap.ok(result[0] == code and text in str(result[1].get("message")), name, result)


def volume(name, **annotations):
    return {"apiVersion": "openebs.io/v1alpha1", "kind": "JivaVolume",
            "metadata": {"name": name, "annotations": annotations}, "spec": {"capacity": "1Gi"}}


def identities(server):
    """What becomes a folder of a node, or an argument of a program."""
    key, nodes = "jiva.openebs.io/volume-id", "jiva.openebs.io/nodes"
    for value in ("x/../..", "--force", "..", "a/b", "a b", "a..b", "a\nb", "x" * 64, "-"):
        refused(server.ask("POST", f"{API}/jivavolumes", volume("v", **{key: value})), f"the identity {value!r:.20}",
                f"metadata.annotations[{key}]: Invalid value")
    for value in ("n1,../../etc", "/", "n1,-rf", "n1,N2"):
        for annotation in (nodes, "jiva.openebs.io/stale-nodes"):
            refused(server.ask("POST", f"{API}/jivavolumes", volume("v", **{annotation: value})),
                    f"the nodes {value!r} in {annotation}", f"metadata.annotations[{annotation}]: Invalid value")
    server.create(f"{API}/jivavolumes", volume("v", **{key: "0b5a7c1e-1", nodes: "n1,n2.example.com"}))
    refused(server.ask("PATCH", f"{API}/jivavolumes/v", {"metadata": {"annotations": {key: "other"}}}, MERGE),
            "an identity stays", f"metadata.annotations[{key}]: Invalid value: \"other\": field is immutable")
    refused(server.ask("PATCH", f"{API}/jivavolumes/v", {"metadata": {"annotations": {key: None}}}, MERGE),
            "and is not taken away", "field is immutable")
    pool = {"apiVersion": "openebs.io/v1alpha1", "kind": "CStorPoolInstance", "metadata": {
        "name": "p", "annotations": {"import.cspi.cstor.openebs.io/existing-pool-name": "tank/../x"}},
        "spec": {"hostName": "n1", "nodeSelector": {"a": "b"}, "poolConfig": {"defaultRaidGroupType": "stripe"},
                 "raidGroups": [{"type": "stripe", "blockDevices": [{"blockDeviceName": "x"}]}]}}
    refused(server.ask("POST", f"{API}/cstorpoolinstances", pool), "the name of a pool to import",
            "must be the name of a ZFS pool")


def sizes(server):
    def config(**metadata):
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", **metadata}}

    for what, metadata, text in (
            ("50,000 labels", {"labels": {f"l{i}": "" for i in range(50000)}}, "metadata.labels: Too many"),
            ("20,000 finalizers", {"finalizers": [f"a.b/f{i}" for i in range(20000)]}, "metadata.finalizers: Too many"),
            ("2,000 owners", {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": str(i)}
                                                  for i in range(2000)]}, "metadata.ownerReferences: Too many"),
            ("annotations of 300 KB", {"annotations": {"a": "x" * 300_000}}, "metadata.annotations: Too long"),
            ("a label that is too long", {"labels": {"a": "x" * 64}}, "metadata.labels"),
            ("a finalizer that is no name", {"finalizers": ["a.b/../c"]}, "metadata.finalizers[0]")):
        refused(server.ask("POST", f"{CORE}/configmaps", config(**metadata)), what, text)
    tap.equal(server.ask("POST", f"{CORE}/configmaps", config(
        labels={f"l{i}": "" for i in range(1000)}, finalizers=[f"a.b/f{i}" for i in range(100)]))[0], 201,
        "a thousand labels and a hundred finalizers are fine")
    server.ask("DELETE", f"{CORE}/configmaps/c")
    tap.equal(server.ask("PATCH", f"{CORE}/configmaps/c", {"metadata": {"finalizers": None}}, MERGE)[0], 200,
              "and go away")


def certificates(server, scratch):
    """A node's name is one of DNS: others make paths of it."""
    token = "abcdef.0123456789abcdef"
    server.create("/api/v1/namespaces/kube-system/secrets", {
        "metadata": {"name": "bootstrap-token-abcdef"}, "type": "bootstrap.kubernetes.io/token", "stringData": {
            "token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true"}})
    names = ("a-b", "a%2Fb", "../../x", "a/b", "A", "-rf")
    pem = ""
    for i, name in enumerate(names):
        key = scratch.file(f"{i}.key")
        run("openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", key)
        subject = "/O=system:nodes/CN=system:node:" + name.replace("/", "\\/")
        pem = run("openssl", "req", "-new", "-key", key, "-subj", subject).stdout
        status, reply = server.ask("POST", CSRS, {
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
            "metadata": {"name": f"csr-{i}"}, "spec": {
                "request": base64.b64encode(pem.encode()).decode(), "usages": ["client auth", "digital signature"],
                "signerName": "kubernetes.io/kube-apiserver-client-kubelet"}}, token=token)
        tap.equal(status, 201, f"a request for {name}: {reply.get('message')}")
    refused(server.ask("POST", CSRS, {"metadata": {"name": "a/b"}, "spec": {
        "request": base64.b64encode(pem.encode()).decode(), "usages": ["client auth"],
        "signerName": "kubernetes.io/kube-apiserver-client"}}), "a request whose name has a slash", "metadata.name")
    server.kubectl("certificate", "approve", "csr-1", "csr-2")

    def conditions(i):
        return [c["type"] for c in server.get(f"{CSRS}/csr-{i}")[1].get("status", {}).get("conditions", [])]

    tap.ok(wait_for(lambda: "Approved" in conditions(0)), "a sound name is approved")
    tap.equal([conditions(i) for i in (3, 4, 5)], [[]] * 3, "others wait for a person")
    tap.ok(wait_for(lambda: "Failed" in conditions(2)), "who approves one does not get a certificate",
           server.get(f"{CSRS}/csr-2"))
    tap.ok("certificate" not in server.get(f"{CSRS}/csr-2")[1]["status"], "none at all")


def definition(name, spec):
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{name}s.example.com"}, "spec": {
                "group": "example.com", "scope": "Namespaced",
                "names": {"plural": f"{name}s", "singular": name, "kind": name.capitalize()},
                "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                    "type": "object", "properties": {"spec": spec}}}}]}}


def ruled(rule, items="integer"):
    return {"type": "object", "properties": {"a": {"type": "array", "items": {"type": items},
                                                   "x-kubernetes-validations": [{"rule": rule}]}}}


def costs(server):
    """Little text that would be much work, or much memory."""
    many = {f"p{i}": {"type": "string", "default": "x" * 1000} for i in range(200)}
    for name, schema, spec, text in (
            ("pairs", ruled("self.all(x, self.all(y, x + y >= 0))"), list(range(20000)), "cost"),
            ("lists", ruled("self.map(a, self.map(b, [a, b, a, b, a, b])).size() > 0"), list(range(3000)), "cost"),
            ("texts", ruled("self.all(s, s.replace('a', s).replace('a', s).replace('a', s).size() > 0)", "string"),
             ["a" * 100], "cost"),
            ("matches", ruled("self.all(s, s.matches('^(a+)+$'))", "string"), ["a" * 40 + "!"], "too much work"),
            ("pattern", {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a|aa)+$"}}},
             "a" * 5000 + "!", "takes too long"),
            ("defaults", {"type": "object", "properties": {"a": {"type": "array", "items": {
                "type": "object", "properties": many}}}}, [{}] * 200_000,
             "the defaults of its schema would make the object too large")):
        kind = name.rstrip("s")
        server.create(DEFINITIONS, definition(kind, schema))
        where = f"/apis/example.com/v1/namespaces/default/{kind}s"
        wait_for(lambda w=where: server.get(w)[0] == 200)
        before, started = server.resident_mb(), time.monotonic()
        result = server.ask("POST", where, {"apiVersion": "example.com/v1", "kind": kind.capitalize(),
                                            "metadata": {"name": "o"}, "spec": {"a": spec}})
        took, grown = time.monotonic() - started, server.resident_mb() - before
        refused(result, f"{name} that cost too much", text)
        tap.ok(took < 30 and grown < 600, f"{name}: {took:.1f} s, {grown:.0f} MB")
    nested = {"type": "object", "properties": {"x": {"type": "string"}}}
    for _ in range(4):
        nested = {"type": "object", "properties": {"a": {"type": "array", "items": nested, "default": [{}] * 500}}}
    refused(server.ask("POST", DEFINITIONS, definition("bomb", nested)), "defaults inside of defaults",
            "with the defaults inside of it, it would be too large")


class Stranger(http.server.BaseHTTPRequestHandler):
    """A service on the loopback that a webhook's address leads to."""
    seen, log_message = [], lambda *_: None

    def do_POST(self):
        self.seen.append((self.path, dict(self.headers)))
        self.send_response(302)
        self.send_header("Location", "https://127.0.0.1/elsewhere")
        self.send_header("Content-Length", "6")
        self.end_headers()
        self.wfile.write(b"secret")


def webhooks(server, scratch):
    key, cert = scratch.file("hook.key"), scratch.file("hook.crt")
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
        "-subj", "/CN=x", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert)
    stranger = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Stranger)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    stranger.socket = context.wrap_socket(stranger.socket, server_side=True)
    threading.Thread(target=stranger.serve_forever, daemon=True).start()

    def hook(url, ca):
        with open(ca, "rb") as f:
            bundle = base64.b64encode(f.read()).decode()
        return {"metadata": {"name": "h"}, "webhooks": [{
            "name": "h.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": {"url": url, "caBundle": bundle}, "rules": [{
                "operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]}]}

    for url in ("http://127.0.0.1:1/", "https://user:word@127.0.0.1/", "https://127.0.0.1/?x=y", "file:///etc/passwd",
                "https:///x"):
        refused(server.ask("POST", HOOKS, hook(url, cert)), f"no webhook: {url}", "clientConfig.url")
    config = {"metadata": {"name": "hooked"}}
    server.create(HOOKS, hook(f"https://127.0.0.1:{stranger.server_port}/a", cert))
    status, reply = server.ask("POST", f"{CORE}/configmaps", config)
    tap.ok(status == 500 and "secret" not in reply["message"], "what a stranger says is not passed on", reply)
    tap.equal([path.split("?")[0] for path, _ in Stranger.seen], ["/a"], "nobody goes on to where he points")
    tap.equal([name for _, headers in Stranger.seen for name in headers
               if name.lower() in ("authorization", "cookie", "impersonate-user")], [], "he gets no credentials")
    server.ask("DELETE", f"{HOOKS}/h")
    # The server itself: it gives nobody the right to act as it.
    server.create(HOOKS, hook(f"{server.url}/api/v1/namespaces/default/configmaps", server.ca))
    started = time.monotonic()
    refused(server.ask("POST", f"{CORE}/configmaps", config), "the server asks itself, as nobody",
            "failed calling webhook", 500)
    tap.ok(time.monotonic() - started < 20, "and does not wait for itself")
    server.ask("DELETE", f"{HOOKS}/h")
    stranger.shutdown()
    # Who may edit a namespace does not say where its Services are.
    server.create("/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", {
        "metadata": {"name": "ed"}, "subjects": [{"kind": "User", "name": "ed", "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}})
    can = [server.kubectl("auth", "can-i", verb, what, "--as", "ed").stdout.strip() for verb, what in (
        ("create", "services"), ("get", "endpoints"), ("create", "endpoints"), ("update", "endpoints"),
        ("create", "endpointslices.discovery.k8s.io"))]
    tap.equal(can, ["yes", "yes", "no", "no", "no"], "an editor makes no endpoints")


def other_paths(server, scratch):
    """Logs, and what would reach into Pods or through nodes."""
    outside = scratch.file("outside.log", "not for you")
    pods = f"{CORE}/pods"
    spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": "n1"}
    for what, value in (("container", {**spec, "containers": [{"name": "../../outside", "image": "i"}]}),
                        ("node", {**spec, "nodeName": "../.."})):
        status, reply = server.ask("POST", pods, {"metadata": {"name": "p"}, "spec": value})
        if status == 201:
            status, reply = server.get(f"{pods}/p/log")
            server.ask("DELETE", f"{pods}/p?gracePeriodSeconds=0")
        tap.ok(status in (400, 404, 422) and "not for you" not in str(reply), f"a log by the name of a {what}", reply)
    server.create(pods, {"metadata": {"name": "p"}, "spec": spec})
    for query in ("container=../../outside", "container=c/../../../outside", "container=c%00", "container=%2e%2e"):
        status, reply = server.get(f"{pods}/p/log?{query}")
        tap.ok(status == 400 and "not for you" not in str(reply), f"a log by {query}", reply)
    folder = scratch.file("pods/n1/default/p")
    os.makedirs(folder)
    os.symlink(outside, os.path.join(folder, "c.log"))
    status, reply = server.get(f"{pods}/p/log")
    tap.ok(status != 200 and "not for you" not in str(reply), f"a log that is a link elsewhere: {reply['message']}",
           (status, reply))
    for path in (f"{pods}/p/exec?command=id", f"{pods}/p/attach", f"{pods}/p/portforward", f"{pods}/p/proxy/",
                 f"{pods}/p/ephemeralcontainers", "/api/v1/nodes/n1/proxy/", f"{CORE}/services/s/proxy/",
                 "/api/v1/nodes/n1/exec", f"{pods}/../../../../etc/passwd", f"{pods}/..%2f..%2fsecrets/log"):
        got = [server.ask(method, path)[0] for method in ("GET", "POST")]
        tap.ok(set(got) <= {400, 404, 405}, f"there is no {path}", got)


with Scratch() as scratch, Server(program, scratch.file("data"), "--log-level", "warn", "--pod-logs",
                                  scratch.file("pods") + "/{node}") as server:
    identities(server)
    sizes(server)
    certificates(server, scratch)
    costs(server)
    webhooks(server, scratch)
    other_paths(server, scratch)
    tap.equal(server.get("/readyz")[0], 200, "the server is as it was")
tap.equal(server.status, 0, "it stops when told")
tap.done()
