#!/usr/bin/env python3
"""Running the API server: metrics, health, the request log, backup and restore.

operations.py APISERVER TOP ORLOP
"""
import json
import os
import re
import resource
import stat
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from server import Client, Server  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402

program, top, orlop = sys.argv[1:4]
tap = Tap()
maps = "/api/v1/namespaces/default/configmaps"
STEP = 1000000000


class Observed(Server):
    """One that is asked for its metrics; its log is a file."""

    def __init__(self, folder, log, *options):
        # A write beyond the limit of file sizes is to be an error, as on a full disk; for the log,
        # which is a file as well, somebody else writes.
        super().__init__(program, folder, *options, wrapper=("env", "--ignore-signal=XFSZ"))
        self.lines_path = log

    def __enter__(self):
        with open(self.lines_path, "w", encoding="utf-8") as f:
            writer = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=f)
        self.log, self.writer = writer.stdin, writer
        super().__enter__()
        writer.stdin.close()
        return self

    def __exit__(self, *what):
        super().__exit__(*what)
        self.writer.wait()

    def make(self, name):
        return self.ask("POST", maps, {"apiVersion": "v1", "kind": "ConfigMap",
                                       "metadata": {"name": name}, "data": {"k": "secret"}})[0]

    def metric(self, name, **labels):
        """The sum of all series with these labels."""
        total = 0.0
        for line in self.get("/metrics")[1].splitlines():
            found = re.match(r"([a-z_]+)(?:\{(.*)\})? (.+)$", line)
            if not found or found[1] != name:
                continue
            own = dict(re.findall(r'([a-z_]+)="([^"]*)"', found[2] or ""))
            if all(own.get(k) == v for k, v in labels.items()):
                total += float(found[3])
        return total

    def lines(self):
        with open(self.lines_path, encoding="utf-8") as f:
            return [json.loads(line) for line in f if line.startswith("{")]


NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")


def open_watch(server):
    client = Client(server)
    return client, client.send("GET", maps + "?watch=true", headers={"User-Agent": "the-watcher"})


