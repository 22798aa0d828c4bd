#!/usr/bin/env python3
"""Compares our label selectors with kubectl's.  usage: selector-kubectl.py SELECTOR-MATCH

`kubectl create -f FILE -l SELECTOR --dry-run=client` filters the objects of a file itself, by the
library that Kubernetes uses everywhere. All it asks of a server is which resources there are; this
script answers that. `kubectl describe` of a PodDisruptionBudget prints the LabelSelector of its
spec in canonical form; the script serves the budgets, too.

Two kinds of text are left out:

  * An even number of commas in a row in front of ")", as in "a in (b,,)". This version of the
    library takes commas in pairs and misses the ")" then; later ones take it, as we do.
  * Blanks other than space, tab and line ends around the selector, which kubectl strips before the
    library sees them.
"""
import concurrent.futures
import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading

LONG = "l" + "0123456789" * 6  # 61 characters; two more are allowed

LABELS = [
    {},
    {"a": "b"},
    {"a": "B"},
    {"a": ""},
    {"a": "c", "b": "c"},
    {"a": "1", "n": "1"},
    {"a": "10", "n": "-5x", "example.com/a": "b"},
    {"n": "007"},
    {"n": "9223372036854775807", "in": "notin"},
    {"n": "x9", "notin": "in", "in": "in"},
    {"example.com/a": "c", "A": "b", "a.b-c_d": "e.f-g_h"},
    {LONG + "yz": LONG + "yz", "a": "b", "b": "b"},
    {"n": "99999999999999999999", "a": "z"},
]

VALID = [
    "a", "!a", "! a", "a=b", "a==b", "a!=b", "a = b", "a == b", "a != b", " a=b", "a=b ", "\ta\n=\rb",
    "a=", "a==", "a!=", "a= ", "a=,b", "b,a=", "a=b,b=b", "b=b,a=b", "a,b", "a,!b", "!a,!b", "a=B",
    "A=b", "A", "a in (b)", "a in(b)", "a in (b,c)", "a in (c,b)", "a in ( b , c )", "a in (b,b,b)",
    "a in ()", "a in (,)", "a in (,b)", "a in (b,)", "a in (b,,c)", "a in ( )", "a in (,,,)", LONG + "xyz.com/a",
    "a notin (b)", "a notin(b,c)", "a notin ()", "a notin (,)", "a notin (b,)", "a notin (,,b)",
    "a notin (b),b", "a in (b),b in (b)", "a in (b),!b", "b,a notin (b),!n", "a in (1,10)",
    "n>0", "n>1", "n<1", "n<2", "n > 1", "n < 10", "n>007", "n<007", "n<9223372036854775807",
    "n>9223372036854775806", "n>0,n<5", "a>9", "a<5", "example.com/a", "!example.com/a",
    "example.com/a=b", "example.com/a!=b", "example.com/a in (b,c)", "example.com/a notin (c)",
    "a.b-c_d", "a.b-c_d=e.f-g_h", "a.b-c_d!=e.f-g_h", LONG + "yz", "!" + LONG + "yz",
    LONG + "yz=" + LONG + "yz", "a=" + LONG + "yz", "in", "!in", "notin", "!notin", "in=in",
    "in=notin", "notin=in", "notin!=in", "in in (in)", "in in (in,notin)", "in notin (in)",
    "notin notin (in)", "notin in (in)", "in,notin", "in in (notin),n", "a,a", "a=b,a=b", "a=b,a=c",
    "a,!a", "a!=b,a!=c", "a!=b,a", "a in (b,c),a notin (c)", "0", "0=0", "a=0", "a=x.y", "a=x_y",
    "a=x-y", "1.2/3", "sub.domain.example.com/name=v", "aIn", "ain",
    "a\tin\t(b\t,\tc)", "a\nnotin\n(b)", "n!=1,n", "n>5,a=10", "x!=y", "x notin (y)", "!x", "x",
]

