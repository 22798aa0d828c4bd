#!/usr/bin/env python3
"""orlop pool and orlop disk, on objects that this test writes in place of nodes and operators.

pool-cli.py APISERVER TOP ORLOP
"""
import json
import os
import pty
import re
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from pool_objects import device, instance, node, path, put, replica  # noqa: E402
from server import Server  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402

program, top, orlop = sys.argv[1:4]
tap = Tap()
NS = "openebs"


class World:
    """The server, and the commands with its kubeconfig."""

    def __init__(self, server):
        self.server = server
        self.env = {**server.kubectl_env, "KUBECONFIG": server.kubeconfig, "LC_ALL": "C"}

    def run(self, *argv, **env):
        return run(orlop, *argv, env={**self.env, **env})

    def expect(self, name, argv, status=0, stdout=None, stderr=None, **env):
        result = self.run(*argv.split(), **env)
        passed = result.returncode == status
        passed &= stdout is None or stdout == result.stdout
        passed &= stderr is None or stderr in result.stderr
        tap.ok(passed, name, f"exit status {result.returncode}\n{result.stdout}{result.stderr}")
        return result

    def get(self, kind, name):
        return self.server.get(f"{path(kind, NS)}/{name}")[1]

    def groups(self, name):
        return [[(g["type"], [d["blockDeviceName"] for d in g["blockDevices"]])
                 for g in p["raidGroups"]] for p in self.get("CStorPoolCluster", name)["spec"]["pools"]]

    def patch(self, kind, name, value):
        status, reply = self.server.merge(f"{path(kind, NS)}/{name}", value)
        assert status == 200, reply

    def operate(self, cluster):
        """What the operator and the pools would do: instances of all pools, online."""
        value = self.get("CStorPoolCluster", cluster)
        for index, pool in enumerate(value["spec"]["pools"]):
            host = next(iter(pool["nodeSelector"].values()))
            devices = [{"blockDeviceName": d["blockDeviceName"], "state": "ONLINE"}
                       for g in pool["raidGroups"] for d in g["blockDevices"]]
            put(self.server, instance(f"{cluster}-{index}", cluster, {**pool, "hostName": host},
                                      status={"phase": "ONLINE", "devices": devices,
                                              "capacity": {"total": "10Gi", "used": "4Gi",
                                                           "free": "6Gi"}}), NS)


def prepare(server):
    server.create("/api/v1/namespaces", {"metadata": {"name": NS}})
    for it in ("n1", "n2", "n3"):
        put(server, node(it))
        for letter in "bcde":
            put(server, device(f"bd-{it}-{letter}", it, path=f"/dev/sd{letter}", details={
                "deviceType": "disk", "vendor": "Acme", "model": "Z1", "serial": f"S{it}{letter}"},
                devlinks=[{"kind": "by-path", "links": [f"/dev/disk/by-path/slot-{letter}"]}]), NS)


