#!/usr/bin/env python3
"""The agent of a node against the real API server: nodes, devices, claims, releases, and kill -9.

node.py APISERVER NODE
"""
import concurrent.futures
import os
import random
import signal
import subprocess
import sys
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from namespaces import own_mounts  # noqa: E402
from server import Server  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402

apiserver, program = sys.argv[1:3]
tap = Tap()
NS = "/apis/openebs.io/v1alpha1/namespaces/openebs"
MEBI = 1 << 20


def until(name, condition, seconds=60):
    value = wait_for(condition, seconds)
    tap.ok(value, name, f"last: {value}")
    return value


def kubeconfig(server, scratch, name):
    """What a node has in life: a token of its own, as a member of system:nodes."""
    return scratch.file(f"{name}.kubeconfig", f"""\
apiVersion: v1
kind: Config
current-context: c
clusters: [{{name: c, cluster: {{server: "{server.url}", certificate-authority: "{server.ca}"}}}}]
users: [{{name: u, user: {{token: token-{name}}}}}]
contexts: [{{name: c, context: {{cluster: c, user: u}}}}]
""")


class Node:
    """An agent that is started, killed and started again with the same data."""

    def __init__(self, server, scratch, name, *flags, wrapper=()):
        self.server, self.name, self.flags, self.wrapper = server, name, flags, wrapper
        self.kubeconfig = kubeconfig(server, scratch, name)
        self.folder = scratch.file(name)
        self.log = scratch.file(f"{name}.log")
        self.process = None

    def argv(self, *flags):
        return [*self.wrapper, program, "--kubeconfig", self.kubeconfig, "--name", self.name, "--data-dir",
                self.folder, "--health-port", "0", "--rescan", "1s", *self.flags, *flags]

    def start(self, *flags):
        with open(self.log, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(self.argv(*flags), stderr=log)
        return self

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)

    def text(self):
        with open(self.log, encoding="utf-8") as log:
            return log.read()

    def health(self, path):
        port = [line.rsplit("port=", 1)[1] for line in self.text().splitlines()
                if "port=" in line][-1]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as reply:
            return reply.read().decode()


class Cluster:
    """What the API says."""

    def __init__(self, server):
        self.server = server

    def devices(self, node=None, kind=None):
        """Those that say how they are: a status comes after its object."""
        items = self.server.get(f"{NS}/blockdevices")[1]["items"]
        return {item["metadata"]["name"]: item for item in items if "status" in item
                and (not node or item["spec"]["nodeAttributes"]["nodeName"] == node)
                and (not kind or item["spec"]["details"]["deviceType"] == kind)}

    def device(self, name):
        return self.server.get(f"{NS}/blockdevices/{name}")[1]

    def by_path(self, path):
        return [d for d in self.devices().values() if d["spec"]["path"] == path]

    def claims(self):
        return {item["metadata"]["name"]: item
                for item in self.server.get(f"{NS}/blockdeviceclaims")[1]["items"]}

    def claim(self, name, size=None, **spec):
        if size:
            spec["resources"] = {"requests": {"storage": size}}
        return self.server.create(f"{NS}/blockdeviceclaims", {
            "apiVersion": "openebs.io/v1alpha1", "kind": "BlockDeviceClaim",
            "metadata": {"name": name}, "spec": spec})

    def get_claim(self, name):
        return self.server.get(f"{NS}/blockdeviceclaims/{name}")[1]

    def delete(self, *names):
        for name in names:
            self.server.ask("DELETE", f"{NS}/blockdeviceclaims/{name}")

    def phase(self, name):
        return self.get_claim(name).get("status", {}).get("phase", "")

    def events(self, name):
        items = self.server.get("/api/v1/namespaces/openebs/events")[1]["items"]
        return [e["reason"] for e in items if e["involvedObject"]["name"] == name]


def condition(thing, kind):
    for each in thing.get("status", {}).get("conditions", []):
        if each["type"] == kind:
            return each["status"], each["reason"], each["message"]
    return None, None, None


def bound(claims):
    return {name: c["spec"]["blockDeviceName"] for name, c in claims.items()
            if c.get("status", {}).get("phase") == "Bound"}


