"""Volumes that `orlop attach` makes block devices of, for tests."""
import json
import os
import subprocess

from iscsi_target import IQN
from tap import run


class Node:
    """The folder in which a node keeps what is attached."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder

    def ask(self, verb, *flags, timeout=60):
        return run(self.program, "attach", verb, "--dir", self.folder, *flags, timeout=timeout)

    def add(self, volume, target, *flags, iqn=IQN):
        return self.ask("add", "--id", volume, "--portal", f"127.0.0.1:{target.port}", "--iqn", iqn, *flags)

    def show(self, volume):
        result = self.ask("show", "--id", volume, "-o", "json")
        return json.loads(result.stdout) if result.returncode == 0 else {}

    def process(self, volume):
        return self.show(volume).get("process", {})

    def list(self):
        return json.loads(self.ask("list", "-o", "json").stdout)

    def clear(self):
        """Whatever a test that failed has left."""
        for volume in self.list():
            if volume["id"]:
                self.ask("remove", "--id", volume["id"], "--force")

    def left(self):
        """What there is of this folder on the machine, which is nothing once all is removed."""
        with open("/proc/self/mounts", encoding="utf-8") as mounts:
            found = [line.split()[1] for line in mounts if self.folder in line]
        found += [line for line in run("losetup", "-a").stdout.splitlines() if self.folder in line]
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
                    words = file.read().split("\0")
                if self.folder in " ".join(words) and "serve" in words:
                    found.append(" ".join(words))
            except OSError:
                pass
        return found + self.list()


def size_of(device):
    return int(run("blockdev", "--getsize64", device).stdout or 0)


def forget(device):
    """What is read next comes from the volume."""
    run("blockdev", "--flushbufs", device)


class Mounted:
    """A file system on a device, in `with`."""

    def __init__(self, device, folder):
        self.device, self.folder = device, folder

    def __enter__(self):
        os.makedirs(self.folder, exist_ok=True)
        subprocess.run(["mount", self.device, self.folder], check=True, timeout=60)
        return self.folder

    def __exit__(self, *_):
        subprocess.run(["umount", self.folder], check=False, timeout=60)
