#!/usr/bin/env python3
"""Reads YAML with our reader and with kubectl's, and compares what comes out.

    yaml-kubectl.py YAML-PRINT

YAML-PRINT prints each document of its stdin as a line of JSON. kubectl does the same offline
with `kubectl label --local -o json`, which takes any kind. What both take goes through kubectl in
few calls, since each costs a tenth of a second. Prints TAP.
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from tap import Scratch, Tap, json_values, run  # noqa: E402

HEAD = "apiVersion: v1\nkind: Probe\nmetadata: {name: x}\n"

# Plain scalars as they stand in a manifest, each as a value and as a key.
SCALARS = """
y Y yes Yes YES yEs n N no No NO nO on On ON oN off Off OFF oFF true True TRUE tRUE false False FALSE
fALSE null Null NULL nULL ~ ~~ none None nil undefined
0 1 -1 +1 12 007 010 08 09 -010 +010 0o17 0O17 0o8 0o -0o17 0x1f 0X1F 0xg 0x -0x1f +0x1f 0b11 0B11 0b2 0b
-0b11 +0b11 1_000 1__0 1_ _1 0_1 0x_1 +_1 -_ - 00 0000 -0 +0 9223372036854775807 9223372036854775808
-9223372036854775808 -9223372036854775809 18446744073709551615 18446744073709551616
+9223372036854775808 0xffffffffffffffff +0xffffffffffffffff -0x8000000000000000 0x1ffffffffffffffff
0777777777777777777777 01777777777777777777777 07777777777777777777777 123456789012345678901234567890
1.5 1. .5 -.5 +.5 -1.5 1.5e3 1e3 1E3 1e+3 1e-3 1.e3 .5e3 1e 1e+ e3 1.5.5 1..5 . .. ... .e3 ._5 .5_0 1_0.5
1_0.5_0 1e400 -1e400 1e-400 0.1 1.0 -0.0 0.30000000000000004 1e21 1e22 1.7976931348623157e308 2e308
00.5 01.5 08.5 0.5e 1e3.5 1,000 1.000,5 12e03 1d 1f 0x1.8p1 inf nan NaN Infinity +inf -inf
1:30 1:30:45 -1:30 1:90 190:20:30.15 2001-01-01 2001-01-01T00:00:00Z 2001-1-1 2001-12-14t21:59:43.10-05:00
01-01-2001 12:30 10.0.0.1 1.2.3 v1 v1.2 1Gi 100m 5% 3d 1s -a -- --a ---a +a a b-c a_b a.b a:b a#b a/b
http://x.y/z?a=b&c=d#e a,b a]b a}b a"b a'b a\\\\b $x ^x (x) <x> <<x = == => =x x= a=b / // \\\\ ; a;b ä 日本 😀
?x :x ::x -x x? x: 0.0.0.0/0 1/2 +49 00:11:22:33:44:55 0e0 1e0 0E0 -1e3 12345678901234567890 1e15 1e16 123456.5
1234567.5 100000.0 1000000.0 0.0001 0.00001 1.5e-7
""".split()

# Integers between 2^63 and 2^64 are keys to us and an error to kubectl.
NO_KEYS = """
9223372036854775808 18446744073709551615 0xffffffffffffffff 01777777777777777777777 12345678901234567890
""".split()

# Documents below the head that both take.
STRUCTURES = [
    ("flow map", "v: {a: 1, b: [x, y], c: {d: e}}"),
    ("flow with missing values", "v: {a, b: , c}"),
    ("flow pairs", "v: [a: b, c, d: {e: f}]"),
    ("flow trailing commas", "v: [a, b,]\nw: {a: 1,}"),
    ("flow over lines", "v: {a: 1,\n  b: [1,\n 2,\n 3],\n  # why\n  c: x y\n    z}"),
    ("flow json", 'v: {"a":1,"b":[true,null,"x"]}'),
    ("flow adjacent quoted key", 'v: {"a":b, \'c\':d}'),
    ("flow empty", "v: {}\nw: []\nx: [[], {}]"),
    ("sequence not indented", "v:\n- a\n- b\nw: 1"),
    ("sequence indented", "v:\n  - a\n  -   b\n  -\n    c"),
    ("sequence nested", "v:\n- - a\n  - b\n- - - c\n-\n  - d"),
    ("sequence of maps", "v:\n- a: 1\n  b: 2\n-   a: 3\n    b: 4\n- {a: 5}"),
    ("map empty values", "v:\n  a:\n  b:\n  c: ''\n  d: ~"),
    ("explicit keys", "v:\n  ? a\n  : 1\n  ? b\n  : - x\n    - y\n  ? c"),
    ("plain over lines", "v: a\n  b\n\n  c\n   d\nw:\n  e\n  f"),
    ("double quoted over lines", 'v: "a\n  b\n\n  c \\\n  d\\\n  \\ e"'),
    ("single quoted over lines", "v: 'a\n  b\n\n  it''s'"),
    ("double quoted escapes",
     r'v: "\a\b\t\n\v\f\r\e\"\\\N\_\L\P\x41\u00e4\U0001f600 x"'),
    ("single quoted has none", r"v: '\n \x41 \\'"),
    ("literal clip", "v: |\n  a\n   b\n\n  c\n\n\nw: 1"),
    ("literal strip", "v: |-\n  a\n  b\n\n\nw: 1"),
    ("literal keep", "v: |+\n  a\n  b\n\n\nw: 1"),
    ("literal indented", "v: |2\n    a\n   b\n  c\nw: 1"),
    ("literal indented strip", "v: |1-\n   a\n b\nw: 1"),
    ("literal strip indented", "v: |-1\n   a\n b\nw: 1"),
    ("literal empty", "v: |\nw: |-\nx: |+\ny2: |+\n\nz: 1"),
    ("literal with comment", "v: | # why\n  a # b\n # out\nw: 1"),
    ("literal blank start", "v: |\n\n\n  a\n"),
    ("literal no final newline", "v: |\n  a\n  b"),
    ("literal spaces at ends", "v: |\n  a  \n    \n  b"),
    ("literal tabs", "v: |\n  a\tb\n  \tc"),
    ("literal in sequence", "v:\n- |\n  a\n  b\n- >\n  c\n  d\n- x"),
    ("folded clip", "v: >\n  a\n  b\n\n  c\n   d\n   e\n  f\n\n\nw: 1"),
    ("folded strip", "v: >-\n  a\n  b\n\n"),
    ("folded keep", "v: >+\n  a\n\n\nw: 1"),
    ("folded indented", "v: >2\n    a\n    b\n  c\n  d"),
    ("document marker in a literal", "v: |\n  ---\n  ...\nw: 1"),
    ("anchors", "v: &a {x: 1}\nw: *a\nx: [*a, *a]\nz: &b text\nq: *b"),
    ("anchor redefined", "v: &a 1\nw: *a\nx: &a 2\nz: *a"),
    ("anchor on a key", "? &k key\n: 1\nw: *k"),
    ("anchor inside", "v: &a\n  x: &b [1]\nw: *b\nz: *a"),
    ("merge", "b: &b {x: 1, z: 3}\nm: {<<: *b, x: 9}"),
    ("merge list", "b: &b {x: 1, z: 3}\nc: &c {z: 4, w: 5}\nm: {<<: [*b, *c], q: 1}"),
    ("merge twice", "v:\n  <<: {a: 1, c: 1}\n  <<: {b: 2, c: 2}"),
    ("merge chain", "a: &a {x: 1}\nb: &b {<<: *a, w: 2}\nc: {<<: *b, z: 3}"),
    ("merge quoted is a key", "b: &b {x: 1}\nm: {'<<': *b}"),
    ("merge inline", "m:\n  <<: {a: 1}\n  b: 2"),
    ("tags",
     "v: [!!int '12', !!float 1, !!bool 'yes', !!str 12, !!null '', !!float '1e3', !!str , !!int 0x1f, !!str yes, ! 12]"),
    ("tags on containers", "v: !!map {a: 1}\nw: !!seq [1]"),
    ("tags on keys", "!!str 1: a\n!!int '2': b"),
    ("keys of all kinds", "yes: 1\n1.5: b\n0x10: c\n010: d\n1e3: e\n-1: f\n.5: g\n2001-01-01: h\n'': i\n.inf: j"),
    ("keys with spaces", "a b: 1\n\"c: d\": 2\n'e#f': 3\ng : 4"),
    ("comments in odd places",
     "# first\nv: # after key\n  # inside\n  a: 1 # after value\n\n    # deep\n  b: x#y\n# last"),
    ("comment after sequence dash", "v:\n- # why\n  a\n# between\n- b"),
    ("urls and colons", "v: http://x:80/a\nw: a:b\nx: [a:b, http://c]\nz: {u: http://d}"),
    ("windows lines", "v: a\r\nw: |\r\n  b\r\n  c\r\nx: 1\r\n"),
    ("trailing blanks", "v: a   \nw:   b\t\nx: 1"),
    ("tab after colon", "v:\ta\nw: [\ta,\tb]"),
    ("unicode", "v: äöü 日本 😀\nä: 1\n\"\\u65e5\": 2"),
    ("indentation of one", "v:\n a:\n  b:\n   c: 1"),
    ("dash in plain", "v: a - b\nw: -a\nx: [-1, -a]"),
    ("long key", "a" * 100 + ": 1"),
]

# What neither takes.
REFUSED = [
    ("dash on the key's line", "v: - a"),
    ("two colons", "v: a: b"),
    ("tab indent", "v:\n\ta: 1"),
    ("unknown alias", "v: *nobody"),
    ("alias of itself", "v: &a [*a]"),
    ("null key", "~: 1"),
    ("map as key", "{a: b}: 1"),
    ("list as key", "? [a, b]\n: 1"),
    ("infinity", "v: .inf"),
    ("no number", "v: .NaN"),
    ("wrong int", "v: !!int x"),
    ("wrong float", "v: !!float x"),
    ("wrong bool", "v: !!bool maybe"),
    ("wrong null", "v: !!null x"),
    ("merge of a scalar", "v: {<<: 1}"),
    ("merge of scalars", "v: {<<: [1]}"),
    ("unclosed quote", 'v: "a'),
    ("unclosed bracket", "v: [a, b\nw: 1"),
    ("at sign", "v: @a"),
    ("backtick", "v: `a`"),
    ("percent", "v: %a"),
    ("bad escape", 'v: "\\d"'),
    ("deeper sibling", "v: 1\n  w: 2"),
    ("shallower sibling", "v:\n    a: 1\n  b: 2"),
]

# Whole streams.
STREAMS = [
    ("two documents", HEAD + "a: 1\n---\n" + HEAD + "a: 2\n"),
    ("marker first", "---\n" + HEAD + "a: 1\n"),
    ("marker first and last", "---\n" + HEAD + "a: 1\n---\n"),
    ("marker with comment", "--- # one\n" + HEAD + "--- # two\n" + HEAD + "a: 1\n"),
    ("marker with blanks", "---  \n" + HEAD + "---\t\n" + HEAD + "a: 1\n"),
    ("empty documents", "---\n---\n" + HEAD + "---\n# nothing\n---\n" + HEAD + "a: 1\n---\n\n"),
    ("comment before marker", "# about\n---\n" + HEAD + "a: 1\n"),
    ("windows lines", ("---\n" + HEAD + "---\n" + HEAD + "a: 1\n").replace("\n", "\r\n")),
    ("byte order mark", "\ufeff" + HEAD + "a: 1\n"),
    ("no final newline", HEAD + "a: 1\n---\n" + HEAD + "a: 2"),
    ("json", '{"apiVersion":"v1","kind":"P","metadata":{"name":"x"},"a":[1,2.5,"x",null,true]}'),
    ("json values in a row", '{"apiVersion":"v1","kind":"P","metadata":{"name":"x"}}' * 3),
    ("json values on lines", '{"apiVersion":"v1","kind":"P","metadata":{"name":"x"}}\n' * 3),
    ("json after yaml", HEAD + '---\n{"apiVersion":"v1","kind":"P","metadata":{"name":"x"}}\n'),
]

# Where we differ, on purpose: (name, text, what ours must print or how it must begin).
DIFFERENCES = [
    ("duplicate keys are refused; kubectl takes the last", HEAD + "a: 1\na: 2\n", "error: line 5, column 1"),
    ("also when they are spelled differently", HEAD + "1: a\n'1': b\n", "error: line 5, column 1"),
    ("a map's own members win over merged ones wherever << stands; kubectl takes what comes last",
     "b: &b {x: 1}\nm: {x: 9, <<: *b}\n", '{"b":{"x":1},"m":{"x":9}}'),
    ("tags that mean nothing in JSON are refused; kubectl drops them", "v: !foo 1\n", "error: line 1, column 4"),
    ("\\/ is an escape, since JSON has it", 'v: "\\/"\n', '{"v":"/"}'),
    ("a string cannot hold NUL", 'v: "a\\0b"\n', "error: line 1, column 4"),
    ("text on the marker's line is the document's; kubectl refuses it", "a: 1\n--- {b: 2}\n",
     '{"a":1}\n{"b":2}'),
    ("directives work; kubectl cuts them off from their document", "%YAML 1.1\n---\na: 1\n", '{"a":1}'),
    ("a document may begin after ...", "a: 1\n...\nb: 2\n", '{"a":1}\n{"b":2}'),
    ("flow style may come first; kubectl wants JSON there", "{a: 1}\n", '{"a":1}'),
    ("JSON and YAML may mix in any order", '{"a":1}\n---\nb: 2\n', '{"a":1}\n{"b":2}'),
    ("JSON values may follow each other after YAML too; kubectl drops them",
     'a: 1\n---\n{"b":2}\n{"c":3}\n', '{"a":1}\n{"b":2}\n{"c":3}'),
    ("a document that does not parse leaves the next readable", "a: 1\n---\nb: [\n---\nc: 3\n",
     '{"a":1}\nerror: line 3, column 4: the "[" here is never closed; write its "]"\n{"c":3}'),
]

tap = Tap()


def normal(value):
    """Numbers by value, not by spelling: Go prints 1.0 as 1."""
    if isinstance(value, dict):
        return {k: normal(v) for k, v in value.items()}
    if isinstance(value, list):
        return [normal(v) for v in value]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value) if abs(value) >= 2**53 or value != int(value) else int(value)
    return value


def ours(text):
    """The documents, or None for one that was refused, and the output."""
    result = run(sys.argv[1], stdin=text)
    if result.returncode != 0:
        sys.exit(f"Bail out! {sys.argv[1]}: {result.stderr.strip()}")
    lines = result.stdout.split("\n")[:-1]
    docs = [None if l.startswith("error: ") else normal(json.loads(l)) for l in lines]
    return docs, "\n".join(lines)


def theirs(text, scratch):
    """The documents that kubectl reads; None when it refuses any."""
    path = scratch.file("probe.yaml", text)
    result = run("kubectl", "label", "--local", "-f", path, "probe=1", "-o", "json",
                 env=scratch.kubectl_env())
    if result.returncode != 0:
        return None, result.stderr.strip()
    docs = json_values(result.stdout)
    for doc in docs:
        del doc["metadata"]["labels"]
    return [normal(doc) for doc in docs], ""


def compare(name, text, scratch):
    mine, printed = ours(text)
    kubectl, why = theirs(text, scratch)
    if None in mine:
        mine = None
    tap.ok(mine == kubectl, name, f"text: {text!r}\nours: {printed}\n"
           f"kubectl: {json.dumps(kubectl) if kubectl else ''}{why}")


def compare_documents(items, scratch):
    """Documents that both take, in one stream; one by one when the stream does not come through."""
    texts = [HEAD + text + ("" if text.endswith("\n") else "\n") for _, text in items]
    mine, printed = ours("---\n".join(texts))
    kubectl, _ = theirs("---\n".join(texts), scratch)
    if kubectl is None or None in mine or not len(mine) == len(kubectl) == len(items):
        for (name, _), text in zip(items, texts):
            compare(name, text, scratch)
        return
    for (name, _), text, a, b, line in zip(items, texts, mine, kubectl, printed.split("\n")):
        tap.ok(a == b, name, f"text: {text!r}\nours: {line}\nkubectl: {json.dumps(b)}")


def compare_scalars(what, items, make, scratch):
    """One kubectl call for all; if one of us refuses an item, halves until the refused are alone."""
    text = HEAD + "".join(make(i, s) for i, s in items)
    mine, printed = ours(text)
    kubectl, why = theirs(text, scratch)
    if kubectl is None or mine == [None]:
        if len(items) > 1:
            half = len(items) // 2
            compare_scalars(what, items[:half], make, scratch)
            compare_scalars(what, items[half:], make, scratch)
            return
        tap.ok(kubectl is None and mine == [None], f"{what} {items[0][1]} (refused)",
               f"ours: {printed}\nkubectl: {kubectl}{why}")
        return
    for i, s in items:
        key = f"v{i}"
        tap.ok(mine[0].get(key) == kubectl[0].get(key) and key in mine[0], f"{what} {s}",
               f"ours: {mine[0].get(key)!r}\nkubectl: {kubectl[0].get(key)!r}")


def compare_all_scalars(what, items, make, scratch):
    """What we refuse is asked alone; the rest most likely goes through kubectl in one call."""
    docs, _ = ours("---\n".join(HEAD + make(i, s) for i, s in items))
    refused = [item for item, doc in zip(items, docs) if doc is None]
    compare_scalars(what, [item for item in items if item not in refused], make, scratch)
    for item in refused:
        compare_scalars(what, [item], make, scratch)


def main():
    with Scratch() as scratch:
        scalars = list(enumerate(SCALARS))
        compare_all_scalars("value", scalars, lambda i, s: f"v{i}: {s}\n", scratch)
        keys = [(i, s) for i, s in scalars if s not in NO_KEYS]
        compare_all_scalars("key", keys, lambda i, s: f"v{i}:\n  {s}: 1\n", scratch)
        compare_documents(STRUCTURES, scratch)
        for name, text in REFUSED:
            compare("refused: " + name, HEAD + text + "\n", scratch)
        for name, text in STREAMS:
            compare("stream: " + name, text, scratch)
    for name, text, want in DIFFERENCES:
        _, printed = ours(text)
        tap.ok(printed.startswith(want) if want.startswith("error: ") else printed == want,
               "differs: " + name, f"want: {want}\nours: {printed}")
    tap.done()


if __name__ == "__main__":
    main()
