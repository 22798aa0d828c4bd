#!/usr/bin/env python3
"""orlop bench iscsi: what it measures, what it finds, and what a target that is killed owes.

bench-iscsi.py ORLOP TARGET
"""
import json
import os
import signal
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from iscsi_target import Target  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402

orlop, target_program = sys.argv[1:3]
tap = Tap()


# libiscsi forgets a little memory when it connects anew.
ENVIRONMENT = {**os.environ}


def bench(target, *flags, timeout=120):
    result = run(orlop, "bench", "iscsi", target.url(), "-o", "json", *flags, timeout=timeout,
                 env=ENVIRONMENT)
    try:
        return result, json.loads(result.stdout)
    except ValueError:
        return result, {}


def findings(said):
    verify = said.get("verify", {})
    return {k: verify.get(k) for k in ("lost", "torn", "misplaced", "corrupt") if verify.get(k)}


def loads(scratch):
    """Each kind of load does as many I/Os as it was told, and tells of them."""
    with Target(target_program, scratch.path, "mem:", "16Mi") as target:
        for name, flags, reads, writes in [
                ("random reads", ["-q", "8"], 2000, 0),
                ("sequential writes of 64 KiB", ["-b", "64Ki", "-r", "0", "-p", "sequential"], 0, 2000),
                ("two sessions", ["-s", "2", "-q", "4", "-r", "0"], 0, 2000)]:
            result, said = bench(target, "-n", "2000", *flags)
            latency = said.get("latencyMicroseconds", {})
            tap.equal((result.returncode, latency["read"]["count"], latency["write"]["count"],
                       said["errors"]), (0, reads, writes, 0), f"{name}: counted")
            times = latency["all"]
            tap.ok(0 < times["p50"] <= times["p90"] <= times["p99"] <= times["max"]
                   and said["iops"] > 0, f"{name}: timed", times)
        result, said = bench(target, "-t", "0.5", "-r", "50", "-V", "-q", "16", "--flush-every", "10")
        tap.equal((result.returncode, findings(said), said["latencyMicroseconds"]["flush"]["count"] > 0),
                  (0, {}, True), "a mix that is verified finds nothing wrong, and flushes")
        result = run(orlop, "bench", "iscsi", target.url(), "-n", "100")
        tap.ok("IOPS" in result.stdout and "p99.9" in result.stdout and "\r" not in result.stderr,
               "people get a table, and no progress where there is no terminal", result.stdout)


def growth(scratch):
    """What a target tells of itself (a unit attention) is no answer to the command: that is sent again."""
    control = scratch.file("grows.sock")
    with Target(target_program, scratch.path, "mem:", "16Mi", ["--control", control]) as target:
        sizes = iter(range(17, 1000))

        def grow():
            return run(target_program, "target", "grow", "--control", control, "--size", f"{next(sizes)}Mi").returncode
        grown = []
        loop = threading.Thread(target=lambda: [grown.append(grow()) for _ in range(5)])
        loop.start()
        result, said = bench(target, "-t", "3", "-r", "50", "-V", "-q", "8")
        loop.join()
        tap.equal((result.returncode, said.get("errors"), findings(said), grown), (0, 0, {}, [0] * 5),
                  "a volume that grows under load: no error")


