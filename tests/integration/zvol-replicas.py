#!/usr/bin/env python3
"""Replicas that are zvols, in three pools with a process each: they are killed, moved, damaged and filled under a volume
that goes on.

zvol-replicas.py PROGRAMS ZVOLREPLICA [scrub] [CHECK...]
"""
import json
import os
import random
import signal
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from namespaces import own_network  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402
from zvols import ZvolVolume  # noqa: E402

programs, zvolreplica = sys.argv[1:3]
scrubbed = "scrub" in sys.argv[3:]
chosen_checks = [word for word in sys.argv[3:] if word.startswith("check_")]
tap = Tap()
SIZE = 16 << 20


def ask(volume, *words):
    return run(f"{programs}/orlop-target", "target", words[0], "--control", volume.control, *words[1:])


def bench(volume, name, *words):
    done = volume.bench("--verify", *words)
    tap.ok(done.returncode == 0, name, done.stdout + done.stderr + volume.target.text()[-1500:])
    return done


def load(volume, *words):
    return volume.bench("--verify", "--reconnect", "-q", "8", *words, wait=False)


def ends_well(work, name):
    text, errors = work.communicate(timeout=120)
    tap.ok(work.returncode == 0, name, text + errors)


def restart(volume, replica):
    replica.start()
    tap.ok(volume.healthy(), "it comes back", volume.status())


def digests(volume, i, size=SIZE):
    """Of the volume and its snapshots in pool i, whose process has ended."""
    done = run(zvolreplica, "digest", volume.device(i), str(size))
    return dict(line.split() for line in done.stdout.splitlines()) if done.returncode == 0 else done.stderr


def all_equal(volume, name, size=SIZE):
    """What lies in the three pools is the same; they are stopped and started for it."""
    tap.ok(volume.healthy(), "all are healthy", volume.status())
    tap.equal([r.stop() for r in volume.replicas], [0, 0, 0], "all stop in order")
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda i: digests(volume, i, size), range(3)))
    tap.ok(found[0] and found[0] == found[1] == found[2], name, found)
    for replica in volume.replicas:
        replica.start()
    tap.ok(volume.healthy(), "and all come back", volume.status())
    return found[0]


def check_first(volume):
    tap.ok(volume.healthy(), "three zvols are a healthy volume", volume.status())
    bench(volume, "it is written", "--fill", "-b", "128Ki", "-r", "0", "-q", "4", "-p", "sequential")
    tap.ok(wait_for(lambda: volume.view(0).get("logical", 0) >= SIZE), "ZFS says what it takes", volume.view(0))
    tap.ok(volume.healthy(), "and all are complete", volume.status())
    tap.ok(wait_for(lambda: all(volume.view(i).get("complete") for i in range(3))), "as they say themselves",
           [volume.view(i) for i in range(3)])


def check_killed(volume):
    """One that is killed under load comes back with what it missed."""
    work = load(volume, "-r", "30", "-t", "4", "--span", "8Mi", "--flush-every", "50", "--seed", "3")
    wait_for(lambda: volume.status()["sessions"])
    volume.written(100)
    volume.replicas[1].kill()
    volume.written(100)
    restart(volume, volume.replicas[1])
    ends_well(work, "the load notices nothing")
    wait_for(lambda: volume.view(1)["complete"])
    seen = volume.views(1)
    tap.ok(any(v["rebuilding"] for v in seen) and seen[-1]["complete"] and not seen[-1]["fresh"],
           "its rebuild was shown, as that of one that had everything once", seen[-5:])


def copied(volume, i):
    """Of the rebuild that replica i had last."""
    wanted = f"{int.from_bytes(volume.view(i)['guid'].to_bytes(8, 'big'), 'big'):016x}"
    for replica in volume.status()["volumeStatus"][0]["replicaStatus"]:
        if replica["replicaId"].replace("-", "").endswith(wanted):
            return replica["rebuildCopied"]
    return None