def check_metrics(server):
    server.get(maps)
    reply = server.request("GET", "/metrics")
    text = reply.text
    tap.equal((reply.status, reply.headers["Content-Type"]), (
        200, "text/plain; version=0.0.4; charset=utf-8"),
              "metrics are text")
    names = set(re.findall(r"^# TYPE (\S+)", text, re.M))
    for name in ("apiserver_request_total", "apiserver_request_duration_seconds",
                 "apiserver_current_inflight_requests", "apiserver_storage_objects",
                 "apiserver_storage_size_bytes", "apiserver_audit_event_total",
                 "apiserver_audit_error_total", "orlop_store_commit_duration_seconds",
                 "orlop_store_commit_batch_size", "orlop_store_revision",
                 "process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds",
                 "process_start_time_seconds"):
        tap.ok(name in names, f"there is {name}", sorted(names))
    bad = [line for line in text.splitlines()
           if not re.match(r'(# (HELP|TYPE) \S+ .*|[a-z_]+(\{([a-z_]+="([^"\\]|\\.)*",?)+\})? \S+)$', line)]
    tap.equal(bad, [], "every line is well formed")
    # What the server writes by itself after its start, so that nobody else's writes are counted.
    own = ([f"/api/v1/namespaces/{n}/configmaps/kube-root-ca.crt" for n in NAMESPACES] +
           [f"/api/v1/namespaces/{n}/serviceaccounts/default" for n in NAMESPACES] +
           ["/api/v1/namespaces/kube-public/configmaps/cluster-info"])
    tap.ok(wait_for(lambda: all(server.get(path)[0] == 200 for path in own)), "the server has settled")
    labels = {"verb": "POST", "resource": "configmaps", "group": "", "version": "v1",
              "scope": "resource", "code": "201"}
    before = (server.metric("apiserver_request_total", **labels),
              server.metric("apiserver_request_duration_seconds_count", verb="POST"),
              server.metric("apiserver_storage_objects", resource="configmaps"),
              server.metric("orlop_store_revision"),
              server.metric("orlop_store_commit_duration_seconds_count"))
    for i in range(3):
        server.make(f"counted-{i}")
    after = (server.metric("apiserver_request_total", **labels),
             server.metric("apiserver_request_duration_seconds_count", verb="POST"),
             server.metric("apiserver_storage_objects", resource="configmaps"),
             server.metric("orlop_store_revision"),
             server.metric("orlop_store_commit_duration_seconds_count"))
    tap.equal([b - a for a, b in zip(before, after)], [3, 3, 3, 3, 3], "three creates are counted")
    missing = {"verb": "GET", "resource": "configmaps", "code": "404", "scope": "resource"}
    before = server.metric("apiserver_request_total", **missing)
    server.get(maps + "/none")
    tap.equal(server.metric("apiserver_request_total", **missing) - before, 1,
              "what is not found is counted")
    server.get("/no/such/path")
    tap.equal(server.metric("apiserver_request_total", resource="", code="404"), 1,
              "and what is no path")
    tap.ok(server.metric("apiserver_storage_size_bytes") > 4096, "the store has a size")
    tap.equal(server.metric("apiserver_current_inflight_requests"), 1, "the one that asks is in flight")

    connection, reply = open_watch(server)
    tap.equal(server.metric("apiserver_longrunning_requests", verb="WATCH", resource="configmaps"), 1,
              "a watch is counted while it lasts")
    events = server.metric("apiserver_watch_events_total", resource="configmaps")
    server.make("watched")
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
        status, text = server.get(path)
        tap.equal((status, text), (200, "ok"), f"{path} is ok")
    ready = ("[+]ping ok\n[+]store ok\n[+]followers ok\n[+]startup ok\n[+]shutdown ok\n"
             "readyz check passed\n")
    tap.equal(server.get("/readyz?verbose")[1], ready, "readyz in detail")
    tap.equal(server.get("/livez?verbose")[1],
              "[+]ping ok\n[+]followers ok\nlivez check passed\n", "livez in detail")
    tap.equal(server.get("/livez?verbose&exclude=ping&exclude=followers")[1],
              "[+]ping excluded: ok\n[+]followers excluded: ok\nlivez check passed\n",
              "checks that are excluded")
    tap.ok('warn: some health checks cannot be excluded: no matches for "frob"' in
           server.get("/livez?verbose&exclude=frob")[1], "a check that there is not")
    tap.equal(server.get("/readyz/frob")[0], 404, "nor can it be asked for")

    # The disk is full: no file may grow.
    pid = server.process.pid
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    status = server.make("no-room")
    tap.ok(status in (500, 503), "a write on a full disk fails", status)
    status, text = server.get("/readyz")
    tap.ok(status == 503 and "[-]store failed: " in text and text.endswith("readyz check failed\n"),
           "then the server is not ready", f"{status} {text}")
    tap.equal(server.get("/livez")[0], 200, "but alive")
    tap.equal(server.get("/readyz?exclude=store")[0], 200, "and ready but for the store")
    tap.equal(server.get(maps)[0], 200, "and reads go on")
    tap.ok(server.metric("orlop_store_commit_failures_total") > 0, "the failure is counted")
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    tap.ok(wait_for(lambda: server.get("/readyz")[0] == 200),
           "with room again it becomes ready by itself")
    tap.equal(server.make("room"), 201, "and takes writes")