def check_disks(w):
    result = w.run("disk", "list", "-N", "n1")
    lines = [re.split(r"   +", it) for it in result.stdout.splitlines()]
    tap.equal((lines[0], lines[1][:8]),
              (["NAME", "NODE", "PATH", "SIZE", "TYPE", "STATE", "USE", "POOL", "AGE"],
               ["bd-n1-b", "n1", "/dev/sdb", "10Gi", "disk", "Active", "Unclaimed", "<none>"]),
              "as a table")
    tap.equal(len(lines), 5, "those of the node")
    w.expect("names", "disk list -o name bd-n1-b sdc -N n1",
             stdout="blockdevice.openebs.io/bd-n1-b\nblockdevice.openebs.io/bd-n1-c\n")
    tap.equal(len(json.loads(w.run("disk", "list", "-o", "json").stdout)["items"]), 12, "as JSON")
    for name, status in (("claimed", {"claimState": "Claimed", "state": "Active"}),
                         ("gone", {"claimState": "Unclaimed", "state": "Inactive"}),
                         ("with-data", {"claimState": "Unclaimed", "state": "Active", "conditions": [
                             {"type": "Claimable", "status": "False", "reason": "HasFileSystem"}]})):
        put(w.server, {**device(f"bd-x-{name}", "n9", path=f"/dev/{name}"), "status": status}, NS)
    put(w.server, device("bd-x-free", "n9", path="/dev/free"), NS)
    w.expect("disk list --free leaves out what is claimed, inactive or not claimable",
             "disk list --free -N n9 -o name", stdout="blockdevice.openebs.io/bd-x-free\n")
    for name in ("claimed", "gone", "with-data", "free"):
        w.server.ask("DELETE", f"/apis/openebs.io/v1alpha1/namespaces/{NS}/blockdevices/bd-x-{name}")
    tap.ok("SERIAL" in w.run("disk", "list", "-o", "wide").stdout, "wide has serial numbers")
    w.expect("a path is on many nodes", "disk show sdb", status=1,
             stderr="3 disks are called \"sdb\"; write more of the name, or say on which node")
    w.expect("what is not there", "disk show sdz -N n1", status=1,
             stderr="there is no disk \"sdz\" on node n1; `orlop disk list` shows those there are")
    w.expect("a disk", "disk show sdb --node n2", stdout=None)
    w.expect("where it is", "disk locate bd-n1-b", stdout="""\
Node:        n1
Slot:        /dev/disk/by-path/slot-b
Path:        /dev/sdb
Printed on:  Acme Z1
Serial:      Sn1b
State:       Active
No pool and no claim has it: it can be pulled.
""")
    tap.equal(json.loads(w.run("disk", "show", "bd-n1-b", "-o", "json").stdout)["metadata"]["name"],
              "bd-n1-b", "a disk as JSON")


def check_create(w):
    w.expect("no group", "pool create fast", status=2, stderr="say of which disks")
    w.expect("no node", "pool create fast --mirror sdb,sdc", status=2,
             stderr="--mirror takes NODE:DISK,DISK,..., such as node-1:sdb,sdc, not 'sdb,sdc'")
    manifest = w.run("pool", "create", "fast", "--mirror", "n1:bd-n1-b,bd-n1-c", "--log", "n1:bd-n1-d",
                     "--mirror", "n2:bd-n2-b,bd-n2-c", "--compression", "lz4", "--dry-run", "-o", "yaml",
                     KUBECONFIG="/nowhere")
    tap.equal(manifest.returncode, 0, "a dry run needs no API")
    valid = run(orlop, "validate", "-", stdin=manifest.stdout)
    tap.equal((valid.returncode, valid.stdout), (0, "1 object valid\n"), "its manifest is valid")
    w.expect("nothing was made", "pool list", stdout="", stderr="No pools found")
    w.expect("an unknown node", "pool create fast --mirror n9:sdb,sdc", status=1,
             stderr='there is no node "n9"')
    w.expect("an unknown disk", "pool create fast --mirror n1:sdb,sdz", status=1,
             stderr='there is no disk "sdz" on node n1')
    w.expect("what admission refuses", "pool create fast --mirror n1:sdb", status=1,
             stderr="a mirror group needs at least 2 devices but has 1")
    w.expect("pools on two nodes", "pool create fast --mirror n1:sdb,sdc --log n1:sdd --mirror "
             "n2:bd-n2-b,sdc --thin", stdout="cstorpoolcluster.openebs.io/fast created\n")
    tap.equal(w.groups("fast"), [[("mirror", ["bd-n1-b", "bd-n1-c"]), ("stripe", ["bd-n1-d"])],
                                 [("mirror", ["bd-n2-b", "bd-n2-c"])]], "as asked for")
    config = w.get("CStorPoolCluster", "fast")["spec"]["pools"][1]["poolConfig"]
    tap.equal((config["overProvisioning"], config["defaultRaidGroupType"]), (True, "mirror"),
              "with its settings")
    w.expect("the same again", "pool create fast --mirror n3:sdb,sdc", status=1,
             stderr='"fast" already exists')
    w.expect("a disk of another cluster", "pool create other --stripe n1:sdb", status=1,
             stderr="[device-one-cluster]")
    w.expect("where a disk of a pool is", "disk locate bd-n1-b", status=1)
    result = w.expect("pools that are not there yet", "pool list")
    tap.equal([re.split(r"   +", it)[:4] for it in result.stdout.splitlines()][1:],
              [["fast", "<none>", "n1", "Missing"], ["fast", "<none>", "n2", "Missing"]],
              "are shown as missing")


