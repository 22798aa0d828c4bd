#!/usr/bin/env python3
"""Who may change what of an object, as Kubernetes has it: the main path leaves a status alone and /status everything
else, and generation counts what people ask for. Of every kind of ours, built in and as a definition; and of definitions
with and without the subresource.

status.py APISERVER TOP
"""
import copy
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from pool_objects import cluster, device, group, instance, pool, replica, thing  # noqa: E402
from server import MERGE, Client, Server  # noqa: E402
from tap import Scratch, Tap  # noqa: E402

program, top = sys.argv[1:3]
tap = Tap()
APPLY = "application/apply-patch+yaml"
JIVA = "openebs.io/v1alpha1"


def of(value, version, **spec):
    """The same in another version, with more in its spec."""
    value = copy.deepcopy(value)
    value["apiVersion"] = version
    value["spec"].update(spec)
    value.pop("status", None)
    return value


def lv(version):
    return {"apiVersion": version, "kind": "LogicalVolume", "metadata": {"name": "x"},
            "spec": {"name": "x", "nodeName": "n", "size": "1Gi"}}


POOL = pool("n", group("stripe", "a"))
CV = {"capacity": "1Gi", "replicationFactor": 3}
JV = thing("JivaVolume", "x", {"capacity": "1Gi"})
PUBLISHED = {"nodeSelector": {"kubernetes.io/hostname": "n"},
             "dataRaidGroups": [{"blockDevices": [{"blockDeviceName": "a"}]}],
             "poolConfig": {"dataRaidGroupType": "stripe", "thickProvision": False, "compression": "off"}}


def pools(spec):
    return cluster(spec, name="x"), instance("x", "c", {**spec, "hostName": "n"})


CSPC, CSPI = pools(POOL)
CSPC_V1, CSPI_V1 = pools(PUBLISHED)
# An object, a status for it, another one, and a change of its spec.
KINDS = [
    (of(CSPC, "openebs.io/v1alpha1"), {"phase": "ONLINE"}, {"phase": "OFFLINE"}, {"resources": {"limits": {"cpu": "1"}}}),
    (of(CSPC_V1, "cstor.openebs.io/v1"), {"phase": "ONLINE"}, {"phase": "OFFLINE"}, {"resources": {"limits": {"cpu": "1"}}}),
    (of(CSPI, "openebs.io/v1alpha1"), {"phase": "ONLINE"}, {"phase": "OFFLINE"}, {"hostName": "m"}),
    (of(CSPI_V1, "cstor.openebs.io/v1"), {"phase": "ONLINE"}, {"phase": "OFFLINE"}, {"hostName": "m"}),
    (of(device("x"), "openebs.io/v1alpha1"), {"state": "Active", "claimState": "Unclaimed"}, {"state": "Inactive"},
     {"partitioned": "Yes"}),
    (thing("BlockDeviceClaim", "x", {"resources": {"requests": {"storage": "1Gi"}}}), {"phase": "Pending"},
     {"phase": "Bound"}, {"blockDeviceName": "y"}),
    (of(thing("CStorVolume", "x", CV), "cstor.openebs.io/v1"), {"phase": "Healthy"}, {"phase": "Offline"},
     {"capacity": "2Gi"}),
    (of(thing("CStorVolume", "x", CV), "openebs.io/v1alpha1"), {"phase": "Healthy"}, {"phase": "Offline"},
     {"capacity": "2Gi"}),
    (of(replica("x", "p"), "cstor.openebs.io/v1"), {"phase": "Healthy"}, {"phase": "Offline"}, {"capacity": "2Gi"}),
    (of(replica("x", "p"), "openebs.io/v1alpha1"), {"phase": "Healthy"}, {"phase": "Offline"}, {"capacity": "2Gi"}),
    (JV, {"phase": "Ready"}, {"phase": "Syncing"}, {"desiredReplicationFactor": 2}),
    (of(JV, "openebs.io/v1"), {"phase": "Ready"}, {"phase": "Syncing"}, {"desiredReplicationFactor": 2}),
    (thing("JivaVolumeResize", "x", {"capacity": "2Gi"}, labels={"jiva.openebs.io/name": "v"}), {"phase": "INIT"},
     {"phase": "IN-PROGRESS"}, None),
    (lv("topolvm.cybozu.com/v1"), {"currentSize": "1Gi"}, {"currentSize": "2Gi"}, {"size": "2Gi"}),
    (lv("topolvm.io/v1"), {"currentSize": "1Gi"}, {"currentSize": "2Gi"}, {"size": "2Gi"}),
]


def place(value):
    plural = value["kind"].lower() + "s"
    inside = "" if value["kind"] == "LogicalVolume" else "namespaces/default/"
    return f"/apis/{value['apiVersion']}/{inside}{plural}"


def facts(value):
    """What differs between ways of writing."""
    return value.get("status"), value["metadata"]["generation"], value["metadata"].get("labels", {}).get("by")


