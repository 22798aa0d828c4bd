#!/usr/bin/env python3
"""/openapi/v2, as JSON, as protobuf, and as older kubectl uses it.

openapi.py APISERVER

An old kubectl is used where there is one: the program that OLD_KUBECTL names, kubectl-1.20 on PATH, or
kubectl itself. Debian 12 has it in the package kubernetes-client.
"""
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import gnostic  # noqa: E402
from server import Server  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402

program = sys.argv[1]
tap = Tap()
PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
PROTOBUF_BEFORE = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
POD = "io.k8s.api.core.v1.PodSpec"

V1 = {
    "type": "object", "description": "A gadget.", "properties": {
        "spec": {
            "type": "object", "required": ["size", "note"],
            "oneOf": [{"required": ["size"]}, {"required": ["none"]}],
            "properties": {
                "size": {"type": "integer", "minimum": 0, "maximum": 9, "description": "How large.",
                         "x-kubernetes-validations": [{"rule": "self >= 0"}]},
                "port": {"x-kubernetes-int-or-string": True,
                         "anyOf": [{"type": "integer"}, {"type": "string"}]},
                "note": {"type": "string", "nullable": True},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True,
                         "properties": {"a": {"type": "string"}}},
                "colour": {"type": "string", "enum": ["red", "green"], "default": "red"},
                "parts": {"type": "array", "maxItems": 5, "x-kubernetes-list-type": "map",
                          "x-kubernetes-list-map-keys": ["name"],
                          "items": {"type": "object", "required": ["name"],
                                    "properties": {"name": {"type": "string"}}}},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "child": {"type": "object", "x-kubernetes-embedded-resource": True,
                          "properties": {"spec": {"type": "object"}}}}}}}
BETA = {"type": "object", "x-kubernetes-preserve-unknown-fields": True,
      "properties": {"spec": {"type": "object"}}}
# What v2 can say of the spec of V1, as Kubernetes has it.
SPEC = {
    "type": "object", "required": ["size"], "properties": {
        "size": {"type": "integer", "minimum": 0, "maximum": 9, "description": "How large.",
                 "x-kubernetes-validations": [{"rule": "self >= 0"}]},
        "port": {"x-kubernetes-int-or-string": True},
        "note": {},
        "free": {"x-kubernetes-preserve-unknown-fields": True},
        "colour": {"type": "string", "enum": ["red", "green"], "default": "red"},
        "parts": V1["properties"]["spec"]["properties"]["parts"],
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "child": {"type": "object", "x-kubernetes-embedded-resource": True,
                  "required": ["kind", "apiVersion"],
                  "properties": {"spec": {"type": "object"}, "kind": {"type": "string"},
                                 "apiVersion": {"type": "string"},
                                 "metadata": {"$ref": f"#/definitions/{META}"}}}}}


def definition(served=True):
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "gadgets.a.test"},
            "spec": {"group": "a.test", "names": {"plural": "gadgets", "kind": "Gadget"},
                     "scope": "Namespaced", "versions": [
                         {"name": "v1", "served": True, "storage": True,
                          "schema": {"openAPIV3Schema": V1}},
                         {"name": "v1beta1", "served": served, "storage": False,
                          "schema": {"openAPIV3Schema": BETA}},
                         {"name": "v1alpha1", "served": False, "storage": False,
                          "schema": {"openAPIV3Schema": V1}}]}}


def pod(image="i:1", **more):
    return json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {
        "containers": [{"name": "c", "image": image,
                        "ports": [{"containerPort": 80}, {"containerPort": 81}], **more}]}})


def gadget(**spec):
    return json.dumps({"apiVersion": "a.test/v1", "kind": "Gadget", "metadata": {"name": "g"},
                       "spec": {"size": 1, **spec}})


def problems(document):
    """What kubectl cannot read: it gives up on the whole document for any of these."""
    known = document["definitions"]

    def check(schema, at):
        ref, kind = schema.get("$ref"), schema.get("type")
        if ref is not None:
            if ref.removeprefix("#/definitions/") not in known:
                yield f"{at}: {ref} is nowhere"
            if kind or "properties" in schema:
                yield f"{at}: a reference with more than a description"
        elif kind is not None and kind not in ("object", "array", "string", "integer", "number",
                                               "boolean"):
            yield f"{at}: type {kind!r}"
        elif kind == "array" and not isinstance(schema.get("items"), dict):
            yield f"{at}: a list of nothing"
        elif kind is None and "properties" in schema:
            yield f"{at}: properties of no object"
        for word in ("oneOf", "anyOf", "allOf", "not", "nullable"):
            if word in schema:
                yield f"{at}: {word}"
        for name, inside in schema.get("properties", {}).items():
            yield from check(inside, f"{at}.{name}")
        if "items" in schema:
            yield from check(schema["items"], f"{at}[]")
        if isinstance(schema.get("additionalProperties"), dict):
            yield from check(schema["additionalProperties"], f"{at}{{}}")

    for name, schema in known.items():
        yield from check(schema, name)
    for path, item in document["paths"].items():
        for method, operation in item.items():
            for one in (operation if method == "parameters" else operation["parameters"]):
                if one["in"] == "body":
                    yield from check(one["schema"], f"{path} {method}")
                elif not one.get("type"):
                    yield f"{path} {method}: {one['name']} has no type"


