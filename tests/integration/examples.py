#!/usr/bin/env python3
"""The manifests in examples/ are valid, their edits are allowed, and both forms mean the same.

examples.py ORLOP EXAMPLES
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from tap import Scratch, Tap, json_values, run  # noqa: E402

orlop, examples = sys.argv[1:3]
tap = Tap()


def convert(form, *paths):
    result = run(orlop, "convert", "--to", form, "-o", "json", *paths)
    assert result.returncode == 0, result.stderr
    return json_values(result.stdout)


result = run(orlop, "validate", examples)
tap.ok(result.returncode == 0 and "valid" in result.stdout, "every example is valid",
       result.stdout + result.stderr)

for folder, _, files in sorted(os.walk(examples)):
    name = os.path.relpath(folder, examples)
    if "before.yaml" in files:
        result = run(orlop, "validate", "--old", f"{folder}/before.yaml", f"{folder}/after.yaml")
        tap.ok(result.returncode == 0, f"{name}: the edit is allowed", result.stderr)
    for file in sorted(files):
        path = f"{folder}/{file}"
        with Scratch() as scratch:
            seed = convert("seed", path)
            published = scratch.file("published.json", "\n".join(map(json.dumps,
                                                                    convert("published", path))))
            again = convert("seed", published)
            for objects in (seed, again):  # what the published form does not know
                for o in objects:
                    for pool in o.get("spec", {}).get("pools", [o.get("spec", {})]):
                        config = pool.get("poolConfig", {})
                        kind = config.pop("defaultRaidGroupType", None)
                        config.pop("cacheFile", None)
                        config["overProvisioning"] = config.get("overProvisioning", False)
                        for group in pool.get("raidGroups", []):
                            group.setdefault("type", kind)
                            group.pop("name", None)
                            for role in ("isWriteCache", "isSpare", "isReadCache"):
                                if not group.get(role):
                                    group.pop(role, None)
            tap.equal(again, seed, f"{name}/{file}: there and back again")
tap.done()
