#!/usr/bin/env python3
"""Plants one fault after another in the replication core; the simulator must notice each of them.

mutants.py TOP [--quick] [-j N] [N...]     --quick: a few that are found soon

Faults are GUARD(n, ...) and MUTANT(n, ...) in src/repl. One program has them all and is told which one to have. First it
runs with none: a simulator that complains of a sound core, hangs or cannot be started would seem to notice everything.
"""
import concurrent.futures
import os
import re
import signal
import subprocess
import sys
import tempfile

QUICK = [1, 3, 17, 34, 35, 36, 101, 102]
SEEDS = 2000
CONTROL = 200  # lives without a fault; the simulator's own tests have many more
TIMEOUT = 900


def numbers(top):
    found = set()
    folder = os.path.join(top, "src/repl")
    for name in sorted(os.listdir(folder)):
        if name.endswith(".c"):
            with open(os.path.join(folder, name), encoding="utf-8") as source:
                found.update(int(n) for n in re.findall(r"\b(?:GUARD|MUTANT)\((\d+),",
                                                        source.read()))
    return sorted(found)


def build(top, out):
    repl = os.path.join(top, "src/repl")
    sim = os.path.join(top, "tests/sim")
    base = os.path.join(top, "src/base")
    sources = [os.path.join(folder, name) for folder in (repl, sim)
               for name in sorted(os.listdir(folder)) if name.endswith(".c")]
    sources += [os.path.join(base, name + ".c") for name in ("crc", "err", "mem", "str", "uuid")]
    subprocess.run(["cc", "-std=gnu17", "-D_GNU_SOURCE", "-O2", "-w", "-fno-strict-aliasing",
                    "-I" + os.path.join(top, "src"), "-I" + sim, "-DREPL_MUTATE",
                    *sources, "-lisal", "-o", out], check=True)


def run(program, mutant, seeds):
    """Whether a failure was found, None if the simulator did not do its work; and what it was."""
    try:
        ended = subprocess.run([program, "--mutant", str(mutant), "--seeds", f"1..{seeds}",
                                "--until-failure"], text=True, capture_output=True,
                               timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        return True, f"hang: no end after {TIMEOUT} s"
    lines = ended.stdout.strip().splitlines()
    if ended.returncode == 0:
        return False, f"not noticed in {seeds} seeds"
    if ended.returncode == 1 and lines and re.match(r"seed \d+: ", lines[0]):
        return True, lines[0]
    if ended.returncode < 0:
        return True, f"killed by {signal.Signals(-ended.returncode).name}"
    return None, f"exit {ended.returncode}: {ended.stderr.strip()}"


def main():
    top, options = sys.argv[1], sys.argv[2:]
    jobs = 1
    if "-j" in options:
        at = options.index("-j")
        jobs = int(options[at + 1])
        del options[at:at + 2]
    known = numbers(top)
    chosen = [int(n) for n in options if n.isdigit()] or known
    if "--quick" in options:
        chosen = QUICK
    missing = [n for n in chosen if n not in known]
    print(f"1..{len(chosen) + 1}", flush=True)
    if missing:
        print(f"Bail out! no such fault in src/repl: {missing}")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "sim")
        build(top, program)
        noticed, why = run(program, 0, CONTROL)
        if noticed is not False:
            print(f"not ok 1 - no fault: {why}\nBail out! the simulator fails without a fault")
            return 1
        print("ok 1 - no fault: nothing to notice", flush=True)
        failed = 0
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            results = pool.map(lambda n: run(program, n, SEEDS), chosen)
            for i, (mutant, (noticed, why)) in enumerate(zip(chosen, results), 2):
                print(f"{'ok' if noticed else 'not ok'} {i} - fault {mutant}: {why}", flush=True)
                failed += not noticed
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
