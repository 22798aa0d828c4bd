"""Nodes, devices and pools that only pretend: what orlop-node does with BlockDeviceClaims and orlop-pool with
CStorPoolInstances, without any disk.

`disks` is what would be written on devices: device -> guid of the pool that it is in. Whatever must never happen
(a pool made over another, a device in use by a pool without a claim, two claims that have one device, two
instances of one pool) is noted in `broken`.
"""
import http.client
import itertools
import json
import threading

from server import Client

NS = "openebs"
OPENEBS = f"/apis/openebs.io/v1alpha1/namespaces/{NS}"
CLUSTERS, INSTANCES = f"{OPENEBS}/cstorpoolclusters", f"{OPENEBS}/cstorpoolinstances"
CLAIMS, DEVICES = f"{OPENEBS}/blockdeviceclaims", f"{OPENEBS}/blockdevices"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NS}/deployments"
REPLICAS = f"/apis/cstor.openebs.io/v1/namespaces/{NS}/cstorvolumereplicas"
MERGE = "application/merge-patch+json"
GUARD, HOLD, BOUND = ("openebs.io/pool-protection", "cstorpoolcluster.openebs.io/finalizer",
                      "openebs.io/bdc-protection")
CLUSTER, PREDECESSOR, DESTROY = ("openebs.io/cstor-pool-cluster", "openebs.io/bd-predecessor",
                                 "orlop.io/destroy-pool")
GUID = "orlop.io/pool-guid"
GI = 1 << 30


def device(name, node, size=10 * GI):
    return {"apiVersion": "openebs.io/v1alpha1", "kind": "BlockDevice",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": node}},
            "spec": {"nodeAttributes": {"nodeName": node}, "path": f"/dev/{name}", "capacity": {"storage": size},
                     "details": {"deviceType": "disk"}},
            "status": {"claimState": "Unclaimed", "state": "Active"}}


def node(name, **labels):
    return {"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
            "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady",
                                       "lastTransitionTime": "2024-01-01T00:00:00Z"}]}}


def group(kind, *names, **more):
    return {"type": kind, "blockDevices": [{"blockDeviceName": n} for n in names], **more}


def pool(host, *groups, **config):
    return {"nodeSelector": {"kubernetes.io/hostname": host}, "raidGroups": list(groups),
            "poolConfig": {"defaultRaidGroupType": "stripe", **config}}


def cluster(name, *pools):
    return {"apiVersion": "openebs.io/v1alpha1", "kind": "CStorPoolCluster",
            "metadata": {"name": name, "namespace": NS}, "spec": {"pools": list(pools)}}


def guid_of(instance):
    """The pool that it has, or the one that it was made for."""
    return instance.get("status", {}).get("guid") or instance["metadata"].get("annotations", {}).get(GUID)


def names_of(spec):
    return [d["blockDeviceName"] for g in spec["raidGroups"] for d in g["blockDevices"]]


