#!/usr/bin/env python3
"""kill -9 of orlop-pool at every step of making, expanding, mending and destroying a pool.

pool-crash.py APISERVER POOL ZVOLDATA ROUNDS

First a table: the process dies before and after each thing that it does to the pool and to the API, one
after the other, until it gets through; the next process must come to what is wanted: the same pool, never
a second one, with all its data. Then, for some rounds, it dies at any time in the middle of a replacement
and an expansion at once.
"""
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from pools import Api, Disks, Pool, group  # noqa: E402
from server import Server  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402

apiserver, program, zvoldata, rounds = sys.argv[1:5]
tap = Tap()
DATA_MEBI = 16


class Subject:
    """A pool of a mirror, whose second side is replaced now and then, a spare, and groups that come after."""

    def __init__(self, server, api, scratch, name):
        self.disks = Disks(api, scratch.file(f"{name}.disks"), cluster=name)
        self.pool = Pool(program, server, api, scratch.path, name, cluster=name)
        self.name, self.count, self.sides, self.spare, self.more, self.guid = name, 0, [], None, [], None

    def device(self, predecessor=None):
        self.count += 1
        name = f"{self.name}-{self.count}"
        self.disks.make(name, predecessor=predecessor)
        return name

    def groups(self):
        return [group("mirror", *self.sides), group("stripe", self.spare, isSpare=True),
                *(group("stripe", name) for name in self.more)]

    # What is asked for while no process runs.

    def create(self):
        self.sides, self.spare = [self.device(), self.device()], self.device()
        self.pool.create(*self.groups())

    def expand(self):
        self.more.append(self.device())
        self.pool.groups(*self.groups())

    def replace(self):
        old = self.sides[1]
        self.sides[1] = self.device(predecessor=old)
        self.pool.groups(*self.groups())

    def delete(self):
        self.pool.delete()

    # How it is.

    def settled(self):
        """"" when everything is as it is wanted; else what is not."""
        got = self.pool.get()
        if got is None:
            return "there is no object"
        status, wanted = got.get("status", {}), set(self.sides) | set(self.more)
        states = self.pool.states()
        if status.get("phase") != "ONLINE" or states != {**dict.fromkeys(wanted, "ONLINE"), self.spare: "SPARE"}:
            return f"{status.get('phase')} {states}, not {sorted(wanted)}"
        if self.guid not in (None, status.get("guid")):
            return f"another pool: {status.get('guid')}"
        left = [n for n in wanted if self.disks.predecessor(n) != ""]
        return f"predecessors are left: {left}" if left else ""

    def gone(self):
        if self.pool.get() is not None:
            return "the object is there"
        for name in os.listdir(self.disks.folder):
            same = subprocess.run(["cmp", "-n", str(512 << 10), self.disks.path(name), "/dev/zero"], check=False,
                                  capture_output=True)
            if same.returncode != 0:
                return f"{name} has a label"
        return ""

    def data(self, mode):
        paths = [self.disks.path(n) for n in [*self.sides, self.spare, *self.more]]
        return run(zvoldata, mode, "vol", str(DATA_MEBI), "7", *paths)


def settle(question, pool):
    """Waits until it answers "", or the process has died; what it answered last."""
    last = ["?"]

    def asked():
        last[0] = question()
        return last[0] == "" or not pool.alive()
    wait_for(asked, 120)
    return last[0]


def attempt(subject, name, act, question, at):
    """The operation with a process that dies at that step; False when it got through without."""
    pool = subject.pool
    act()
    pool.start(ORLOP_CRASH_AT=str(at))
    settle(question, pool)
    died = not pool.alive()
    where = pool.text().rsplit("crash point ", 1)[-1].splitlines()[0] if died else "no crash"
    if died:
        tap.equal(pool.process.wait(), -9, f"{name}: dies at step {where}")
        pool.start()
        tap.equal(settle(question, pool), "", f"{name}: after that, all is as it is wanted")
    pool.kill()
    return died


def new_subject(fresh, made):
    subject = fresh(f"s{len(made)}")
    made.append(subject)
    return subject


def table_made(fresh, made):
    """Making and destroying: a new pool each time."""
    at = 1
    while True:
        subject = new_subject(fresh, made)
        died = attempt(subject, "create", subject.create, subject.settled, at)
        text = subject.pool.text()
        later = text.rsplit("crash point ", 1)[-1]
        if died and "after the pool was made" in text:
            tap.ok("it was=made" not in later, "create: a pool that was made is imported", later)
        if not died:
            break
        at += 1
    tap.ok(at - 1 >= 5, "create: at least 5 steps", at - 1)
    at, subjects = 1, iter(list(made))
    while True:
        subject = next(subjects, None)
        if subject is None:
            subject = new_subject(fresh, made)
            subject.create()
            with subject.pool:
                settle(subject.settled, subject.pool)
        if not attempt(subject, "delete", subject.delete, subject.gone, at):
            break
        at += 1
    tap.ok(at - 1 >= 5, "delete: at least 5 steps", at - 1)


def table_changed(subject):
    """Changes of one pool, which has data."""
    for name, act, least in (("expand", subject.expand, 3), ("replace", subject.replace, 6)):
        at = 1
        while attempt(subject, name, act, subject.settled, at):
            at += 1
        tap.ok(at - 1 >= least, f"{name}: at least {least} steps", at - 1)


def any_time(subject, seed):
    chance = random.Random(seed)
    subject.expand()
    subject.replace()
    for _ in range(4):
        subject.pool.start()
        try:
            subject.pool.process.wait(timeout=0.2 + chance.random())
        except subprocess.TimeoutExpired:
            pass
        subject.pool.kill()
    subject.pool.start()
    tap.equal(settle(subject.settled, subject.pool), "", f"any time, seed {seed}: all is as it is wanted")
    subject.pool.kill()


with Scratch() as scratch, open(scratch.file("api.log"), "w", encoding="utf-8") as log, \
        Server(apiserver, scratch.file("api"), log=log) as server:
    api, made = Api(server).namespace(), []

    def fresh(name):
        return Subject(server, api, scratch, name)
    kept = fresh("kept")
    try:
        kept.create()
        with kept.pool:
            tap.equal(settle(kept.settled, kept.pool), "", "a pool")
            kept.guid = kept.pool.status()["guid"]
            kept.pool.stop()
        tap.ran(kept.data("write"), "data is on it")
        table_changed(kept)
        table_made(fresh, made)
        for seed in range(int(rounds)):
            any_time(kept, seed)
        tap.equal(kept.data("verify").stdout, "0\n", "all data is there")
        text = "".join(s.pool.text() for s in [kept, *made])
        tap.ok("Sanitizer" not in text and "runtime error" not in text, "no sanitizer complained", text[-3000:])
    finally:
        for subject in [kept, *made]:
            subject.pool.kill()
tap.done()
