#!/usr/bin/env python3
"""Admission webhooks: a server that is asked before objects are written.

webhooks.py APISERVER TOP ORLOP
"""
import base64
import http.server
import json
import os
import ssl
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from pool_objects import device, provide, put  # noqa: E402
from server import Server  # noqa: E402
from tap import Scratch, Tap, run  # noqa: E402

program, top, orlop = sys.argv[1:4]
tap = Tap()


def openssl(*argv):
    result = run("openssl", *argv)
    assert result.returncode == 0, result.stderr


def make_ca(scratch, name):
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-keyout", scratch.file(f"{name}.key"), "-out", scratch.file(f"{name}.pem"), "-days", "2",
            "-subj", f"/CN={name}")
    with open(scratch.file(f"{name}.pem"), "rb") as f:
        return base64.b64encode(f.read()).decode()


def make_certificate(scratch, ca):
    extensions = scratch.file(
        "ext", "subjectAltName=IP:127.0.0.1,DNS:hook.default.svc\nextendedKeyUsage=serverAuth\n")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
            scratch.file("hook.key"), "-out", scratch.file("hook.csr"), "-subj", "/CN=hook")
    openssl("x509", "-req", "-in", scratch.file("hook.csr"), "-CA", scratch.file(f"{ca}.pem"),
            "-CAkey", scratch.file(f"{ca}.key"), "-CAcreateserial", "-out",
            scratch.file("hook.pem"), "-days", "2", "-extfile", extensions)


class Hook:
    """An https server; what it answers follows from the path. It remembers what it was asked."""

    def __init__(self, scratch):
        self.asked = []
        self.release = threading.Event()  # those who wait go on
        hook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                review = json.loads(body)
                what = self.path.split("?")[0].strip("/")
                hook.asked.append((self.path, review))
                hook.answer(self, what, review["request"])

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass  # clients that do not trust us

        self.server = Server(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(scratch.file("hook.pem"), scratch.file("hook.key"))
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True,
                                                 do_handshake_on_connect=False)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self, what):
        return f"https://127.0.0.1:{self.port}/{what}"

    def answer(self, handler, what, request):
        response = {"uid": request["uid"], "allowed": True}
        version, status, text = "admission.k8s.io/v1", 200, None
        labels = (request["object"] or {}).get("metadata", {}).get("labels", {})

        def patch(*ops):
            response.update(patchType="JSONPatch",
                            patch=base64.b64encode(json.dumps(ops).encode()).decode())

        if what == "deny":
            response.update(allowed=False, status={"code": 403, "reason": "Forbidden",
                                                   "message": "the moon is full"})
        elif what == "deny-silently":
            response.update(allowed=False)
        elif what == "deny-teapot":
            response.update(allowed=False, status={"code": 418, "message": "short and stout"})
        elif what == "label":
            patch({"op": "add", "path": "/metadata/labels", "value": {**labels, "hooked": "yes"}})
        elif what == "count":
            patch({"op": "add", "path": "/metadata/labels", "value":
                   {**labels, "count": str(int(labels.get("count", "0")) + 1)}})
        elif what == "greedy":
            patch({"op": "replace", "path": "/metadata/name", "value": "stolen"},
                  {"op": "replace", "path": "/metadata/uid", "value": "stolen"},
                  {"op": "add", "path": "/data/taken", "value": "1"})
        elif what == "published":
            patch({"op": "add", "path": "/spec/pools/0/dataRaidGroups/0/blockDevices/-", "value":
                   {"blockDeviceName": "blockdevice-hooked"}})
        elif what == "node-status":
            patch({"op": "replace", "path": "/status/phase", "value": "Terminated"},
                  {"op": "add", "path": "/spec", "value": {"unschedulable": True}})
        elif what == "break-patch":
            patch({"op": "remove", "path": "/nothing/here"})
        elif what == "invalidate":
            patch({"op": "add", "path": "/data", "value": 7})
        elif what == "junk-patch":
            response.update(patchType="JSONPatch", patch="!!!")
        elif what == "warn":
            response.update(warnings=["mind the \"gap\"", "two\nlines"])
        elif what == "wrong-uid":
            response["uid"] = "somebody-else"
        elif what == "old-version":
            version = "admission.k8s.io/v1beta1"
        elif what == "no-json":
            text = "<html>"
        elif what == "boom":
            status, text = 500, "boom"
        elif what == "redirect":
            status, text = 302, ""
        elif what == "huge":
            text = "x" * (5 << 20)
        elif what == "wait":
            self.release.wait(60)
        if text is None:
            text = json.dumps({"kind": "AdmissionReview", "apiVersion": version,
                               "response": response})
        handler.send_response(status)
        if status == 302:
            handler.send_header("Location", self.url("allow"))
        handler.send_header("Content-Length", str(len(text.encode())))
        handler.end_headers()
        try:
            handler.wfile.write(text.encode())
        except OSError:
            pass

    def stop(self):
        self.release.set()
        self.server.shutdown()
        self.server.server_close()


