#!/usr/bin/env python3
"""Clients that mean harm, or are broken: memory stays bounded and others are served.

hostile.py APISERVER [sanitized]

A program with a sanitizer keeps shadows of its memory: it may have several times as much. It is there
to find what is wrong with a few; how many it takes is shown by the one that ships, since most of the
time goes into handshakes.
"""
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from server import Client, Server  # noqa: E402
from tap import Scratch, Tap  # noqa: E402

PATH = "/api/v1/namespaces/default/configmaps"
SANITIZED = sys.argv[2:] == ["sanitized"]
WATCHES, SLOW, GREEDY = (200, 60, 25) if SANITIZED else (1000, 300, 100)
FACTOR = 5 if SANITIZED else 1
tap = Tap()
# Freed memory that a sanitizer holds back is not the server's.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"


def slowest(client):
    """Others: a write and some reads, each within two seconds. How long the slowest took."""
    worst = 0.0
    for i in range(20):
        begin = time.monotonic()
        if i:
            reply = client.ask("GET", f"{PATH}?limit=1")
        else:
            reply = client.ask("POST", PATH, {"metadata": {"generateName": "other-"}})
        if reply.status not in (200, 201):
            return float(reply.status)
        worst = max(worst, time.monotonic() - begin)
    return worst


def served(client, name):
    worst = slowest(client)
    tap.ok(worst < 2, f"others are served beside {name}", f"the slowest took {worst:.3f} s")


def answer(server, request, chunks=(), timeout=30):
    """Sends bytes as they are, and returns the beginning of what comes back, if anything does."""
    with server.socket(timeout) as s:
        try:
            s.sendall(request)
            for chunk in chunks:
                s.sendall(chunk)
        except OSError:
            pass  # it need not read all of it
        try:
            return s.recv(4096)
        except OSError:
            return b""


def large_bodies(server, client):
    before = server.resident_mb()
    head = f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n".encode()
    mb = b" " * (1 << 20)
    got = answer(server, head + b"Content-Length: 104857600\r\n\r\n", [mb] * 100)
    tap.ok(got.split(b"\r\n")[0].endswith(b"413 Content Too Large") or b" 413 " in got[:20] or got == b"",
           "a body of 100 MB is refused", got[:200])
    got = answer(server, head + b"Transfer-Encoding: chunked\r\n\r\n",
                 [b"100000\r\n" + mb + b"\r\n"] * 100)
    tap.ok(b" 413 " in got[:20] or got == b"", "also in pieces", got[:200])
    reply = client.ask("POST", PATH, b'{"metadata":{"name":"big"},"data":{"x":"' + b"x" * (4 << 20) + b'"}}')
    tap.equal(reply.status, 413, "a body above the limit gets a Status")
    grown = server.resident_mb() - before
    tap.ok(grown < 40 * FACTOR, "and took no memory", f"{grown:.0f} MB more than before")
    served(client, "large bodies")


def deep_bodies(client):
    for name, body in {
            "lists": b'{"metadata":{"name":"deep"},"data":' + b"[" * 10000 + b"]" * 10000 + b"}",
            "objects": b'{"a":' * 10000 + b"1" + b"}" * 10000,
            "an end that is missing": b"[" * 10000,
    }.items():
        for method, path, kind in (("POST", PATH, "application/json"),
                                   ("PATCH", f"{PATH}/target", "application/merge-patch+json"),
                                   ("PATCH", f"{PATH}/target?fieldManager=x", "application/apply-patch+yaml")):
            reply = client.ask(method, path, body, content_type=kind)
            tap.ok(reply.status in (400, 415, 422), f"10,000 deep, {name}, as {kind}",
                   f"{reply.status} {reply.body[:300]}")
    served(client, "deep bodies")


def slow_clients(server, client):
    """Requests that never get complete: each connection sends a byte now and then."""
    before = server.resident_mb()
    sockets = [server.socket() for _ in range(SLOW)]
    over = threading.Event()
    for s in sockets:
        try:
            s.sendall(b"GET /api HTTP/1.1\r\nHost: x\r\nX-Slow: ")
        except OSError:
            pass  # of those that have sent no request there are not so many

    def drip():
        while not over.wait(0.05):
            for s in sockets:
                try:
                    s.send(b"x")
                except OSError:
                    pass

    thread = threading.Thread(target=drip, daemon=True)
    thread.start()
    served(client, f"{SLOW} slow clients")
    grown = server.resident_mb() - before
    tap.ok(grown < 60 * FACTOR, "slow clients take little memory", f"{grown:.0f} MB for {SLOW}")
    over.set()
    thread.join()
    for s in sockets:
        s.close()


def slow_readers(server, client):
    """Lists that nobody fetches."""
    for i in range(20):
        client.ask("POST", PATH, {"metadata": {"name": f"large-{i}"}, "data": {"x": "x" * 500000}})
    before = server.resident_mb()
    sockets = [server.socket() for _ in range(GREEDY)]
    for s in sockets:
        s.sendall(f"GET {PATH} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    served(client, f"{GREEDY} clients that do not read")
    grown = server.resident_mb() - before
    tap.ok(grown < 100 * FACTOR, "what they do not fetch is not made for them", f"{grown:.0f} MB for {GREEDY * 10} MB")
    for s in sockets:
        s.close()


def many_watches(server, client):
    revision = client.ask("GET", f"{PATH}?limit=1").json["metadata"]["resourceVersion"]
    before = server.resident_mb()
    sockets = []
    for _ in range(WATCHES):
        s = server.socket()
        s.sendall(f"GET {PATH}?watch=1&resourceVersion={revision} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        sockets.append(s)
    for s in sockets:
        s.recv(1)  # the answer has begun
    grown = server.resident_mb() - before
    tap.ok(grown < 100 * FACTOR, f"{WATCHES} idle watches take little memory", f"{grown:.0f} MB")
    served(client, f"{WATCHES} watches")
    client.ask("POST", PATH, {"metadata": {"name": "seen-by-all"}})
    deadline, missing = time.monotonic() + 20, 0
    for s in sockets:
        text = b""
        s.settimeout(max(0.1, deadline - time.monotonic()))
        try:
            while b"seen-by-all" not in text:
                text = text[-20:] + s.recv(65536)
        except OSError:
            missing += 1
    tap.equal(missing, 0, "each of them gets the change")
    for s in sockets:
        s.close()


def nonsense(server, client):
    for name, request in {
            "no request": b"\x00\x01\x02\r\n\r\n",
            "a path without a slash": b"GET x HTTP/1.1\r\nHost: x\r\n\r\n",
            "a header of a megabyte": b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * (1 << 20) + b"\r\n\r\n",
            "many headers": b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 50000 + b"\r\n",
            "two lengths": b"POST /api HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}",
            "a negative length": b"POST /api HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
            "a length and chunks": b"POST /api HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n"
                                   b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "dots": b"GET /api/v1/../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n",
    }.items():
        got = answer(server, request, timeout=2)  # it may also wait for more
        tap.ok(got == b"" or got[9:10] == b"4", f"{name} is refused", got[:200])
    served(client, "nonsense")


def main():
    with Scratch() as scratch, Server(sys.argv[1], scratch.file("data")) as server:
        client = Client(server)
        client.ask("POST", PATH, {"metadata": {"name": "target"}})
        nonsense(server, client)
        large_bodies(server, client)
        deep_bodies(client)
        slow_clients(server, client)
        slow_readers(server, client)
        many_watches(server, client)
        tap.equal(server.stop(), 0, "it ends as if nothing had happened")
    tap.done()


main()
