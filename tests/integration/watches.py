#!/usr/bin/env python3
"""Lists and watches down to the query: raw HTTP, and kubectl get -w.

watches.py APISERVER
"""
import json
import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from pool_objects import device, node, put  # noqa: E402
from server import Server  # noqa: E402
from tap import Scratch, Tap  # noqa: E402

program = sys.argv[1]
tap = Tap()
MAPS = "/api/v1/namespaces/default/limitranges"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"
PARTIALS = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"


def noted(notes):
    """A change that any object takes."""
    return {"metadata": {"annotations": notes}}


class Maps(Server):
    """A server, and short ways to the objects of these tests."""

    def ask(self, method, target, body=None, accept="application/json", kind="application/json"):
        return super().ask(method, target, body, content_type=kind, headers={"Accept": accept})

    def create(self, name, labels=None, value="1", path=MAPS):
        return self.ask("POST", path, {"metadata": {"name": name, "labels": labels or {},
                                                    "annotations": {"v": value}}})

    def patch(self, name, change):
        return self.ask("PATCH", f"{MAPS}/{name}", change, kind="application/merge-patch+json")

    def revision(self):
        return int(self.get(f"{MAPS}?limit=1")[1]["metadata"]["resourceVersion"])


class Watch:
    """Events of a watch, one at a time; None at the end of the stream."""

    def __init__(self, server, query, accept="application/json", path=MAPS):
        self.connection = server.connect(timeout=60)
        self.connection.request("GET", f"{path}?watch=true&{query}", headers={"Accept": accept})
        self.reply = self.connection.getresponse()

    def next(self):
        line = self.reply.readline()
        return json.loads(line) if line else None

    def short(self, n):
        """The next n as "TYPE name", and "BOOKMARK"."""
        events = [self.next() for _ in range(n)]
        return [e and " ".join([e["type"], e["object"]["metadata"].get("name", "")]).strip()
                for e in events]

    def close(self):
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def watch_events(server):
    """What comes, for which query."""
    server.create("a", {"tier": "one"})
    server.create("b", {"tier": "two"})
    now = server.revision()
    with Watch(server, f"resourceVersion={now}") as w:
        server.create("c")
        server.patch("c", noted({"v": "2"}))
        server.ask("DELETE", f"{MAPS}/c")
        tap.equal(w.short(3), ["ADDED c", "MODIFIED c", "DELETED c"], "what changes is seen")
    with Watch(server, "resourceVersion=0") as w:
        tap.equal(w.short(2), ["ADDED a", "ADDED b"], "resourceVersion=0 begins with what there is")
    with Watch(server, "") as w:
        tap.equal(w.short(2), ["ADDED a", "ADDED b"], "and so does none")
    with Watch(server, "allowWatchBookmarks=true") as w:
        tap.equal(w.short(3), ["ADDED a", "ADDED b", "BOOKMARK"],
                  "with bookmarks and no resourceVersion the present ends with one")
    query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    with Watch(server, query + "&allowWatchBookmarks=true") as w:
        events = [w.next() for _ in range(3)]
        tap.equal([e["type"] for e in events], ["ADDED", "ADDED", "BOOKMARK"], "sendInitialEvents")
        tap.equal(events[2]["object"]["metadata"].get("annotations"),
                  {"k8s.io/initial-events-end": "true"}, "the bookmark says what ends")
        tap.equal((events[2]["object"]["kind"], events[2]["object"]["apiVersion"]),
                  ("LimitRange", "v1"), "and of what kind it is")
    with Watch(server, query) as w:
        tap.equal(w.short(2), ["ADDED a", "ADDED b"], "without bookmarks")
        server.create("d")
        tap.equal(w.short(1), ["ADDED d"], "none comes")
    server.ask("DELETE", f"{MAPS}/d")
    with Watch(server, "sendInitialEvents=false&resourceVersionMatch=NotOlderThan") as w:
        server.create("e")
        tap.equal(w.short(1), ["ADDED e"], "sendInitialEvents=false begins with now")
    server.ask("DELETE", f"{MAPS}/e")
    with Watch(server, f"resourceVersion={server.revision()}&labelSelector=tier%3Done") as w:
        server.patch("b", noted({"v": "5"}))
        server.patch("b", {"metadata": {"labels": {"tier": "one"}}})
        server.patch("a", {"metadata": {"labels": {"tier": "x"}}})
        server.patch("a", {"metadata": {"labels": {"tier": "one"}}})
        tap.equal(w.short(3), ["ADDED b", "DELETED a", "ADDED a"],
                  "with a selector, what begins and ends to match comes and goes")
    with Watch(server, f"resourceVersion={server.revision()}&fieldSelector=metadata.name%3Da") as w:
        server.patch("b", noted({"v": "6"}))
        server.patch("a", noted({"v": "6"}))
        tap.equal(w.short(1), ["MODIFIED a"], "one object by its name")
    with Watch(server, f"resourceVersion={server.revision()}") as w:
        server.create("far", path=MAPS.replace("default", "kube-system"))
        server.create("near")
        tap.equal(w.short(1), ["ADDED near"], "other namespaces are not seen")
    server.ask("DELETE", f"{MAPS}/near")