INVALID = [
    ",", "a,", ",a", "a,,b", "a=b,,c=d", "a=b,", "=", "=b", "==b", "!=b", "!", "!!a", "! !a", "!a=b",
    "!a in (b)", "!a!=b", "a b", "a=b c", "a b=c", "a===b", "a=!b", "a!==b", "a!b", "a=<b", "a=>1",
    "a>=1", "a<=1", "a><1", "a=(b)", "a(b)", "a()", "(a)", "()", ")", "(", "a in", "a notin", "a in b",
    "a in b,c", "a in (", "a in (b", "a in (b,", "a in b)", "a in (b c)", "a in (b=c)", "a in (=)",
    "a in (!b)", "a in ((b))", "a in (b))", "a in (b) c", "a in (b)(c)", "a in in (b)",
    "a not in (b)", "a IN (b)", "a NotIn (b)", "a=b;c=d", "a=b&c", "a:b", "a=b:c", "a=b/c", "a=b\\c",
    "\"a\"=b", "a=\"b\"", "'a'", "a=*", "*", "-a", "a-", ".a", "a.", "_a", "a_", "a=-b", "a=b-",
    "a=.b", "a=b.", "a=_b", "/a", "a/", "a/b/c", "A/a", "a_b/c", "-a.com/b", "a..b/c", "a./b", ".a/b",
    LONG + "xyz", "a=" + LONG + "xyz", "a in (b," + LONG + "xyz)", "a=b,-c",
    "a in (b,-c)", "a>", "a<", "a>b", "a>1.5", "a>-1", "a>+1", "a<0x10", "a>1_000", "a>1e3",
    "a<9223372036854775808", "a>1,b>", "a>1 2", "a>(1)", "ä", "a=ä", "a\u00a0=b", "a\u2003=b", "a\v=b",
    "a\f=b", "a=b\x7f", "~a", "a~=b", "a=~b", "@", "a@b", "a=$x", "%", "a=b%20", "+a", "a+b",
]

OBJECTS = [
    {},
    {"matchLabels": {"a": "b"}},
    {"matchLabels": {"b": "2", "a": "1", "example.com/z": ""}},
    {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]},
    {"matchExpressions": [{"key": "a", "operator": "In", "values": ["c", "b", "a"]}]},
    {"matchExpressions": [{"key": "a", "operator": "In", "values": ["c", "b", "c"]}]},
    {"matchExpressions": [{"key": "a", "operator": "In", "values": [""]}]},
    {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["z", ""]}]},
    {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
    {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]},
    {"matchExpressions": [{"key": "z", "operator": "Exists"},
                          {"key": "m", "operator": "DoesNotExist"},
                          {"key": "a", "operator": "NotIn", "values": ["y", "x"]}]},
    {"matchLabels": {"m": "1"},
     "matchExpressions": [{"key": "z", "operator": "Exists"},
                          {"key": "a", "operator": "In", "values": ["2", "1", "10"]}]},
    {"matchLabels": {"a": "1"}, "matchExpressions": [{"key": "a", "operator": "Exists"},
                                                     {"key": "A", "operator": "Exists"}]},
]


def resource(name, kind):
    return {"name": name, "singularName": "", "namespaced": True, "kind": kind,
            "verbs": ["create", "get", "list"]}


GV = {"groupVersion": "policy/v1", "version": "v1"}
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
ANSWERS = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [
        {"name": "policy", "versions": [GV], "preferredVersion": GV}]},
    "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": [
        resource("configmaps", "ConfigMap"), resource("events", "Event")]},
    "/apis/policy/v1": {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "policy/v1",
                        "resources": [resource("poddisruptionbudgets", "PodDisruptionBudget")]},
    "/api/v1/namespaces/default/events": {"kind": "EventList", "apiVersion": "v1", "metadata": {},
                                          "items": []},
}


