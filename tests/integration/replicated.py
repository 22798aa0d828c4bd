#!/usr/bin/env python3
"""A replicated volume with real processes, one thing at a time: what it costs to lose a replica, what a
rebuild copies, growth, members that come and go, strangers, keys.

replicated.py PROGRAMS
"""
import json
import os
import socket
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from crowd import Crowd  # noqa: E402
from namespaces import own_network  # noqa: E402
from replicated import REPLICA_PORT, Process, Volume  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402

programs = sys.argv[1]
sanitized = "asan" in programs or "tsan" in programs
tap = Tap()


def ask(volume, *words):
    return run(f"{programs}/orlop-target", "target", words[0], "--control", volume.control, *words[1:])


def identity(volume, i):
    with open(f"{volume.folder}/r{i}/id", encoding="utf-8") as f:
        return f.read().strip()


def replica_status(volume, i):
    status = volume.status()
    return next((r for r in status["volumeStatus"][0]["replicaStatus"]
                 if r["replicaId"] == identity(volume, i)), {})


def slowest(volume, hurt, seconds=6):
    """Writes for some seconds, does something in the middle; the slowest, in ms, and the result."""
    load = volume.bench("-r", "0", "-q", "4", "-t", str(seconds), "--verify", wait=False)
    volume.written(500)
    hurt()
    text, errors = load.communicate(timeout=120)
    if load.returncode:
        tap.ok(False, "writes go on", text + errors)
        return None, {}
    said = json.loads(text)
    return said["latencyMicroseconds"]["write"]["max"] / 1000, said


def check_loss(volume):
    """A frozen replica and a killed one stall nothing for long."""
    budget = 2000 if sanitized else 500
    worst, _ = slowest(volume, volume.replicas[1].freeze)
    print(f"# the slowest write with a replica that freezes: {worst} ms")
    tap.ok(worst is not None and worst < budget, f"a frozen replica stalls no write for {budget} ms", worst)
    tap.ok(replica_status(volume, 1).get("mode") in ("Offline", "Degraded"), "it is known to be behind",
           volume.status())
    volume.replicas[1].thaw()
    tap.ok(volume.healthy(), "it comes back when it goes on", volume.status())
    worst, said = slowest(volume, volume.replicas[2].kill)
    print(f"# with one that is killed: {worst} ms, p99.9 {said['latencyMicroseconds']['write']['p99.9']} us")
    tap.ok(worst is not None and worst < budget, "a killed one neither", worst)
    volume.replicas[2].start()
    tap.ok(volume.healthy(), "it comes back when it is started", volume.status())


def check_delta(volume):
    """A replica that was away gets what it missed, and little more."""
    region = 64 << 10
    tap.equal(volume.bench("--fill", "-b", "256Ki", "-p", "sequential", "-r", "0", "-q", "8").returncode, 0,
              "the volume is full")
    volume.healthy()
    volume.replicas[0].stop()
    wrote = json.loads(volume.bench("-r", "0", "-n", "200", "-q", "8", "--span", "16Mi", "--verify",
                                    "--seed", "7").stdout)["ios"] * 4096
    volume.replicas[0].start()
    tap.ok(volume.healthy(), "it is rebuilt", volume.status())
    copied = replica_status(volume, 0).get("rebuildCopied", -1)
    print(f"# {wrote} bytes were written meanwhile, {copied} copied")
    tap.ok(0 < copied <= 1.1 * wrote + region, "by copying what was written meanwhile", (wrote, copied))


def check_growth(volume):
    tap.ran(ask(volume, "grow", "--size", "128Mi"), "the volume grows", stdout="128Mi")
    tap.ok(all(os.path.getsize(volume.data(i)) >= 128 << 20 for i in range(volume.n)), "on every replica")
    volume.replicas[1].stop()
    tap.ran(ask(volume, "grow", "--size", "160Mi"), "also while one is away", stdout="160Mi")
    volume.replicas[1].start()
    tap.ok(volume.healthy() and os.path.getsize(volume.data(1)) >= 160 << 20, "which follows", volume.status())
    tap.ran(ask(volume, "grow", "--size", "64Mi"), "it does not shrink", 1, stderr="does not shrink")


