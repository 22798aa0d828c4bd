#!/usr/bin/env python3
"""How long the source files are: the median, the longest, and those past the limits.

sizes.py [TOP]      exits 1 when a file has more than 1,000 lines
"""
import os
import statistics
import sys

WANTED, LIMIT = 300, 1000


def main():
    top = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..")
    sizes = []
    for part in ("src", "cmd", "tests"):
        for folder, _, files in os.walk(os.path.join(top, part)):
            for file in files:
                if file.endswith((".c", ".h", ".py")):
                    path = os.path.join(folder, file)
                    with open(path, encoding="utf-8") as source:
                        sizes.append((sum(1 for _ in source), os.path.relpath(path, top)))
    sizes.sort(reverse=True)
    lines = [n for n, _ in sizes]
    print(f"{len(sizes)} files, {sum(lines)} lines, median {statistics.median(lines):.0f}; "
          f"{sum(n > WANTED for n in lines)} over {WANTED} lines")
    for n, path in sizes:
        if n > WANTED:
            print(f"{n:6} {path}" + ("  too long" if n > LIMIT else ""))
    return 1 if lines[0] > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