class Object:
    """One on a server, by a client."""

    def __init__(self, client, value):
        self.client, self.value, self.path = client, value, f"{place(value)}/{value['metadata']['name']}"

    def get(self):
        return self.client.ask("GET", self.path).json

    def merge(self, change, part=""):
        return self.client.ask("PATCH", self.path + part, change, content_type=MERGE)

    def put(self, change, part=""):
        """As clients in Go do it: all of the object, with the version that was read."""
        value = self.get()
        for key, more in change.items():
            value[key] = {**value.get(key, {}), **more} if key != "status" else more
        return self.client.ask("PUT", self.path + part, value)

    def apply(self, change, part=""):
        return self.client.ask("PATCH", f"{self.path}{part}?fieldManager=test&force=true", {
            **{k: self.value[k] for k in ("apiVersion", "kind")}, **change}, content_type=APPLY)


def check_kind(client, value, status, other, spec, what):
    made = client.ask("POST", place(value), {**value, "status": status})
    tap.ok(made.status == 201 and "status" not in made.json and made.json["metadata"]["generation"] == 1,
           f"{what}: a status in a new object is dropped", made.value)
    if made.status != 201:
        return
    o = Object(client, value)
    for name, write in (("a merge patch", o.merge), ("an update", o.put)):
        before = o.get()
        reply = write({"status": status})
        tap.ok(reply.status == 200 and o.get() == before, f"{what}: {name} of the main path leaves it alone", reply.value)
    labelled = {"metadata": {"labels": {**value["metadata"].get("labels", {}), "by": "status"}}}
    asked = {"spec": {**value["spec"], **spec}} if spec else {}
    for name, write, wanted in (("a merge patch", o.merge, status), ("an update", o.put, other)):
        reply = write({"status": wanted, **asked, **labelled}, "/status")
        tap.equal((reply.status, facts(o.get())), (200, (wanted, 1, None)), f"{what}: {name} of /status writes it alone")
        seen = o.get()["metadata"]["resourceVersion"]
        o.merge({"metadata": {"annotations": {"a": name}}})
        reply = o.merge({"metadata": {"resourceVersion": seen}, "status": status}, "/status")
        tap.equal((reply.status, facts(o.get())[0]), (409, wanted), "and not over what was not read")
    reply = o.apply({"metadata": {"name": "x"}, "status": status}, "/status")
    tap.equal((reply.status, facts(o.get())), (200, (status, 1, None)), f"{what}: server-side apply of /status")
    reply = o.merge({**labelled, "status": other})
    tap.equal((reply.status, facts(o.get())), (200, (status, 1, "status")), f"{what}: a label does not raise generation")
    if spec:
        reply = o.put({**asked, "status": other})
        tap.equal((reply.status, facts(o.get())), (200, (status, 2, "status")), f"{what}: a spec does")
    client.ask("DELETE", o.path)


def definition(plural, kind, **more):
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.status.test"},
            "spec": {"group": "status.test", "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
                     "versions": [{"name": "v1", "served": True, "storage": True, **more, "schema": {
                         "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}


def check_definitions(server, client):
    server.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                  definition("withs", "With", subresources={"status": {}}))
    server.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition("withouts", "Without"))
    server.kubectl("wait", "--for=condition=Established", "crd", "withs.status.test", "withouts.status.test",
                   "--timeout=60s")
    value = {"apiVersion": "status.test/v1", "kind": "With", "metadata": {"name": "x"}, "spec": {"a": 1}}
    check_kind(client, value, {"n": 1}, {"n": 2}, {"a": 2}, "a definition with /status")
    o = Object(client, value)
    client.ask("POST", place(value), value)
    tap.equal(facts(o.merge({"other": {"b": 1}}).json), (None, 2, None), "other members of the object raise generation too")
    tap.equal(facts(o.merge({"other": {"b": 2}}, "/status").json), (None, 2, None), "and /status leaves them alone")
    value = {**value, "kind": "Without", "status": {"n": 1}}
    o = Object(client, value)
    tap.equal(facts(client.ask("POST", place(value), value).json), ({"n": 1}, 1, None),
              "a definition without /status: status is like any other field when an object is made")
    tap.equal(facts(o.merge({"status": {"n": 2}}).json), ({"n": 2}, 2, None), "and each change of it raises generation")
    tap.equal(facts(o.put({"status": {"n": 3}}).json), ({"n": 3}, 3, None), "each")
    for name, write in (("a merge patch", o.merge), ("an update", o.put), ("an apply", o.apply)):
        reply = write({"metadata": {"name": "x"}, "status": {"n": 4}}, "/status")
        tap.equal((reply.status, reply.json["reason"], facts(o.get())), (404, "NotFound", ({"n": 3}, 3, None)),
                  f"there is no /status for {name}")
    tap.equal(client.ask("GET", o.path + "/status").status, 404, "nor to read")


for mode, flags in (("built in", ()), ("by definition", ("--only-kubernetes",))):
    with Scratch() as scratch, open(f"{scratch.path}/log", "w", encoding="utf-8") as log, \
            Server(program, f"{scratch.path}/api", "--feature-gates", "OrlopAdmission=false", *flags, log=log) as server:
        if flags:
            tap.ran(server.kubectl("apply", "-f", f"{top}/deploy/crds"), "our definitions")
            tap.ran(server.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"),
                    "are established")
        http = Client(server)
        for each, first, second, edit in KINDS:
            check_kind(http, each, first, second, edit, f"{each['kind']} of {each['apiVersion']}, {mode}")
        if flags:
            check_definitions(server, http)
        http.close()
tap.done()