def check_words(volume):
    """What people see."""
    shown = tap.ran(ask(volume, "show"), "what there is is shown", stdout="writes are acknowledged by 2 of 3").stdout
    tap.ok(all(identity(volume, i) in shown for i in range(volume.n)), "with every replica", shown)
    tap.ran(ask(volume, "show", "-o", "yaml"), "as YAML, too", stdout="  replicaStatus:\n  - replicaId: ")
    for words, status, why in ((("grow",), 2, "grow needs --size"), (("grow", "--size", "many"), 2, "is not a quantity"),
                               (("grow", "--size", "8Ti"), 1, "64 times as large"), (("add",), 2, "add needs --replica"),
                               (("remove",), 2, "remove needs --replica"), (("revert",), 2, "revert needs --name"),
                               (("show", "-o", "xml"), 2, "'xml' is none of text, json, yaml")):
        tap.ran(ask(volume, *words), f"{' '.join(words)}: {why}", status, stderr=why)
    volume.replicas[0].stop()
    tap.ok(wait_for(lambda: "durable at least up to" in ask(volume, "show").stdout), "who is away is shown so",
           ask(volume, "show").stdout)
    volume.replicas[1].stop()
    tap.ok(wait_for(lambda: "I/O waits until 2 of 3 are in sync" in ask(volume, "show").stdout), "and that I/O waits",
           ask(volume, "show").stdout)
    for replica in volume.replicas[:2]:
        replica.start()
    tap.ok(volume.healthy(), "they come back", volume.status())


def check_members(volume):
    """A replica is replaced while clients write."""
    load = volume.bench("-r", "50", "-q", "8", "-t", "8", "--verify", wait=False)
    volume.replicas.append(volume.replica(3).start())
    wait_for(lambda: os.path.exists(f"{volume.folder}/r3/id"))
    tap.ran(ask(volume, "add", "--replica", identity(volume, 3), "--instead", identity(volume, 0)),
            "a replica takes the place of another")
    tap.ok(volume.healthy(), "all are Healthy", volume.status())
    ids = [r["replicaId"] for r in volume.status()["volumeStatus"][0]["replicaStatus"]]
    tap.ok(identity(volume, 3) in ids and identity(volume, 0) not in ids, "the new one is one of them", ids)
    text, errors = load.communicate(timeout=60)
    tap.ok(load.returncode == 0, "and nobody noticed", text + errors)
    volume.replicas[0].kill()
    tap.ran(ask(volume, "scrub"), "all replicas are compared")
    tap.equal([r["scrubErrors"] for r in volume.status()["volumeStatus"][0]["replicaStatus"]], [0] * volume.n,
              "and are the same")
    tap.ran(ask(volume, "add", "--replica", "nobody"), "nonsense is refused", 1, stderr="is not a UUID")


def check_scrub(volume):
    """What a disk changes by itself is found and mended."""
    volume.bench("-r", "0", "-n", "50", "--flush-every", "50")
    with open(volume.data(1), "r+b") as disk:
        disk.seek(1 << 20)
        disk.write(os.urandom(4096))
    tap.ran(ask(volume, "scrub"), "replicas that differ are compared")
    tap.ok(sum(r["scrubErrors"] for r in volume.status()["volumeStatus"][0]["replicaStatus"]) > 0,
           "the difference is found", volume.status())
    tap.ran(ask(volume, "scrub"), "once more")
    with open(volume.data(1), "rb") as one, open(volume.data(2), "rb") as other:
        one.seek(1 << 20)
        other.seek(1 << 20)
        tap.equal(one.read(4096), other.read(4096), "it was mended by the majority")


def check_strangers(volume):
    """Whoever has no business here is let go, and harms nothing."""
    stranger = Process(f"{volume.folder}/stranger.log", f"{programs}/orlop-replica", "replica", "serve", "--dir",
                       f"{volume.folder}/stranger", "--volume", "another", "--target",
                       f"127.0.0.1:{REPLICA_PORT}", "--key-file", volume.key).start()
    tap.ok(wait_for(lambda: "no connection" in stranger.text()), "a replica of another volume is refused",
           stranger.text())
    stranger.kill()
    impostor = Process(f"{volume.folder}/impostor.log", f"{programs}/orlop-replica", "replica", "serve", "--dir",
                       f"{volume.folder}/stranger", "--volume", "test", "--target",
                       f"127.0.0.1:{REPLICA_PORT}", "--key-file", volume.key).start()
    tap.ok(wait_for(lambda: not impostor.alive()) and "belongs to another volume" in impostor.text(),
           "its folder is not taken for one of this volume", impostor.text())
    frame = struct.pack("<4sBBHII16sIIQQQ", b"OrRp", 3, 1, 0, 0, 0, bytes(16), 0, 0, 0, 0, 0)
    for words, name in ((b"GET / HTTP/1.0\r\n\r\n" * 10, "another protocol"), (os.urandom(4096), "noise"),
                        (frame, "a frame without a key")):
        with socket.create_connection(("127.0.0.1", REPLICA_PORT), timeout=20) as peer:
            peer.sendall(words)
            try:
                ended = peer.recv(1 << 16) == b""
            except ConnectionResetError:
                ended = True
            tap.ok(ended, f"{name} ends the connection")
    check_crowd(volume)
    tap.equal(volume.bench("-r", "50", "-n", "500", "-q", "8", "--verify").returncode, 0, "and works")


