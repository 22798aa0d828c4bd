#!/usr/bin/env python3
"""Validating 10,000 manifests: orlop validate against kubectl create --dry-run=client.

kubectl gets a server on loopback that tells it of the kind and that validation is the server's
business, so that it only reads, decodes and prints; orlop checks every rule.
"""
import os
import re
import sys

from measure import PROGRAMS, TOP
from report import Report, arguments, parse
from discovery import CSPC, Discovery  # noqa: I001
from tap import Scratch, run


def measure(*argv, env=None):
    """Seconds of wall clock, seconds of CPU, megabytes of memory."""
    result = run("time", "-f", "%e %U %S %M", *argv, env=env, timeout=600)
    if result.returncode:
        sys.exit(f"{argv[0]} failed: {result.stderr[:500]}")
    wall, user, system, memory = map(float, result.stderr.split("\n")[-2].split())
    return wall, user + system, memory / 1024


def main():
    args = parse(arguments(5, __doc__))
    documents = 1000 if args.quick else 10000
    with Report("validate", f"Validating {documents:,} CStorPoolClusters: orlop validate, kubectl create --dry-run=client",
                args, "kubectl", f"best of {args.rounds}") as report, Scratch() as scratch, Discovery([CSPC]) as server:
        with open(f"{TOP}/examples/cspc/mirror-two-nodes.yaml", encoding="utf-8") as f:
            one = re.sub("^#.*\n", "", f.read())
        stream = scratch.file("stream.yaml", "".join(
            "---\n" + one.replace("name: cstor-pool-mirror", f"name: pool-{i}") for i in range(documents)))
        ours, theirs = [], []
        for _ in range(args.rounds):
            ours.append(measure(f"{PROGRAMS}/orlop", "validate", stream))
            theirs.append(measure("kubectl", "--server", server.url, "create", "--dry-run=client",
                                  "-f", stream, env=scratch.kubectl_env()))
        own, peer = ([min(column) for column in zip(*runs)] for runs in (ours, theirs))
        size = os.path.getsize(stream) / 1e6
        report.row(f"{documents:,} manifests, {size:.1f} MB of YAML", size / own[0], "MB/s", size / peer[0], aim=">= 20",
                   seconds=own[0])
        report.row("processor time", own[1], "s", peer[1])
        report.row("memory", own[2], "MB", peer[2])


if __name__ == "__main__":
    main()
