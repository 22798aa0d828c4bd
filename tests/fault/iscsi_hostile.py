#!/usr/bin/env python3
"""A target among careless and hostile initiators: connections by the thousand, half-open ones, nonsense,
tasks aborted under load, 64 sessions, those that never fetch their answers. Nobody else suffers, nothing is
left over, memory stays bounded.

iscsi_hostile.py ORLOP-TARGET ORLOP-BENCH
"""
import json
import os
import random
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from crowd import Crowd  # noqa: E402
from initiator import Initiator  # noqa: E402
from iscsi_target import IQN, Target  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402

PROGRAM, BENCH = sys.argv[1], sys.argv[2]
# What a sanitizer keeps of freed memory would look like a leak.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "detect_leaks=1") + ":quarantine_size_mb=1"
tap = Tap()
random.seed(int(os.environ.get("SEED", "1")))


def show(t):
    return json.loads(run(PROGRAM, "target", "show", "--control", t.folder + "/control", "-o", "json").stdout)


def files(t):
    return len(os.listdir(f"/proc/{t.process.pid}/fd"))


def memory(t):
    """KiB of RSS."""
    with open(f"/proc/{t.process.pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))


def quiet(t):
    """All connections are gone."""
    return wait_for(lambda: show(t)["connections"] == 0, 30)


def load(t, seconds):
    """Somebody who works the whole time, and checks what is read."""
    return subprocess.Popen([BENCH, "bench", "iscsi", t.url(), "-o", "json", "-r", "50", "-q", "8", "-t",
                             str(seconds), "--span", "8Mi", "--verify"], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def connects(t):
    begin = time.monotonic()
    for number in range(1000):
        sock = socket.create_connection(("127.0.0.1", t.port), timeout=20)
        if number % 3 == 0:
            sock.sendall(b"GET / HTTP/1.0\r\n\r\n")
        elif number % 3 == 1:
            sock.sendall(os.urandom(random.randrange(1, 200)))
        sock.close()
    tap.ok(True, f"1000 connections came and went in {time.monotonic() - begin:.2f} s")


def logins(t):
    for number in range(100):
        i = Initiator(t.port, IQN, f"iqn.2026-01.test:n{number}")
        if i.login() != 0:
            tap.ok(False, f"login {number}")
        if number % 2:
            i.rw(0, 8)
        i.close()  # without a word


def aborts(t):
    i = Initiator(t.port, IQN, "iqn.2026-01.test:aborts")
    i.login(["InitialR2T=No"])
    i.ready()
    answered = aborted = 0
    for _ in range(40):
        tags = {i.rw(65536 + random.randrange(1000) * 8, 8, None if n % 2 else b"a" * 4096) for n in range(16)}
        own = {i.abort(tag) for tag in tags}
        while own:  # every abort is answered; a command is, or not, but never after its abort
            header, _ = i.receive()
            tag = int.from_bytes(header[16:20], "big")
            if header[0] == 0x22:
                own.discard(tag)
                aborted += header[2] == 0
            else:
                answered += 1
    i.ready()
    tap.ok(answered + aborted == 640, f"commands aborted under load ({answered} were faster)",
           f"{answered} + {aborted}")
    i.close()


def greedy(t):
    """Asks for much and fetches nothing."""
    greed = [Initiator(t.port, IQN, f"iqn.2026-01.test:greedy{n}") for n in range(4)]
    for i in greed:
        i.login(["MaxRecvDataSegmentLength=262144"])
        i.ready()
        i.sock.settimeout(0.2)
        try:
            for _ in range(100):
                i.rw(0, 1024)  # 512 KiB
        except TimeoutError:
            pass
    most = memory(t)
    other = run(BENCH, "bench", "iscsi", t.url(), "-o", "json", "-q", "4", "-n", "2000")
    tap.ok(other.returncode == 0, "who fetches nothing holds up nobody", other.stderr)
    for i in greed:
        i.close()
    return most


def sessions(t):
    crowd = [Initiator(t.port, IQN, f"iqn.2026-01.test:crowd{n}") for n in range(64)]
    good = sum(i.login() == 0 for i in crowd)
    for i in crowd:
        i.ready()
        i.rw(0, 8)
    good += sum(i.answer()[0] == 0 for i in crowd)
    tap.equal(good, 128, "64 sessions at a time")
    for i in crowd:
        i.close()


def half_open(t):
    """Connections that say nothing, or stop in the middle of a login, are ended in time."""
    silent = [socket.create_connection(("127.0.0.1", t.port), timeout=40) for _ in range(20)]
    for sock in silent[10:]:
        sock.sendall(b"\x43\x87\0\0\0\0\x01")
    begin = time.monotonic()
    ended = sum(sock.recv(1) == b"" for sock in silent)
    tap.ok(ended == 20 and time.monotonic() - begin < 25, "logins that do not come to an end are ended")
    for sock in silent:
        sock.close()


def silent(t):
    """Many who connect and say nothing delay nobody's login."""
    with Crowd(t.port, 1500) as crowd:
        began, status = time.monotonic(), None
        while status != 0 and time.monotonic() - began < 20:  # as initiators do: again, when it was cut off
            try:
                i = Initiator(t.port, IQN, "iqn.2026-01.test:patient")
                status = i.login()
                i.ready()
            except ConnectionError:
                status = None
        took = time.monotonic() - began
        tap.ok(status == 0 and took < 3, "1500 silent connections do not delay a login", took)
        i.rw(0, 8)
        tap.equal(i.answer()[0], 0, "nor the commands of who has logged in")
        print(f"# {took:.2f} s; {crowd.let_go} were let go")
        tap.ok(files(t) < 400, "the target keeps few of them", files(t))
        i.close()


with Scratch() as scratch:
    with Target(PROGRAM, scratch.path, f"file:{scratch.file('volume')}", "64Mi", ["--control", scratch.file("control")]) as t:
        aborts(t)
        quiet(t)
        before, small = files(t), memory(t)
        worker = load(t, 12)
        wait_for(lambda: show(t)["connections"] == 1, 10)
        connects(t)
        logins(t)
        aborts(t)
        sessions(t)
        most = greedy(t)
        half_open(t)
        silent(t)
        out, errors = worker.communicate(timeout=60)
        result = json.loads(out) if out else {}
        tap.ok(worker.returncode == 0 and result["verify"]["corrupt"] == 0,
               f"meanwhile somebody worked without a fault ({result.get('ios')} I/Os)", errors)
        tap.ok(quiet(t), "all connections are gone", show(t))
        tap.equal(show(t)["sessions"], [], "and all sessions")
        tap.equal(show(t)["commands"], 0, "and all commands")
        tap.equal(files(t), before, "and all files")
        tap.ok(most < small + 64 * 1024, f"memory was bounded ({small} to {most} KiB)")
        for _ in range(3):
            logins(t)
            quiet(t)
            grown = memory(t)
            connects(t)
            quiet(t)
        tap.ok(memory(t) <= grown + 2048, f"and does not grow ({grown}, then {memory(t)} KiB)")
        tap.equal(t.stop(), 0, "it ends well")
tap.done()