def minor_version(kubectl):
    result = run(kubectl, "version", "--client", "-o", "json")
    return int(json.loads(result.stdout)["clientVersion"]["minor"].rstrip("+"))


def get(server, accept=None, **headers):
    return server.request("GET", "/openapi/v2", headers={
        **({"Accept": accept} if accept is not None else {}), **headers})


def forms(server):
    """Which form each Accept header gets, and that a client that has it gets it no more."""
    for accept, expected in (
            (None, "application/json"), ("", "application/json"), ("*/*", "application/json"),
            ("application/*", "application/json"), ("application/json", "application/json"),
            (PROTOBUF, PROTOBUF), (PROTOBUF_BEFORE, PROTOBUF),
            (f"{PROTOBUF}, application/json", PROTOBUF),
            (f"application/json, {PROTOBUF}", "application/json"),
            (f"application/json;q=0.5, {PROTOBUF};q=0.9", PROTOBUF),
            (f"*/*, {PROTOBUF}", PROTOBUF), (f"text/html, {PROTOBUF};q=0.1", PROTOBUF),
            ("text/html", None), ("application/yaml", None), ("application/jsonx", None),
            ("application/json;q=0", None), (",;q=,;;", None)):
        reply = get(server, accept)
        tap.equal((reply.status, reply.headers.get("Content-Type"), reply.headers["Vary"]),
                  (200 if expected else 406, expected, "Accept"), f"Accept: {accept}")
        if not expected:
            tap.equal(reply.body, b"", "there is nothing to say")
            continue
        tag = reply.headers["Etag"]
        tap.ok(tag.startswith('"') and tag.endswith('"'), "it has a tag", tag)
        known = get(server, accept, **{"If-None-Match": tag})
        tap.equal((known.status, known.body, known.headers["Etag"]), (304, b"", tag),
                  "a client that has it")
        tap.equal(get(server, accept, **{"If-None-Match": '"other"'}).body, reply.body,
                  "a client that has another")
    reply = server.request("GET", "/openapi/v3/api/v1")
    known = server.request("GET", "/openapi/v3/api/v1",
                           headers={"If-None-Match": reply.headers["Etag"]})
    tap.equal((reply.status, known.status, known.body), (200, 304, b""), "v3 has tags, too")


