#!/usr/bin/env python3
"""CStorVolumeReplicas on a real pool: each phase from its cause. The process has the account of its pool and no more
rights; the target and two other replicas of the volume are run by hand.

cvr.py APISERVER PROGRAMS ZVOLDATA [TEST...]
"""
import base64
import json
import os
import sys
import threading
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import namespaces  # noqa: E402
from pools import NS, Api, Disks, Pool, group, in_ns  # noqa: E402
from replicated import Process, make_key  # noqa: E402
from server import Server  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402

namespaces.own_network()
apiserver, programs, zvoldata = sys.argv[1:4]
tap = Tap()
CVRS = in_ns("cstorvolumereplicas", group="/apis/cstor.openebs.io/v1")
RBAC = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NS}"
SECRETS = f"/api/v1/namespaces/{NS}/secrets"
FINALIZER = "cstorvolumereplica.openebs.io/finalizer"
SIZE = 64 << 20


class Phases:
    """Every phase that the API ever had of the replicas, in its order."""

    def __init__(self, server):
        self.server, self.seen, self.version = server, {}, ""
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._follow, daemon=True)
        self.thread.start()

    def _follow(self):
        while not self.stop.is_set():
            connection = self.server.connect(5)
            try:
                connection.request("GET", f"{CVRS}?watch=1&timeoutSeconds=600&resourceVersion={self.version}")
                for line in connection.getresponse():
                    it = json.loads(line)["object"]
                    self.version = it["metadata"]["resourceVersion"]
                    phases = self.seen.setdefault(it["metadata"]["name"], [])
                    now = it.get("status", {}).get("phase", "")
                    if not phases or phases[-1] != now:
                        phases.append(now)
            except (OSError, ValueError, KeyError):
                pass
            finally:
                connection.close()

    def of(self, name):
        return list(self.seen.get(name, []))


class Bench:
    def __init__(self, server, api, scratch):
        self.server, self.api, self.scratch = server, api, scratch
        self.phases = Phases(server)
        self.replicas = []
        self.addresses = (f"127.77.0.{i}" for i in range(1, 200))

    def end(self):
        self.phases.stop.set()
        for it in self.replicas:
            it.end()

    def pool(self, name, *disks):
        """A pool of its own account, and its disks."""
        own = Disks(self.api, self.scratch.file(f"{name}.disks"), cluster=name)
        own.make(*disks)
        pool = Pool(f"{programs}/orlop-pool", self.server, self.api, self.scratch.path, name, cluster=name)
        pool.create(group("stripe", *disks))
        pool.server = Account(self.server, self.api, name, self.scratch.file(f"{name}.kubeconfig"))
        return own, pool

    def data(self, disks, mode, volume):
        paths = [disks.path(n) for n in sorted(os.listdir(disks.folder))]
        return run(zvoldata, mode, volume, "1", "1", *paths)


