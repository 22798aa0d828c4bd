#!/usr/bin/env python3
"""Kinds with rules in CEL, and kinds whose versions a webhook converts, as kubectl sees them.

rules-and-versions.py APISERVER TOP
"""
import base64
import http.server
import json
import os
import ssl
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from server import Server  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402

program, top = sys.argv[1:3]
tap = Tap()
GROUP = "rules.example.test"


def definition(plural, kind, versions, conversion=None):
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{GROUP}"},
            "spec": {"group": GROUP, "scope": "Namespaced",
                     "names": {"plural": plural, "kind": kind}, "versions": versions,
                     **({"conversion": conversion} if conversion else {})}}


def version(name, spec, storage=True, **more):
    return {"name": name, "served": True, "storage": storage,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": spec, "status": {"type": "object", "properties": {
                    "ready": {"type": "integer"}}, **more.pop("status", {})}},
                **more.pop("root", {})}}, **more}


def rule(text, **more):
    return {"rule": text, **more}


class Converter:
    """An https server that converts: v1 has spec.host and spec.port, v2 has spec.address."""

    def __init__(self, scratch):
        self.reviews = []
        self.mode = "good"
        self.release = threading.Event()
        self.make_certificates(scratch)
        converter = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                converter.reviews.append((self.path, review))
                status, text = converter.answer(review)
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(scratch.file("hook.pem"), scratch.file("hook.key"))
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True,
                                                 do_handshake_on_connect=False)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def make_certificates(self, scratch):
        result = run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                     "ec_paramgen_curve:P-256", "-nodes", "-keyout", scratch.file("hook.key"),
                     "-out", scratch.file("hook.pem"), "-days", "2", "-subj", "/CN=hook", "-addext",
                     "subjectAltName=IP:127.0.0.1")
        assert result.returncode == 0, result.stderr
        with open(scratch.file("hook.pem"), "rb") as f:
            self.ca = base64.b64encode(f.read()).decode()

    def config(self, versions=("v1",)):
        return {"strategy": "Webhook", "webhook": {
            "clientConfig": {"url": f"https://127.0.0.1:{self.port}/convert", "caBundle": self.ca},
            "conversionReviewVersions": list(versions)}}

    @staticmethod
    def convert(object_, wanted):
        result = json.loads(json.dumps(object_))
        spec = result.get("spec", {})
        if wanted.endswith("/v2") and "host" in spec:
            result["spec"] = {"address": f"{spec['host']}:{spec.get('port', 80)}"}
        elif wanted.endswith("/v1") and "address" in spec:
            host, port = spec["address"].rsplit(":", 1)
            result["spec"] = {"host": host, "port": int(port)}
        result["apiVersion"] = wanted
        result["metadata"].setdefault("annotations", {})["converted"] = wanted
        result["metadata"]["finalizers"] = ["not/yours"]
        return result

    def answer(self, review):
        request = review["request"]
        if self.mode == "wait":
            self.release.wait(60)
        objects = [self.convert(o, request["desiredAPIVersion"]) for o in request["objects"]]
        response = {"uid": request["uid"], "convertedObjects": objects,
                    "result": {"status": "Success"}}
        if self.mode == "fails":
            response.update(convertedObjects=[],
                            result={"status": "Failure", "message": "no idea how"})
        elif self.mode == "silent":
            response.update(result={"status": "Failure"})
        elif self.mode == "fewer":
            objects.pop()
        elif self.mode == "renames":
            objects[0]["metadata"]["name"] = "stolen"
        elif self.mode == "uid":
            objects[0]["metadata"]["uid"] = "stolen"
        elif self.mode == "version":
            objects[0]["apiVersion"] = f"{GROUP}/v3"
        elif self.mode == "labels":
            objects[0]["metadata"]["labels"] = {"a": 1}
        elif self.mode == "other-review":
            response["uid"] = "somebody-else"
        elif self.mode == "boom":
            return 500, b"boom"
        return 200, json.dumps({**review, "response": response}).encode()

    def stop(self):
        self.release.set()
        self.server.shutdown()
        self.server.server_close()


PLACE = f"/apis/{GROUP}"
NETS = f"{PLACE}/v1/namespaces/default/nets"