def consistent(cluster):
    """Each bound claim has a device that says so, no device has two, and none is reserved in vain."""
    claims, devices = cluster.claims(), cluster.devices()
    given = bound(claims)
    if len(set(given.values())) != len(given):
        return f"a device was given twice: {given}"
    for claim, device in given.items():
        ref = devices[device]["spec"].get("claimRef", {})
        if ref.get("uid") != claims[claim]["metadata"]["uid"]:
            return f"{device} does not know of {claim}: {ref}"
    for name, device in devices.items():
        if device["status"]["claimState"] == "Claimed" and name not in given.values():
            return f"{name} is claimed by nobody: {device['spec'].get('claimRef')}"
    return ""


def check_nodes(cluster, nodes):
    server = cluster.server

    def ready():
        items = server.get("/api/v1/nodes")[1]["items"]
        return [i for i in items if condition(i, "Ready")[0] == "True"]
    until("three nodes are Ready", lambda: len(ready()) == 3)
    node = server.get("/api/v1/nodes/n1")[1]
    labels = node["metadata"]["labels"]
    tap.equal((labels["kubernetes.io/hostname"], labels["kubernetes.io/os"], labels["zone"]),
              ("n1", "linux", "a"), "labels of the node")
    tap.equal(node["status"]["addresses"],
              [{"type": "InternalIP", "address": "127.0.0.7"},
               {"type": "Hostname", "address": "n1"}], "its addresses")
    tap.equal(int(node["status"]["capacity"]["cpu"]), os.cpu_count(), "its processors")
    with open("/proc/meminfo", encoding="ascii") as f:
        total = int(f.readline().split()[1])
    memory = node["status"]["capacity"]["memory"]
    tap.ok(memory in (f"{total}Ki", f"{total // 1024}Mi", f"{total >> 20}Gi"), "its memory", memory)
    tap.equal([condition(node, c)[0] for c in ("MemoryPressure", "PIDPressure")],
              ["False", "False"], "no pressure")
    free = os.statvfs(nodes[0].folder)
    tap.equal(condition(node, "DiskPressure")[0],
              str(free.f_bavail < free.f_blocks // 10), "pressure on the disk as it is")
    lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1"
    until("the lease is the node's", lambda: [
        o["uid"] for o in server.get(lease)[1]["metadata"].get("ownerReferences", [])]
        == [node["metadata"]["uid"]])
    first = server.get(lease)[1]
    until("it is renewed", lambda: server.get(lease)[1]["spec"]["renewTime"]
          != first["spec"]["renewTime"])
    tap.ran(server.kubectl("describe", "node", "n1"), "kubectl describe node",
            stdout="the agent is at work")
    server.ask("DELETE", "/api/v1/nodes/n3")
    until("a node that was deleted comes back", lambda: len(ready()) == 3)


def check_sparse(cluster):
    until("each has three sparse devices", lambda: all(
        len(cluster.devices(n, "sparse")) == 3 for n in ("n1", "n2", "n3")))
    name, device = sorted(cluster.devices("n2", "sparse").items())[0]
    tap.ok(name.startswith("sparse-"), "they are called sparse-", name)
    tap.equal(device["metadata"]["labels"],
              {"kubernetes.io/hostname": "n2", "ndm.io/blockdevice-type": "blockdevice",
               "ndm.io/managed": "true"}, "labels of a device")
    tap.equal((device["spec"]["capacity"]["storage"], device["status"]["claimState"],
               device["status"]["state"], condition(device, "Claimable")[0]),
              (64 * MEBI, "Unclaimed", "Active", "True"), "what it says")
    tap.equal(os.stat(device["spec"]["path"]).st_size, 64 * MEBI, "the file is as large")
    tap.ran(cluster.server.kubectl("get", "bd", "-n", "openebs"), "kubectl get bd",
            stdout="Unclaimed")


def check_phases(cluster):
    cluster.claim("no-size", deviceType="sparse")
    cluster.claim("too-large", "10Gi", deviceType="sparse")
    cluster.claim("unknown", blockDeviceName="sparse-unknown")
    cluster.claim("disk-only", "1Mi", blockDeviceNodeAttributes={"nodeName": "n2"})
    cluster.claim("no-node", "1Mi", deviceType="sparse",
                  blockDeviceNodeAttributes={"hostName": "elsewhere"})
    cluster.claim("labels", "1Mi", deviceType="sparse", selector={"matchLabels": {"a": "b"}})
    for name, phase, reason in (("no-size", "Invalid Capacity Request", "InvalidCapacityRequest"),
                                ("too-large", "Pending", "TooSmall"),
                                ("unknown", "Pending", "NotFound"),
                                ("disk-only", "Pending", "OtherType"),
                                ("no-node", "Pending", "OtherNode"),
                                ("labels", "Pending", "OtherLabels")):
        until(f"{name}: {phase}, {reason}", lambda n=name, p=phase, r=reason: (
            cluster.phase(n), condition(cluster.get_claim(n), "Bound")[1]) == (p, r))
    name = sorted(cluster.devices("n2", "sparse"))[1]
    cluster.server.ask("PATCH", f"{NS}/blockdevices/{name}",
                       {"metadata": {"labels": {"a": "b"}}}, "application/merge-patch+json")
    until("a label that was asked for binds", lambda: bound(cluster.claims()).get("labels") == name)
    device = cluster.device(name)
    tap.equal((device["status"]["claimState"], device["metadata"]["finalizers"],
               device["spec"]["claimRef"]["name"], device["metadata"]["labels"]["a"]),
              ("Claimed", ["openebs.io/bd-protection"], "labels", "b"), "the device knows its claim")
    tap.equal(cluster.get_claim("labels")["metadata"]["finalizers"],
              ["openebs.io/bdc-protection"], "the claim is protected")
    until("the device says why it is not free", lambda: condition(cluster.device(name), "Claimable")
          == ("False", "Claimed", "the claim labels has it"))
    cluster.delete("no-size", "too-large", "unknown", "disk-only", "no-node", "labels")
    until("all of them go", lambda: not cluster.claims())
    until("and the device is free", lambda: cluster.device(name)["status"]["claimState"]
          == "Unclaimed")


def check_conflict(cluster, nodes):
    """Twenty want three devices of a node, and those who decide are killed meanwhile."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: cluster.claim(f"c{i}", "32Mi", deviceType="sparse",
                                              blockDeviceNodeAttributes={"hostName": "n1"}),
                      range(20)))
    until("of twenty claims three get a device", lambda: len(bound(cluster.claims())) == 3)
    until("the others wait", lambda: [c.get("status", {}).get("phase") for c in
                                      cluster.claims().values()].count("Pending") == 17)
    tap.equal(consistent(cluster), "", "each device has one claim")
    until("and they say why", lambda: all(
        "3 claimed" in condition(c, "Bound")[2] for c in cluster.claims().values()
        if c["status"]["phase"] == "Pending"))
    cluster.delete(*cluster.claims())
    until("they go", lambda: not cluster.claims())
    until("the devices are free", lambda: all(
        d["status"]["claimState"] == "Unclaimed" for d in cluster.devices("n1").values()))

    dice = random.Random(4)
    for turn in range(4):
        for i in range(20):
            cluster.claim(f"k{turn}-{i}", "32Mi", deviceType="sparse")
            if dice.random() < 0.3:
                node = dice.choice(nodes)
                node.kill()
                node.start()
        until(f"turn {turn}: nine devices of three nodes find claims through kill -9",
              lambda: len(bound(cluster.claims())) == 9)
        until(f"turn {turn}: nothing is given twice or lost", lambda: consistent(cluster) == "")
        for i, name in enumerate(list(cluster.claims())):
            cluster.delete(name)
            if i % 5 == 0:
                node = dice.choice(nodes)
                node.kill()
                node.start()
        until(f"turn {turn}: they go", lambda: not cluster.claims(), 90)
        until(f"turn {turn}: all devices are free again", lambda: all(
            d["status"]["claimState"] == "Unclaimed" and "claimRef" not in d["spec"]
            and not d["metadata"].get("finalizers") for d in cluster.devices(kind="sparse").values()))


def check_release(cluster):
    name, device = sorted(cluster.devices("n2", "sparse").items())[0]
    path = device["spec"]["path"]
    cluster.claim("first", blockDeviceName=name)
    until("a claim by name is bound", lambda: cluster.phase("first") == "Bound")
    cluster.claim("second", blockDeviceName=name)
    until("another waits", lambda: condition(cluster.get_claim("second"), "Bound")[1] == "Claimed")
    tap.ran(run("mkfs.ext4", "-q", "-F", path), "whoever has it writes on it")
    until("the file system is seen", lambda: cluster.device(name)["spec"].get("filesystem")
          == {"fsType": "ext4"})
    status, reply = cluster.server.ask("PATCH", f"{NS}/blockdeviceclaims/first",
                                       {"spec": {"blockDeviceName": "other"}},
                                       "application/merge-patch+json")
    tap.ok(status == 422, "a bound claim keeps its device", reply)
    cluster.delete("first")
    until("after the first the second has it", lambda: cluster.phase("second") == "Bound")
    tap.equal(run("wipefs", path).stdout, "", "with nothing on it")
    tap.ok("Cleaned" in cluster.events(name), "an event tells of it", cluster.events(name))

    run("mkfs.ext4", "-q", "-F", path)
    cluster.server.ask("PATCH", f"{NS}/blockdeviceclaims/second",
                       {"metadata": {"finalizers": ["openebs.io/bdc-protection", "test/pool"]}},
                       "application/merge-patch+json")
    cluster.delete("second")
    # A third that comes and goes shows that the agent has seen all of the above.
    cluster.claim("third", blockDeviceName=name)
    until("a third waits", lambda: cluster.phase("third") == "Pending")
    tap.ok("ext4" in run("wipefs", path).stdout and
           cluster.device(name)["status"]["claimState"] == "Claimed",
           "while somebody holds the claim back nothing is wiped")
    cluster.delete("third")
    cluster.server.ask("PATCH", f"{NS}/blockdeviceclaims/second",
                       {"metadata": {"finalizers": ["openebs.io/bdc-protection"]}},
                       "application/merge-patch+json")
    until("then it is", lambda: cluster.device(name)["status"]["claimState"] == "Unclaimed")

    # Something else is on it and nobody claimed it: nothing is wiped, and nobody gets it.
    run("mkfs.ext4", "-q", "-F", path)
    until("a file system keeps it from being offered", lambda: condition(
        cluster.device(name), "Claimable")[:2] == ("False", "Signature"))
    cluster.claim("fourth", blockDeviceName=name)
    until("and claimed", lambda: condition(cluster.get_claim("fourth"), "Bound")[1]
          == "NotClaimable")
    cluster.server.merge(f"{NS}/blockdevices/{name}", {"status": {"claimState": "Released"}})
    until("somebody who only says that it was released", lambda: "CleanFailed"
          in cluster.events(name))
    tap.ok("ext4" in run("wipefs", path).stdout, "gets nothing wiped")
    run("wipefs", "-a", path)
    until("who wipes it himself gets it", lambda: cluster.phase("fourth") == "Bound")
    run("mkfs.ext4", "-q", "-F", path)
    cluster.server.ask("PATCH", f"{NS}/blockdevices/{name}", {"metadata": {"annotations": {"orlop.io/forgotten": "{}"}}},
                       "application/merge-patch+json")
    cluster.delete("fourth")
    until("it goes", lambda: not cluster.claims())
    until("what was forgotten is free", lambda: cluster.device(name)["status"]["claimState"] == "Unclaimed"
          and "orlop.io/forgotten" not in cluster.device(name)["metadata"].get("annotations", {}))
    tap.ok("ext4" in run("wipefs", path).stdout and "Kept" in cluster.events(name), "and not wiped", cluster.events(name))
    run("wipefs", "-a", path)


def check_restart(cluster, node):
    before = {n: d["metadata"]["uid"] for n, d in cluster.devices("n3").items()}
    cluster.claim("kept", "32Mi", deviceType="sparse",
                  blockDeviceNodeAttributes={"nodeName": "n3"})
    until("a claim on n3", lambda: cluster.phase("kept") == "Bound")
    tap.equal(node.stop(), 0, "an agent stops when told")
    node.flags = tuple("4x96Mi" if f == "3x64Mi" else f for f in node.flags)
    node.start()
    until("more and larger sparse devices", lambda: sorted(
        d["spec"]["capacity"]["storage"] for d in cluster.devices("n3").values())
          == [96 * MEBI] * 4)
    after = cluster.devices("n3")
    tap.equal({n: after[n]["metadata"]["uid"] for n in before}, before,
              "devices are the same after a restart")
    tap.equal((cluster.phase("kept"), consistent(cluster)), ("Bound", ""), "and so is the claim")

    name = bound(cluster.claims())["kept"]
    path = after[name]["spec"]["path"]
    os.rename(path, path + ".away")
    until("a device that is gone is Inactive", lambda: cluster.device(name)["status"]["state"]
          == "Inactive")
    tap.equal(condition(cluster.device(name), "Claimable")[1], "Inactive", "and says so")
    until("and another is made", lambda: len(cluster.devices("n3")) == 5)
    tap.ok("node_block_device_state" in (text := node.health("/metrics")) and
           f'blockdevicename="{name}"' in text, "metrics tell", text)
    line = [t for t in text.splitlines() if name in t][0]
    tap.ok(line.endswith(" 1") and 'nodename="n3"' in line, "that it is inactive", line)
    os.rename(path + ".away", path)
    until("it comes back", lambda: cluster.device(name)["status"]["state"] == "Active")
    run("mkfs.ext4", "-q", "-F", path)
    os.rename(path, path + ".away")
    until("it goes again", lambda: cluster.device(name)["status"]["state"] == "Inactive")
    cluster.delete("kept")
    until("a claim does not wait for a device that is gone", lambda: not cluster.claims())
    tap.equal(cluster.device(name)["status"]["claimState"], "Released", "which is released")
    os.rename(path + ".away", path)
    with open(path, "rb"):
        until("but not cleaned while somebody has it open", lambda: "CleanFailed"
              in cluster.events(name))
        tap.ok("ext4" in run("wipefs", path).stdout, "nothing is wiped")
    until("it is freed", lambda: cluster.device(name)["status"]["claimState"] == "Unclaimed")
    tap.ran(run(*node.argv()), "a second agent in the same folder is refused", 1,
            stderr="another orlop-node works in")


class Loops:
    """Loop devices that are gone when the script ends."""

    def __init__(self, scratch):
        self.scratch, self.attached = scratch, []

    def file(self, name, size=64 * MEBI):
        path = self.scratch.file(name)
        with open(path, "ab") as f:
            f.truncate(size)
        return path

    def attach(self, path, *flags):
        result = run("losetup", "-f", "--show", *flags, path)
        if result.returncode:
            return None
        self.attached.append(result.stdout.strip())
        return self.attached[-1]

    def detach(self, device):
        self.attached.remove(device)
        run("losetup", "-d", device)

    def __enter__(self):
        return self

    def attach_elsewhere(self, file, device):
        """The file at another path than device, and what stands there instead. Other tests attach and
        detach at the same time, so it may take several."""
        again, blockers = device, []
        for _ in range(20):
            while run("losetup", device).returncode:
                blockers.append(self.attach(self.file(f"blocker{len(blockers)}.img")))
            again = self.attach(file)
            if again != device:
                break
            self.detach(again)
        return again, blockers

    def __exit__(self, *_):
        for device in list(self.attached):
            self.detach(device)


def check_loops(cluster, scratch):
    with Loops(scratch) as loops:
        size = 64 * MEBI + random.randrange(1, 1000) * 4096  # another test's disk may have been at that path just now
        file = loops.file("disk.img", size)
        device = loops.attach(file)
        if not device:
            tap.ok(True, "loop devices SKIP: this machine has none")
            return
        found = until("a disk that is plugged in appears", lambda: [
            d for d in cluster.by_path(device) if d["status"]["state"] == "Active" and
            d["spec"]["capacity"]["storage"] == size])
        if not found:
            return
        name = found[0]["metadata"]["name"]
        tap.equal((found[0]["spec"]["details"]["deviceType"], condition(found[0], "Claimable")[0]),
                  ("loop", "True"), "it can be claimed")
        tap.ran(run("mkfs.ext4", "-q", device), "a file system is made")
        until("a signature is seen", lambda: condition(cluster.device(name), "Claimable")[1]
              == "Signature")
        mount = scratch.file("mnt")
        os.mkdir(mount)
        if run("mount", device, mount).returncode == 0:
            until("a mount is seen", lambda: condition(cluster.device(name), "Claimable")[1]
                  == "Mounted")
            tap.equal(cluster.device(name)["spec"]["filesystem"],
                      {"fsType": "ext4", "mountPoint": mount}, "and where it is")
            run("umount", mount)
        tap.ran(run("wipefs", "-a", device), "it is wiped")
        until("an empty disk is free", lambda: condition(cluster.device(name), "Claimable")[0]
              == "True")
        cluster.claim("disk", blockDeviceName=name)
        until("it is claimed", lambda: cluster.phase("disk") == "Bound")
        loops.detach(device)
        until("it is plugged out", lambda: cluster.device(name)["status"]["state"] == "Inactive")
        tap.equal(cluster.device(name)["status"]["claimState"], "Claimed", "and still claimed")
        again, blockers = loops.attach_elsewhere(file, device)
        tap.ok(again != device, "it comes back at another path", (device, again))
        until("it is the same device", lambda: (
            cluster.device(name)["spec"]["path"], cluster.device(name)["status"]["state"])
            == (again, "Active"))
        for blocker in blockers:
            loops.detach(blocker)

        tap.ran(run("mkfs.ext4", "-q", again), "a file system is made again")
        tap.ran(run("mount", again, mount), "and mounted")
        cluster.delete("disk")
        until("what is mounted is not wiped", lambda: "CleanFailed" in cluster.events(name))
        tap.equal(cluster.device(name)["status"]["claimState"], "Released", "it is only released")
        tap.ok("ext4" in run("wipefs", again).stdout, "the file system is there")
        run("umount", mount)
        until("when nobody uses it, it is", lambda: cluster.device(name)["status"]["claimState"]
              == "Unclaimed")
        tap.equal(run("wipefs", again).stdout, "", "nothing is on it")

        table = "label: gpt\nsize=16M, uuid=11111111-2222-3333-4444-555555555555\n"
        run("sfdisk", "-q", "--no-reread", again, stdin=table)
        loops.detach(again)
        parted = loops.attach(file, "--partscan")
        until("a partitioned disk is not offered", lambda: condition(
            cluster.device(name), "Claimable")[1] == "Partitioned")
        if os.path.exists(f"/sys/class/block/{os.path.basename(parted)}p1"):
            part = until("its partition is", lambda: [
                d for d in cluster.devices("n1", "partition").values()
                if d["spec"].get("parentDevice") == parted and
                condition(d, "Claimable")[0] == "True"])
            tap.equal(part and part[0]["metadata"]["annotations"]
                      ["internal.openebs.io/partition-uuid"],
                      "11111111-2222-3333-4444-555555555555", "known by its uuid")
        run("umount", mount)


class FakeDisks:
    """A machine, for those who see it, whose disks say nothing of themselves.

    Loop devices under names of virtio disks, with folders in place of /sys and /dev.
    """

    def __init__(self, scratch):
        self.root, self.count = scratch.file("machine"), 0
        for folder in ("sys/class/block", "dev"):
            os.makedirs(f"{self.root}/{folder}")
        for name, number in (("null", (1, 3)), ("urandom", (1, 9))):
            os.mknod(f"{self.root}/dev/{name}", 0o666 | 0o020000, os.makedev(*number))

    wrapper = property(lambda self: [
        "unshare", "--mount", "sh", "-c",
        f'mount --bind {self.root}/sys /sys && mount --bind {self.root}/dev /dev && exec "$@"',
        "sh"])

    def add(self, name, loop):
        number = os.stat(loop).st_rdev
        folder = f"{self.root}/sys/class/block/{name}"
        os.makedirs(f"{folder}/holders")
        with open(f"/sys/class/block/{os.path.basename(loop)}/size", encoding="ascii") as f:
            size = f.read()
        self.count += 1
        for file, text in (("size", size), ("ro", "0"), ("diskseq", str(self.count)),
                           ("dev", f"{os.major(number)}:{os.minor(number)}")):
            with open(f"{folder}/{file}", "w", encoding="ascii") as f:
                f.write(text)
        os.mknod(f"{self.root}/dev/{name}", 0o600 | 0o060000, number)

    def move(self, old, new):
        os.rename(f"{self.root}/sys/class/block/{old}", f"{self.root}/sys/class/block/{new}")
        os.rename(f"{self.root}/dev/{old}", f"{self.root}/dev/{new}")


def check_label(cluster, scratch):
    """A disk without identity gets a label when it is claimed, and is known by it from then on."""
    with Loops(scratch) as loops:
        files = [loops.file("plain0.img"), loops.file("plain1.img")]
        disks = [loops.attach(f) for f in files]
        fake = FakeDisks(scratch)
        if None in disks or run(*fake.wrapper, "true").returncode:
            tap.ok(True, "disks without identity SKIP: no loop devices or mount namespaces")
            return
        fake.add("vdx", disks[0])
        node = Node(cluster.server, scratch, "plain", "--include-paths", "/dev/vd*",
                    wrapper=fake.wrapper).start()

        def label():
            with open(files[0], "rb") as f:
                return f.read(4096)[3072:3584].rstrip(b"\0")
        try:
            found = until("a disk that says nothing of itself is found",
                          lambda: list(cluster.devices("plain").values()))
            name = found[0]["metadata"]["name"]
            annotations = found[0]["metadata"]["annotations"]
            tap.equal(annotations["internal.openebs.io/uuid-scheme"], "path", "by its path")
            tap.ok("a label is written" in condition(found[0], "Claimable")[2], "it says so")
            tap.equal(label(), b"", "nothing is written on it")
            cluster.claim("plain", blockDeviceName=name)
            until("it is claimed", lambda: cluster.phase("plain") == "Bound")
            tap.ok(label().startswith(b"ORLOPBD1" + name.encode()), "now it has a label", label())
            until("by which it is known", lambda: cluster.device(name)["metadata"]["annotations"]
                  ["internal.openebs.io/uuid-scheme"] == "label")
            node.kill()
            fake.move("vdx", "vdy")
            fake.add("vdx", disks[1])
            node.start()
            until("it moves, and is the same", lambda: cluster.device(name)["spec"]["path"]
                  == "/dev/vdy")
            other = until("another in its place is another", lambda: [
                d for d in cluster.devices("plain").values() if d["spec"]["path"] == "/dev/vdx"])
            tap.ok(other[0]["metadata"]["name"] != name and "claimRef" not in other[0]["spec"],
                   "that nobody has", other)
            tap.ran(run("mkfs.ext4", "-q", disks[0]), "whoever has it overwrites the label")
            tap.equal(label()[:8] == b"ORLOPBD1", False, "which is gone")
            until("it is still the same", lambda: cluster.device(name)["spec"].get("filesystem")
                  == {"fsType": "ext4"})
            node.kill()
            fake.move("vdy", "vdz")
            node.start()
            until("and known by its file system", lambda: (
                cluster.device(name)["spec"]["path"], cluster.device(name)["status"]["state"])
                  == ("/dev/vdz", "Active"))
            tap.equal(len(cluster.devices("plain")), 2, "nothing new appeared")
            cluster.delete("plain")
            until("it is released and wiped", lambda: cluster.device(name)["status"]["claimState"]
                  == "Unclaimed")
            tap.ok(run("wipefs", disks[0]).stdout == "" and label().startswith(b"ORLOPBD1"),
                   "and has its label again")
            until("it can be claimed again", lambda: condition(cluster.device(name), "Claimable")[0]
                  == "True")
        finally:
            tap.equal(node.stop(), 0, "it stops")


def check_manual(cluster):
    """A BlockDevice that somebody made by hand is given to claims, and left alone."""
    made = cluster.server.create(f"{NS}/blockdevices", {
        "apiVersion": "openebs.io/v1alpha1", "kind": "BlockDevice",
        "metadata": {"name": "by-hand", "labels": {"ndm.io/managed": "false",
                                                   "kubernetes.io/hostname": "n2"}},
        "spec": {"nodeAttributes": {"nodeName": "n2"}, "path": "/dev/null",
                 "capacity": {"storage": 1 << 30}, "details": {"deviceType": "disk"}}})
    cluster.claim("manual", "512Mi", blockDeviceNodeAttributes={"hostName": "n2"})
    until("a device made by hand is claimed",
          lambda: bound(cluster.claims()).get("manual") == "by-hand")
    tap.equal(cluster.device("by-hand")["spec"]["capacity"], made["spec"]["capacity"],
              "nothing else of it changes")
    cluster.delete("manual")
    until("and released", lambda: cluster.device("by-hand")["status"]["claimState"] == "Unclaimed")


def check_kubelet(cluster, scratch):
    """Where a kubelet owns the Node, it is read and nothing of it is written."""
    server = cluster.server
    server.create("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {
        "name": "real", "labels": {"kubernetes.io/hostname": "real-host"}}})
    node = Node(server, scratch, "real", "--register-node=false", "--discover=false",
                "--sparse-disks", "1x8Mi").start()
    try:
        until("devices carry the host name of the Node", lambda: [
            d["metadata"]["labels"]["kubernetes.io/hostname"]
            for d in cluster.devices("real").values()] == ["real-host"])
        status, _ = server.get(
            "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/real")
        tap.equal((status, server.get("/api/v1/nodes/real")[1].get("status", {})
                   .get("conditions", [])), (404, []), "no lease, no status")
        cluster.claim("by-host", "1Mi", deviceType="sparse", hostName="real-host")
        until("a claim by that name", lambda: cluster.phase("by-host") == "Bound")
        cluster.delete("by-host")
    finally:
        tap.equal(node.stop(), 0, "it stops")


def check_flags():
    for flags, message in ((["--sparse-disks", "3"], "such as 3x10Gi"),
                           (["--labels", "a"], "write KEY=VALUE"),
                           (["--rescan", "0"], "at least 1s"),
                           (["--health-port", "x"], "not a number from 0 to 65535, or off"),
                           (["--nonsense"], "nonsense")):
        tap.ran(run(program, *flags), f"{' '.join(flags)} is refused", 2, stderr=message)
    tap.ran(run(program, "--help"), "--help", stdout="--sparse-disks")


def tokens(scratch):
    return scratch.file("tokens", "".join(
        f'token-{name},system:node:{name},{name},"system:nodes"\n'
        for name in ("n1", "n2", "n3", "plain", "real")))


own_mounts()
with Scratch() as scratch, Server(apiserver, scratch.file("data"), "--token-auth-file",
                                  tokens(scratch), log=subprocess.DEVNULL) as api:
    check_flags()
    api.kubectl("create", "namespace", "openebs")
    all_nodes = [
        Node(api, scratch, "n1", "--sparse-disks", "3x64Mi", "--address", "127.0.0.7", "--labels",
             "zone=a", "--exclude-paths", "/dev/nothing"),
        Node(api, scratch, "n2", "--sparse-disks", "3x64Mi", "--discover=false"),
        Node(api, scratch, "n3", "--sparse-disks", "3x64Mi", "--discover=false")]
    view = Cluster(api)
    try:
        for each in all_nodes:
            each.start()
        check_nodes(view, all_nodes)
        check_sparse(view)
        check_phases(view)
        check_conflict(view, all_nodes)
        check_release(view)
        check_restart(view, all_nodes[2])
        check_loops(view, scratch)
        check_label(view, scratch)
        check_manual(view)
        check_kubelet(view, scratch)
        for each in all_nodes:
            bad = [line for line in each.text().splitlines()
                   if " ERROR" in line or "Sanitizer" in line]
            tap.ok(not bad, f"{each.name} has no errors in its log", "\n".join(bad[:20]))
    finally:
        for each in all_nodes:
            if each.process and each.process.poll() is None:
                each.stop()
            if tap.failed:
                print("#", each.name, *each.text().splitlines()[-30:], sep="\n# ")
tap.done()