def watch_ends(server):
    with Watch(server, f"resourceVersion={server.revision()}&timeoutSeconds=1") as w:
        tap.equal(w.next(), None, "a watch ends when its time is over")
    with Watch(server, f"resourceVersion={server.revision()}&timeoutSeconds=1"
                       "&allowWatchBookmarks=true") as w:
        server.create("elsewhere", path=MAPS.replace("default", "kube-system"))
        event = w.next()
        tap.equal((event["type"], int(event["object"]["metadata"]["resourceVersion"])),
                  ("BOOKMARK", server.revision()), "with a bookmark of how far everything is")
        tap.equal(w.next(), None, "and then")
    future = server.revision() + 2
    with Watch(server, f"resourceVersion={future}") as w:
        for name in ("f1", "f2", "f3"):
            server.create(name)
        tap.equal(w.short(1), ["ADDED f3"], "a watch from the future waits for it")
    for name in ("f1", "f2", "f3"):
        server.ask("DELETE", f"{MAPS}/{name}")


def forms(server):
    status, table = server.get(MAPS, accept=TABLE)
    tap.equal((status, table["kind"], [r["cells"][0] for r in table["rows"]]),
              (200, "Table", ["a", "b"]), "a list as a Table")
    status, table = server.get(f"{MAPS}/a", accept=TABLE)
    tap.equal((table["kind"], len(table["rows"])), ("Table", 1), "an object as a Table")
    status, partial = server.get(f"{MAPS}/a", accept=PARTIAL)
    tap.equal((partial["kind"], partial["metadata"]["name"], "spec" in partial),
              ("PartialObjectMetadata", "a", False), "only metadata")
    status, partials = server.get(MAPS, accept=PARTIALS)
    tap.equal((partials["kind"], partials["apiVersion"],
               [i["metadata"]["name"] for i in partials["items"]]),
              ("PartialObjectMetadataList", "meta.k8s.io/v1", ["a", "b"]), "a list of metadata")
    with Watch(server, f"resourceVersion={server.revision()}", TABLE) as w:
        server.patch("a", noted({"v": "7"}))
        server.patch("a", noted({"v": "8"}))
        first, second = w.next(), w.next()
        tap.equal((first["type"], first["object"]["kind"], first["object"]["rows"][0]["cells"][0]),
                  ("MODIFIED", "Table", "a"), "a watch of Tables")
        tap.ok(first["object"]["columnDefinitions"], "the first has columns")
        tap.ok(not second["object"]["columnDefinitions"], "the second has none")
    with Watch(server, "resourceVersion=0", PARTIAL) as w:
        event = w.next()
        tap.equal((event["object"]["kind"], event["object"]["metadata"]["name"]),
                  ("PartialObjectMetadata", "a"), "a watch of metadata")
    canonical = "/apis/openebs.io/v1alpha1/namespaces/default/cstorpoolclusters"
    published = "/apis/cstor.openebs.io/v1/namespaces/default/cstorpoolclusters"
    put(server, node("n"))
    put(server, device("bd-1", "n"))
    with Watch(server, "resourceVersion=0", path=published) as w:
        status, made = server.ask("POST", canonical, {
            "metadata": {"name": "p"}, "spec": {"pools": [{
                "nodeSelector": {"kubernetes.io/hostname": "n"},
                "raidGroups": [{"type": "stripe", "blockDevices": [{"blockDeviceName": "bd-1"}]}],
                "poolConfig": {"defaultRaidGroupType": "stripe"}}]}})
        tap.equal(status, 201, f"a pool cluster: {made.get('message')}")
        if status == 201:
            event = w.next()
            tap.equal((event["object"]["apiVersion"],
                       "dataRaidGroups" in event["object"]["spec"]["pools"][0]),
                      ("cstor.openebs.io/v1", True), "a watch converts")