with Scratch() as scratch, open(scratch.file("log"), "w", encoding="utf-8") as log, \
        Server(program, scratch.file("data"), log=log) as server:
    def expect(name, argv, status=0, stdout=None, stderr=None, stdin=None):
        return tap.ran(server.kubectl(*argv, stdin=stdin), name, status, stdout, stderr)

    def define(object_):
        name = object_["metadata"]["name"]
        expect(f"define {name}", ["apply", "--server-side=false", "-f", "-"], stdin=object_)
        expect(f"{name} is established",
               ["wait", f"crd/{name}", "--for=condition=established", "--timeout=20s"])

    # Rules: definitions that are refused.
    wrong = definition("wrongs", "Wrong", [version("v1", {
        "type": "object", "properties": {"a": {"type": "integer"}},
        "x-kubernetes-validations": [rule("self.b > 1"), rule("self.a +"), rule("self.a")]})])
    result = expect("rules that do not compile", ["create", "-f", "-"], status=1, stdin=wrong,
                    stderr="compilation failed: ERROR: <input>:1:5: undefined field 'b'")
    at = "spec.versions[0].schema.openAPIV3Schema.properties.spec.x-kubernetes-validations"
    for part in (f"{at}[0].rule", f"{at}[1].rule", "<input>:1:9: Syntax error", f"{at}[2].rule",
                 "cel expression must evaluate to a bool"):
        tap.ok(part in result.stderr, f"it says: {part}", result.stderr)
    deep = definition("deeps", "Deep", [version("v1", {
        "type": "integer", "x-kubernetes-validations": [
            rule("(" * 190 + "self > 0" + ")" * 190)]})])
    expect("deep rules", ["create", "-f", "-"], stdin=deep)
    deep["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"][
        "x-kubernetes-validations"] = [rule("(" * 5000 + "self > 0")]
    expect("rules that are too deep", ["replace", "-f", "-"], stdin=deep, status=1,
           stderr="recursion limit")

    # Rules at work.
    nets = definition("nets", "Net", [version(
        "v1",
        {"type": "object", "properties": {
            "min": {"type": "integer"}, "max": {"type": "integer"},
            "class": {"type": "string", "x-kubernetes-validations": [
                rule("self == oldSelf", message="class is immutable")]},
            "cidr": {"type": "string", "x-kubernetes-validations": [
                rule("isCIDR(self)", messageExpression="'%s is no network'.format([self])")]},
            "size": {"x-kubernetes-int-or-string": True, "x-kubernetes-validations": [
                rule("quantity(string(self)).isLessThan(quantity('1Ti'))", message="too large")]},
            "ports": {"type": "array", "x-kubernetes-list-type": "map",
                      "x-kubernetes-list-map-keys": ["name"], "items": {
                          "type": "object", "required": ["name"], "properties": {
                              "name": {"type": "string"},
                              "number": {"type": "integer", "x-kubernetes-validations": [
                                  rule("self >= oldSelf", reason="FieldValueForbidden",
                                       message="ports do not go back")]}}}}},
         "x-kubernetes-validations": [
             rule("!has(self.min) || !has(self.max) || self.min <= self.max"),
             rule("!has(self.ports) || self.ports.all(p, self.ports.exists_one(q, q.number == "
                  "p.number))", message="numbers must differ", fieldPath=".ports")]},
        status={"x-kubernetes-validations": [
            rule("!has(self.ready) || self.ready >= 0", message="ready is negative")]},
        root={"x-kubernetes-validations": [
            rule("self.metadata.name.size() <= 10", message="the name is too long")]},
        subresources={"status": {}})])
    define(nets)
    tap.ok("not evaluated" not in json.dumps(server.send(
        "GET", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/nets.{GROUP}")[1]),
        "nobody says that rules are not evaluated")

    def net(name="n", **spec):
        return {"apiVersion": f"{GROUP}/v1", "kind": "Net", "metadata": {"name": name}, "spec": spec}

    def refused(name, object_, text, cause, method="POST", place=NETS):
        status, reply, _ = server.send(method, place, object_)
        causes = [(c["field"], c["reason"]) for c in reply.get("details", {}).get("causes", [])]
        tap.ok(status == 422 and text in reply["message"] and cause in causes, name,
               json.dumps(reply, indent=1))

    refused("a rule of two fields", net(min=3, max=2),
            "spec: Invalid value: failed rule: !has(self.min) || !has(self.max) || self.min <= "
            "self.max", ("spec", "FieldValueInvalid"))
    refused("a message that is made", net(cidr="10.0.0.0/99"),
            'spec.cidr: Invalid value: "10.0.0.0/99": 10.0.0.0/99 is no network',
            ("spec.cidr", "FieldValueInvalid"))
    refused("a quantity", net(size="2Ti"), 'spec.size: Invalid value: "2Ti": too large',
            ("spec.size", "FieldValueInvalid"))
    refused("a field of its own", net(ports=[{"name": "a", "number": 1}, {"name": "b", "number": 1}]),
            "spec.ports: Invalid value: numbers must differ", ("spec.ports", "FieldValueInvalid"))
    refused("the root", net("far-too-long-a-name"), "Invalid value: the name is too long",
            ("<nil>", "FieldValueInvalid"))
    refused("rules wait for types", net(min="x", max=2), "some validation rules were not checked",
            ("spec.min", "FieldValueTypeInvalid"))
    expect("kubectl shows it", ["create", "-f", "-"], stdin=net(min=3, max=2), status=1,
           stderr='The Net "n" is invalid: spec: Invalid value: failed rule')
    good = net(min=1, max=2, cidr="10.0.0.0/8", size=5, ports=[{"name": "a", "number": 5},
                                                              {"name": "b", "number": 6}])
    good["spec"]["class"] = "x"
    expect("what keeps to them is created", ["create", "-f", "-"], stdin=good)
    expect("a transition", ["patch", "nets", "n", "--type=merge", "-p", '{"spec":{"class":"y"}}'],
           status=1, stderr='spec.class: Invalid value: "y": class is immutable')
    swapped = [{"name": "b", "number": 6}, {"name": "a", "number": 4}]
    expect("a transition of an element, by its key",
           ["patch", "nets", "n", "--type=merge", "-p", json.dumps({"spec": {"ports": swapped}})],
           status=1, stderr="spec.ports[1].number: Forbidden: ports do not go back")
    expect("apply", ["apply", "--server-side", "--force-conflicts", "-f", "-"], stdin=net(min=9), status=1,
           stderr="failed rule")
    expect("other changes", ["patch", "nets", "n", "--type=merge", "-p", '{"spec":{"min":2}}'])
    expect("the status", ["patch", "nets", "n", "--subresource=status", "--type=merge", "-p",
                          '{"status":{"ready":-1}}'], status=1, stderr="ready is negative")
    expect("a good status", ["patch", "nets", "n", "--subresource=status", "--type=merge", "-p",
                             '{"status":{"ready":1}}'])
    nets["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"][
        "min"]["x-kubernetes-validations"] = [rule("self > 100", message="min is small")]
    expect("a rule comes later", ["replace", "-f", "-"], stdin=nets)

    def warned():
        reply = server.kubectl("patch", "nets", "n", "--type=merge", "-p",
                               '{"metadata":{"labels":{"a":"%d"}}}' % len(os.urandom(1)))
        return reply.returncode == 0 and "Warning: spec.min: min is small" in reply.stderr

    tap.ok(wait_for(warned), "what was there before a rule is only warned of")
    expect("and may not get worse", ["patch", "nets", "n", "--type=merge", "-p",
                                     '{"spec":{"min":1}}'], status=1, stderr="min is small")

    # Versions that a webhook converts.
    converter = Converter(scratch)
    SPEC1 = {"type": "object", "properties": {"host": {"type": "string"}, "port": {
        "type": "integer", "default": 80}}}
    SPEC2 = {"type": "object", "properties": {"address": {"type": "string"}, "zone": {
        "type": "string", "default": "here"}}, "x-kubernetes-validations": [
            rule("!has(self.address) || self.address.contains(':')", message="no port")]}
    COLUMNS = [{"name": "Address", "type": "string", "jsonPath": ".spec.address"}]
    hosts = definition("hosts", "Host", [
        version("v1", SPEC1),
        version("v2", SPEC2, storage=False, additionalPrinterColumns=COLUMNS,
                selectableFields=[{"jsonPath": ".spec.address"}], subresources={"status": {}})],
        converter.config())
    define(hosts)
    V1, V2 = (f"{PLACE}/{v}/namespaces/default/hosts" for v in ("v1", "v2"))

    def host(name, version_="v1", **spec):
        return {"apiVersion": f"{GROUP}/{version_}", "kind": "Host", "metadata": {"name": name},
                "spec": spec}

    expect("create in the stored version", ["create", "-f", "-"], stdin=host("a", host="h", port=1))
    tap.equal(len(converter.reviews), 0, "nobody is asked where nothing is to convert")
    status, reply, _ = server.send("GET", f"{V2}/a")
    tap.ok(status == 200 and reply["spec"] == {"address": "h:1", "zone": "here"} and
           reply["apiVersion"] == f"{GROUP}/v2", "get another version, with its defaults", reply)
    tap.ok("finalizers" not in reply["metadata"] and
           reply["metadata"]["annotations"]["converted"] == f"{GROUP}/v2" and
           reply["metadata"]["managedFields"],
           "of metadata only labels and annotations are the webhook's", reply)
    path, review = converter.reviews[-1]
    tap.ok(path == "/convert?timeout=30s" and review["apiVersion"] == "apiextensions.k8s.io/v1" and
           review["kind"] == "ConversionReview" and
           review["request"]["desiredAPIVersion"] == f"{GROUP}/v2", "the review", review)
    expect("create in another version", ["create", "-f", "-"], stdin=host("b", "v2", address="i:2"))
    status, reply, _ = server.send("GET", f"{V1}/b")
    tap.equal((reply["apiVersion"], reply["spec"]), (f"{GROUP}/v1", {"host": "i", "port": 2}),
              "it is stored in the one that is kept")
    expect("rules of the version that is written", ["create", "-f", "-"], status=1,
           stdin=host("bad", "v2", address="nothing"), stderr="no port")
    expect("patch in another version", ["patch", f"hosts.v2.{GROUP}", "a", "--type=merge", "-p",
                                        '{"spec":{"address":"j:3"}}'])
    tap.equal(server.send("GET", f"{V1}/a")[1]["spec"], {"host": "j", "port": 3}, "it is patched")
    expect("apply in another version", ["apply", "--server-side", "--force-conflicts", "-f", "-"],
           stdin=host("a", "v2", address="k:4"))
    tap.equal(server.send("GET", f"{V1}/a")[1]["spec"], {"host": "k", "port": 4}, "it is applied")
    expect("the status of another version", ["patch", f"hosts.v2.{GROUP}", "a", "--type=merge",
                                             "--subresource=status", "-p", '{"status":{"ready":2}}'])
    tap.equal(server.send("GET", f"{V1}/a")[1]["status"], {"ready": 2}, "it is written")
    converter.reviews.clear()
    expect("list as a table", ["get", f"hosts.v2.{GROUP}"], stdout="k:4")
    tap.equal([len(r["request"]["objects"]) for _, r in converter.reviews], [2],
              "a list is converted in one go")
    status, reply, _ = server.send("GET", f"{V2}?fieldSelector=spec.address%3Di:2")
    tap.equal([o["metadata"]["name"] for o in reply["items"]], ["b"],
              "selected by a field that only this version has")
    for i in range(250):
        server.create(V1, host(f"many-{i}", host="m", port=i))
    converter.reviews.clear()
    status, reply, _ = server.send("GET", V2)
    tap.ok(len(reply["items"]) == 252 and all(
        o["apiVersion"] == f"{GROUP}/v2" for o in reply["items"]), "a long list", len(reply["items"]))
    tap.equal([len(r["request"]["objects"]) for _, r in converter.reviews], [200, 52],
              "in batches")
    server.send("DELETE", f"{V1}?fieldSelector=metadata.name!%3Da")

    # Watches.
    watch = server.kubectl_begin("get", f"hosts.v2.{GROUP}", "-w", "-o",
                                 'jsonpath={.apiVersion} {.spec.address}{"\\n"}')
    tap.equal(watch.stdout.readline().strip(), f"{GROUP}/v2 k:4",
              "a watch begins with what there is, converted")
    server.create(V1, host("w", host="x", port=9))
    tap.equal(watch.stdout.readline().strip(), f"{GROUP}/v2 x:9",
              "a watch sends changes, converted")
    converter.mode = "wait"
    server.create(V1, host("slow", host="y", port=1))
    wait_for(lambda: any(o["metadata"]["name"] == "slow" for _, r in converter.reviews
                         for o in r["request"]["objects"]))
    waiting = [threading.Thread(target=server.send, args=("GET", f"{V2}/w")) for _ in range(8)]
    for thread in waiting:
        thread.start()
    tap.ok(all(server.send("GET", f"/api/v1/namespaces/default?{i}")[0] == 200 for i in range(20)),
           "who waits for a webhook keeps nobody else waiting")
    converter.mode = "good"
    converter.release.set()
    for thread in waiting:
        thread.join()
    tap.equal(watch.stdout.readline().strip(), f"{GROUP}/v2 y:1", "and goes on when it answers")
    watch.terminate()
    watch.wait()
    watch.stdout.close()

    # Failures.
    about = f"conversion webhook for {GROUP}/v1, Kind=Host "
    for mode, text in (
            ("fails", about + "failed: no idea how"),
            ("silent", about + "failed: response.result.status was 'Failure', not 'Success'"),
            ("fewer", about + "returned 0 objects, expected 1"),
            ("renames", "must have the same name: a != stolen"),
            ("uid", "must have the same UID: "),
            ("version", f"invalid groupVersion (expected {GROUP}/v2, received {GROUP}/v3)"),
            ("labels", "metadata.labels[a] must be a string"),
            ("other-review", "failed: expected response.uid="),
            ("boom", 'an error on the server ("boom") has prevented the request')):
        converter.mode = mode
        status, reply, _ = server.send("GET", f"{V2}/a")
        tap.ok(status == 500 and text in reply["message"] and "reason" not in reply,
               f"a webhook that {mode}", reply)
    converter.mode = "fails"
    expect("kubectl shows it", ["get", f"hosts.v2.{GROUP}", "a"], status=1,
           stderr=f"Error from server: {about}failed: no idea how")
    status, reply, _ = server.send("GET", V2)
    tap.ok(status == 500 and f"{GROUP}/v1, Kind=HostList failed: no idea how" in reply["message"],
           "a list fails as a whole", reply)
    tap.equal(server.send("GET", f"{V1}/a")[0], 200, "the stored version needs nobody")
    expect("a write fails too", ["create", "-f", "-"], stdin=host("c", "v2", address="z:1"),
           status=1, stderr="no idea how")
    tap.equal(server.send("GET", f"{V1}/c")[0], 404, "and leaves nothing behind")
    status, reply, _ = server.send("GET", f"{V2}?watch=true")
    tap.equal(status, 500, "a watch cannot begin")

    # Another version to store; old objects are converted when they are read or written.
    converter.mode = "good"
    hosts["spec"]["versions"][0]["storage"] = False
    hosts["spec"]["versions"][1]["storage"] = True
    expect("another version is stored", ["replace", "-f", "-"], stdin=hosts)
    expect("and known", ["wait", f"crd/hosts.{GROUP}", "--for=jsonpath={.status.storedVersions[1]}=v2",
                         "--timeout=20s"])

    def in_service():
        converter.reviews.clear()
        return server.send("GET", f"{V1}/a")[0] == 200 and not converter.reviews

    tap.ok(wait_for(in_service), "what is still stored in the old version needs nobody there")
    tap.equal(server.send("GET", f"{V2}/a")[1]["spec"]["address"], "k:4", "and is converted for others")
    expect("a write moves it", ["annotate", f"hosts.v2.{GROUP}", "a", "moved=yes"])
    converter.reviews.clear()
    tap.equal(server.send("GET", f"{V2}/a")[1]["spec"]["address"], "k:4", "it is there")
    tap.equal(len(converter.reviews), 0, "as it is stored")
    server.create(V2, host("o", "v2", address="o:1"))
    converter.stop()
    expect("what the server does itself needs nobody",
           ["delete", f"hosts.v2.{GROUP}", "o", "--cascade=orphan", "--timeout=30s"],
           stdout="deleted")
    expect("a kind goes though its webhook is gone",
           ["delete", "crd", f"hosts.{GROUP}", "--timeout=30s"], stdout="deleted")

tap.done()
