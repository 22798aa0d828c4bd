#!/usr/bin/env python3
"""Compiles YAML templates into the program.

embed.py OUTPUT.c TOP FILE...     writes for each file a `const struct kube_template`, whose name is the file's
                                  path: src/controllers/cspc/pool.yaml becomes controllers_cspc_pool
"""
import os
import sys


def literal(line):
    return '"' + line.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def main():
    output, top, *files = sys.argv[1:]
    parts = ['#include "kube/template.h"\n']
    for path in files:
        name = os.path.relpath(path, top)
        symbol = name.removeprefix("src/").removesuffix(".yaml").replace("/", "_")
        with open(path, encoding="utf-8") as f:
            text = "\n".join(f"    {literal(line)}" for line in f)
        parts.append(f'extern const struct kube_template {symbol};\n'
                     f'const struct kube_template {symbol} = {{\n    "{name}",\n{text}}};\n')
    with open(output, "w", encoding="utf-8") as f:
        f.write("\n".join(parts))


if __name__ == "__main__":
    main()