class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        answer = ANSWERS.get(self.path.partition("?")[0])
        body = json.dumps(answer or {}).encode()
        self.send_response(200 if answer else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def budget(number, selector):
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": f"b{number}", "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": selector}}


class Kubectl:
    def __init__(self, home, port):
        self.home = home
        self.server = f"--server=http://127.0.0.1:{port}"
        self.objects = os.path.join(home, "objects.json")
        with open(self.objects, "w", encoding="utf-8") as out:
            for i, labels in enumerate(LABELS):
                json.dump({"apiVersion": "v1", "kind": "ConfigMap",
                           "metadata": {"name": f"m{i}", "labels": labels}}, out)
                out.write("\n")

    def run(self, *args):
        return subprocess.run(
            ["kubectl", *args, self.server, "--namespace=default"], check=False, encoding="utf-8",
            env={"PATH": os.environ["PATH"], "HOME": self.home, "KUBECONFIG": "/dev/null",
                 "GOMAXPROCS": "1", "GOGC": "off"},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def matches(self, selector):
        """Indexes of the label sets that match; None when the selector is refused."""
        run = self.run("create", "-f", self.objects, "-l", selector, "--dry-run=client",
                       "--validate=false", "-o", "name")
        if run.returncode == 0:
            return [int(line[len("configmap/m"):]) for line in run.stdout.split()]
        if "no objects passed to create" in run.stderr:
            return []
        if "unable to parse requirement" in run.stderr or "is not valid" in run.stderr:
            return None
        raise RuntimeError(f"kubectl -l {selector!a}: {run.stderr.strip()[:300]}")

    def canonical(self):
        """The text of each selector in OBJECTS."""
        run = self.run("describe", "poddisruptionbudgets")
        texts = re.findall(r"^Selector: *(.*)$", run.stdout, re.MULTILINE)
        if len(texts) != len(OBJECTS):
            raise RuntimeError(f"kubectl describe: {(run.stderr or run.stdout).strip()[:300]}")
        return ["" if text == "<none>" else text for text in texts]


def ask_ours(program):
    request = {"labels": LABELS, "selectors": VALID + INVALID + OBJECTS}
    run = subprocess.run([program], input=json.dumps(request), encoding="utf-8",
                         stdout=subprocess.PIPE, check=True)
    return json.loads(run.stdout)


def ask_kubectl():
    items = [budget(i, selector) for i, selector in enumerate(OBJECTS)]
    ANSWERS[BUDGETS] = {"kind": "PodDisruptionBudgetList", "apiVersion": "policy/v1",
                        "metadata": {}, "items": items}
    ANSWERS.update({f"{BUDGETS}/b{i}": item for i, item in enumerate(items)})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with tempfile.TemporaryDirectory() as home:
            kubectl = Kubectl(home, server.server_port)
            texts = kubectl.canonical()  # first and alone: it fills the cache of resources
            with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
                return list(pool.map(kubectl.matches, VALID + INVALID)), texts
    finally:
        server.shutdown()


def main(program):
    ours = ask_ours(program)
    matches, texts = ask_kubectl()
    results = []
    for selector, our, their in zip(VALID, ours, matches):
        results.append((our.get("matches") == their is not None, f"{selector!a}",
                        f"ours {our}, kubectl's {their}"))
    for selector, our, their in zip(INVALID, ours[len(VALID):], matches[len(VALID):]):
        results.append((our.get("code") == "INVALID_ARGUMENT" and their is None,
                        f"refused: {selector!a}", f"ours {our}, kubectl's {their}"))
    for selector, our, their in zip(OBJECTS, ours[len(VALID + INVALID):], texts):
        results.append((our.get("text") == their, json.dumps(selector),
                        f"ours {our}, kubectl's {their}"))
    print(f"1..{len(results)}")
    for number, (ok, name, detail) in enumerate(results, 1):
        print("ok" if ok else "not ok", number, "-", name.replace("#", ""))
        if not ok:
            print("#", detail)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