def config_map(name, labels=None, namespace="default"):
    return {"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": namespace, **({"labels": labels} if labels else {})},
            "data": {"a": "b"}}


maps = "/api/v1/namespaces/default/configmaps"
group = "/apis/admissionregistration.k8s.io/v1"

with Scratch() as scratch:
    ca = make_ca(scratch, "ca")
    other_ca = make_ca(scratch, "other")
    make_certificate(scratch, "ca")
    hook = Hook(scratch)
    log = scratch.file("log")
    with open(log, "w", encoding="utf-8") as f, Server(program, scratch.file("data"),
                                                      log=f) as server:
        def configure(name, mutating, *hooks):
            kind = "MutatingWebhookConfiguration" if mutating else "ValidatingWebhookConfiguration"
            return server.send("POST", f"{group}/{kind.lower()}s", {
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
                "metadata": {"name": name}, "webhooks": list(hooks)})

        def a_hook(what, **more):
            return {"name": f"{what}.example.com", "sideEffects": "None",
                    "admissionReviewVersions": ["v1"], "timeoutSeconds": 20,
                    "clientConfig": {"url": hook.url(what), "caBundle": ca},
                    "rules": [{"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"],
                               "resources": ["configmaps"]}], **more}

        class Hooks:
            """Webhooks that are there for a block."""

            def __init__(self, mutating, *hooks):
                self.mutating, self.hooks = mutating, hooks

            def __enter__(self):
                for i, one in enumerate(self.hooks):
                    status, reply, _ = configure(f"c{i}", self.mutating, one)
                    assert status == 201, reply
                hook.asked.clear()
                return self

            def __exit__(self, *_):
                kind = "mutating" if self.mutating else "validating"
                for i in range(len(self.hooks)):
                    status, reply, _ = server.send(
                        "DELETE", f"{group}/{kind}webhookconfigurations/c{i}")
                    assert status == 200, reply

        number = 0

        def create(labels=None, query="", name=None):
            global number
            number += 1
            return server.send("POST", maps + query, config_map(name or f"m{number}", labels))

        def message(reply):
            return reply.get("message", "")

        status, reply, _ = create()
        tap.equal((status, hook.asked), (201, []), "without webhooks nobody is asked")

        # What is sent.
        with Hooks(False, a_hook("allow")):
            status, stored, _ = create({"team": "a"})
            tap.equal(status, 201, "a webhook that allows")
            path, review = hook.asked[0]
            request = review["request"]
            tap.equal(path, "/allow?timeout=20s", "the request says how long there is")
            tap.equal((review["kind"], review["apiVersion"]),
                      ("AdmissionReview", "admission.k8s.io/v1"), "an AdmissionReview")
            tap.equal((request["kind"], request["resource"], request["requestKind"]),
                      ({"group": "", "version": "v1", "kind": "ConfigMap"},
                       {"group": "", "version": "v1", "resource": "configmaps"},
                       {"group": "", "version": "v1", "kind": "ConfigMap"}), "what it is about")
            tap.equal((request["name"], request["namespace"], request["operation"],
                       request["dryRun"], request["oldObject"]),
                      (f"m{number}", "default", "CREATE", False, None), "name, operation and so on")
            tap.equal(request["options"]["kind"], "CreateOptions", "the options")
            tap.ok(request["userInfo"]["username"] and "groups" in request["userInfo"], "who asks")
            tap.equal(request["object"]["metadata"]["labels"], {"team": "a"}, "the object")
            hook.asked.clear()
            server.send("PATCH", f"{maps}/m{number}", {"data": {"x": "y"}},
                        "application/merge-patch+json")
            request = hook.asked[0][1]["request"]
            tap.equal((request["operation"], request["object"]["data"], request["oldObject"]["data"]),
                      ("UPDATE", {"a": "b", "x": "y"}, {"a": "b"}), "an update has both objects")
            hook.asked.clear()
            server.send("DELETE", f"{maps}/m{number}")
            request = hook.asked[0][1]["request"]
            tap.equal((request["operation"], request["object"], request["oldObject"]["data"],
                       request["options"]["kind"]),
                      ("DELETE", None, {"a": "b", "x": "y"}, "DeleteOptions"),
                      "a deletion has the old one")
            hook.asked.clear()
            server.send("POST", "/api/v1/namespaces/default/secrets",
                        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}})
            tap.equal(hook.asked, [], "other kinds are not its business")
            server.send("GET", maps)
            tap.equal(hook.asked, [], "nor are reads")

        # Refusals.
        with Hooks(False, a_hook("deny")):
            status, reply, _ = create()
            tap.equal((status, reply["reason"], message(reply)),
                      (403, "Forbidden", 'admission webhook "deny.example.com" denied the request: '
                                         "the moon is full"), "a refusal")
            tap.equal(server.send("GET", f"{maps}/m{number}")[0], 404, "nothing was stored")
            result = server.kubectl("create", "-f", "-", stdin=config_map("k"))
            tap.ok(result.returncode == 1 and 'admission webhook "deny.example.com" denied the '
                   "request: the moon is full" in result.stderr, "as kubectl shows it", result.stderr)
            status, reply, _ = server.send("DELETE", f"{maps}/m1")
            tap.equal((status, server.send("GET", f"{maps}/m1")[0]), (403, 200),
                      "a deletion is refused as well")
            status, reply, _ = server.send("DELETE", maps)
            tap.equal((status, server.send("GET", f"{maps}/m1")[0]), (403, 200),
                      "and one of all objects")
            status, reply, _ = create(query="?dryRun=All")
            tap.equal(status, 403, "also in a dry run")
        with Hooks(False, a_hook("deny-silently")):
            status, reply, _ = create()
            tap.equal((status, message(reply)),
                      (400, 'admission webhook "deny-silently.example.com" denied the request '
                            "without explanation"), "a refusal without a word")
        with Hooks(False, a_hook("deny-teapot")):
            status, reply, _ = create()
            tap.equal((status, reply["code"], message(reply)),
                      (418, 418, 'admission webhook "deny-teapot.example.com" denied the request: '
                                 "short and stout"), "a refusal with a code of its own")
        with Hooks(False, a_hook("allow"), a_hook("deny")):
            tap.equal((create()[0], len(hook.asked)), (403, 2), "one of two refuses")

        # Failures, both policies.
        failures = [
            ("boom", "failed to call webhook: an error on the server (\"boom\") has prevented the "
                     "request from succeeding"),
            ("redirect", "failed to call webhook: the server responded with the status code 302"),
            ("no-json", "received invalid webhook response: the answer is no JSON"),
            ("wrong-uid", "received invalid webhook response: expected response.uid=\""),
            ("old-version", "received invalid webhook response: expected webhook response of "
                            "admission.k8s.io/v1, Kind=AdmissionReview, got admission.k8s.io/v1beta1"),
            ("huge", "failed to call webhook: Post \"" + hook.url("huge")),
        ]
        for what, text in failures:
            with Hooks(False, a_hook(what)):
                status, reply, _ = create()
                tap.ok(status == 500 and reply["reason"] == "InternalError" and message(reply).startswith(
                    f'Internal error occurred: failed calling webhook "{what}.example.com": {text}'),
                    f"{what}: refused", f"{status} {reply}")
            with Hooks(False, a_hook(what, failurePolicy="Ignore")):
                tap.equal((create()[0], len(hook.asked)), (201, 1), f"{what}: passed over")
        unreachable = {"clientConfig": {"url": "https://127.0.0.1:1/", "caBundle": ca}}
        with Hooks(False, a_hook("nobody", **unreachable)):
            status, reply, _ = create()
            tap.ok(status == 500 and 'failed calling webhook "nobody.example.com": failed to call '
                   'webhook: Post "https://127.0.0.1:1/?timeout=20s": ' in message(reply),
                   "nobody there: refused", reply)
        with Hooks(False, a_hook("nobody", failurePolicy="Ignore", **unreachable)):
            tap.equal(create()[0], 201, "nobody there: passed over")
        untrusted = {"clientConfig": {"url": hook.url("allow"), "caBundle": other_ca}}
        with Hooks(False, a_hook("tls", **untrusted)):
            status, reply, _ = create()
            tap.ok(status == 500 and "ertificate" in message(reply) and not hook.asked,
                   "a certificate of somebody else: refused", reply)
        with Hooks(False, a_hook("tls", failurePolicy="Ignore", **untrusted)):
            tap.equal((create()[0], hook.asked), (201, []), "a certificate of somebody else: passed over")
        named = {"clientConfig": {"url": f"https://localhost:{hook.port}/allow", "caBundle": ca}}
        with Hooks(False, a_hook("name", **named)):
            status, reply, _ = create()
            tap.ok(status == 500 and not hook.asked, "a certificate for another name", reply)
        with Hooks(False, a_hook("wait", timeoutSeconds=1)):
            status, reply, _ = create()
            tap.equal((status, message(reply)),
                      (500, 'Internal error occurred: failed calling webhook "wait.example.com": failed '
                            f'to call webhook: Post "{hook.url("wait")}?timeout=1s": context deadline '
                            "exceeded"), "no answer in time: refused")
        with Hooks(False, a_hook("wait", timeoutSeconds=1, failurePolicy="Ignore")):
            tap.equal(create()[0], 201, "no answer in time: passed over")
        with open(log, encoding="utf-8") as f:
            tap.ok("webhook failed and is passed over" in f.read(), "the log says so")

        # Changes.
        with Hooks(True, a_hook("label")):
            status, reply, _ = create()
            tap.equal((status, reply["metadata"].get("labels")), (201, {"hooked": "yes"}), "a patch")
            status, reply, _ = create(query="?dryRun=All")
            tap.equal(reply["metadata"].get("labels"), {"hooked": "yes"}, "a patch in a dry run")
            status, reply, _ = server.send("DELETE", f"{maps}/m{number - 1}")
            tap.equal(status, 200, "a patch of a deletion means nothing")
        with Hooks(True, a_hook("greedy")):
            status, reply, _ = create()
            tap.equal((status, reply["metadata"]["name"], reply["metadata"]["uid"] == "stolen",
                       reply["data"]), (201, f"m{number}", False, {"a": "b", "taken": "1"}),
                      "identity is not a webhook's to change")
        with Hooks(True, a_hook("invalidate")):
            status, reply, _ = create()
            tap.equal((status, reply["reason"]), (422, "Invalid"), "what a patch made is checked")
        for what in ("break-patch", "junk-patch"):
            for policy in ("Fail", "Ignore"):
                with Hooks(True, a_hook(what, failurePolicy=policy)):
                    status, reply, _ = create()
                    tap.ok(status == 500 and "does not apply" in message(reply),
                           f"{what}: refused, policy {policy}", reply)
        with Hooks(True, a_hook("count", reinvocationPolicy="IfNeeded"), a_hook("label"),
                   a_hook("allow", reinvocationPolicy="IfNeeded")):
            status, reply, _ = create()
            asked = [path.split("?")[0] for path, _ in hook.asked]
            tap.equal((asked, reply["metadata"].get("labels")),
                      (["/count", "/label", "/allow", "/count", "/allow"],
                       {"count": "2", "hooked": "yes"}),
                      "those who want to are asked again after a change")
        with Hooks(True, a_hook("count"), a_hook("label")):
            create()
            tap.equal(len(hook.asked), 2, "others are asked once")
        with Hooks(True, a_hook("label")):
            with Hooks(False, a_hook("allow")):
                create()
                tap.equal(hook.asked[-1][1]["request"]["object"]["metadata"].get("labels"),
                          {"hooked": "yes"}, "validating webhooks see what mutating ones made")

        # Which requests.
        def asked_with(**more):
            with Hooks(False, a_hook("allow", **more)):
                status, reply, _ = create({"team": "a"})
                assert status == 201, reply
                return len(hook.asked)

        def rule(**more):
            return [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"],
                     "resources": ["*"], **more}]

        server.send("PATCH", "/api/v1/namespaces/default", {"metadata": {"labels": {"env": "prod"}}},
                    "application/merge-patch+json")
        selections = [
            ("all wildcards", {"rules": rule()}, 1),
            ("another operation", {"rules": rule(operations=["UPDATE"])}, 0),
            ("a subresource", {"rules": rule(resources=["configmaps/status"])}, 0),
            ("all, and subresources", {"rules": rule(resources=["*/*"])}, 1),
            ("the scope", {"rules": rule(scope="Namespaced")}, 1),
            ("another scope", {"rules": rule(scope="Cluster")}, 0),
            ("an object selector", {"objectSelector": {"matchLabels": {"team": "a"}}}, 1),
            ("another object selector", {"objectSelector": {"matchLabels": {"team": "b"}}}, 0),
            ("a namespace selector", {"namespaceSelector": {"matchLabels": {"env": "prod"}}}, 1),
            ("another namespace selector", {"namespaceSelector": {"matchLabels": {"env": "x"}}}, 0),
            ("a namespace by name", {"namespaceSelector": {"matchLabels": {
                "kubernetes.io/metadata.name": "default"}}}, 1),
            ("a condition", {"matchConditions": [
                {"name": "a", "expression": "object.metadata.labels.team == 'a'"}]}, 1),
            ("a condition that is false", {"matchConditions": [
                {"name": "a", "expression": "request.operation in ['UPDATE', 'DELETE']"}]}, 0),
            ("a condition with a pattern", {"matchConditions": [
                {"name": "a", "expression": "object.metadata.name.matches('^[a-z]') && "
                 "request.userInfo.groups.exists(g, g == 'system:masters')"}]}, 1),
            ("a condition about rights", {"matchConditions": [
                {"name": "a", "expression": "authorizer.group('').resource('pods')"
                 ".namespace('default').check('delete').allowed()"}]}, 1),
            ("a condition about the rights of others", {"matchConditions": [
                {"name": "a", "expression": "authorizer.serviceAccount('default', 'nobody')"
                 ".group('').resource('pods').check('delete').allowed()"}]}, 0),
            ("a condition that errs, ignored", {"failurePolicy": "Ignore", "matchConditions": [
                {"name": "a", "expression": "object.nothing == 1"}]}, 0),
        ]
        for name, more, expected in selections:
            tap.equal(asked_with(**more), expected, f"selected by: {name}")
        with Hooks(False, a_hook("allow", matchConditions=[
                {"name": "a", "expression": "object.nothing == 1"}])):
            status, reply, _ = create()
            tap.ok(status == 403 and "no such key: nothing" in message(reply),
                   "a condition that errs refuses", reply)
        status, reply, _ = configure("odd", False, a_hook("allow", matchConditions=[
            {"name": "a", "expression": "object.metadata.name.matches('^x') && request.user == ''"}]))
        tap.ok(status == 422 and "webhooks[0].matchConditions[0].expression: Invalid value" in
               message(reply) and "undefined field 'user'" in message(reply),
               "a condition that does not compile is refused", reply)

        # Other versions of the same objects.
        pools = json.loads(server.kubectl("create", "--dry-run=client", "--validate=false", "-o", "json",
                                          "-f", f"{top}/examples/cspc/stripe.yaml").stdout)
        provide(server, orlop, f"{top}/examples/cspc/stripe.yaml")
        put(server, device("blockdevice-hooked", "gke-cstor-it-default-pool-1"), "openebs")
        cspc = "/apis/openebs.io/v1alpha1/namespaces/openebs/cstorpoolclusters"
        pool_rule = [{"operations": ["CREATE"], "apiGroups": ["cstor.openebs.io"],
                      "apiVersions": ["v1"], "resources": ["cstorpoolclusters"]}]
        with Hooks(True, a_hook("published", rules=pool_rule)):
            status, reply, _ = server.send("POST", cspc, pools)
            tap.equal(status, 201, "an equivalent version is asked for")
            request = hook.asked[0][1]["request"] if hook.asked else {}
            tap.equal((request.get("kind", {}).get("group"),
                       request.get("requestKind", {}).get("group"),
                       request.get("object", {}).get("apiVersion")),
                      ("cstor.openebs.io", "openebs.io", "cstor.openebs.io/v1"),
                      "and gets it in that version")
            devices = json.dumps(reply.get("spec"))
            tap.ok("blockdevice-hooked" in devices, "its patch is for that version", devices)
        pools["metadata"]["name"] = "exact"
        with Hooks(True, a_hook("published", rules=pool_rule, matchPolicy="Exact")):
            server.send("POST", cspc, pools)
            tap.equal(hook.asked, [], "not with matchPolicy Exact")

        # Status is apart.
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"},
                "status": {"phase": "Running"}}
        server.send("POST", "/api/v1/nodes", node)
        with Hooks(True, a_hook("node-status", rules=rule(resources=["nodes/status"]))):
            server.send("PATCH", "/api/v1/nodes/n", {"metadata": {"labels": {"a": "b"}}},
                        "application/merge-patch+json")
            tap.equal(hook.asked, [], "the object itself is not its status")
            status, reply, _ = server.send("PATCH", "/api/v1/nodes/n/status",
                                           {"status": {"phase": "Pending"}},
                                           "application/merge-patch+json")
            request = hook.asked[0][1]["request"] if hook.asked else {}
            tap.equal((status, request.get("subResource"), request.get("requestSubResource")),
                      (200, "status", "status"), "a status is a subresource")
            tap.equal(reply["status"].get("phase"), "Terminated", "which a webhook may change")
            tap.ok("unschedulable" not in reply.get("spec", {}), "and nothing else", reply)

        # A service.
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook"},
                   "spec": {"ports": [{"port": 443, "name": "https"}]}}
        through = {"clientConfig": {"caBundle": ca, "service": {
            "namespace": "default", "name": "hook", "path": "/deny"}}}
        with Hooks(False, a_hook("service", **through)):
            status, reply, _ = create()
            tap.ok(status == 500 and 'service "hook" not found' in message(reply),
                   "a service that is not there", reply)
            server.send("POST", "/api/v1/namespaces/default/services", service)
            server.send("POST", "/api/v1/namespaces/default/endpoints", {
                "apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "hook"}})
            status, reply, _ = create()
            tap.ok(status == 500 and 'no endpoints available for service "hook"' in message(reply),
                   "a service without endpoints", reply)
            server.send("PATCH", "/api/v1/namespaces/default/endpoints/hook", {"subsets": [
                {"addresses": [{"ip": "127.0.0.1"}],
                 "ports": [{"name": "other", "port": 1}, {"name": "https", "port": hook.port}]}]},
                        "application/merge-patch+json")
            status, reply, _ = create()
            tap.equal((status, message(reply)),
                      (403, 'admission webhook "service.example.com" denied the request: the moon is '
                            "full"), "a service with endpoints")

        # Warnings.
        with Hooks(False, a_hook("warn")):
            status, reply, warnings = create()
            tap.equal((status, warnings),
                      (201, ['299 - "mind the \\"gap\\""', '299 - "two lines"']), "warnings")
            result = server.kubectl("create", "-f", "-", stdin=config_map("warned"))
            tap.ok('Warning: mind the "gap"' in result.stderr, "as kubectl shows them", result.stderr)
        _, _, warnings = server.send(
            "POST", "/apis/openebs.io/v1alpha1/namespaces/default/jivavolumes?fieldValidation=Warn",
            {"apiVersion": "openebs.io/v1alpha1", "kind": "JivaVolume", "metadata": {"name": "j"},
             "spec": {"capacity": "5Gi", "colour": "red"}})
        tap.ok('299 - "unknown field \\"spec.colour\\""' in warnings,
               "an unknown field is a warning, too", warnings)

        # Configurations that are refused.
        refused = [
            ("a short name", {"name": "short"}, "webhooks[0].name"),
            ("an unknown policy", {"failurePolicy": "Maybe"}, "webhooks[0].failurePolicy"),
            ("too long a time", {"timeoutSeconds": 31}, "webhooks[0].timeoutSeconds"),
            ("side effects", {"sideEffects": "Some"}, "webhooks[0].sideEffects"),
            ("plain http", {"clientConfig": {"url": "http://127.0.0.1/"}},
             "webhooks[0].clientConfig.url"),
            ("a password in the URL", {"clientConfig": {"url": "https://a:b@127.0.0.1/"}},
             "webhooks[0].clientConfig.url"),
            ("a query", {"clientConfig": {"url": "https://127.0.0.1/?a"}},
             "webhooks[0].clientConfig.url"),
            ("no known version", {"admissionReviewVersions": ["v9"]},
             "webhooks[0].admissionReviewVersions"),
            ("a wildcard and more", {"rules": rule(apiGroups=["*", "apps"])},
             "webhooks[0].rules[0].apiGroups"),
            ("a bad path", {"clientConfig": {"service": {"namespace": "a", "name": "b",
                                                         "path": "c"}}},
             "webhooks[0].clientConfig.service.path"),
            ("two conditions of a name", {"matchConditions": [
                {"name": "a", "expression": "true"}, {"name": "a", "expression": "true"}]},
             "webhooks[0].matchConditions[1]"),
        ]
        for name, more, field in refused:
            status, reply, _ = configure("bad", False, {**a_hook("allow"), **more})
            fields = [c["field"] for c in reply.get("details", {}).get("causes", [])]
            tap.ok(status == 422 and any(f.startswith(field) for f in fields), f"refused: {name}",
                   f"{status} {reply}")

        text = server.get("/metrics")[1]
        tap.ok('apiserver_admission_webhook_admission_duration_seconds_count{name="deny.example.com",'
               'type="validating",operation="CREATE",rejected="true"}' in text, "they are counted")
    tap.equal(server.status, 0, "it ends in order")
    hook.stop()
tap.done()
