"""Nodes, devices, claims and pools as objects, for tests in which nobody makes them."""
import json

from server import Client
from tap import run

API = "/apis/openebs.io/v1alpha1"
GI = 1 << 30


def path(kind, namespace):
    plural = {"BlockDevice": "blockdevices", "BlockDeviceClaim": "blockdeviceclaims",
              "CStorPoolCluster": "cstorpoolclusters", "CStorPoolInstance": "cstorpoolinstances",
              "CStorVolumeReplica": "cstorvolumereplicas", "Node": "nodes"}[kind]
    return f"/api/v1/{plural}" if kind == "Node" else f"{API}/namespaces/{namespace}/{plural}"


def thing(kind, name, spec=None, labels=None, annotations=None, **more):
    version = "v1" if kind == "Node" else "openebs.io/v1alpha1"
    metadata = {"name": name, "labels": labels or {}, "annotations": annotations or {}}
    return {"apiVersion": version, "kind": kind, "metadata": metadata,
            **({"spec": spec} if spec else {}), **more}


def node(name, **labels):
    return thing("Node", name, labels={"kubernetes.io/hostname": name, **labels})


def device(name, on="node-1", size=10 * GI, state="Active", claim_state="Unclaimed", labels=None,
           **spec):
    return thing("BlockDevice", name, {
        "nodeAttributes": {"nodeName": on}, "path": f"/dev/{name}",
        "capacity": {"storage": size}, "details": {"deviceType": "disk"}, **spec},
        labels={"kubernetes.io/hostname": on, **(labels or {})},
        status={"claimState": claim_state, "state": state})


def claim(name, of, cluster=None, predecessor=None):
    """A claim for a device: of a cluster, or of somebody else."""
    return thing("BlockDeviceClaim", name, {"blockDeviceName": of},
                 labels={"openebs.io/cstor-pool-cluster": cluster} if cluster else None,
                 annotations={"openebs.io/bd-predecessor": predecessor} if predecessor else None,
                 status={"phase": "Bound"})


def group(kind, *devices, **more):
    return {"type": kind, "blockDevices": [{"blockDeviceName": it} for it in devices], **more}


def pool(selector, *groups):
    if isinstance(selector, str):
        selector = {"kubernetes.io/hostname": selector}
    return {"nodeSelector": selector, "raidGroups": list(groups),
            "poolConfig": {"defaultRaidGroupType": "stripe"}}


def cluster(*pools, name="pool", annotations=None):
    return thing("CStorPoolCluster", name, {"pools": list(pools)}, annotations=annotations)


def instance(name, of, spec, **more):
    """The instance of a pool of a cluster."""
    return thing("CStorPoolInstance", name, dict(spec),
                 labels={"openebs.io/cstor-pool-cluster": of}, **more)


def replica(name, on):
    return thing("CStorVolumeReplica", name,
                 {"targetIP": "10.0.0.1", "capacity": "1Gi", "replicaid": "0" * 32},
                 labels={"cstorpoolinstance.openebs.io/name": on})


def put(server, value, namespace="default"):
    """Creates an object, or makes it what it says."""
    where = path(value["kind"], namespace)
    client = Client(server)
    reply = client.create(where, value)
    if reply.status == 409:
        reply = client.merge(f"{where}/{value['metadata']['name']}", value)
    client.close()
    if reply.status not in (200, 201):
        raise AssertionError(f"{value['kind']} {value['metadata']['name']}: {reply.status} {reply.value}")
    return reply.value


def provide(server, orlop, *manifests):
    """The nodes and devices that CStorPoolClusters in files ask for."""
    for manifest in manifests:
        text = run(orlop, "convert", "-o", "json", manifest).stdout
        found = json.loads(text)
        for it in found["items"] if "items" in found else [found]:
            namespace = it["metadata"].get("namespace", "default")
            server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
            for its in it["spec"]["pools"]:
                name = next(iter(its["nodeSelector"].values()))
                put(server, node(name))
                for devices in its["raidGroups"]:
                    for each in devices["blockDevices"]:
                        put(server, device(each["blockDeviceName"], name), namespace)
