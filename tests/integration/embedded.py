#!/usr/bin/env python3
"""What a cluster would bring, beside the embedded API server: Deployments roll out, pods get nodes and
lose them, services have endpoints; and the controller is killed at any time.

embedded.py APISERVER TOP ORLOP CONTROLLER
"""
import json
import os
import random
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from cluster import Controller, Nodes  # noqa: E402
from server import Server  # noqa: E402
from tap import Scratch, Tap, wait_for  # noqa: E402

program, controller_program = sys.argv[1], sys.argv[4]
tap = Tap()
NS = "/apis/apps/v1/namespaces/default"
PODS = "/api/v1/namespaces/default/pods"


def template(app, **spec):
    return {"metadata": {"labels": {"app": app}},
            "spec": {"containers": [{"name": "c", "image": "one", **spec.pop("container", {})}],
                     **spec}}


def workload(kind, name, replicas=None, pods=None, **spec):
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": {
        **({} if replicas is None else {"replicas": replicas}),
        "selector": {"matchLabels": {"app": name}}, "template": template(name, **(pods or {})),
        **spec}}


with Scratch() as scratch, open(scratch.file("log"), "a+", encoding="utf-8") as log, \
        Server(program, scratch.file("data"), log=log) as server, \
        Nodes(server, "n1", "n2", "n3") as nodes:
    def items(path, app):
        return server.get(f"{path}?labelSelector=app={app}")[1]["items"]

    def pods(app):
        return [p for p in items(PODS, app) if "deletionTimestamp" not in p["metadata"]]

    def are_ready(app, n):
        found = pods(app)
        return len(found) == n and all(
            any(c["type"] == "Ready" and c["status"] == "True"
                for c in p.get("status", {}).get("conditions", [])) for p in found)

    def ready(app, n):
        return wait_for(lambda: are_ready(app, n), 60)

    def deployment(name):
        return server.get(f"{NS}/deployments/{name}")[1]

    def settled(name):
        """When it says of its present generation that all is well."""
        def check():
            d = deployment(name)
            status, wanted = d.get("status", {}), d["spec"]["replicas"]
            return status.get("observedGeneration") == d["metadata"]["generation"] and all(
                status.get(key, 0) == wanted
                for key in ("replicas", "updatedReplicas", "availableReplicas")) and d
        return wait_for(check, 60)

    def events(reason, name):
        return [e["message"] for e in server.get(
            "/api/v1/namespaces/default/events")[1]["items"]
            if e["reason"] == reason and e["involvedObject"]["name"].startswith(name)]

    def rollout(*argv):
        return server.kubectl("rollout", *argv)

    with Controller(controller_program, server, "--node-monitor-grace-period", "5s", log=log):
        # ReplicaSets.
        server.create(f"{NS}/replicasets", workload("ReplicaSet", "rs", 3))
        tap.ok(ready("rs", 3), "a ReplicaSet makes pods", pods("rs"))
        owner = pods("rs")[0]["metadata"]["ownerReferences"]
        tap.ok(len(owner) == 1 and owner[0]["kind"] == "ReplicaSet" and owner[0]["controller"],
               "it owns them", owner)
        tap.equal(sorted(p["spec"]["nodeName"] for p in pods("rs")), ["n1", "n2", "n3"],
                  "they are spread over nodes")
        tap.ok(wait_for(lambda: server.get(f"{NS}/replicasets/rs")[1]["status"].get(
            "availableReplicas") == 3), "it counts them")
        victim = pods("rs")[0]["metadata"]["name"]
        server.ask("DELETE", f"{PODS}/{victim}")
        tap.ok(wait_for(lambda: len(pods("rs")) == 3 and victim not in [
            p["metadata"]["name"] for p in pods("rs")]), "one that is gone is replaced")
        server.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": {
            "name": "stray", "labels": {"app": "rs"}}, "spec": template("rs")["spec"]})
        tap.ok(wait_for(lambda: len(pods("rs")) == 3 and all(
            p["metadata"].get("ownerReferences") for p in pods("rs"))), "a stray is taken in, and one goes")
        away = pods("rs")[0]["metadata"]["name"]
        server.kubectl("label", "pod", away, "app=other", "--overwrite")
        tap.ok(wait_for(lambda: len(pods("rs")) == 3), "one that is relabelled is replaced")
        tap.ok(wait_for(lambda: "ownerReferences" not in server.get(f"{PODS}/{away}")[1]["metadata"]),
               "and is nobody's")
        nodes.is_broken = lambda pod: pod["metadata"]["name"] == pods("rs")[1]["metadata"]["name"]
        broken = pods("rs")[1]["metadata"]["name"]
        nodes.is_broken = lambda pod: pod["metadata"]["name"] == broken
        wait_for(lambda: server.get(f"{NS}/replicasets/rs")[1]["status"].get("readyReplicas") == 2)
        server.kubectl("scale", "rs", "rs", "--replicas", "2")
        tap.ok(wait_for(lambda: len(pods("rs")) == 2) and broken not in [
            p["metadata"]["name"] for p in pods("rs")], "what is not ready goes first")
        nodes.is_broken = lambda pod: False
        server.kubectl("delete", "rs", "rs")
        tap.ok(wait_for(lambda: not pods("rs")), "they go with it")

        # Deployments.
        server.create(f"{NS}/deployments", workload("Deployment", "web", 4))
        tap.ran(rollout("status", "deployment/web", "--timeout", "60s"), "a Deployment rolls out",
                stdout='deployment "web" successfully rolled out')
        d = settled("web")
        tap.equal({c["type"]: (c["status"], c["reason"]) for c in d["status"]["conditions"]},
                  {"Available": ("True", "MinimumReplicasAvailable"),
                   "Progressing": ("True", "NewReplicaSetAvailable")}, "it says so")
        tap.equal(d["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "1", "revision 1")
        first = items(f"{NS}/replicasets", "web")[0]
        tap.ok(first["metadata"]["name"] == "web-" + first["metadata"]["labels"]["pod-template-hash"]
               and first["spec"]["selector"]["matchLabels"]["pod-template-hash"]
               == first["metadata"]["labels"]["pod-template-hash"], "its set has a hash", first)

        # A roll-out keeps its bounds.
        seen, watching = {"most": 0, "least": 99}, threading.Event()

        def watch():
            while not watching.is_set():
                found = pods("web")
                seen["most"] = max(seen["most"], len(found))
                seen["least"] = min(seen["least"], sum(
                    any(c["type"] == "Ready" and c["status"] == "True"
                        for c in p.get("status", {}).get("conditions", [])) for p in found))
        thread = threading.Thread(target=watch)
        thread.start()
        server.kubectl("set", "image", "deployment/web", "c=two")
        tap.ran(rollout("status", "deployment/web", "--timeout", "60s"), "another image rolls out",
                stdout="successfully rolled out")
        watching.set()
        thread.join()
        tap.equal({p["spec"]["containers"][0]["image"] for p in pods("web")}, {"two"}, "all have it")
        tap.ok(seen["most"] <= 5 and seen["least"] >= 3, "never more than 5, 3 always ready", seen)
        server.kubectl("annotate", "deployment/web", "kubernetes.io/change-cause=second")
        tap.ok(wait_for(lambda: "second" in rollout("history", "deployment/web").stdout),
               "kubectl rollout history", rollout("history", "deployment/web").stdout)
        tap.ran(rollout("undo", "deployment/web"), "kubectl rollout undo", stdout="rolled back")
        tap.ran(rollout("status", "deployment/web", "--timeout", "60s"), "goes back")
        tap.equal({p["spec"]["containers"][0]["image"] for p in pods("web")}, {"one"}, "to the first")
        tap.equal(sorted(line.split()[0] for line in rollout(
            "history", "deployment/web").stdout.splitlines()[2:] if line), ["2", "3"],
            "whose revision is the last")
        before = {p["metadata"]["uid"] for p in pods("web")}
        tap.ran(rollout("restart", "deployment/web"), "kubectl rollout restart", stdout="restarted")
        tap.ran(rollout("status", "deployment/web", "--timeout", "60s"), "makes them all anew")
        tap.ok(not before & {p["metadata"]["uid"] for p in pods("web")}, "every one of them")
        server.kubectl("scale", "deployment/web", "--replicas", "7")
        tap.ok(ready("web", 7) and settled("web"), "scaled up")
        server.kubectl("scale", "deployment/web", "--replicas", "1")
        tap.ok(ready("web", 1) and settled("web"), "scaled down")
        server.ask("PATCH", f"{NS}/deployments/web", {"spec": {"revisionHistoryLimit": 1}},
                   content_type="application/merge-patch+json")
        tap.ok(wait_for(lambda: len(items(f"{NS}/replicasets", "web")) == 2), "old sets are few",
               [s["metadata"]["name"] for s in items(f"{NS}/replicasets", "web")])

        # Paused.
        rollout("pause", "deployment/web")
        server.kubectl("set", "image", "deployment/web", "c=three")
        tap.ok(wait_for(lambda: any(c["reason"] == "DeploymentPaused" for c in deployment(
            "web")["status"]["conditions"])), "paused")
        server.kubectl("scale", "deployment/web", "--replicas", "2")
        tap.ok(ready("web", 2), "it can be scaled meanwhile")
        tap.equal({p["spec"]["containers"][0]["image"] for p in pods("web")}, {"one"},
                  "and nothing else")
        rollout("resume", "deployment/web")
        tap.ok(settled("web") and {p["spec"]["containers"][0]["image"] for p in pods("web")}
               == {"three"}, "resumed", pods("web"))

        # What never gets ready.
        nodes.is_broken = lambda pod: pod["spec"]["containers"][0]["image"] == "bad"
        server.ask("PATCH", f"{NS}/deployments/web", {"spec": {
            "progressDeadlineSeconds": 3, "minReadySeconds": 0}},
            content_type="application/merge-patch+json")
        server.kubectl("set", "image", "deployment/web", "c=bad")
        result = rollout("status", "deployment/web", "--timeout", "60s")
        tap.ok(result.returncode == 1 and "exceeded its progress deadline" in result.stderr,
               "a roll-out that stands still", result.stdout + result.stderr)
        tap.ok(sum(p["spec"]["containers"][0]["image"] == "three" for p in pods("web")) == 2,
               "leaves what was there", pods("web"))
        rollout("undo", "deployment/web")
        tap.ran(rollout("status", "deployment/web", "--timeout", "60s"), "and can be undone")
        nodes.is_broken = lambda pod: False

        # Recreate.
        server.create(f"{NS}/deployments", workload(
            "Deployment", "again", 2, strategy={"type": "Recreate"}))
        tap.ok(settled("again"), "with Recreate")
        mixed, watching = [], threading.Event()

        def watch_images():
            while not watching.is_set():
                images = {p["spec"]["containers"][0]["image"] for p in items(PODS, "again")}
                if len(images) > 1:
                    mixed.append(images)
        thread = threading.Thread(target=watch_images)
        thread.start()
        server.kubectl("set", "image", "deployment/again", "c=two")
        tap.ok(settled("again") and {p["spec"]["containers"][0]["image"] for p in pods("again")}
               == {"two"}, "all are replaced")
        watching.set()
        thread.join()
        tap.equal(mixed, [], "and the old ones are gone before")
        server.kubectl("delete", "deployment", "again")
        tap.ok(wait_for(lambda: not pods("again") and not items(f"{NS}/replicasets", "again")),
               "everything goes with a Deployment")

        # minReadySeconds.
        server.create(f"{NS}/deployments", workload("Deployment", "slow", 1, minReadySeconds=3))
        ready("slow", 1)
        begun = time.monotonic()
        tap.equal(deployment("slow")["status"].get("availableReplicas", 0), 0,
                  "ready is not available at once")
        tap.ok(settled("slow") and time.monotonic() - begun > 1, "but after a time")
        server.kubectl("delete", "deployment", "slow")

        # The scheduler.
        def pod(name, labels=None, **spec):
            return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels or {}},
                    "spec": template("x", **spec)["spec"]}

        def placed(name):
            return wait_for(lambda: server.get(f"{PODS}/{name}")[1]["spec"].get("nodeName"), 20)

        def unschedulable(name):
            def check():
                status, found = server.get(f"{PODS}/{name}")
                return status == 200 and [c["message"] for c in found.get("status", {}).get(
                    "conditions", []) if c.get("reason") == "Unschedulable"]
            return (wait_for(check, 20) or [""])[0]

        def waits(name, message, what):
            """Says so in the end: what the scheduler learned last may come a moment later."""
            wait_for(lambda: unschedulable(name) == message)
            tap.equal(unschedulable(name), message, what)

        def refused(name, node):
            """True: a pod for that node was not placed. It is gone again."""
            server.create(PODS, pod(name, nodeSelector={"kubernetes.io/hostname": node}))
            wait_for(lambda: server.get(f"{PODS}/{name}")[1]["spec"].get("nodeName") or unschedulable(name))
            found = server.get(f"{PODS}/{name}")[1]["spec"].get("nodeName")
            server.kubectl("delete", "pod", name, "--force", "--grace-period=0")
            return not found

        server.create(PODS, pod("big", container={"resources": {"requests": {"cpu": "100"}}}))
        waits("big", "0/3 nodes are available: 3 Insufficient cpu.", "too big")
        tap.ok(wait_for(lambda: events("FailedScheduling", "big")), "there is an event")
        server.create(PODS, pod("picky", nodeSelector={"disk": "fast"}))
        waits("picky",
              "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.", "no such node")
        server.kubectl("label", "node", "n2", "disk=fast")
        tap.equal(placed("picky"), "n2", "until there is one")
        tap.ok(wait_for(lambda: events("Scheduled", "picky")), "there is an event for that, too")
        server.kubectl("taint", "node", "n1", "dedicated=db:NoSchedule")
        server.kubectl("cordon", "n3")
        for node in ("n1", "n3"):  # the scheduler knows of it when it refuses somebody
            canaries = (f"canary-{node}-{i}" for i in range(50))
            tap.ok(wait_for(lambda node=node, canaries=canaries: refused(next(canaries), node)), f"{node} is closed")
        server.create(PODS, pod("careful", container={"resources": {"requests": {"cpu": "3500m"}}}))
        tap.equal(placed("careful"), "n2", "taints and cordons keep pods away")
        server.create(PODS, pod("late", container={"resources": {"requests": {"cpu": "3500m"}}}))
        waits("late",
              "0/3 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint "
              "{dedicated: db}, 1 node(s) were unschedulable.", "each for its reason")
        server.ask("DELETE", f"{PODS}/careful")
        tap.equal(placed("late"), "n2", "room that is given back is used")
        server.kubectl("taint", "node", "n1", "dedicated-")
        server.kubectl("uncordon", "n3")
        anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{
            "labelSelector": {"matchLabels": {"app": "apart"}},
            "topologyKey": "kubernetes.io/hostname"}]}}
        server.create(f"{NS}/deployments", workload("Deployment", "apart", 4, {"affinity": anti}))
        wait_for(lambda: sum("nodeName" in p["spec"] for p in pods("apart")) == 3)
        tap.equal(sorted(p["spec"].get("nodeName", "") for p in pods("apart")), ["", "n1", "n2", "n3"],
                  "anti-affinity")
        nodes.add("n4")
        tap.ok(wait_for(lambda: sum("nodeName" in p["spec"] for p in pods("apart")) == 4),
               "another node helps")
        for name in ("big", "picky", "late", away):
            server.ask("DELETE", f"{PODS}/{name}")
        server.kubectl("delete", "deployment", "apart")
        with_gate = pod("gated", schedulingGates=[{"name": "example.com/wait"}])
        server.create(PODS, with_gate)
        tap.ok(wait_for(lambda: any(c.get("reason") == "SchedulingGated" for c in server.get(
            f"{PODS}/gated")[1].get("status", {}).get("conditions", []))), "gates are waited for")

        # Volumes decide, too.
        CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
        for name, mode in (("late", "WaitForFirstConsumer"), ("early", "Immediate")):
            server.create("/apis/storage.k8s.io/v1/storageclasses", {
                "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
                "metadata": {"name": name}, "provisioner": "example.com/p",
                "volumeBindingMode": mode})

        def claim(name, of):
            return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
                    "spec": {"storageClassName": of, "accessModes": ["ReadWriteOnce"],
                             "resources": {"requests": {"storage": "1Gi"}}}}

        def user(name, of):
            return pod(name, nodeSelector={"kubernetes.io/hostname": "n2"} if of == "wait" else {},
                       volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": of}}])

        server.create(PODS, user("no-claim", "none"))
        waits("no-claim", "0/4 nodes are available: persistentvolumeclaim "
              '"none" not found.', "a claim that is not there")
        server.create(CLAIMS, claim("now", "early"))
        server.create(PODS, user("now", "now"))
        waits("now", "0/4 nodes are available: pod has unbound immediate "
              "PersistentVolumeClaims.", "one that is not bound")
        server.create(CLAIMS, claim("wait", "late"))
        server.create(PODS, user("wait", "wait"))
        tap.ok(wait_for(lambda: server.get(f"{CLAIMS}/wait")[1]["metadata"].get(
            "annotations", {}).get("volume.kubernetes.io/selected-node") == "n2"),
            "a node is chosen for a claim that waits")
        tap.equal(server.get(f"{PODS}/wait")[1]["spec"].get("nodeName"), None, "and the pod waits")
        for name, node in (("now", "n3"), ("wait", "n2")):
            server.create("/api/v1/persistentvolumes", {
                "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"pv-{name}"},
                "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                         "csi": {"driver": "example.com/p", "volumeHandle": name},
                         "claimRef": {"namespace": "default", "name": name},
                         "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                             {"key": "kubernetes.io/hostname", "operator": "In",
                              "values": [node]}]}]}}}})
            server.ask("PATCH", f"{CLAIMS}/{name}", {"spec": {"volumeName": f"pv-{name}"}},
                       content_type="application/merge-patch+json")
            tap.equal(placed(name), node, f"{name}: bound to a volume, it runs where that is")
        for name in ("no-claim", "now", "wait"):
            server.ask("DELETE", f"{PODS}/{name}")

        # StatefulSets.
        STS = f"{NS}/statefulsets"
        server.create(STS, {**workload("StatefulSet", "db", 3, serviceName="db", volumeClaimTemplates=[
            {"metadata": {"name": "data"}, "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": "none",
                "resources": {"requests": {"storage": "1Gi"}}}}])})
        tap.ok(wait_for(lambda: unschedulable("db-0")), "its first pod waits for its claim")
        tap.equal([p["metadata"]["name"] for p in pods("db")], ["db-0"], "and the others for it")

        def bind_claims():
            for number in range(5):
                if server.get(f"{CLAIMS}/data-db-{number}")[1].get("spec", {"volumeName": 1}).get(
                        "volumeName"):
                    continue
                server.ask("POST", "/api/v1/persistentvolumes", {
                    "apiVersion": "v1", "kind": "PersistentVolume",
                    "metadata": {"name": f"pv-db-{number}"},
                    "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
                             "csi": {"driver": "example.com/p", "volumeHandle": f"db{number}"}}})
                server.ask("PATCH", f"{CLAIMS}/data-db-{number}", {
                    "spec": {"volumeName": f"pv-db-{number}"}},
                    content_type="application/merge-patch+json")
            return are_ready("db", 3)

        tap.ok(wait_for(bind_claims), "all follow in order", pods("db"))
        tap.ran(rollout("status", "statefulset/db", "--timeout", "60s"), "kubectl knows",
                stdout="roll out complete")
        server.kubectl("set", "image", "statefulset/db", "c=two")
        tap.ran(rollout("status", "statefulset/db", "--timeout", "60s"), "another image",
                stdout="roll out complete")
        tap.equal({p["spec"]["containers"][0]["image"] for p in pods("db")}, {"two"}, "is in all")
        tap.ran(rollout("undo", "statefulset/db"), "kubectl rollout undo", stdout="rolled back")
        tap.ok(wait_for(lambda: are_ready("db", 3) and {
            p["spec"]["containers"][0]["image"] for p in pods("db")} == {"one"}), "goes back")
        server.kubectl("scale", "statefulset/db", "--replicas", "1")
        tap.ok(wait_for(lambda: [p["metadata"]["name"] for p in pods("db")] == ["db-0"]),
               "the last go first")
        tap.equal(server.get(f"{CLAIMS}/data-db-2")[0], 200, "their claims stay")
        server.kubectl("delete", "statefulset", "db")
        tap.ok(wait_for(lambda: not pods("db")), "they go with it")

        # DaemonSets.
        DS = f"{NS}/daemonsets"
        server.create(DS, workload("DaemonSet", "every"))
        tap.ok(ready("every", 4), "a pod on every node", pods("every"))
        tap.equal(sorted(p["spec"]["nodeName"] for p in pods("every")), ["n1", "n2", "n3", "n4"],
                  "one each")
        tap.ran(rollout("status", "daemonset/every", "--timeout", "60s"), "kubectl knows",
                stdout="successfully rolled out")
        nodes.add("n5")
        tap.ok(ready("every", 5), "a new node gets one")
        server.kubectl("set", "image", "daemonset/every", "c=two")
        tap.ran(rollout("status", "daemonset/every", "--timeout", "60s"), "another image",
                stdout="successfully rolled out")
        tap.equal(sorted((p["spec"]["nodeName"], p["spec"]["containers"][0]["image"])
                         for p in pods("every")), [(f"n{i}", "two") for i in range(1, 6)],
                  "is on every node")
        server.kubectl("label", "node", "n5", "none=yes")
        server.ask("PATCH", f"{DS}/every", {"spec": {"template": {"spec": {
            "nodeSelector": {"none": "yes"}}}}}, content_type="application/merge-patch+json")
        tap.ok(wait_for(lambda: [p["spec"]["nodeName"] for p in pods("every")] == ["n5"]),
               "only where it should be", pods("every"))
        server.kubectl("delete", "daemonset", "every")

        # Endpoints.
        server.create("/api/v1/namespaces/default/services", {
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {
                "selector": {"app": "web"}, "ports": [{"name": "http", "port": 80,
                                                       "targetPort": 8080}]}})

        def addresses():
            subsets = server.get("/api/v1/namespaces/default/endpoints/web")[1].get("subsets", [])
            return [(a["ip"], s["ports"][0]["port"]) for s in subsets for a in s.get("addresses", [])]

        def running():
            return sorted((p["status"]["podIP"], 8080) for p in pods("web") if "podIP" in p.get(
                "status", {}))

        tap.ok(wait_for(lambda: len(running()) == 2 and sorted(addresses()) == running()),
               "a service has the addresses of its pods", (addresses(), running()))

        def sliced():
            found = server.get("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
                               "?labelSelector=kubernetes.io/service-name=web")[1]["items"]
            return sorted((a, port["port"]) for s in found for e in s["endpoints"]
                          if e["conditions"]["ready"] for a in e["addresses"] for port in s["ports"])

        tap.ok(wait_for(lambda: sliced() == running()), "in slices, too", sliced())
        server.kubectl("scale", "deployment/web", "--replicas", "3")
        tap.ok(wait_for(lambda: len(sliced()) == 3 and sliced() == running()
                        and sorted(addresses()) == running()), "they follow", sliced())
        tap.ran(server.kubectl("describe", "service", "web"), "kubectl describes them",
                stdout=":8080")
        server.ask("DELETE", "/api/v1/namespaces/default/endpoints/web")
        tap.ok(wait_for(lambda: sorted(addresses()) == running()), "they come back")
        server.kubectl("delete", "service", "web")
        tap.ok(wait_for(lambda: server.get("/api/v1/namespaces/default/endpoints/web")[0] == 404
                        and not sliced()), "and go with it")

        # Nodes that are lost.
        server.create(PODS, pod("stays", nodeName="n5", tolerations=[
            {"key": "maintenance", "operator": "Exists"}]))
        server.create(PODS, pod("goes", nodeName="n5"))
        server.create(PODS, pod("soon", nodeName="n5", tolerations=[
            {"key": "maintenance", "operator": "Exists", "tolerationSeconds": 2}]))
        server.kubectl("taint", "node", "n5", "maintenance=yes:NoExecute")
        tap.ok(wait_for(lambda: server.get(f"{PODS}/goes")[0] == 404), "NoExecute ends pods")
        tap.ok(wait_for(lambda: server.get(f"{PODS}/soon")[0] == 404), "some later")
        tap.equal(server.get(f"{PODS}/stays")[0], 200, "some not")
        nodes.names.remove("n5")
        server.ask("DELETE", "/api/v1/nodes/n5")
        tap.ok(wait_for(lambda: server.get(f"{PODS}/stays")[0] == 404), "none without a node")
        impatient = [{"key": "node.kubernetes.io/unreachable", "operator": "Exists",
                      "effect": "NoExecute", "tolerationSeconds": 1}]
        server.create(f"{NS}/deployments", workload("Deployment", "move", 2, {
            "tolerations": impatient, "nodeSelector": {"kind": "pair"}}))
        server.kubectl("label", "node", "n3", "n4", "kind=pair")
        tap.ok(ready("move", 2), "pods on two nodes")
        nodes.silent.add("n4")
        tap.ok(wait_for(lambda: len(pods("move")) == 2 and {p["spec"].get("nodeName") for p in pods(
            "move")} == {"n3"}, 60), "when one falls silent they move to the other",
            [(p["metadata"]["name"], p["spec"].get("nodeName")) for p in pods("move")])
        nodes.silent.discard("n4")
        server.kubectl("delete", "deployment", "move")

    # Killed again and again in the middle of a roll-out.
    server.create(f"{NS}/deployments", workload("Deployment", "crash", 6))
    rng, worst, changes = random.Random(1), 0, 0
    for _ in range(12):
        killed = Controller(controller_program, server, log=log).start()
        for _ in range(4):  # the next change often comes before the last one was seen to
            changes += 1
            server.kubectl("set", "image", "deployment/crash", f"c=image{changes}")
            end = time.monotonic() + rng.uniform(0, 0.25)
            while time.monotonic() < end:
                worst = max(worst, len(pods("crash")))
        killed.kill()
    with Controller(controller_program, server, log=log) as controller:
        tap.ok(settled("crash"), "killed at any time, it comes to an end", deployment("crash"))
        tap.ok(ready("crash", 6), "with exactly the pods that are wanted",
               [p["metadata"]["name"] for p in pods("crash")])
        tap.ok(worst <= 8, "never more than 6 and a quarter", worst)
        tap.equal({p["spec"]["containers"][0]["image"] for p in pods("crash")}, {f"image{changes}"},
                  "of the last")
        tap.equal(sum(s["spec"]["replicas"] for s in items(f"{NS}/replicasets", "crash")), 6,
                  "no other set has any")
        tap.equal(controller.stop(), 0, "it stops when told")
    if tap.failed:
        log.flush()
        with open(log.name, encoding="utf-8") as text:
            print("\n".join("# " + line.rstrip() for line in text
                            if " INFO  request" not in line)[-6000:])
tap.done()
