#!/usr/bin/env python3
"""Writes that were acknowledged and not flushed are lost when a quorum loses its memory: every initiator that had some
is told by its next flush, once, also when the target is killed, too, and killed again before it could tell.

The replicas' disks forget what was not flushed when they are killed (`volatile:`).

flush-loss.py PROGRAMS short|all       each round takes the 30 s that a target waits for a replica that may know more
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from ledger import Ledger, Refused  # noqa: E402
from namespaces import own_network  # noqa: E402
from replicated import Volume  # noqa: E402
from tap import Scratch, Tap, wait_for  # noqa: E402

programs, form = sys.argv[1], sys.argv[2]
tap = Tap()
SIZE, BLOCKS = 16 << 20, 300


def serving(volume):
    return wait_for(lambda: (volume.status() or {}).get("ready") and volume.status()["volumeStatus"][0]["serving"], 60)


def restart(volume, target=True):
    """The quorum is killed, with or without the target, and comes back."""
    for process in ([volume.target] if target else []) + volume.replicas[1:]:
        process.kill()
    for process in ([volume.target] if target else []) + volume.replicas[1:]:
        process.start()
    return serving(volume)


def flush(ledger, again=True):
    """Whether a flush is good. A connection that ended is made anew first."""
    try:
        ledger.flush()
        return True
    except Refused as e:
        print(f"# {ledger.name}: the flush is refused: {e}", flush=True)
        return False
    except OSError:
        return again and flush(ledger, False)


def told_once(ledger, name):
    got = [flush(ledger), flush(ledger), flush(ledger)]
    tap.equal(got, [False, True, True], f"{name}: the first flush of {ledger.name} fails, the second is good")


class Round:
    """Two initiators with unflushed writes, and one that flushed all and logged out, while replica 0 is frozen."""

    def __init__(self, volume, name):
        tap.ok(volume.healthy(), f"{name}: a volume", volume.status())
        self.volume, self.name = volume, name
        self.a, self.b, self.done = (Ledger(SIZE, f"iqn.2026-01.test:{who}", seed)
                                     for seed, who in enumerate(("first", "second", "careful")))
        for ledger in (self.a, self.b, self.done):
            flush(ledger)
        self.done.write_some(20)
        self.done.logout()
        volume.replicas[0].freeze()
        for i in range(BLOCKS):
            self.a.write(2 * i)
            self.b.write(2 * i + 1)

    def lost(self):
        """How many of the blocks that were acknowledged are gone."""
        both = [(self.a, 2 * i) for i in range(BLOCKS)] + [(self.b, 2 * i + 1) for i in range(BLOCKS)]
        return sum(ledger.read(n * 4096, 4096) != ledger.now[n * 4096:(n + 1) * 4096] for ledger, n in both)

    def drop(self):
        for ledger in (self.a, self.b, self.done):
            ledger.drop()

    def over(self):
        """The next round begins with a volume that is whole."""
        print(f"# {self.name}: {self.lost()} of {2 * BLOCKS} acknowledged blocks are gone", flush=True)
        tap.ok(flush(self.done), f"{self.name}: who had flushed everything and logged out is not told")
        for ledger in (self.a, self.b, self.done):
            ledger.logout()
        self.volume.replicas[0].thaw()


def check_all(volume):
    r = Round(volume, "target and quorum killed")
    r.drop()
    tap.ok(restart(volume), "target and quorum come back while the third is frozen", volume.status())
    told_once(r.a, r.name)
    told_once(r.b, r.name)
    r.over()


def check_twice(volume):
    r = Round(volume, "target killed again before it could tell")
    r.drop()
    restart(volume)
    volume.target.kill()
    volume.target.start()
    tap.ok(serving(volume), "it serves again", volume.status())
    told_once(r.a, r.name)
    r.drop()
    volume.target.kill()
    volume.target.start()
    tap.ok(serving(volume), "and again when one of two was told", volume.status())
    told_once(r.b, r.name)
    tap.ok(flush(r.a), f"{r.name}: who was told and flushed is not told again")
    r.over()


def check_living(volume):
    r = Round(volume, "only the quorum killed")
    tap.ok(restart(volume, target=False), "the quorum comes back to a target that lives", volume.status())
    told_once(r.a, r.name)
    told_once(r.b, r.name)
    r.over()


def check_flushed(volume):
    """Who flushed in time is not alarmed by a target that knows it."""
    r = Round(volume, "one flushed before the quorum was killed")
    tap.ok(flush(r.a), "one of two flushes")
    r.b.write(1)
    restart(volume, target=False)
    tap.ok(flush(r.a), f"{r.name}: it is not told")
    told_once(r.b, r.name)
    r.over()


if not own_network():
    tap.skip("flushes after a loss", "no network namespaces here")
    tap.done()
with Scratch() as scratch:
    stores = {i: f"volatile:file:{scratch.path}/r{i}/data" for i in range(3)}
    with Volume(programs, scratch.path, size="16Mi", stores=stores) as volume:
        for check in (check_twice, check_living) + ((check_all, check_flushed) if form == "all" else ()):
            check(volume)
        if tap.failed:
            for process in [volume.target, *volume.replicas]:
                print("\n".join("# " + line for line in process.text().splitlines()[-30:]))
tap.done()
