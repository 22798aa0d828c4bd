#!/usr/bin/env python3
"""Every command of kubectl that makes sense at an API server without nodes, as a user types it.

kubectl-tour.py APISERVER TOP ORLOP

TLS, and the administrator's kubeconfig. Where a command cannot work here (there is nothing that
runs containers), it must say so.
"""
import json
import os
import re
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from pool_objects import provide  # noqa: E402
from server import Client, Server  # noqa: E402
from tap import Scratch, Tap, run  # noqa: E402

program, top, orlop = sys.argv[1:4]
tap = Tap()
MERGE = "application/merge-patch+json"
APPS = "/apis/apps/v1/namespaces/default"
POOL = f"{top}/examples/cspc/mirror-two-nodes.yaml"


def manifest(*objects):
    if len(objects) == 1:
        return json.dumps(objects[0])
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})


def config(name, data=None, **metadata):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata},
            "data": data or {}}


def template(app, image="example.test/a:1"):
    return {"metadata": {"labels": {"app": app}},
            "spec": {"containers": [{"name": "main", "image": image}]}}


class Tour:
    def __init__(self, server, scratch):
        self.server, self.scratch, self.client = server, scratch, Client(server)
        self.env = {**scratch.kubectl_env(), "KUBECONFIG": server.kubeconfig}

    # What every part needs.

    def kubectl(self, command, stdin=None, env=None):
        """A command as one line, or as a list where words have blanks."""
        words = command.split() if isinstance(command, str) else command
        return run("kubectl", *words, stdin=stdin, env={**self.env, **(env or {})})

    def expect(self, command, *texts, status=0, **options):
        """The command ends with that status and says all of the texts, or what matches them."""
        result = self.kubectl(command, **options)
        said = result.stdout + result.stderr
        missing = [t for t in texts if not (re.search(t.pattern, said, t.flags)
                                            if isinstance(t, re.Pattern) else t in said)]
        tap.ok(result.returncode == status and not missing,
               command if isinstance(command, str) else " ".join(command),
               f"exit status {result.returncode}, not said: {missing}\n{said}")
        return result.stdout

    def get(self, path):
        return self.client.ask("GET", path).json

    def finish(self, path, **status):
        """What a controller would report."""
        current = self.get(path)
        status["observedGeneration"] = current["metadata"]["generation"]
        reply = self.client.ask("PUT", f"{path}/status", {**current, "status": status})
        if reply.status != 200:
            tap.ok(False, f"PUT {path}/status", f"{reply.status} {reply.body}")

    def post(self, path, value):
        reply = self.client.ask("POST", path, value)
        if reply.status != 201:
            tap.ok(False, f"POST {path}", f"{reply.status} {reply.body}")
        return reply.json

    # The parts.

    def create(self):
        for command, said in (
                ("create ns team", "namespace/team created"),
                ("create cm settings --from-literal=a=1 --from-literal=b=2",
                 "configmap/settings created"),
                ("create secret generic keys --from-literal=token=x", "secret/keys created"),
                ("create secret docker-registry reg --docker-server=s --docker-username=u "
                 "--docker-password=p", "secret/reg created"),
                ("create sa robot", "serviceaccount/robot created"),
                ("create role reader --verb=get,list --resource=pods,deployments.apps",
                 "role.rbac.authorization.k8s.io/reader created"),
                ("create rolebinding robot --role=reader --serviceaccount=default:robot",
                 "rolebinding.rbac.authorization.k8s.io/robot created"),
                ("create clusterrole looker --verb=get --resource=nodes --non-resource-url=/metrics",
                 "clusterrole.rbac.authorization.k8s.io/looker created"),
                ("create clusterrolebinding looker --clusterrole=looker --user=ann",
                 "clusterrolebinding.rbac.authorization.k8s.io/looker created"),
                ("create quota limits --hard=pods=40,services=20,requests.storage=10Gi",
                 "resourcequota/limits created"),
                ("create deployment web --image=example.test/web:1 --replicas=2 --port=80",
                 "deployment.apps/web created"),
                ("create service clusterip plain --tcp=80:8080", "service/plain created"),
                ("create service nodeport node --tcp=81", "service/node created"),
                ("create service externalname far --external-name=example.test",
                 "service/far created"),
                ("create job once --image=example.test/job -- run --fast", "job.batch/once created"),
                (["create", "cronjob", "tick", "--image=example.test/job",
                  "--schedule=*/5 * * * *"], "cronjob.batch/tick created"),
                ("create pdb keep --selector=app=web --min-available=1",
                 "poddisruptionbudget.policy/keep created"),
                ("create priorityclass high --value=1000 --description=urgent",
                 "priorityclass.scheduling.k8s.io/high created")):
            self.expect(command, said)
        self.expect("create job again --from=cronjob/tick", "job.batch/again created")
        token = self.expect("create token robot --duration=10m")
        tap.ok(token.count(".") == 2, "it is a token")
        self.expect("create cm settings", 'configmaps "settings" already exists', status=1)
        self.expect("create -f -", "configmap/one created", "configmap/two created",
                    stdin=manifest(config("one"), config("two")))
        self.expect("create --dry-run=server -f - -o name", "configmap/three",
                    stdin=manifest(config("three")))
        self.expect("get cm three", 'configmaps "three" not found', status=1)
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": 1}}
        self.expect("create -f -", "metadata.name", status=1, stdin=manifest(account))
        self.expect("create -f -", "no matches for kind", status=1,
                    stdin=manifest({**config("x"), "kind": "Nothing"}))
        deployment = self.get(f"{APPS}/deployments/web")["spec"]
        tap.equal((deployment["replicas"], deployment["template"]["spec"]["containers"][0]["ports"]),
                  (2, [{"containerPort": 80, "protocol": "TCP"}]), "the deployment is what was said")
        tap.equal(self.get("/apis/batch/v1/namespaces/default/jobs/once")["spec"]["template"]["spec"]
                  ["containers"][0]["command"], ["run", "--fast"], "the job runs what was said")
        tap.equal(self.get("/api/v1/namespaces/default/services/plain")["spec"]["ports"][0]
                  ["targetPort"], 8080, "the service leads there")

    def show(self):
        self.expect("get cm settings", re.compile(r"NAME +DATA +AGE\nsettings +2 +\d+s"))
        self.expect("get secret keys", re.compile(r"NAME +TYPE +DATA +AGE\nkeys +Opaque +1 +"))
        self.expect("get deploy web", re.compile(
            r"NAME +READY +UP-TO-DATE +AVAILABLE +AGE\nweb +0/2 +0 +0 +\d+s"))
        self.expect("get deploy web -o wide", re.compile(
            r"CONTAINERS +IMAGES +SELECTOR\nweb .* web +example.test/web:1 +app=web"))
        self.expect("get svc plain node far", re.compile(
            r"NAME +TYPE +CLUSTER-IP +EXTERNAL-IP +PORT\(S\) +AGE\nplain +ClusterIP +\S+ +<none> +"
            r"80/TCP .*\n.*\nfar +ExternalName +<none> +example.test +<none>"))
        self.expect("get job once", re.compile(
            r"NAME +STATUS +COMPLETIONS +DURATION +AGE\nonce +Running +0/1 "))
        self.expect("get cj tick", re.compile(
            r"SUSPEND +ACTIVE +LAST SCHEDULE +AGE\ntick +\*/5 \* \* \* \* +<none> +False +0 +<none>"))
        self.expect("get pdb keep", re.compile(r"keep +1 +N/A +0 "))
        self.expect("get pc high", re.compile(r"high +1000 +false "))
        self.expect("get rolebinding robot -o wide", re.compile(
            r"robot +Role/reader +\d+s +default/robot"))
        self.expect("get quota limits", re.compile(r"pods: 0/40, requests.storage: 0/10Gi"))
        self.expect("get ns team default", re.compile(r"team +Active .*\ndefault +Active"))
        self.expect("get cm settings -o yaml", "apiVersion: v1\ndata:\n  a: \"1\"\n  b: \"2\"\n"
                    "kind: ConfigMap\n")
        tap.equal(json.loads(self.expect("get cm settings -o json"))["data"], {"a": "1", "b": "2"},
                  "the JSON")
        self.expect("get cm settings -o yaml --show-managed-fields", "manager: kubectl-create")
        tap.equal(self.expect("get cm settings -o name"), "configmap/settings\n", "-o name")
        tap.equal(self.expect("get cm settings -o jsonpath={.data.b}"), "2", "jsonpath")
        tap.equal(self.expect(["get", "cm", "settings", "-o", "go-template={{.data.a}}"]), "1",
                  "go-template")
        self.expect("get cm settings -o custom-columns=N:.metadata.name,A:.data.a",
                    "N          A\nsettings   1\n")
        self.expect("get cm -l app=none", "No resources found in default namespace.")
        self.expect("get deploy -l app=web -o name", "deployment.apps/web\n")
        self.expect("get cm --field-selector metadata.name=one -o name", "configmap/one\n")
        names = self.expect("get cm --sort-by=.metadata.name -o name").split()
        tap.equal(names, sorted(names), "sorted")
        self.expect("get cm --sort-by={.metadata.creationTimestamp}", "settings")
        self.expect("get cm -A", re.compile(r"NAMESPACE +NAME +DATA +AGE\n"), "kube-system")
        tap.equal(self.expect("get cm --chunk-size=1 -o name").split(),
                  self.expect("get cm -o name").split(), "in chunks of one")
        self.expect("get deploy --show-labels", re.compile(r"LABELS\nweb .* app=web"))
        self.expect("get deploy -L app", re.compile(r"APP\nweb .* web"))
        self.expect("get deploy --show-kind", "deployment.apps/web")
        self.expect("get deploy web --no-headers", re.compile(r"^web "))
        self.expect("get all", "deployment.apps/web", "service/plain", "job.batch/once",
                    "cronjob.batch/tick")
        self.expect("get cm,secret", "configmap/settings", "secret/keys")
        self.expect("get cm/settings secret/keys", "configmap/settings", "secret/keys")
        self.expect("get nothing", 'the server doesn\'t have a resource type "nothing"', status=1)
        self.expect("get cm none", 'Error from server (NotFound): configmaps "none" not found',
                    status=1)
        self.expect("get cm none --ignore-not-found")
        self.expect("get cm --field-selector spec.x=1 -o name")
        self.expect("get -f -", "settings", stdin=manifest(config("settings")))
        self.expect("get deploy web --subresource=status", "web")
        self.expect("get deploy web --subresource=scale -o jsonpath={.spec.replicas}", "2")

    def watch(self):
        watching = subprocess.Popen(["kubectl", "get", "cm", "-w", "-o", "name",
                                     "--field-selector=metadata.name=seen"], env=self.env,
                                    stdout=subprocess.PIPE, text=True)
        self.expect("create cm seen", "created")
        tap.equal(watching.stdout.readline(), "configmap/seen\n", "get -w shows what comes")
        self.expect("label cm seen a=b", "labeled")
        tap.equal(watching.stdout.readline(), "configmap/seen\n", "and changes")
        watching.terminate()
        watching.wait()
        watching.stdout.close()
        watching = subprocess.Popen(["kubectl", "get", "cm", "seen", "--watch-only"],
                                    env=self.env, stdout=subprocess.PIPE, text=True)
        end = time.monotonic() + 60
        lines = []

        def read():
            for line in watching.stdout:
                lines.append(line)
                if len(lines) == 2:
                    break

        reader = threading.Thread(target=read)
        reader.start()
        n = 0
        while reader.is_alive() and time.monotonic() < end:  # when it watches is not to be seen
            self.kubectl(f"annotate cm seen --overwrite n={n}")
            n += 1
        watching.terminate()
        watching.wait()
        reader.join()
        watching.stdout.close()
        tap.ok(len(lines) == 2 and lines[0].startswith("NAME ") and
               lines[1].startswith("seen "), "get --watch-only shows changes as rows", lines)

    def describe(self):
        self.post("/api/v1/namespaces/default/events", {
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e1"}, "type": "Warning",
            "involvedObject": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web",
                               "namespace": "default",
                               "uid": self.get(f"{APPS}/deployments/web")["metadata"]["uid"]},
            "reason": "Slow", "message": "it takes its time", "count": 3,
            "source": {"component": "tour"}, "firstTimestamp": "2026-01-01T00:00:00Z",
            "lastTimestamp": "2026-01-01T00:00:00Z"})
        self.expect("describe deploy web", re.compile(r"Replicas: +2 desired \| 0 updated"),
                    re.compile(r"Image: +example.test/web:1"),
                    re.compile(r"Warning +Slow +.*x3 over.* +tour +it takes its time"))
        self.expect("describe cm settings", "Data\n====\n", "a:\n----\n1\n")
        self.expect("describe secret keys", re.compile(r"token: +1 bytes"))
        self.expect("describe ns team", re.compile(r"Status: +Active"))
        self.expect("describe svc plain", re.compile(r"TargetPort: +8080/TCP"))
        self.expect("describe job once", re.compile(r"Parallelism: +1"))
        self.expect("describe cj tick", re.compile(r"Schedule: +\*/5 \* \* \* \*"))
        self.expect("describe sa robot", re.compile(r"Name: +robot"))
        self.expect("describe role reader", re.compile(r"pods +\[\] +\[\] +\[get list\]"))
        self.expect("describe rolebinding robot", re.compile(r"ServiceAccount +robot +default"))
        self.expect("describe quota limits", re.compile(r"pods +0 +40"))
        self.expect("describe pdb keep", re.compile(r"Min available: +1"))
        self.expect("describe pc high", re.compile(r"Value: +1000"))
        self.expect("create ns openebs", "created")
        provide(self.server, orlop, POOL)
        self.expect(["create", "-f", POOL], "cstorpoolcluster.openebs.io/cstor-pool-mirror created")
        self.expect("describe cspc -n openebs cstor-pool-mirror",
                    re.compile(r"Kind: +CStorPoolCluster"), re.compile(r"Events: +<none>"))
        self.expect("events", re.compile(r"Warning +Slow +Deployment/web +it takes its time"))
        self.expect("events --for deployment/web", "Slow")
        self.expect("events --for deployment/other", "No events found")
        self.expect("get events", re.compile(
            r"LAST SEEN +TYPE +REASON +OBJECT +MESSAGE\n\S+ +Warning +Slow +deployment/web +it"))
        self.expect("get events -o wide", re.compile(r"SUBOBJECT +SOURCE +MESSAGE +FIRST SEEN +COUNT"
                                                     r" +NAME\n.* tour .* 3 +e1"))

    def explain(self):
        self.expect("explain cm", "KIND:       ConfigMap", "FIELDS:", "data")
        self.expect("explain deploy.spec.template.spec.containers.image", "FIELD: image <string>")
        self.expect("explain deploy --recursive", "rollingUpdate", "imagePullPolicy")
        self.expect("explain cspc.spec", "KIND:       CStorPoolCluster")
        self.expect("explain cm.nope", 'field "nope" does not exist', status=1)
        self.expect("api-resources", re.compile(r"configmaps +cm +v1 +true +ConfigMap"),
                    re.compile(r"deployments +deploy +apps/v1 +true +Deployment"))
        self.expect("api-resources --namespaced=false -o name", "nodes\n", "namespaces\n")
        self.expect("api-resources --verbs=list --api-group=apps -o wide", "statefulsets")
        self.expect("api-versions", "apps/v1\n", "\nv1\n")
        self.expect("cluster-info", "is running at", self.server.url)
        self.expect("version", "Client Version:", "Server Version:")
        tap.ok(json.loads(self.expect("version -o json"))["serverVersion"]["gitVersion"], "as JSON")

    def apply(self):
        first = config("ap", {"a": "1"}, labels={"part": "tour"})
        second = config("ap", {"a": "2", "b": "3"}, labels={"part": "tour"})
        for mode, made in (("", "configmap/ap created"),
                           (" --server-side", "configmap/ap serverside-applied")):
            self.expect("delete cm ap --ignore-not-found")
            self.expect(f"diff -f -{mode}", "+kind: ConfigMap", status=1, stdin=manifest(first))
            self.expect(f"apply -f - --dry-run=server{mode}", "(server dry run)",
                        stdin=manifest(first))
            self.expect("get cm ap", "not found", status=1)
            self.expect(f"apply -f -{mode}", made, stdin=manifest(first))
            self.expect(f"diff -f -{mode}", stdin=manifest(first))
            self.expect(f"diff -f -{mode}", "+  b: \"3\"", status=1, stdin=manifest(second))
            self.expect(f"apply -f -{mode}", "configmap/ap", stdin=manifest(second))
            self.expect(f"apply -f -{mode}", "configmap/ap", stdin=manifest(first))
            tap.equal(self.get("/api/v1/namespaces/default/configmaps/ap")["data"], {"a": "1"},
                      "what is no longer applied is gone")
        self.expect("apply set-last-applied --create-annotation -f -", "configured",
                    stdin=manifest(config("settings", {"a": "1", "b": "2"})))
        self.expect("apply view-last-applied cm/settings", "kind: ConfigMap")
        self.expect("label cm ap mine=yes --field-manager=other", "labeled")
        self.expect("apply --server-side -f -", "Apply failed with 1 conflict", ".metadata.labels.mine",
                    status=1, stdin=manifest(config("ap", labels={"mine": "no"})))
        self.expect("apply --server-side --force-conflicts -f -", "serverside-applied",
                    stdin=manifest(config("ap", labels={"mine": "no"})))
        self.expect("apply --prune -l prune=tour --prune-allowlist=core/v1/ConfigMap -f -", "created",
                    stdin=manifest(config("p1", labels={"prune": "tour"}),
                                   config("p2", labels={"prune": "tour"})))
        self.expect("apply --prune -l prune=tour --prune-allowlist=core/v1/ConfigMap -f -",
                    "configmap/p2 pruned", stdin=manifest(config("p1", labels={"prune": "tour"})))
        self.expect("apply -f -", "created",
                    stdin=manifest({"apiVersion": "apps/v1", "kind": "Deployment",
                                    "metadata": {"name": "api"}, "spec": {
                                        "selector": {"matchLabels": {"app": "api"}},
                                        "template": template("api")}}))

    def change(self):
        editor = self.scratch.file("editor", "#!/bin/sh\nsed -i 's/a: \"1\"/a: \"9\"/' \"$1\"\n")
        os.chmod(editor, 0o755)
        env = {"EDITOR": editor, "KUBE_EDITOR": editor}
        self.expect("edit cm settings", "configmap/settings edited", env=env)
        self.expect("get cm settings -o jsonpath={.data.a}", "9")
        self.expect("edit cm settings", "Edit cancelled, no changes made.", env=env)
        self.expect("replace -f -", "configmap/one replaced", stdin=manifest(config("one", {"x": "y"})))
        uid = self.expect("get cm one -o jsonpath={.metadata.uid}")
        self.expect("replace --force -f -", 'configmap "one" deleted', "configmap/one replaced",
                    stdin=manifest(config("one", {"x": "z"})))
        tap.ok(self.expect("get cm one -o jsonpath={.metadata.uid}") != uid, "it is another one")
        self.expect("replace -f -", "not found", status=1, stdin=manifest(config("missing")))
        for kind, patch in (("merge", '{"data":{"m":"1"}}'), ("strategic", '{"data":{"s":"1"}}'),
                            ("json", '[{"op":"add","path":"/data/j","value":"1"}]')):
            self.expect(["patch", "cm", "one", f"--type={kind}", "-p", patch], "patched")
        tap.equal(self.get("/api/v1/namespaces/default/configmaps/one")["data"],
                  {"x": "z", "m": "1", "s": "1", "j": "1"}, "all three patches")
        self.expect(["patch", "cm", "one", "--type=merge", "-p", '{"data":{"m":"1"}}'], "(no change)")
        self.expect(["patch", "deploy", "web", "--subresource=status", "--type=merge", "-p",
                     '{"status":{"replicas":2}}'], "patched")
        self.expect("get deploy web -o jsonpath={.status.replicas}", "2")
        self.expect("label cm one a=b", "labeled")
        self.expect("label cm one a=b", "not labeled")
        self.expect("label cm one a=c", "already has a value (b), and --overwrite is false", status=1)
        self.expect("label cm one a=c --overwrite", "labeled")
        self.expect("label cm one a-", "unlabeled")
        self.expect("label cm --all all=1", "configmap/two labeled")
        self.expect("label --list cm one", "all=1")
        self.expect("annotate cm one note=x", "annotated")
        self.expect("annotate cm one note-", "annotated")
        self.expect("set image deploy/web web=example.test/web:2", "image updated")
        self.expect("set env deploy/web C=1", "env updated")
        self.expect("set env deploy/web --list", "C=1")
        self.expect("set env deploy/web --from=cm/settings", "env updated")
        self.expect("set resources deploy/web --limits=cpu=200m,memory=64Mi",
                    "resource requirements updated")
        self.expect("set serviceaccount deploy/web robot", "serviceaccount updated")
        self.expect("set selector svc plain app=web", "selector updated")
        self.expect("set subject rolebinding robot --user=bob", "subjects updated")
        container = self.get(f"{APPS}/deployments/web")["spec"]["template"]["spec"]["containers"][0]
        tap.equal((container["image"], container["resources"], container["env"][0]),
                  ("example.test/web:2", {"limits": {"cpu": "200m", "memory": "64Mi"}},
                   {"name": "C", "value": "1"}), "all of it is set")
        self.expect("scale deploy web --replicas=3", "scaled")
        self.expect("scale deploy web --replicas=4 --current-replicas=9",
                    "Expected replicas to be 9, was 3", status=1)
        self.expect("scale cm one --replicas=1", "could not find the requested resource", status=1)
        self.expect("expose deploy web --port=80 --target-port=8080 --name=web", "service/web exposed")
        self.expect("get svc web -o jsonpath={.spec.selector.app}:{.spec.ports[0].targetPort}",
                    "web:8080")
        self.expect("run solo --image=example.test/solo:1 --env=A=b --labels=app=solo -- go",
                    "pod/solo created")
        self.expect("get pod solo -o wide", re.compile(
            r"NAME +READY +STATUS +RESTARTS +AGE +IP +NODE +NOMINATED NODE +READINESS GATES\n"
            r"solo +0/1 +Pending +0 +\d+s +<none> +<none> +<none> +<none>"))

    def rollouts(self):
        web = self.get(f"{APPS}/deployments/web")
        for number in (1, 2):
            labels = {"app": "web", "pod-template-hash": f"h{number}"}
            self.post(f"{APPS}/replicasets", {
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {
                    "name": f"web-h{number}", "labels": labels,
                    "annotations": {"deployment.kubernetes.io/revision": f"{number}"},
                    "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment",
                                         "name": "web", "uid": web["metadata"]["uid"],
                                         "controller": True}]},
                "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": {
                    "metadata": {"labels": labels}, "spec": {"containers": [
                        {"name": "web", "image": f"example.test/web:{number}"}]}}}})
        self.expect("get rs", re.compile(r"NAME +DESIRED +CURRENT +READY +AGE\nweb-h1 +0 +0 +0 "))
        self.expect("rollout history deploy/web", re.compile(r"REVISION.*\n1 .*\n2 "))
        self.expect("rollout history deploy/web --revision=1", "example.test/web:1")
        self.expect("rollout undo deploy/web --to-revision=1", "rolled back")
        self.expect("get deploy web -o jsonpath={.spec.template.spec.containers[0].image}",
                    "example.test/web:1")
        self.expect("rollout pause deploy/web", "paused")
        self.expect("rollout pause deploy/web", "is already paused", status=1)
        self.expect("rollout resume deploy/web", "resumed")
        self.expect("rollout restart deploy/web", "restarted")
        self.expect("rollout status deploy/web --watch=false", "Waiting for")
        self.finish(f"{APPS}/deployments/web", replicas=3, updatedReplicas=3, readyReplicas=3,
                    availableReplicas=3)
        self.expect("rollout status deploy/web --timeout=30s", "successfully rolled out")
        self.expect("get deploy web", re.compile(r"web +3/3 +3 +3 "))

    def wait(self):
        self.finish(f"{APPS}/deployments/web", replicas=3, conditions=[
            {"type": "Available", "status": "True"}])
        self.expect("wait --for=condition=available deploy/web --timeout=30s", "condition met")
        self.expect("wait --for=jsonpath={.status.replicas}=3 deploy/web --timeout=30s",
                    "condition met")
        self.expect("wait --for=condition=Gone deploy/web --timeout=1s", "timed out waiting", status=1)
        self.expect("wait --for=create cm/settings --timeout=30s", "condition met")
        waiting = subprocess.Popen(["kubectl", "wait", "--for=delete", "cm/two", "--timeout=60s"],
                                   env=self.env, stdout=subprocess.PIPE, text=True)
        self.expect("delete cm two --wait=false", 'configmap "two" deleted')
        said = waiting.stdout.read()  # nothing, if it was gone before kubectl looked
        tap.ok(waiting.wait() == 0 and said in ("", "configmap/two condition met\n"),
               "wait --for=delete", said)
        waiting.stdout.close()

    def nodes(self):
        self.expect("create -f -", "node/n1 created", stdin=manifest({
            "apiVersion": "v1", "kind": "Node", "metadata": {
                "name": "n1", "labels": {"node-role.kubernetes.io/worker": ""}}}))
        self.expect(["patch", "node", "n1", "--subresource=status", "-p", json.dumps({"status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}]}})], "patched")
        self.expect("get node n1 -o wide", re.compile(r"n1 +Ready +worker +\S+ +192.0.2.1 +<none> "))
        self.expect("taint node n1 k=v:NoSchedule", "node/n1 tainted")
        self.expect("taint node n1 k:NoSchedule-", "node/n1 untainted")
        self.expect("cordon n1", "node/n1 cordoned")
        self.expect("get node n1", "Ready,SchedulingDisabled")
        self.expect("uncordon n1", "node/n1 uncordoned")
        self.post("/api/v1/namespaces/default/pods", {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "placed"},
            "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}})
        self.expect("drain n1 --timeout=30s", "cannot delete", "declare no controller", status=1)
        self.expect("drain n1 --force --grace-period=0 --timeout=60s", "node/n1 drained")
        self.expect("get pod placed", "not found", status=1)
        self.expect("describe node n1", re.compile(r"Unschedulable: +true"))

    def logs(self):
        folder = os.path.join(self.server.folder, "pods", "default", "solo")
        os.makedirs(folder)
        with open(os.path.join(folder, "solo.log"), "w", encoding="utf-8") as log:
            log.write("2026-01-01T00:00:00.000000000Z first\n2026-01-01T00:00:01.000000000Z last\n")
        self.expect(["patch", "pod", "solo", "--type=merge", "--subresource=status", "-p", json.dumps(
            {"status": {"phase": "Running"}})], "patched")
        self.expect("logs solo --tail=1", "last\n")
        self.expect("logs solo -c none", "container none is not valid for pod solo", status=1)
        self.expect("logs none", 'pods "none" not found', status=1)
        for command in ("exec solo -- true", "attach solo", "port-forward pod/solo :80",
                        "cp solo:/x /tmp/none"):
            self.expect(f"{command} --request-timeout=20s" if "port" in command else command,
                        re.compile("[Ee]rror"), status=1)
        self.expect("top pods", "Metrics API not available", status=1)
        self.expect("top nodes", "Metrics API not available", status=1)

    def access(self):
        self.expect("auth whoami", "kubernetes-admin")
        self.expect("auth can-i create pods", "yes")
        self.expect("auth can-i delete nodes --as=ann", "no", status=1)
        self.expect("auth can-i get nodes --as=ann", "yes")
        self.expect("auth can-i get /metrics --as=ann", "yes")
        self.expect("auth can-i --list --as=ann", re.compile(r"nodes +\[\] +\[\] +\[get\]"))
        self.expect("get secrets --as=ann", "Error from server (Forbidden)", 'User "ann" cannot list '
                    'resource "secrets" in API group "" in the namespace "default"', status=1)
        self.expect("auth reconcile -f -", "reconciled", stdin=manifest({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": {"name": "reader", "namespace": "default"},
            "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]}))
        token = self.expect("create token robot").strip()
        self.expect(["auth", "whoami", f"--token={token}", f"--server={self.server.url}",
                     "--kubeconfig=/dev/null", "--insecure-skip-tls-verify"],
                    "system:serviceaccount:default:robot")

    def raw(self):
        self.expect("get --raw /metrics", "apiserver_request_total")
        self.expect("get --raw /healthz", "ok")
        self.expect("get --raw /readyz?verbose", "readyz check passed")
        self.expect("get --raw /openapi/v3", '"paths"')
        self.expect("get --raw /apis/apps/v1/namespaces/default/deployments/web", '"Deployment"')
        self.expect("get --raw /nope", "could not find the requested resource", status=1)
        self.expect("create --raw /api/v1/namespaces/default/configmaps -f -", '"raw"',
                    stdin=manifest(config("raw")))
        self.expect("delete --raw /api/v1/namespaces/default/configmaps/raw", '"Success"')

    def delete(self):
        def owned(name, block):
            top_one = self.post("/api/v1/namespaces/default/configmaps", config(name))
            self.post("/api/v1/namespaces/default/configmaps", config(f"{name}-part", ownerReferences=[
                {"apiVersion": "v1", "kind": "ConfigMap", "name": name,
                 "uid": top_one["metadata"]["uid"], "blockOwnerDeletion": block}]))

        for how in ("background", "foreground"):
            owned(how, True)
            self.expect(f"delete cm {how} --cascade={how}", f'configmap "{how}" deleted')
            self.expect(f"wait --for=delete cm/{how}-part --timeout=60s")
        owned("orphan", False)
        self.expect("delete cm orphan --cascade=orphan", "deleted")
        self.expect("get cm orphan-part -o name", "configmap/orphan-part")
        self.expect("delete cm settings --dry-run=server", "deleted (server dry run)")
        self.expect("get cm settings -o name", "configmap/settings")
        self.expect("delete cm -l mine=no", 'configmap "ap" deleted')
        self.expect("delete cm/one secret/keys", 'configmap "one" deleted', 'secret "keys" deleted')
        self.expect("delete pod solo --grace-period=0 --force", 'pod "solo" force deleted')
        self.expect("delete job --all", 'job.batch "once" deleted')
        self.expect("delete deploy web --wait=false", 'deployment.apps "web" deleted')
        self.expect("delete -f -", 'configmap "settings" deleted', stdin=manifest(config("settings")))
        self.expect("delete cm none", "not found", status=1)
        self.expect("delete cm none --ignore-not-found")
        self.expect("delete ns team --timeout=60s", 'namespace "team" deleted')
        self.expect("delete node n1", 'node "n1" deleted')
        self.expect("wait --for=delete rs --all --timeout=60s")


with Scratch() as scratch:
    with Server(program, scratch.file("data")) as server:
        tour = Tour(server, scratch)
        for part in (tour.create, tour.show, tour.watch, tour.describe, tour.explain, tour.apply,
                     tour.change, tour.rollouts, tour.wait, tour.nodes, tour.logs, tour.access,
                     tour.raw, tour.delete):
            part()
tap.done()