def check_log(server):
    marker = {"User-Agent": "the-tester", "Audit-ID": "my-own-id"}
    reply = server.request("GET", maps, headers=marker)
    tap.equal(reply.headers.get_all("Audit-Id"), ["my-own-id"], "an id that the client gave comes back")
    reply = server.request("GET", maps, headers={"Audit-ID": "no \"good\" one"})
    tap.ok(re.fullmatch(r"[0-9a-f-]{36}", reply.headers["Audit-Id"]), "else it is made", reply.headers)
    server.make("logged")

    def line(**wanted):
        return next((x for x in server.lines() if all(x.get(k) == v for k, v in wanted.items())), None)

    found = wait_for(lambda: line(audit="my-own-id"))
    tap.equal([found.get(k) for k in ("level", "msg", "method", "path", "code", "agent")],
              ["debug", "request", "GET", maps, 200, "the-tester"], "a read, at level debug")
    tap.ok(found["bytes"] > 0 and found["us"] >= 0 and found["peer"] == "127.0.0.1" and
           found["user"], "with size, time, peer and user", found)
    tap.ok(line(method="POST", path=maps, code=201, level="info"), "a write, at level info")
    tap.ok(line(method="POST", level="warn"), "what failed, at level warn")
    watch = wait_for(lambda: line(msg="watch", agent="the-watcher"))
    tap.ok(watch and watch["code"] == 200 and watch["bytes"] > 0, "a watch, at its end", watch)
    with open(server.lines_path, encoding="utf-8") as f:
        tap.ok("secret" not in f.read(), "nothing of what objects hold")
    for _ in range(600):
        server.get("/livez")
    tap.ok(len(server.lines()) > 100, "many requests are many lines, up to a limit")


def writers(server, stop, done):
    i = 0
    while not stop.is_set():
        if server.make(f"busy-{i}") == 201:
            done.append(f"busy-{i}")
        i += 1


with Scratch() as scratch:
    data, log, backup = scratch.file("data"), scratch.file("log"), scratch.file("backup.db")

    def expect(name, argv, status=0, stdout=None, stderr=None):
        tap.ran(run(orlop, *argv), name, status, stdout, stderr)

    expect("backup of nothing", ["backup", "--data-dir", scratch.file("none"), backup], 1,
           stderr="No such file")
    os.mkdir(scratch.file("empty"))
    expect("backup of an empty folder", ["backup", "--data-dir", scratch.file("empty"), backup], 1,
           stderr="there is no store in")
    expect("backup without a folder", ["backup", backup], 2, stderr="--data-dir")
    tap.equal(os.path.exists(backup) or os.path.exists(backup + ".part"), False, "nothing was left")

    with Observed(data, log, "--log-format", "json", "-v") as server:
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
        last = server.get(maps)[1]["metadata"]["resourceVersion"]
        result = server.kubectl("get", "cm", "-o", "name")
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
    with Observed(elsewhere, scratch.file("log2")) as server:
        names = {f"configmap/{n}" for n in before}
        found = set(server.kubectl("get", "cm", "-o", "name").stdout.split())
        tap.ok(names <= found <= now, "kubectl sees what was there, and nothing else",
               f"missing {names - found}, strange {found - now}")
    expect("restore over a store", ["restore", "--data-dir", elsewhere, backup], 1, stderr="--force")

    # A restore in place: the lost changes' revisions never come again.
    with Observed(data, log) as server:
        server.make("lost")
        last = int(server.get(maps)[1]["metadata"]["resourceVersion"])
    expect("restore in place", ["restore", "--data-dir", data, "--force", backup],
           stdout="before-restore-")
    aside = [n for n in os.listdir(data) if n.startswith("store.db.before-restore-")]
    tap.ok(aside, "what was there is kept", os.listdir(data))
    with Observed(data, log) as server:
        result = server.get(maps)[1]
        tap.ok("lost" not in [o["metadata"]["name"] for o in result["items"]], "the past is back")
        tap.ok(int(result["metadata"]["resourceVersion"]) >= last + STEP,
               "revisions went on beyond what anybody saw", (last, result["metadata"]))
        for seen in (1, last - 1, last, last + 7):
            reply = server.request("GET", f"{maps}?watch=true&resourceVersion={seen}&timeoutSeconds=5")
            first = json.loads(reply.text.split("\n")[0])
            tap.equal((first["type"], first["object"]["code"]), ("ERROR", 410),
                      f"a watch from {'before' if seen <= last else 'nowhere'} must list again")
        tap.equal(server.make("after"), 201, "and it takes writes")
    expect("backup of a store that nobody uses", ["backup", "--data-dir", data, backup],
           stdout="not in use")
    expect("and quietly", ["backup", "-q", "--data-dir", data, backup], stdout="")
tap.done()