def check_show(w):
    w.operate("fast")
    w.patch("CStorPoolInstance", "fast-1", {"status": {
        "phase": "DEGRADED", "readOnly": True,
        "devices": [{"blockDeviceName": "bd-n2-b", "state": "ONLINE", "checksumErrors": 3},
                    {"blockDeviceName": "bd-n2-c", "state": "UNAVAIL", "readErrors": 1}],
        "scrub": {"percent": 7, "startTime": "2024-01-01T00:00:00Z", "errors": 2, "repaired": "12Ki"},
        "resilver": {"percent": 42, "remainingSeconds": 150, "blockDeviceName": "bd-n2-b"}}})
    w.patch("CStorPoolInstance", "fast-1", {"status": {"conditions": [
        {"type": "Available", "status": "True", "reason": "Open", "message": "the pool is open"},
        {"type": "DiskUnavailable", "status": "True", "reason": "Gone", "message": "bd-n2-c is gone"}]}})
    w.patch("CStorPoolCluster", "fast", {"status": {"conditions": [
        {"type": "PoolsProvisioned", "status": "True", "reason": "Provisioned", "message": "all there"},
        {"type": "PoolsUpToDate", "status": "False", "reason": "Busy", "message": "one is not"}]}})
    w.patch("BlockDevice", "bd-n2-c", {"status": {"state": "Inactive"}})
    w.expect("a tree", "pool show fast", stdout="""\
fast   1 of 2 pools online
|- PoolsUpToDate: one is not
|- fast-0 on n1   ONLINE   [########------------] 40%   4Gi of 10Gi
|  |- mirror
|  |  |- bd-n1-b   ONLINE   10Gi   /dev/sdb
|  |  `- bd-n1-c   ONLINE   10Gi   /dev/sdc
|  `- log
|     `- bd-n1-d   ONLINE   10Gi   /dev/sdd
`- fast-1 on n2   DEGRADED   [########------------] 40%   4Gi of 10Gi   read-only
   |- DiskUnavailable: bd-n2-c is gone
   |- scrub [#-------------------] 7%: 12Ki mended, 2 blocks damaged without another copy
   `- mirror
      |- bd-n2-b   ONLINE   10Gi   /dev/sdb   3 checksum errors   [########------------] 42% resilvered, 2m30s left
      `- bd-n2-c   UNAVAIL   10Gi   /dev/sdc   disk is Inactive   1 read error
""")
    result = w.run("pool", "show", "fast", LC_ALL="C.UTF-8")
    tap.ok("│  └─ log\n" in result.stdout and "[████████░░░░░░░░░░░░] 40%" in result.stdout,
           "in Unicode", result.stdout)
    tap.equal([it["kind"] for it in json.loads(w.run("pool", "show", "fast", "-o", "json").stdout)["items"]],
              ["CStorPoolCluster", "CStorPoolInstance", "CStorPoolInstance"], "as JSON")
    w.expect("no such cluster", "pool show slow", status=1, stderr='"slow" not found')
    result = w.expect("a list", "pool list -o wide")
    tap.ok(re.search(r"fast +fast-1 +n2 +DEGRADED +10Gi +40% +0 +\S+ +2 +resilver 42 % +openebs",
                     result.stdout), "with what is under way", result.stdout)
    w.expect("of one node", "pool list --node n1 -o name",
             stdout="cstorpoolinstance.openebs.io/fast-0\n")
    tap.equal(len(w.run("pool", "list", "-A").stdout.splitlines()), 3, "of all namespaces")
    w.patch("BlockDevice", "bd-n2-c", {"status": {"state": "Active"}})
    w.patch("CStorPoolInstance", "fast-1", {"status": {"phase": "ONLINE", "readOnly": False,
                                                       "resilver": None}})


