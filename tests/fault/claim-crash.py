#!/usr/bin/env python3
"""kill -9 of a node's agent at every step of finding, giving and taking back a device.

claim-crash.py APISERVER NODE

The agent dies before and after each write to the API, one after the other, until it gets through. An object and its status
are two writes; whatever was the last, the next agent must come to what is wanted: each claim has one device, which says
so, and every other device is free, clean and held by nobody.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from server import Client, Server  # noqa: E402
from tap import Scratch, Tap, wait_for  # noqa: E402
from volumes import Agent, settle  # noqa: E402

apiserver, program = sys.argv[1:3]
tap = Tap()
NS = "/apis/openebs.io/v1alpha1/namespaces/openebs"
DEVICES, CLAIMS = f"{NS}/blockdevices", f"{NS}/blockdeviceclaims"
HELD, BOUND = "openebs.io/bd-protection", "openebs.io/bdc-protection"


class World:
    def __init__(self, server):
        self.client = Client(server)

    def items(self, path):
        return {it["metadata"]["name"]: it for it in self.client.ask("GET", path).json["items"]}

    def claim(self, name):
        return self.client.ask("POST", CLAIMS, {
            "apiVersion": "openebs.io/v1alpha1", "kind": "BlockDeviceClaim", "metadata": {"name": name},
            "spec": {"deviceType": "sparse", "resources": {"requests": {"storage": "8Mi"}}}})

    def delete(self, path):
        for name in self.items(path):
            self.client.ask("DELETE", f"{path}/{name}")

    def by_hand(self, name):
        return self.client.ask("POST", DEVICES, {
            "apiVersion": "openebs.io/v1alpha1", "kind": "BlockDevice",
            "metadata": {"name": name, "labels": {"ndm.io/managed": "false"}},
            "spec": {"nodeAttributes": {"nodeName": "n1"}, "path": "/dev/null", "capacity": {"storage": 1 << 20},
                     "details": {"deviceType": "disk"}}})


def mismatch(device, claim):
    """"" when the device is as the claim wants it, or free without one; else what is not so."""
    status, metadata, ref = device.get("status", {}), device["metadata"], device["spec"].get("claimRef")
    if claim is None:
        wanted = ("Active", "Unclaimed", None, False)
    else:
        wanted = ("Active", "Claimed", claim["metadata"]["uid"], True)
    got = (status.get("state"), status.get("claimState"), ref and ref["uid"], HELD in metadata.get("finalizers", []))
    return "" if got == wanted else f"{metadata['name']} is {got}, not {wanted}"


def check(w, devices):
    """"" when all is as it is wanted."""
    found, claims = w.items(DEVICES), w.items(CLAIMS)
    having = {}
    if len(found) != devices:
        return f"{len(found)} devices, not {devices}"
    for name, claim in claims.items():
        device = claim["spec"].get("blockDeviceName")
        if "deletionTimestamp" in claim["metadata"] or claim.get("status", {}).get("phase") != "Bound" or \
                BOUND not in claim["metadata"].get("finalizers", []) or device in having:
            return f"{name} is {claim}"
        having[device] = claim
    return next(filter(None, (mismatch(d, having.get(n)) for n, d in found.items())), "")


# What is done while no agent runs, what was done before with one, how many devices there are then, and how many steps
# there are at least: a table that became shorter has lost its crash points.
OPERATIONS = [
    ("found", lambda w: w.delete(DEVICES), [], 2, 8),
    ("made by hand", lambda w: w.by_hand("mine"), [], 3, 2),
    ("claimed", lambda w: w.claim("c"), [], 2, 8),
    ("released", lambda w: w.delete(CLAIMS), [lambda w: w.claim("c")], 2, 6),
]


def attempt(w, agent, operation, at):
    """The operation with an agent that dies at that step; False when it got through without."""
    name, act, before, devices, _ = operation
    w.delete(CLAIMS)
    w.client.ask("DELETE", f"{DEVICES}/mine")
    with agent:
        settle(lambda: check(w, 2))
        for each in before:
            each(w)
        settle(lambda: check(w, 2))
        agent.kill()
    act(w)
    agent.start(ORLOP_CRASH_AT=str(at))
    wait_for(lambda: not agent.alive() or check(w, devices) == "")
    died = agent.stop() != 0  # it finishes what it is at: a step after the last write is still to come
    if died:
        tap.equal(agent.process.returncode, -9, f"{name}: dies at step {at}")
    agent.start()
    where = agent.text().rsplit("crash point ", 1)[-1].splitlines()[0] if died else "no crash"
    tap.equal(settle(lambda: check(w, devices)), "", f"{name}: after {where}, all is as it is wanted")
    agent.kill()
    return died


with Scratch() as scratch, open(scratch.file("api.log"), "w", encoding="utf-8") as log, \
        Server(apiserver, scratch.file("api"), log=log) as server:
    server.create("/api/v1/namespaces", {"metadata": {"name": "openebs"}})
    world, node = World(server), Agent(program, server, scratch.file("n1"), "n1", "--namespace", "openebs", "--rescan",
                                       "1s", "--sparse-disks", "2x16Mi", disks=None)
    try:
        with node:
            tap.equal(settle(lambda: check(world, 2)), "", "the node has two devices")
        for it in OPERATIONS:
            step = 1
            while attempt(world, node, it, step):
                step += 1
            tap.ok(step - 1 >= it[4], f"{it[0]}: at least {it[4]} steps", step - 1)
        log_text = node.text()
        tap.ok("Sanitizer" not in log_text, "no sanitizer complained", log_text[-3000:])
    finally:
        if node.process and node.alive():
            node.kill()
tap.done()
