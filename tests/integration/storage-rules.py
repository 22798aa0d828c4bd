#!/usr/bin/env python3
"""Quotas, limits, claims, classes and the claim templates of StatefulSets.

storage-rules.py APISERVER
"""
import concurrent.futures
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from life import (APPS, CORE, Life, claim, config, namespace, plural, storage_class,  # noqa: E402
                  tap, until, workload)
from server import Server  # noqa: E402
from tap import Scratch  # noqa: E402

program = sys.argv[1]


class Storage(Life):
    # Quotas

    def quotas(self):
        server = self.server
        server.create(f"{CORE}/namespaces", namespace("quota"))
        claims = plural("persistentvolumeclaims", "quota")
        quotas = plural("resourcequotas", "quota")
        server.create("/apis/storage.k8s.io/v1/storageclasses", storage_class("gold", True))
        server.create(quotas, {
            "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "disk"},
            "spec": {"hard": {
                "requests.storage": "10Gi", "persistentvolumeclaims": "5",
                "gold.storageclass.storage.k8s.io/requests.storage": "4Gi",
                "count/configmaps": "3", "count/deployments.apps": "1", "requests.cpu": "7"}}})
        server.create(quotas, {
            "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "scoped"},
            "spec": {"hard": {"count/persistentvolumeclaims": "0"}, "scopes": ["Terminating"]}})
        server.create(claims, claim("a", "6Gi", storageClassName=""))
        self.refused("a claim that does not fit", server.ask(
            "POST", claims, claim("b", "5Gi", storageClassName="")), 403,
                     'persistentvolumeclaims "b" is forbidden: exceeded quota: disk, requested: '
                     'requests.storage=5Gi, used: requests.storage=6Gi, limited: '
                     'requests.storage=10Gi', "Forbidden")
        self.expect("kubectl says so", ["create", "-n", "quota", "-f", "-"], status=1,
                    stderr="exceeded quota: disk, requested: requests.storage=5Gi",
                    stdin=json.dumps(claim("b", "5Gi", storageClassName="")))
        tap.equal(server.ask("POST", claims + "?dryRun=All",
                             claim("b", "4Gi", storageClassName=""))[0], 201, "a dry run that fits")
        gold = server.create(claims, claim("g", "3Gi", storageClassName="gold"))
        self.refused("the quota of a class", server.ask(
            "POST", claims, claim("h", "2Gi", storageClassName="gold")), 403,
                     "requested: gold.storageclass.storage.k8s.io/requests.storage=2Gi,"
                     "requests.storage=2Gi, used: gold.storageclass.storage.k8s.io/"
                     "requests.storage=3Gi,requests.storage=9Gi, limited: "
                     "gold.storageclass.storage.k8s.io/requests.storage=4Gi,requests.storage=10Gi")
        gold["status"] = {"phase": "Bound", "capacity": {"storage": "3Gi"}}
        tap.equal(server.ask("PUT", f"{claims}/g/status", gold)[0], 200, "it is bound")
        self.refused("growth counts", server.ask(
            "PATCH", f"{claims}/g", {"spec": {"resources": {"requests": {"storage": "6Gi"}}}},
            "application/merge-patch+json"), 403,
                     "exceeded quota: disk, requested: gold.storageclass.storage.k8s.io/"
                     "requests.storage=3Gi,requests.storage=3Gi")
        tap.equal(server.ask("PATCH", f"{claims}/g",
                             {"spec": {"resources": {"requests": {"storage": "4Gi"}}}},
                             "application/merge-patch+json")[0], 200, "growth that fits")
        maps = plural("configmaps", "quota")
        until("the namespace has what every one has",
              lambda: not self.is_gone(f"{maps}/kube-root-ca.crt"))
        for name in ("one", "two"):
            server.create(maps, config(name))
        self.refused("counts of any kind", server.ask("POST", maps, config("three")), 403,
                     "exceeded quota: disk, requested: count/configmaps=1, used: "
                     "count/configmaps=3, limited: count/configmaps=3")
        deployments = f"{APPS}/namespaces/quota/deployments"
        server.create(deployments, workload("Deployment", "d"))
        self.refused("counts of a group", server.ask("POST", deployments,
                                                     workload("Deployment", "e")), 403,
                     "count/deployments.apps=1")

        def used():
            return server.get(f"{quotas}/disk")[1].get("status", {}).get("used")

        until("the status says what is used", lambda: used() == {
            "requests.storage": "10Gi", "persistentvolumeclaims": "2",
            "gold.storageclass.storage.k8s.io/requests.storage": "4Gi", "count/configmaps": "3",
            "count/deployments.apps": "1"})
        self.expect("kubectl describes it", ["describe", "quota", "disk", "-n", "quota"],
                    stdout="requests.storage")
        server.ask("DELETE", f"{claims}/a")
        until("what is deleted is free", lambda: (used() or {}).get("requests.storage") == "4Gi")
        tap.equal(server.ask("POST", claims, claim("b", "5Gi", storageClassName=""))[0], 201,
                  "and can be used again")
        server.create("/apis/openebs.io/v1alpha1/namespaces/quota/jivavolumes",
                      {"apiVersion": "openebs.io/v1alpha1", "kind": "JivaVolume",
                       "metadata": {"name": "j"}, "spec": {"capacity": "50Gi"}})
        tap.ok(True, "volumes of ours are not claims")

        server.create(plural("limitranges", "quota"), {
            "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "sizes"},
            "spec": {"limits": [{"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"},
                                 "max": {"storage": "2Gi"}}]}})
        for size, message in (("500Mi", "minimum storage usage per PersistentVolumeClaim is 1Gi, "
                                        "but request is 500Mi"),
                              ("3Gi", "maximum storage usage per PersistentVolumeClaim is 2Gi, "
                                      "but request is 3Gi")):
            self.refused(f"a limit range refuses {size}", server.ask(
                "POST", claims, claim("l", size, storageClassName="")), 403, message, "Forbidden")

    def quota_race(self):
        """Many create and grow at once; the quota holds exactly."""
        server = self.server
        for number in range(4):
            name = f"race{number}"
            server.create(f"{CORE}/namespaces", namespace(name))
            server.create(plural("resourcequotas", name), {
                "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"},
                "spec": {"hard": {"requests.storage": "10Gi"}}})
            claims = plural("persistentvolumeclaims", name)

            def create(n, claims=claims):
                return server.ask("POST", claims, claim(f"c{n}", "1Gi", storageClassName="gold"))[0]

            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                codes = list(pool.map(create, range(40)))
            tap.equal((codes.count(201), codes.count(403), len(self.names(claims))), (10, 30, 10),
                      f"{name}: of forty that come at once exactly ten get in")
            for each in self.names(claims)[2:]:
                server.ask("DELETE", f"{claims}/{each}")
            until(f"{name}: eight go", lambda claims=claims: len(self.names(claims)) == 2)
            for each in self.names(claims):
                server.ask("PATCH", f"{claims}/{each}/status", {"status": {
                    "phase": "Bound", "capacity": {"storage": "1Gi"}}},
                           "application/merge-patch+json")

            def grow(n, claims=claims):
                target = self.names(claims)[n % 2]
                return server.ask(
                    "PATCH", f"{claims}/{target}",
                    {"spec": {"resources": {"requests": {"storage": f"{2 + n}Gi"}}}},
                    "application/merge-patch+json")[0]

            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                list(pool.map(grow, range(8)))
            sizes = [int(item["spec"]["resources"]["requests"]["storage"][:-2])
                     for item in server.get(claims)[1]["items"]]
            tap.ok(2 < sum(sizes) <= 10, f"{name}: growth at once stays within it", sizes)

    # Claims, classes and StatefulSets

    def claims(self):
        server = self.server
        classes = "/apis/storage.k8s.io/v1/storageclasses"
        claims = plural("persistentvolumeclaims")
        before = server.create(claims, claim("early"))
        tap.equal(before["spec"].get("storageClassName"), None, "without a default class")
        server.create(classes, storage_class("fixed", False))
        server.create(classes, storage_class("usual", True, default=True))
        made = server.create(claims, claim("c"))
        tap.equal(made["spec"]["storageClassName"], "usual", "the default class is filled in")
        tap.equal(server.create(claims, claim("none", storageClassName=""))["spec"]
                  ["storageClassName"], "", "not where none is wanted")
        tap.equal(made["metadata"]["finalizers"], ["kubernetes.io/pvc-protection"],
                  "claims are protected")

        def resize(name, size):
            return server.ask("PATCH", f"{claims}/{name}",
                              {"spec": {"resources": {"requests": {"storage": size}}}},
                              "application/merge-patch+json")

        def bind(name, size):
            status, reply = server.ask("PATCH", f"{claims}/{name}/status", {"status": {
                "phase": "Bound", "capacity": {"storage": size}}}, "application/merge-patch+json")
            if status != 200:
                raise AssertionError(f"{status} {reply}")

        self.refused("a claim that is not bound does not grow", resize("c", "2Gi"), 422,
                     "spec: Forbidden: spec is immutable after creation except resources.requests "
                     "and volumeAttributesClassName for bound claims", "Invalid")
        tap.equal(resize("c", "1024Mi")[0], 200, "the same size in other words")
        status, reply = server.ask("PATCH", f"{claims}/c", {"spec": {"volumeName": "pv1"}},
                                   "application/merge-patch+json")
        tap.equal(status, 200, "the volume is set once")
        self.refused("not twice", server.ask("PATCH", f"{claims}/c",
                                             {"spec": {"volumeName": "pv2"}},
                                             "application/merge-patch+json"), 422, "immutable")
        bind("c", "1Gi")
        tap.equal(resize("c", "5Gi")[0], 200, "a bound claim grows")
        tap.equal(resize("c", "3Gi")[0], 200, "a growth can be taken back in part")
        self.refused("not to what there is", resize("c", "1Gi"), 422,
                     "spec.resources.requests.storage: Forbidden: field can not be less than "
                     "status.capacity")
        self.refused("nor below", resize("c", "500Mi"), 422, "status.capacity")
        self.refused("nothing else changes", server.ask(
            "PATCH", f"{claims}/c", {"spec": {"accessModes": ["ReadWriteMany"]}},
            "application/merge-patch+json"), 422, "spec is immutable")
        server.create(claims, claim("f", storageClassName="fixed"))
        bind("f", "1Gi")
        self.refused("a class that does not grow", resize("f", "2Gi"), 403,
                     'persistentvolumeclaims "f" is forbidden: only dynamically provisioned pvc '
                     'can be resized and the storageclass that provisions the pvc must support '
                     'resize', "Forbidden")
        bind("none", "1Gi")
        self.refused("no class at all", resize("none", "2Gi"), 403, "only dynamically provisioned")

        for member, value in (("parameters", {"a": "c"}), ("provisioner", "other.test"),
                              ("reclaimPolicy", "Retain")):
            self.refused(f"{member} of a class stays", server.ask(
                "PATCH", f"{classes}/usual", {member: value}, "application/merge-patch+json"), 422,
                         f"{member}: Forbidden: updates to {member} are forbidden.", "Invalid")
        tap.equal(server.ask("PATCH", f"{classes}/usual", {"allowVolumeExpansion": False},
                             "application/merge-patch+json")[0], 200, "growth can be switched off")
        self.refused("then claims stay", resize("c", "9Gi"), 403, "only dynamically provisioned")
        server.ask("PATCH", f"{classes}/usual", {"allowVolumeExpansion": True},
                   "application/merge-patch+json")

        volumes = f"{CORE}/persistentvolumes"
        volume = server.create(volumes, {
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv1"},
            "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                     "csi": {"driver": "csi.example.test", "volumeHandle": "h"}}})
        tap.equal(volume["metadata"]["finalizers"], ["kubernetes.io/pv-protection"],
                  "volumes are protected")
        server.ask("PUT", f"{volumes}/pv1/status", {**volume, "status": {"phase": "Bound"}})
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "user"},
               "spec": {"nodeName": "n1", "containers": [{"name": "m", "image": "i"}],
                        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}}
        server.create(plural("pods"), pod)
        server.ask("DELETE", f"{volumes}/pv1")
        server.ask("DELETE", f"{claims}/c")
        server.ask("DELETE", f"{claims}/none")
        until("a claim that nobody uses goes", lambda: self.is_gone(f"{claims}/none"))
        tap.equal([server.get(p)[0] for p in (f"{claims}/c", f"{volumes}/pv1")], [200, 200],
                  "what is used stays")
        server.ask("DELETE", plural("pods", "default", "user"))
        tap.equal(server.get(f"{claims}/c")[0], 200, "also by a pod that is ending")
        server.ask("DELETE", plural("pods", "default", "user"), {"gracePeriodSeconds": 0})
        until("and goes when it is not", lambda: self.is_gone(f"{claims}/c"))
        current = server.get(f"{volumes}/pv1")[1]
        server.ask("PUT", f"{volumes}/pv1/status", {**current, "status": {"phase": "Released"}})
        until("the volume too", lambda: self.is_gone(f"{volumes}/pv1"))

    def sets(self, gate):
        server = self.server
        sets = f"{APPS}/namespaces/default/statefulsets"
        server.create(sets, workload("StatefulSet", "db", serviceName="db", volumeClaimTemplates=[
            {"metadata": {"name": "a"}, "spec": claim("a", "2Gi", storageClassName="fixed")["spec"]},
            {"metadata": {"name": "b"}, "spec": claim("b", "2Gi")["spec"]}]))

        def change(edit):
            value = server.get(f"{sets}/db")[1]
            edit(value["spec"])
            return server.ask("PUT", f"{sets}/db", value)

        def size(template, text):
            def edit(spec):
                requests = spec["volumeClaimTemplates"][template]["spec"]["resources"]["requests"]
                requests["storage"] = text
            return edit

        fixed = ("spec: Forbidden: updates to statefulset spec for fields other than 'replicas', "
                 "'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', "
                 "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden")
        if not gate:
            self.refused("with the gate off sizes stay", change(size(1, "3Gi")), 422, fixed,
                         "Invalid")
            tap.equal(change(lambda spec: spec.update(replicas=2))[0], 200, "the rest changes")
            server.ask("DELETE", f"{sets}/db")
            return
        tap.equal(change(size(1, "5Gi"))[0], 200, "a template grows with the default class")
        tap.equal(change(size(1, "3Gi"))[0], 200, "and shrinks")
        tap.equal(change(size(0, "2048Mi"))[0], 200, "the same in other words")
        self.refused("not where the class does not allow it", change(size(0, "3Gi")), 422,
                     'spec.volumeClaimTemplates[0].spec.resources.requests.storage: Forbidden: the '
                     'size can change only where the storage class allows it; the class "fixed" '
                     'has no allowVolumeExpansion: true', "Invalid")

        def access_modes(spec):
            spec["volumeClaimTemplates"][1]["spec"]["accessModes"] = ["ReadWriteMany"]

        def storage_class_name(spec):
            spec["volumeClaimTemplates"][1]["spec"]["storageClassName"] = "fixed"

        for name, edit in (
                ("serviceName", lambda spec: spec.update(serviceName="other")),
                ("podManagementPolicy", lambda spec: spec.update(podManagementPolicy="Parallel")),
                ("a template's modes", access_modes), ("a template's class", storage_class_name),
                ("a template less", lambda spec: spec["volumeClaimTemplates"].pop())):
            self.refused(f"{name} stays", change(edit), 422, fixed, "Invalid")
        for name, edit in (
                ("replicas", lambda spec: spec.update(replicas=3)),
                ("ordinals", lambda spec: spec.update(ordinals={"start": 1})),
                ("template", lambda spec: spec["template"]["spec"]["containers"][0].update(
                    image="example.test/a:2")),
                ("updateStrategy", lambda spec: spec.update(updateStrategy={"type": "OnDelete"})),
                ("minReadySeconds", lambda spec: spec.update(minReadySeconds=5)),
                ("revisionHistoryLimit", lambda spec: spec.update(revisionHistoryLimit=3)),
                ("retention", lambda spec: spec.update(persistentVolumeClaimRetentionPolicy={
                    "whenDeleted": "Delete", "whenScaled": "Retain"}))):
            status, reply = change(edit)
            tap.ok(status == 200, f"{name} changes", reply)
        self.expect("kubectl patches a size", [
            "patch", "sts", "db", "--type=json", "-p", json.dumps([{
                "op": "replace", "value": "8Gi",
                "path": "/spec/volumeClaimTemplates/1/spec/resources/requests/storage"}])],
                    stdout="patched")


with Scratch() as scratch:
    with Server(program, scratch.file("data")) as server:
        storage = Storage(server)
        storage.quotas()
        storage.quota_race()
        storage.claims()
        storage.sets(gate=True)
        server.ask("DELETE", f"{APPS}/namespaces/default/statefulsets/db")
    tap.equal(server.status, 0, "it stops when told")
    with Server(program, scratch.file("data"), "--feature-gates",
                "StatefulSetVolumeExpansion=false") as server:
        Storage(server).sets(gate=False)
tap.done()
