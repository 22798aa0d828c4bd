#!/usr/bin/env python3
"""kill -9 of a node's agent at every step of making, growing and removing a logical volume.

lvm-crash.py APISERVER NODE ROUNDS

First a table: the agent dies before and after each lvm command and each write to the API, one after the
other, until it gets through; the next agent must come to what is wanted, never to two volumes, an orphan
or a size that is not so. Then, for some rounds, it dies at any time, also while lvm runs, in the middle
of many changes.
"""
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from server import Server  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402
from volumes import Agent, settle  # noqa: E402

apiserver, program, rounds = sys.argv[1:4]
tap = Tap()

# What is asked for while no agent runs, and how many steps there are at least: a table that became
# shorter has lost its crash points.
OPERATIONS = [
    ("create", lambda a: a.create("v", "20Mi"), 6),
    ("grow", lambda a: a.grow("v", "40Mi"), 4),
    ("delete", lambda a: a.delete("v"), 4),
]
BEFORE = {"create": [], "grow": ["create"], "delete": ["create"]}
STEPS = {name: act for name, act, _ in OPERATIONS}


def check(agent):
    """Everything is as it is wanted, and nothing is there that nobody wants."""
    return agent.agree() or agent.annotation("topolvm.io/orphans")


def attempt(agent, name, at):
    """The operation with an agent that dies at that step; False when it got through without."""
    for other in [o["metadata"]["name"] for o in agent.all()]:
        agent.delete(other)
    with agent:
        settle(lambda: check(agent))
        for before in BEFORE[name]:
            STEPS[before](agent)
        settle(lambda: check(agent))
        agent.kill()
    STEPS[name](agent)
    agent.start(ORLOP_CRASH_AT=str(at))
    wait_for(lambda: not agent.alive() or check(agent) == "")
    died = agent.stop() != 0  # it finishes what it is at: a step after the last write is still to come
    if died:
        tap.equal(agent.process.returncode, -9, f"{name}: dies at step {at}")
    agent.start()
    where = agent.text().rsplit("crash point ", 1)[-1].splitlines()[0] if died else "no crash"
    tap.equal(settle(lambda: check(agent)), "", f"{name}: after {where}, all is as it is wanted")
    agent.kill()
    return died


def table(agent):
    for name, _, least in OPERATIONS:
        at = 1
        while attempt(agent, name, at):
            at += 1
        tap.ok(at - 1 >= least, f"{name}: at least {least} steps", at - 1)


def any_time(agent, seed):
    """Many changes, and an agent that dies in the middle of them, some times over."""
    chance = random.Random(seed)
    agent.start()
    settle(lambda: check(agent))
    for turn in range(4):
        names = [o["metadata"]["name"] for o in agent.all() if "deletionTimestamp" not in o["metadata"]]
        for name in names:
            if chance.random() < 0.5:
                agent.delete(name)
            else:
                agent.grow(name, f"{(turn + 3) * 4}Mi")
        for i in range(8):
            agent.create(f"r{turn}-{i}", "8Mi", group=chance.choice(["topolvm.cybozu.com", "topolvm.io"]))
        try:
            agent.process.wait(timeout=chance.random() * 0.4)
        except subprocess.TimeoutExpired:
            pass
        agent.kill()
        agent.start()
    tap.equal(settle(lambda: check(agent)), "", f"any time, seed {seed}: all is as it is wanted")
    agent.delete(*(o["metadata"]["name"] for o in agent.all()))
    tap.equal(settle(lambda: "" if not agent.all() and not agent.lvm.volumes() else "not all are gone"), "",
              f"any time, seed {seed}: all go")
    agent.kill()


with Scratch() as scratch, open(scratch.file("api.log"), "w", encoding="utf-8") as log, \
        Server(apiserver, scratch.file("api"), log=log) as server:
    agent = Agent(program, server, scratch.file("n1"), "n1", "--audit", "1s")
    try:
        with agent:  # the volume group is there from now on
            tap.ok(wait_for(lambda: agent.annotation("capacity.topolvm.io/orlop")), "the node has room")
        table(agent)
        for seed in range(int(rounds)):
            any_time(agent, seed)
        log_text = agent.text()
        tap.ok("Sanitizer" not in log_text, "no sanitizer complained", log_text[-3000:])
    finally:
        if agent.process and agent.alive():
            agent.kill()
    left = run("losetup", "-a").stdout
    tap.ok(scratch.path not in left, "no loop device is left", left)
tap.done()
