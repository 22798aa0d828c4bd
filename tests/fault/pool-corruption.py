#!/usr/bin/env python3
"""One side of a pool's mirror is damaged while nobody has the pool open: deleted, cut short, zeroed, its bytes flipped,
rolled back, swapped with that of another pool; after the pool was left in order and after its process was killed.

In every cell the pool comes back with the other side, says that it is degraded or mends itself, and the data is right.

pool-corruption.py APISERVER POOL ZVOLDATA EVERY      every EVERY-th cell
"""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from damage import DAMAGES, damage  # noqa: E402
from pools import Api, Disks, Pool, group  # noqa: E402
from server import Server  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402

apiserver, program, zvoldata, every = *sys.argv[1:4], int(sys.argv[4])
tap = Tap()
DATA_MEBI = 16
SIDES = ("a", "b")
CELLS = [(side, how, end) for how in DAMAGES for end in ("stopped", "killed") for side in SIDES]


class Mirror:
    """A pool of two files."""

    def __init__(self, server, api, scratch, name):
        self.name, self.folder = name, scratch.file(f"{name}.disks")
        self.disks = Disks(api, self.folder, cluster=name)
        self.pool = Pool(program, server, api, scratch.path, name, cluster=name)
        self.disks.make(*self.names())
        self.pool.create(group("mirror", *self.names()))

    def names(self):
        return [f"{self.name}-{side}" for side in SIDES]

    def path(self, side):
        return self.disks.path(f"{self.name}-{side}")

    def data(self, mode, seed, first="a"):
        """The pool is open to nobody else; it is the one that this side says."""
        sides = sorted(SIDES, key=lambda side: side != first)
        return run(zvoldata, mode, "vol", str(DATA_MEBI), str(seed), *map(self.path, sides))

    def copy(self, to):
        shutil.rmtree(to, ignore_errors=True)
        subprocess.run(["cp", "-r", "--sparse=always", self.folder, to], check=True)

    def restore(self, copy):
        shutil.rmtree(self.folder)
        subprocess.run(["cp", "-r", "--sparse=always", copy, self.folder], check=True)

    def imported(self, seconds=90):
        """Started: the pool is there, healthy or with one side."""
        said = len(self.pool.text())
        self.pool.start()
        wait_for(lambda: "it was=" in self.pool.text()[said:] or not self.pool.alive(), seconds)
        wait_for(lambda: self.pool.phase() in ("ONLINE", "DEGRADED"), 30)
        return self.pool.text()[said:]


def check_matrix(mirror, copies, donor):
    for side, how, end in CELLS[::every]:
        name = f"side {side} of a mirror {how}, {end}"
        mirror.restore(copies[end])
        earlier = os.path.join(copies["earlier"], f"{mirror.name}-{side}")
        damage(how, mirror.path(side), earlier, donor.path(side))
        words = mirror.imported()
        if how not in ("flipped", "rolled back"):  # those ZFS mends when it comes upon them
            degraded = wait_for(lambda: mirror.pool.states().get(f"{mirror.name}-{side}") == "UNAVAIL", 10)
            tap.ok(degraded and mirror.pool.wait("DEGRADED", 10) == "DEGRADED",
                   f"{name}: the pool says that this side is gone", mirror.pool.status())
        phase, states = mirror.pool.phase(), mirror.pool.states()
        mirror.pool.stop()
        verified = mirror.data("verify", 7, "b" if side == "a" else "a")
        tap.ok("it was=imported" in words and verified.returncode == 0,
               f"{name}: right data; {phase}, {', '.join(sorted(states.values()))}",
               f"{verified.stdout}{verified.stderr}{words[-3000:]}")


with Scratch() as scratch, open(scratch.file("api.log"), "w", encoding="utf-8") as log, \
        Server(apiserver, scratch.file("api"), log=log) as server:
    api = Api(server).namespace()
    donor, mirror = (Mirror(server, api, scratch, name) for name in ("other", "pool"))
    with donor.pool, mirror.pool:  # they run
        for one in (donor, mirror):
            one.pool.wait()
            one.pool.stop()
            tap.ran(one.data("write", 3), f"{one.name} has data")
        copies = {when: scratch.file(f"{when}.copy") for when in ("earlier", "stopped", "killed")}
        mirror.copy(copies["earlier"])
        tap.ran(mirror.data("write", 7), "which is overwritten")
        mirror.copy(copies["stopped"])
        mirror.imported()
        mirror.pool.kill()
        mirror.copy(copies["killed"])
        check_matrix(mirror, copies, donor)
tap.done()