class Pools:
    """Runs from `with`. `still` holds names of instances that nobody looks after; `resilvers` is whether
    replacements come to their end."""

    def __init__(self, server, latency=0):
        self.server, self.latency = server, latency
        self.disks, self.broken, self.still, self.resilvers = {}, [], set(), True
        self.made = self.imported = self.destroyed = 0
        self.lock, self.ended, self.watchers = threading.RLock(), threading.Event(), []
        self.guids = itertools.count(1000)
        self.threads = [threading.Thread(target=self._follow, args=what, daemon=True)
                        for what in ((CLAIMS, self._claim), (INSTANCES, self._instance))]

    # What tests say of the machines.

    def _post(self, path, value):
        client = Client(self.server)
        reply = client.create(path, value)
        client.close()
        if reply.status not in (200, 201, 409):
            raise AssertionError(reply.text)

    def add_node(self, *names, **labels):
        for name in names:
            self._post("/api/v1/nodes", node(name, **labels))
            self.set_ready(name, True)

    def set_ready(self, name, ready):
        conditions = node(name)["status"]["conditions"]
        conditions[0]["status"] = "True" if ready else "Unknown"
        self.server.request("PATCH", f"/api/v1/nodes/{name}/status", {"status": {"conditions": conditions}},
                            content_type=MERGE)

    def add_devices(self, host, *names, size=10 * GI):
        for name in names:
            self._post(DEVICES, device(name, host, size))

    def move(self, host, *names):
        """Takes disks out of one machine and puts them into another."""
        for name in names:
            self.server.request("PATCH", f"{DEVICES}/{name}", {
                "metadata": {"labels": {"kubernetes.io/hostname": host}},
                "spec": {"nodeAttributes": {"nodeName": host}}}, content_type=MERGE)

    def look_again(self):
        """At all instances: after `still` or `resilvers` changed."""
        client = Client(self.server)
        for it in client.ask("GET", INSTANCES).json["items"]:
            self._instance(client, it)
        client.close()

    # Following

    def _follow(self, path, look):
        client = Client(self.server)
        while not self.ended.is_set():
            watcher = Client(self.server)
            self.watchers.append(watcher)
            try:
                for event in watcher.events(f"{path}?watch=true"):
                    if self.ended.is_set():
                        break
                    if event["type"] in ("ADDED", "MODIFIED"):
                        look(client, event["object"])
            except (OSError, ValueError, AttributeError, http.client.HTTPException):
                self.ended.wait(0.05)
            watcher.close()
        client.close()

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        for watcher in self.watchers:
            try:
                watcher.connection.sock.shutdown(2)
            except (AttributeError, OSError):
                pass
        for thread in self.threads:
            thread.join(30)

    @staticmethod
    def _patch(client, path, value, **change):
        """With the version that was read, so that nobody's change is lost; what is there then, or None."""
        metadata = {"resourceVersion": value["metadata"]["resourceVersion"], **change.pop("metadata", {})}
        reply = client.merge(f"{path}/{value['metadata']['name']}", {"metadata": metadata, **change})
        return reply.json if reply.status == 200 else None

    @staticmethod
    def _get(client, path, name):
        reply = client.ask("GET", f"{path}/{name}")
        return reply.json if reply.status == 200 else None

    # What orlop-node does

    def _claim(self, client, claim):
        with self.lock:
            name, metadata = claim["spec"].get("blockDeviceName"), claim["metadata"]
            disk = self._get(client, DEVICES, name) if name else None
            if disk is None:
                return
            holder = disk["spec"].get("claimRef", {}).get("uid")
            finalizers = metadata.get("finalizers", [])
            if "deletionTimestamp" in metadata:
                if finalizers == [BOUND]:
                    self._release(client, claim, disk, holder)
                return
            if claim.get("status", {}).get("phase") == "Bound":
                if holder != metadata["uid"]:
                    self.broken.append(f"two claims have {name}")
                return
            if holder and holder != metadata["uid"]:
                self._patch(client, CLAIMS, claim, status={"phase": "Pending"})
                return
            if not holder and name in self.disks:
                self.broken.append(f"{name} is claimed and has a pool on it")
            if not holder and self._patch(client, DEVICES, disk, spec={"claimRef": {
                    "name": metadata["name"], "uid": metadata["uid"], "namespace": NS,
                    "kind": "BlockDeviceClaim"}}, status={"claimState": "Claimed"}) is None:
                return
            if self._patch(client, CLAIMS, claim, metadata={"finalizers": [*finalizers, BOUND]},
                           status={"phase": "Bound"}) is None:
                now = self._get(client, CLAIMS, metadata["name"])
                if now:
                    self._claim(client, now)

    def _release(self, client, claim, disk, holder):
        if holder == claim["metadata"]["uid"]:
            if self.disks.get(disk["metadata"]["name"]):
                self.broken.append(f"{disk['metadata']['name']} is wiped under its pool")
            self._patch(client, DEVICES, disk, spec={"claimRef": None}, status={"claimState": "Unclaimed"})
        self._patch(client, CLAIMS, claim, metadata={"finalizers": []})

    # What orlop-pool does

    def _instance(self, client, instance):
        with self.lock:
            metadata = instance["metadata"]
            if metadata["name"] in self.still:
                return
            if "deletionTimestamp" in metadata:
                self._end(client, instance)
            elif client.ask("GET", f"{DEPLOYMENTS}/{metadata['name']}").status == 200:
                self._run(client, instance)
            else:
                threading.Timer(0.05, self._later, (metadata["name"],)).start()

    def _later(self, name):
        """Its process does not run yet."""
        if self.ended.is_set():
            return
        client = Client(self.server)
        try:
            now = self._get(client, INSTANCES, name)
            if now:
                self._instance(client, now)
        except (OSError, http.client.HTTPException):
            pass
        client.close()

    def _end(self, client, instance):
        finalizers = instance["metadata"].get("finalizers", [])
        if GUARD not in finalizers or DESTROY not in instance["metadata"].get("annotations", {}):
            return
        guid = guid_of(instance)
        if guid in self.disks.values():
            self.destroyed += 1
        self.disks = {d: g for d, g in self.disks.items() if g != guid}
        self._patch(client, INSTANCES, instance, metadata={"finalizers": [f for f in finalizers if f != GUARD]})

    def _check_claimed(self, client, instance, names):
        claims = {c["spec"].get("blockDeviceName"): c for c in client.ask("GET", CLAIMS).json["items"]
                  if c.get("status", {}).get("phase") == "Bound"}
        of = instance["metadata"]["labels"][CLUSTER]
        for name in names:
            if claims.get(name, {}).get("metadata", {}).get("labels", {}).get(CLUSTER) != of:
                self.broken.append(f"{instance['metadata']['name']} has {name}, which is not claimed for {of}")
        return claims

    def _run(self, client, instance):
        names, status = names_of(instance["spec"]), instance.get("status", {})
        found = {self.disks[n] for n in names if n in self.disks}
        guid, known = guid_of(instance), status.get("phase") not in (None, "", "Pending")
        if len(found) > 1:
            self.broken.append(f"{instance['metadata']['name']} has devices of two pools: {names}")
        if guid and guid not in found:
            self.broken.append(f"{instance['metadata']['name']} is to import {guid}, which is not on {names}")
        new = [n for n in names if n not in self.disks]
        claims = self._check_claimed(client, instance, names if not known or new else [])
        if not guid and not found:
            guid = str(next(self.guids))
            self.made += 1
        elif not known:
            guid = found.pop()
            self.imported += 1
        self.disks.update(dict.fromkeys(names, guid))
        resilvers = self._replace(client, claims or {}, names, guid)
        gone = [d for d, g in self.disks.items() if g == guid and d not in names]
        total = 10 * len(names)
        wanted = {"phase": "ONLINE", "guid": guid, "readOnly": False, "provisionedReplicas": 0, "healthyReplicas": 0,
                  "capacity": {"total": f"{total}Gi", "free": f"{total - 1}Gi", "used": "1Gi"},
                  "devices": [{"blockDeviceName": n, "state": "ONLINE"} for n in sorted([*names, *gone])]}
        if any(status.get(k) != v for k, v in wanted.items()):
            self._patch(client, INSTANCES, instance, status=wanted)
        elif resilvers:
            threading.Timer(0.05, self._later, (instance["metadata"]["name"],)).start()

    def _replace(self, client, claims, names, guid):
        """Ends replacements of the pool, if that is to be; whether there are some."""
        if not any(g == guid and d not in names for d, g in self.disks.items()):
            return False
        if not claims:
            claims = {c["spec"].get("blockDeviceName"): c for c in client.ask("GET", CLAIMS).json["items"]}
        old = {c["metadata"].get("annotations", {}).get(PREDECESSOR): c for n, c in claims.items() if n in names}
        for name in [d for d, g in self.disks.items() if g == guid and d not in names]:
            if name not in old:
                self.broken.append(f"{name} went from pool {guid} and no claim says what replaces it")
                del self.disks[name]
            elif self.resilvers:
                del self.disks[name]
                self._patch(client, CLAIMS, old[name], metadata={"annotations": {PREDECESSOR: None}})
        return True


