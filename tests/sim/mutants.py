#!/usr/bin/env python3
"""Builds the replication core without each of its guards in turn; the simulator must notice every one.

mutants.py TOP [--quick] [N...]     --quick: a few that are found soon
"""
import os
import re
import subprocess
import sys
import tempfile

QUICK = [1, 3, 17]
SEEDS = "1..2000"


def guards(top):
    found = set()
    folder = os.path.join(top, "src/repl")
    for name in sorted(os.listdir(folder)):
        if name.endswith(".c"):
            with open(os.path.join(folder, name), encoding="utf-8") as source:
                found.update(int(n) for n in re.findall(r"GUARD\((\d+),", source.read()))
    return sorted(found)


def build(top, out, mutant):
    repl = os.path.join(top, "src/repl")
    sim = os.path.join(top, "tests/sim")
    base = os.path.join(top, "src/base")
    sources = [os.path.join(folder, name) for folder in (repl, sim)
               for name in sorted(os.listdir(folder)) if name.endswith(".c")]
    sources += [os.path.join(base, name + ".c") for name in ("crc", "err", "mem", "str", "uuid")]
    subprocess.run(["cc", "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-w", "-fno-strict-aliasing",
                    "-I" + os.path.join(top, "src"), "-I" + sim, f"-DREPL_MUTATE={mutant}",
                    *sources, "-lisal", "-o", out], check=True)


def main():
    top, options = sys.argv[1], sys.argv[2:]
    chosen = [int(n) for n in options if n.isdigit()] or guards(top)
    if "--quick" in options:
        chosen = QUICK
    print(f"1..{len(chosen)}", flush=True)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for i, mutant in enumerate(chosen, 1):
            program = os.path.join(folder, "sim")
            build(top, program, mutant)
            run = subprocess.run([program, "--seeds", SEEDS, "--until-failure"], text=True,
                                 capture_output=True, timeout=900)
            # A mutant that crashes or hangs is found, too.
            noticed = run.returncode != 1
            why = (run.stdout.strip().splitlines() or [f"exit {run.returncode}"])[0]
            print(f"{'ok' if noticed else 'not ok'} {i} - guard {mutant}: "
                  f"{why if noticed else 'not noticed in ' + SEEDS}", flush=True)
            failed += not noticed
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
