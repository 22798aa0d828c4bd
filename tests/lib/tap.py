"""The little that test scripts share: TAP output, running programs, a scratch folder."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time


class Tap:
    """Counts and prints cases; done() ends the script with the right status."""

    def __init__(self):
        self.count = 0
        self.failed = 0

    def ok(self, passed, name, detail=""):
        self.count += 1
        if not passed:
            self.failed += 1
            for line in str(detail).splitlines():
                print("#", line)
        name = name.replace("#", "")  # it would start a directive
        print(f"{'ok' if passed else 'not ok'} {self.count} - {name}", flush=True)
        return passed

    def skip(self, name, why):
        """What cannot be tested here, and what it would take."""
        self.count += 1
        print(f"ok {self.count} - {name} # SKIP {why}", flush=True)

    def equal(self, got, expected, name):
        return self.ok(got == expected, name, f"expected: {expected!r}\n     got: {got!r}")

    def ran(self, result, name, status=0, stdout=None, stderr=None):
        """A program did, with these texts in what it wrote; returns the result."""
        passed = result.returncode == status
        passed &= stdout is None or stdout in result.stdout
        passed &= stderr is None or stderr in result.stderr
        self.ok(passed, name, f"exit status {result.returncode}\n{result.stdout}{result.stderr}")
        return result

    def done(self):
        print(f"1..{self.count}", flush=True)
        sys.exit(1 if self.failed else 0)


def run(*argv, stdin=None, timeout=120, env=None, cwd=None):
    """Runs a program to its end; the result has returncode, stdout and stderr as text."""
    return subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=timeout,
                          env=env, cwd=cwd, check=False)


def wait_for(condition, seconds=60):
    """Asks again until it holds; what it said last."""
    end = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return value


def json_values(text):
    """The values of a stream of JSON texts."""
    decoder, values, text = json.JSONDecoder(), [], text.lstrip()
    while text:
        value, end = decoder.raw_decode(text)
        values.append(value)
        text = text[end:].lstrip()
    return values


class Scratch:
    """A folder that is gone when the script ends, however it ends."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="orlop-test-")
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def file(self, name, text=None):
        path = os.path.join(self.path, name)
        if text is not None:
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        return path

    def kubectl_env(self):
        """An environment in which kubectl knows no cluster and keeps its caches here."""
        return {**os.environ, "HOME": self.path, "KUBECONFIG": "/dev/null"}
