"""cStor volumes of a whole system: pools over sparse disks, volumes on them, and what is done to their processes."""
import base64
import json
import os
import signal

from jiva import PATIENCE, Jiva
from tap import wait_for

NS = "openebs"
CLUSTER = "openebs.io/cstor-pool-cluster"
OF_VOLUME = "cstorvolume.openebs.io/name"


def volume(name, capacity, factor=3, cluster="pools", labels=None, annotations=None, **spec):
    """What a user writes."""
    return {"apiVersion": "cstor.openebs.io/v1", "kind": "CStorVolume",
            "metadata": {"name": name, "namespace": NS, "labels": {CLUSTER: cluster, **(labels or {})},
                         "annotations": annotations or {}},
            "spec": {"capacity": capacity, "replicationFactor": factor, **spec}}


def counted(factor):
    """The column of a volume that has all its replicas."""
    return f"{factor}/{factor}"


class CStor(Jiva):
    """`orlop up`, and volumes in the namespace openebs."""

    def namespaced(self, kind, name="", group="apis/cstor.openebs.io/v1"):
        return f"/{group}/namespaces/{NS}/{kind}" + (f"/{name}" if name else "")

    def list(self, kind, group="apis/cstor.openebs.io/v1"):
        reply = self.ask("GET", self.namespaced(kind, group=group))
        return reply.json.get("items", []) if reply.status == 200 else []

    def object(self, kind, name, group="apis/cstor.openebs.io/v1"):
        reply = self.ask("GET", self.namespaced(kind, name, group))
        return reply.json if reply.status == 200 else {}

    # pools

    def pools_of(self, cluster="pools"):
        return [i for i in self.list("cstorpoolinstances") if i["metadata"]["labels"].get(CLUSTER) == cluster]

    def make_pools(self, cluster="pools", nodes=None, **config):
        """A pool of one disk on each node; True when all are ONLINE."""
        wait_for(lambda: len(self.list("blockdevices", "apis/openebs.io/v1alpha1")) >= 3, PATIENCE)
        free, pools = {}, []
        for it in self.list("blockdevices", "apis/openebs.io/v1alpha1"):
            if it["status"].get("claimState", "Unclaimed") == "Unclaimed":
                free.setdefault(it["spec"]["nodeAttributes"]["nodeName"], []).append(it["metadata"]["name"])
        for node in nodes or sorted(free):
            pools.append({"nodeSelector": {"kubernetes.io/hostname": node},
                          "poolConfig": {"defaultRaidGroupType": "stripe", **config},
                          "raidGroups": [{"blockDevices": [{"blockDeviceName": sorted(free[node])[0]}]}]})
        self.apply({"apiVersion": "openebs.io/v1alpha1", "kind": "CStorPoolCluster",
                    "metadata": {"name": cluster, "namespace": NS}, "spec": {"pools": pools}})
        return wait_for(lambda: [p.get("status", {}).get("phase") for p in self.pools_of(cluster)] ==
                        ["ONLINE"] * len(pools), PATIENCE)

    def pool_process(self, pool):
        """Of a pool, by the name of its instance; 0: there is none."""
        return next(iter(self.pids("orlop-pool", "serve", pool)), 0)

    # volumes

    def volume(self, name):
        return self.object("cstorvolumes", name)

    def status_of(self, name):
        return self.volume(name).get("status", {})

    def replicas_of(self, name):
        return sorted((r for r in self.list("cstorvolumereplicas")
                       if r["metadata"]["labels"].get(OF_VOLUME) == name), key=lambda r: r["metadata"]["name"])

    def pools_with(self, name):
        return [r["metadata"]["labels"]["cstorpoolinstance.openebs.io/name"] for r in self.replicas_of(name)]

    def phases(self, name):
        return [r.get("status", {}).get("phase", "") for r in self.replicas_of(name)]

    def healthy(self, name, factor=3, seconds=PATIENCE):
        """Whether all replicas that are wanted have all data, as the volume and they themselves say."""
        return wait_for(lambda: self.status_of(name).get("phase") == "Healthy" and
                        self.status_of(name).get("replicas") == counted(factor) and
                        self.phases(name) == ["Healthy"] * factor, seconds)

    def describe(self, name):
        return "\n".join(json.dumps(p) for p in (
            self.volume(name), *({"name": r["metadata"]["name"], "spec": r["spec"], "status": r.get("status")}
                                 for r in self.replicas_of(name)))) + "\n" + self.kubectl(
                                     "get", "pods", "-n", NS, "-o", "wide").stdout

    def condition(self, name, kind):
        return next((c for c in self.status_of(name).get("conditions", []) if c["type"] == kind), {})

    def edit(self, name, spec):
        return self.kubectl("patch", "cv", name, "-n", NS, "--type=merge", "-p", json.dumps({"spec": spec}))

    def events_of(self, name):
        return [e["reason"] for e in self.list("events", "api/v1") if e["involvedObject"]["name"] == name]

    def portal(self, name):
        return self.volume(name).get("spec", {}).get("targetPortal", "")

    def login(self, name):
        secret = self.object("secrets", f"{name}-chap", "api/v1")
        return tuple(base64.b64decode(secret["data"][f"node.session.auth.{word}"]).decode() for word in (
            "username", "password", "username_in", "password_in")) if secret else ()

    def url(self, name, login=True):
        spec, secrets = self.volume(name)["spec"], self.login(name) if login else ()
        who, proof = ("%".join(secrets[:2]) + "@", "?target_user={}&target_password={}".format(*secrets[2:])) \
            if secrets else ("", "")
        return f"iscsi://{who}{spec['targetPortal']}/{spec['iqn']}/0{proof}"

    def target(self, name):
        identity = self.volume(name)["metadata"]["annotations"]["orlop.io/volume-id"]
        return next(iter(self.pids("orlop-target", identity)), 0)

    # accidents

    def node_of(self, pool):
        return self.object("cstorpoolinstances", pool)["spec"]["hostName"]

    def hold_down_pools(self, *pools):
        """Kills the processes of pools, with the agents of their nodes frozen, so that nobody starts them again:
        the agents, for wake()."""
        agents = []
        for pool in pools:
            agents.append(self.pid(self.node_of(pool)))
            os.kill(agents[-1], signal.SIGSTOP)
            os.kill(self.pool_process(pool), signal.SIGKILL)
        return agents
