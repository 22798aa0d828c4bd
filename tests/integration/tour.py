#!/usr/bin/env python3
"""The README's tour, as a reader types it: every `sh` block below "Five minutes", in one shell and one system.

The claim of its second step may take a disk of any node. Here it takes one of node-1, whose disks a later step
uses: what works then works always.

tour.py ORLOP TOP
"""
import os
import re
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from system import processes  # noqa: E402
from tap import Scratch, Tap, run  # noqa: E402

SECONDS = 500
orlop, top = os.path.abspath(sys.argv[1]), sys.argv[2]
tap = Tap()


def blocks():
    with open(os.path.join(top, "README.md"), encoding="utf-8") as file:
        section = file.read().split("\n## Five minutes\n")[1].split("\n## ")[0]
    return re.findall(r"^```sh\n(.*?)^```", section, re.M | re.S)


def make_script(parts, scratch):
    """The blocks, with our program and folder, each followed by a line that says that it passed."""
    lines, claim = ["set -e -o pipefail"], "examples/devices/claim.yaml"
    with open(os.path.join(top, claim), encoding="utf-8") as file:
        on_node_1 = scratch.file("claim.yaml", file.read().replace("spec:\n", "spec:\n  hostName: node-1\n"))
    for i, block in enumerate(parts):
        block = block.replace("build/bin/orlop", orlop).replace("/tmp/orlop", folder)
        block = block.replace(claim, on_node_1)
        lines += [block.replace("--detach", "--detach --listen 127.0.0.1:0"), f"echo '=== {i}'"]
    return "\n".join(lines)


with Scratch() as scratch:
    folder = scratch.file("data")
    parts = blocks()
    tap.ok(len(parts) >= 7 and "orlop up" in parts[0] and "orlop down" in parts[-1],
           "README has a tour from `orlop up` to `orlop down`", parts)
    shell = subprocess.Popen(["bash", "-c", make_script(parts, scratch)], cwd=top, text=True, start_new_session=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                             env={**os.environ, "HOME": scratch.path})
    try:
        try:
            said = shell.communicate(timeout=SECONDS)[0]
        except subprocess.TimeoutExpired:
            os.killpg(shell.pid, signal.SIGKILL)
            said = shell.communicate()[0] + f"\n(not done in {SECONDS} s)"
        for i, block in enumerate(parts):
            before, found, said = said.partition(f"=== {i}\n")
            name = block.split("\n")[0].split("#")[0].strip()
            if not tap.ok(found, f"README's tour, block {i + 1}: {name}", before):
                break
            if "pool show" in block:
                tap.ok("1 of 1 pools online" in before, "README's tour: the pool is online", before)
            if "kubectl logs" in block:
                tap.ok("hello from" in before, "README's tour: a Pod has said hello", before)
        tap.equal(shell.returncode, 0, "README's tour ends well")
        tap.equal(processes(folder), {}, "README's tour leaves no process behind")
    finally:
        run(orlop, "down", "--data", folder, "--force")
        for pid in processes(folder):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
tap.done()