def check_changes(w):
    w.expect("nothing to expand", "pool expand fast", status=2, stderr="say of which disks")
    w.expect("an expansion that would be", "pool expand fast --mirror n2:sdd,sde --dry-run",
             stdout="cstorpoolcluster.openebs.io/fast expanded (dry run)\n")
    tap.equal(len(w.groups("fast")[1]), 1, "is none")
    w.expect("a group", "pool expand fast --mirror n2:sdd,sde -o name",
             stdout="cstorpoolcluster.openebs.io/fast\n")
    w.expect("a pool on a third node", "pool expand fast --stripe n3:sdb")
    w.expect("a device of its stripe", "pool expand fast --stripe n3:sdc")
    tap.equal(w.groups("fast")[1:], [[("mirror", ["bd-n2-b", "bd-n2-c"]),
                                      ("mirror", ["bd-n2-d", "bd-n2-e"])],
                                     [("stripe", ["bd-n3-b", "bd-n3-c"])]], "all of it")
    w.operate("fast")
    w.expect("no such disk in it", "pool replace fast bd-n3-e sde", status=1,
             stderr="no pool of fast has the disk \"bd-n3-e\"; `orlop pool show fast` shows them")
    w.expect("a replacement that is refused", "pool replace fast bd-n3-b sdd", status=1,
             stderr="[replacement-needs-redundancy]")
    w.expect("a replacement", "pool replace fast bd-n1-c sde",
             stdout="cstorpoolcluster.openebs.io/fast changed\n")
    tap.equal(w.groups("fast")[0][0], ("mirror", ["bd-n1-b", "bd-n1-e"]), "is in the manifest")
    w.expect("a second one", "pool replace fast bd-n1-b bd-n3-d", status=1)
    w.expect("what is missing is said", "pool replace fast bd-n1-b", status=2, stderr=": NEW is missing")
    w.expect("all of it", "pool replace fast", status=2, stderr=": OLD NEW are missing")
    w.expect("a move without disks", "pool migrate fast n3 n1", status=1, stderr="[")
    w.expect("a pool that is not there", "pool migrate fast n9 n1", status=1,
             stderr='fast has no pool on node "n9"')
    w.expect("a scrub", "pool scrub fast --node n1",
             stdout="cstorpoolinstance.openebs.io/fast-0 scrub requested\n")
    said = w.get("CStorPoolInstance", "fast-0")["metadata"]["annotations"]
    tap.ok(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", said["openebs.io/scrub-requested-at"]),
           "is asked for by an annotation", said)
    w.expect("of all pools", "pool scrub fast", stdout="".join(
        f"cstorpoolinstance.openebs.io/fast-{it} scrub requested\n" for it in range(3)))
    w.expect("a clear", "pool clear fast --node n2",
             stdout="cstorpoolinstance.openebs.io/fast-1 clear requested\n")
    tap.ok("openebs.io/clear-requested-at" in w.get("CStorPoolInstance", "fast-1")["metadata"]["annotations"],
           "is asked for by an annotation too")
    w.expect("whose pool to forget", "pool forget fast", status=2, stderr="--node NODE is missing")
    w.expect("a pool to forget that is none", "pool forget fast --node n9", status=1, stderr='has no pool on node "n9"')
    put(w.server, node("n4"))
    for it in "bc":
        put(w.server, device(f"bd-n3-{it}", "n4"), NS)
    w.expect("a move", "pool migrate fast n3 n4", stdout="cstorpoolcluster.openebs.io/fast changed\n")
    tap.equal(w.get("CStorPoolCluster", "fast")["spec"]["pools"][2]["nodeSelector"],
              {"kubernetes.io/hostname": "n4"}, "is in the manifest")


def check_wait(w):
    w.expect("no time", "pool expand fast --stripe n4:x --wait --timeout 0", status=2,
             stderr="--timeout: '0' is too short; write at least 1s")
    w.expect("too short a time", "pool create small --stripe n3:sdd --wait --timeout 1", status=1,
             stdout="cstorpoolcluster.openebs.io/small created\n",
             stderr="small: 0 of 1 pools are online: not done in 1 s; `orlop pool show small` shows")
    ours, theirs = pty.openpty()
    put(w.server, device("bd-n3-f", "n3", path="/dev/sdf"), NS)
    with subprocess.Popen([orlop, "pool", "expand", "small", "--stripe", "n3:sdf", "--wait"],
                          env=w.env, stdout=subprocess.PIPE, stderr=theirs) as process:
        os.close(theirs)
        threading.Thread(target=lambda: wait_for(
            lambda: len(w.groups("small")[0][0][1]) == 2) and w.operate("small")).start()
        status = process.wait(60)
    said = b""
    try:
        while part := os.read(ours, 65536):
            said += part
    except OSError:  # nobody has the other end
        pass
    os.close(ours)
    tap.ok(status == 0 and b"small: 0 of 1 pools are online" in said, "it waits, and says for what",
           said)


