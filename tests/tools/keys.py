#!/usr/bin/env python3
"""tools/keys.py over a small tree, and over ours: a key that no table has is found, with its place.

keys.py TOOLS
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from tap import Scratch, Tap, run  # noqa: E402

keys = os.path.join(sys.argv[1], "keys.py")
tap = Tap()

TABLE = ('{"spec", API_OBJECT, .fields = spec},\n'
         '{"hostName",\n API_STRING, .aliases = API_ALIASES("oldHost", "host")},\n')

# What a source has, and the lines with the keys that are wrong in it: (line, key, nearest).
CASES = {
    "keys of the tables": ('json_at(o, "spec", "hostName"); json_str(o, "oldHost");', []),
    "a misspelled key": ('\njson_str(o, "hostNmae");', [(2, "hostNmae", "hostName")]),
    "the second of two keys, on another line":
        ('json_at(f(o, ")"), "spec",\n    "hostname")', [(2, "hostname", "hostName")]),
    "one of two, by a condition": ('json_object_get(o, old ? "oldHots" : "host")',
                                   [(1, "oldHots", "oldHost")]),
    "keys that are written": ('json_object_set_new(o, "hostNam", json_string("nothing"));\n'
                              'json_object_del(o, "hosts");',
                              [(1, "hostNam", "hostName"), (2, "hosts", "host")]),
    "keys of json_pack(), not values": ('json_pack("{s:s, s:{s:n, s:[{s:i}]}}", "host", "value",\n'
                                        '"spec", "host", "hostName", "soec", 1)',
                                        [(2, "soec", "spec")]),
    "labels, names of constants, and other calls":
        ('json_str(o, "a.b/c"); json_str(o, KEY); log_info("key", "other");', []),
    "a key that is like none": ('json_str(o, "zzzz")', [(1, "zzzz", None)]),
}

with Scratch() as s:
    for folder in ("src/kinds", "src/k8s/apiserver", "src/pool"):
        os.makedirs(s.file(folder))
    s.file("src/kinds/a.c", TABLE)
    s.file("src/k8s/apiserver/a.c", 'json_str(o, "ofKubernetes");')
    source = s.file("src/pool/a.c", "")
    for name, (text, wrong) in CASES.items():
        with open(source, "w", encoding="utf-8") as out:
            out.write(text + "\n")
        result = run(sys.executable, keys, s.path)
        expected = [f'src/pool/a.c:{line}: no table has "{key}"; '
                    + (f'is it "{near}"?' if near else "if it is ours, name it in tools/keys.py")
                    for line, key, near in wrong]
        tap.equal((result.returncode, result.stdout.splitlines()), (1 if wrong else 0, expected), name)

tap.ran(run(sys.executable, keys), "every key in our sources")
tap.done()
