#!/usr/bin/env python3
"""How long it takes until the objects of many CStorPoolClusters are there: claims, instances, Deployments, status.

Each cluster has one pool, a mirror of two devices. Nodes and pools only pretend, and as little as possible: a claim
is bound and an instance is ONLINE with one request each. From the first POST until every cluster says that it is
ready; then until all are gone. The figure to compare with is that of cStor's operator on a machine like this, with
its rate limit lifted: 150 s for 200 (1,408 s as it is shipped).
"""
import http.client
import statistics
import sys
import threading
import time

from measure import PROGRAMS, processor
from report import Report, arguments, parse
from controller import Controller  # noqa: I001
from pretend_pools import CLAIMS, CLUSTERS, DEPLOYMENTS, DESTROY, DEVICES, GUARD, INSTANCES, NS
from pretend_pools import cluster, device, group, node, pool
from server import Client, Server
from tap import Scratch, wait_for

args = parse(arguments(3, __doc__))
COUNT = 20 if args.quick else 200
PEER, NODES, THREADS = 150 * COUNT / 200, 20, 4
ONLINE = {"phase": "ONLINE", "capacity": {"total": "10Gi", "free": "10Gi", "used": "0"}}


class Actor:
    """Follows a collection and answers each change with at most one request."""

    def __init__(self, server, path, answer):
        self.server, self.path, self.answer = server, path, answer
        self.watcher, self.client, self.ended = Client(server), Client(server), False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        try:
            for event in self.watcher.events(f"{self.path}?watch=true"):
                if event["type"] in ("ADDED", "MODIFIED"):
                    change = self.answer(event["object"])
                    if change:
                        self.client.merge(f"{self.path}/{event['object']['metadata']['name']}", change)
        except (OSError, ValueError, AttributeError, http.client.HTTPException):
            if not self.ended:
                raise

    def stop(self):
        self.ended = True
        self.watcher.connection.sock.shutdown(2)
        self.thread.join(30)


def answer_claim(claim):
    return None if claim.get("status", {}).get("phase") == "Bound" else {"status": {"phase": "Bound"}}


def answer_instance(it):
    metadata, status = it["metadata"], it.get("status", {})
    if "deletionTimestamp" in metadata:
        left = [f for f in metadata.get("finalizers", []) if f != GUARD]
        return {"metadata": {"finalizers": left}} if GUARD in metadata.get("finalizers", []) and DESTROY in \
            metadata.get("annotations", {}) else None
    return None if status.get("phase") == "ONLINE" else {"status": {**ONLINE, "guid": str(abs(hash(metadata["uid"])))}}


def spread(work):
    """All the pieces, by a few threads."""
    def do(part):
        client = Client(server)
        for method, path, body in part:
            reply = client.ask(method, path, body)
            if reply.status >= 300:
                sys.exit(reply.text)
        client.close()
    threads = [threading.Thread(target=do, args=(work[i::THREADS],)) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def is_ready(value):
    return any(c["type"] == "Ready" and c["status"] == "True" for c in value.get("status", {}).get("conditions", []))


def follow(done, begin):
    """Seconds from the beginning at which each cluster was done, until all are."""
    watcher, version = Client(server), Client(server).ask("GET", CLUSTERS).json["metadata"]["resourceVersion"]
    times = {}

    def run():
        for event in watcher.events(f"{CLUSTERS}?watch=true&resourceVersion={version}"):
            name = event["object"]["metadata"]["name"]
            if done(event) and name not in times:
                times[name] = time.monotonic() - begin
                if len(times) == COUNT:
                    return
    thread = threading.Thread(target=run)
    thread.start()
    return thread, times


def round_of():
    begin = time.monotonic()
    thread, times = follow(lambda e: is_ready(e["object"]), begin)
    before = processor(controller.process.pid), processor(server.process.pid)
    spread([("POST", CLUSTERS, cluster(f"c{i}", pool(f"n{i % NODES}", group("mirror", f"d{i}a", f"d{i}b"))))
            for i in range(COUNT)])
    thread.join()
    used = processor(controller.process.pid) - before[0], processor(server.process.pid) - before[1]
    made = max(times.values())
    client = Client(server)
    counts = [len(client.ask("GET", path).json["items"]) for path in (INSTANCES, DEPLOYMENTS, CLAIMS)]
    if counts != [COUNT, COUNT, 2 * COUNT]:
        sys.exit(f"not one instance, Deployment and two claims each: {counts}")
    begin = time.monotonic()
    thread, gone = follow(lambda e: e["type"] == "DELETED", begin)
    spread([("DELETE", f"{CLUSTERS}/c{i}", None) for i in range(COUNT)])
    thread.join()
    removed = max(gone.values())
    wait_for(lambda: not client.ask("GET", CLAIMS).json["items"])
    return made, removed, statistics.median(times.values()), used


with Report("cspc", f"{COUNT} CStorPoolClusters, each a mirror of two; the peer's figure is not of this run", args, "cStor",
            f"best of {args.rounds}") as report, Scratch() as scratch, \
        open(scratch.file("log"), "w", encoding="utf-8") as log, Server(f"{PROGRAMS}/orlop-apiserver", scratch.file("api"), log=log) as server:
    server.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}})
    spread([("POST", "/api/v1/nodes", node(f"n{i}")) for i in range(NODES)] +
           [("POST", DEVICES, device(f"d{i}{x}", f"n{i % NODES}")) for i in range(COUNT) for x in "ab"])
    controller = Controller(f"{PROGRAMS}/orlop-controller", server, scratch.file("controller.log"), "--controllers",
                            "cspc-operator", "--leader-elect=false")
    with controller:
        wait_for(lambda: controller.ready)
        actors = [Actor(server, CLAIMS, answer_claim), Actor(server, INSTANCES, answer_instance)]
        found = [round_of() for _ in range(args.rounds)]
        for actor in actors:
            actor.stop()
    made, removed, median, used = min(found)
    report.row("until all are ready", made, "s", PEER, aim="<= 0.1", worst=max(found)[0], median=median,
               **{"controller's CPU s": used[0], "API server's CPU s": used[1]})
    report.row("until all are gone", removed, "s")