def check_moved(volume):
    """A pool that is exported and imported carries its replica along: it gets what it missed, and little more."""
    tap.equal(volume.replicas[0].stop(), 0, "a pool is exported")
    wrote = json.loads(bench(volume, "clients write meanwhile", "-r", "0", "-n", "200", "-q", "4", "--span", "16Mi",
                             "--seed", "7").stdout)["ios"] * 4096
    restart(volume, volume.replicas[0])
    much = copied(volume, 0)
    print(f"# {wrote} bytes were written meanwhile, {much} copied")
    tap.ok(much is not None and 0 < much <= 1.1 * wrote + (64 << 10), "by what was written meanwhile", (wrote, much))


def check_all_killed(volume):
    """All pools and the target at once: what was flushed is there."""
    saved = f"{volume.folder}/flushed"
    work = volume.bench("--verify", "-r", "0", "-q", "8", "-t", "60", "--flush-every", "20", "--save-map", saved, "--seed",
                        "11", wait=False)
    volume.written(400)
    for process in [volume.target, *volume.replicas]:
        process.signal(signal.SIGKILL)
    for process in [volume.target, *volume.replicas]:
        process.kill()
    work.communicate(timeout=60)
    for process in [volume.target, *volume.replicas]:
        process.start()
    tap.ok(volume.healthy(), "all come back", volume.status())
    done = volume.bench("--check", "--load-map", saved, "--expect", "flushed")
    tap.ok(done.returncode == 0, "every flushed write is there", done.stdout + done.stderr)
    # Who wrote is told once that what was not flushed may be lost.
    wait_for(lambda: volume.bench("-r", "0", "-n", "20", "--flush-every", "5").returncode == 0)


def flip(path, seed):
    """A byte in every tenth block of the load, wherever it lies; how many."""
    chosen, spoiled = random.Random(seed), 0
    with open(path, "r+b") as f:
        for at in range(0, os.path.getsize(path), 4096):
            f.seek(at)
            block = f.read(4096)
            # Each sector begins with its block, and its own number above that.
            numbers = [int.from_bytes(block[i:i + 8], "little") for i in range(0, 4096, 512)]
            if any(n != i << 48 | numbers[0] for i, n in enumerate(numbers)) or not any(block) or chosen.random() > 0.1:
                continue
            f.seek(at + 100)
            f.write(bytes([block[100] ^ 0x10]))
            spoiled += 1
    return spoiled


def check_damage(volume):
    """Bytes change on the only disk of a pool: reads stay right, and it is mended from the others."""
    saved = f"{volume.folder}/spoiled"
    bench(volume, "the volume is written anew", "--fill", "-b", "4Ki", "-r", "0", "-q", "8", "-p", "sequential",
          "--flush-every", "1000", "--save-map", saved)
    tap.ok(volume.healthy(), "on all replicas", volume.status())
    volume.replicas[2].stop()
    spoiled = flip(volume.device(2), 5)
    restart(volume, volume.replicas[2])
    ends = volume.replicas[2].text().count("no connection")
    done = volume.bench("--verify", "--check", "--load-map", saved)
    tap.ok(done.returncode == 0 and spoiled > 100, "every read is right", done.stdout + done.stderr)
    tap.ok(wait_for(lambda: (v := volume.view(2))["damaged"] >= v["mended"] > 10), "damage is counted, and mended",
           volume.view(2))
    if scrubbed:
        tap.ran(ask(volume, "scrub"), "a scrub reads everything")
        tap.ok(wait_for(lambda: (v := volume.view(2))["mended"] == v["damaged"] > 50), "all of it is mended",
               volume.view(2))
    print(f"# {spoiled} blocks were changed; {volume.view(2)['damaged']} pieces were damaged, "
          f"{volume.view(2)['mended']} mended")
    tap.equal(volume.replicas[2].text().count("no connection"), ends, "without leaving the volume")
    if scrubbed:
        all_equal(volume, "what lies in the pools is the same")
    bench(volume, "the volume is written anew", "--fill", "-b", "128Ki", "-r", "0", "-q", "4", "-p", "sequential")


