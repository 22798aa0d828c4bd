#!/usr/bin/env python3
"""What kubectl does with workloads: scale, rollout, logs, and the end of pods.

workloads.py APISERVER
"""
import datetime
import fcntl
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from life import APPS, Life, owner, plural, pod_template, tap, workload  # noqa: E402
from server import Server  # noqa: E402
from tap import Scratch  # noqa: E402

program = sys.argv[1]


class Workloads(Life):
    # Scale

    def scale(self):
        server = self.server
        for kind, path in (("Deployment", "deployments"), ("ReplicaSet", "replicasets"),
                           ("StatefulSet", "statefulsets")):
            base = f"{APPS}/namespaces/default/{path}"
            made = server.create(base, workload(kind, "s1", replicas=1))
            status, reply = server.get(f"{base}/s1/scale")
            tap.equal((status, reply), (200, {
                "kind": "Scale", "apiVersion": "autoscaling/v1",
                "metadata": {key: made["metadata"][key] for key in (
                    "name", "namespace", "uid", "resourceVersion", "creationTimestamp")},
                "spec": {"replicas": 1}, "status": {"replicas": 0, "selector": "app=s1"}}),
                      f"the scale of a {kind}")
            status, scaled = server.ask("PUT", f"{base}/s1/scale",
                                        {**reply, "spec": {"replicas": 2}}, content_type=None)
            tap.equal((status, scaled["spec"]["replicas"]), (200, 2), "PUT without a type")
            self.refused("the old revision", server.ask("PUT", f"{base}/s1/scale", reply), 409,
                         "Operation cannot be fulfilled on", "Conflict")
            status, empty = server.ask("PUT", f"{base}/s1/scale", {**scaled, "spec": {}})
            tap.equal((status, empty["spec"]["replicas"]), (200, 0), "none is zero")
            body = self.refused("less than none", server.ask(
                "PATCH", f"{base}/s1/scale", {"spec": {"replicas": -1}},
                "application/merge-patch+json"), 422,
                                'Scale.autoscaling "s1" is invalid: spec.replicas: Invalid value: '
                                '-1: must be greater than or equal to 0', "Invalid")
            tap.equal(body["details"]["causes"][0]["field"], "spec.replicas", "its cause")
            self.refused("no number", server.ask("PATCH", f"{base}/s1/scale",
                                                 {"spec": {"replicas": "many"}},
                                                 "application/merge-patch+json"), 400, "integer")
            self.refused("no Scale", server.ask("PUT", f"{base}/s1/scale", made), 400, "Scale")
            self.refused("nothing to scale", server.get(f"{base}/none/scale"), 404,
                         f'{path}.apps "none" not found', "NotFound")
            self.expect("kubectl scale", ["scale", path, "s1", "--replicas=3"], stdout="scaled")
            self.expect("kubectl scale if", ["scale", path, "s1", "--replicas=4",
                                             "--current-replicas=3"], stdout="scaled")
            self.expect("kubectl scale if not", ["scale", path, "s1", "--replicas=5",
                                                 "--current-replicas=3"], status=1,
                        stderr="Expected replicas to be 3, was 4")
            tap.equal(server.get(f"{base}/s1")[1]["spec"]["replicas"], 4, "it is scaled")
            dry = server.ask("PATCH", f"{base}/s1/scale?dryRun=All",
                             [{"op": "replace", "path": "/spec/replicas", "value": 9}],
                             "application/json-patch+json")[1]
            tap.equal((dry["spec"]["replicas"], server.get(f"{base}/s1")[1]["spec"]["replicas"]),
                      (9, 4), "a dry run")
        self.refused("a pod has none", server.get(plural("pods", "default", "p/scale")), 404, "")

    # Rollouts

    def rollouts(self):
        server = self.server
        base = f"{APPS}/namespaces/default"
        deployment = server.create(f"{base}/deployments", workload("Deployment", "web", replicas=2))
        for number in (1, 2):
            labels = {"app": "web", "pod-template-hash": f"h{number}"}
            template = pod_template("web", f"example.test/web:{number}")
            template["metadata"]["labels"] = labels
            value = workload("ReplicaSet", f"web-h{number}", replicas=0, template=template,
                             selector={"matchLabels": labels})
            value["metadata"].update(labels=labels, ownerReferences=[
                {**owner(deployment), "controller": True}],
                                     annotations={"deployment.kubernetes.io/revision": f"{number}"})
            server.create(f"{base}/replicasets", value)
        server.ask("PATCH", f"{base}/deployments/web", {
            "metadata": {"annotations": {"deployment.kubernetes.io/revision": "2"}},
            "spec": {"template": pod_template("web", "example.test/web:2")}},
                   "application/merge-patch+json")
        result = self.expect("rollout history", ["rollout", "history", "deploy/web"])
        tap.equal([line.split()[0] for line in result.stdout.splitlines()[2:] if line], ["1", "2"],
                  "both revisions are there")
        self.expect("rollout history of one", ["rollout", "history", "deploy/web", "--revision=1"],
                    stdout="example.test/web:1")
        self.expect("rollout undo", ["rollout", "undo", "deploy/web", "--to-revision=1"],
                    stdout="rolled back")
        tap.equal(server.get(f"{base}/deployments/web")[1]["spec"]["template"]["spec"]["containers"]
                  [0]["image"], "example.test/web:1", "the old image is back")

        def finished(path, status):
            current = server.get(path)[1]
            status["observedGeneration"] = current["metadata"]["generation"]
            code, reply = server.ask("PUT", f"{path}/status", {**current, "status": status})
            if code != 200:
                raise AssertionError(f"{code} {reply}")

        watching = server.kubectl_begin("rollout", "status", "deploy/web", "--timeout=60s")
        first = watching.stdout.readline()
        tap.ok("Waiting for" in first, "rollout status waits", first)
        finished(f"{base}/deployments/web", {"replicas": 2, "updatedReplicas": 2,
                                             "readyReplicas": 2, "availableReplicas": 2})
        rest = watching.stdout.read()
        tap.ok(watching.wait() == 0 and "successfully rolled out" in rest, "and ends", rest)
        self.expect("rollout restart", ["rollout", "restart", "deploy/web"], stdout="restarted")

        for kind, path, spec in (("StatefulSet", "statefulsets", {"serviceName": "x"}),
                                 ("DaemonSet", "daemonsets", {})):
            made = server.create(f"{base}/{path}", workload(kind, "set", **spec))
            for number in (1, 2):
                server.create(f"{base}/controllerrevisions", {
                    "apiVersion": "apps/v1", "kind": "ControllerRevision", "revision": number,
                    "metadata": {"name": f"{path}-{number}", "labels": {"app": "set"},
                                 "ownerReferences": [{**owner(made), "controller": True}]},
                    "data": {"spec": {"template": {"$patch": "replace", **pod_template(
                        "set", f"example.test/set:{number}")}}}})
            result = self.expect(f"history of a {kind}", ["rollout", "history", f"{path}/set"])
            tap.equal([line.split()[0] for line in result.stdout.splitlines()[2:] if line],
                      ["1", "2"], "both revisions")
            self.expect(f"undo of a {kind}", ["rollout", "undo", f"{path}/set", "--to-revision=1"],
                        stdout="rolled back")
            tap.equal(server.get(f"{base}/{path}/set")[1]["spec"]["template"]["spec"]["containers"]
                      [0]["image"], "example.test/set:1", "its image")
        finished(f"{base}/statefulsets/set", {"replicas": 1, "readyReplicas": 1,
                                              "updatedReplicas": 1, "currentReplicas": 1,
                                              "currentRevision": "a", "updateRevision": "a"})
        self.expect("status of a StatefulSet", ["rollout", "status", "sts/set", "--timeout=30s"],
                    stdout="roll out complete")
        finished(f"{base}/daemonsets/set", {
            "currentNumberScheduled": 1, "desiredNumberScheduled": 1, "numberMisscheduled": 0,
            "numberReady": 1, "updatedNumberScheduled": 1, "numberAvailable": 1})
        self.expect("status of a DaemonSet", ["rollout", "status", "ds/set", "--timeout=30s"],
                    stdout="successfully rolled out")

    # Logs

    def logs(self):
        server, pods = self.server, plural("pods")
        folder = os.path.join(server.folder, "pods", "default", "two")
        os.makedirs(folder)
        server.create(pods, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "two"},
                             "spec": {"nodeName": "n1", "initContainers": [
                                 {"name": "init", "image": "i"}], "containers": [
                                     {"name": "a", "image": "i"}, {"name": "b", "image": "i"}]}})
        server.create(pods, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "idle"},
                             "spec": {"containers": [{"name": "a", "image": "i"}]}})
        now = datetime.datetime.now(datetime.timezone.utc)

        def line(age, text):
            stamp = now - datetime.timedelta(seconds=age)
            return stamp.strftime("%Y-%m-%dT%H:%M:%S.%f000Z ") + text + "\n"

        lines = [line(7200, "old"), line(5, "new"), "continued\n", line(1, "newest")]
        with open(os.path.join(folder, "a.log"), "w", encoding="utf-8") as log:
            log.writelines(lines)
        with open(os.path.join(folder, "b.previous.log"), "w", encoding="utf-8") as log:
            log.write(line(3, "before"))

        def log(query="container=a", pod="two"):
            return server.get(f"{pods}/{pod}/log?{query}")

        for name, query, expected in (
                ("all", "", "old\nnew\ncontinued\nnewest\n"),
                ("the last lines", "&tailLines=2", "continued\nnewest\n"),
                ("no lines", "&tailLines=0", ""), ("more than there are", "&tailLines=99",
                                                   "old\nnew\ncontinued\nnewest\n"),
                ("of late", "&sinceSeconds=600", "new\ncontinued\nnewest\n"),
                ("since a time", "&sinceTime=" + (now - datetime.timedelta(seconds=60)).strftime(
                    "%Y-%m-%dT%H:%M:%SZ"), "new\ncontinued\nnewest\n"),
                ("the first bytes", "&limitBytes=5", "old\nn"),
                ("with times", "&timestamps=true", "".join(lines))):
            tap.equal(log("container=a" + query), (200, expected), f"log: {name}")
        tap.equal(log("container=b&previous=true"), (200, "before\n"), "log: of the one before")
        tap.equal(log("", "idle"), (200, ""), "log: of a pod without a node")
        for name, query, status, message in (
                ("which container", "", 400, "a container name must be specified for pod two, choose "
                                             "one of: [a b] or one of the init containers: [init]"),
                ("no such container", "container=c", 400, "container c is not valid for pod two"),
                ("a path", "container=..%2F..%2Fx", 400, "is not valid for pod two"),
                ("not yet", "container=b", 400,
                 'container "b" in pod "two" is waiting to start: ContainerCreating'),
                ("none before", "container=a&previous=true", 400,
                 'previous terminated container "a" in pod "two" not found'),
                ("few lines", "container=a&tailLines=-1", 422, 'PodLogOptions "two" is invalid: '
                 'tailLines: Invalid value: -1: must be greater than or equal to 0'),
                ("few bytes", "container=a&limitBytes=0", 422, "limitBytes: Invalid value: 0: must "
                                                               "be greater than or equal to 1"),
                ("no number", "container=a&tailLines=x", 400, "tailLines must be an integer")):
            self.refused(f"log: {name}", log(query), status, message)
        self.refused("log: no pod", log("", "none"), 404, 'pods "none" not found')
        os.symlink("/etc/passwd", os.path.join(folder, "init.log"))
        tap.ok(log("container=init")[0] != 200, "log: a link is not followed")
        self.expect("kubectl logs", ["logs", "two", "-c", "a", "--tail=1"], stdout="newest")
        self.expect("kubectl logs asks which", ["logs", "two", "-c", "zzz"], status=1,
                    stderr="container zzz is not valid for pod two")

        with open(os.path.join(folder, "a.log"), "a", encoding="utf-8") as log_file:
            fcntl.flock(log_file, fcntl.LOCK_EX)  # as who writes to it does
            following = server.kubectl_begin("logs", "-f", "two", "-c", "a", "--tail=1")
            tap.equal(following.stdout.readline(), "newest\n", "kubectl logs -f begins")
            for n in range(3):
                log_file.write(line(0, f"more {n}"))
                log_file.flush()
                tap.equal(following.stdout.readline(), f"more {n}\n", "and goes on")
            log_file.write(line(0, "unfinished").rstrip("\n"))
        tap.equal(following.stdout.read(), "unfinished", "what it last said comes, with the end of who wrote it")
        tap.equal(following.wait(), 0, "and the log ends")
        with open(os.path.join(folder, "a.log"), encoding="utf-8") as log_file:
            fcntl.flock(log_file, fcntl.LOCK_EX)
            left = server.connect(timeout=60)
            left.request("GET", f"{pods}/two/log?container=a&follow=true&tailLines=0")
            left.getresponse()
            left.close()
        tap.equal(log("container=a&tailLines=1")[0], 200, "who hangs up harms nobody")

    # Pods that take time to end

    def endings(self):
        server, pods = self.server, plural("pods")

        def make(name, **spec):
            return server.create(pods, {
                "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
                "spec": {"containers": [{"name": "m", "image": "i"}], **spec}})

        def end(name):
            metadata = server.get(f"{pods}/{name}")[1]["metadata"]
            return metadata.get("deletionTimestamp"), metadata.get("deletionGracePeriodSeconds")

        def seconds_from_now(text):
            then = datetime.datetime.fromisoformat(text)
            return (then - datetime.datetime.now(datetime.timezone.utc)).total_seconds()

        uid = make("e1", nodeName="n1")["metadata"]["uid"]
        self.expect("kubectl delete", ["delete", "pod", "e1", "--wait=false"], stdout="deleted")
        first, grace = end("e1")
        tap.ok(grace == 30 and 15 < seconds_from_now(first) <= 30, "it has thirty seconds", first)
        self.expect("kubectl get", ["get", "pod", "e1"], stdout="Terminating")
        status, reply = server.ask("DELETE", f"{pods}/e1")
        tap.equal((status, reply["kind"], end("e1")), (200, "Pod", (first, 30)), "again: the same")
        server.ask("DELETE", f"{pods}/e1?gracePeriodSeconds=100")
        tap.equal(end("e1"), (first, 30), "not longer")
        server.ask("DELETE", f"{pods}/e1", {"gracePeriodSeconds": 10})
        tap.ok(end("e1")[1] == 10 and end("e1")[0] < first, "but shorter", end("e1"))
        self.refused("another pod of the name", server.ask(
            "DELETE", f"{pods}/e1", {"gracePeriodSeconds": 0, "preconditions": {"uid": "x"}}),
                     409, "Precondition failed: UID", "Conflict")
        server.ask("DELETE", f"{pods}/e1", {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}})
        tap.ok(self.is_gone(f"{pods}/e1"), "the node says that it has ended")
        make("e2", nodeName="n1", terminationGracePeriodSeconds=3)
        server.ask("DELETE", f"{pods}/e2")
        tap.equal(end("e2")[1], 3, "its own time")
        self.expect("kubectl delete --force", ["delete", "pod", "e2", "--force"],
                    stdout="force deleted")
        tap.ok(self.is_gone(f"{pods}/e2"), "it is gone, whatever the node does")
        make("e3")
        self.expect("on no node", ["delete", "pod", "e3", "--grace-period=60"], stdout="deleted")
        tap.ok(self.is_gone(f"{pods}/e3"), "it goes at once")
        make("e4", nodeName="n1")
        server.ask("DELETE", f"{pods}/e4", {"gracePeriodSeconds": -5})
        tap.equal(end("e4")[1], 1, "less than nothing is a second")
        server.ask("DELETE", f"{pods}?gracePeriodSeconds=0")
        tap.ok(self.is_gone(f"{pods}/e4"), "collections as well")


with Scratch() as scratch:
    with Server(program, scratch.file("data")) as server:
        workloads = Workloads(server)
        workloads.scale()
        workloads.rollouts()
        workloads.logs()
        workloads.endings()
    tap.equal(server.status, 0, "it stops when told")
tap.done()
