"""An orlop-target that runs, for tests that are initiators."""
import json
import os
import signal
import subprocess

from tap import wait_for

IQN = "iqn.2026-01.io.orlop:test"


class Target:
    """Serves a store on a port of its own until it is left."""

    def __init__(self, program, folder, store="mem:", size="64Mi", flags=()):
        self.program, self.folder, self.store, self.size = program, folder, store, size
        self.flags = list(flags)
        self.log = os.path.join(folder, "target.log")
        self.process = None
        self.port = 0

    def _served(self):
        """The line that says where, or that the program has ended."""
        with open(self.log, encoding="utf-8") as log:
            for line in log:
                if line.startswith("{") and line.endswith("\n"):
                    said = json.loads(line)
                    if said["msg"] == "target serves":
                        return said
        return self.process.poll() is not None

    def start(self):
        os.makedirs(os.path.join(self.folder, "state"), exist_ok=True)
        argv = [self.program, "target", "serve", "--store", self.store, "--iqn", IQN,
                "--portal", f"127.0.0.1:{self.port}", "--state-dir",
                os.path.join(self.folder, "state"), "--log-format", "json", *self.flags]
        if self.size:
            argv += ["--size", self.size]
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(argv, stderr=log, stdout=log)
        served = wait_for(self._served, 30)
        if not isinstance(served, dict):
            raise RuntimeError("the target did not start:\n" + self.said())
        self.port = served["port"]
        return self

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as log:
            return log.read()

    def url(self, query=""):
        return f"iscsi://127.0.0.1:{self.port}/{IQN}/0{query}"

    def alive(self):
        return self.process.poll() is None

    def stop(self, how=signal.SIGTERM):
        """Ends it; its exit status."""
        if self.alive():
            self.process.send_signal(how)
        try:
            return self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop(signal.SIGKILL)