def queries(server):
    """What is refused, and how."""
    now = server.revision()
    invalid = 'ListOptions.meta.k8s.io "" is invalid: '
    for query, code, reason, message in (
            ("resourceVersionMatch=Exact", 422, "Invalid", invalid + "resourceVersionMatch: "
             "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"),
            ("resourceVersionMatch=Exact&resourceVersion=0", 422, "Invalid", invalid +
             'resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for '
             'resourceVersion "0"'),
            ("resourceVersionMatch=Odd&resourceVersion=1", 422, "Invalid", "Unsupported value"),
            ("sendInitialEvents=true", 422, "Invalid", "sendInitialEvents is forbidden for list"),
            ("watch=1&resourceVersionMatch=NotOlderThan", 422, "Invalid",
             "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"),
            ("watch=1&sendInitialEvents=true", 422, "Invalid",
             "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"),
            ("resourceVersion=abc", 400, "BadRequest", "Invalid value"),
            ("resourceVersion=-1", 400, "BadRequest", "Invalid value"),
            ("watch=1&resourceVersion=abc", 400, "BadRequest", "Invalid value"),
            ("limit=x", 400, "BadRequest", "limit"),
            ("continue=garbage!", 400, "BadRequest", "continue key is not valid"),
            ("continue=e30", 400, "BadRequest", "continue key is not valid"),
            (f"resourceVersion={now + 100}", 504, "Timeout", "Too large resource version"),
            (f"resourceVersion={now + 100}&resourceVersionMatch=Exact", 504, "Timeout",
             "Too large resource version"),
            ("labelSelector=a%20b", 400, "BadRequest", "")):
        status, body = server.get(f"{MAPS}?{query}")
        tap.ok((status, body.get("reason")) == (code, reason) and message in body["message"],
               f"refused: {query}", body)
    status, body = server.get(f"{MAPS}?resourceVersion={now}&resourceVersionMatch=NotOlderThan")
    tap.equal(status, 200, "NotOlderThan what is now")


def pages(server):
    names = [f"page-{i:02}" for i in range(10)]
    for name in names:
        server.create(name, {"page": "yes"})
    base = f"{MAPS}?limit=4&labelSelector=page"
    _, first = server.get(base)
    tap.ok("remainingItemCount" not in first["metadata"], "selected: nobody counts the rest", first)
    _, first = server.get(f"{MAPS}?limit=4")
    tap.equal(first["metadata"].get("remainingItemCount"), 8, "the rest is counted")
    before = server.revision()
    got, token = [], ""
    while True:
        _, page = server.get(f"{MAPS}?limit=5" + (f"&continue={token}" if token else ""))
        got += [i["metadata"]["name"] for i in page["items"]]
        token = page["metadata"].get("continue", "")
        if not token:
            break
        server.ask("DELETE", f"{MAPS}/page-09")
    tap.equal(got, ["a", "b"] + names, "pages are as of the first, whatever happens meanwhile")
    status, page = server.get(f"{MAPS}?limit=2&continue=" + first["metadata"]["continue"] +
                              "&resourceVersion=5")
    tap.equal((status, page["message"]),
              (400, "specifying resource version is not allowed when using continue"), "one of two")
    _, then = server.get(f"{MAPS}?resourceVersion={before}&resourceVersionMatch=Exact")
    tap.equal(len(then["items"]), 12, "Exact is as it was then")
    return first["metadata"]["continue"]


