#!/usr/bin/env python3
"""kill -9 of everything that has a part in a Jiva volume's life, at every step.

jiva-crash.py PROGRAMS [N]      N: only each Nth step

The parts run as processes of this test, with the words that the controller wrote into its Deployments: so
each can be told to die at its Nth step (base/crash.h), one after the other, until it gets through. Whoever
dies is started again, and then: a resize ends in COMPLETED, with the size read back, or in FAILED with nothing
changed; the lock is free, and had one holder at a time. Then nobody dies, and the API fails instead.

A step before a write and one after it leave different things behind; those that a table goes through are
counted, so that a table that became shorter is noticed.
"""
import base64
import json
import os
import resource
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from failing_api import FAULTS, FailingApi  # noqa: E402
from jiva import LOCK, PATIENCE, resize, volume  # noqa: E402
from namespaces import own_network  # noqa: E402
from server import Server  # noqa: E402
from tap import Scratch, Tap, wait_for  # noqa: E402

programs = sys.argv[1]
stride = int(sys.argv[2]) if len(sys.argv) > 2 else 1
tap = Tap()
MEBI = 1 << 20
API = "/apis/openebs.io/v1alpha1/namespaces/default"
RUN = "/run/orlop"
PASSWORD = "node.session.auth.password"


class Part:
    """One of the programs: killed, and started again with the same words."""

    def __init__(self, world, name, words, limit=None):
        self.world, self.name, self.words, self.limit, self.process = world, name, words, limit, None

    def start(self, crash_at=None, limit=None):
        env = {**os.environ, "KUBECONFIG": self.world.kubeconfig}
        if crash_at:
            env["ORLOP_CRASH_AT"] = str(crash_at)

        def prepare():  # files that may not grow: as on a disk that is full
            if limit:
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        words = self.words() if callable(self.words) else self.words
        with open(self.world.log(self.name), "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                            stderr=log, env=env, preexec_fn=prepare)
        return self

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        if self.alive():
            self.process.kill()
        if self.process:
            self.process.wait()


class World:
    """An API server, the controllers, and the parts of one volume."""

    def __init__(self, server, scratch):
        self.server, self.scratch = server, scratch
        self.kubeconfig = server.kubeconfig  # of who is started next
        self.controller = Part(self, "controller", lambda: [
            f"{programs}/orlop-controller", "--kubeconfig", self.kubeconfig, "--health-port", "off",
            "--leader-elect=false", "--controllers", "jiva-volume-controller,jiva-volume-resize-controller"])
        self.parts = {"controller": self.controller}
        self.size, self.count = 64, 0

    def log(self, name):
        return self.scratch.file(f"{name}.log")

    def get(self, path):
        status, value = self.server.get(path)
        return value if status == 200 else {}

    def volume(self):
        return self.get(f"{API}/jivavolumes/v")

    def state(self):
        v = self.volume()
        return (v.get("status", {}).get("phase"), v.get("spec", {}).get("capacity"),
                v.get("status", {}).get("capacity"), v.get("metadata", {}).get("annotations", {}).get(LOCK, ""),
                v.get("spec", {}).get("resizeOrder"), v.get("status", {}).get("resize"))

    def settled(self, size):
        return self.state() == ("Ready", f"{size}Mi", f"{size}Mi", "", None, None)

    # The volume's parts, as the controller wants them.

    def args(self, end, index):
        spec = self.get(f"/apis/apps/v1/namespaces/default/deployments/v-{end}")["spec"]["template"]["spec"]
        words = spec["containers"][index]["args"]
        own = {"$(POD_IP)": "127.10.0.9", f"{RUN}/key/key": self.scratch.file("key"),
               f"{RUN}/chap/{PASSWORD}": self.scratch.file(PASSWORD),
               f"{RUN}/chap/{PASSWORD}_in": self.scratch.file(f"{PASSWORD}_in"),
               f"{RUN}/control/target.sock": self.scratch.file("t.sock"), f"{RUN}/control": self.scratch.path}
        return [own.get(w, w) for w in words]

    def replica_args(self, i):
        own = {f"{RUN}/data": self.scratch.file(f"r{i}"), "127.10.0.9": f"127.10.0.{i + 1}"}
        return [own.get(w, w) for w in self.args("rep", 0)]

    def make_parts(self):
        for secret, member in (("key", "key"), ("chap", PASSWORD), ("chap", f"{PASSWORD}_in")):
            text = self.get(f"/api/v1/namespaces/default/secrets/v-{secret}")["data"][member]
            self.scratch.file(member, base64.b64decode(text).decode())
        self.parts |= {
            "target": Part(self, "target", lambda: [f"{programs}/orlop-target", *self.args("ctrl", 0)]),
            "volume": Part(self, "volume", lambda: [f"{programs}/orlop-sidecar", *self.args("ctrl", 1)]),
            **{f"replica-{i}": Part(self, f"replica-{i}", lambda i=i: [f"{programs}/orlop-replica",
                                                                       *self.replica_args(i)]) for i in range(3)}}
        # The pod in which target and sidecar would be.
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {
            "name": "v-ctrl", "namespace": "default", "labels": {
                "openebs.io/cas-type": "jiva", "openebs.io/persistent-volume": "v",
                "openebs.io/component": "jiva-controller"}},
            "spec": {"containers": [{"name": "target", "image": "orlop-target"}]}}
        self.server.create("/api/v1/namespaces/default/pods", pod)
        self.server.ask("PATCH", "/api/v1/namespaces/default/pods/v-ctrl/status",
                        {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}},
                        content_type="application/merge-patch+json")
        for part in self.parts.values():
            if not part.alive():
                part.start()

    def end(self):
        for part in self.parts.values():
            part.kill()