def contents(server):
    document, binary = get(server).json, get(server, PROTOBUF).body
    tap.equal((document["swagger"], document["info"]["title"]), ("2.0", "Orlop"), "what it is")
    tap.equal(list(problems(document)), [], "kubectl can read it")
    decoded = gnostic.document(binary)
    plain = gnostic.without_defaults(document)
    tap.equal({key: decoded[key] for key in ("swagger", "info")},
              {key: plain[key] for key in ("swagger", "info")}, "the head of the protobuf form")
    for part in ("definitions", "paths"):
        tap.equal(list(decoded[part]), list(plain[part]), f"the same {part}")
        differ = [name for name in plain[part] if decoded[part].get(name) != plain[part][name]]
        tap.equal(differ, [], f"{len(plain[part])} {part} are the same, member by member")
    for cut in (1, 1000, len(binary) // 2):
        try:
            gnostic.document(binary[:-cut])
            tap.ok(False, f"the test's parser sees that {cut} bytes are missing")
        except gnostic.Broken:
            tap.ok(True, f"the test's parser sees that {cut} bytes are missing")

    kinds = {(one["group"], one["version"], one["kind"]): name
             for name, schema in document["definitions"].items()
             for one in schema.get("x-kubernetes-group-version-kind", [])}
    missing, unpatchable, served = [], [], 0
    for path in ["/api/v1", *[f"/apis/{g['groupVersion']}" for group in
                              server.get("/apis")[1]["groups"] for g in group["versions"]]]:
        gv = path.split("/")[2:]
        group, version = ("", gv[0]) if len(gv) == 1 else gv
        for resource in server.get(path)[1]["resources"]:
            if "/" in resource["name"]:
                continue
            served += 1
            key = (group, version, resource["kind"])
            if key not in kinds:
                missing.append(key)
            place = "/namespaces/{namespace}" if resource["namespaced"] else ""
            patch = document["paths"].get(f"{path}{place}/{resource['name']}/{{name}}", {}).get(
                "patch", {"parameters": []})
            if "patch" in resource["verbs"] and "dryRun" not in [
                    p["name"] for p in patch["parameters"]]:
                unpatchable.append(key)
    tap.equal((missing, unpatchable), ([], []), f"all {served} kinds, and how to patch them")
    return document["definitions"]


def schemas(definitions):
    """What tables, messages and definitions become."""
    spec = definitions[POD]["properties"]
    keys = {name: (spec[name].get("x-kubernetes-patch-merge-key"),
                   spec[name].get("x-kubernetes-patch-strategy"))
            for name in ("containers", "volumes", "tolerations", "imagePullSecrets")}
    tap.equal(keys, {"containers": ("name", "merge"), "volumes": ("name", "merge,retainKeys"),
                     "tolerations": (None, None), "imagePullSecrets": ("name", "merge")},
              "how strategic merge goes about pods")
    container = spec["containers"]["items"]["properties"]
    tap.equal((container["ports"]["x-kubernetes-patch-merge-key"],
               container["livenessProbe"]["properties"]["httpGet"]["properties"]["port"]["format"],
               container["resources"]["properties"]["limits"]["additionalProperties"]),
              ("containerPort", "int-or-string", {"type": "string"}),
              "ports, probes and quantities")
    deployment = definitions["io.k8s.api.apps.v1.Deployment"]["properties"]["spec"]["properties"]
    tap.equal((deployment["template"]["$ref"],
               deployment["strategy"]["x-kubernetes-patch-strategy"]),
              ("#/definitions/io.k8s.api.core.v1.PodTemplateSpec", "retainKeys"),
              "what is shared is referred to")
    tap.equal(definitions["io.k8s.api.core.v1.PodTemplateSpec"]["properties"]["spec"]["$ref"],
              f"#/definitions/{POD}", "also from what is shared")
    mine = definitions["test.a.v1.Gadget"]
    tap.equal((mine["description"], mine["properties"]["metadata"]["$ref"],
               sorted(mine["properties"])),
              ("A gadget.", f"#/definitions/{META}", ["apiVersion", "kind", "metadata", "spec"]),
              "a user's kind")
    tap.equal(mine["properties"]["spec"], SPEC, "only what v2 can say of its spec")
    gvk = [{"group": "a.test", "version": "v1beta1", "kind": "Gadget"}]
    tap.equal(definitions["test.a.v1beta1.Gadget"],
              {"type": "object", "x-kubernetes-group-version-kind": gvk},
              "a version that keeps what it does not name names nothing")
    tap.equal([name for name in definitions if name.startswith("test.a.v1alpha1")], [],
              "a version that is not served")


def changes(server):
    """The document follows the definitions, and its tag with it."""
    before = get(server)
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.a.test"
    server.ask("PATCH", path, [{"op": "replace", "path": "/spec/versions/1/served", "value": False}],
               content_type="application/json-patch+json")
    after = wait_for(lambda: (reply := get(server)).body != before.body and reply)
    tap.ok(after and "test.a.v1beta1.Gadget" not in after.json["definitions"]
           and "test.a.v1.Gadget" in after.json["definitions"], "a version is no longer served")
    tap.ok(after.headers["Etag"] != before.headers["Etag"], "the tag is another")
    server.ask("PATCH", path, [{"op": "replace", "path": "/spec/versions/1/served", "value": True}],
               content_type="application/json-patch+json")
    again = wait_for(lambda: (reply := get(server)).body == before.body and reply)
    tap.equal(again and again.headers["Etag"], before.headers["Etag"], "and is served again")


def commands(server, name, kubectl):
    """What kubectl does with the document: explain, validate, merge and compare."""
    def expect(what, argv, status=0, stdout=None, stderr=None, stdin=None):
        return tap.ran(kubectl(*argv, stdin=stdin), f"{name}: {what}", status, stdout, stderr)

    expect("api-resources", ["api-resources"], stdout="gadgets")
    expect("explain", ["explain", "pods.spec.containers.livenessProbe"], stdout="periodSeconds")
    expect("explain one field", ["explain", "pvc.spec.accessModes"], stdout="[]string")
    expect("explain ours", ["explain", "cspc.spec.pools", "--recursive"], stdout="raidGroups")
    expect("explain a user's kind", ["explain", "gadget.spec"], stdout="How large.")
    result = expect("explain it recursively", ["explain", "gadget", "--recursive"], stdout="parts")
    tap.ok("finalizers" in result.stdout, f"{name}: metadata is explained", result.stdout)
    expect("explain what is not there", ["explain", "gadget.spec.none"], status=1)

    def refused(what, manifest, words):
        for command in (["apply"], ["create", "--validate"]):
            expect(f"{command[0]}: {what}", [*command, "-f", "-"], status=1, stderr=words,
                   stdin=manifest)

    refused("an unknown field", pod(imagePullPolic="Always"), 'unknown field "imagePullPolic"')
    refused("an unknown field of a probe", pod(livenessProbe={"periodSecond": 1}),
            'unknown field "periodSecond"')
    refused("a wrong type", pod(ports=[{"containerPort": "http"}]),
            'got "string", expected "integer"')
    refused("an object for a list", pod(ports={"containerPort": 1}),
            'got "map", expected "array"')
    refused("a field that a user's kind does not have", gadget(sizes=1), 'unknown field "sizes"')
    refused("a wrong type in a user's kind", gadget(size="x"), 'got "string", expected "integer"')
    refused("what a user's kind requires", '{"apiVersion": "a.test/v1", "kind": "Gadget", '
            '"metadata": {"name": "g"}, "spec": {}}', 'missing required field "size"')
    expect("a user's kind", ["create", "--validate", "-f", "-"], stdout="created",
           stdin=gadget(port="http", note=None, free={"a": "x", "b": [1]}, labels={"a": "b"}))
    expect("delete it", ["delete", "gadget", "g"], stdout="deleted")

    expect("apply", ["apply", "-f", "-"], stdout="pod/p created", stdin=pod())
    expect("the same again", ["apply", "-f", "-"], stdout="pod/p unchanged", stdin=pod())
    expect("no difference", ["diff", "-f", "-"], stdin=pod())
    expect("a difference", ["diff", "-f", "-"], status=1, stdout="+  - image: i:2", stdin=pod("i:2"))
    tap.equal(server.get("/api/v1/namespaces/default/pods/p")[1]["spec"]["containers"][0]["image"],
              "i:1", f"{name}: diff changes nothing")
    path = "/apis/apps/v1/namespaces/default/deployments"
    manifest = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}}, "template": {
            "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [
                {"name": "c", "image": "i:1", "ports": [{"containerPort": 80},
                                                        {"containerPort": 81}]}]}}}}
    expect("apply a Deployment", ["apply", "-f", "-"], stdout="created", stdin=json.dumps(manifest))
    # Somebody else adds a container and a port, which merging by key must leave alone.
    server.ask("PATCH", f"{path}/d", {"spec": {"template": {"spec": {"containers": [
        {"name": "other", "image": "o"}, {"name": "c", "ports": [{"containerPort": 90}]}]}}}},
               content_type="application/strategic-merge-patch+json")
    containers = manifest["spec"]["template"]["spec"]["containers"]
    containers[0] = {"name": "c", "image": "i:2", "ports": [{"containerPort": 81}]}
    expect("apply a change", ["apply", "-f", "-"], stdout="configured", stdin=json.dumps(manifest))
    found = {c["name"]: (c["image"], sorted(p["containerPort"] for p in c.get("ports", [])))
             for c in server.get(f"{path}/d")[1]["spec"]["template"]["spec"]["containers"]}
    tap.equal(found, {"c": ("i:2", [81, 90]), "other": ("o", [])},
              f"{name}: containers and ports are merged by their keys")
    expect("delete all that", ["delete", "pod/p", "deployment/d"], stdout="deleted")


