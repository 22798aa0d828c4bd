#!/usr/bin/env python3
"""The documents tell the truth: each command in a `console` block prints what the block shows, and
each link to a file of the tree leads somewhere.

documents.py ORLOP TOP
"""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from tap import Tap, run  # noqa: E402

orlop, top = os.path.abspath(sys.argv[1]), sys.argv[2]
tap = Tap()
files = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
                       cwd=top, capture_output=True, text=True, check=False).stdout.split()
if not files:  # not a checkout
    files = [os.path.relpath(os.path.join(f, n), top) for f, _, names in os.walk(top)
             for n in names if n.endswith(".md") and "/build/" not in f + "/"]

for file in sorted(files):
    with open(os.path.join(top, file), encoding="utf-8") as f:
        text = f.read()
    for block in re.findall(r"^```console\n(.*?)^```", text, re.M | re.S):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, shown = part.partition("\n")
            result = run("bash", "-c", command.replace("build/bin/orlop", orlop) + " 2>&1", cwd=top)
            tap.equal(result.stdout, shown, f"{file}: {command}")
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        path = os.path.normpath(os.path.join(top, os.path.dirname(file), target))
        tap.ok(os.path.exists(path), f"{file}: {target} is there")
tap.done()
