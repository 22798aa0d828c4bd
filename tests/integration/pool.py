#!/usr/bin/env python3
"""orlop-pool: real pools on sparse files, from what their objects say.

pool.py APISERVER POOL ZVOLDATA [TEST...]
"""
import json
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from pools import MEBI, PUBLISHED, Api, Disks, Pool, group, in_ns, zdb  # noqa: E402
from server import Server  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402

apiserver, program, zvoldata = sys.argv[1:4]
tap = Tap()


class Bench:
    """What the parts share; each has disks and a cluster of its own."""

    def __init__(self, server, api, scratch):
        self.server, self.api, self.scratch = server, api, scratch

    def disks(self, name):
        return Disks(self.api, self.scratch.file(f"{name}.disks"), cluster=name)

    def pool(self, name, *flags, node="n1"):
        return Pool(program, self.server, self.api, self.scratch.path, name, *flags, node=node, cluster=name)


def data(disks, mode, mebibytes=8, seed=1, volume="vol", names=None):
    """Data in a volume of the pool on these disks, which nobody has open."""
    paths = [disks.path(n) for n in names or sorted(os.listdir(disks.folder))]
    return run(zvoldata, mode, volume, str(mebibytes), str(seed), *paths)


# Layouts of the design's samples, and what ZFS has beside.
LAYOUTS = {
    "stripe": [("stripe", "a", {})],
    "stripe-four": [("stripe", "abcd", {})],
    "stripe-and-mirror": [("stripe", "abcd", {}), ("mirror", "ef", {})],
    "two-mirrors": [("mirror", "ab", {}), ("mirror", "cd", {})],
    "raidz": [("raidz", "abc", {})],
    "raidz2": [("raidz2", "abcd", {})],
    "all-roles": [("mirror", "ab", {}), ("mirror", "cd", {"isWriteCache": True}), ("stripe", "e", {"isReadCache": True}),
                  ("stripe", "f", {"isSpare": True})],
}


def named(prefix, layout):
    return [group(kind, *(f"{prefix}-{n}" for n in names), **roles) for kind, names, roles in layout]


def test_layouts(bench):
    pools = {}
    for name, layout in LAYOUTS.items():
        disks, pool = bench.disks(name), bench.pool(name)
        disks.make(*(f"{name}-{n}" for _, names, _ in layout for n in names))
        pool.create(*named(name, layout))
        pools[name] = (disks, pool.start())
    disks, pool = bench.disks("published"), bench.pool("published")
    disks.make("published-a", "published-b", "published-c")
    pool.create(api=PUBLISHED, spec={
        "hostName": "n1", "nodeSelector": {"kubernetes.io/hostname": "n1"},
        "poolConfig": {"dataRaidGroupType": "mirror", "writeCacheGroupType": "stripe", "thickProvision": False},
        "dataRaidGroups": [{"blockDevices": [{"blockDeviceName": "published-a"}, {"blockDeviceName": "published-b"}]}],
        "writeCacheRaidGroups": [{"blockDevices": [{"blockDeviceName": "published-c"}]}]})
    pools["published"] = (disks, pool.start())
    for name, (disks, pool) in pools.items():
        tap.equal(pool.wait(), "ONLINE", f"{name}: reaches ONLINE")
        states = pool.states()
        tap.ok(len(states) == len(os.listdir(disks.folder)) and set(states.values()) <= {"ONLINE", "SPARE"},
               f"{name}: every device has its state", states)
        tap.equal(pool.stop(), 0, f"{name}: the process ends in order")
        seen = zdb(disks.folder, pool.zname, "-C")
        kinds = [kind for kind in ("mirror", "raidz") if f"type: '{kind}'" in seen.stdout]
        tap.equal((seen.returncode, kinds), (0, sorted({k.rstrip("2") for k, *_ in LAYOUTS.get(name, [("mirror",)])
                                                        if k != "stripe"})),
                  f"{name}: zdb sees the pool, exported, with these groups")
    tap.ok(pools["all-roles"][1].states().get("all-roles-f") == "SPARE", "the spare waits")


