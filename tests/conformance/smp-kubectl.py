#!/usr/bin/env python3
"""Compares how each list and object of Kubernetes' own kinds merges with kubectl, table by table.

    smp-kubectl.py PATCH_APPLY

For each kind one document and one patch are made from its table, with every list, map and object
that the table names at every depth, and given to both. By which member kubectl merges a list of
objects is seen from where the patch's one element ends up: it has the value "v" in each member that
could be the key, and the document's elements have it in one each.

             name  type  ip             patch: [{name: v, type: v, ip: v, new: 1}]
    [0]      v     0     0
    [1]      1     v     1              merged into [1]: the list merges by type
    [2]      2     2     v
"""
import concurrent.futures
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from tap import Scratch, Tap, run  # noqa: E402

KEYS = ["name", "type", "key", "uid", "ip", "port", "containerPort", "mountPath", "devicePath",
        "topologyKey", "status", "kind", "path", "id", "hostnames"]
# Kinds that this kubectl does not have in its own library, so that it cannot merge them.
FOREIGN = {"VolumeSnapshot", "VolumeSnapshotContent", "VolumeSnapshotClass",
           "CustomResourceDefinition", "VolumeAttributesClass"}
MISSING = "(nothing)"  # which null is not


def build(members, skip=()):
    """A document with all members that are not plain values, and a patch for all of them."""
    doc, patch = {"zzOld": 1}, {"zzNew": 2}
    for name, member in members.items():
        if name in skip:
            continue
        if member["shape"] == "map":
            doc[name], patch[name] = {"a": "1"}, {"b": "2"}
        elif member["shape"] == "list":
            doc[name], patch[name] = build_list(member)
        elif member["object"]:
            doc[name], patch[name] = build(member.get("members", {}))
    return doc, patch


def build_list(member):
    if not member["object"]:
        return ["a", "b"], ["b", "c"]
    inner, change = build(member.get("members", {}), KEYS)
    elements = [{key: "v" if i == j else str(i) for j, key in enumerate(KEYS)}
                for i in range(len(KEYS))]
    elements[KEYS.index(member.get("key", KEYS[0]))].update(inner)
    return elements, [{**{key: "v" for key in KEYS}, **change}]


def case(kind):
    doc, patch = build({k: v for k, v in kind["members"].items() if k not in ("apiVersion", "kind")})
    doc.update(apiVersion=kind["apiVersion"], kind=kind["kind"])
    doc["metadata"].update(name="x", namespace="default")
    for part in doc, patch:
        del part["metadata"]["managedFields"]  # kubectl reads these itself, and never shows them
    return {"type": "strategic", "doc": doc, "patch": patch}


def ask_ours(program, requests):
    result = run(program, stdin=json.dumps(requests))
    if result.returncode != 0:
        sys.exit(f"Bail out! {program}: {result.stderr.strip()}")
    return json.loads(result.stdout)


def ask_kubectl(scratch, number, request):
    path = scratch.file(f"{number}.json", json.dumps(request["doc"]))
    result = run("kubectl", "patch", "--local", "-f", path, "--type=strategic", "-o", "json",
                 "-p", json.dumps(request["patch"]),
                 env={**scratch.kubectl_env(), "GOMAXPROCS": "1", "GOGC": "off"})
    return json.loads(result.stdout) if result.returncode == 0 else result.stderr.strip()


def difference(ours, theirs, path=""):
    """The first place where two values differ, or None."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted(ours.keys() | theirs.keys()):
            found = difference(ours.get(key, MISSING), theirs.get(key, MISSING), f"{path}.{key}")
            if found:
                return found
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for i, (our, their) in enumerate(zip(ours, theirs)):
            found = difference(our, their, f"{path}[{i}]")
            if found:
                return found
    elif ours != theirs:
        return f"{path}: ours {json.dumps(ours)[:300]}, kubectl's {json.dumps(theirs)[:300]}"
    return None


def main(program):
    tables = ask_ours(program, [{"type": "tables"}])[0]["result"]
    kinds = [kind for kind in tables if kind["kind"] not in FOREIGN]
    requests = [case(kind) for kind in kinds]
    ours = ask_ours(program, requests)
    with Scratch() as scratch, concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        theirs = list(pool.map(ask_kubectl, [scratch] * len(kinds), range(len(kinds)), requests))
    tap = Tap()
    for kind, our, their in zip(kinds, ours, theirs, strict=True):
        found = difference(our.get("result", our), their)
        tap.ok(not found, f"{kind['apiVersion']} {kind['kind']}", found)
    tap.done()


if __name__ == "__main__":
    main(sys.argv[1])
