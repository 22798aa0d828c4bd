"""Pools and targets of cStor volumes that only pretend, without data: what orlop-pool does with
CStorVolumeReplicas and orlop-sidecar with CStorVolumes, one step at a call of tick().

They break no promise of the real ones: a replica has a data set when its object says so; a target adds who waits
while fewer stay than are wanted, and lets go of who leaves when enough others are well.
"""
from server import Client

API = "/apis/cstor.openebs.io/v1/namespaces/openebs"
FINALIZER = "cstorvolumereplica.openebs.io/finalizer"
STATUS = "application/merge-patch+json"


class Pretend:
    """`pools` on a node each; what is wrong is collected in `wrong`."""

    def __init__(self, server, *pools, zones=None):
        self.client, self.members, self.wrong = Client(server), {}, []
        self.sizes, self.guid, self.dead, self.frozen = {}, 0, set(), set()
        self.client.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace",
                                                  "metadata": {"name": "openebs"}})
        for pool in pools:
            self.client.create("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {
                "name": f"n-{pool}", "labels": {"topology.kubernetes.io/zone": (zones or {}).get(pool, "z")}}})
            path = "/apis/openebs.io/v1alpha1/namespaces/openebs/cstorpoolinstances"
            self.client.create(path, {
                "apiVersion": "openebs.io/v1alpha1", "kind": "CStorPoolInstance",
                "metadata": {"name": pool, "namespace": "openebs",
                             "labels": {"openebs.io/cstor-pool-cluster": "pools", "kubernetes.io/hostname": f"n-{pool}"}},
                "spec": {"hostName": f"n-{pool}", "nodeSelector": {"kubernetes.io/hostname": f"n-{pool}"},
                         "poolConfig": {"overProvisioning": False, "defaultRaidGroupType": "stripe"},
                         "raidGroups": [{"blockDevices": [{"blockDeviceName": f"bd-{pool}"}]}]}})
            self.client.ask("PATCH", f"{path}/{pool}/status", {"status": {
                "phase": "ONLINE", "capacity": {"total": "10Gi", "used": "0", "free": "10Gi"}}}, content_type=STATUS)

    def lose(self, pool, since="2020-01-01T00:00:00Z"):
        """Nothing is heard of its process, as the operator says then."""
        self.dead.add(pool)
        self._say(pool, "OFFLINE", "Unknown", since)

    def find(self, pool):
        self.dead.discard(pool)
        self._say(pool, "ONLINE", "True", "2020-01-01T00:00:00Z")

    def _say(self, pool, phase, available, since):
        self.client.ask("PATCH", f"/apis/openebs.io/v1alpha1/namespaces/openebs/cstorpoolinstances/{pool}/status", {
            "status": {"phase": phase, "conditions": [{"type": "Available", "status": available,
                                                       "lastTransitionTime": since}]}}, content_type=STATUS)

    def list(self, kind):
        reply = self.client.ask("GET", f"{API}/{kind}")
        return reply.json["items"] if reply.status == 200 else []

    def _replica(self, r):
        """What its pool does."""
        name = r["metadata"]["name"]
        if r["metadata"]["labels"]["cstorpoolinstance.openebs.io/name"] in self.dead:
            return
        if r["metadata"].get("deletionTimestamp"):
            self.client.merge(f"{API}/cstorvolumereplicas/{name}", {"metadata": {"finalizers": None}})
        elif not r.get("status", {}).get("zvolGuid"):
            self.guid += 1
            self.client.ask("PATCH", f"{API}/cstorvolumereplicas/{name}/status", {"status": {
                "phase": "Healthy", "zvolGuid": str(self.guid), "poolGuid": "1",
                "capacity": {"total": "1Mi", "used": "1Mi"}}}, content_type=STATUS)

    def _target(self, v, replicas):
        """What its sidecar does, in one go."""
        name, spec, status = v["metadata"]["name"], v["spec"], v.get("status", {})
        here = {r["spec"]["replicaid"]: r["status"]["zvolGuid"] for r in replicas
                if r.get("status", {}).get("zvolGuid") and not r["metadata"].get("deletionTimestamp")}
        wanted, leaving = spec.get("desiredReplicationFactor", 0), spec.get("leavingReplicas") or []
        members = self.members.setdefault(name, {})
        for key in list(members):
            if key not in here and key not in leaving:
                self.wrong.append(f"{name}: {key} is a member, and its data set is gone")
        staying = [k for k in members if k not in leaving]
        if not members and len(here) >= wanted and not status.get("capacity"):
            members.update({k: here[k] for k in sorted(here)[:wanted]})
            self.sizes[name] = spec["capacity"]
        elif members and len(staying) < wanted:
            for key in sorted(set(here) - set(members) - set(leaving))[:1]:
                members[key] = here[key]
        elif members and len(staying) >= wanted:
            for key in leaving[:1]:
                members.pop(key, None)
        if spec.get("resizeOrder"):
            self.sizes[name] = spec["resizeOrder"]["capacity"]
        if not members:
            return
        lost = {r["spec"]["replicaid"] for r in replicas
                if r["metadata"]["labels"]["cstorpoolinstance.openebs.io/name"] in self.dead}
        full = all(k in here and k not in lost for k in members) and len(members) == wanted
        self.client.ask("PATCH", f"{API}/cstorvolumes/{name}/status", {
            "metadata": {"resourceVersion": v["metadata"]["resourceVersion"]},
            "status": {"phase": "Offline" if name in self.frozen else "Healthy", "capacity": self.sizes[name],
                       "replicaDetails": {"knownReplicas": {**dict.fromkeys(
                           status.get("replicaDetails", {}).get("knownReplicas", {})), **members}},
                       "replicaStatuses": [{"replicaId": g, "mode": "Offline" if k in lost else "Healthy"}
                                           for k, g in members.items()],
                       "removedReplicas": [k for k in leaving if k not in members],
                       "conditions": [c for c in status.get("conditions", []) if c["type"] != "FullyReplicated"] + [
                           {"type": "FullyReplicated", "status": "True" if full else "False"}]}}, content_type=STATUS)

    def tick(self):
        replicas = self.list("cstorvolumereplicas")
        for r in replicas:
            self._replica(r)
        for v in self.list("cstorvolumes"):
            if not v["metadata"].get("deletionTimestamp"):
                self._target(v, [r for r in replicas if r["metadata"]["labels"]["cstorvolume.openebs.io/name"] ==
                                 v["metadata"]["name"]])
        return replicas
