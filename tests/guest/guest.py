#!/usr/bin/env python3
"""A Linux kernel of its own for a test: user-mode Linux (Debian's user-mode-linux), an ordinary process.

For what the machine's kernel may not have: device-mapper, the iSCSI initiator, network emulation. The
guest has the machine's own root folder, read-only, under an overlay in memory: every program and library
of the machine and of the build tree is there, everything can be written, and nothing of it stays. One
folder of the machine is mounted at /out, read-write: that is how results come back.

As a module, in a test:

    guest.own_network()                    # once, first: this process leaves for a network of its own
    g = guest.Guest(scratch.path, disks=["a.img"], modules=["dm-mod"])
    result = g.run("tests/guest/x.sh", "word", ...)      # returncode, stdout; see Guest.run

or, to do things in turn inside and outside, with network=True:

    with g.session() as inside:
        inside.sh("mkfs.ext4 -q /dev/ubda").returncode

By hand:

    guest.py [--disk FILE]... [--module NAME]... [--net] [--timeout SECONDS] SCRIPT [WORD]...

The script is run by bash, as root, in /out, with the words as its arguments. It finds its disks as
/dev/ubda, /dev/ubdb, ...; with own_network() the guest is GUEST_IP on vec0 and the machine HOST_IP. There
is no udev. The kernel loads modules by itself where it asks for them; what programs ask for (lvm wants
dm-mod, dm-thin-pool) is best named in `modules`. One processor; fork and exec are dear.

Exit status: the script's; 124 when it took too long; 99 when the guest died. A guest that dies before it
is ready is started once more: that is the machine's fault, not the test's.
"""
import argparse
import base64
import ctypes
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
HOST_IP, GUEST_IP, TAP = "10.80.0.254", "10.80.0.1", "tap0"
KERNEL, MODULES = "linux.uml", "/usr/lib/uml/modules"
CLONE_NEWNET = 0x40000000


def own_network():
    """This process, and what it starts from now on, gets a network namespace with lo and a tap for the
    guest. It goes with the last process in it. Before any thread is started."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) < 0:
        raise OSError(ctypes.get_errno(), "unshare")
    for words in (["link", "set", "lo", "up"], ["tuntap", "add", TAP, "mode", "tap"],
                  ["addr", "add", f"{HOST_IP}/24", "dev", TAP], ["link", "set", TAP, "up"]):
        subprocess.run(["ip", *words], check=True)


class Session:
    """A guest that does what it is told, a command at a time, until the end of the `with`."""

    def __init__(self, guest, timeout):
        self.guest, self.timeout, self.peer, self.result = guest, timeout, None, None
        self.listener = socket.create_server((HOST_IP, 0))
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        self.result = self.guest.run(f"{HERE}/serve.sh", HOST_IP, str(self.listener.getsockname()[1]),
                                     timeout=self.timeout)

    def __enter__(self):
        self.thread.start()
        self.listener.settimeout(1)
        while self.peer is None:
            try:
                self.peer = self.listener.accept()[0].makefile("rwb")
            except socket.timeout:
                if not self.thread.is_alive():
                    raise RuntimeError(f"the guest has ended: {self.result}") from None
        return self

    def __exit__(self, *_):
        try:
            self.peer.close()
        except OSError:
            pass
        self.thread.join()
        self.listener.close()

    def sh(self, command):
        """Runs it with bash; a CompletedProcess whose stdout has both streams."""
        self.peer.write(base64.b64encode(command.encode()) + b"\n")
        self.peer.flush()
        line = self.peer.readline().split()
        if len(line) != 2:
            return subprocess.CompletedProcess(command, 99, "", "the guest has ended")
        return subprocess.CompletedProcess(command, int(line[0]),
                                           self.peer.read(int(line[1])).decode(errors="replace"), "")


class Guest:
    """folder is /out of the guest. network: own_network() was called."""

    def __init__(self, folder, disks=(), modules=(), network=False, memory="512M", name="guest"):
        self.folder, self.disks, self.modules = os.path.abspath(folder), disks, modules
        self.network, self.memory, self.name = network, memory, name

    def argv(self, run_dir, script, words):
        disks = [f"ubd{i}={os.path.abspath(disk)}" for i, disk in enumerate(self.disks)]
        net = [f"vec0:transport=tap,ifname={TAP},depth=128,gro=1", f"ip={GUEST_IP}/24"] if self.network else []
        with open(f"{run_dir}/words", "w", encoding="utf-8") as file:
            file.write("".join(f"{word}\0" for word in [os.path.abspath(script), *words]))
        return [KERNEL, f"uml_dir={run_dir}", "umid=u", f"mem={self.memory}", "root=/dev/root",
                "rootfstype=hostfs", "rootflags=/", "ro", f"init={HERE}/init", "con=null",
                "con0=null,fd:1", "quiet", f"kernel_modules={MODULES}", f"out={self.folder}",
                f"run={run_dir}", f"hostname={self.name}", f"load={','.join(self.modules)}", *disks, *net]

    def run(self, script, *words, timeout=120):
        """A CompletedProcess: returncode, stdout (both streams of the script), stderr (the console)."""
        for attempt in (1, 2):
            with tempfile.TemporaryDirectory(prefix="orlop-guest-") as run_dir:
                result, ready = self._run_once(run_dir, script, words, timeout)
            if ready or attempt == 2:
                return result

    def session(self, timeout=300):
        return Session(self, timeout)

    def _run_once(self, run_dir, script, words, timeout):
        argv = self.argv(run_dir, script, words)
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", f"{run_dir}/xstate.so", f"{HERE}/xstate.c"],
                       check=True)
        env = {**os.environ, "TMPDIR": "/dev/shm", "LD_PRELOAD": f"{run_dir}/xstate.so"}
        with open(f"{run_dir}/console", "wb") as console:
            kernel = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=console, stderr=console,
                                      start_new_session=True, env=env)
            late = False
            try:
                kernel.wait(timeout)
            except subprocess.TimeoutExpired:
                late = True
            finally:
                self._end(kernel)

        def text(name):
            try:
                with open(f"{run_dir}/{name}", encoding="utf-8", errors="replace") as file:
                    return file.read()
            except FileNotFoundError:
                return ""
        status = text("status").strip()
        code = int(status) if status else 124 if late else 99
        return (subprocess.CompletedProcess(argv, code, text("said"), text("console")),
                bool(text("ready")))

    @staticmethod
    def _end(kernel):
        """Its processes are its session's: none is left, however it ended."""
        try:
            os.killpg(kernel.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        kernel.wait()


def main():
    parser = argparse.ArgumentParser(description="Runs a script in a Linux kernel of its own.")
    parser.add_argument("--disk", action="append", default=[])
    parser.add_argument("--module", action="append", default=[])
    parser.add_argument("--net", action="store_true")
    parser.add_argument("--out", default=".")
    parser.add_argument("--timeout", type=int, default=120)
    parser.add_argument("script")
    parser.add_argument("word", nargs="*")
    o = parser.parse_args()
    if o.net:
        own_network()
    result = Guest(o.out, o.disk, o.module, o.net).run(o.script, *o.word, timeout=o.timeout)
    sys.stdout.write(result.stdout)
    if result.returncode in (99, 124):
        sys.stderr.write(result.stderr)
    sys.exit(result.returncode)


if __name__ == "__main__":
    main()
