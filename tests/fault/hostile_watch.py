#!/usr/bin/env python3
"""An informer behind a proxy that means harm, of a server that is killed: its cache comes to be right.

hostile_watch.py APISERVER CACHE_DUMP [sanitized]

    writer --> orlop-apiserver --> proxy: each answer may get a fault --> cache_dump

The proxy never leaves out an event and goes on as if nothing had been: that nobody could notice.
"""
import http.client
import json
import os
import random
import re
import socket
import struct
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from server import Client, Server  # noqa: E402
from tap import Scratch, Tap, wait_for  # noqa: E402

PATH = "/api/v1/namespaces/default/configmaps"
KUBECONFIG = """kind: Config
current-context: c
contexts: [{{name: c, context: {{cluster: k}}}}]
clusters: [{{name: k, cluster: {{server: "http://127.0.0.1:{}"}}}}]
"""
SECONDS = 4  # of harm, for each kind
SANITIZED = sys.argv[3:] == ["sanitized"]
tap = Tap()
# Freed memory that a sanitizer holds back is not the program's.
os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=1"


def status(code, reason):
    return json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
                       "reason": reason, "message": f"hostile {reason}"}).encode()


def event(kind, value):
    return json.dumps({"type": kind, "object": value}).encode() + b"\n"


# What may become of a list: a function of the proxy's answer, with its status, headers and body.
LIST_FAULTS = {
    "500": lambda a: a.reply(500, status(500, "InternalError")),
    "503": lambda a: a.reply(503, b"nobody is here", {"Retry-After": "1"}),
    "429": lambda a: a.reply(429, status(429, "TooManyRequests"), {"Retry-After": "1"}),
    "410": lambda a: a.reply(410, status(410, "Expired")),
    "no answer": lambda a: a.end(),
    "reset": lambda a: a.reset(),
    "cut": lambda a: a.reply(200, a.body, cut=len(a.body) // 2),
    "malformed": lambda a: a.reply(200, a.body[:len(a.body) // 2]),
    "deep": lambda a: a.reply(200, b"[" * 100000),
    "other kind": lambda a: a.reply(200, a.body.replace(b"ConfigMapList", b"SecretList")),
    "no version": lambda a: a.reply(200, a.body.replace(b'"resourceVersion"', b'"version"', 1)),
    "too large": lambda a: a.reply(200, b'{"x":"' + b"x" * (9 << 20) + b'"}'),
    "slow": lambda a: a.dribble(200, a.body),
}


class Fault:
    """What becomes of the lines of a watch: forward() sends what is due; False ends the watch."""

    def __init__(self, answer, after):
        self.answer, self.after, self.held = answer, after, None

    def forward(self, line):
        self.after -= 1
        if self.after > 0:
            self.answer.chunk(line)
            return True
        return self.harm(line)

    def harm(self, line):
        raise NotImplementedError


def harmful(name, send, goes_on=False):
    """A fault that sends bytes in place of an event, which is then not told."""
    def harm(self, line):
        send(self.answer, line)
        return goes_on
    return type(name, (Fault,), {"harm": harm})


class Swapped(Fault):
    """Two events in the wrong order."""

    def harm(self, line):
        if self.held is None:
            self.held = line
            return True
        self.answer.chunk(line + self.held)
        return True


class Silent(Fault):
    """Nothing any more, and no end; until the client leaves."""

    def harm(self, line):
        self.answer.wait_gone()
        return False


def changed(line, **members):
    value = json.loads(line)
    value["object"].update(members)
    return json.dumps(value).encode() + b"\n"


def moved(line):
    value = json.loads(line)
    value["object"]["metadata"]["namespace"] = "elsewhere"
    return json.dumps(value).encode() + b"\n"


def old(line):
    value = json.loads(line)
    value["object"]["metadata"]["resourceVersion"] = "1"
    return json.dumps(value).encode() + b"\n"


def split(answer, line):
    for at in range(0, len(line), 7):
        answer.chunk(line[at:at + 7])


WATCH_FAULTS = {
    "end": harmful("End", lambda a, line: a.last()),
    "half an event, then the end": harmful("Half", lambda a, line: (a.chunk(line[:-9]), a.last())),
    "half an event, then a reset": harmful("Reset", lambda a, line: (a.chunk(line[:-9]), a.reset())),
    "half an event, then silence": harmful("Stall", lambda a, line: (a.chunk(line[:9]), a.wait_gone())),
    "too old": harmful("Old", lambda a, line: a.chunk(event("ERROR", json.loads(status(410, "Expired"))))),
    "an error": harmful("Error", lambda a, line: a.chunk(
        event("ERROR", json.loads(status(500, "InternalError"))))),
    "no JSON": harmful("Garbage", lambda a, line: a.chunk(b"\x00\xff{]\n"), True),
    "a line without an end": harmful("Endless", lambda a, line: a.chunk(b"x" * (6 << 20)), True),
    "a huge event": harmful("Huge", lambda a, line: a.chunk(
        changed(line, data={"x": "x" * (6 << 20)})), True),
    "another kind": harmful("Kind", lambda a, line: a.chunk(changed(line, kind="Secret")), True),
    "another namespace": harmful("Place", lambda a, line: a.chunk(moved(line)), True),
    "an old event": harmful("Back", lambda a, line: a.chunk(old(line)), True),
    "an unknown type": harmful("Type", lambda a, line: a.chunk(
        event("CHANGED", json.loads(line)["object"])), True),
    "no object": harmful("Nothing", lambda a, line: a.chunk(b'{"type":"ADDED"}\n'), True),
    "each event twice": harmful("Twice", lambda a, line: a.chunk(line + line), True),
    "in pieces": harmful("Pieces", split, True),
    "the wrong order": Swapped,
    "silence": Silent,
}


class Answer:
    """One answer of the proxy, on a connection that serves no other."""

    def __init__(self, connection):
        self.connection, self.body = connection, b""

    def _send(self, data):
        self.connection.sendall(data)

    def _head(self, code, headers):
        lines = "".join(f"{k}: {v}\r\n" for k, v in headers.items())
        self._send(f"HTTP/1.1 {code} X\r\nConnection: close\r\n"
                   f"Content-Type: application/json\r\n{lines}\r\n".encode())

    def reply(self, code, body, headers=None, cut=None):
        self._head(code, {"Content-Length": len(body), **(headers or {})})
        self._send(body[:cut])

    def dribble(self, code, body):
        self._head(code, {"Content-Length": len(body)})
        step = max(1, len(body) // 200)
        for at in range(0, len(body), step):
            self._send(body[at:at + step])
            time.sleep(0.002)  # this is the fault

    def stream(self):
        self._head(200, {"Transfer-Encoding": "chunked"})

    def chunk(self, data):
        self._send(b"%x\r\n%s\r\n" % (len(data), data))

    def last(self):
        self._send(b"0\r\n\r\n")

    def end(self):
        self.connection.shutdown(socket.SHUT_RDWR)

    def reset(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def wait_gone(self):
        try:
            while self.connection.recv(4096):
                pass
        except OSError:
            pass


class Proxy:
    """Forwards to the server; while there are faults, with those, at random but each at some time."""

    def __init__(self, server, seed):
        self.server, self.random = server, random.Random(seed)
        self.list_faults, self.watch_faults = [], []
        self.done = {}  # fault: how often
        self.watches = set()  # connections
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def set_faults(self, lists, watches):
        """From now on; watches begin anew."""
        self.list_faults, self.watch_faults = list(lists), list(watches)
        for connection in list(self.watches):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it has just ended

    def close(self):
        self.listener.close()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return  # close()
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        try:
            with connection:
                connection.settimeout(30)
                head = b""
                while b"\r\n\r\n" not in head:
                    if not (data := connection.recv(65536)):
                        return
                    head += data
                target = head.split(b" ")[1].decode()
                handle = self._watch if "watch=true" in target else self._list
                handle(Answer(connection), target)
        except (OSError, http.client.HTTPException):
            pass  # the client has left, or the server was killed: that breaks the answer

    def _choose(self, names):
        if not names or self.random.random() < 0.3:
            return None
        name = self.random.choice([n for n in names if n not in self.done] or names)
        self.done[name] = self.done.get(name, 0) + 1
        return name

    def _list(self, answer, target):
        reply = self.server.request("GET", target)
        answer.body = reply.body
        name = self._choose(self.list_faults)
        if name:
            LIST_FAULTS[name](answer)
        else:
            answer.reply(reply.status, reply.body)

    def _watch(self, answer, target):
        client = Client(self.server, timeout=30)
        try:
            response = client.send("GET", target)
            if response.status != 200:
                answer.reply(response.status, response.read())
                return
            answer.stream()
            self.watches.add(answer.connection)
            self._forward(answer, response)
        finally:
            self.watches.discard(answer.connection)
            client.close()

    def _forward(self, answer, response):
        name = self._choose(self.watch_faults)
        fault = WATCH_FAULTS[name](answer, self.random.randrange(1, 8)) if name else None
        # While there is harm to do no watch lasts.
        left = self.random.randrange(8, 30) if self.watch_faults else None
        while left != 0 and (line := response.readline()):
            if not line.endswith(b"\n"):
                return  # the server was killed
            if fault is None:
                answer.chunk(line)
            elif not fault.forward(line):
                return
            left = left and left - 1
        answer.last()


class Cache:
    """The program with the informer."""

    def __init__(self, program, kubeconfig, log):
        self.process = subprocess.Popen(
            [program, kubeconfig, "v1", "ConfigMap", "default", "1000", "400"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def lines(self, command):
        line, found = self.ask(command), []
        while line != "end":
            if not line:
                raise RuntimeError("cache_dump has ended")
            found.append(line)
            line = self.process.stdout.readline().strip()
        return found

    def dump(self):
        objects = [json.loads(line) for line in self.lines("dump")]
        return {o["metadata"]["name"]: o for o in objects}

    def count(self, name):
        return sum(int(line.rsplit(" ", 1)[1]) for line in self.lines("metrics")
                   if line.startswith(name + "{"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.stdin.close()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Writer:
    """Creates, changes and deletes objects as fast as it may, on a thread, until stopped."""

    def __init__(self, server, seed):
        self.server, self.random, self.stopping = server, random.Random(seed), False
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        client = Client(self.server, timeout=10)
        while not self.stopping:
            name = f"m{self.random.randrange(40)}"
            body = {"metadata": {"name": name}, "data": {"n": str(self.random.random())}}
            try:
                if self.random.random() < 0.3:
                    client.ask("DELETE", f"{PATH}/{name}")
                elif client.ask("PUT", f"{PATH}/{name}", body).status == 404:
                    client.ask("POST", PATH, body)
            except (OSError, http.client.HTTPException):
                time.sleep(0.02)  # it was killed, and will be back
        client.close()

    def stop(self):
        self.stopping = True
        self.thread.join()


def listed(server):
    reply = server.request("GET", PATH).json
    for item in reply["items"]:
        item["metadata"].pop("managedFields", None)
        item.setdefault("kind", "ConfigMap")
        item.setdefault("apiVersion", "v1")
    return {o["metadata"]["name"]: o for o in reply["items"]}


def difference(cache, truth):
    names = sorted(set(cache) | set(truth))
    return [f"{n}: cache {cache.get(n)}, server {truth.get(n)}" for n in names
            if cache.get(n) != truth.get(n)][:3]


def converges(server, cache, name):
    truth = listed(server)
    wait_for(lambda: cache.dump() == truth)
    got = cache.dump()
    tap.ok(got == truth, name, "\n".join(difference(got, truth)))


def harm(server, proxy, cache, seed):
    """All faults of lists, then of watches, while objects change."""
    # Lists are made when there is reason to.
    for lists, watches, name in ((LIST_FAULTS, ["too old"], "list"), ([], WATCH_FAULTS, "watch")):
        wanted, counter = set(lists or watches), "rest_client_requests_total"
        before, begin = cache.count(counter), time.monotonic()
        proxy.done.clear()
        proxy.set_faults(lists, watches)
        writer = Writer(server, seed)
        try:
            wait_for(lambda: wanted <= set(proxy.done) and time.monotonic() - begin >= SECONDS, 90)
        finally:
            writer.stop()
            proxy.set_faults([], [])
        missing = wanted - set(proxy.done)
        tap.ok(not missing, f"every fault of a {name} has been", f"not these: {missing}")
        asked = cache.count(counter) - before
        tap.ok(asked > len(wanted), f"each led to another {name}", f"{asked} for {len(wanted)}")
        converges(server, cache, f"after all faults of a {name} the cache is as the server says")


def killed(server, proxy, cache):
    """The server dies in the middle of everything, three times."""
    proxy.set_faults([], ["end", "half an event, then a reset"])
    writer = Writer(server, 3)
    try:
        for _ in range(3):
            seen = cache.count("reflector_events_total")
            wait_for(lambda at=seen: cache.count("reflector_events_total") > at + 20, 30)
            server.kill()
            server.start()
    finally:
        writer.stop()
        proxy.set_faults([], [])
    tap.equal(server.process.poll(), None, "the server has survived each start")
    converges(server, cache, "after the server was killed the cache is as the server says")


def main():
    seed = int(os.environ.get("SEED", random.randrange(1 << 30)))
    print(f"# SEED={seed}", flush=True)
    with Scratch() as scratch, open(scratch.file("log"), "w", encoding="utf-8") as log, \
            Server(sys.argv[1], scratch.file("data"), log=log) as server:
        proxy = Proxy(server, seed)
        for i in range(20):
            server.create(PATH, {"metadata": {"name": f"m{i}"}, "data": {"n": "0"}})
        kubeconfig = scratch.file("kubeconfig", KUBECONFIG.format(proxy.port))
        with open(scratch.file("cache.log"), "w", encoding="utf-8") as cache_log, \
                Cache(sys.argv[2], kubeconfig, cache_log) as cache:
            tap.equal(cache.ask("wait"), "synced", "a first list is in the cache")
            converges(server, cache, "it is as the server says")
            before = int(cache.ask("memory"))
            harm(server, proxy, cache, seed)
            killed(server, proxy, cache)
            grown = (int(cache.ask("memory")) - before) // 1024
            tap.ok(grown < (150 if SANITIZED else 30), "its memory has not grown", f"{grown} MB")
            tap.equal(cache.ask("chain"), "ok", "handlers were told of each object in order")
            cache.process.stdin.close()
            tap.equal(cache.process.wait(30), 0, "it ends in order")
        proxy.close()
        with open(scratch.file("cache.log"), encoding="utf-8") as f:
            text = f.read()
        tap.ok(not re.search("Sanitizer|runtime error", text), "no sanitizer found anything", text[-3000:])
    tap.done()


main()
