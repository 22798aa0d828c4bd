#!/usr/bin/env python3
"""kill -9 of the controller at every step of what it does to the pools of a cluster.

cspc-crash.py APISERVER CONTROLLER STRIDE ROUNDS

First a table: the controller dies before and after each write of an operation, one after the other (or, to be
quick, at each STRIDEth), until it gets through; the next one must come to what is wanted, with one instance for each pool, one claim for each device, no
pool made twice and none destroyed that is wanted. Then, for some rounds, it dies at any time in the middle of
many operations. Nodes and pools only pretend (tests/lib/pretend_pools.py), and admission is off: all claims are the
operator's own work.
"""
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from pretend_pools import DEVICES as BLOCK_DEVICES  # noqa: E402
from pretend_pools import (CLAIMS, CLUSTERS, DEPLOYMENTS, INSTANCES, MERGE, NS, Clusters, Pools, cluster, group,  # noqa: E402
                           names_of, pool)
from server import Server  # noqa: E402
from tap import Scratch, Tap, wait_for  # noqa: E402

apiserver, program, stride, rounds = sys.argv[1:3] + [int(n) for n in sys.argv[3:5]]
tap = Tap()
FORGOTTEN = "orlop.io/forgotten"
DEVICES = {"n1": ["a1", "a2", "a3", "a4", "a5"], "n2": ["b1", "b2"], "n3": []}