def test_day_two(bench):
    """Expansion, a new group, a replacement: with data that is there before and after."""
    disks, pool = bench.disks("day2"), bench.pool("day2")
    disks.make("d-a", "d-b", "d-c", "d-d", "d-s")
    first = group("mirror", "d-a", "d-b")
    pool.create(first)
    with pool:
        tap.equal(pool.wait(), "ONLINE", "day 2: a mirror")
        guid, small = pool.status()["guid"], pool.status()["capacity"]["total"]
        pool.stop()
        tap.ran(data(disks, "write", 24), "data is written to a volume")
        pool.start()
        tap.ok(wait_for(lambda: pool.phase() == "ONLINE" and pool.states().get("d-a") == "ONLINE"), "imported again")
        tap.equal(pool.status()["guid"], guid, "it is the same pool")
        pool.groups(first, group("mirror", "d-c", "d-d"))
        tap.ok(wait_for(lambda: pool.states().get("d-d") == "ONLINE"), "a new group is added", pool.states())
        tap.ok(wait_for(lambda: pool.status()["capacity"]["total"] != small), "and the pool has grown")
        pool.groups(first, group("mirror", "d-c", "d-d"), group("stripe", "d-s", isSpare=True))
        tap.ok(wait_for(lambda: pool.states().get("d-s") == "SPARE"), "a spare is added", pool.states())
        disks.make("d-e", predecessor="d-b")
        pool.groups(group("mirror", "d-a", "d-e"), group("mirror", "d-c", "d-d"), group("stripe", "d-s", isSpare=True))
        tap.ok(wait_for(lambda: pool.states().get("d-e") == "ONLINE" and "d-b" not in pool.states()),
               "a device is replaced", pool.status())
        tap.ok(wait_for(lambda: disks.predecessor("d-e") == "" and disks.predecessor("d-b") is None),
               "the old one is given back, and the claim forgets it", disks.predecessor("d-e"))
        tap.ok(wait_for(lambda: {"Created", "Imported", "Expanded", "ReplacementBegun", "Replaced"} <= set(pool.events())),
               "people are told", pool.events())
        events = pool.events()
        tap.equal(pool.condition("DiskReplacement").get("status"), "False", "no replacement is under way any more")
        text = pool.metrics()
        tap.ok(f'openebs_pool_status{{pool="{pool.zname}"}} 1' in text and "openebs_free_pool_capacity{" in text,
               "metrics have the established names", text[-2000:])
        _, lease = bench.api.get("/apis/coordination.k8s.io/v1/namespaces/openebs/leases/day2")
        tap.ok(lease.get("spec", {}).get("renewTime"), "the heartbeat is there", lease)
        for how in (signal.SIGKILL, signal.SIGABRT):
            pool.process.send_signal(how)
            pool.process.wait()
            pool.start()
            tap.ok(wait_for(lambda: pool.text().count("it was=imported") > events.count("Imported")
                            and pool.phase() == "ONLINE"), f"imported after {how.name}")
            events.append("Imported")
        pool.stop()
    tap.equal(data(disks, "verify", 24, names=["d-c", "d-d", "d-e"]).stdout, "0\n",
              "all data is there without the device that was not replaced")
    tap.ran(zdb(disks.folder, pool.zname, "-bcc", "-Y"), "zdb reads every block and finds them right")


def test_parallel(bench):
    """Replacements in two groups and an expansion at once; the process is killed in the middle of them."""
    disks, pool = bench.disks("par"), bench.pool("par")
    disks.make("r-a", "r-b", "r-c", "r-d", "r-s")
    pool.create(group("mirror", "r-a", "r-b"), group("mirror", "r-c", "r-d"))
    with pool:
        pool.wait()
        pool.stop()
        data(disks, "write", 24)
        disks.make("r-e", predecessor="r-b")
        disks.make("r-f", predecessor="r-d")
        pool.groups(group("mirror", "r-a", "r-e"), group("mirror", "r-c", "r-f"), group("stripe", "r-s"))
        pool.faults(*(f"{disks.path(n)} write slow 100" for n in ("r-e", "r-f")))
        pool.start()
        seen = []

        def under_way():
            states = set(pool.states())
            seen.append(pool.condition("DiskReplacement").get("status"))
            return {"r-b", "r-e", "r-s"} <= states or {"r-d", "r-f", "r-s"} <= states
        tap.ok(wait_for(under_way), "devices are replaced while the pool grows", pool.status())
        tap.ok("True" in seen, "and the condition says so")
        pool.kill()
        pool.faults()
        pool.start()
        tap.ok(wait_for(lambda: not {"r-b", "r-d"} & set(pool.states()) and pool.states().get("r-f") == "ONLINE"
                        and disks.predecessor("r-e") == "" and disks.predecessor("r-f") == "", 120),
               "after kill -9 in the middle both go on to their end", pool.status())
        pool.stop()
    tap.equal(data(disks, "verify", 24, names=["r-e", "r-f", "r-s"]).stdout, "0\n",
              "the new devices alone have all data")


