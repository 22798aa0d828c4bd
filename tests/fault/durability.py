#!/usr/bin/env python3
"""Acknowledged means kept: eight writers and two watchers while the server is killed again and again.

durability.py APISERVER [KILLS]

Each writer owns some objects and knows of each what it may be: the last state that was acknowledged,
or, when the answer to the last request got lost, also what that request asked for. After every start
all of it is compared with what the server has. Watchers go on where they were; at the end each must
have seen every acknowledged change exactly once, in order.
"""
import http.client
import json
import os
import random
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from server import Client, Server  # noqa: E402
from tap import Scratch, Tap  # noqa: E402

WRITERS, OBJECTS = 8, 5
PATH = "/api/v1/namespaces/default/configmaps"
GONE = None
BROKEN = (OSError, http.client.HTTPException, json.JSONDecodeError)


class Writer(threading.Thread):
    """Changes its own objects; `known` maps a name to what it may be now: a set of values."""

    def __init__(self, server, number, up):
        super().__init__(daemon=True)
        self.client, self.number, self.up = Client(server, timeout=20), number, up
        self.known = {f"w{number}-{i}": {GONE} for i in range(OBJECTS)}
        self.acknowledged = []  # revisions
        self.count = 0
        self.over, self.idle = False, threading.Event()
        self.random = random.Random(number)
        self.unexpected = []

    def run(self):
        while not self.over:
            if not self.up.is_set():
                self.idle.set()
                self.up.wait(0.5)
                continue
            self.idle.clear()
            try:
                self.step(self.random.choice(list(self.known)))
            except BROKEN:
                self.up.clear()  # until the main thread says that it runs again
        self.idle.set()

    def step(self, name):
        self.count += 1
        value = f"{self.number}.{self.count}"
        body = {"metadata": {"name": name}, "data": {"value": value, "pad": "x" * 200}}
        before = self.known[name]
        if before == {GONE}:
            self.change(name, value, "POST", PATH, body, (201,))
        elif self.random.random() < 0.15:
            self.change(name, GONE, "DELETE", f"{PATH}/{name}", None, (200,))
        else:
            self.change(name, value, "PUT", f"{PATH}/{name}", body, (200,))

    def change(self, name, value, method, path, body, expected):
        self.known[name] = self.known[name] | {value}  # from here on it may be so
        reply = self.client.ask(method, path, body)
        if reply.status in expected:
            self.known[name] = {value}
            if method != "DELETE":
                self.acknowledged.append(int(reply.json["metadata"]["resourceVersion"]))
        else:
            self.unexpected.append(f"{method} {name}: {reply.status} {reply.body[:200]}")
            self.over = True

    def settle(self, present):
        """What is there after a restart must be what may be there, and then it is known again."""
        self.client.close()  # that was a connection to the server before
        wrong = []
        for name, may_be in self.known.items():
            if present.get(name) not in may_be:
                wrong.append(f"{name} is {present.get(name)!r}, not one of {may_be}")
            self.known[name] = {present.get(name)}
        return wrong


class Watcher(threading.Thread):
    """Collects the revisions of all events, going on where it was after each break."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.client = Client(server, timeout=120)
        self.seen, self.last, self.over, self.failure = [], 0, False, None

    def run(self):
        while not self.over and not self.failure:
            try:
                for event in self.client.events(f"{PATH}?watch=true&resourceVersion={self.last}"):
                    if event["type"] == "ERROR":
                        self.failure = event
                        break
                    self.last = int(event["object"]["metadata"]["resourceVersion"])
                    self.seen.append(self.last)
            except BROKEN:
                time.sleep(0.01)  # the server is being started


def values(client):
    listed = client.ask("GET", PATH).json
    return ({o["metadata"]["name"]: o["data"]["value"] for o in listed["items"]
             if o["metadata"]["name"].startswith("w")}, int(listed["metadata"]["resourceVersion"]))


def main():
    program, kills = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 50
    tap, up, chance = Tap(), threading.Event(), random.Random(7)
    with Scratch() as scratch, Server(program, scratch.file("data")) as server:
        client = Client(server)
        writers = [Writer(server, n, up) for n in range(WRITERS)]
        watchers = [Watcher(server) for _ in range(2)]
        watchers[0].last = watchers[1].last = values(client)[1]
        for thread in writers + watchers:
            thread.start()
        highest, wrong, back = 0, [], []
        for _ in range(kills):
            for writer in writers:
                writer.idle.clear()
            up.set()
            goal = sum(len(w.acknowledged) for w in writers) + chance.randrange(1, 120)
            deadline = time.monotonic() + 30
            while sum(len(w.acknowledged) for w in writers) < goal and time.monotonic() < deadline:
                time.sleep(0.002)
            server.kill()
            up.clear()
            for writer in writers:
                writer.idle.wait(30)
            server.start()
            client.close()
            present, revision = values(client)
            for writer in writers:
                wrong += writer.settle(present)
                highest = max([highest, *writer.acknowledged])
            if revision < highest:
                back.append((revision, highest))
        for writer in writers:
            writer.over = True
        up.set()
        for writer in writers:
            writer.join(30)
        present, revision = values(client)
        for writer in writers:
            wrong += writer.settle(present)
        last = client.ask("POST", PATH, {"metadata": {"name": "end"}}).json
        end = int(last["metadata"]["resourceVersion"])
        deadline = time.monotonic() + 60
        while any(w.last < end and not w.failure for w in watchers) and time.monotonic() < deadline:
            time.sleep(0.01)
        for watcher in watchers:
            watcher.over = True
        acknowledged = sorted(r for w in writers for r in w.acknowledged)
        tap.ok(len(acknowledged) > kills, f"there were writes to lose: {len(acknowledged)}, and "
               f"{kills} kills")
        tap.equal([u for w in writers for u in w.unexpected], [], "no answer was unexpected")
        tap.equal(wrong, [], "after every start all that was acknowledged is there")
        tap.equal(back, [], "revisions never go back")
        tap.equal(len(set(acknowledged)), len(acknowledged), "no revision was given twice")
        for number, watcher in enumerate(watchers):
            tap.equal(watcher.failure, None, f"watcher {number} could always go on")
            tap.equal(watcher.seen, sorted(set(watcher.seen)),
                      f"watcher {number} saw no change twice, and all in order")
            tap.equal(sorted(set(acknowledged) - set(watcher.seen)), [],
                      f"watcher {number} missed no acknowledged change")
    tap.done()


main()
