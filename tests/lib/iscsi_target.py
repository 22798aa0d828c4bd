"""An orlop-target that runs, for tests that are initiators."""
import json
import os
import signal
import subprocess

from replicated import make_key
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

    def _said(self, what):
        """The line of the log that says this, or that the program has ended."""
        with open(self.log, encoding="utf-8") as log:
            for line in log:
                if line.startswith("{") and line.endswith("\n"):
                    said = json.loads(line)
                    if said["msg"] == what:
                        return said
        return self.process.poll() is not None

    def _await(self, what):
        said = wait_for(lambda: self._said(what), 60)
        if not isinstance(said, dict):
            raise RuntimeError("the target did not start:\n" + self.said())
        return said

    def _place(self):
        """Where the data is."""
        return ["--store", self.store]

    def start(self):
        os.makedirs(os.path.join(self.folder, "state"), exist_ok=True)
        argv = [self.program, "target", "serve", *self._place(), "--iqn", IQN,
                "--portal", f"127.0.0.1:{self.port}", "--state-dir",
                os.path.join(self.folder, "state"), "--log-format", "json", *self.flags]
        if self.size:
            argv += ["--size", self.size]
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(argv, stderr=log, stdout=log)
        self._started()
        self.port = self._await("target serves")["port"]
        return self

    def _started(self):
        """The process runs; what it needs besides."""

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


class ReplicatedTarget(Target):
    """The same with a volume of several replicas, each a process with a folder of its own."""

    def __init__(self, program, folder, replicas, size="64Mi", flags=()):
        super().__init__(program, folder, None, size, flags)
        self.replicas, self.keepers, self.key = replicas, [], make_key(f"{folder}/key")

    def _place(self):
        return ["--volume", "test", "--create", "--replicas", str(self.replicas), "--replica-listen", "127.0.0.1:0",
                "--key-file", self.key]

    def _started(self):
        port = self._await("target waits for replicas")["port"]
        for i in range(self.replicas):
            with open(f"{self.folder}/r{i}.log", "w", encoding="utf-8") as log:
                self.keepers.append(subprocess.Popen(
                    [os.path.join(os.path.dirname(self.program), "orlop-replica"), "replica", "serve", "--dir",
                     f"{self.folder}/r{i}", "--volume", "test", "--target", f"127.0.0.1:{port}", "--key-file", self.key],
                    stdout=log, stderr=log))

    def stop(self, how=signal.SIGTERM):
        status = super().stop(how)
        for keeper in self.keepers:
            keeper.kill()
            keeper.wait()
        self.keepers = []
        return status