def check_delete(w):
    w.operate("fast")
    put(w.server, replica("pvc-1", "fast-1"), NS)
    w.expect("a pool with a replica", "pool delete fast --node n2", status=1, stderr="[pool-in-use]")
    w.expect("the cluster with it", "pool delete fast", status=1, stderr="[pool-in-use]")
    w.expect("nor is it forgotten", "pool forget fast --node n2", status=1, stderr="[pool-in-use]")
    mark = "orlop.io/forgotten"
    tap.ok(mark not in w.get("CStorPoolInstance", "fast-1")["metadata"].get("annotations", {}), "or marked for that")
    w.expect("the only pool of a cluster", "pool forget small --node n3",
             stdout="cstorpoolinstance.openebs.io/small-0 forgotten; it is the last pool of the cluster, which goes "
             "with: orlop pool delete small\n")
    tap.ok(mark in w.get("CStorPoolInstance", "small-0")["metadata"]["annotations"], "is marked")
    w.expect("another pool", "pool delete fast --node n4",
             stdout="cstorpoolcluster.openebs.io/fast changed\n")
    tap.equal(len(w.groups("fast")), 2, "is gone from the manifest")
    result = w.expect("its instance", "pool list --node n4")
    tap.ok("Unwanted" in result.stdout, "is not wanted", result.stdout)
    w.expect("the last pool", "pool delete small --node n3", status=1,
             stderr="`orlop pool delete small` deletes the cluster")
    threading.Thread(target=lambda: wait_for(lambda: w.server.get(
        f"{path('CStorPoolCluster', NS)}/small")[0] == 404) and w.server.ask(
            "DELETE", f"{path('CStorPoolInstance', NS)}/small-0")).start()
    w.expect("a cluster", "pool delete small --wait",
             stdout="cstorpoolcluster.openebs.io \"small\" deleted\n")
    w.expect("is gone", "pool show small", status=1)


def check_published(w):
    """A cluster that has the published group alone, as cStor's own operators leave it."""
    for it in "ab":
        put(w.server, device(it, "n1", path=f"/dev/{it}"), NS)
    w.expect("a cluster", "pool create fast --stripe n1:a", stdout="cstorpoolcluster.openebs.io/fast created\n")
    w.expect("grows", "pool expand fast --stripe n1:b", stdout="cstorpoolcluster.openebs.io/fast expanded\n")
    where = f"/apis/cstor.openebs.io/v1/namespaces/{NS}/cstorpoolclusters/fast"
    spec = w.server.get(where)[1]["spec"]["pools"][0]
    tap.equal(([it["blockDeviceName"] for it in spec["dataRaidGroups"][0]["blockDevices"]],
               spec["poolConfig"]["dataRaidGroupType"]), (["a", "b"], "stripe"), "in its own words")
    result = w.expect("is listed", "pool list")
    tap.ok(re.search(r"fast +<none> +n1 +Missing", result.stdout), "once", result.stdout)
    tap.ok("`- b" in w.run("pool", "show", "fast").stdout, "and drawn")
    w.expect("and goes", "pool delete fast", stdout='cstorpoolcluster.openebs.io "fast" deleted\n')
    tap.equal(w.server.get(where)[0], 404, "for good")


def main():
    with Scratch() as scratch, Server(program, scratch.file("other"), "--log-level", "warn",
                                      "--only-kubernetes") as server:
        for it in ("cstor.openebs.io_cstorpoolclusters", "cstor.openebs.io_cstorpoolinstances",
                   "openebs.io_blockdevices"):
            tap.ran(server.kubectl("apply", "-f", f"{top}/deploy/crds/{it}.yaml"), it)
        server.kubectl("wait", "--for=condition=Established", "crd", "--all")
        server.create("/api/v1/namespaces", {"metadata": {"name": NS}})
        put(server, node("n1"))
        check_published(World(server))
    with Scratch() as scratch, Server(program, scratch.file("data"), "--log-level", "warn") as server:
        w = World(server)
        prepare(server)
        for check in (check_disks, check_create, check_show, check_changes, check_wait, check_delete):
            check(w)
    tap.done()


main()