def damage(scratch):
    """What is wrong with the data is found, and called by its name."""
    volume, saved = scratch.file("volume"), scratch.file("map")
    block = 4096
    with Target(target_program, scratch.path, "file:" + volume, "1Mi") as target:
        bench(target, "--fill", "--save-map", saved)
        result, said = bench(target, "--check", "--load-map", saved)
        tap.equal((result.returncode, said["verify"]["checked"]), (0, 256), "all that was written is there")
        with open(volume, "r+b") as file:
            data = file.read()
            bench(target, "-r", "0", "-n", "300", "--load-map", saved, "--save-map", saved)
            file.seek(0)
            newer = file.read()
            changed = [i for i in range(256)
                       if data[i * block:(i + 1) * block] != newer[i * block:(i + 1) * block]]
            at = {k: i * block for k, i in zip(("lost", "torn", "misplaced", "corrupt"), changed)}
            file.seek(at["lost"])
            file.write(data[at["lost"]:at["lost"] + block])
            file.seek(at["torn"])
            file.write(data[at["torn"]:at["torn"] + 512])
            file.seek(at["misplaced"])
            file.write(newer[:block] if at["misplaced"] else newer[block:2 * block])
            file.seek(at["corrupt"] + 1000)
            file.write(b"\x55" * 10)
        result, said = bench(target, "--check", "--load-map", saved)
        tap.equal((result.returncode, findings(said)),
                  (1, {"lost": 1, "torn": 1, "misplaced": 1, "corrupt": 1}),
                  "a block of each kind of damage is found")
        tap.ok(" is " in result.stderr and "block" in result.stderr, "and one of them is shown",
               result.stderr)
    with Target(target_program, scratch.path, "fault:write=lost/50;mem:", "1Mi") as target:
        result, said = bench(target, "-r", "50", "-n", "2000", "-V", "--span", "64Ki")
        tap.ok(result.returncode == 1 and findings(said).get("lost"),
               "a write that was acknowledged and not done is found", said)
    with Target(target_program, scratch.path, "fault:write=EIO/100;mem:", "1Mi") as target:
        result, said = bench(target, "-r", "0", "-n", "1000", "-k", "-V")
        tap.equal((result.returncode, said["errors"]), (1, 10), "errors are counted")
        result, said = bench(target, "-r", "0", "-n", "1000")
        tap.equal((result.returncode, said["errors"]), (1, 1), "the first error ends a run")


def killed(scratch, number, flags, how, why=""):
    """The target is killed in the middle of writes, and started again; what it owes is there."""
    volume, saved = scratch.file(f"killed-{number}"), scratch.file(f"killed-map-{number}")
    target = Target(target_program, scratch.path, "file:" + volume, "16Mi").start()
    said = {}

    def write():
        said["result"], said["said"] = bench(target, "-r", "30", "-q", "16", "-t", "30", "-V",
                                             "--flush-every", "50", "--save-map", saved, *flags)
    writer = threading.Thread(target=write)
    writer.start()
    wait_for(lambda: os.path.exists(volume) and os.stat(volume).st_blocks > 2000, 20)
    target.stop(signal.SIGKILL)
    if not how:  # it is not to wait for one that does not come
        writer.join()
    target.start()
    if how:
        writer.join()
        tap.equal((said["result"].returncode, said["said"].get("errors"), findings(said["said"]),
                   said["said"].get("reconnects", 0) > 0), (0, 0, {}, True),
                  "a run that connects anew goes on without an error")
    else:
        tap.ok(said["result"].returncode == 1 and said["said"]["errors"] and why in said["result"].stderr,
               "a run that does not connect anew, or not in time, ends with the target", said["result"].stderr)
    result, checked = bench(target, "--check", "--load-map", saved)
    tap.ok(result.returncode == 0 and checked["verify"]["checked"] > 100,
           "all that was acknowledged is there after a kill -9", result.stderr + str(checked))
    target.stop(signal.SIGKILL)


def command_line(scratch):
    for flags, message in [
            (["iscsi", "http://x/y"], "not the URL of a unit"),
            (["iscsi", "iscsi://127.0.0.1:1/iqn.x/0"], "cannot log in"),
            (["nbd", "iscsi://x/y/0"], "'nbd' is none of iscsi"),
            (["iscsi", "iscsi://x/y/0", "-q", "0"], "a number from 1 to 1024"),
            (["iscsi", "iscsi://x/y/0", "-b", "1000"], "a multiple of 512"),
            (["iscsi", "iscsi://x/y/0", "--check"], "--check needs --load-map")]:
        result = run(orlop, "bench", *flags)
        tap.ok(result.returncode in (1, 2) and message in result.stderr, f"says: {message}",
               result.stderr)
    with Target(target_program, scratch.path, "mem:", "1Mi") as target:
        url = target.url().replace("127.0.0.1", "user%secret@127.0.0.1")
        result = run(orlop, "bench", "iscsi", url, "-n", "1")
        tap.ok("secret" not in result.stdout + result.stderr, "a password is not shown",
               result.stdout + result.stderr)


with Scratch() as folder:
    ENVIRONMENT["LSAN_OPTIONS"] = "print_suppressions=0:suppressions=" + folder.file(
        "leaks", "leak:libiscsi.so\n")
    loads(folder)
    growth(folder)
    damage(folder)
    killed(folder, 1, [], False)
    killed(folder, 2, ["--reconnect", "-t", "4"], True)
    killed(folder, 3, ["--reconnect", "--reconnect-for", "1"], False, "the target has been away for 1 s")
    command_line(folder)
tap.done()
