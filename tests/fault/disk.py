#!/usr/bin/env python3
"""A disk that is full, and one that takes no writes: clear errors, nothing lost, and it goes on by
itself when the disk does.

disk.py APISERVER

The full disk is a small file system of its own in a mount namespace of its own. The disk that takes
no writes is one whose writes strace makes fail.
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from server import Client, Server  # noqa: E402
from tap import Scratch, Tap, wait_for  # noqa: E402

PATH = "/api/v1/namespaces/default/configmaps"
tap = Tap()


def create(client, name, size=100):
    return client.ask("POST", PATH, {"metadata": {"name": name}, "data": {"x": "x" * size}})


def names(client):
    return {o["metadata"]["name"] for o in client.ask("GET", PATH).json["items"]}


def check_failing(client, what, made, word):
    """Writes fail and say why, reads go on, what failed left nothing."""
    reply = create(client, "refused", 20000)
    status = reply.json
    tap.ok(reply.status in (500, 503, 507), f"{what}: a write gets a 5xx", f"{reply.status} {reply.body}")
    tap.ok(word in status.get("message", "").lower(), f"{what}: it says why", reply.body)
    tap.equal(client.ask("GET", f"{PATH}/first").status, 200, f"{what}: reads go on")
    tap.equal(names(client) - {"kube-root-ca.crt"}, made, f"{what}: what failed left nothing")
    ready = client.ask("GET", "/readyz")
    tap.ok(ready.status >= 500, f"{what}: it is not ready", f"{ready.status} {ready.body}")


def full_disk(program, scratch):
    folder = scratch.file("small")
    os.mkdir(folder)
    script = 'mount -t tmpfs -o size=64m none "$0" && exec "$@"'
    wrapper = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, folder]
    with Server(program, folder, wrapper=wrapper, own_mounts=True) as server:
        client, made = Client(server), {"first"}
        create(client, "first")
        filler = f"{server.inside}/filler"
        with open(filler, "wb", buffering=0) as f:
            try:
                while True:
                    f.write(b"\0" * 4096)
            except OSError:
                pass
        for i in range(2000):  # there may be room left inside the files
            if create(client, f"more-{i}", 20000).status != 201:
                break
            made.add(f"more-{i}")
        check_failing(client, "disk full", made, "space")
        os.unlink(filler)
        tap.ok(wait_for(lambda: create(client, "after").status == 201), "room again: it goes on by itself")
        tap.ok(wait_for(lambda: client.ask("GET", "/readyz").status == 200), "and is ready",
               client.ask("GET", "/readyz?verbose").body)
        tap.equal(names(client) - {"kube-root-ca.crt"}, made | {"after"}, "and has everything")


def no_writes(program, scratch):
    with Server(program, scratch.file("data")) as server:
        client = Client(server)
        create(client, "first")
        calls = "pwrite64,fdatasync,fsync,ftruncate,fallocate"
        tracer = subprocess.Popen(
            ["strace", "-f", "-q", "-o", "/dev/null", "-e", f"inject={calls}:error=EROFS", "-p",
             str(server.process.pid)], stderr=subprocess.PIPE)
        try:
            traced = f"/proc/{server.process.pid}/status"

            def attached():
                with open(traced, encoding="ascii") as f:
                    return "TracerPid:\t0" not in f.read()
            tap.ok(wait_for(attached), "the disk takes no more writes")
            wait_for(lambda: create(client, "probe").status != 201)
            made = {"first"} | (names(client) & {"probe"})
            check_failing(client, "read-only", made, "read-only")
        finally:
            tracer.terminate()
            tracer.wait()
        tap.ok(wait_for(lambda: create(client, "after").status == 201), "writable again: it goes on by itself")
        server.kill()
        server.start()
        client.close()
        tap.ok({"first", "after"} <= names(client), "and after a crash has everything")
        tap.equal(client.ask("GET", f"{PATH}/refused").status, 404, "and nothing that was refused")


with Scratch() as scratch_folder:
    full_disk(sys.argv[1], scratch_folder)
    no_writes(sys.argv[1], scratch_folder)
tap.done()
