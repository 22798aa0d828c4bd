#!/usr/bin/env python3
"""A whole system whose programs are killed with -9 at random while people change what they want: in
the end everything is exactly as wanted, nothing was done twice, and caches equal the server.

chaos.py ORLOP CACHE_DUMP SECONDS

    Deployments of processes that note their start in a ledger; claims of block devices; ConfigMaps
    kill -9: API server, controllers, nodes
"""
import collections
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from system import HOST, System, processes  # noqa: E402
from tap import Scratch, Tap, wait_for  # noqa: E402

orlop, cache_dump, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
seed = int(os.environ.get("CHAOS_SEED", random.randrange(1 << 30)))
random.seed(seed)
tap = Tap()
print(f"# CHAOS_SEED={seed}", flush=True)

# A system of full size takes a minute to come to rest: a short run has half of everything.
NODES, DISKS, DEPLOYMENTS, REPLICAS, CLAIMS, MAPS = (3, 70, 6, 12, 150, 600) if seconds >= 60 else (3, 35, 4, 8, 75, 300)
SETTLE = 240
COLLECTIONS = (("v1", "Pod", "pods"), ("v1", "ConfigMap", "configmaps"),
               ("openebs.io/v1alpha1", "BlockDevice", "blockdevices"),
               ("openebs.io/v1alpha1", "BlockDeviceClaim", "blockdeviceclaims"))


def deployment(number, replicas, ledger):
    script = f"echo $POD_NAME >>{ledger}; exec sleep 100000"
    field = {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": f"d{number}"},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": f"d{number}"}},
                     "template": {"metadata": {"labels": {"app": f"d{number}"}, "annotations": HOST},
                                  "spec": {"terminationGracePeriodSeconds": 5, "containers": [
                                      {"name": "c", "image": "host", "env": [field],
                                       "command": ["sh", "-c", script]}]}}}}


def claim(number):
    return {"apiVersion": "openebs.io/v1alpha1", "kind": "BlockDeviceClaim",
            "metadata": {"name": f"claim-{number}", "namespace": "openebs"},
            "spec": {"deviceType": "sparse", "resources": {"requests": {"storage": "32Mi"}}}}


def config_map(number, value):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"m{number}"},
            "data": {"value": str(value)}}