def steps(world, what, who, least, attempt):
    """attempt(N) for each step of `who` until it gets through."""
    at = 1
    while attempt(at):
        at += stride
    begin(world, who, None)  # it would still die, later
    print(f"# {what}: {who} passed {at - 1} steps", flush=True)
    tap.ok(at - 1 >= least - stride, f"{what}: {who} has at least {least} steps", at - 1)


def where(world, who):
    with open(world.log(who), encoding="utf-8", errors="replace") as f:
        text = f.read()
    return text.rsplit("crash point ", 1)[-1].splitlines()[0] if "crash point" in text else "no crash"


def begin(world, who, at, limit=None):
    """Ends a part and starts it again, to die at that step."""
    part = world.parts[who]
    part.kill()
    return part.start(crash_at=at, limit=limit)


def try_resize(world, who, at, restart_first):
    """One resize during which `who` dies at that step; False when it got through without."""
    world.count += 1
    size, name = world.size + 4, f"r-{world.count}"
    if not wait_for(lambda: world.settled(world.size), PATIENCE):
        tap.ok(False, "the volume was settled before", world.state())
        return False
    world.parts[who].kill()
    if not restart_first:  # what starts finds all of its work
        world.server.create(f"{API}/jivavolumeresizes", resize(name, "v", f"{size}Mi"))
        begin(world, who, at)
    else:
        begin(world, who, at)
        wait_for(lambda: not world.parts[who].alive() or world.settled(world.size), PATIENCE)
        world.server.create(f"{API}/jivavolumeresizes", resize(name, "v", f"{size}Mi"))
    path = f"{API}/jivavolumeresizes/{name}"
    wait_for(lambda: not world.parts[who].alive() or world.get(path).get("status", {}).get("phase") == "COMPLETED"
             and world.settled(size), PATIENCE)
    died = not world.parts[who].alive()
    if died:
        tap.equal(world.parts[who].process.returncode, -9, f"resize: {who} dies at step {at}, {where(world, who)}")
        world.parts[who].start()
    ok = wait_for(lambda: world.get(path).get("status", {}).get("phase") == "COMPLETED" and world.settled(size),
                  PATIENCE)
    tap.ok(ok, f"resize: {size}Mi, whoever died", (world.get(path).get("status"), world.state()))
    world.size = size
    world.server.ask("DELETE", path)
    tap.ok(wait_for(lambda: not world.get(path), PATIENCE), "and the resize can go", world.get(path))
    return died