def test_foreign(bench):
    """Devices that have something else on them are left alone, to the last byte."""
    disks, pool = bench.disks("foreign"), bench.pool("foreign")
    disks.make("f-a", "f-ext", "f-pool")
    subprocess.run(["mkfs.ext4", "-q", "-F", disks.path("f-ext")], check=True)
    other = bench.pool("other")
    disks.make("f-b")
    other.cluster = "foreign"
    other.create(group("stripe", "f-pool"))
    with other:
        other.wait()
        other.stop()

    def sums():
        return run("sha256sum", *(disks.path(n) for n in ("f-ext", "f-pool"))).stdout
    before = sums()
    pool.create(group("mirror", "f-a", "f-ext"))
    with pool:
        tap.equal(pool.wait("PoolCreationFailed"), "PoolCreationFailed", "a device with ext4 is refused")
        tap.ok("ext4" in pool.condition("Available").get("message", ""), "and the condition says so",
               pool.status())
        tap.ok(wait_for(lambda: "DeviceNotEmpty" in pool.events()), "as an event does")
        bench.api.must("DELETE", in_ns("cstorpoolinstances", "foreign"))
        tap.ok(wait_for(lambda: pool.get() is None), "an object without a pool can go")
        pool.create(group("mirror", "f-a", "f-pool"))
        tap.ok(wait_for(lambda: "label of pool" in pool.condition("Available").get("message", "")),
               "a device of another pool is refused", pool.status())
        bench.api.must("DELETE", in_ns("cstorpoolinstances", "foreign"))
        wait_for(lambda: pool.get() is None)
        pool.create(group("mirror", "f-a", "f-b"))
        tap.equal(pool.wait(), "ONLINE", "with two empty ones it is made")
        pool.groups(group("mirror", "f-a", "f-b"), group("mirror", "f-ext", "f-pool"))
        tap.ok(wait_for(lambda: pool.condition("PoolExpansion").get("status") == "True"),
               "adding such devices is refused", pool.status())
    tap.equal(sums(), before, "nothing was written to either")
    # A spare's label does not say whose it is: what the object says of it does.
    spares, pool = bench.disks("spares"), bench.pool("spares")
    spares.make("p-a", "p-s")
    pool.create(group("stripe", "p-a"), group("stripe", "p-s", isSpare=True))
    with pool:
        tap.ok(wait_for(lambda: pool.states().get("p-s") == "SPARE"), "a pool with a spare", pool.status())
        tap.ok("adding" not in pool.status(), "which is added, and no longer about to be")
        pool.stop()
    shutil.copyfile(spares.path("p-s"), spares.path("p-t"))
    spares.make("p-t")
    groups = group("stripe", "p-a"), group("stripe", "p-s", "p-t", isSpare=True)
    pool.groups(*groups)
    with pool:
        tap.ok(wait_for(lambda: "is a spare of a pool" in pool.condition("PoolExpansion").get("message", "")),
               "a device with a label of somebody's spare is refused", pool.status())
        pool.stop()
    pool.patch({"status": {"adding": ["p-t"]}})
    with pool:
        tap.ok(wait_for(lambda: pool.states().get("p-t") == "SPARE"),
               "one that was being added when the process died is added", pool.status())


