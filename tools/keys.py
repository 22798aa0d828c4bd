#!/usr/bin/env python3
"""Checks that each literal key by which storage code looks into JSON is a field of some table.

keys.py [TOP]     prints each key that is not, with the nearest that is; exits 1 when there is one

A key counts where json_at(), json_str(), json_text(), json_object_get(), json_object_at(),
json_array_at(), json_object_set(), json_object_set_new() or json_object_del() has it, and in json_pack(). Keys with a slash are labels and annotations. What is
no object of the API, and so in no table, is named below.
"""
import difflib
import os
import re
import sys

TABLES = ("src/kinds", "src/api", "src/k8s/kinds", "src/k8s/messages")
# JSON that is no object of the API.
NOT_CHECKED = {
    "src/k8s/": "it knows no kind of ours",
    "src/json/": "patches",
    "src/api/openapi": "words of JSON Schema",
    "src/api/crd": "the same",
    "src/lvm/": "reports of lvm, and the file of device classes",
    "src/target/": "the control socket of a target",
    "src/attach/": "the control socket of an attached volume, and its request on disk",
    "src/bench/": "results of a measurement",
    "src/up/": "the state of programs, and bootstrap tokens",
    "src/node/join": "a kubeconfig",
    "src/ctl/validate": "findings, as they are printed",
}
# Keys that are in no table: where, which, and why.
ALLOWED = (
    ("src/kube/", "continue dryRun gracePeriodSeconds object preconditions propagationPolicy",
     "what is sent around objects: options, lists, events of a watch"),
    ("src/admission/", "causes dryRun field matchConditions response subResource warnings",
     "AdmissionReviews, and Kubernetes' configuration of webhooks"),
    ("src/api/convert", "blockDevice blockDeviceList poolSpec poolType", "StoragePoolClaims"),
    ("src/node/machine", "cpu ephemeral-storage memory pods", "keys of a map of resources"),
    ("src/node/heartbeat", "lastHeartbeatTime", "of a condition of Nodes alone"),
    ("src/node/lv_ src/controllers/topolvm/ src/ctl/lv_ src/ctl/forget",
     "at before by finding force freeBytes lv node owner until vg", "our annotations of volumes"),
    ("src/pool/", "Available replaced", "reports of the engine"),
    ("src/controllers/", "account chap cluster direct monitored mounts", "values of the templates of children"),
    ("src/kube/child", "manager op", "managedFields, and a JSON patch of them"),
    ("src/kube/template", "$items $when", "words of such templates"),
    ("src/controllers/", "app serviceAccountToken sources", "a label, and volumes of pods"),
    ("src/sidecar/ src/controllers/volume/ src/ctl/volume",
     "chap consistency discovery doing force guests initiator instead portal rebuildSecondsLeft sessions "
     "volumeStatus voter", "the control socket of a target"),
)
FIELD = re.compile(r'\{\s*"([^"]+)",\s*API_')
ALIASES = re.compile(r"API_ALIASES\(([^)]*)\)")
CALL = re.compile(r"\bjson_(at|str|text|object_get|object_at|array_at|object_set|object_set_new|object_del|pack)\(")
LITERAL = re.compile(r'"([^"]*)"')


def sources(top, folders):
    for start in folders:
        for folder, _, files in sorted(os.walk(os.path.join(top, start))):
            for file in sorted(files):
                if file.endswith((".c", ".h")):
                    path = os.path.join(folder, file)
                    with open(path, encoding="utf-8") as source:
                        yield os.path.relpath(path, top).replace(os.sep, "/"), source.read()


def arguments(text, at):
    """The arguments of a call whose parenthesis ends at `at`, each with its place."""
    found, depth, start = [], 1, at
    for token in re.finditer(r'"(?:\\.|[^"\\])*"|[(\[{}\]),]', text[at:]):
        place = at + token.start()
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(token[0], 0)
        if depth == 0 or (depth == 1 and token[0] == ","):
            found.append((start, text[start:place]))
            start = place + 1
        if depth == 0:
            return found
    return found


def packed(form, values):
    """The arguments of json_pack() that are keys, by its format."""
    inside, key = [], False
    for letter in form:
        if letter in "{[":
            inside.append(letter)
            key = letter == "{"
        elif letter in "}]":
            inside.pop()
            key = inside[-1:] == ["{"]
        elif letter in "sbiIfoOn":
            value = None if letter == "n" else next(values, None)
            if key and value:
                yield value
            key = inside[-1:] == ["{"] and not key


def keys(text):
    for call in CALL.finditer(text):
        first, *rest = arguments(text, call.end())
        if call[1] == "pack":
            rest = packed("".join(LITERAL.findall(first[1])), iter(rest))
        for place, argument in rest if call[1] in ("at", "pack") else rest[:1]:
            for literal in [] if "(" in argument else LITERAL.findall(argument):
                line = text.count("\n", 0, place + len(argument) - len(argument.lstrip())) + 1
                yield line, literal


def violations(top):
    known = set()
    for _, text in sources(top, TABLES):
        known.update(FIELD.findall(text))
        for names in ALIASES.findall(text):
            known.update(LITERAL.findall(names))
    for path, text in sources(top, ("src",)):
        if path.startswith(tuple(NOT_CHECKED)):
            continue
        allowed = {key for where, names, _ in ALLOWED if path.startswith(tuple(where.split()))
                   for key in names.split()}
        for line, key in keys(text):
            if key not in known | allowed and "/" not in key:
                near = difflib.get_close_matches(key, known | allowed, 1)
                yield f"{path}:{line}: no table has \"{key}\"" + (
                    f"; is it \"{near[0]}\"?" if near else "; if it is ours, name it in tools/keys.py")


def main():
    found = list(violations(sys.argv[1] if len(sys.argv) > 1 else
                            os.path.join(os.path.dirname(__file__), "..")))
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