def try_failure(world, who, at):
    """One resize that cannot be done, as a replica's files may not grow."""
    world.count += 1
    name = f"f-{world.count}"
    path = f"{API}/jivavolumeresizes/{name}"
    if not wait_for(lambda: world.settled(world.size), PATIENCE):
        tap.ok(False, "the volume was settled before", world.state())
        return False
    world.parts[who].kill()
    world.server.create(f"{API}/jivavolumeresizes", resize(name, "v", f"{world.size + 512}Mi"))
    begin(world, who, at)

    def over():
        return world.get(path).get("status", {}).get("phase") == "FAILED" and world.settled(world.size)
    wait_for(lambda: not world.parts[who].alive() or over(), PATIENCE)
    died = not world.parts[who].alive()
    if died:
        world.parts[who].start()
    tap.ok(wait_for(over, PATIENCE), f"no room: FAILED and nothing changed, though {who} died at {at} "
           f"({where(world, who) if died else 'not at all'})", (world.get(path).get("status"), world.state()))
    world.server.ask("DELETE", path)
    wait_for(lambda: not world.get(path), PATIENCE)
    return died


def is_made(world, name):
    """The volume has all its parts, and says so."""
    kinds = [("/api/v1", "secrets", f"{name}-key"), ("/api/v1", "secrets", f"{name}-chap"),
             ("/api/v1", "services", f"{name}-svc"),
             ("/api/v1", "serviceaccounts", f"orlop-volume-{name}"),
             ("/apis/rbac.authorization.k8s.io/v1", "roles", f"{name}-ctrl"),
             ("/apis/rbac.authorization.k8s.io/v1", "rolebindings", f"{name}-ctrl"),
             ("/apis/apps/v1", "deployments", f"{name}-ctrl"), ("/apis/apps/v1", "deployments", f"{name}-rep")]
    v = world.get(f"{API}/jivavolumes/{name}")
    return v.get("iscsi", {}).get("targetPortal") and v.get("status", {}).get("phase") == "Pending" and all(
        world.get(f"{group}/namespaces/default/{kind}/{part}") for group, kind, part in kinds)


def try_create(world, at):
    """A volume that is made while the controller dies; its parts are those of a volume."""
    world.controller.kill()
    world.count += 1
    name = f"c-{world.count}"
    world.server.create(f"{API}/jivavolumes", volume(name, "16Mi"))
    world.controller.start(crash_at=at)
    there = lambda: is_made(world, name)  # noqa: E731

    def follow(what, path, done):
        wait_for(lambda: not world.controller.alive() or done(), PATIENCE)
        died = not world.controller.alive()
        if died:
            world.controller.start()
        tap.ok(wait_for(done, PATIENCE), f"{what}, though the controller died at {at} "
               f"({where(world, 'controller') if died else 'not at all'})", world.get(path))
        return died
    path = f"{API}/jivavolumes/{name}"
    died = follow("a volume is made", path, there)
    # And deleted: nobody runs its pods, so it goes at once. Its children go with it.
    world.controller.kill()
    world.server.ask("DELETE", path)
    world.controller.start(crash_at=at)
    died |= follow("and goes", path, lambda: not world.get(path))
    return died


def phase(world, name):
    return world.get(f"{API}/jivavolumeresizes/{name}").get("status", {}).get("phase")


