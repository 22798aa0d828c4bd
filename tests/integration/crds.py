#!/usr/bin/env python3
"""The CustomResourceDefinitions: those in deploy/crds are what the tables give, Kubernetes would
take their schemas for structural, and kubectl reads them.

crds.py ORLOP TOP
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from discovery import CRD, Discovery  # noqa: E402
from tap import Scratch, Tap, json_values, run  # noqa: E402

orlop, top = sys.argv[1:3]
tap = Tap()

# What a schema may have where only values are checked (below allOf, anyOf, oneOf, not).
VALUE_ONLY_FORBIDDEN = {"description", "type", "default", "additionalProperties", "nullable",
                        "x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"}


def structural(schema, path, root=False):
    """Every way in which a schema is not structural, by Kubernetes' rules."""
    preserve = schema.get("x-kubernetes-preserve-unknown-fields")
    either = schema.get("x-kubernetes-int-or-string")
    if "type" not in schema and not preserve and not either:
        yield f"{path}: no type"
    if root and schema.get("type") != "object":
        yield f"{path}: the root is no object"
    if not root and "description" not in schema and "items" not in path.rsplit(".", 1)[-1] \
            and not path.endswith(("metadata", "{}")):
        yield f"{path}: no description"
    if schema.get("type") == "array" and "items" not in schema:
        yield f"{path}: an array without items"
    if "properties" in schema and "additionalProperties" in schema:
        yield f"{path}: both properties and additionalProperties"
    for word in ("allOf", "anyOf", "oneOf"):
        for i, part in enumerate(schema.get(word, [])):
            if either and word == "anyOf":
                continue
            for bad in set(part) & VALUE_ONLY_FORBIDDEN:
                yield f"{path}.{word}[{i}]: {bad} is not allowed there"
    keys = schema.get("x-kubernetes-list-map-keys", [])
    for key in keys:
        if key not in schema["items"].get("required", []):
            yield f"{path}: the list key {key} is not required"
    if schema.get("default") is not None and "enum" in schema \
            and schema["default"] not in schema["enum"]:
        yield f"{path}: the default is not allowed"
    for name, child in schema.get("properties", {}).items():
        yield from structural(child, f"{path}.{name}")
    if "items" in schema:
        yield from structural(schema["items"], f"{path}.items")
    if "additionalProperties" in schema:
        yield from structural(schema["additionalProperties"], f"{path}.{{}}")


def check(crd):
    name = crd["metadata"]["name"]
    spec = crd["spec"]
    tap.equal(name, f"{spec['names']['plural']}.{spec['group']}", f"{name}: its name fits")
    tap.equal(sum(v["storage"] for v in spec["versions"]), 1, f"{name}: one version is stored")
    tap.ok(spec["names"].get("shortNames"), f"{name}: it has a short name")
    for version in spec["versions"]:
        where = f"{name} {version['name']}"
        schema = version["schema"]["openAPIV3Schema"]
        tap.equal(list(structural(schema, "", root=True)), [], f"{where}: the schema is structural")
        tap.ok(schema.get("description"), f"{where}: it has a doc string")
        columns = version["additionalPrinterColumns"]
        tap.ok(columns and all(c["jsonPath"].startswith(".") and c["description"] for c in columns),
               f"{where}: it has printer columns")


with Scratch() as scratch, Discovery([CRD]) as server:
    run(orlop, "crds", "--output-dir", scratch.path)
    files = sorted(f for f in os.listdir(scratch.path))
    tap.equal(sorted(os.listdir(f"{top}/deploy/crds")), files, "deploy/crds has every definition")
    for file in files:
        with open(scratch.file(file), encoding="utf-8") as now, \
                open(f"{top}/deploy/crds/{file}", encoding="utf-8") as kept:
            tap.ok(now.read() == kept.read(), f"deploy/crds/{file} is what the tables give",
                   "run 'make generate'")
    result = run("kubectl", "--server", server.url, "create", "--dry-run=client",
                 "--validate=false", "-o", "json", "-f", f"{top}/deploy/crds",
                 env=scratch.kubectl_env())
    tap.equal(result.returncode, 0, "kubectl reads them")
    printed = json_values(result.stdout)
    tap.equal(len(printed), len(files), "kubectl reads all of them")
    for crd in printed:
        check(crd)
tap.done()
