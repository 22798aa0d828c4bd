#!/usr/bin/env python3
"""The rules of CStorPoolCluster that look at other objects, each with what it lets through and what
not: in the API server, with kubectl, and in `orlop validate`.

admission.py APISERVER TOP ORLOP
admission.py APISERVER TOP ORLOP --update    writes tests/data/pool-rules.txt anew, to be read before it is kept
"""
import concurrent.futures
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import pool_rules  # noqa: E402
from pool_objects import cluster, device, group, path, pool, put  # noqa: E402
from server import Server  # noqa: E402
from tap import Scratch, Tap  # noqa: E402

program, top, orlop = sys.argv[1:4]
tap = Tap()
MERGE = "application/merge-patch+json"


def check_side_effects(server):
    """What a change leads to, and what it does not."""
    where = path("CStorPoolCluster", "effects")
    server.create("/api/v1/namespaces", {"metadata": {"name": "effects"}})
    for it in "abc":
        put(server, device(it), "effects")
    old = cluster(pool("node-1", group("mirror", "a", "b")))
    new = cluster(pool("node-1", group("mirror", "a", "c")))
    made = put(server, old, "effects")
    status, _ = server.ask("PUT", f"{where}/pool?dryRun=All", new)
    tap.equal((status, server.get(path("BlockDeviceClaim", "effects"))[1]["items"]), (200, []),
              "a dry run claims nothing")
    server.ask("PUT", f"{where}/pool", new)
    (its,) = server.get(path("BlockDeviceClaim", "effects"))[1]["items"]
    metadata = its["metadata"]
    uid = server.get(path("BlockDevice", "effects") + "/c")[1]["metadata"]["uid"]
    tap.equal((metadata["name"], metadata["annotations"], metadata["labels"]),
              (f"bdc-cstor-{uid}", {"openebs.io/bd-predecessor": "b"},
               {"openebs.io/cstor-pool-cluster": "pool"}), "a replacement is claimed")
    tap.equal((metadata["ownerReferences"][0]["uid"], its["spec"]["blockDeviceName"],
               its["spec"]["blockDeviceNodeAttributes"]["hostName"]),
              (made["metadata"]["uid"], "c", "node-1"), "for the cluster")
    status, reply = server.merge(f"{where}/pool", {"status": {"phase": "Online"}})
    put(server, device("a", state="Inactive"), "effects")
    tap.equal(status, 200, "a status is nobody's business")
    status, reply = server.ask("PATCH", f"{where}/pool", {"metadata": {"labels": {"x": "y"}}},
                               content_type=MERGE)
    tap.equal(status, 200, "nor is a label, whatever became of the devices")
    status, reply = server.ask("DELETE", "/api/v1/namespaces/effects")
    tap.equal(status, 200, "a namespace can go with all that is in it")


def check_races(server):
    """Many clusters want the same device at once: one gets it."""
    server.create("/api/v1/namespaces", {"metadata": {"name": "race"}})
    rounds, at_once, winners = 8, 6, []
    for it in range(rounds):
        put(server, device(f"d{it}"), "race")

    def want(number):
        name = f"pool-{number}"
        value = cluster(pool("node-1", group("stripe", f"d{number % rounds}")), name=name)
        return server.ask("POST", path("CStorPoolCluster", "race"), value)[0]

    with concurrent.futures.ThreadPoolExecutor(rounds * at_once) as threads:
        winners = list(threads.map(want, range(rounds * at_once)))
    tap.equal((winners.count(201), winners.count(422)), (rounds, rounds * (at_once - 1)),
              "of many who want a device at once one gets it")


def check_gate(server):
    """Rules that are left to others."""
    odd = cluster(pool("nowhere", group("mirror", "x")))
    where = path("CStorPoolCluster", "default")
    tap.equal([server.ask("POST", where, it)[0] for it in (odd, {**odd, "spec": {"pools": 7}})],
              [201, 422], "with the gate closed only the form counts")


def main():
    with Scratch() as scratch:
        with Server(program, scratch.file("gate"), "--feature-gates", "OrlopAdmission=false") as server:
            check_gate(server)
        pool_rules.check_files(tap, orlop, scratch, f"{top}/tests/data/pool-rules.txt",
                               "--update" in sys.argv)
        with Server(program, scratch.file("data")) as server:
            pool_rules.check_all(tap, server)
            check_side_effects(server)
            check_races(server)
    tap.done()


main()