def failing(world):
    """Nobody dies, but of the writes of controllers and sidecar each third is spoiled."""
    api = FailingApi(world.server, world.scratch.path)
    world.kubeconfig = api.kubeconfig
    try:
        for who in ("controller", "volume"):
            begin(world, who, None)
        tap.ok(wait_for(lambda: world.settled(world.size), PATIENCE), "behind an API that fails", world.state())
        api.every = 3
        for name, more in (("x-1", 4), ("x-2", 8), ("x-3", 12)):
            world.server.create(f"{API}/jivavolumeresizes", resize(name, "v", f"{world.size + more}Mi"))
        world.server.ask("DELETE", f"{API}/jivavolumeresizes/x-3")
        world.server.create(f"{API}/jivavolumes", volume("x", "16Mi"))
        world.size += 8
        tap.ok(wait_for(lambda: phase(world, "x-1") == phase(world, "x-2") == "COMPLETED" and world.settled(world.size)
                        and not world.get(f"{API}/jivavolumeresizes/x-3"), PATIENCE),
               "two resizes are COMPLETED, one that was deleted is gone, and the lock is free",
               (phase(world, "x-1"), phase(world, "x-2"), phase(world, "x-3"), world.state()))
        tap.ok(wait_for(lambda: is_made(world, "x"), PATIENCE), "a volume is made", world.get(f"{API}/jivavolumes/x"))
        world.server.ask("DELETE", f"{API}/jivavolumes/x")
        for name in ("x-1", "x-2"):
            world.server.ask("DELETE", f"{API}/jivavolumeresizes/{name}")
        tap.ok(wait_for(lambda: not world.get(f"{API}/jivavolumes/x") and not phase(world, "x-1")
                        and not phase(world, "x-2"), PATIENCE), "and goes, and the resizes", world.get(f"{API}/jivavolumes/x"))
        tap.equal(set(api.done), set(FAULTS), "each way to fail was met")
        print(f"# {api.writes} writes, spoiled: {api.done}")
    finally:
        world.kubeconfig = world.server.kubeconfig
        for who in ("controller", "volume"):
            world.parts[who].kill()
        api.close()


def holders(world, version):
    """Who had the lock, one after the other, since then."""
    found = []
    from server import Client  # noqa: E402
    client = Client(world.server)
    for event in client.events(f"{API}/jivavolumes?watch=1&fieldSelector=metadata.name%3Dv"
                               f"&resourceVersion={version}&timeoutSeconds=3"):
        holder = event["object"]["metadata"].get("annotations", {}).get(LOCK, "")
        if not found or found[-1] != holder:
            found.append(holder)
    client.close()
    return found


def main(world):
    world.controller.start()
    world.server.create(f"{API}/jivavolumes", volume("v", f"{world.size}Mi"))
    tap.ok(wait_for(lambda: world.get("/apis/apps/v1/namespaces/default/deployments/v-rep"), PATIENCE),
           "the controller has made the parts")
    world.make_parts()
    tap.ok(wait_for(lambda: world.settled(world.size), PATIENCE), "and they are a volume", world.volume())
    version = world.volume()["metadata"]["resourceVersion"]

    steps(world, "making", "controller", 20, lambda at: try_create(world, at))
    steps(world, "resize", "controller", 20, lambda at: try_resize(world, "controller", at, False))
    steps(world, "resize", "volume", 6, lambda at: try_resize(world, "volume", at, False))
    steps(world, "resize", "target", 2, lambda at: try_resize(world, "target", at, True))
    steps(world, "resize", "replica-1", 2, lambda at: try_resize(world, "replica-1", at, True))

    begin(world, "replica-2", None, limit=(world.size + 64) * MEBI)
    steps(world, "no room", "controller", 8, lambda at: try_failure(world, "controller", at))
    steps(world, "no room", "volume", 4, lambda at: try_failure(world, "volume", at))
    begin(world, "replica-2", None)

    failing(world)
    had = holders(world, version)
    tap.ok(had and all(not (a and b) for a, b in zip(had, had[1:])), "the lock went from one to nobody to the next",
           had)
    for name in world.parts:
        with open(world.log(name), encoding="utf-8", errors="replace") as f:
            bad = [line for line in f if "Sanitizer" in line or "runtime error" in line]
        tap.ok(not bad, f"no sanitizer complained of {name}", "".join(bad))


if not own_network():
    tap.skip("crashes of Jiva volumes", "no network namespaces here")
    tap.done()
with Scratch() as scratch, open(scratch.file("api.log"), "w", encoding="utf-8") as log, \
        Server(f"{programs}/orlop-apiserver", scratch.file("api"), log=log) as server:
    world = World(server, scratch)
    try:
        main(world)
        if tap.failed:
            for name in world.parts:
                with open(world.log(name), encoding="utf-8", errors="replace") as f:
                    print("".join(f"# {name}: {line}" for line in f.readlines()[-15:]))
    finally:
        world.end()
tap.done()
