#!/usr/bin/env python3
"""A function that a program defines takes the place of a shared library's of the same name: meant for
a few of libzpool's, and a disaster for any other.

zpool_symbols.py PROGRAM
"""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from tap import Tap  # noqa: E402

MEANT = {
    "arc_available_memory", "get_system_hostid", "random_get_pseudo_bytes", "zfs_file_close",
    "zfs_file_fallocate", "zfs_file_fsync", "zfs_file_getattr", "zfs_file_open", "zfs_file_pread",
    "zfs_file_pwrite", "zfs_file_read", "zfs_file_unlink", "zfs_file_write",
}
SYSTEMS = re.compile(r"^_")  # what every program has


def defined(path, *options):
    out = subprocess.run(["nm", "--defined-only", *options, path], check=True, capture_output=True,
                         text=True).stdout
    return {line.split()[-1].split("@")[0] for line in out.splitlines()
            if line.split()[-2] in "TW"}


def exported(program):
    """What the linker left visible to libraries: they asked for it."""
    return {name for name in defined(program, "-D") if not SYSTEMS.search(name)}


tap = Tap()
program = sys.argv[1]
ldd = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
libraries = re.findall(r"=> (\S*/(?:libzpool|libzfs_core|libnvpair)\.so\S*)", ldd)
theirs = set().union(*(defined(library, "-D") for library in libraries))
tap.equal(len(libraries), 3, "libzpool and what it needs are linked")
tap.equal(sorted(exported(program) & theirs - MEANT), [], "nothing else takes the place of theirs")
tap.equal(sorted(MEANT - exported(program)), [], "all that is meant does")
tap.done()