def big_list(server):
    """Longer than one part: as objects, as a Table, and read as slowly as can be."""
    path = MAPS.replace("default", "kube-public")
    server.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "kube-public"}})
    for i in range(300):
        server.create(f"big-{i:03}", value="x" * 2000, path=path)
    _, listed = server.get(path)
    tap.equal([i["metadata"]["name"] for i in listed["items"]],
              [f"big-{i:03}" for i in range(300)], "a long list is whole")
    _, table = server.get(path, accept=TABLE)
    tap.equal(len(table["rows"]), 300, "and as a Table")
    with Watch(server, "resourceVersion=0&allowWatchBookmarks=true", path=path) as w:
        tap.equal(len([w.next() for _ in range(300)]), 300, "a long present")
        server.create("big-x", path=path)
        tap.equal(w.short(1), ["ADDED big-x"], "and what comes then")


def expiry(server, token):
    """More changes than are kept."""
    path = MAPS.replace("default", "kube-system")
    old = server.revision()
    with Watch(server, f"resourceVersion={old}") as quiet:

        def churn(number):
            connection = server.connect(timeout=60)
            server.create(f"churn-{number}", path=path)
            for i in range(250):
                connection.request("PATCH", f"{path}/churn-{number}", json.dumps(
                    noted({"v": f"{i}", "w": "y" * 20000})),
                    {"Content-Type": "application/merge-patch+json"})
                connection.getresponse().read()
            connection.close()

        threads = [threading.Thread(target=churn, args=(n,)) for n in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        with Watch(server, f"resourceVersion={old}") as w:
            event = w.next()
            tap.equal((w.reply.status, event["type"], event["object"].get("reason"),
                       event["object"].get("code")), (200, "ERROR", "Expired", 410),
                      "a watch from too long ago")
            tap.ok(event["object"]["message"].startswith(f"too old resource version: {old} ("),
                   "says so", event)
            tap.equal(w.next(), None, "and ends")
        server.create("late")
        tap.equal(quiet.short(1), ["ADDED late"],
                  "a watch of what did not change goes on, whatever was forgotten")
    status, body = server.get(f"{MAPS}?resourceVersion={old}&resourceVersionMatch=Exact")
    tap.equal((status, body["reason"], body["message"]),
              (410, "Expired", "The resourceVersion for the provided list is too old."),
              "a list of too long ago")
    status, body = server.get(f"{MAPS}?limit=4&continue={token}")
    tap.equal((status, body["reason"]), (410, "Expired"), "a page of too long ago")
    status, rest = server.get(f"{MAPS}?continue={body['metadata'].get('continue', '')}")
    tap.ok(status == 200 and rest["items"], "the token that it gives lists the rest", rest)


def with_kubectl(server):
    start = server.kubectl_begin
    for argv, first in ((("get", "limits", "-w"), "NAME"), (("get", "limits", "-w", "-o", "wide"), "NAME")):
        watching = start(*argv, "--field-selector", "metadata.name=a")
        tap.ok(watching.stdout.readline().startswith(first), " ".join(argv) + ": columns")
        tap.equal(watching.stdout.readline().split()[0], "a", " ".join(argv) + ": what there is")
        server.patch("a", noted({argv[-1].strip("-"): "k"}))
        tap.equal(watching.stdout.readline().split()[0], "a", " ".join(argv) + ": a change")
        watching.kill()
        watching.wait()
    watching = start("get", "limits", "a", "-o", "name", "--watch-only")
    stop = threading.Event()

    def poke():
        number = 0
        while not stop.wait(.1):
            number += 1
            server.patch("a", noted({"poke": str(number)}))

    poking = threading.Thread(target=poke)
    poking.start()
    tap.equal(watching.stdout.readline(), "limitrange/a\n", "get --watch-only sees a change")
    stop.set()
    poking.join()
    watching.kill()
    watching.wait()


with Scratch() as scratch:
    with Maps(program, scratch.file("data")) as server:
        watch_events(server)
        watch_ends(server)
        forms(server)
        queries(server)
        with_kubectl(server)
        token = pages(server)
        big_list(server)
        expiry(server, token)
        open_watch = Watch(server, "resourceVersion=0")
        open_watch.next()
    tap.equal(server.status, 0, "it stops while a client watches")
    open_watch.close()
tap.done()