def test_faults(bench):
    """A device that fails, one that is damaged silently, and a spare."""
    disks, pool = bench.disks("faults"), bench.pool("faults")
    disks.make("x-a", "x-b", "x-s")
    pool.create(group("mirror", "x-a", "x-b"), group("stripe", "x-s", isSpare=True))
    with pool:
        pool.wait()
        pool.stop()
        data(disks, "write", 16)
        pool.start()
        wait_for(lambda: pool.phase() == "ONLINE" and pool.text().count("it was=imported") == 1)
        pool.faults(f"{disks.path('x-b')} read,write,sync eio")
        pool.annotate("openebs.io/scrub-requested-at", "2030-01-01T00:00:00Z")
        tap.ok(wait_for(lambda: pool.states().get("x-s") == "ONLINE" and "SpareInUse" in pool.events(), 120),
               "the spare takes over from a device that fails", pool.status())
        tap.equal(pool.phase(), "DEGRADED", "the pool is degraded, and says so")
        tap.ok("x-b" in pool.condition("DiskUnavailable").get("message", ""), "and which device it is",
               pool.condition("DiskUnavailable"))
        tap.ok(wait_for(lambda: "resilver" not in pool.status() and "ResilverDone" in pool.events()),
               "the spare has everything", pool.status())
        pool.kill()
        pool.faults()
        pool.start()
        tap.ok(wait_for(lambda: pool.phase() == "ONLINE" and pool.states().get("x-s") == "SPARE", 120),
               "when it is back the spare is free", pool.status())
        pool.stop()
    with open(disks.path("x-b"), "r+b") as f:
        f.seek(5 * MEBI)
        f.write(b"spoilt!!" * (110 * MEBI // 8))
    with pool:
        wait_for(lambda: pool.phase() == "ONLINE")
        started = pool.status().get("scrub", {}).get("startTime")
        pool.annotate("openebs.io/scrub-requested-at", "2031-01-01T00:00:00Z")

        def scrubbed():
            scrub = pool.status().get("scrub", {})
            return scrub.get("startTime") != started and scrub.get("endTime")
        tap.ok(wait_for(scrubbed, 120), "a scrub is done when it is asked for", pool.status())
        scrub = pool.status()["scrub"]
        errors = {d["blockDeviceName"]: d["checksumErrors"] for d in pool.status()["devices"]}
        tap.ok(errors["x-b"] > 0 and errors["x-a"] == 0 and scrub["errors"] == 0,
               "silent damage is counted, and mended", pool.status())
        tap.ok(wait_for(lambda: "DamageFound" in pool.events()), "people are told of it", pool.events())
        damage = errors["x-b"]
        text = pool.metrics()
        tap.ok(f'orlop_pool_device_errors{{pool="{pool.zname}",blockdevice="x-b",kind="checksum"}} {damage}' in text
               and f'orlop_pool_errors{{pool="{pool.zname}",kind="checksum"}} {damage}' in text
               and f'orlop_pool_damaged_blocks{{pool="{pool.zname}"}} 0' in text
               and f'orlop_pool_scrub_percent{{pool="{pool.zname}"}} 100' in text, "and metrics count it", text)
        pool.annotate("openebs.io/clear-requested-at", "2031-01-01T00:00:00Z" * 9)
        tap.ok(wait_for(lambda: pool.status().get("clear", {}).get("time")
                        and {d["checksumErrors"] for d in pool.status()["devices"]} == {0}),
               "the count is forgotten when that is asked for", pool.status())
        pool.stop()
        pool.start()
        wait_for(lambda: pool.text().count("it was=imported") == 4 and pool.phase() == "ONLINE")
        tap.equal(pool.events().count("Cleared"), 1, "once")
        pool.stop()
    tap.equal(data(disks, "verify", 16, names=["x-b"]).stdout, "0\n", "the side that was damaged has all data")


def test_paths(bench):
    """A device that was away comes back at another path, and another one is at its own."""
    disks, pool = bench.disks("paths"), bench.pool("paths")
    disks.make("y-a", "y-b")
    pool.create(group("mirror", "y-a", "y-b"))
    with pool:
        pool.wait()
        pool.stop()
        os.rename(disks.path("y-b"), disks.path("y-moved"))
        disks.file("y-b")
        pool.start()
        tap.ok(wait_for(lambda: pool.phase() == "DEGRADED" and pool.states().get("y-b") == "UNAVAIL"),
               "a device that is away, and another in its place", pool.status())
        tap.ran(run("cmp", "-n", str(128 * MEBI), disks.path("y-b"), "/dev/zero"), "which is not touched")
        disks.change("y-b", {"spec": {"path": disks.path("y-moved")}})
        tap.ok(wait_for(lambda: pool.phase() == "ONLINE" and pool.states() == {"y-a": "ONLINE", "y-b": "ONLINE"}),
               "it is back, elsewhere", pool.status())
        tap.ok(wait_for(lambda: "DeviceBack" in pool.events()), "and people are told", pool.events())
        tap.equal(pool.text().count("it was=imported"), 1, "by the same process")
        pool.stop()


def test_only_device(bench):
    """A pool on one device, which fails for a while, and then forgets what was written to it."""
    disks, pool = bench.disks("only"), bench.pool("only")
    disks.make("o-a")
    pool.create(group("stripe", "o-a"))
    request = "openebs.io/scrub-requested-at"
    with pool:
        pool.wait()
        pool.stop()
        data(disks, "write", 8)
        pool.start()
        wait_for(lambda: pool.text().count("it was=imported") == 1 and pool.phase() == "ONLINE")
        pool.faults(f"{disks.path('o-a')} read,write,sync eio")
        pool.annotate(request, "1")
        tap.equal(pool.wait("FAULTED"), "FAULTED", "the only device fails: the pool is suspended, and says so")
        tap.equal(pool.condition("PoolLost").get("status"), "True", "so does its condition")
        pool.faults()
        tap.equal(pool.wait(), "ONLINE", "it goes on when the device does")
        tap.equal(pool.text().count("it was=imported"), 1, "in the same process")
        wait_for(lambda: pool.status().get("scrub", {}).get("endTime"))
        pool.faults(f"{disks.path('o-a')} write lose", f"{disks.path('o-a')} sync eio")
        pool.annotate(request, "2")
        tap.ok(wait_for(lambda: not pool.alive()), "when it forgets what was written the process ends", pool.status())
        tap.ok("to be imported anew" in pool.text(), "and says why", pool.text()[-2000:])
        pool.faults()
        pool.start()
        tap.ok(wait_for(lambda: pool.text().count("it was=imported") == 2 and pool.phase() == "ONLINE"),
               "the next imports the pool", pool.status())
        pool.stop()
    tap.equal(data(disks, "verify", 8).stdout, "0\n", "everything that was promised is there")


def test_full(bench):
    disks, pool = bench.disks("full"), bench.pool("full")
    disks.make("u-a")
    pool.create(group("stripe", "u-a"), config={"roThresholdLimit": 80})
    with pool:
        pool.wait()
        pool.stop()
        tap.ran(data(disks, "write", 47), "a pool is filled")
        pool.start()
        tap.ok(wait_for(lambda: pool.status().get("readOnly") is True), "it takes no more writes", pool.status())
        tap.ok(wait_for(lambda: {"PoolNearlyFull", "ReadOnly"} <= set(pool.events())), "and says so", pool.events())
        pool.delete()
        tap.equal(pool.wait("DeletionFailed"), "DeletionFailed", "with volumes on it a pool is not destroyed")
        pool.stop()
        tap.ran(data(disks, "remove"), "the volume goes")
        pool.start()
        tap.ok(wait_for(lambda: pool.get() is None), "then the object goes too", pool.status())
        tap.equal(pool.stop(), 0, "the process ends in order")
    label = subprocess.run(["cmp", "-n", str(512 << 10), disks.path("u-a"), "/dev/zero"], check=False,
                           capture_output=True)
    tap.equal(label.returncode, 0, "no label is left")


def test_host_full(bench):
    """The file system below a sparse device is full: the pool waits, says why, and goes on when there is space."""
    if os.geteuid() != 0:
        return
    folder = bench.scratch.file("small.disks")
    os.mkdir(folder)
    tap.ran(run("mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", folder), "a small file system")
    try:
        disks, pool = Disks(bench.api, folder, cluster="small"), bench.pool("small")
        disks.make("h-a")
        pool.create(group("stripe", "h-a"))
        with pool:
            tap.equal(pool.wait(), "ONLINE", "with a pool that may grow larger than it")
            with open(f"{folder}/ballast", "wb", buffering=0) as ballast:
                tap.ok(any(fails(ballast) for _ in range(24)), "is filled by others")
            pool.patch({"spec": {"poolConfig": {"compression": "lz4"}}})
            said = "the file system that its sparse devices are on is full"
            tap.ok(wait_for(lambda: pool.phase() == "FAULTED" and said in json.dumps(pool.status())),
                   "the pool is suspended, and says what to do", pool.status())
            os.unlink(f"{folder}/ballast")
            tap.equal(pool.wait(), "ONLINE", "with space it goes on by itself")
            tap.equal(pool.stop(), 0, "and ends in order")
    finally:
        run("umount", "-l", folder)


def fails(file):
    try:
        return file.write(bytes(MEBI)) < MEBI
    except OSError:
        return True


def test_migration(bench):
    """The pool moves with its devices; a node that is gone does not keep it."""
    disks, pool = bench.disks("move"), bench.pool("move")
    disks.make("m-a")
    pool.create(group("stripe", "m-a"))

    def set_ready(name, status):
        bench.api.must("PATCH", f"/api/v1/nodes/{name}/status", {"status": {"conditions": [
            {"type": "Ready", "status": status}]}}, content_type="application/merge-patch+json")
    for name in ("n1", "n2"):
        bench.api.must("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
        set_ready(name, "True")
    with pool:
        pool.wait()
        guid = pool.status()["guid"]
        pool.patch({"spec": {"hostName": "n2", "nodeSelector": {"kubernetes.io/hostname": "n2"}}})
        tap.ok(wait_for(lambda: "the pool was exported" in pool.text()), "the old node lets the pool go")
        pool.patch({"spec": {"hostName": "n1", "nodeSelector": {"kubernetes.io/hostname": "n1"}}})
        tap.ok(wait_for(lambda: "it was=imported" in pool.text()), "and has it again when it is to stay", pool.text()[-2000:])
        disks.change("m-a", {"spec": {"nodeAttributes": {"nodeName": "n2"}}})
        pool.patch({"spec": {"hostName": "n2", "nodeSelector": {"kubernetes.io/hostname": "n2"}}})
        tap.ok(wait_for(lambda: pool.text().count("the pool was exported") == 2), "it moves after all")
        second = bench.pool("move")
        second.log += ".n2"
        with second:
            tap.ok(wait_for(lambda: "it was=imported" in second.text()), "the new one has it", second.text())
            tap.equal(second.wait(), "ONLINE", "and it is online")
            second.kill()
        pool.patch({"spec": {"hostName": "n1", "nodeSelector": {"kubernetes.io/hostname": "n1"}}})
        pool.stop()
        pool.start()
        tap.ok(wait_for(lambda: "last used by host" in pool.condition("Available").get("message", "")),
               "a pool that another node may have is not touched", pool.status())
        taken = "the host that had the pool last is gone"
        tap.ok(taken not in pool.text(), "nor about to be", pool.text()[-2000:])
        set_ready("n2", "Unknown")
        tap.equal(pool.wait(), "ONLINE", "when that node is not ready it is taken over")
        tap.ok(taken in pool.text(), "for that reason", pool.text()[-2000:])
        tap.equal(pool.status()["guid"], guid, "the same pool")
        # A process that is killed when it is about to let the pool go does not come again there.
        disks.change("m-a", {"spec": {"nodeAttributes": {"nodeName": "n2"}}})
        set_ready("n2", "True")
        pool.kill()
        pool.patch({"spec": {"hostName": "n2", "nodeSelector": {"kubernetes.io/hostname": "n2"}}})
        with second:
            tap.ok(wait_for(lambda: second.text().count("it was=imported") == 2, 120),
                   "a pool that was killed as it moved is taken by the node that has its devices", second.text()[-2000:])
            tap.equal((second.wait(), second.status()["guid"]), ("ONLINE", guid), "the same pool again")
            tap.ok(taken not in second.text(), "though the other node lives", second.text()[-2000:])
            second.stop()


def test_from_cstor(bench):
    """A pool that cStor made: called after its cluster, known by other paths, left without an export."""
    disks, pool = Disks(bench.api, bench.scratch.file("cstor.disks"), cluster="cstor", node="n9"), bench.pool("cstor", node="n9")
    bench.api.must("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {
        "name": "n9", "labels": {"kubernetes.io/hostname": "n9"}}})
    for name in ("was-a", "was-b"):
        disks.file(name)
    groups = [group("mirror", "q-a", "q-b")]
    for name in ("q-a", "q-b"):
        disks.device(name, 128 * MEBI)
        disks.claim(name)
    spec = {"nodeSelector": {"kubernetes.io/hostname": "n9"}, "raidGroups": groups,
            "poolConfig": {"defaultRaidGroupType": "mirror"}}
    owner = bench.api.must("POST", in_ns("cstorpoolclusters"), {
        "apiVersion": "openebs.io/v1alpha1", "kind": "CStorPoolCluster", "metadata": {"name": "cstor"},
        "spec": {"pools": [spec]}})["metadata"]["uid"]
    tap.ran(data(disks, "make", 16, volume=f"cstor-{owner}"), "a pool as cStor makes it, with data")
    for name in ("a", "b"):
        os.rename(disks.path(f"was-{name}"), disks.path(f"q-{name}"))
    pool.create(*groups, ownerReferences=[{"apiVersion": "openebs.io/v1alpha1", "kind": "CStorPoolCluster",
                                           "name": "cstor", "uid": owner, "controller": True}])
    with pool:
        tap.equal(pool.wait(), "ONLINE", "is imported without a word")
        tap.ok("it was=imported" in pool.text() and "it was=made" not in pool.text(), "and not made", pool.text()[-2000:])
        tap.equal(pool.states(), {"q-a": "ONLINE", "q-b": "ONLINE"}, "with all its devices")
        tap.ok(f'openebs_pool_status{{pool="cstor-{owner}"}} 1' in pool.metrics(), "under its name")
        disks.make("q-c", predecessor="q-b")
        pool.groups(group("mirror", "q-a", "q-c"))
        tap.ok(wait_for(lambda: pool.states() == {"q-a": "ONLINE", "q-c": "ONLINE"}), "a device is replaced in it",
               pool.status())
        guid = pool.status()["guid"]
        pool.stop()
    tap.equal(data(disks, "verify", 16, names=["q-c"]).stdout, "0\n", "all data is there")
    seen = zdb(disks.folder, f"cstor-{owner}", "-C")
    tap.ok(seen.returncode == 0 and f"pool_guid: {guid}" in seen.stdout, "zdb sees the same pool", seen)


def test_files_of_others(bench):
    """A BlockDevice that leads to a file outside of the node's sparse devices does not give that file away."""
    victim, before = bench.scratch.file("victim"), os.urandom(4096) + bytes(128 * MEBI - 4096)
    with open(victim, "wb") as f:
        f.write(before)
    for how in ("path", "link"):
        disks, pool = bench.disks(f"by-{how}"), bench.pool(f"by-{how}")
        pool.sparse_dir = disks.folder
        disks.make(f"o-{how}")
        if how == "path":
            disks.change("o-path", {"spec": {"path": victim}})
        else:
            os.unlink(disks.path("o-link"))
            os.symlink(victim, disks.path("o-link"))
        pool.create(group("stripe", f"o-{how}"))
        with pool:
            said = "no block device, and no file of this node's sparse devices"
            tap.ok(wait_for(lambda: said in json.dumps(pool.status())), f"a file of others, by its {how}, is refused",
                   pool.status())
            tap.ok(pool.phase() != "ONLINE", "there is no pool", pool.status())
    with open(victim, "rb") as f:
        tap.ok(f.read() == before, "and the file is as it was")


with Scratch() as scratch, open(scratch.file("api.log"), "w", encoding="utf-8") as log, \
        Server(apiserver, scratch.file("api"), log=log) as server:
    bench = Bench(server, Api(server).namespace(), scratch)
    only = sys.argv[4:]
    for test in (test_layouts, test_day_two, test_parallel, test_foreign, test_faults, test_paths, test_only_device,
                 test_full, test_host_full, test_migration,
                 test_from_cstor, test_files_of_others):
        if not only or test.__name__ in only:
            test(bench)
    logs = "".join(open(os.path.join(scratch.path, f), encoding="utf-8", errors="replace").read()
                   for f in os.listdir(scratch.path) if ".log" in f)
    tap.ok("Sanitizer" not in logs and "runtime error" not in logs, "no sanitizer complained", logs[-4000:])
tap.done()
