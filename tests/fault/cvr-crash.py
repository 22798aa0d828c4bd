#!/usr/bin/env python3
"""kill -9 of orlop-pool at every step of making, making anew and destroying a replica of a volume.

cvr-crash.py APISERVER POOL ZVOLDATA

The process dies before and after each thing that it does to the pool and to the API, one after the other, until it gets
through; the next process must come to what is wanted: one data set, the one that the object remembers, or none. In the
end nothing is left in the pool.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from pools import Api, Disks, Pool, group, in_ns, zdb  # noqa: E402
from server import Server  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402

apiserver, program, zvoldata = sys.argv[1:4]
tap = Tap()
CVRS = in_ns("cstorvolumereplicas", group="/apis/cstor.openebs.io/v1")


class Subject:
    """A pool, and a replica on it that comes and goes."""

    def __init__(self, server, api, scratch):
        self.api = api
        self.disks = Disks(api, scratch.file("disks"), cluster="c")
        self.disks.make("a")
        self.pool = Pool(program, server, api, scratch.path, "p", cluster="c")
        self.pool.create(group("stripe", "a"))
        self.count, self.request, self.lost = 0, 0, None

    @property
    def path(self):
        return f"{CVRS}/v{self.count}-p"

    # What is asked for while no process runs.

    def create(self):
        self.count += 1
        self.api.must("POST", CVRS, {
            "apiVersion": "cstor.openebs.io/v1", "kind": "CStorVolumeReplica",
            "metadata": {"name": f"v{self.count}-p", "labels": {
                "cstorpoolinstance.openebs.io/name": "p", "cstorvolume.openebs.io/name": f"v{self.count}"},
                "annotations": {"orlop.io/volume-id": f"id-{self.count}"}},
            "spec": {"targetIP": "127.0.0.1", "capacity": "8Mi", "replicaid": str(self.count)}})

    def lose(self):
        """Its data set is gone, and another one is asked for."""
        self.lost = self.get()["status"]["zvolGuid"]
        gone = run(zvoldata, "remove", f"v{self.count}", "1", "1", self.disks.path("a"))
        if gone.returncode:
            raise AssertionError(gone.stderr)
        self.request += 1
        self.api.must_merge(self.path, {"metadata": {"annotations": {"orlop.io/recreate": str(self.request)}}})

    def delete(self):
        self.lost = None
        self.api.must("DELETE", self.path)

    # How it is.

    def get(self):
        status, value = self.api.get(self.path)
        return value if status == 200 else None

    def settled(self):
        """"" when its data set is the one that the object remembers, and only the key is missing."""
        status = (self.get() or {}).get("status", {})
        fine = status.get("phase") == "Offline" and "-key" in status.get("message", "") and status.get("zvolGuid")
        return "" if fine and status["zvolGuid"] != self.lost else str(status)

    def gone(self):
        return "the object is there" if self.get() else ""


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
    if died:
        where = pool.text().rsplit("crash point ", 1)[-1].splitlines()[0]
        tap.equal(pool.process.wait(), -9, f"{name}: dies at step {where}")
        pool.start()
        tap.equal(settle(question, pool), "", f"{name}: after that, all is as it is wanted")
    pool.kill()
    return died


def table(subject):
    """One replica at a time: it is made, made anew and destroyed, with a death in each at the same step."""
    steps = {"create": (subject.create, subject.settled), "make anew": (subject.lose, subject.settled),
             "delete": (subject.delete, subject.gone)}
    deaths, at = dict.fromkeys(steps, 0), 1
    while max(deaths.values()) == at - 1:
        for name, (act, question) in steps.items():
            deaths[name] += attempt(subject, name, act, question, at)
        at += 1
    for name, least in (("create", 10), ("make anew", 10), ("delete", 6)):
        tap.ok(deaths[name] >= least, f"{name}: at least {least} steps", deaths)


with Scratch() as scratch, Server(apiserver, scratch.file("api"), "--log-level", "warn") as server:
    subject = Subject(server, Api(server).namespace(), scratch)
    pool = subject.pool

    try:
        with pool:
            tap.equal(pool.wait(), "ONLINE", "a pool")
            pool.stop()
            table(subject)
            pool.start()
            tap.ok(wait_for(lambda: pool.phase() == "ONLINE" and "the pool is open" in pool.text().rsplit("serves health", 1)[-1]),
                   "the pool is there", pool.status())
            tap.equal(pool.stop(), 0, "the process ends in order")
        seen = zdb(subject.disks.folder, pool.zname, "-d")
        tap.ok(seen.returncode == 0 and "/v" not in seen.stdout, "nothing is left in the pool", seen.stdout + seen.stderr)
        text = pool.text()
        tap.ok("Sanitizer" not in text and "runtime error" not in text, "no sanitizer complained", text[-3000:])
    finally:
        pool.kill()
tap.done()
