#!/usr/bin/env python3
"""Fields that a kind does not have, and fields that are there twice: refused, warned of, or dropped.

field-validation.py APISERVER
"""
import copy
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from server import Server  # noqa: E402
from tap import Scratch, Tap  # noqa: E402

program = sys.argv[1]
tap = Tap()
CORE = "/api/v1/namespaces/default"
CONTAINER = {"name": "c", "image": "i"}
TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [CONTAINER]}}
WORKLOAD = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
RULE = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
SUBJECT = {"kind": "User", "name": "u", "apiGroup": "rbac.authorization.k8s.io"}
ROLE = {"kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io"}
HOOK = {"name": "a.b.c", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://a.test/"}}

# Kind, where it is, the rest of an object that is right, and where a field is put that is not.
KINDS = [
    ("v1", "Namespace", "/api/v1/namespaces", {}, ["", "metadata", "spec"]),
    ("v1", "ConfigMap", f"{CORE}/configmaps", {"data": {"a": "b"}}, [""]),
    ("v1", "Secret", f"{CORE}/secrets", {"data": {"a": "YQ=="}}, [""]),
    ("v1", "ServiceAccount", f"{CORE}/serviceaccounts", {"secrets": [{"name": "s"}]},
     ["", "secrets.0"]),
    ("v1", "Service", f"{CORE}/services", {"spec": {"ports": [{"port": 80}], "sessionAffinity":
     "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 5}}}},
     ["spec", "spec.ports.0", "spec.sessionAffinityConfig.clientIP"]),
    ("v1", "Event", f"{CORE}/events", {"involvedObject": {"namespace": "default"}},
     ["", "involvedObject", "series"]),
    ("v1", "ResourceQuota", f"{CORE}/resourcequotas", {"spec": {"hard": {"pods": "1"}}}, ["spec"]),
    ("v1", "LimitRange", f"{CORE}/limitranges", {"spec": {"limits": [
        {"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}]}}, ["spec", "spec.limits.0"]),
    ("v1", "PersistentVolumeClaim", f"{CORE}/persistentvolumeclaims",
     {"spec": {**CLAIM, "dataSource": {"kind": "PersistentVolumeClaim", "name": "x"}}},
     ["spec", "spec.resources", "spec.dataSource"]),
    ("v1", "PersistentVolume", "/api/v1/persistentvolumes", {"spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
        "csi": {"driver": "d", "volumeHandle": "h", "nodeStageSecretRef": {"name": "s"}},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
            {"key": "k", "operator": "Exists"}]}]}}}},
     ["spec", "spec.csi", "spec.csi.nodeStageSecretRef", "spec.nodeAffinity.required",
      "spec.nodeAffinity.required.nodeSelectorTerms.0.matchExpressions.0"]),
    ("v1", "Pod", f"{CORE}/pods", {"spec": {
        "containers": [{**CONTAINER, "ports": [{"containerPort": 1}], "env": [
            {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "envFrom": [{"configMapRef": {"name": "c"}}],
            "livenessProbe": {"httpGet": {"port": "http", "httpHeaders": [{"name": "a", "value": "b"}]}},
            "lifecycle": {"preStop": {"exec": {"command": ["a"]}}},
            "securityContext": {"capabilities": {"add": ["A"]}, "seccompProfile": {"type": "Unconfined"}},
            "resources": {"limits": {"cpu": 1}},
            "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
        "initContainers": [{"name": "init", "image": "i"}],
        "volumes": [{"name": "v", "projected": {"sources": [
            {"serviceAccountToken": {"path": "t"}}, {"configMap": {"name": "c"}}]}},
            {"name": "w", "configMap": {"name": "c", "items": [{"key": "k", "path": "p"}]}},
            {"name": "x", "ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}}}],
        "securityContext": {"sysctls": [{"name": "a", "value": "b"}]},
        "dnsConfig": {"options": [{"name": "a"}]},
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "k", "labelSelector": {"matchLabels": {"a": "b"}}}]}}}},
     ["spec", "spec.containers.0", "spec.containers.0.ports.0", "spec.containers.0.env.0.valueFrom",
      "spec.containers.0.envFrom.0.configMapRef", "spec.containers.0.livenessProbe.httpGet",
      "spec.containers.0.lifecycle.preStop.exec", "spec.containers.0.securityContext.capabilities",
      "spec.containers.0.securityContext", "spec.containers.0.resources", "spec.initContainers.0",
      "spec.containers.0.volumeMounts.0", "spec.volumes.0.projected.sources.0.serviceAccountToken",
      "spec.volumes.1.configMap.items.0", "spec.volumes.2.ephemeral.volumeClaimTemplate.spec",
      "spec.securityContext.sysctls.0", "spec.dnsConfig.options.0", "spec.affinity",
      "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution.0"]),
    *[("apps/v1", kind, f"/apis/apps/v1/namespaces/default/{plural}", {"spec": {
        **WORKLOAD, **more}}, ["spec", "spec.template", "spec.template.metadata",
                               "spec.template.spec", "spec.template.spec.containers.0", *at])
      for kind, plural, more, at in (
          ("Deployment", "deployments", {"strategy": {"rollingUpdate": {"maxSurge": 1}}},
           ["spec.strategy", "spec.strategy.rollingUpdate"]),
          ("ReplicaSet", "replicasets", {}, []),
          ("DaemonSet", "daemonsets", {"updateStrategy": {"type": "OnDelete"}},
           ["spec.updateStrategy"]),
          ("StatefulSet", "statefulsets", {"serviceName": "s", "volumeClaimTemplates": [
              {"metadata": {"name": "v"}, "spec": CLAIM}]},
           ["spec.volumeClaimTemplates.0", "spec.volumeClaimTemplates.0.spec.resources"]))],
    ("batch/v1", "Job", "/apis/batch/v1/namespaces/default/jobs", {"spec": {"template": {
        "spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}}},
     ["spec", "spec.template.spec.containers.0"]),
    ("batch/v1", "CronJob", "/apis/batch/v1/namespaces/default/cronjobs", {"spec": {
        "schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [CONTAINER]}}}}}},
     ["spec", "spec.jobTemplate.spec", "spec.jobTemplate.spec.template.spec"]),
    ("storage.k8s.io/v1", "StorageClass", "/apis/storage.k8s.io/v1/storageclasses",
     {"provisioner": "p", "allowedTopologies": [{"matchLabelExpressions": [
         {"key": "k", "values": ["v"]}]}]},
     ["", "allowedTopologies.0", "allowedTopologies.0.matchLabelExpressions.0"]),
    ("storage.k8s.io/v1", "CSIDriver", "/apis/storage.k8s.io/v1/csidrivers",
     {"spec": {"tokenRequests": [{"audience": "a"}]}}, ["spec", "spec.tokenRequests.0"]),
    ("storage.k8s.io/v1", "CSINode", "/apis/storage.k8s.io/v1/csinodes", {"spec": {"drivers": [
        {"name": "d", "nodeID": "n", "allocatable": {"count": 1}}]}},
     ["spec", "spec.drivers.0", "spec.drivers.0.allocatable"]),
    ("storage.k8s.io/v1", "VolumeAttachment", "/apis/storage.k8s.io/v1/volumeattachments",
     {"spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}}},
     ["spec", "spec.source"]),
    ("snapshot.storage.k8s.io/v1", "VolumeSnapshot",
     "/apis/snapshot.storage.k8s.io/v1/namespaces/default/volumesnapshots",
     {"spec": {"source": {"persistentVolumeClaimName": "p"}}}, ["spec", "spec.source"]),
    ("coordination.k8s.io/v1", "Lease", "/apis/coordination.k8s.io/v1/namespaces/default/leases",
     {"spec": {"holderIdentity": "h"}}, ["", "spec"]),
    ("rbac.authorization.k8s.io/v1", "Role",
     "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles", {"rules": [RULE]},
     ["", "rules.0"]),
    ("rbac.authorization.k8s.io/v1", "RoleBinding",
     "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
     {"subjects": [SUBJECT], "roleRef": ROLE}, ["", "subjects.0", "roleRef"]),
    ("policy/v1", "PodDisruptionBudget", "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
     {"spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}},
     ["spec", "spec.selector"]),
    ("scheduling.k8s.io/v1", "PriorityClass", "/apis/scheduling.k8s.io/v1/priorityclasses",
     {"value": 1}, [""]),
    ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration",
     "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", {"webhooks": [HOOK]},
     ["", "webhooks.0", "webhooks.0.clientConfig"]),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition",
     "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
     {"metadata": {"name": "xs.a.test"}, "spec": {
         "group": "a.test", "scope": "Cluster", "names": {"plural": "xs", "kind": "X"},
         "versions": [{"name": "v1", "served": True, "storage": True, "schema": {
             "openAPIV3Schema": {"type": "object"}}}]}},
     ["", "spec", "spec.names", "spec.versions.0", "spec.versions.0.schema"]),
    ("openebs.io/v1alpha1", "JivaVolume", "/apis/openebs.io/v1alpha1/namespaces/default/jivavolumes",
     {"spec": {"capacity": "1Gi"}}, ["", "spec"]),
]


def at(value, place, make=False):
    """What is at a dotted path; with make, objects that are missing on the way are added."""
    for key in place.split(".") if place else []:
        if make and isinstance(value, dict):
            value = value.setdefault(key, {})
        elif isinstance(value, list):
            value = value[int(key)] if int(key) < len(value) else {}
        else:
            value = value.get(key, {})
    return value


def shown(place):
    """The path as messages have it: spec.ports[0].madeUp"""
    text = ""
    for key in [*(place.split(".") if place else []), "madeUp"]:
        text += f"[{key}]" if key.isdigit() else f".{key}" if text else key
    return text


def header(text):
    return '299 - "' + text.replace('"', '\\"') + '"'


def unknown(server):
    for version, kind, path, rest, places in KINDS:
        base = {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, **rest}
        status, reply = server.ask("POST", f"{path}?dryRun=All&fieldValidation=Strict", base)
        tap.equal(status, 201, f"a right {kind}, strictly: {reply if status != 201 else ''}")
        strict, warned, ignored = [], [], []
        for place in places:
            wrong = copy.deepcopy(base)
            at(wrong, place, make=True)["madeUp"] = {"a": 1}
            query = f"{path}?dryRun=All&fieldValidation="
            status, reply = server.ask("POST", query + "Strict", wrong)
            strict.append((status, reply.get("reason"), reply.get("message")) == (
                400, "BadRequest", f'{kind} in version "{version.split("/")[-1]}" cannot be handled '
                f'as a {kind}: strict decoding error: unknown field "{shown(place)}"') or reply)
            status, reply, warnings = server.send("POST", query + "Warn", wrong)
            said = header(f'unknown field "{shown(place)}"') in warnings
            warned.append((status, said, "madeUp" in at(reply, place)) == (201, True, False)
                          or (reply, warnings))
            status, reply, warnings = server.send("POST", query + "Ignore", wrong)
            ignored.append((status, [w for w in warnings if "madeUp" in w],
                            "madeUp" in at(reply, place)) == (201, [], False) or (reply, warnings))
        for name, results in (("refused", strict), ("warned of", warned), ("ignored", ignored)):
            tap.equal([r for r in results if r is not True], [],
                      f"{kind}: unknown fields at {len(places)} places are {name}")


def writes(server):
    """Updates and patches are checked as they leave the object."""
    path = f"{CORE}/configmaps"
    made = server.create(path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "w"}})
    strict = 'unknown field "madeUp"'
    for method, body, content in (
            ("PUT", {**made, "madeUp": 1}, "application/json"),
            ("PATCH", {"madeUp": 1}, "application/merge-patch+json"),
            ("PATCH", {"madeUp": 1}, "application/strategic-merge-patch+json"),
            ("PATCH", [{"op": "add", "path": "/madeUp", "value": 1}], "application/json-patch+json")):
        status, reply = server.ask(method, f"{path}/w?fieldValidation=Strict", body,
                                   content_type=content)
        tap.ok(status == 400 and strict in reply["message"], f"{method} {content}, strictly", reply)
        status, reply, warnings = server.send(method, f"{path}/w", body, content_type=content)
        tap.equal((status, "madeUp" in reply, warnings), (200, False, [header(strict)]),
                  f"{method} {content} warns")
    status, reply = server.ask("PATCH", f"{path}/w?fieldManager=m&fieldValidation=Strict",
                               {"apiVersion": "v1", "kind": "ConfigMap", "madeUp": 1},
                               content_type="application/apply-patch+yaml")
    tap.ok(status in (400, 500) and "madeUp" in reply["message"], "apply", reply)
    tap.equal(server.get(f"{path}/w")[1]["metadata"]["resourceVersion"],
              made["metadata"]["resourceVersion"], "nothing has changed")


def twice(server):
    path = f"{CORE}/configmaps"
    body = ('{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "t", "labels": '
            '{"a": "1", "a": "2"}}, "data": {"x": "1"}, "data": {"y": "2"}}')
    names = ["metadata.labels.a", "data"]
    status, reply = server.ask("POST", f"{path}?fieldValidation=Strict", body)
    tap.equal((status, reply["reason"], reply["message"]), (
        400, "BadRequest", 'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict '
        'decoding error: duplicate field "metadata.labels.a", duplicate field "data"'),
              "fields that are there twice are refused")
    for query, expected in (("", names), ("&fieldValidation=Warn", names),
                            ("&fieldValidation=Ignore", [])):
        status, reply, warnings = server.send("POST", f"{path}?dryRun=All{query}", body)
        tap.equal((status, reply.get("data"), reply["metadata"].get("labels"), warnings),
                  (201, {"y": "2"}, {"a": "2"}, [header(f'duplicate field "{n}"') for n in expected]),
                  f"or the last one counts{query}")
    server.ask("POST", f"{path}?fieldValidation=Ignore", body)
    patch = '{"data": {"z": "1", "z": "3"}}'
    status, reply = server.ask("PATCH", f"{path}/t?fieldValidation=Strict", patch,
                               content_type="application/merge-patch+json")
    tap.ok(status == 400 and 'duplicate field "data.z"' in reply["message"], "in a patch", reply)
    status, reply, warnings = server.send("PATCH", f"{path}/t", patch,
                                          content_type="application/merge-patch+json")
    tap.equal((status, reply["data"], warnings), (200, {"y": "2", "z": "3"},
                                                  [header('duplicate field "data.z"')]),
              "or a warning")
    status, reply = server.ask("POST", path, '{"a": 1, "a": ')
    tap.ok(status == 400 and "no JSON" in reply["message"], "what is no JSON is none", reply)


def kubectl(server):
    manifest = json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "k"}, "spec": {
        "containers": [{**CONTAINER, "imagePullPolic": "Always"}]}})
    words = 'unknown field "spec.containers[0].imagePullPolic"'
    tap.ran(server.kubectl("create", "-f", "-", stdin=manifest), "kubectl is strict by default", 1,
            stderr=words)
    tap.ran(server.kubectl("create", "--validate=warn", "-f", "-", stdin=manifest),
            "kubectl --validate=warn", stdout="created", stderr=f"Warning: {words}")
    tap.ran(server.kubectl("get", "pod", "k", "-o", "jsonpath={.spec.containers[0].imagePullPolic}"),
            "it is not there", stdout="")
    tap.ran(server.kubectl("delete", "pod", "k"), "delete it")
    result = tap.ran(server.kubectl("create", "--validate=ignore", "-f", "-", stdin=manifest),
                     "kubectl --validate=ignore", stdout="created")
    tap.equal(result.stderr, "", "says nothing")


with Scratch() as scratch:
    with Server(program, scratch.file("data")) as server:
        unknown(server)
        writes(server)
        twice(server)
        kubectl(server)
tap.done()
