#!/usr/bin/env python3
"""A node is lost with a JivaVolume's target and one of its replicas: the target moves, the replica is made
anew on another node after the delay that was set, and what the node has is erased when it is back. Then many
volumes at once, all of them resized.

jiva-nodes.py ORLOP VOLUMES
"""
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from jiva import LOCK, PATIENCE, Jiva, kill, resize, volume  # noqa: E402
from namespaces import own_network  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402

orlop, many = sys.argv[1], int(sys.argv[2])
tap = Tap()


def pattern(url, *commands):
    return run("qemu-io", "-f", "raw", *(w for c in commands for w in ("-c", c)), url)


def folders(s, name):
    return {f"node-{n}" for n in range(1, 5) if os.path.isdir(f"{s.folder}/jiva/node-{n}")
            for d in os.listdir(f"{s.folder}/jiva/node-{n}") if f".{name}." in d}


def nodes(s, name):
    return set(s.volume(name)["metadata"]["annotations"].get("jiva.openebs.io/nodes", "").split(","))


def check_lost_node(s):
    s.apply(volume("moves", "64Mi", **{"jiva.openebs.io/reclaim-policy": "Delete"}))
    tap.ok(s.ready("moves"), "a volume on three of four nodes", s.volume("moves"))
    tap.ran(pattern(s.url("moves"), "write -P 0x21 0 16M", "flush"), "data on it")
    at = {p["spec"]["nodeName"] for p in s.pods("jiva-replica", "moves")}
    tap.equal(nodes(s, "moves"), at, "it says on which")
    # A pod that is merely deleted goes where its data is.
    pod = s.pods("jiva-replica", "moves")[0]["metadata"]["name"]
    s.kubectl("delete", "pod", pod, "--timeout=60s")

    def where():
        return {p["spec"].get("nodeName", "") for p in s.pods("jiva-replica", "moves")
                if "deletionTimestamp" not in p["metadata"]}
    tap.ok(wait_for(lambda: pod not in [p["metadata"]["name"] for p in s.pods("jiva-replica", "moves")], PATIENCE),
           "a replica's pod is deleted", s.pods("jiva-replica", "moves"))
    tap.ok(wait_for(lambda: len(where()) == 3 and "" not in where(), PATIENCE), "another takes its place", where())
    tap.equal(where(), at, "where its data is")
    tap.ok(s.ready("moves"), "and the volume is ready", s.state("moves"))

    lost = s.pods("jiva-controller", "moves")[0]["spec"]["nodeName"]
    if lost not in at:
        lost = sorted(at)[0]
    agent = s.lose(lost)
    tap.ok(wait_for(lambda: lost not in nodes(s, "moves"), PATIENCE), f"{lost} is lost: its replica goes elsewhere",
           s.volume("moves"))
    tap.ok(s.volume("moves")["status"]["phase"] != "Ready", "nobody says that it is well", s.state("moves"))
    tap.ok(wait_for(lambda: len(where()) == 3 and not {lost, ""} & where(), PATIENCE), "three other nodes have it", where())
    tap.ok(s.ready("moves"), "the volume is whole again", s.volume("moves"))
    tap.equal(s.volume("moves")["metadata"]["annotations"].get("jiva.openebs.io/stale-nodes"), lost,
              "what the lost one has is known")
    tap.ran(pattern(s.url("moves"), "read -P 0x21 0 16M"), "the data is there")
    tap.ok(lost in folders(s, "moves"), "also on the lost node")
    kill(agent, signal.SIGCONT)
    tap.ok(wait_for(lambda: lost not in folders(s, "moves"), PATIENCE), "the node is back: that is erased",
           s.volume("moves"))
    tap.ok(wait_for(lambda: "jiva.openebs.io/stale-nodes" not in s.volume("moves")["metadata"]["annotations"],
                    PATIENCE), "and forgotten", s.volume("moves"))
    tap.ok(s.ready("moves"), "the volume is well", s.state("moves"))
    tap.ran(s.orlop_("volume", "delete", "moves", "--wait", "--timeout", str(PATIENCE)), "it goes")
    tap.equal(folders(s, "moves"), set(), "with its data")


def check_many(s):
    """At once: made, resized twice each, deleted."""
    names = [f"m{i}" for i in range(many)]
    tap.ran(s.apply(*(volume(n, "16Mi", 1, **{"jiva.openebs.io/reclaim-policy": "Delete"}) for n in names)),
            f"{many} volumes")
    tap.ok(all(s.ready(n, 1) for n in names), "are ready", [s.state(n) for n in names])
    tap.equal(len({s.portal(n) for n in names}), many, "each at an address of its own")
    tap.ran(s.apply(*(resize(f"{n}-{size}", n, f"{size}Mi") for n in names for size in (20, 24))),
            "two resizes of each")
    phases = [s.phase(f"{n}-{size}", "COMPLETED", "FAILED").get("phase") for n in names for size in (20, 24)]
    tap.equal(set(phases), {"COMPLETED"}, "all are COMPLETED")
    all_ = [s.volume(n) for n in names]
    tap.equal({(v["spec"]["capacity"], v["status"]["capacity"], v["metadata"]["annotations"].get(LOCK))
               for v in all_}, {("24Mi", "24Mi", None)}, "and all have the size, and a free lock")
    tap.ran(s.kubectl("delete", "jv,jvr", "--all", "--timeout=300s", timeout=310), "they go")
    tap.ok(wait_for(lambda: not s.pods(), PATIENCE), "and leave no pods", s.pods())


if not own_network():
    tap.skip("nodes of Jiva volumes", "no network namespaces here")
    tap.done()
with Scratch() as scratch, Jiva(orlop, scratch.file("data"), "--nodes", "4", "--lost-after", "12s",
                                "--rehome-after", "2s") as system:
    check_lost_node(system)
    check_many(system)
    tap.equal(system.complaints(), "", "no sanitizer complained")
    if tap.failed:
        print("\n".join("# " + line for line in run("tail", "-n", "40", f"{system.folder}/logs/controller.log")
                        .stdout.splitlines()))
tap.done()