with Scratch() as scratch:
    with Server(program, scratch.file("data")) as server:
        server.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition())
        wait_for(lambda: "test.a.v1beta1.Gadget" in get(server).json["definitions"])
        forms(server)
        schemas(contents(server))
        changes(server)
        # A kind without PATCH: kubectl of any age validates it by v2.
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
                  "spec": {"token": "t"}}
        tap.ran(server.kubectl("create", "-f", "-", "-o", "name", stdin=review),
                "a review has no metadata")
        review["spec"]["tokens"] = "u"
        tap.ran(server.kubectl("create", "-f", "-", stdin=review), "but no fields of its own",
                status=1, stderr='unknown field "tokens"')
        new, old = "kubectl", os.environ.get("OLD_KUBECTL") or shutil.which("kubectl-1.20")
        if minor_version(new) < 24:  # it leaves validation to the server from then on
            new, old = None, new
        for what, argv, words in (
                ("a built-in kind", ["pods.spec.containers"], "livenessProbe"),
                ("ours", ["cspc.spec.pools"], "raidGroups"),
                ("a user's kind", ["gadget.spec"], "How large.")):
            if new and 27 <= minor_version(new):
                tap.ran(server.kubectl("explain", "--output=plaintext-openapiv2", *argv),
                        f"kubectl explains {what} by v2", stdout=words)
        if old:
            commands(server, f"kubectl 1.{minor_version(old)}", lambda *argv, stdin=None: run(
                old, "--kubeconfig", server.kubeconfig, *argv, stdin=stdin,
                env={**server.kubectl_env, "HOME": scratch.file("old")}))
        else:
            tap.skip("an old kubectl", "there is none; OLD_KUBECTL may name it")
tap.done()
