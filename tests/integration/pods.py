#!/usr/bin/env python3
"""Pods as processes of the host: how they run, end, start again, and survive whoever is killed.

pods.py APISERVER POD_RUNNER SHIM
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from server import Server  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402

apiserver, runner_program, shim_program = sys.argv[1:4]
tap = Tap()
ROOT = os.geteuid() == 0
NODE = "node-1"


def processes(text):
    """Pids whose command line has the text, but not ours and no shims."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                line = f.read().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in line and int(pid) != os.getpid() and "kubectl" not in line:
            found.append(int(pid))
    return found


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Runner:
    """The pod runner on one data folder."""

    def __init__(self, server, data, libexec, **options):
        self.argv = [runner_program, server.kubeconfig, data, libexec,
                     *(f"{k.replace('_', '-')}={v}" for k, v in options.items())]
        self.process = None

    def start(self):
        self.process = subprocess.Popen(self.argv, stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()  # it is set up, and waits for signals
        self.process.stdout.close()
        return self

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()
            return None


class Pods:
    """What a user does with pods, and what is seen of them."""

    def __init__(self, server, data):
        self.server, self.data = server, data

    def create(self, name, script=None, container=None, annotations=None, **spec):
        """A pod with one container that runs a script, unless its containers are given."""
        one = {"name": "c", "image": "host", **({"command": ["sh", "-c", script]} if script else {}),
               **(container or {})}
        pod = {"apiVersion": "v1", "kind": "Pod",
               "metadata": {"name": name, "labels": {"app": name}, "annotations":
                            {"orlop.io/host-process": "true"} if annotations is None else annotations},
               "spec": {"nodeName": NODE, "containers": [one], **spec}}
        return self.server.create("/api/v1/namespaces/default/pods", pod)

    def get(self, name):
        status, pod = self.server.get(f"/api/v1/namespaces/default/pods/{name}")
        return pod if status == 200 else None

    def status(self, name):
        return (self.get(name) or {}).get("status", {})

    def container(self, name, container="c"):
        status = self.status(name)
        for entry in status.get("containerStatuses", []) + status.get("initContainerStatuses", []):
            if entry["name"] == container:
                return entry
        return {}

    def until(self, name, condition, what, seconds=60):
        """Waits for a condition of the pod's status; a case."""
        done = wait_for(lambda: condition(self.status(name)), seconds)
        return tap.ok(done, what, json.dumps(self.status(name), indent=1))

    def phase(self, name, phase, what):
        return self.until(name, lambda s: s.get("phase") == phase, what)

    def waits(self, name, reason, what):
        wait_for(lambda: self.container(name).get("state", {}).get("waiting", {}).get("reason")
                 == reason)
        state = self.container(name).get("state", {}).get("waiting", {})
        tap.equal(state.get("reason"), reason, what)
        return state.get("message", "")

    def log(self, name, *flags):
        return self.server.kubectl("logs", name, *flags).stdout

    def events(self, name):
        _, events = self.server.get("/api/v1/namespaces/default/events?fieldSelector="
                                    f"involvedObject.name={name}")
        return {(e["reason"], e["message"]) for e in events["items"]}

    def sees_event(self, name, reason, text, what):
        found = wait_for(lambda: [m for r, m in self.events(name) if r == reason and text in m], 30)
        tap.ok(found, what, self.events(name))

    def remove(self, *names):
        result = self.server.kubectl("delete", "pod", *names, "--timeout=60s")
        wait_for(lambda: all(self.get(n) is None for n in names))
        return result

    def folders_gone(self, uid, name):
        return (not os.path.exists(f"{self.data}/pods/.state/{uid}")
                and not os.path.exists(f"{self.data}/pods/default/{name}"))


def marker(name):
    """A word in a command line that only this test's processes have."""
    return f"orlop-test-{os.getpid()}-{name}"


def test_life(pods):
    pod = pods.create("simple", "echo hello $(NAME) $NAME on $POD_IP; echo second >&2; "
                      "trap 'echo bye; exit 0' TERM; while :; do sleep 0.1; done",
                      {"env": [{"name": "NAME", "value": "you"}]})
    uid = pod["metadata"]["uid"]
    pods.phase("simple", "Running", "a pod runs")
    status = pods.status("simple")
    tap.ok(re.match(r"127\.10\.3\.\d+$", status["podIP"]), "it has an address", status)
    tap.equal(status["hostIP"], "127.0.0.1", "and its node's")
    tap.equal(status["qosClass"], "BestEffort", "and a class")
    wait = pods.server.kubectl("wait", "pod/simple", "--for=condition=Ready", "--timeout=30s")
    tap.ran(wait, "kubectl wait", stdout="condition met")
    wait_for(lambda: "second" in pods.log("simple"))
    tap.equal(pods.log("simple"), f"hello you you on {status['podIP']}\nsecond\n", "kubectl logs")
    stamped = pods.log("simple", "--timestamps").splitlines()[0]
    tap.ok(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z hello", stamped), "with times", stamped)
    described = pods.server.kubectl("describe", "pod", "simple").stdout
    tap.ok("Running" in described and "orlop://" in described, "kubectl describe", described)
    pods.sees_event("simple", "Started", "Started container c", "the start is an event")
    following = pods.server.kubectl_begin("logs", "-f", "simple")
    tap.equal(following.stdout.readline(), f"hello you you on {status['podIP']}\n", "logs -f")
    tap.ran(pods.remove("simple"), "kubectl delete", stdout="deleted")
    rest = following.stdout.read()
    following.wait(30)
    tap.ok("second" in rest, "logs -f ends with the pod", rest)
    tap.ok(wait_for(lambda: pods.folders_gone(uid, "simple")), "nothing is left on disk")
    pods.sees_event("simple", "Killing", "Stopping container c", "the stop is an event")


def test_ends(pods):
    pods.create("good", "exit 0", restartPolicy="Never")
    pods.create("bad", "echo oh; exit 3", {"terminationMessagePolicy": "FallbackToLogsOnError"},
                restartPolicy="Never")
    pods.create("signal", "kill -SEGV $$$$", restartPolicy="Never")
    pods.create("none", None, {"command": ["/no/such/program"]}, restartPolicy="Never")
    pods.phase("good", "Succeeded", "a program that succeeds")
    tap.equal(pods.container("good")["state"]["terminated"]["reason"], "Completed", "Completed")
    pods.phase("bad", "Failed", "one that fails")
    end = pods.container("bad")["state"]["terminated"]
    tap.equal((end["exitCode"], end["reason"], end.get("message")), (3, "Error", "oh\n"),
              "its status, and its last words")
    pods.phase("signal", "Failed", "one that crashes")
    end = pods.container("signal")["state"]["terminated"]
    tap.equal((end["exitCode"], end["signal"]), (139, 11), "its signal")
    pods.phase("none", "Failed", "one that is not there")
    end = pods.container("none")["state"]["terminated"]
    tap.equal((end["exitCode"], end["reason"]), (128, "ContainerCannotRun"), "it cannot run")
    tap.ok("/no/such/program" in end["message"], "and that says which", end)
    pods.sees_event("none", "Failed", "cannot run /no/such/program", "as an event")
    # Children that a program leaves behind go with it.
    mark = marker("left")
    pods.create("leaves", f"(setsid sh -c 'sleep 1000; : {mark}' &) ; (setsid setsid sh -c "
                f"'sleep 1000; : {mark}' &) ; sleep 0.2; exit 0", restartPolicy="Never")
    pods.phase("leaves", "Succeeded", "one that leaves processes behind")
    tap.equal(processes(mark), [], "they are gone when it has ended")
    pods.remove("good", "bad", "signal", "none", "leaves")


def test_restarts(pods):
    count = f"{pods.data}/count"
    pods.create("crash", f"echo try >> {count}; echo run $(wc -l < {count}); exit 1",
                terminationGracePeriodSeconds=1)
    pods.until("crash", lambda s: s.get("containerStatuses", [{}])[0].get("restartCount", 0) >= 2,
               "a program that fails is started again")
    message = pods.waits("crash", "CrashLoopBackOff", "and waits longer each time")
    tap.ok("restarting failed container=c pod=crash_default" in message, "it says so", message)
    pods.sees_event("crash", "BackOff", "Back-off restarting failed container c", "as an event")
    following = pods.server.kubectl("logs", "-f", "crash")
    tap.ran(following, "logs -f ends with the instance", stdout="run ")
    tap.equal(pods.container("crash")["lastState"]["terminated"]["exitCode"], 1, "the last end")
    wait_for(lambda: pods.log("crash", "--previous"))
    previous, current = pods.log("crash", "--previous"), pods.log("crash")
    tap.ok(previous.startswith("run ") and current.startswith("run ") and previous != current,
           "kubectl logs --previous", previous + current)
    pods.remove("crash")
    with open(count, encoding="ascii") as f:
        tries = len(f.readlines())
    pods.create("once", f"test -e {count}.2 && exit 0; touch {count}.2; exit 1",
                restartPolicy="OnFailure")
    pods.phase("once", "Succeeded", "OnFailure, until it succeeds")
    tap.equal(pods.container("once")["restartCount"], 1, "with one restart")
    pods.remove("once")
    tap.ok(tries >= 3, "each try ran once", tries)


def test_order(pods):
    trace = f"{pods.data}/trace"
    pods.create("order", f"echo main >> {trace}; exec sleep 1000", terminationGracePeriodSeconds=2,
                initContainers=[
                    {"name": "one", "image": "host", "command":
                     ["sh", "-c", f"sleep 0.2; echo one >> {trace}"]},
                    {"name": "two", "image": "host", "command":
                     ["sh", "-c", f"echo two >> {trace}; test $(grep -c two {trace}) = 2"]}])
    pods.phase("order", "Running", "a pod with init containers")
    wait_for(lambda: "main" in open(trace, encoding="ascii").read())
    with open(trace, encoding="ascii") as f:
        tap.equal(f.read().split(), ["one", "two", "two", "main"], "they run in order, to success")
    inits = pods.status("order")["initContainerStatuses"]
    tap.equal([(s["name"], s["restartCount"], s["ready"]) for s in inits],
              [("one", 0, True), ("two", 1, True)], "and have statuses")
    pods.remove("order")
    pods.create("several", None, None, containers=[
        {"name": "a", "image": "host", "command": ["sleep", "1000"]},
        {"name": "b", "image": "host", "command": ["sh", "-c", "exit 0"]}], restartPolicy="Never",
                terminationGracePeriodSeconds=1)
    pods.until("several", lambda s: [c.get("ready") for c in s.get("containerStatuses", [])]
               == [True, False], "several containers")
    tap.equal(pods.status("several")["phase"], "Running", "it runs while one does")
    ready = {c["type"]: c for c in pods.status("several")["conditions"]}["Ready"]
    tap.equal((ready["status"], ready["message"]), ("False", "containers with unready status: [b]"),
              "and is not ready")
    pods.remove("several")


def test_stop(pods):
    mark = marker("stubborn")
    pods.create("stubborn", f"trap '' TERM; (trap '' TERM; sleep 1000; : {mark}) & while :; do sleep "
                f"0.1; done; : {mark}", terminationGracePeriodSeconds=1)
    pods.phase("stubborn", "Running", "a program that does not want to end")
    wait_for(lambda: len(processes(mark)) >= 2)
    begun = time.monotonic()
    pods.remove("stubborn")
    tap.ok(wait_for(lambda: not processes(mark), 30), "is killed with its children")
    tap.ok(time.monotonic() - begun >= 0.9, "after its grace", time.monotonic() - begun)
    note = f"{pods.data}/hook"
    pods.create("hook", f"trap 'echo term >> {note}; exit 0' TERM; while :; do sleep 0.1; done",
                {"lifecycle": {"preStop": {"exec": {"command": [
                    "sh", "-c", f"sleep 0.3; echo hook $VALUE >> {note}"]}}},
                 "env": [{"name": "VALUE", "value": "7"}]})
    pods.phase("hook", "Running", "a pod with a hook")
    pods.remove("hook")
    wait_for(lambda: os.path.exists(note) and "term" in open(note, encoding="ascii").read())
    with open(note, encoding="ascii") as f:
        tap.equal(f.read(), "hook 7\nterm\n", "the hook runs before the signal, as the container")
    pods.create("deadline", "exec sleep 1000", activeDeadlineSeconds=1, restartPolicy="Never",
                terminationGracePeriodSeconds=1)
    pods.phase("deadline", "Failed", "activeDeadlineSeconds")
    tap.equal(pods.status("deadline")["reason"], "DeadlineExceeded", "say why")
    pods.remove("deadline")
    # Somebody else holds on to the object: the container goes, the object is not ours to remove.
    mark = marker("held")
    pods.create("held", f"trap 'exit 5' TERM; while :; do sleep 0.1; done; : {mark}")
    pods.server.kubectl("patch", "pod", "held", "-p", '{"metadata":{"finalizers":["x.io/y"]}}')
    pods.phase("held", "Running", "a pod with a finalizer")
    wait_for(lambda: processes(mark))
    pods.server.kubectl("delete", "pod", "held", "--wait=false")
    pods.until("held", lambda s: s.get("containerStatuses", [{}])[0].get("state", {})
               .get("terminated", {}).get("exitCode") == 5, "is stopped, and its end is told")
    tap.equal(pods.status("held")["phase"], "Failed", "it has failed")
    tap.equal(processes(mark), [], "nothing of it runs")
    pods.server.kubectl("patch", "pod", "held", "--type=merge", "-p",
                        '{"metadata":{"finalizers":null}}')
    tap.ok(wait_for(lambda: pods.get("held") is None), "and is gone when it is let go")
    # One of the same name does not begin before the other is gone.
    trace = f"{pods.data}/same"
    script = f"echo start >> {trace}; trap 'sleep 0.5; echo end >> {trace}; exit' TERM; " \
             "while :; do sleep 0.1; done"
    pods.create("same", script)
    pods.phase("same", "Running", "a pod")
    wait_for(lambda: os.path.exists(trace))
    pods.server.kubectl("delete", "pod", "same", "--wait=false", "--force", "--grace-period=0")
    wait_for(lambda: pods.get("same") is None)
    pods.create("same", script)
    pods.phase("same", "Running", "and another of its name")
    wait_for(lambda: len(open(trace, encoding="ascii").readlines()) >= 3)
    with open(trace, encoding="ascii") as f:
        lines = f.read().split()
    tap.ok(lines in (["start", "end", "start"], ["start", "start"]), "one after the other", lines)
    pods.remove("same")


def test_probes(pods):
    ready = f"{pods.data}/ready"
    probe = {"exec": {"command": ["test", "-e", ready]}, "periodSeconds": 1, "failureThreshold": 1}
    pods.create("probed", "exec sleep 1000", {"readinessProbe": probe}, terminationGracePeriodSeconds=1)
    pods.sees_event("probed", "Unhealthy", "Readiness probe failed", "a probe that fails is an event")
    tap.ok(not pods.container("probed")["ready"], "and it is not ready")
    open(ready, "w", encoding="ascii").close()
    pods.until("probed", lambda s: s["containerStatuses"][0]["ready"], "until it succeeds")
    os.remove(ready)
    pods.until("probed", lambda s: not s["containerStatuses"][0]["ready"], "or fails again")
    pods.remove("probed")
    pods.create("alive", "touch $F; sleep 1000", {
        "env": [{"name": "F", "value": f"{pods.data}/alive"}],
        "livenessProbe": {"exec": {"command": ["sh", "-c", "test -e $F"]}, "periodSeconds": 1,
                          "failureThreshold": 1, "initialDelaySeconds": 1}},
                terminationGracePeriodSeconds=1)
    pods.phase("alive", "Running", "a liveness probe sees the container's environment")
    wait_for(lambda: os.path.exists(f"{pods.data}/alive"))
    os.remove(f"{pods.data}/alive")
    pods.until("alive", lambda s: s["containerStatuses"][0]["restartCount"] >= 1,
               "one that fails restarts the container")
    pods.sees_event("alive", "Killing", "failed liveness probe, will be restarted", "and says so")
    pods.remove("alive")
    serve = ["python3", "-u", "-m", "http.server", "--bind", "$(POD_IP)", "8123"]
    pods.create("web", None, {
        "command": serve, "ports": [{"containerPort": 8123, "name": "web"}],
        "startupProbe": {"tcpSocket": {"port": "web"}, "periodSeconds": 1, "failureThreshold": 60},
        "readinessProbe": {"httpGet": {"path": "/", "port": "web", "httpHeaders": [
            {"name": "Host", "value": "example.com"}, {"name": "X-Test", "value": "1"}]},
                           "periodSeconds": 1,
                           "timeoutSeconds": 5}},
                terminationGracePeriodSeconds=1)
    pods.until("web", lambda s: s.get("containerStatuses", [{}])[0].get("ready"),
               "tcpSocket and httpGet")
    pods.remove("web")
    pods.create("grpc", "exec sleep 1000", {"livenessProbe": {"grpc": {"port": 1}}})
    message = pods.waits("grpc", "CreateContainerConfigError", "grpc is refused")
    tap.ok("grpc are not supported" in message, "with what to do", message)
    pods.remove("grpc")


def test_refused(pods):
    pods.create("foreign", None, {"image": "nginx:1.25"}, annotations={})
    message = pods.waits("foreign", "ErrImageNeverPull", "a foreign image does not run")
    tap.ok("nginx:1.25" in message and "orlop.io/host-process" in message, "it says what to do", message)
    tap.equal(pods.status("foreign")["phase"], "Pending", "it is Pending")
    pods.sees_event("foreign", "Failed", "cannot run here", "and an event")
    pods.create("own", None, {"image": "registry:5000/orlop/orlop-target:9", "args": [
        "target", "serve", "--portal", "$(POD_IP)"]}, annotations={})
    pods.phase("own", "Running", "an image of ours is our program")
    wait_for(lambda: pods.log("own"))
    tap.equal(pods.log("own"), f"target target serve --portal {pods.status('own')['podIP']}\n", "with its arguments")
    for name, container, said in (
            ("file", {"args": ["target", "serve", "--store", "file:/etc/shadow"]}, "--store"),
            ("key", {"args": ["target", "serve", "--key-file", "/etc/shadow"]}, "leads out of its volumes"),
            ("other", {"args": ["target", "drain"]}, "only what Orlop's controllers run"),
            ("preload", {"args": ["target", "serve"], "env": [{"name": "LD_PRELOAD", "value": "/x"}]}, "LD_PRELOAD"),
            ("probe", {"args": ["target", "serve"], "livenessProbe": {"exec": {"command": ["cat", "/etc/shadow"]}}},
             "runs no command of the host")):
        pods.create(f"own-{name}", None, {"image": "orlop/orlop-target:9", **container}, annotations={})
        message = pods.waits(f"own-{name}", "ArgumentsNotAllowed", f"an image of ours with a foreign {name}")
        tap.ok(said in message, "is refused with why", message)
        pods.remove(f"own-{name}")
    pods.create("missing", None, {"image": "orlop-pool"}, annotations={})
    message = pods.waits("missing", "ErrImageNeverPull", "one that is not installed")
    tap.ok("orlop-pool" in message, "is named", message)
    pods.create("config", "exec sleep 1000", {"envFrom": [{"configMapRef": {"name": "later"}}]},
                terminationGracePeriodSeconds=1)
    message = pods.waits("config", "CreateContainerConfigError", "a ConfigMap that is missing")
    tap.ok("later" in message, "is named", message)
    pods.server.kubectl("create", "configmap", "later", "--from-literal=A=1")
    pods.phase("config", "Running", "and waited for")
    pods.remove("foreign", "own", "missing", "config")


def test_volumes(pods):
    if not ROOT:
        return
    pods.server.kubectl("create", "configmap", "files", "--from-literal=one=1", "--from-literal=two=2")
    pods.server.kubectl("create", "secret", "generic", "hidden", "--from-literal=key=secret")
    secret = f"{pods.data}/host"
    os.makedirs(secret, exist_ok=True)
    script = ("cat /orlop-test/config/one /orlop-test/secret/key; echo; cat /orlop-test/down/labels; "
              "echo; echo in > /orlop-test/shared/file; echo host > /orlop-test/host/file; "
              "touch /orlop-test/config/x 2>/dev/null || echo read-only; "
              "cat /var/run/secrets/kubernetes.io/serviceaccount/namespace; echo; "
              "wc -c < /var/run/secrets/kubernetes.io/serviceaccount/token; "
              "cat /orlop-test/sub; echo; exec sleep 1000")
    pods.create("volumes", script, {"volumeMounts": [
        {"name": "config", "mountPath": "/orlop-test/config", "readOnly": True},
        {"name": "secret", "mountPath": "/orlop-test/secret"},
        {"name": "down", "mountPath": "/orlop-test/down"},
        {"name": "shared", "mountPath": "/orlop-test/shared"},
        {"name": "host", "mountPath": "/orlop-test/host"},
        {"name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"},
        {"name": "config", "mountPath": "/orlop-test/sub", "subPath": "two"}],
        "readinessProbe": {"exec": {"command": ["test", "-e", "/orlop-test/shared/file"]},
                           "periodSeconds": 1}},
                terminationGracePeriodSeconds=1, volumes=[
        {"name": "config", "configMap": {"name": "files"}},
        {"name": "secret", "secret": {"secretName": "hidden", "defaultMode": 256}},
        {"name": "down", "downwardAPI": {"items": [
            {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        {"name": "shared", "emptyDir": {}},
        {"name": "host", "hostPath": {"path": secret, "type": "Directory"}},
        {"name": "token", "projected": {"sources": [
            {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}},
            {"configMap": {"name": "kube-root-ca.crt"}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef":
                                        {"fieldPath": "metadata.namespace"}}]}}]}}])
    pods.until("volumes", lambda s: s.get("containerStatuses", [{}])[0].get("ready"),
               "volumes; probes see them, too")
    wait_for(lambda: len(pods.log("volumes").splitlines()) >= 6)
    lines = pods.log("volumes").splitlines()
    tap.equal(lines[:4] + lines[5:], ["1secret", 'app="volumes"', "read-only", "default", "2"],
              "what they hold")
    tap.ok(int(lines[4]) > 100, "a token", lines)
    with open(f"{secret}/file", encoding="ascii") as f:
        tap.equal(f.read(), "host\n", "hostPath is the host's")
    tap.ok(not os.path.exists("/orlop-test") and not os.path.exists("/var/run/secrets/kubernetes.io"),
           "nothing of it is seen on the host")
    uid = pods.get("volumes")["metadata"]["uid"]
    pods.server.kubectl("patch", "configmap", "files", "-p", '{"data":{"one":"changed"}}')
    path = f"{pods.data}/pods/.state/{uid}/volumes/config/one"
    tap.ok(wait_for(lambda: open(path, encoding="ascii").read() == "changed", 30),
           "a ConfigMap that changes is followed")
    pods.remove("volumes")
    tap.ok(wait_for(lambda: pods.folders_gone(uid, "volumes")), "its folders are gone")
    with open(f"{secret}/file", encoding="ascii") as f:
        tap.equal(f.read(), "host\n", "and hostPath is not")


def test_crashes(pods, runner):
    """kill -9 of everybody in turn."""
    trace, mark = f"{pods.data}/crashes", marker("crashes")
    script = f"echo start >> {trace}; sleep 1000; : {mark}"
    pods.create("keeps", script, terminationGracePeriodSeconds=1)
    pods.create("ends", f"echo start >> {trace}.2; while ! test -e {trace}.go; do sleep 0.05; done; "
                "exit 42", restartPolicy="Never")
    pods.phase("keeps", "Running", "a pod")
    pods.phase("ends", "Running", "and another")
    wait_for(lambda: os.path.exists(trace) and os.path.exists(f"{trace}.2"))
    before = pods.status("keeps")
    runner.kill()
    pid = processes(mark)[0]
    tap.ok(alive(pid), "a container survives its runner")
    open(f"{trace}.go", "w", encoding="ascii").close()
    uid = pods.get("ends")["metadata"]["uid"]
    record = f"{pods.data}/pods/.state/{uid}/containers/c/0.status"
    wait_for(lambda: "exit 42" in open(record, encoding="ascii").read())
    runner.start()
    pods.phase("ends", "Failed", "an end that nobody saw is not lost")
    tap.equal(pods.container("ends")["state"]["terminated"]["exitCode"], 42, "nor is its status")
    tap.equal(pods.container("ends")["restartCount"], 0, "nor did it run again")
    pods.until("keeps", lambda s: s == before, "the one that runs is as it was")
    tap.ok(alive(pid), "it is the same process")
    with open(trace, encoding="ascii") as f:
        tap.equal(f.read(), "start\n", "that was started once")
    # The process.
    os.kill(pid, signal.SIGKILL)
    pods.until("keeps", lambda s: s["containerStatuses"][0]["restartCount"] == 1,
               "a process that is killed is started again")
    tap.equal(pods.container("keeps")["lastState"]["terminated"]["exitCode"], 137, "137 is its end")
    # The shim.
    wait_for(lambda: processes(mark))
    pid, uid = processes(mark)[0], pods.get("keeps")["metadata"]["uid"]
    shim = shim_of(pid)
    tap.ok("orlop-shim" in os.readlink(f"/proc/{shim}/exe"), "its parent is a shim")
    os.kill(shim, signal.SIGKILL)
    pods.until("keeps", lambda s: s["containerStatuses"][0]["restartCount"] == 2,
               "a shim that is killed: the container starts again")
    tap.equal(pods.container("keeps")["lastState"]["terminated"]["reason"], "ContainerStatusUnknown",
              "how it ended is not known")
    tap.ok(not alive(pid), "and the old process is gone")
    wait_for(lambda: processes(mark))
    tap.equal(len(processes(mark)), 1, "so there is one")
    # A shim whose program has cleared its environment.
    bare = marker("bare")
    pods.create("bare", None, {"command": ["env", "-i", "sh", "-c", f"sleep 1000; : {bare}"]},
                terminationGracePeriodSeconds=1)
    wait_for(lambda: processes(bare))
    pods.phase("bare", "Running", "a program that hides")
    pid = processes(bare)[0]
    os.kill(shim_of(pid), signal.SIGKILL)
    pods.until("bare", lambda s: s["containerStatuses"][0]["restartCount"] == 1, "starts again")
    wait_for(lambda: processes(bare))
    tap.ok(not alive(pid) and len(processes(bare)) == 1, "in place of the first", processes(bare))
    pods.remove("bare")
    # Runner and shim and process, and a pod that is deleted meanwhile.
    runner.kill()
    pods.server.kubectl("delete", "pod", "keeps", "--force", "--grace-period=0")
    runner.start()
    tap.ok(wait_for(lambda: not processes(mark) and pods.folders_gone(uid, "keeps"), 30),
           "a pod that was deleted while nobody looked is stopped")
    pods.remove("ends")
    # Over and over.
    pods.create("often", f"echo start >> {trace}.3; sleep 1000; : {mark}",
                terminationGracePeriodSeconds=1)
    for _ in range(5):
        time.sleep(0.15)
        runner.kill()
        runner.start()
    pods.phase("often", "Running", "a runner that is killed all the time starts it")
    wait_for(lambda: os.path.exists(f"{trace}.3"))
    with open(f"{trace}.3", encoding="ascii") as f:
        tap.equal(f.read(), "start\n", "once")
    pods.remove("often")
    tap.ok(wait_for(lambda: not processes(mark)), "and stops it")


def shim_of(pid):
    """The parent of a container's process."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        return int(f.read().rsplit(")", 1)[1].split()[1])


def test_memory(pods):
    mark = marker("small")
    pods.create("small", f"sleep 1000; : {mark}", terminationGracePeriodSeconds=1)
    pods.phase("small", "Running", "a pod")
    wait_for(lambda: processes(mark))
    uid = pods.get("small")["metadata"]["uid"]
    with open(shim_program, "rb") as f:
        sanitized = re.search(b"__[at]san_init", f.read())
    with open(f"/proc/{shim_of(processes(mark)[0])}/status", encoding="ascii") as f:
        kb = int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))
    if not sanitized:
        tap.ok(kb < 1024, "a shim is smaller than 1 MB", kb)
    pods.create("limited", "sleep 1000", {"resources": {"limits": {"memory": "64Mi", "cpu": "1"}}},
                terminationGracePeriodSeconds=1)
    pods.phase("limited", "Running", "a pod with limits")
    tap.equal(pods.status("limited")["qosClass"], "Guaranteed", "is Guaranteed")
    kinds = {c["type"]: c["status"] for c in pods.status("limited")["conditions"]}
    tap.ok(kinds.get("orlop.io/LimitsEnforced", "True") in ("True", "False"),
           "and says if they are not kept", kinds)
    pods.remove("small", "limited")
    tap.ok(wait_for(lambda: not os.path.exists(f"{pods.data}/pods/.state/{uid}")), "gone")


def test_not_allowed(pods, server, libexec):
    runner = Runner(server, pods.data, libexec, allow=0).start()
    try:
        pods.create("denied", "exit 0")
        message = pods.waits("denied", "HostCommandsNotAllowed", "a node may forbid host commands")
        tap.ok("--allow-host-commands" in message, "and says how to allow them", message)
        pods.remove("denied")
    finally:
        runner.stop()


def test_exit(pods, server, libexec):
    """What runs when everything ends."""
    mark = marker("exit")
    runner = Runner(server, pods.data, libexec).start()
    pods.create("stays", f"sleep 1000; : {mark}", terminationGracePeriodSeconds=1)
    pods.phase("stays", "Running", "a pod")
    wait_for(lambda: processes(mark))
    tap.equal(runner.stop(), 0, "a runner ends")
    tap.equal(len(processes(mark)), 1, "and leaves it running")
    runner = Runner(server, pods.data, libexec, stop=1).start()
    wait_for(lambda: pods.status("stays").get("phase") == "Running")
    tap.equal(runner.stop(), 0, "one that stops pods on exit")
    tap.equal(processes(mark), [], "leaves none")
    runner = Runner(server, pods.data, libexec).start()
    tap.ok(wait_for(lambda: processes(mark)), "the next starts it again")
    runner.kill()
    tap.ran(run(runner_program, "--stop", pods.data), "what was left by a crash can be stopped")
    tap.equal(processes(mark), [], "all of it")


def main():
    with Scratch() as scratch:
        data, libexec = scratch.file("data"), scratch.file("libexec")
        os.mkdir(libexec)
        shutil.copy(shim_program, f"{libexec}/orlop-shim")
        with open(f"{libexec}/orlop-target", "w", encoding="ascii") as f:
            f.write('#!/bin/sh\necho target "$@"\nexec sleep 1000\n')
        os.chmod(f"{libexec}/orlop-target", 0o755)
        with Server(apiserver, data) as server:
            pods = Pods(server, data)
            runner = Runner(server, data, libexec, backoff=200, backoff_max=2000,
                            refresh=300).start()
            try:
                for test in (test_life, test_ends, test_restarts, test_order, test_stop, test_probes,
                             test_refused, test_volumes, test_memory):
                    test(pods)
                test_crashes(pods, runner)
                tap.equal(runner.stop(), 0, "it stops when told")
                test_not_allowed(pods, server, libexec)
                test_exit(pods, server, libexec)
            finally:
                if runner.process.poll() is None:
                    runner.kill()
                run(runner_program, "--stop", data)
        tap.equal(processes(f"orlop-test-{os.getpid()}-"), [], "no process is left")
        tap.equal(processes(f"{libexec}/orlop-shim"), [], "no shim is left")
    tap.done()


main()
