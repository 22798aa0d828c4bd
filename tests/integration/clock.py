#!/usr/bin/env python3
"""Somebody sets the clock while a system runs: an hour and a day, forward and back. No node is lost, no leader changes, no
Pod ends, and what is asked for after that is done as before.

The API server, the controllers and the nodes' agents see the clock that is set (libfaketime, on the wall clock alone), as do
a target and its replicas without an API in the second half; what runs in Pods sees the right one, as on another machine.

clock.py ORLOP [all]      without `all` only an hour, there and back
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from jiva import Jiva, resize, volume, wake  # noqa: E402
from namespaces import own_network  # noqa: E402
from replicated import Volume  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402

orlop, tap = sys.argv[1], Tap()
KEPT = ("before", "deadline")  # applications that go on as they are
LIBRARY = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1"
JUMPS = [("back an hour", -3600), ("forward two hours", 3600)]
if sys.argv[2:] == ["all"]:
    JUMPS += [("back to the right time", 0), ("forward a day", 86400), ("back two days", -86400)]


class Clock:
    """What programs that are started from now on take for the time."""

    def __init__(self, path):
        self.path = path
        self.set(0)
        os.environ.update(LD_PRELOAD=LIBRARY, FAKETIME_TIMESTAMP_FILE=path, FAKETIME_NO_CACHE="1",
                          FAKETIME_DONT_FAKE_MONOTONIC="1")

    def set(self, seconds):
        with open(self.path + ".new", "w", encoding="ascii") as f:
            f.write(f"{seconds:+d}\n")
        os.replace(self.path + ".new", self.path)


def deployment(name):
    """It is available when its Pod has been ready for two seconds, and has failed after a minute without progress."""
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": name}}, "minReadySeconds": 2, "progressDeadlineSeconds": 60,
                     "template": {"metadata": {"labels": {"app": name},
                                               "annotations": {"orlop.io/host-process": "true"}},
                                  "spec": {"containers": [{"name": "main", "image": "host", "command": ["sleep", "1000"]}]}}}}


def pod(name, command, **spec):
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "labels": {"app": name},
                         "annotations": {"orlop.io/host-process": "true"}},
            "spec": {"containers": [{"name": "main", "image": "host", "command": command}], **spec}}


def restarts(s, name):
    return sum(c["restartCount"] for p in s.get("pod", name) for c in p["status"].get("containerStatuses", []))


def state(s):
    """What must not change: since when nodes are ready, who leads, and which instances of which Pods run."""
    nodes = {n["metadata"]["name"]: [(c["status"], c["lastTransitionTime"]) for c in n["status"]["conditions"]
                                     if c["type"] == "Ready"] for n in s.get("nodes")}
    pods = {p["metadata"]["uid"]: [p["status"]["phase"]] + [(c["name"], c["restartCount"])
                                                            for c in p["status"].get("containerStatuses", [])]
            for p in s.get("pods", "-n", "default") if p["metadata"].get("labels", {}).get("app", "before") in KEPT}
    leads = {x["metadata"]["name"]: (x["spec"]["holderIdentity"], x["spec"].get("leaseTransitions"))
             for x in s.get("leases", "-A") if x["metadata"]["namespace"] != "kube-node-lease"}
    return {"nodes": nodes, "pods": pods, "leads": leads}


def renewals(s):
    return {x["metadata"]["name"]: x["metadata"]["resourceVersion"] for x in s.get("leases", "-n", "kube-node-lease")}


def check_jump(s, clock, number, name, seconds):
    loops = f"loops-{number}"  # a new one each time: pauses grow with every end
    s.apply(pod(loops, ["sleep", "1"]))
    tap.ok(wait_for(lambda: restarts(s, loops)), f"{name}: before that a Pod ends again and again", s.get("pod", loops))
    before, leases, ends = state(s), renewals(s), restarts(s, loops)
    clock.set(seconds)
    app = f"after-{number}"
    tap.ran(s.apply(deployment(app), resize(f"r{number}", "data", f"{128 + 64 * number}Mi")), f"{name}: objects are made")
    tap.ok(wait_for(lambda: s.get("deployment", app) and s.get("deployment", app)[0].get("status", {}).get(
        "availableReplicas") == 1, 90), f"{name}: a Deployment becomes available", s.get("deployment", app))
    done = s.phase(f"r{number}", "COMPLETED", "FAILED")
    tap.equal(done.get("phase"), "COMPLETED", f"{name}: a volume grows")
    tap.ran(s.bench("data", "-r", "50", "-n", "500", "-q", "8", "--verify"), f"{name}: and serves")
    tap.ok(wait_for(lambda: restarts(s, loops) > ends, 120), f"{name}: it is started again after its pause",
           s.get("pod", loops))
    s.kubectl("delete", "pod", loops, "--wait=false")
    tap.ok(wait_for(lambda: all(v != leases.get(n) for n, v in renewals(s).items())),
           f"{name}: nodes go on renewing their leases", renewals(s))
    tap.equal(state(s), before, f"{name}: no node was lost, nobody else leads, nothing was started again")


def check_lost_node(s, clock):
    """A node is silent for less than the time after which its replica is made anew: a clock that is set makes it no longer."""
    def homes():
        annotations = s.volume("data")["metadata"]["annotations"]
        return annotations["jiva.openebs.io/nodes"], annotations.get("jiva.openebs.io/stale-nodes", "")
    before, busy = homes(), {p["spec"]["nodeName"] for p in s.pods("jiva-controller", "data")}
    lost = next(p["spec"]["nodeName"] for p in s.pods("jiva-replica", "data") if p["spec"]["nodeName"] not in busy)
    agent = s.lose(lost)
    tap.ok(wait_for(lambda: dict(state(s)["nodes"])[lost][0][0] == "Unknown", 120), "a node is silent")
    tap.ok(wait_for(lambda: s.state("data")[0] != "Ready" and s.state("data")[1] == "RW"),
           "its volume serves without it", s.state("data"))
    clock.set(86400)
    leases = renewals(s)
    s.kubectl("annotate", "jivavolume", "data", "look=again")  # so that its controller does, long before two renewals
    for _ in range(2):
        wait_for(lambda old=leases: all(v != old[n] for n, v in renewals(s).items() if n != lost))
        leases = renewals(s)
    tap.equal(homes(), before, "forward a day: a node that is silent for a minute keeps its replica")
    wake(agent)
    tap.ok(s.ready("data"), "and goes on with it when it is back", s.volume("data"))


def check_system(scratch, clock):
    with Jiva(orlop, scratch.file("system"), "--nodes", "4") as s:
        s.apply(volume("data", "128Mi"), deployment("before"),
                pod("deadline", ["sleep", "1000"], activeDeadlineSeconds=1200))
        tap.ok(s.ready("data"), "a system with a volume", s.volume("data"))
        wait_for(lambda: s.get("deployment", "before")[0].get("status", {}).get("availableReplicas") == 1)
        tap.ok(wait_for(lambda: s.get("pod", "deadline")[0]["status"]["phase"] == "Running"), "and Pods")
        for number, (name, seconds) in enumerate(JUMPS, 1):
            check_jump(s, clock, number, name, seconds)
        if sys.argv[2:]:
            check_lost_node(s, clock)
        tap.equal(s.stop(), 0, "it ends in order")
        clock.set(-90000)
        s.start()
        tap.ok(s.ready("data"), "and starts again with a clock that was set back meanwhile", s.volume("data"))
        clock.set(0)


def check_volume(scratch, clock):
    """A target and its replicas: a client that writes all the time sees nothing of it."""
    os.mkdir(scratch.file("volume"))
    with Volume(os.path.dirname(orlop), scratch.file("volume")) as v:
        tap.ok(v.healthy(), "a target with three replicas", v.modes())
        epoch = v.status()["volumeStatus"][0]["epoch"]
        client = v.bench("-r", "30", "-q", "8", "-t", "6", "--verify", wait=False)
        for _, seconds in JUMPS:
            clock.set(seconds)
            v.written(200)
        text, errors = client.communicate(timeout=120)
        tap.equal(client.returncode, 0, "a client writes and reads while the clock is set")
        said = json.loads(text) if client.returncode == 0 else {"text": text + errors}
        tap.ok(said.get("reconnects") == 0 and said["latencyMicroseconds"]["write"]["max"] < 5e6, "and waits for nobody", said)
        now = v.status()["volumeStatus"][0]
        tap.equal((now["epoch"], v.modes()), (epoch, ["Healthy"] * 3), "no lease ended and no replica was lost")
        clock.set(-86400)
        v.target.kill()
        v.replicas[0].kill()
        v.replicas[0].start()
        v.target.start()
        tap.ok(v.healthy(), "what was killed comes back on a day before", v.modes())
        clock.set(0)


if not os.path.exists(LIBRARY):
    tap.skip("the clock is set", "it takes the package faketime")
elif not own_network():
    tap.skip("the clock is set", "it takes network namespaces, and so root")
else:
    with Scratch() as scratch_:
        the_clock = Clock(scratch_.file("offset"))
        check_volume(scratch_, the_clock)
        check_system(scratch_, the_clock)
tap.done()
