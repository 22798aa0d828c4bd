#!/usr/bin/env python3
"""Replicas that are zvols: three pools, a process each, and a target.

zvol-replicas.py PROGRAMS ZVOLREPLICA
"""
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from namespaces import own_network  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402
from zvols import ZvolVolume  # noqa: E402

programs, zvolreplica = sys.argv[1:3]
tap = Tap()


def ask(volume, *words):
    return run(f"{programs}/orlop-target", "target", words[0], "--control", volume.control, *words[1:])


def bench(volume, name, *words):
    done = volume.bench("--verify", *words)
    return tap.ok(done.returncode == 0, name, done.stdout + done.stderr + volume.target.text()[-1500:])


def check_first(volume):
    tap.ok(volume.healthy(), "three zvols are a healthy volume", volume.status())
    bench(volume, "it is written and read", "--fill", "-b", "128Ki", "-r", "0", "-q", "8", "--save-map",
          f"{volume.folder}/map")
    bench(volume, "everything is there", "--check", "--load-map", f"{volume.folder}/map")
    tap.ok(wait_for(lambda: volume.view(0).get("logical", 0) >= 32 << 20), "ZFS says what it takes", volume.view(0))


def main():
    own_network()
    with Scratch() as scratch, ZvolVolume(programs, zvolreplica, scratch.path, size="64Mi") as volume:
        check_first(volume)
        if tap.failed:
            for i in range(3):
                print("#", volume.replicas[i].text()[-2000:].replace("\n", "\n# "))
                print("#", volume.view(i))


main()
tap.done()
