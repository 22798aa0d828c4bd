#!/usr/bin/env python3
"""Validating 10,000 manifests: orlop validate against kubectl create --dry-run=client.

kubectl gets a server on loopback that tells it of the kind and that validation is the server's
business, so that it only reads, decodes and prints; orlop checks every rule.
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from discovery import CSPC, Discovery  # noqa: E402
from tap import Scratch, run  # noqa: E402

TOP = os.path.join(os.path.dirname(__file__), "..", "..")
DOCUMENTS, ROUNDS = 10000, 5


def measure(*argv, env=None):
    """Seconds of wall clock, seconds of CPU, megabytes of memory."""
    result = run("time", "-f", "%e %U %S %M", *argv, env=env, timeout=600)
    if result.returncode:
        sys.exit(f"{argv[0]} failed: {result.stderr[:500]}")
    wall, user, system, memory = map(float, result.stderr.split("\n")[-2].split())
    return wall, user + system, memory / 1024


with Scratch() as scratch, Discovery([CSPC]) as server:
    with open(f"{TOP}/examples/cspc/mirror-two-nodes.yaml", encoding="utf-8") as f:
        one = re.sub("^#.*\n", "", f.read())
    stream = scratch.file("stream.yaml", "".join(
        "---\n" + one.replace("name: cstor-pool-mirror", f"name: pool-{i}")
        for i in range(DOCUMENTS)))
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(measure(f"{TOP}/build/bin/orlop", "validate", stream))
        theirs.append(measure("kubectl", "--server", server.url, "create", "--dry-run=client",
                              "-f", stream, env=scratch.kubectl_env()))
    size = os.path.getsize(stream) / 1e6
    print(f"validate {DOCUMENTS} CStorPoolClusters, {size:.1f} MB of YAML, best of {ROUNDS}")
    for name, runs in (("orlop validate", ours), ("kubectl create --dry-run=client", theirs)):
        wall, cpu, memory = (min(column) for column in zip(*runs))
        print(f"  {name:32} {wall:6.2f} s  {cpu:6.2f} s CPU  {memory:6.1f} MB")
    ratios = [min(column) for column in zip(*theirs)], [min(column) for column in zip(*ours)]
    print("  ratio: {:.1f}x faster, {:.1f}x less CPU, {:.1f}x less memory".format(
        *(a / b for a, b in zip(*ratios))))
