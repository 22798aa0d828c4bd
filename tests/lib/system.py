"""A whole system for a test, as `orlop up` runs it: starts, is stopped, leaves nothing behind."""
import json
import os
import signal
import subprocess

from tap import run, wait_for

READY_SECONDS = 120
HOST = {"orlop.io/host-process": "true"}


def processes(folder):
    """Those that have the folder in their words or in their environment: pid -> words."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as words, open(f"/proc/{pid}/environ", "rb") as env:
                line, text = words.read(), env.read()
        except OSError:
            continue
        if int(pid) != os.getpid() and (folder.encode() in line or folder.encode() in text):
            found[int(pid)] = line.replace(b"\0", b" ").decode(errors="replace").strip()
    return found


class System:
    """`orlop up` in the foreground; with `with`, ended at the end."""

    def __init__(self, orlop, folder, *flags):
        self.orlop, self.folder, self.flags = orlop, folder, flags
        self.process, self.first = None, ""
        self.said = os.path.join(os.path.dirname(folder), os.path.basename(folder) + ".said")

    def start(self):
        with open(self.said, "a", encoding="utf-8") as errors:
            self.process = subprocess.Popen(
                [self.orlop, "up", "--data", self.folder, "--listen", "127.0.0.1:0", *self.flags],
                stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL, text=True)
        self.first = self.process.stdout.readline()
        if not self.first:
            raise RuntimeError(f"orlop up did not start: {self.process.wait()}\n{self.errors()}")
        return self

    def errors(self):
        with open(self.said, encoding="utf-8") as file:
            return file.read()

    def stop(self, signum=signal.SIGINT):
        if self.process is None:
            return None
        self.process.send_signal(signum)
        try:
            status = self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        self.process.stdout.close()
        self.process = None
        return status

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()
        for pid in processes(self.folder):  # what a failed test has left
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def kubectl(self, *words, stdin=None, timeout=120):
        env = {**os.environ, "KUBECONFIG": f"{self.folder}/kubeconfig"}
        return run("kubectl", *words, stdin=stdin, timeout=timeout, env=env)

    def get(self, *words):
        """Objects of `kubectl get`, or [] while the server is away."""
        result = self.kubectl("get", *words, "-o", "json")
        value = json.loads(result.stdout) if result.returncode == 0 and result.stdout else {}
        return value.get("items", [value] if value else [])

    def status(self):
        return json.loads(run(self.orlop, "status", "--data", self.folder, "-o", "json").stdout)

    def pid(self, name):
        return next((p["pid"] for p in self.status()["programs"] if p["name"] == name), 0)

    def kill(self, name):
        """kill -9 of one of its programs, once it runs."""
        pid = wait_for(lambda: self.pid(name))
        os.kill(pid, signal.SIGKILL)
        return pid
