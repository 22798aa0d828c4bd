#!/usr/bin/env python3
"""Every manifest in tests/data/bad is refused with exactly the message that stands beside it.

bad-manifests.py ORLOP FOLDER            compare
bad-manifests.py ORLOP FOLDER --update   write the messages anew, to be read before they are kept
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from tap import Tap, run  # noqa: E402

orlop, folder = os.path.abspath(sys.argv[1]), sys.argv[2]
update = "--update" in sys.argv
tap = Tap()

for name in sorted(os.listdir(folder)):
    base, ending = os.path.splitext(name)
    if ending not in (".yaml", ".json") or base.endswith(".old"):
        continue
    old = ["--old", base + ".old.yaml"] if os.path.exists(f"{folder}/{base}.old.yaml") else []
    result = run(orlop, "validate", *old, name, cwd=folder)
    expected_file = f"{folder}/{base}.expected"
    if update:
        with open(expected_file, "w", encoding="utf-8") as f:
            f.write(result.stderr)
    expected = ""
    if os.path.exists(expected_file):
        with open(expected_file, encoding="utf-8") as f:
            expected = f.read()
    first = result.stderr.split("\n")[0]
    problem = None
    if result.returncode != 1:
        problem = f"exit status {result.returncode}\n{result.stderr}"
    elif result.stdout:
        problem = f"stdout is not empty: {result.stdout}"
    elif not re.match(rf"{re.escape(name)}:[1-9]\d*:[1-9]\d*: (error|warning): ", first):
        problem = f"no file:line:column: {first}"
    elif result.stderr != expected:
        problem = f"expected:\n{expected}\ngot:\n{result.stderr}"
    tap.ok(problem is None, base, problem or "")
tap.done()
