#!/usr/bin/env python3
"""tools/tally.py over what meson reports of a small project: whatever goes wrong is counted, once.

tally.py TOOLS
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from tap import Scratch, Tap, run  # noqa: E402

tally = os.path.join(sys.argv[1], "tally.py")
tap = Tap()

# name: (protocol, script, what is counted: passed, failed, skipped)
TESTS = {
    "good": ("tap", "echo 1..3; echo ok 1; echo ok 2; echo ok 3 '# skip'", (2, 0, 1)),
    "one-bad": ("tap", "echo 1..2; echo ok 1; echo not ok 2; exit 1", (1, 1, 0)),
    "dies": ("tap", "echo 1..2; echo ok 1; kill -9 $$", (1, 1, 0)),
    "short": ("tap", "echo 1..2; echo ok 1", (1, 1, 0)),
    "hangs-in-case": ("tap", "echo 1..2; echo ok 1; exec sleep 1000", (1, 1, 0)),
    "plain": ("exitcode", "exit 0", (1, 0, 0)),
    "plain-bad": ("exitcode", "exit 1", (0, 1, 0)),
    "plain-hangs": ("exitcode", "exec sleep 1000", (0, 1, 0)),
    "plain-skipped": ("exitcode", "exit 77", (0, 0, 1)),
}


def last_line(*argv):
    result = run(sys.executable, tally, *argv)
    return result.returncode, result.stdout.splitlines()


def wanted(counts):
    passed, failed, skipped = counts
    return f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else "")


with Scratch() as s:
    lines = ["project('small')", "sh = find_program('sh')"]
    for name, (protocol, script, _) in TESTS.items():
        script = s.file(name + ".sh", script + "\n")
        timeout = 2 if "hangs" in name else 60
        lines.append(f"test('{name}', sh, args: '{script}', protocol: '{protocol}', "
                     f"timeout: {timeout})")
    s.file("meson.build", "\n".join(lines) + "\n")
    build = s.file("build")
    logs = s.file("build/meson-logs")
    setup = run("meson", "setup", build, s.path)
    tap.ok(setup.returncode == 0, "a project to test", setup.stdout + setup.stderr)

    for name, (_, _, counts) in TESTS.items():
        status = run("meson", "test", "-C", build, "--no-rebuild", name).returncode
        code, output = last_line(str(status), logs)
        tap.equal((code, output[-1]), (1 if counts[1] else 0, wanted(counts)), name)
        tap.equal([name in line for line in output[:-1]], counts[1] * [True], name + ": the lines")

    status = run("meson", "test", "-C", build, "--no-rebuild").returncode
    code, output = last_line(str(status), logs)
    total = tuple(map(sum, zip(*(counts for _, _, counts in TESTS.values()))))
    tap.equal((code, output[-1]), (1, wanted(total)), "all together")

    run("meson", "test", "-C", build, "--no-rebuild", "good")
    code, output = last_line("1", logs)
    tap.equal((code, output[-1]), (1, "2 passed, 1 failed, 1 skipped"), "a status counts by itself")
    code, output = last_line("0", logs, s.file("missing/meson-logs"))
    tap.equal((code, output[-1]), (1, "2 passed, 1 failed, 1 skipped"), "a missing report counts")
    for name in ("testlog.junit.xml", "testlog.json"):
        with open(os.path.join(logs, name), "w", encoding="utf-8") as f:
            f.write("{")
        code, output = last_line("0", logs)
        tap.equal((code, output[-1]), (1, "0 passed, 1 failed"), name + " that is cut short counts")

tap.done()