class Cache:
    """A process with an informer."""

    def __init__(self, folder, version, kind, plural):
        self.kind, self.plural = kind, plural
        namespace = "openebs" if "openebs" in version else "default"
        self.process = subprocess.Popen(
            [cache_dump, f"{folder}/kubeconfig", version, kind, namespace, "10000", "2000", "120000"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.namespace = namespace

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def versions(self):
        """Key and version of each object."""
        line, found = self.ask("dump"), {}
        while line and line != "end":
            meta = json.loads(line)["metadata"]
            found[meta["name"]] = meta["resourceVersion"]
            line = self.process.stdout.readline().strip()
        return found

    def stop(self):
        self.process.kill()
        self.process.wait()


class World:
    """What is wanted, and who wants it."""

    def __init__(self, system, ledger):
        self.system, self.ledger = system, ledger
        self.replicas = {n: REPLICAS for n in range(DEPLOYMENTS)}
        self.claims, self.next_claim = set(range(CLAIMS)), CLAIMS  # no name twice: the first may still be on its way out
        self.maps = {n: 0 for n in range(MAPS)}
        self.ends = time.monotonic() + 1e9

    def apply(self, objects):
        """Until it is taken, however often the server is killed meanwhile."""
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
        return wait_for(lambda: self.system.kubectl(
            "apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text).returncode == 0, SETTLE)

    def delete(self, *words):
        return wait_for(lambda: self.system.kubectl(
            "delete", "--ignore-not-found", "--wait=false", *words).returncode == 0, SETTLE)

    def change(self):
        """Something else is wanted."""
        turn = random.randrange(4)
        if turn == 0:
            number = random.randrange(DEPLOYMENTS)
            self.replicas[number] = random.randrange(2, REPLICAS + 8)
            self.apply([deployment(number, self.replicas[number], self.ledger)])
        elif turn == 1 and self.claims:
            gone = random.sample(sorted(self.claims), min(10, len(self.claims)))
            self.claims -= set(gone)
            self.delete("-n", "openebs", "blockdeviceclaims", *(f"claim-{n}" for n in gone))
        elif turn == 2 and len(self.claims) < CLAIMS:
            new = range(self.next_claim, self.next_claim + min(10, CLAIMS - len(self.claims)))
            self.next_claim = new.stop
            self.claims |= set(new)
            self.apply([claim(n) for n in new])
        else:
            some = random.sample(sorted(self.maps), 40)
            self.maps.update((n, self.maps[n] + 1) for n in some)
            self.apply([config_map(n, self.maps[n]) for n in some])


def killer(system, until, killed):
    """kill -9 of any program, a few times in a second at most."""
    while time.monotonic() < until:
        with open(f"{system.folder}/up.json", encoding="utf-8") as file:
            program = random.choice(json.load(file)["programs"])
        if program["state"] == "running":
            try:
                os.kill(program["pid"], signal.SIGKILL)
                killed[program["name"]] += 1
            except ProcessLookupError:
                pass
        time.sleep(random.uniform(0.2, 2.0))  # how often is what is wanted


def settled(check, name):
    """Holds after a while; what is wrong otherwise."""
    wrong = []

    def holds():
        wrong[:] = check()
        return not wrong
    tap.ok(wait_for(holds, SETTLE), name, "\n".join(map(str, wrong[:20])))


with Scratch() as scratch:
    ledger = scratch.file("ledger", "")
    with System(orlop, scratch.file("data"), "--nodes", str(NODES), "--sparse-disks",
                f"{DISKS}x64Mi") as system:
        world = World(system, ledger)
        caches = [Cache(system.folder, *c) for c in COLLECTIONS]
        try:
            world.apply([deployment(n, r, ledger) for n, r in world.replicas.items()])
            world.apply([claim(n) for n in world.claims])
            world.apply([config_map(n, v) for n, v in world.maps.items()])
            until = time.monotonic() + seconds
            killed = collections.Counter()
            thread = threading.Thread(target=killer, args=(system, until, killed))
            thread.start()
            while time.monotonic() < until:
                world.change()
            thread.join()
            print("# killed:", dict(killed), flush=True)
            tap.ok(sum(killed.values()) > seconds / 4, "programs were killed", killed)

            def programs():
                return [p for p in system.status()["programs"] if p["state"] != "running"]

            def deployments():
                found = {d["metadata"]["name"]: d for d in system.get("deployments")}
                for number, wanted in world.replicas.items():
                    status = found.get(f"d{number}", {}).get("status", {})
                    if status.get("readyReplicas", 0) != wanted or status.get("replicas") != wanted:
                        yield f"d{number}: wanted {wanted}, is {status}"

            def pods():
                count = collections.Counter()
                for pod in system.get("pods"):
                    count[pod["metadata"]["labels"]["app"]] += 1
                    state = pod["status"].get("phase")
                    if state != "Running" or "deletionTimestamp" in pod["metadata"]:
                        yield f"{pod['metadata']['name']} is {state}"
                if count != {f"d{n}": r for n, r in world.replicas.items()}:
                    yield count

            def maps():
                found = {m["metadata"]["name"]: m["data"]["value"] for m in system.get("configmaps")
                         if m["metadata"]["name"].startswith("m")}
                return [] if found == {f"m{n}": str(v) for n, v in world.maps.items()} else ["maps differ"]

            def claims():
                found = {c["metadata"]["name"]: c for c in
                         system.get("blockdeviceclaims", "-n", "openebs")}
                if set(found) != {f"claim-{n}" for n in world.claims}:
                    yield f"claims: {set(found) ^ {f'claim-{n}' for n in world.claims}}"
                devices = {d["metadata"]["name"]: d for d in system.get("blockdevices", "-n", "openebs")}
                if len(devices) != NODES * DISKS:
                    yield f"{len(devices)} devices"
                bound = collections.Counter()
                for name, c in found.items():
                    device = c["spec"].get("blockDeviceName")
                    bound[device] += 1
                    reference = devices.get(device, {}).get("spec", {}).get("claimRef", {})
                    if c.get("status", {}).get("phase") != "Bound":
                        yield f"{name} is {c.get('status')}"
                    elif reference.get("uid") != c["metadata"]["uid"]:
                        yield f"{device} of {name} has {reference}"
                yield from (f"{d} has {n} claims" for d, n in bound.items() if n > 1)
                for name, d in devices.items():
                    if name not in bound and d.get("status", {}).get("claimState") != "Unclaimed":
                        yield f"{name} is {d.get('status')} without a claim"

            settled(programs, "all programs run")
            settled(maps, "every ConfigMap is as it was written last")
            settled(lambda: list(deployments()), "every Deployment has as many as wanted")
            settled(lambda: list(pods()), "and exactly those Pods")
            settled(lambda: list(claims()), "every claim has a device of its own, and no device a claim too many")

            # Side effects: each Pod's process was started once, and runs.
            names = [p["metadata"]["name"] for p in system.get("pods")]
            with open(ledger, encoding="utf-8") as file:
                starts = collections.Counter(file.read().split())
            tap.equal({n: c for n, c in starts.items() if c > 1}, {}, "nothing was started twice")
            tap.equal([n for n in names if n not in starts], [], "nothing was left out")
            tap.equal(sum(p["status"]["containerStatuses"][0]["restartCount"]
                          for p in system.get("pods")), 0, "and nothing was restarted")
            tap.ok(wait_for(lambda: sum(w == "sleep 100000" for w in processes(system.folder).values())
                            == len(names)), "as many processes as Pods",
                   collections.Counter(processes(system.folder).values()))

            # What informers know.
            for cache in caches:
                def differs(cache=cache):
                    there = {o["metadata"]["name"]: o["metadata"]["resourceVersion"]
                             for o in system.get(cache.plural, "-n", cache.namespace)}
                    known = cache.versions()
                    return [f"{k}: {known.get(k)}, not {there.get(k)}"
                            for k in set(there) | set(known) if there.get(k) != known.get(k)]
                settled(differs, f"an informer of {cache.plural} knows what the server has")
                tap.equal(cache.ask("chain"), "ok", "and has told it in order")
        finally:
            for cache in caches:
                cache.stop()

tap.done()
