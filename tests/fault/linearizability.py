#!/usr/bin/env python3
"""Concurrent updates of the same objects are linearizable: checked from recorded histories.

linearizability.py APISERVER

Clients read and write a few objects at once and note, of each operation, when it began and ended and
what it answered. Every state of an object has a revision, so a history names its own witness: order
the operations of an object by the revision they wrote or saw. The history is linearizable if that
order is one that registers allow (every read returns what was written at its revision, nothing comes
between the state that a conditional write was for and the state it made) and if it agrees with the
clock: what ended before another began is not behind it. An operation whose answer got lost may have
happened at any time after it began, or never.

A checker that finds nothing proves little, so it is first given histories that are wrong.
"""
import collections
import http.client
import os
import random
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from server import Client, Server  # noqa: E402
from tap import Scratch, Tap  # noqa: E402

CLIENTS, OBJECTS, OPERATIONS, KILLS = 8, 3, 250, 3
PATH = "/api/v1/namespaces/default/configmaps"

# kind: read, write; expected: the revision a conditional write was for, or None; revision: what was
# seen or written; None: refused because the object had changed, or (with end None) never answered.
Op = collections.namedtuple("Op", "kind begin end value expected revision")


def violations(history):
    """What makes the history of one object impossible; empty when it is linearizable."""
    found = []
    writes = [op for op in history if op.kind == "write" and op.revision is not None]
    lost = [op for op in history if op.kind == "write" and op.end is None]
    reads = [op for op in history if op.kind == "read" and op.revision is not None]
    by_revision = {op.revision: op for op in writes}
    if len(by_revision) != len(writes):
        found.append("two writes have one revision")
    states = {op.revision: op.value for op in writes}
    for op in reads:  # a state that nobody was told of is that of a write whose answer got lost
        if op.revision not in states:
            if not any(w.value == op.value and w.begin < op.end for w in lost):
                found.append(f"{op} read what nobody wrote")
            states[op.revision] = op.value
        elif states[op.revision] != op.value:
            found.append(f"{op} read another value than was written at its revision")
    revisions = sorted(states)
    for op in writes:
        if op.expected is not None and any(op.expected < r < op.revision for r in revisions):
            found.append(f"{op} wrote over a change that it did not know of")
    # By the clock: nothing lies behind what ended before it began.
    newest, done = 0, sorted((op for op in writes + reads), key=lambda op: op.end)
    waiting = sorted((op for op in writes + reads), key=lambda op: op.begin)
    at = 0
    for op in waiting:
        while at < len(done) and done[at].end < op.begin:
            newest = max(newest, done[at].revision)
            at += 1
        if op.revision < newest or (op.kind == "write" and op.revision == newest):
            found.append(f"{op} is behind revision {newest}, which was answered before it began")
    # A refusal needs a change that can have happened before it ended.
    for op in history:
        if op.kind == "write" and op.revision is None and op.end is not None:
            others = [w for w in writes if w.revision > op.expected and w.begin < op.end]
            if not others and not any(w.begin < op.end for w in lost):
                found.append(f"{op} was refused though nothing had changed")
    return found


def wrong_histories():
    """Histories that no register allows, by name."""
    first = Op("write", 0, 1, "a", None, 10)
    return {
        "a read of the past": [first, Op("write", 2, 3, "b", None, 11), Op("read", 4, 5, "a", None, 10)],
        "a read of what nobody wrote": [first, Op("read", 2, 3, "z", None, 12)],
        "a read of another value": [first, Op("read", 2, 3, "b", None, 10)],
        "a lost update": [first, Op("write", 2, 5, "b", 10, 11), Op("write", 2, 5, "c", 10, 12)],
        "a write behind one that was answered": [Op("write", 0, 1, "a", None, 11),
                                                 Op("write", 2, 3, "b", None, 10)],
        "a refusal for no reason": [first, Op("write", 2, 3, "b", 10, None)],
        "a revision twice": [first, Op("write", 0, 1, "b", None, 10)],
    }


class Worker(threading.Thread):
    """One client: it reads, writes, and writes on condition, and notes all of it."""

    def __init__(self, server, number):
        super().__init__(daemon=True)
        self.client, self.number = Client(server, timeout=20), number
        self.history = collections.defaultdict(list)
        self.seen = {}  # name -> revision
        self.unexpected = []
        self.random = random.Random(number)

    def run(self):
        for count in range(OPERATIONS):
            name = f"r{self.random.randrange(OBJECTS)}"
            kind = self.random.choice(["read", "write", "swap", "swap", "patch"])
            self.operate(kind, name, f"{self.number}.{count}")

    def operate(self, kind, name, value):
        expected = self.seen.get(name) if kind == "swap" else None
        if kind == "swap" and expected is None:
            kind = "read"
        begin = time.monotonic()
        try:
            reply = self.request(kind, name, value, expected)
        except (OSError, http.client.HTTPException):
            if kind != "read":
                self.history[name].append(Op("write", begin, None, value, expected, None))
            time.sleep(0.005)  # the server is being started
            return
        end, what = time.monotonic(), "read" if kind == "read" else "write"
        if reply.status == 200:
            body = reply.json
            revision = self.seen[name] = int(body["metadata"]["resourceVersion"])
            self.history[name].append(Op(what, begin, end, body["data"]["value"], expected, revision))
        elif reply.status == 409 and kind == "swap":
            self.history[name].append(Op("write", begin, end, value, expected, None))
            del self.seen[name]
        else:
            self.unexpected.append(f"{kind} {name}: {reply.status} {reply.body[:200]}")

    def request(self, kind, name, value, expected):
        path = f"{PATH}/{name}"
        if kind == "read":
            return self.client.ask("GET", path)
        if kind == "patch":
            return self.client.ask("PATCH", path, {"data": {"value": value}},
                                   content_type="application/merge-patch+json")
        metadata = {"name": name}
        if expected is not None:
            metadata["resourceVersion"] = str(expected)
        return self.client.ask("PUT", path, {"metadata": metadata, "data": {"value": value}})


def main():
    tap = Tap()
    for name, history in wrong_histories().items():
        tap.ok(violations(history), f"the checker finds {name}")
    with Scratch() as scratch, Server(sys.argv[1], scratch.file("data")) as server:
        client, first = Client(server), {}
        for i in range(OBJECTS):
            begin = time.monotonic()
            made = client.ask("POST", PATH, {"metadata": {"name": f"r{i}"}, "data": {"value": "0"}})
            first[f"r{i}"] = Op("write", begin, time.monotonic(), "0", None,
                                int(made.json["metadata"]["resourceVersion"]))
        workers = [Worker(server, n) for n in range(CLIENTS)]
        for worker in workers:
            worker.start()
        for kill in range(1, KILLS + 1):
            while (sum(len(h) for w in workers for h in w.history.values()) <
                   kill * CLIENTS * OPERATIONS / (KILLS + 1) and any(w.is_alive() for w in workers)):
                time.sleep(0.002)
            server.kill()
            server.start()
        for worker in workers:
            worker.join(120)
        tap.equal([u for w in workers for u in w.unexpected], [], "no answer was unexpected")
        operations = 0
        for name, op in first.items():
            history = [op] + [o for w in workers for o in w.history[name]]
            operations += len(history)
            tap.equal(violations(history), [], f"the history of {name} is linearizable")
        tap.ok(operations > CLIENTS * OPERATIONS / 2, f"there was a history: {operations} operations")
    tap.done()


main()
