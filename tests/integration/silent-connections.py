#!/usr/bin/env python3
"""Connections that say nothing, or nothing any more, do not keep others from the API server.

silent-connections.py APISERVER [sanitized]
"""
import os
import resource
import select
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from server import Client, Server  # noqa: E402
from tap import Scratch, Tap, wait_for  # noqa: E402

program = sys.argv[1]
tap = Tap()
MANY = 1500
BEYOND = 1100  # the server has 1024 connections
HELLO = bytes.fromhex("16030100ff010000fb0303")  # a TLS handshake begins, and never goes on


def connect(server, first=b""):
    """A connection that sends this and no more; None when it is refused."""
    s = socket.create_connection(("127.0.0.1", server.port), 30)
    try:
        s.sendall(first)
    except OSError:
        pass
    return s


def is_open(s):
    poll = select.poll()
    poll.register(s, select.POLLIN)
    try:
        return not (poll.poll(0) and not s.recv(65536))
    except OSError:
        return False


def check(server, what):
    """Somebody who has something to ask is answered at once, again and again."""
    slowest = 0
    for _ in range(5):
        started = time.monotonic()
        status = server.get("/api/v1/namespaces/default")[0]
        slowest = max(slowest, time.monotonic() - started)
        tap.equal(status, 200, f"{what}: somebody else is answered")
    tap.ok(slowest < 5, f"{what}: within {slowest:.2f} s")


soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
with Scratch() as scratch, Server(program, scratch.file("data"), "--log-level", "warn") as server:
    watch = server.connect(timeout=60)
    watch.request("GET", "/api/v1/namespaces/default/configmaps?watch=1")
    events = watch.getresponse()
    kept = Client(server)
    kept.ask("GET", "/version")
    for what, first in (("silent", b""), ("a handshake that stops", HELLO)):
        opened = [connect(server, first) for _ in range(MANY)]
        check(server, what)
        left = sum(is_open(s) for s in opened)
        tap.ok(left <= 128, f"{what}: {left} of {len(opened)} are left")
        tap.ok(wait_for(lambda: not any(is_open(s) for s in opened), 30), f"{what}: all end in half a minute")
        for s in opened:
            s.close()
    # Those who have asked something, as anybody may, and then keep their connections.
    idle = []
    for _ in range(BEYOND):
        s = server.socket()
        s.sendall(b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n")
        idle.append(s)
    check(server, "asked once")
    # Those who announce a body and do not send it: the same, where they are not shut, and some more.
    idle += [server.socket() for _ in range(300)]
    for s in idle:
        try:
            s.sendall(b"POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
        except OSError:
            pass
    check(server, "half a request")
    server.create("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "seen"}})
    line = b""
    while b'"seen"' not in line:
        line = events.readline()
        assert line, "the watch has ended"
    tap.ok(True, "a watch is not shut for others")
    for s in idle:
        s.close()
tap.equal(server.status, 0, "it stops when told")
tap.done()