def check_crowd(volume):
    """A thousand who connect, say nothing and come again keep no replica out."""
    files = f"/proc/{volume.target.process.pid}/fd"
    with Crowd(REPLICA_PORT, 1000) as crowd:
        tap.ok(volume.healthy(), "silent strangers do not disturb the replicas that are there", volume.status())
        volume.replicas[1].kill()
        tap.ok(wait_for(lambda: volume.modes().count("Healthy") == volume.n - 1), "one replica goes", volume.modes())
        volume.replicas[1].start()
        began = time.monotonic()
        tap.ok(volume.healthy(30), "it comes back through a crowd of silent strangers", volume.status())
        print(f"# {time.monotonic() - began:.1f} s; {crowd.let_go} strangers were let go")
        tap.ok(len(os.listdir(files)) < 200, "the target keeps few of the strangers' connections", os.listdir(files))
    tap.ok(volume.healthy(), "the volume is as it was", volume.status())


def check_restart(volume):
    """Everything ends at once, and what was flushed is there."""
    saved = f"{volume.folder}/map"
    volume.bench("-r", "0", "-q", "16", "-n", "4000", "--flush-every", "100", "--verify", "--save-map", saved)
    for process in [volume.target, *volume.replicas]:
        process.kill()
    volume.target.start()
    for replica in volume.replicas[1:]:
        replica.start()
    tap.ok(volume.healthy(90), "all killed at once, it comes back", volume.status())
    done = volume.bench("--check", "--load-map", saved, "--expect", "flushed")
    tap.ok(done.returncode == 0, "with everything that was flushed", done.stdout + done.stderr)
    began = time.monotonic()
    volume.target.kill()
    volume.target.start()
    done = volume.bench("-r", "0", "-n", "1", "--reconnect")
    while done.returncode and time.monotonic() - began < 20:
        done = volume.bench("-r", "0", "-n", "1", "--reconnect")
    took = time.monotonic() - began
    print(f"# {took:.2f} s from the target's end to the first I/O")
    tap.ok(took < 5, "a target that is killed serves again soon", took)


def check_key(volume):
    """Without the volume's key nobody is let in, and nobody listens or dials, on loopback neither."""
    keyless = [w for w in volume.target.argv if w not in ("--key-file", volume.key)]
    tap.ran(run(*keyless), "a target opens no port for replicas without a key", 2, stderr="needs --key-file")
    keyless = [w for w in volume.replica(5).argv if w not in ("--key-file", volume.key)]
    tap.ran(run(*keyless), "a replica does not dial without a key", 2, stderr="needs --key-file")
    tap.ok(not os.path.exists(f"{volume.folder}/r5"), "and has made nothing")
    with open(f"{volume.folder}/other-key", "w", encoding="ascii") as f:
        f.write("x" * 32)
    stranger = volume.replica(5)
    stranger.argv = tuple(f"{volume.folder}/other-key" if w == volume.key else w for w in stranger.argv)
    stranger.start()
    tap.ok(wait_for(lambda: "no connection" in stranger.text()), "with another key nobody gets in", stranger.text())
    stranger.kill()
    tap.ok(volume.healthy(), "the others are not disturbed", volume.status())


