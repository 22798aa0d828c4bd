#!/usr/bin/env python3
"""Watches that nobody reads: what they cost the API server, that they are cut off, and that memory goes back.

unread-watches.py APISERVER [sanitized]

A sanitizer keeps shadows of memory, and what was freed: then what it costs is not looked at.
"""
import json
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from server import Client, Server  # noqa: E402
from tap import Scratch, Tap, wait_for  # noqa: E402

program = sys.argv[1]
tap = Tap()
MAPS = "/api/v1/namespaces/default/configmaps"
SANITIZED = sys.argv[2:] == ["sanitized"]
WATCHES, BIG, ROUNDS = 100 if SANITIZED else 400, 500_000, 80
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


def change(client, i):
    """Another version of one of a few large objects."""
    name = f"big-{i % 4}"
    body = {"metadata": {"name": name}, "data": {"x": chr(97 + i % 26) * BIG}}
    status = client.ask("PUT", f"{MAPS}/{name}", body).status
    assert status in (200, 201), status


def open_watches(server, n):
    """Sockets on which somebody has asked for all ConfigMaps and then never reads."""
    opened = []
    for i in range(n):
        s = server.socket()
        accept = f"Accept: {TABLE}\r\n" if i % 4 == 0 else ""
        s.sendall(f"GET {MAPS}?watch=1 HTTP/1.1\r\nHost: x\r\n{accept}\r\n".encode())
        opened.append(s)
    return opened


def crowd(server):
    """Nobody has all connections."""
    server.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", {
        "metadata": {"name": "jane"}, "subjects": [{"kind": "User", "name": "jane", "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}})
    opened, answers = [], set()
    for _ in range(520):
        s = server.socket()
        s.sendall(b"GET /api/v1/limitranges?watch=1 HTTP/1.1\r\nHost: x\r\nImpersonate-User: jane\r\n\r\n")
        answers.add(s.recv(12))
        opened.append(s)
    tap.equal(answers, {b"HTTP/1.1 200", b"HTTP/1.1 429"}, "a user has 512 watches and no more")
    tap.equal(server.get("/api/v1/namespaces/default")[0], 200, "others are answered")
    for s in opened:
        s.close()


def read_all(reply, seen):
    """The types of all events."""
    try:
        for line in reply:
            seen.append(json.loads(line)["type"])
    except OSError:
        seen.append("silence")


with Scratch() as scratch, Server(program, scratch.file("data"), "--log-level", "warn") as server:
    client = Client(server)
    for i in range(4):
        client.ask("POST", MAPS, {"metadata": {"name": f"big-{i}"}, "data": {"x": "0" * BIG}})
    before = server.resident_mb()
    watches = open_watches(server, WATCHES)
    reader = server.connect(timeout=300)
    reader.request("GET", f"{MAPS}?watch=1&fieldSelector=metadata.name%3Dbig-0")
    seen = []
    thread = threading.Thread(target=read_all, args=(reader.getresponse(), seen))
    thread.start()
    most = 0
    for i in range(ROUNDS):
        change(client, i)
        most = max(most, server.resident_mb())
    # Connections with TLS are some 100 KB each, and the history has 40 MB. Copies were half a MB each, and more.
    tap.ok(most < before + 140 or SANITIZED,
           f"{WATCHES} watches that nobody reads cost little: {before:.0f} MB before, {most:.0f} MB at most")

    started = time.monotonic()

    def is_cut():
        change(client, int(time.monotonic() * 10))
        text = server.request("GET", "/metrics").text
        open_now = sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines()
                       if line.startswith("apiserver_longrunning_requests") and 'resource="configmaps"' in line)
        return open_now <= 1 + WATCHES // 4

    tap.ok(wait_for(is_cut, 60), "those that do not read are cut off while changes pass by (a quarter gets only "
           f"rows of a Table), after {time.monotonic() - started:.0f} s")
    client.ask("DELETE", f"{MAPS}/big-0")
    tap.ok(wait_for(lambda: seen and seen[-1] == "DELETED"), "one that reads misses nothing", seen[-5:])
    for s in watches:
        s.close()
    ended = wait_for(lambda: server.resident_mb() < before + 90 or SANITIZED, 30)
    tap.ok(ended, f"memory goes back: {server.resident_mb():.0f} MB")
    crowd(server)
    server.stop()
    thread.join()
tap.done()
