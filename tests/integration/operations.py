#!/usr/bin/env python3
"""Running the API server: metrics, health, the request log, backup and restore.

operations.py APISERVER TOP ORLOP
"""
import http.client
import json
import os
import re
import resource
import signal
import stat
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from tap import Scratch, Tap, run  # noqa: E402

program, top, orlop = sys.argv[1:4]
tap = Tap()
maps = "/api/v1/namespaces/default/configmaps"
STEP = 1000000000


class Server:
    """One that listens on loopback until the block ends; its log is a file."""

    def __init__(self, folder, log, *options):
        self.folder, self.log, self.options = folder, log, options

    def __enter__(self):
        # A write beyond the limit of file sizes is to be an error, as on a full disk; for the log,
        # which is a file as well, somebody else writes.
        self.writer = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=open(self.log, "w"))
        self.process = subprocess.Popen(
            [program, "--data-dir", self.folder, "--port", "0", "--plain-http", *self.options],
            stdout=subprocess.PIPE, stderr=self.writer.stdin, text=True,
            preexec_fn=lambda: signal.signal(signal.SIGXFSZ, signal.SIG_IGN))
        self.writer.stdin.close()
        self.url = self.process.stdout.readline().strip()
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.status = self.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.status = None
        self.writer.wait()

    def send(self, method, path, value=None, headers=None):
        """Status, text and headers."""
        data = json.dumps(value).encode() if value is not None else None
        request = urllib.request.Request(
            self.url + path, data, {"Content-Type": "application/json", **(headers or {})},
            method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return reply.status, reply.read().decode(), reply.headers
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode(), error.headers

    def create(self, name):
        return self.send("POST", maps, {"apiVersion": "v1", "kind": "ConfigMap",
                                        "metadata": {"name": name}, "data": {"k": "secret"}})[0]

    def metrics(self):
        return self.send("GET", "/metrics")[1]

    def metric(self, name, **labels):
        """The sum of all series with these labels."""
        total = 0.0
        for line in self.metrics().splitlines():
            found = re.match(r"([a-z_]+)(?:\{(.*)\})? (.+)$", line)
            if not found or found[1] != name:
                continue
            own = dict(re.findall(r'([a-z_]+)="([^"]*)"', found[2] or ""))
            if all(own.get(k) == v for k, v in labels.items()):
                total += float(found[3])
        return total

    def lines(self):
        with open(self.log, encoding="utf-8") as f:
            return [json.loads(line) for line in f if line.startswith("{")]


def wait_for(condition, seconds=30):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        result = condition()
        if result:
            return result
        time.sleep(0.05)
    return condition()


def open_watch(server):
    connection = http.client.HTTPConnection(server.url[len("http://"):], timeout=60)
    connection.request("GET", maps + "?watch=true", headers={"User-Agent": "the-watcher"})
    return connection, connection.getresponse()


def check_metrics(server):
    server.send("GET", maps)
    status, text, headers = server.send("GET", "/metrics")
    tap.equal((status, headers["Content-Type"]), (200, "text/plain; version=0.0.4; charset=utf-8"),
              "metrics are text")
    names = set(re.findall(r"^# TYPE (\S+)", text, re.M))
    for name in ("apiserver_request_total", "apiserver_request_duration_seconds",
                 "apiserver_current_inflight_requests", "apiserver_storage_objects",
                 "apiserver_storage_size_bytes", "orlop_store_commit_duration_seconds",
                 "orlop_store_commit_batch_size", "orlop_store_revision",
                 "process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds",
                 "process_start_time_seconds"):
        tap.ok(name in names, f"there is {name}", sorted(names))
    bad = [line for line in text.splitlines()
           if not re.match(r'(# (HELP|TYPE) \S+ .*|[a-z_]+(\{([a-z_]+="([^"\\]|\\.)*",?)+\})? \S+)$', line)]
    tap.equal(bad, [], "every line is well formed")
    labels = {"verb": "POST", "resource": "configmaps", "group": "", "version": "v1",
              "scope": "namespace", "code": "201"}
    before = (server.metric("apiserver_request_total", **labels),
              server.metric("apiserver_request_duration_seconds_count", verb="POST"),
              server.metric("apiserver_storage_objects", resource="configmaps"),
              server.metric("orlop_store_revision"),
              server.metric("orlop_store_commit_duration_seconds_count"))
    for i in range(3):
        server.create(f"counted-{i}")
    after = (server.metric("apiserver_request_total", **labels),
             server.metric("apiserver_request_duration_seconds_count", verb="POST"),
             server.metric("apiserver_storage_objects", resource="configmaps"),
             server.metric("orlop_store_revision"),
             server.metric("orlop_store_commit_duration_seconds_count"))
    tap.equal([b - a for a, b in zip(before, after)], [3, 3, 3, 3, 3], "three creates are counted")
    server.send("GET", maps + "/none")
    tap.equal(server.metric("apiserver_request_total", verb="GET", resource="configmaps", code="404",
                            scope="resource"), 1, "what is not found is counted")
    server.send("GET", "/no/such/path")
    tap.equal(server.metric("apiserver_request_total", resource="", code="404"), 1,
              "and what is no path")
    tap.ok(server.metric("apiserver_storage_size_bytes") > 4096, "the store has a size")
    tap.equal(server.metric("apiserver_current_inflight_requests"), 1, "the one that asks is in flight")

    connection, reply = open_watch(server)
    tap.equal(server.metric("apiserver_longrunning_requests", verb="WATCH", resource="configmaps"), 1,
              "a watch is counted while it lasts")
    events = server.metric("apiserver_watch_events_total", resource="configmaps")
    server.create("watched")
    while b"watched" not in reply.readline():
        pass
    tap.ok(server.metric("apiserver_watch_events_total", resource="configmaps") > events,
           "its events are counted")
    reply.close()
    connection.close()
    tap.ok(wait_for(lambda: server.metric("apiserver_longrunning_requests") == 0),
           "and no longer when its client has gone")
    tap.ok(wait_for(lambda: server.metric("apiserver_request_total", verb="WATCH", code="200") == 1),
           "then it is a request that is over")


def check_health(server):
    for path in ("/healthz", "/livez", "/readyz", "/readyz/ping", "/livez/followers", "/readyz/store"):
        status, text, _ = server.send("GET", path)
        tap.equal((status, text), (200, "ok"), f"{path} is ok")
    ready = ("[+]ping ok\n[+]store ok\n[+]followers ok\n[+]startup ok\n[+]shutdown ok\n"
             "readyz check passed\n")
    tap.equal(server.send("GET", "/readyz?verbose")[1], ready, "readyz in detail")
    tap.equal(server.send("GET", "/livez?verbose")[1],
              "[+]ping ok\n[+]followers ok\nlivez check passed\n", "livez in detail")
    tap.equal(server.send("GET", "/livez?verbose&exclude=ping&exclude=followers")[1],
              "[+]ping excluded: ok\n[+]followers excluded: ok\nlivez check passed\n",
              "checks that are excluded")
    tap.ok('warn: some health checks cannot be excluded: no matches for "frob"' in
           server.send("GET", "/livez?verbose&exclude=frob")[1], "a check that there is not")
    tap.equal(server.send("GET", "/readyz/frob")[0], 404, "nor can it be asked for")

    # The disk is full: no file may grow.
    pid = server.process.pid
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    status = server.create("no-room")
    tap.ok(status in (500, 503), "a write on a full disk fails", status)
    status, text, _ = server.send("GET", "/readyz")
    tap.ok(status == 503 and "[-]store failed: " in text and text.endswith("readyz check failed\n"),
           "then the server is not ready", f"{status} {text}")
    tap.equal(server.send("GET", "/livez")[0], 200, "but alive")
    tap.equal(server.send("GET", "/readyz?exclude=store")[0], 200, "and ready but for the store")
    tap.equal(server.send("GET", maps)[0], 200, "and reads go on")
    tap.ok(server.metric("orlop_store_commit_failures_total") > 0, "the failure is counted")
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    tap.ok(wait_for(lambda: server.send("GET", "/readyz")[0] == 200),
           "with room again it becomes ready by itself")
    tap.equal(server.create("room"), 201, "and takes writes")


def check_log(server):
    marker = {"User-Agent": "the-tester", "Audit-ID": "my-own-id"}
    status, _, headers = server.send("GET", maps, headers=marker)
    tap.equal(headers["Audit-Id"], "my-own-id", "an id that the client gave comes back")
    _, _, headers = server.send("GET", maps, headers={"Audit-ID": "no \"good\" one"})
    tap.ok(re.fullmatch(r"[0-9a-f-]{36}", headers["Audit-Id"]), "else it is made", headers["Audit-Id"])
    server.create("logged")

    def line(**wanted):
        return next((x for x in server.lines() if all(x.get(k) == v for k, v in wanted.items())), None)

    found = wait_for(lambda: line(audit="my-own-id"))
    tap.equal([found.get(k) for k in ("level", "msg", "method", "path", "code", "agent")],
              ["debug", "request", "GET", maps, 200, "the-tester"], "a read, at level debug")
    tap.ok(found["bytes"] > 0 and found["us"] >= 0 and found["peer"].startswith("127.0.0.1:") and
           found["user"], "with size, time, peer and user", found)
    tap.ok(line(method="POST", path=maps, code=201, level="info"), "a write, at level info")
    tap.ok(line(method="POST", level="warn"), "what failed, at level warn")
    watch = wait_for(lambda: line(msg="watch", agent="the-watcher"))
    tap.ok(watch and watch["code"] == 200 and watch["bytes"] > 0, "a watch, at its end", watch)
    with open(server.log, encoding="utf-8") as f:
        tap.ok("secret" not in f.read(), "nothing of what objects hold")
    for _ in range(600):
        server.send("GET", "/livez")
    tap.ok(len(server.lines()) > 100, "many requests are many lines, up to a limit")


def writers(server, stop, done):
    i = 0
    while not stop.is_set():
        if server.create(f"busy-{i}") == 201:
            done.append(f"busy-{i}")
        i += 1


with Scratch() as scratch:
    data, log, backup = scratch.file("data"), scratch.file("log"), scratch.file("backup.db")

    def kubectl(server, *argv):
        return run("kubectl", "--server", server.url, *argv, env=scratch.kubectl_env())

    def expect(name, argv, status=0, stdout=None, stderr=None):
        result = run(orlop, *argv)
        passed = result.returncode == status
        passed &= stdout is None or stdout in result.stdout
        passed &= stderr is None or stderr in result.stderr
        return tap.ok(passed, name, f"exit status {result.returncode}\n{result.stdout}{result.stderr}")

    expect("backup of nothing", ["backup", "--data-dir", scratch.file("none"), backup], 1,
           stderr="No such file")
    os.mkdir(scratch.file("empty"))
    expect("backup of an empty folder", ["backup", "--data-dir", scratch.file("empty"), backup], 1,
           stderr="there is no store in")
    expect("backup without a folder", ["backup", backup], 2, stderr="--data-dir")
    tap.equal(os.path.exists(backup) or os.path.exists(backup + ".part"), False, "nothing was left")

    with Server(data, log, "--log-format", "json", "-v") as server:
        check_metrics(server)
        check_health(server)
        check_log(server)

        # A backup while somebody writes.
        mode = os.stat(os.path.join(data, "control.sock"))
        tap.equal((stat.S_ISSOCK(mode.st_mode), stat.S_IMODE(mode.st_mode)), (True, 0o600),
                  "the control socket is its owner's alone")
        stop, done = threading.Event(), []
        busy = threading.Thread(target=writers, args=(server, stop, done))
        busy.start()
        wait_for(lambda: len(done) > 20)
        before = list(done)
        expect("backup of a running server", ["backup", "--data-dir", data, backup],
               stdout=f"{backup}: ")
        expect("in a folder that is not there",
               ["backup", "--data-dir", data, scratch.file("none") + "/x"], 1, stderr="No such file")
        expect("restore below a running server",
               ["restore", "--data-dir", data, "--force", backup], 1, stderr="in use")
        stop.set()
        busy.join()
        tap.equal(stat.S_IMODE(os.stat(backup).st_mode), 0o600, "only its owner can read it")
        tap.equal(sorted(n for n in os.listdir(data) if "backup" in n), [], "nothing is left behind")
        last = json.loads(server.send("GET", maps)[1])["metadata"]["resourceVersion"]
        result = kubectl(server, "get", "cm", "-o", "name")
        now = set(result.stdout.split())
        tap.ok({f"configmap/{n}" for n in before} <= now, "the server went on", result.stderr)
    tap.equal(server.status, 0, "it ends in order")
    tap.equal(os.path.exists(os.path.join(data, "control.sock")), False, "and takes the socket along")

    # A restore elsewhere.
    elsewhere = scratch.file("elsewhere")
    expect("restore of what is not there", ["restore", "--data-dir", elsewhere, scratch.file("none")],
           1, stderr="No such file")
    expect("restore of junk", ["restore", "--data-dir", elsewhere, scratch.file("junk", "x" * 5000)],
           1, stderr="is not a database")
    expect("restore", ["restore", "--data-dir", elsewhere, backup], stdout="restored")
    with Server(elsewhere, scratch.file("log2")) as server:
        names = {f"configmap/{n}" for n in before}
        found = set(kubectl(server, "get", "cm", "-o", "name").stdout.split())
        tap.ok(names <= found <= now, "kubectl sees what was there, and nothing else",
               f"missing {names - found}, strange {found - now}")
    expect("restore over a store", ["restore", "--data-dir", elsewhere, backup], 1, stderr="--force")

    # A restore in place: the lost changes' revisions never come again.
    with Server(data, log) as server:
        server.create("lost")
        last = int(json.loads(server.send("GET", maps)[1])["metadata"]["resourceVersion"])
    expect("restore in place", ["restore", "--data-dir", data, "--force", backup],
           stdout="before-restore-")
    aside = [n for n in os.listdir(data) if n.startswith("store.db.before-restore-")]
    tap.ok(aside, "what was there is kept", os.listdir(data))
    with Server(data, log) as server:
        result = json.loads(server.send("GET", maps)[1])
        tap.ok("lost" not in [o["metadata"]["name"] for o in result["items"]], "the past is back")
        tap.equal(int(result["metadata"]["resourceVersion"]), last + STEP,
                  "revisions went on beyond what anybody saw")
        for seen in (1, last - 1, last, last + 7):
            _, text, _ = server.send("GET", f"{maps}?watch=true&resourceVersion={seen}&timeoutSeconds=5")
            first = json.loads(text.split("\n")[0])
            tap.equal((first["type"], first["object"]["code"]), ("ERROR", 410),
                      f"a watch from {'before' if seen <= last else 'nowhere'} must list again")
        tap.equal(server.create("after"), 201, "and it takes writes")
    expect("backup of a store that nobody uses", ["backup", "--data-dir", data, backup],
           stdout="not in use")
    expect("and quietly", ["backup", "-q", "--data-dir", data, backup], stdout="")
tap.done()
