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
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from discovery import Discovery  # noqa: E402
from tap import Scratch, Tap, run  # noqa: E402

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


RESOURCES = [("v1", "ConfigMap", "configmaps", True), ("v1", "Event", "events", True),
             ("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", True)]
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"


def budget(number, selector):
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": f"b{number}", "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": selector}}


class Kubectl:
    def __init__(self, scratch, url):
        self.server = f"--server={url}"
        self.env = {**scratch.kubectl_env(), "GOMAXPROCS": "1", "GOGC": "off"}
        self.objects = scratch.file("objects.json", "\n".join(json.dumps(
            {"apiVersion": "v1", "kind": "ConfigMap",
             "metadata": {"name": f"m{i}", "labels": labels}}) for i, labels in enumerate(LABELS)))

    def run(self, *args):
        return run("kubectl", *args, self.server, "--namespace=default", env=self.env)

    def matches(self, selector):
        """Indexes of the label sets that match; None when the selector is refused."""
        result = self.run("create", "-f", self.objects, "-l", selector, "--dry-run=client",
                          "--validate=false", "-o", "name")
        if result.returncode == 0:
            return [int(line[len("configmap/m"):]) for line in result.stdout.split()]
        if "no objects passed to create" in result.stderr:
            return []
        if "unable to parse requirement" in result.stderr or "is not valid" in result.stderr:
            return None
        raise RuntimeError(f"kubectl -l {selector!a}: {result.stderr.strip()[:300]}")

    def canonical(self):
        """The text of each selector in OBJECTS."""
        result = self.run("describe", "poddisruptionbudgets")
        texts = re.findall(r"^Selector: *(.*)$", result.stdout, re.MULTILINE)
        if len(texts) != len(OBJECTS):
            raise RuntimeError(f"kubectl describe: {(result.stderr or result.stdout)[:300]}")
        return ["" if text == "<none>" else text for text in texts]


def ask_ours(program):
    request = {"labels": LABELS, "selectors": VALID + INVALID + OBJECTS}
    return json.loads(run(program, stdin=json.dumps(request)).stdout)


def ask_kubectl():
    items = [budget(i, selector) for i, selector in enumerate(OBJECTS)]
    replies = {BUDGETS: {"kind": "PodDisruptionBudgetList", "apiVersion": "policy/v1",
                         "metadata": {}, "items": items},
               "/api/v1/namespaces/default/events": {"kind": "EventList", "apiVersion": "v1",
                                                     "metadata": {}, "items": []}}
    replies.update({f"{BUDGETS}/b{i}": item for i, item in enumerate(items)})
    with Scratch() as scratch, Discovery(RESOURCES, replies) as server:
        kubectl = Kubectl(scratch, server.url)
        texts = kubectl.canonical()  # first and alone: it fills the cache of resources
        with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
            return list(pool.map(kubectl.matches, VALID + INVALID)), texts


def main(program):
    ours = ask_ours(program)
    matches, texts = ask_kubectl()
    tap = Tap()
    for selector, our, their in zip(VALID, ours, matches):
        tap.ok(our.get("matches") == their is not None, f"{selector!a}",
               f"ours {our}, kubectl's {their}")
    for selector, our, their in zip(INVALID, ours[len(VALID):], matches[len(VALID):]):
        tap.ok(our.get("code") == "INVALID_ARGUMENT" and their is None,
               f"refused: {selector!a}", f"ours {our}, kubectl's {their}")
    for selector, our, their in zip(OBJECTS, ours[len(VALID + INVALID):], texts):
        tap.equal(our.get("text"), their, json.dumps(selector))
    tap.done()


if __name__ == "__main__":
    main(sys.argv[1])
