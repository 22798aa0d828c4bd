"""A replicated volume for a test: a target and its replicas as processes, and faults for them.

Everything runs in a network of its own (namespaces.own_network()), where replica i reaches the target at
127.0.0.1I: so each can be cut off alone.
"""
import base64
import json
import os
import signal
import subprocess

from tap import run, wait_for

IQN = "iqn.2026-01.io.orlop:test"
PORTAL, REPLICA_PORT = 3260, 6060


def make_key(path):
    """A file with a new key of a volume; its name."""
    with open(path, "w", encoding="ascii") as f:
        f.write(base64.b64encode(os.urandom(32)).decode() + "\n")
    return path


class Process:
    """A program that is started, killed, frozen and started again; its log goes on."""

    def __init__(self, log, *argv):
        self.log, self.argv, self.process, self.frozen = log, argv, None, False

    def start(self):
        with open(self.log, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL,
                                            stdout=subprocess.DEVNULL, stderr=log)
        self.frozen = False
        return self

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def signal(self, number):
        if self.alive():
            self.process.send_signal(number)

    def freeze(self):
        self.signal(signal.SIGSTOP)
        self.frozen = True

    def thaw(self):
        self.signal(signal.SIGCONT)
        self.frozen = False

    def kill(self):
        if self.alive():
            self.process.kill()
        if self.process:
            self.process.wait()

    def stop(self):
        """In order; its exit status."""
        self.thaw()
        self.signal(signal.SIGTERM)
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def text(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()


class Volume:
    """programs: the folder with orlop, orlop-target and orlop-replica. With `with` all of it ends."""

    def __init__(self, programs, folder, replicas=3, size="64Mi", name="test", extra=(), stores=None, making=None):
        self.programs, self.folder, self.name, self.size = programs, folder, name, size
        self.control, self.extra, self.n = f"{folder}/t.sock", list(extra), replicas
        self.key = make_key(f"{folder}/key")
        self.target = self._target(*(making or ("--create", "--replicas", str(replicas), "--size", size)))
        self.making, self.stores = self.target.argv, stores or {}
        for i in self.stores:  # a store that is named is there, and blank
            os.makedirs(f"{folder}/r{i}", exist_ok=True)
            with open(self.data(i), "wb") as f:
                f.truncate(4096)
        self.replicas = [self.replica(i, self.stores.get(i)) for i in range(replicas)]
        self.url = f"iscsi://127.0.0.1:{PORTAL}/{IQN}/0"

    def _target(self, *words):
        return Process(f"{self.folder}/target.log", f"{self.programs}/orlop-target", "target", "serve",
                       "--volume", self.name, "--iqn", IQN, "--portal", f"127.0.0.1:{PORTAL}",
                       "--replica-listen", f"0.0.0.0:{REPLICA_PORT}", "--key-file", self.key, "--control", self.control,
                       "--drain-seconds", "1", *words, *self.extra)

    def replica(self, i, store=None):
        words = ["--store", store] if store else []
        return Process(f"{self.folder}/r{i}.log", f"{self.programs}/orlop-replica", "replica", "serve",
                       "--dir", f"{self.folder}/r{i}", "--volume", self.name, "--target",
                       f"127.0.0.1{i}:{REPLICA_PORT}", "--key-file", self.key, *words)

    def data(self, i):
        return f"{self.folder}/r{i}/data"

    def start(self):
        for process in [self.target, *self.replicas]:
            if not process.alive():
                process.start()
        if not wait_for(lambda: (self.status() or {}).get("ready"), 30):
            raise RuntimeError("no volume: " + self.target.text())
        self.target.argv = self._target().argv  # it is made: from now on it is found
        return self

    def status(self):
        """What the target says of itself; None while it does not answer."""
        result = run(f"{self.programs}/orlop-target", "target", "show", "--control", self.control, "-o",
                     "json", timeout=60)
        return json.loads(result.stdout) if result.returncode == 0 else None

    def modes(self):
        status = self.status()
        return [r["mode"] for r in status["volumeStatus"][0]["replicaStatus"]] if status else []

    def healthy(self, seconds=60):
        return wait_for(lambda: (m := self.modes()) and len(m) == self.n and set(m) == {"Healthy"}, seconds)

    def written(self, n):
        """Waits until the target has done n more writes."""
        def done():
            return ((self.status() or {}).get("statistics") or {}).get("writes", {}).get("count", 0)
        before = done()
        wait_for(lambda: done() >= before + n)

    def bench(self, *words, wait=True):
        argv = [f"{self.programs}/orlop-bench", "bench", "iscsi", self.url, "-o", "json", *words]
        # libiscsi forgets some memory when it connects anew: that is not what is tested here.
        env = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
        if wait:
            return run(*argv, timeout=600, env=env)
        return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)

    def cut(self, i, both=True):
        """Nothing passes between the target and replica i; both=False: only nothing to the target."""
        rules = "table ip cut { chain in { type filter hook input priority 0; }; };"
        run("nft", rules)
        run("nft", "add", "rule", "ip", "cut", "in", "ip", "daddr", f"127.0.0.1{i}", "drop")
        if both:
            run("nft", "add", "rule", "ip", "cut", "in", "ip", "saddr", f"127.0.0.1{i}", "drop")

    @staticmethod
    def heal():
        run("nft", "delete", "table", "ip", "cut")

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        self.heal()
        for process in [self.target, *self.replicas]:
            process.kill()
        if os.path.exists(self.control):
            os.unlink(self.control)