class Clusters:
    """What tests ask of a server with clusters."""

    def __init__(self, server):
        self.server = server

    def items(self, path):
        return self.server.get(path)[1].get("items", [])

    def create(self, value):
        return self.server.create(CLUSTERS, value)

    def get(self, name):
        return self.server.get(f"{CLUSTERS}/{name}")[1]

    def edit(self, name, change):
        """As kubectl edit does it: read, change, write; again when somebody else wrote."""
        while True:
            value = self.get(name)
            change(value["spec"])
            status, reply = self.server.ask("PUT", f"{CLUSTERS}/{name}", value)
            if status != 409:
                return status, reply

    def instances(self, name):
        return [i for i in self.items(INSTANCES) if i["metadata"]["labels"].get(CLUSTER) == name]

    def claims(self, name):
        return {c["spec"]["blockDeviceName"]: c for c in self.items(CLAIMS)
                if c["metadata"].get("labels", {}).get(CLUSTER) == name}

    def condition(self, name, kind="Ready"):
        for it in self.get(name).get("status", {}).get("conditions", []):
            if it["type"] == kind:
                return it
        return {}

    def is_ready(self, name):
        ready, value = self.condition(name), self.get(name)
        return ready.get("status") == "True" and ready.get("observedGeneration") == value["metadata"]["generation"]

    def why(self, name, kind, reason, *words):
        """Whether a condition says so, for wait_for."""
        it = self.condition(name, kind)
        return it.get("reason") == reason and all(w in it.get("message", "") for w in words)

    def events(self, reason):
        return [e["message"] for e in self.items(f"/api/v1/namespaces/{NS}/events") if e["reason"] == reason]

    def describe(self, name):
        """For people, without what nobody asks for."""
        found = [self.get(name), *self.instances(name), *self.claims(name).values()]
        for it in found:
            it.get("metadata", {}).pop("managedFields", None)
        return "\n".join(json.dumps(it) for it in found)
