#!/usr/bin/env python3
"""Answers that are compressed: long ones, for clients that take gzip, and nothing else.

compression.py APISERVER
"""
import gzip
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from server import Client, Server  # noqa: E402
from tap import Scratch, Tap, wait_for  # noqa: E402

program = sys.argv[1]
tap = Tap()
MAPS = "/api/v1/namespaces/default/configmaps"
METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
OBJECTS, BYTES = 200, 3000


def config_map(name, size):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"a": "b"}},
            "data": {"text": "".join(f"{i} " for i in range(size // 5))[:size]}}


def get(server, path, encoding, **headers):
    return server.request("GET", path, headers={
        **({"Accept-Encoding": encoding} if encoding is not None else {}), **headers})


def same(server, name, path, **headers):
    """Compressed it is the same, and shorter."""
    plain = get(server, path, None, **headers)
    packed = get(server, path, "gzip", **headers)
    tap.equal((packed.status, plain.headers["Content-Encoding"], packed.headers["Content-Encoding"],
               packed.headers["Content-Type"]),
              (200, None, "gzip", plain.headers["Content-Type"]), f"{name} is compressed")
    tap.ok("Accept-Encoding" in packed.headers.get_all("Vary"), "caches are told")
    tap.ok(gzip.decompress(packed.body) == plain.body, "it is the same")
    tap.ok(len(packed.body) < len(plain.body) // 2,
           f"{len(plain.body)} bytes, {len(packed.body)} compressed")


def not_compressed(server, name, path, encoding="gzip", **headers):
    reply = get(server, path, encoding, **headers)
    tap.equal((reply.status, reply.headers["Content-Encoding"]), (200, None),
              f"{name} is not compressed")
    json.loads(reply.body)


with Scratch() as scratch:
    with Server(program, scratch.file("data")) as server:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda i: server.create(MAPS, config_map(f"m{i}", BYTES)),
                          range(OBJECTS)))
        server.create(MAPS, config_map("x-large", 300000))

        same(server, "a list as it is stored", MAPS)
        same(server, "a list in another form", MAPS, Accept=METADATA)
        same(server, "a long object", f"{MAPS}/x-large")
        same(server, "a document", "/openapi/v2")
        for encoding in ("deflate, gzip", "gzip;q=0.5", "br;q=1.0,GZIP ; q=0.8, *;q=0.1"):
            tap.equal(get(server, MAPS, encoding).headers["Content-Encoding"], "gzip",
                      f"Accept-Encoding: {encoding}")
        for encoding in (None, "", "deflate", "identity", "gzip;q=0", "xgzip", "gzip2", ",;,="):
            not_compressed(server, f"Accept-Encoding: {encoding}", MAPS, encoding)
        not_compressed(server, "a short list", f"{MAPS}?limit=5")
        not_compressed(server, "a short object", f"{MAPS}/m1")

        # A watch sends each event at once, which a compressor would hold back.
        watcher = Client(server)
        response = watcher.send("GET", f"{MAPS}?watch=1&resourceVersion=0&timeoutSeconds=30",
                                headers={"Accept-Encoding": "gzip"})
        tap.equal(response.headers["Content-Encoding"], None, "a watch is not compressed")
        tap.equal(json.loads(response.readline())["type"], "ADDED", "its events are readable")
        watcher.close()

        # Pages put together are the whole.
        names, token = [], ""
        while token is not None:
            page = json.loads(gzip.decompress(get(
                server, f"{MAPS}?limit=90&continue={token}", "gzip").body))
            names += [one["metadata"]["name"] for one in page["items"]]
            token = page["metadata"].get("continue")
            if len(names) > 180:
                break
        tap.equal(len(set(names)), len(names), "pages")

        # Clients that leave in the middle are forgotten, and the server goes on.
        for _ in range(20):
            leaver = Client(server)
            leaver.send("GET", MAPS, headers={"Accept-Encoding": "gzip"}).read(100)
            leaver.close()
        tap.ok(wait_for(lambda: get(server, MAPS, "gzip").status == 200), "clients that leave")
        tap.ran(server.kubectl("get", "configmaps", "-o", "name"), "kubectl takes it",
                stdout="configmap/m199")
tap.done()