class Account:
    """What the operator gives a pool, and a kubeconfig of it."""

    def __init__(self, server, api, pool, path):
        account = f"orlop-pool-{pool}"
        subject = [{"kind": "ServiceAccount", "name": account, "namespace": NS}]
        api.must("POST", f"/api/v1/namespaces/{NS}/serviceaccounts", {"metadata": {"name": account}})
        for base, kind, role in ((RBAC, "rolebindings", "system:orlop:pool"),
                                 (RBAC.split("/namespaces")[0], "clusterrolebindings", "system:orlop:pool-nodes")):
            api.must("POST", f"{base}/{kind}", {"metadata": {"name": account}, "subjects": subject, "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}})
        token = api.must("POST", f"/api/v1/namespaces/{NS}/serviceaccounts/{account}/token", {"spec": {}})
        self.kubeconfig, self.name = path, account
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"""apiVersion: v1
kind: Config
current-context: c
contexts: [{{name: c, context: {{cluster: c, user: u}}}}]
clusters: [{{name: c, cluster: {{server: {server.url}, certificate-authority: {server.ca}}}}}]
users: [{{name: u, user: {{token: {token["status"]["token"]}}}}}]
""")


class Replica:
    """A CStorVolumeReplica and all that its volume needs."""

    def __init__(self, bench, volume, pool):
        self.bench, self.volume, self.pool = bench, volume, pool
        self.name, self.id = f"{volume}-{pool}", str(uuid.uuid4())
        self.number = int.from_bytes(os.urandom(8), "big") >> 1
        self.address = next(bench.addresses)
        self.key = make_key(bench.scratch.file(f"{volume}.key"))
        self.control = bench.scratch.file(f"{volume}.sock")
        self.target = None
        self.others = []
        bench.replicas.append(self)

    def create(self, **spec):
        self.bench.api.must("POST", CVRS, {
            "apiVersion": "cstor.openebs.io/v1", "kind": "CStorVolumeReplica",
            "metadata": {"name": self.name, "finalizers": [FINALIZER], "labels": {
                "cstorpoolinstance.openebs.io/name": self.pool, "cstorvolume.openebs.io/name": self.volume,
                "openebs.io/persistent-volume": self.volume}, "annotations": {"orlop.io/volume-id": self.id}},
            "spec": {"targetIP": self.address, "capacity": str(SIZE), "replicaid": str(self.number), **spec}})
        return self

    def secret(self, *pools):
        """The key, and the right of these pools to read it."""
        with open(self.key, "rb") as f:
            self.bench.api.must("POST", SECRETS, {"metadata": {"name": f"{self.volume}-key"}, "data": {
                "key": base64.b64encode(f.read()).decode()}})
        name = f"{self.volume}-replicas"
        self.bench.api.must("POST", f"{RBAC}/roles", {"metadata": {"name": name}, "rules": [
            {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [f"{self.volume}-key"], "verbs": ["get"]}]})
        self.bench.api.must("POST", f"{RBAC}/rolebindings", {
            "metadata": {"name": name}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": f"orlop-pool-{p}", "namespace": NS} for p in pools]})
        return self

    def get(self):
        status, value = self.bench.api.get(f"{CVRS}/{self.name}")
        return value if status == 200 else None

    def status(self):
        return (self.get() or {}).get("status", {})

    def phase(self):
        return self.status().get("phase", "")

    def patch(self, value):
        return self.bench.api.must_merge(f"{CVRS}/{self.name}", value)

    def delete(self):
        self.bench.api.must("DELETE", f"{CVRS}/{self.name}")

    def events(self):
        _, value = self.bench.api.get(f"/api/v1/namespaces/{NS}/events")
        return {e["reason"] for e in value["items"] if e["involvedObject"]["name"] == self.name}

    def reaches(self, phase, words="", seconds=60):
        fine = wait_for(lambda: (s := self.status()).get("phase", "") == phase and words in s.get("message", ""), seconds)
        tap.ok(fine, f"{phase}" + (f": {words}" if words else ""), [self.status(), self.events(), self.log()])
        return fine

    def log(self):
        path = self.bench.scratch.file(f"{self.pool}.log")
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()[-1500:]

    # The data plane

    @property
    def uuid(self):
        """Who it is for its target."""
        return str(uuid.UUID(int=(self.number << 64) | int(self.status()["zvolGuid"])))

    def serve(self, replicas=1, create=True):
        making = ("--create", "--replicas", str(replicas), "--size", str(SIZE)) if create else ()
        self.target = Process(
            self.bench.scratch.file(f"{self.volume}.target.log"), f"{programs}/orlop-target", "target", "serve",
            "--volume", self.id, "--iqn", f"iqn.2016-09.com.openebs.cstor:{self.volume}", "--portal",
            f"{self.address}:3260", "--replica-listen", f"{self.address}:6060", "--key-file", self.key, "--control",
            self.control, "--drain-seconds", "1", *making).start()
        for i in range(replicas - 1):
            if create:
                self.others.append(Process(
                    self.bench.scratch.file(f"{self.volume}.r{i}.log"), f"{programs}/orlop-replica", "replica", "serve",
                    "--dir", self.bench.scratch.file(f"{self.volume}.r{i}"), "--volume", self.id, "--target",
                    f"{self.address}:6060", "--key-file", self.key).start())

    def ask_target(self, *words):
        return run(f"{programs}/orlop-target", "target", *words, "--control", self.control, timeout=60)

    def load(self, *words):
        url = f"iscsi://{self.address}:3260/iqn.2016-09.com.openebs.cstor:{self.volume}/0"
        return (f"{programs}/orlop-bench", "bench", "iscsi", url, "-o", "json", "--read", "0", "--block-size", "64Ki", *words)

    def write(self, pattern="sequential"):
        return tap.ran(run(*self.load("--count", "200", "--pattern", pattern), timeout=120), "data is written")

    def end(self):
        for it in [self.target, *self.others]:
            if it:
                it.kill()


def test_first_phases(bench):
    """"", Init, Offline for each reason, Healthy; a process that stops and comes again."""
    disks, pool = bench.pool("first", "first-a")
    os.rename(disks.path("first-a"), bench.scratch.file("away"))
    r = Replica(bench, "v-first", "first").create()
    tap.equal(r.phase(), "", "nobody has looked at it")
    with pool:
        r.reaches("Init", "the pool is not open")
        os.rename(bench.scratch.file("away"), disks.path("first-a"))
        r.reaches("Offline", "the Secret v-first-key, cannot be read")
        s = r.status()
        tap.ok(int(s["zvolGuid"]) and s["poolGuid"] == pool.status()["guid"], "its GUIDs are remembered before it is opened", s)
        tap.ok(wait_for(lambda: pool.status().get("provisionedReplicas") == 1 and pool.status()["healthyReplicas"] == 0),
               "the pool counts it", pool.status())
        r.secret()  # which this pool may not read
        r.reaches("Offline", "is forbidden")
        bench.api.must_merge(f"{RBAC}/rolebindings/v-first-replicas", {"subjects": [
            {"kind": "ServiceAccount", "name": "orlop-pool-first", "namespace": NS}]})
        r.reaches("Offline", "it has no connection to its target")
        r.serve()
        r.reaches("Healthy")
        tap.ok(wait_for(lambda: pool.status()["healthyReplicas"] == 1), "the pool counts those that are healthy", pool.status())
        tap.ok(wait_for(lambda: {"Synced", "Created"} <= r.events()), "events say so", r.events())
        guid = r.status()["zvolGuid"]
        r.write()
        tap.ok(wait_for(lambda: r.status()["capacity"]["total"] not in ("0", "6Ki")), "its size is what ZFS says", r.status())
        text = pool.metrics()
        tap.ok(f'openebs_replica_status{{vol="v-first",pool="{pool.zname}"}} 1' in text and
               f'openebs_volume_replica_used_size{{name="{pool.zname}/v-first"}}' in text, "metrics have cStor's names", text[-3000:])
        with open(r.key, encoding="ascii") as f:
            key = f.read().strip()
        tap.ok(key not in pool.text() and key not in str(r.get()), "no log and no status has the key")
        tap.equal(pool.stop(), 0, "the process ends in order")
        r.reaches("Offline", "the process of its pool has ended")
        pool.start()
        r.reaches("Healthy")
        tap.ok(wait_for(lambda: "Imported" in r.events()), "its data set came with the pool", r.events())
        r.target.kill()
        r.reaches("Offline", "it has no connection to its target")
        make_key(r.key)  # which it has to read again
        r.serve(create=False)
        with open(r.key, "rb") as f:
            bench.api.must_merge(f"{SECRETS}/v-first-key", {"data": {"key": base64.b64encode(f.read()).decode()}})
        r.reaches("Healthy")
        r.target.kill()
        r.reaches("Offline", "it has no connection to its target")
        tap.equal(r.status()["zvolGuid"], guid, "it is the same data set all the time")
        r.delete()
        tap.ok(wait_for(lambda: r.get() is None), "it goes", [r.get(), r.log()])
        tap.ok(wait_for(lambda: pool.status()["provisionedReplicas"] == 0), "the pool counts none", pool.status())
        tap.equal(pool.stop(), 0, "the process ends in order")
    tap.ok(bench.data(disks, "verify", "v-first").returncode, "nothing of it is left in the pool")
    seen = bench.phases.of(r.name)
    tap.equal(seen[:4], ["", "Init", "Offline", "Healthy"], f"its phases: {seen}")


def test_missing(bench):
    """Error when its data set is gone from its pool; Recreate when somebody asks, or the pool is another one."""
    disks, pool = bench.pool("missing", "missing-a")
    r = Replica(bench, "v-missing", "missing").create().secret("missing")
    with pool:
        r.serve(3)
        r.reaches("Healthy")
        r.write()
        first = r.uuid
        pool.stop()
        tap.ran(bench.data(disks, "remove", "v-missing"), "its data set is destroyed by hand")
        pool.start()
        r.reaches("Error", "and is not replaced by an empty one")
        tap.ok(wait_for(lambda: "ZvolMissing" in r.events()), "an event says so", r.events())
        before = r.status()["zvolGuid"]
        pool.stop()
        pool.start()
        r.reaches("Error", before)
        r.patch({"metadata": {"annotations": {"orlop.io/recreate": "true"}}})
        tap.ok(wait_for(lambda: r.status().get("zvolGuid", before) != before), "a new one is made when somebody asks", r.status())
        tap.equal(r.status().get("recreate"), "true", "the request is answered")
        rebuild(r, first)
        pool.stop()
        second, before = r.uuid, r.status()["zvolGuid"]
        tap.ran(bench.data(disks, "remove", "v-missing"), "it is destroyed again")
        pool.start()
        r.reaches("Error", "another value than before")

        # The pool is made anew, by people who take finalizers off.
        pool.stop()
        os.remove(disks.path("missing-a"))
        disks.file("missing-a")
        pool.patch({"metadata": {"finalizers": None}})
        pool.delete()
        pool.create(group("stripe", "missing-a"))
        pool.start()
        tap.ok(wait_for(lambda: r.status().get("zvolGuid", before) != before), "a new one is made in a new pool", r.status())
        tap.equal(r.status()["poolGuid"], pool.status()["guid"], "which is remembered")
        rebuild(r, second)
        r.delete()
        tap.ok(wait_for(lambda: r.get() is None), "it goes", [r.get(), r.log()])
    seen = bench.phases.of(r.name)
    tap.equal([p for p in seen if p in ("Error", "Recreate")][:3], ["Error", "Recreate", "Error"], f"its phases: {seen}")
    tap.equal(seen.count("Recreate"), 2, "twice made anew")


def rebuild(r, instead):
    """A replica that is new, in the place of the one that it was: the target gives it all data."""
    tap.ran(r.ask_target("rate", "--rebuild-rate", "1"), "rebuilds wait")
    adding = Process(r.bench.scratch.file(f"{r.volume}.add.log"), f"{programs}/orlop-target", "target", "add", "--replica",
                     r.uuid, "--instead", instead, "--control", r.control).start()
    r.reaches("NewReplicaDegraded", "lacks data")
    tap.ran(r.ask_target("rate", "--rebuild-rate", "4Mi"), "rebuilds go on")
    r.reaches("ReconstructingNewReplica")
    tap.ok(wait_for(lambda: "rebuildPercent" in r.status()), "it says how much is done", r.status())
    tap.ran(r.ask_target("rate", "--rebuild-rate", "0"), "rebuilds are fast")
    r.reaches("Healthy")
    tap.equal(adding.process.wait(60), 0, "the target has taken it")


def test_rebuild(bench):
    """Degraded and Rebuilding: a replica that was away."""
    _, pool = bench.pool("away", "away-a")
    r = Replica(bench, "v-away", "away").create().secret("away")
    with pool:
        r.serve(3)
        r.reaches("Healthy")
        r.write()
        pool.kill()
        r.write("random")
        tap.ran(r.ask_target("rate", "--rebuild-rate", "1"), "rebuilds wait")
        pool.start()
        r.reaches("Degraded", "lacks data")
        tap.ran(r.ask_target("rate", "--rebuild-rate", "4Mi"), "rebuilds go on")
        r.reaches("Rebuilding")
        tap.ran(r.ask_target("rate", "--rebuild-rate", "0"), "rebuilds are fast")
        r.reaches("Healthy")
        seen = bench.phases.of(r.name)
        tap.equal(seen[seen.index("Healthy"):], ["Healthy", "Offline", "Degraded", "Rebuilding", "Healthy"],
                  "its phases, in this order")
        r.delete()
        tap.ok(wait_for(lambda: r.get() is None), "it goes", [r.get(), r.log()])


def test_full(bench):
    """A pool above its roThresholdLimit: writes wait and say why, and go on when there is room."""
    _, pool = bench.pool("full", "full-a")
    pool.patch({"spec": {"poolConfig": {"roThresholdLimit": 10}}})
    r = Replica(bench, "v-full", "full").create().secret("full")
    with pool:
        r.serve()
        r.reaches("Healthy")
        load = Process(bench.scratch.file("load.log"), *r.load("--count", "480", "--pattern", "sequential")).start()
        r.reaches("Healthy", "roThresholdLimit")
        tap.ok(wait_for(lambda: pool.condition("ReadOnly").get("status") == "True"), "the pool says so, too", pool.status())
        tap.equal((load.alive(), pool.condition("ReadOnly")["reason"], pool.status()["readOnly"]),
                  (True, "RoThresholdLimit", True), "writes wait")
        tap.ok("orlop_replica_frozen{" in (text := pool.metrics()) and 'vol="v-full"' in text, "a metric says so", text[-2000:])
        pool.patch({"spec": {"poolConfig": {"roThresholdLimit": 95}}})
        tap.equal(load.process.wait(60), 0, "and go on when there is room, without an error")
        tap.ok(wait_for(lambda: not r.status().get("message")), "nothing is in the way any more", r.status())
        tap.ok(wait_for(lambda: pool.condition("ReadOnly").get("status") == "False"), "in the pool neither", pool.status())
        r.delete()
        tap.ok(wait_for(lambda: r.get() is None), "it goes", [r.get(), r.log()])


def test_deletion(bench):
    """DeletionFailed while something holds the data set; a pool with replicas is not destroyed."""
    disks, pool = bench.pool("held", "held-a")
    r = Replica(bench, "v-held", "held").create().secret("held")
    with pool:
        r.reaches("Offline", "it has no connection to its target")
        pool.stop()
        tap.ran(bench.data(disks, "hold", "v-held"), "a clone holds its data set")
        pool.start()
        r.reaches("Offline", "it has no connection to its target")
        pool.delete()
        tap.equal(pool.wait("DeletionFailed"), "DeletionFailed", "a pool with replicas is not destroyed")
        tap.equal(pool.condition("Available").get("reason"), "ReplicasExist", "and says why")
        r.delete()
        r.reaches("DeletionFailed")
        tap.ok(wait_for(lambda: "FailDestroy" in r.events()), "an event says so", r.events())
        pool.stop()
        tap.ran(bench.data(disks, "release", "v-held"), "the clone goes")
        pool.start()
        tap.ok(wait_for(lambda: r.get() is None), "then the replica goes", [r.get(), r.log()])
        tap.ok(wait_for(lambda: pool.get() is None, 90), "and then the pool", pool.get())


def test_invalid(bench):
    """Invalid, and Offline for what is missing; a data set that belongs to another replica."""
    _, pool = bench.pool("wrong", "wrong-a")
    first = Replica(bench, "v-wrong", "wrong").create()
    with pool:
        first.reaches("Offline", "Secret")
        bench.api.must_merge(f"{CVRS}/{first.name}", {"spec": {"targetIP": ""}})
        first.reaches("Offline", "spec.targetIP")
        tap.ok(wait_for(lambda: "FailValidate" in first.events()), "an event says so", first.events())
        bench.api.must_merge(f"{CVRS}/{first.name}", {"spec": {"targetIP": "127.0.0.1"}})
        first.reaches("Offline", "Secret")
        bench.api.must_merge(f"{CVRS}/{first.name}", {"spec": {"blockSize": 5000}})
        first.reaches("Invalid", "spec.blockSize")
        bench.api.must_merge(f"{CVRS}/{first.name}", {"spec": {"blockSize": 4096}})
        first.reaches("Offline", "Secret")
        other = Replica(bench, "v-wrong", "wrong")
        other.name = "taker"
        other.create()
        other.reaches("Error", "")
        other.delete()
        tap.ok(wait_for(lambda: other.get() is None), "it goes, and takes nothing with it", other.get())
        tap.equal(first.phase(), "Offline", "the first one has its data set")
        first.delete()
        tap.ok(wait_for(lambda: first.get() is None), "it goes", first.get())


TESTS = {name[5:]: it for name, it in globals().items() if name.startswith("test_")}
# What admission would refuse happens where it is down.
UNCHECKED = ("missing", "deletion", "invalid")

with Scratch() as scratch:
    for flags in ((), ("--feature-gates", "OrlopAdmission=false")):
        with Server(apiserver, scratch.file(f"api{len(flags)}"), "--log-level", "warn", *flags) as server:
            bench = Bench(server, Api(server).namespace(), scratch)
            try:
                for name, test in TESTS.items():
                    if (name in UNCHECKED) == bool(flags) and (len(sys.argv) < 5 or name in sys.argv[4:]):
                        test(bench)
            finally:
                bench.end()
    for name in os.listdir(scratch.path):
        if name.endswith(".log"):
            with open(scratch.file(name), encoding="utf-8", errors="replace") as log:
                text = log.read()
            tap.ok("Sanitizer" not in text, f"no sanitizer complained in {name}", text[-3000:])
tap.done()
