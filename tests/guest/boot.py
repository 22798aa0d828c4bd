#!/usr/bin/env python3
"""The guest itself: it boots, runs a script, gives its exit status back, and has disks and a network.

boot.py
"""
import os
import socket
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import guest  # noqa: E402
from tap import Scratch, Tap  # noqa: E402

tap = Tap()
here = os.path.dirname(os.path.abspath(__file__))
guest.own_network()
with Scratch() as scratch:
    data = os.urandom(1 << 20)
    for name in ("given", "disk"):
        with open(scratch.file(name), "wb") as file:
            file.write(data)
            file.truncate((1 << 20) if name == "given" else (8 << 20))
    listener = socket.create_server((guest.HOST_IP, 0))

    def answer():
        peer, _ = listener.accept()
        with peer:
            peer.sendall(b"hello\n")
    threading.Thread(target=answer, daemon=True).start()
    g = guest.Guest(scratch.path, disks=[scratch.file("disk")], network=True)
    result = g.run(f"{here}/boot.sh", "two", "words", str(listener.getsockname()[1]))
    tap.equal(result.returncode, 7, "the script's exit status comes back")
    tap.ok("the machine says: hello\n" in result.stdout, "it reaches the machine",
           result.stdout + result.stderr)
    kernel = f"kernel {os.uname().release}"
    tap.ok("kernel " in result.stdout and kernel not in result.stdout, "a kernel of its own", result.stdout)
    with open(scratch.file("disk"), "rb") as file:
        tap.ok(file.read(8) == b"written\n", "what it writes on its disks is there")
    tap.ok(os.path.exists(scratch.file("back")), "and what it leaves in /out")
    tap.ok(not os.path.exists("/etc/orlop-guest-was-here"), "nothing else of the machine is changed")
    missing = g.run("/bin/true-is-no-script", timeout=30)
    tap.equal(missing.returncode, 127, "a script that is not there fails")
    forever = scratch.file("forever.sh", "while :; do sleep 1; done")
    tap.equal(g.run(forever, timeout=8).returncode, 124, "one that does not end is ended")
    left = subprocess.run(["pgrep", "-f", f"out={scratch.path}"], capture_output=True, text=True, check=False)
    tap.equal(left.stdout, "", "and nothing of it is left")
tap.done()