def check_snapshots(volume):
    saved = f"{volume.folder}/before"
    bench(volume, "the volume is written", "-r", "0", "-n", "500", "-q", "4", "--seed", "21", "--save-map", saved,
          "--flush-every", "100")
    tap.ran(ask(volume, "snapshot", "--name", "first"), "a snapshot is taken", stdout="1 snapshot\n")
    volume.replicas[1].kill()
    bench(volume, "clients go on", "-r", "0", "-n", "300", "-q", "4", "--seed", "22")
    tap.ran(ask(volume, "snapshot", "--name", "second"), "another while a replica is away")
    bench(volume, "clients go on", "-r", "0", "-n", "300", "-q", "4", "--seed", "23")
    restart(volume, volume.replicas[1])
    tap.ok(wait_for(lambda: all(volume.view(i)["snapshots"] == 2 for i in range(3))), "all pools have both",
           [volume.view(i) for i in range(3)])
    found = all_equal(volume, "with the same in them")
    tap.equal(len(found), 3, "which are two snapshots and the volume")
    tap.ran(ask(volume, "snapshot-delete", "--name", "second"), "the later one is deleted")
    tap.ran(ask(volume, "revert", "--name", "first"), "the volume goes back")
    done = volume.bench("--verify", "--check", "--load-map", saved)
    tap.ok(done.returncode == 0, "and is as it was", done.stdout + done.stderr)
    found = all_equal(volume, "in all pools")
    tap.equal(len(set(found.values())), 1, "as the snapshot is")
    tap.ran(ask(volume, "snapshot-delete", "--name", "first"), "the snapshot is deleted")


def check_by_hand(volume):
    """A zvol that somebody rolled back is not believed; nor is one whose metadata is gone."""
    tap.ran(ask(volume, "snapshot", "--name", "old"), "a snapshot is taken")
    bench(volume, "clients write", "-r", "0", "-n", "300", "-q", "4", "--seed", "31", "--flush-every", "50")
    volume.replicas[0].stop()
    name = next(n for n in digests(volume, 0) if "@" in n)
    tap.ran(run(zvolreplica, "rollback", volume.device(0), name), "a zvol is rolled back by hand")
    restart(volume, volume.replicas[0])
    tap.ok(any("older copy" in v["damage"] and v["fresh"] for v in volume.views(0)), "it is known for what it is",
           volume.views(0)[-4:])
    volume.replicas[0].stop()
    tap.ran(run(zvolreplica, "destroy", volume.device(0), f"{volume.name}:orlop"), "its metadata is destroyed")
    restart(volume, volume.replicas[0])
    tap.ok(any("metadata is gone" in v["damage"] and v["fresh"] for v in volume.views(0)), "it has lost its data",
           volume.views(0)[-4:])
    tap.ran(ask(volume, "snapshot-delete", "--name", "old"), "the snapshot is deleted")
    all_equal(volume, "both times it was made whole")


def check_full(volume):
    """Pools that are nearly full: the volume waits, nothing fails."""
    for replica in volume.replicas:
        replica.signal(signal.SIGUSR2)
    work = load(volume, "-r", "0", "-n", "200", "--seed", "41")
    tap.ok(wait_for(lambda: sum(volume.view(i)["full"] for i in range(3)) >= 2), "two of three wait for room",
           [volume.view(i) for i in range(3)])
    tap.ok(work.poll() is None, "writes wait")
    for replica in volume.replicas:
        replica.signal(signal.SIGUSR2)
    ends_well(work, "and go on when there is room")
    tap.ok(volume.healthy(), "nobody was lost", volume.status())


def check_destroyed(volume):
    replica = volume.replicas[2]
    replica.signal(signal.SIGUSR1)
    tap.ok(wait_for(lambda: not replica.alive()) and volume.view(2)["gone"], "a replica is destroyed", volume.view(2))
    tap.equal(digests(volume, 2), {}, "and nothing of it is left")
    replica.start()
    tap.ok(wait_for(lambda: volume.view(2).get("missing") and volume.view(2)["known"]),
           "one that is missing is not made again", volume.view(2))


def main():
    own_network()
    with Scratch() as scratch, ZvolVolume(programs, zvolreplica, scratch.path, size="16Mi") as volume:
        for check in (check_first, check_killed, check_moved, check_all_killed, check_damage, check_snapshots,
                      check_by_hand, check_full, check_destroyed):
            if chosen_checks and check.__name__ not in chosen_checks + ["check_first"]:
                continue
            failed = tap.failed
            check(volume)
            if tap.failed > failed:
                for process in [volume.target, *volume.replicas]:
                    print("#", check.__name__, process.text()[-2500:].replace("\n", "\n# "))


main()
tap.done()