class Operator:
    """orlop-controller with this one controller, which can be told where to die."""

    def __init__(self, server, log):
        self.argv = [program, "--kubeconfig", os.path.join(server.folder, "controller.kubeconfig"), "--controllers",
                     "cspc-operator", "--leader-elect=false", "--health-port", "off"]
        self.log, self.process = log, None

    def start(self, **env):
        with open(self.log, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(self.argv, stderr=log, env={**os.environ, **env})

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()

    def stop(self):
        self.process.terminate()
        return self.process.wait(timeout=60)

    def text(self):
        with open(self.log, encoding="utf-8") as log:
            return log.read()


def start_of(_):
    return [pool("n1", group("stripe", "a1"), group("mirror", "a2", "a3"))]


# What a cluster is before, and what is done to it while no controller runs. The last is how many steps there are
# at least: a table that became shorter has lost its crash points.
def create(c):
    c.create(cluster("x", *start_of(c)))


def expand(c):
    c.edit("x", lambda s: s["pools"][0]["raidGroups"][0]["blockDevices"].append({"blockDeviceName": "a4"}))


def replace(c):
    c.edit("x", lambda s: s["pools"][0]["raidGroups"][1]["blockDevices"][0].update(blockDeviceName="a5"))


def scale(c):
    c.edit("x", lambda s: s["pools"].append(pool("n2", group("mirror", "b1", "b2"))))


def shrink(c):
    c.edit("x", lambda s: s["pools"].pop())


def migrate(c):
    c.pools.move("n3", "a1", "a2", "a3")
    c.edit("x", lambda s: s["pools"][0].update(nodeSelector={"kubernetes.io/hostname": "n3"}))


def lose(c):
    """Somebody deletes the instance."""
    c.server.ask("DELETE", f"{INSTANCES}/{c.instances('x')[0]['metadata']['name']}")


def forget(c):
    """A pool is gone with its node, and somebody says so."""
    name = next(i["metadata"]["name"] for i in c.instances("x") if i["spec"]["hostName"] == "n2")
    c.pools.still.add(name)
    c.pools.disks = {d: g for d, g in c.pools.disks.items() if d not in DEVICES["n2"]}
    c.server.ask("PATCH", f"{INSTANCES}/{name}", {"metadata": {"annotations": {FORGOTTEN: "{}"}}}, content_type=MERGE)
    shrink(c)


def delete(c):
    c.server.ask("DELETE", f"{CLUSTERS}/x")


OPERATIONS = [("create", [], create, 12), ("expand", [create], expand, 6), ("replace", [create], replace, 8),
              ("scale", [create], scale, 10), ("shrink", [create, scale], shrink, 10),
              ("migrate", [create], migrate, 6), ("lose", [create], lose, 10),
              ("forget", [create, scale], forget, 12), ("delete", [create], delete, 10)]


def wrong(c):
    """"" when everything is as the clusters say, and nothing is there that nobody wants."""
    instances, clusters = c.items(INSTANCES), c.items(CLUSTERS)
    wanted = sorted(tuple(sorted(names_of(p))) for x in clusters for p in x["spec"]["pools"])
    there = sorted(tuple(sorted(names_of(i["spec"]))) for i in instances)
    if wanted != there:
        return f"pools {wanted} are wanted, instances have {there}"
    if any("deletionTimestamp" in o["metadata"] for o in [*instances, *clusters]):
        return "something is being deleted"
    hosts = sorted(p["nodeSelector"]["kubernetes.io/hostname"] for x in clusters for p in x["spec"]["pools"])
    if hosts != sorted(i["spec"]["hostName"] for i in instances):
        return f"they are not on {hosts}"
    devices = sorted(d for p in wanted for d in p)
    claims = sorted(d for x in clusters for d in c.claims(x["metadata"]["name"]))
    if devices != claims:
        return f"devices {devices} are wanted, claims have {claims}"
    names = sorted(i["metadata"]["name"] for i in instances)
    if names != sorted(d["metadata"]["name"] for d in c.items(DEPLOYMENTS)):
        return "Deployments are not those of the instances"
    for x in clusters:
        if not c.is_ready(x["metadata"]["name"]):
            return f"not ready: {c.get(x['metadata']['name']).get('status')}"
    if sorted(c.pools.disks) != devices:
        return f"pools have {sorted(c.pools.disks)} instead of {devices}"
    return "; ".join(c.pools.broken)


def settle(c):
    last = [wrong(c)]

    def asked():
        last[0] = wrong(c)
        return last[0] == ""
    wait_for(asked)
    return last[0]


def clear(c, operator):
    """Nothing of a former attempt is left."""
    if not operator.alive():
        operator.start()
    for x in c.items(CLUSTERS):
        c.server.ask("DELETE", f"{CLUSTERS}/{x['metadata']['name']}")
    left = settle(c)
    wait_for(lambda: not c.items(CLAIMS))
    c.pools.still.clear()
    for disk in c.items(BLOCK_DEVICES):
        if FORGOTTEN in disk["metadata"].get("annotations", {}):  # its node is back
            c.server.merge(f"{BLOCK_DEVICES}/{disk['metadata']['name']}", {
                "metadata": {"annotations": None}, "spec": {"claimRef": None}, "status": {"claimState": "Unclaimed"}})
    for host, names in DEVICES.items():
        c.pools.move(host, *names)
    return left


def attempt(c, operator, name, before, act, at):
    """The operation with a controller that dies at that step; False when it got through without."""
    clear(c, operator)
    for step in before:
        step(c)
    wrong_before = settle(c)
    if wrong_before:
        tap.equal(wrong_before, "", f"{name} {at}: begins")
    operator.kill()
    made, destroyed = c.pools.made, c.pools.destroyed
    act(c)
    operator.start(ORLOP_CRASH_AT=str(at))
    wait_for(lambda: not operator.alive() or wrong(c) == "")
    died = operator.stop() != 0  # it finishes what it is at
    if died:
        tap.equal(operator.process.returncode, -9, f"{name}: dies at step {at}")
    where = operator.text().rsplit("crash point ", 1)[-1].splitlines()[0] if died else "no crash"
    operator.start()
    tap.equal(settle(c), "", f"{name}: after {where}, all is as it is wanted")
    tap.equal((c.pools.made - made, c.pools.destroyed - destroyed),
              (name in ("create", "scale"), name in ("shrink", "delete")), f"{name}: pools are made and destroyed once")
    return died


def table(c, operator):
    for name, before, act, least in OPERATIONS:
        at = 1
        while attempt(c, operator, name, before, act, at):
            at += stride
        tap.ok(at > least, f"{name}: at least {least} steps", at)


def any_time(c, operator, seed):
    chance = random.Random(seed)
    clear(c, operator)
    create(c)
    settle(c)
    made = c.pools.made
    acts = [expand, replace, scale, lose]
    chance.shuffle(acts)
    for act in acts:
        act(c)
        try:
            operator.process.wait(timeout=chance.random() * 0.3)
        except subprocess.TimeoutExpired:
            pass
        operator.kill()
        operator.start()
        wait_for(lambda: c.instances("x"))  # who loses one needs one
    tap.equal(settle(c), "", f"any time, seed {seed}: all is as it is wanted")
    tap.equal((c.pools.made - made), 1, f"any time, seed {seed}: one pool was made")
    clear(c, operator)


with Scratch() as scratch, open(scratch.file("api.log"), "w", encoding="utf-8") as log, \
        Server(apiserver, scratch.file("api"), "--feature-gates", "OrlopAdmission=false", log=log) as server, \
        Pools(server) as pools:
    server.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}})
    operator, c = Operator(server, scratch.file("operator.log")), Clusters(server)
    c.pools = pools
    for host, names in DEVICES.items():
        pools.add_node(host)
        pools.add_devices(host, *names)
    try:
        table(c, operator)
        for seed in range(rounds):
            any_time(c, operator, seed)
        tap.equal(pools.broken, [], "nothing was broken meanwhile")
        tap.ok("Sanitizer" not in operator.text(), "no sanitizer complained", operator.text()[-3000:])
    finally:
        operator.kill()
tap.done()