def check_making(scratch):
    """A volume is made once, of the replicas that were named; and what a replica that is gone for ever takes along."""
    folder = scratch.file("making")
    os.mkdir(folder)
    named = ["--create", "--replicas", "2", "--replica-ids", "a,b", "--size", "16Mi"]
    volume = Volume(programs, folder, replicas=2, size="16Mi", name="named", making=named)
    for replica, name in zip(volume.replicas, "ab"):
        replica.argv += ("--id", name)
    stranger = volume.replica(2)
    stranger.argv += ("--id", "c")
    wrong = run(*volume.target.argv, "--replica-ids", "a,b,c")
    tap.ran(wrong, "as many must be named as there are to be", 2, stderr="--replica-ids names 3")
    volume.target.start()
    volume.replicas[0].start()
    stranger.start()
    tap.ok(wait_for(lambda: len(volume.modes()) == 2 and os.path.exists(f"{folder}/r2/meta")), "the target knows its two")
    tap.ok(not volume.status()["ready"], "a blank stranger is not taken", volume.status())
    with volume:  # starts all
        saved = f"{folder}/map"
        volume.bench("-r", "0", "-n", "500", "-q", "8", "--verify", "--save-map", saved)
        volume.target.kill()
        volume.replicas[0].kill()
        volume.replicas[1].kill()
        volume.target.argv = volume.making  # still says that it may be made
        volume.target.start()
        tap.ok(wait_for(lambda: stranger.text().count("replica serves") and volume.status()), "with the stranger alone")
        tap.ok(not volume.status()["ready"], "it is not made of the stranger", volume.status())
        stranger.kill()
        for replica in volume.replicas:
            replica.start()
        tap.ok(volume.healthy(), "when the others are back it is found, not made", volume.status())
        done = volume.bench("--check", "--load-map", saved)
        tap.ok(done.returncode == 0, "with what was written", done.stdout + done.stderr)
        other = volume.replica(1)
        other.argv += ("--id", "b2")
        tap.ran(run(*other.argv), "a folder is who it is", 1, stderr="not the one that --id says")
        check_force(volume, saved)


def check_force(volume, saved):
    """One of two is gone for ever."""
    gone = identity(volume, 1)
    tap.ran(ask(volume, "remove", "--replica", gone, "--force"), "force is refused while the volume serves", 1,
            stderr="without --force")
    volume.replicas[0].freeze()
    tap.ok(wait_for(lambda: not volume.status()["volumeStatus"][0]["serving"]), "with one of two it waits")
    tap.ran(ask(volume, "remove", "--replica", gone, "--force"), "and while that one answers", 1, stderr="answers")
    volume.replicas[0].thaw()
    tap.ok(volume.healthy(), "both are there", volume.status())
    volume.replicas[1].kill()
    tap.ok(wait_for(lambda: not volume.status()["volumeStatus"][0]["serving"]), "one is gone")
    tap.ran(ask(volume, "remove", "--replica", gone, "--force"), "it is taken out by force")
    volume.n = 1
    tap.ok(volume.healthy(), "the other serves", volume.status())
    tap.ok("all that was acknowledged is on the others" in volume.target.text(), "the log says what was at stake")
    done = volume.bench("--check", "--load-map", saved)
    tap.ok(done.returncode == 0, "and has everything", done.stdout + done.stderr)


def check_beneath(scratch):
    """What is erased lies where it was said to, wherever links and dots lead."""
    top = scratch.file("erase")
    for folder in ("in/node/vol", "out/vol"):
        os.makedirs(f"{top}/{folder}")
        with open(f"{top}/{folder}/id", "w", encoding="ascii"):
            pass
    os.symlink("../out", f"{top}/in/link")
    for path, status, said in (("in/link/vol", 1, "leads out of its folder"), ("in/../out/vol", 1, "leads out"),
                               ("out/vol", 1, "is not beneath"), ("in/none", 0, ""), ("in/node/vol", 0, "")):
        tap.ran(run(f"{programs}/orlop-replica", "replica", "erase", "--beneath", f"{top}/in", "--dir", f"{top}/{path}",
                    "--volume", "v"), f"erasing {path} beneath in", status, stderr=said)
    tap.equal((os.path.exists(f"{top}/out/vol/id"), os.path.exists(f"{top}/in/node/vol")), (True, False),
              "only the one that was beneath is gone")


if not own_network():
    tap.skip("replicated volumes", "no network namespaces here")
    tap.done()
with Scratch() as scratch:
    os.mkdir(scratch.file("volume"))
    with Volume(programs, scratch.file("volume"), size="64Mi") as volume:
        try:
            check_loss(volume)
            check_delta(volume)
            check_growth(volume)
            check_words(volume)
            check_members(volume)
            check_scrub(volume)
            check_key(volume)
            check_strangers(volume)
            check_restart(volume)
        finally:
            if tap.failed:
                for process in [volume.target, *volume.replicas]:
                    print("\n".join("# " + line for line in process.text().splitlines()[-40:]))
    check_making(scratch)
    check_beneath(scratch)
tap.done()
