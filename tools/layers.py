#!/usr/bin/env python3
"""Checks that nothing includes upward, and that each library is reached through its module alone.

layers.py [TOP]     prints each violation; exits 1 when there is one
"""
import os
import re
import sys

# Each module and what it may include. A module may always include itself.
BELOW = {
    "base": [],
    "repl": ["base"],
    "json": ["base"],
    "api": ["base", "json"],
    "kinds": ["base", "json", "api"],
    "pki": ["base"],
    "http": ["base"],
    "metrics": ["base"],
    "zpool": ["base"],
    "grpc": ["base"],
    "csi": ["base", "json", "api", "kinds", "kube", "grpc", "cli"],
    "lvm": ["base", "json"],
    "io": ["base"],
    "store": ["base", "io"],
    "scsi": ["base", "store"],
    "iscsi": ["base", "io", "store", "scsi"],
    "replio": ["base", "io", "store", "repl"],
    "replica": ["base", "io", "store", "repl", "replio", "ui", "cli"],
    "target": ["base", "json", "metrics", "http", "io", "store", "scsi", "iscsi", "repl", "replio",
               "ui", "cli"],
    "kube": ["base", "json", "api", "kinds", "http", "metrics"],
    "admission": ["base", "json", "api", "kinds", "pki", "http", "kube", "metrics"],
    "sidecar": ["base", "json", "api", "kinds", "kube", "metrics"],
    "controllers": ["base", "json", "api", "kinds", "kube", "metrics"],
    "node": ["base", "json", "api", "kinds", "pki", "http", "kube", "metrics", "lvm"],
    "pool": ["base", "json", "api", "kinds", "http", "metrics", "kube", "io", "store", "repl",
             "replio", "zpool", "ui", "cli"],
    "ui": ["base"],
    "cli": ["base"],
    "ctl": ["base", "json", "api", "kinds", "kube", "controllers", "ui", "cli", "up"],
    "attach": ["base", "json", "cli"],
    "bench": ["base", "json", "ui", "cli"],
    # It starts and stops the embedded Kubernetes, so it alone knows of it.
    "up": ["base", "json", "api", "kinds", "pki", "kube", "node", "ui", "cli", "k8s/kubelet"],
    # The embedded Kubernetes. Nothing above includes from it: storage code speaks to "a Kubernetes
    # API" over HTTP, and works the same on a real cluster.
    "k8s/cel": ["base", "json"],
    "k8s/schema": ["base", "json", "api", "k8s/cel"],
    "k8s/messages": ["base", "json", "api"],
    "k8s/kinds": ["base", "json", "api", "kinds", "k8s/messages", "k8s/schema"],
    "k8s/apiserver": ["base", "json", "api", "kinds", "pki", "http", "metrics", "k8s/cel", "k8s/schema",
                      "k8s/messages", "k8s/kinds"],
    "k8s/controllers": ["base", "json", "api", "kube", "metrics"],
    "k8s/shim": ["base"],
    "k8s/kubelet": ["base", "json", "api", "pki", "http", "kube", "metrics", "k8s/kinds", "k8s/shim"],
}
# The headers of these libraries appear in one module only.
OWNERS = {
    "iscsi/iscsi.h": ["src/bench/session.c", "src/attach/session_impl.h"],
    "iscsi/scsi-lowlevel.h": ["src/bench/session.c", "src/attach/session_impl.h"],
    "fuse3/fuse_lowlevel.h": ["src/attach/file.c"],
    "jansson.h": ["src/json/json.h"],
    "yaml.h": ["src/json/yaml_read.c", "src/json/yaml_hint.c", "src/json/yaml_write.c"],
    "blkid/blkid.h": ["src/node/probe.c", "src/node/wipe.c", "src/zpool/signature.c"],
    "gnutls/gnutls.h": ["src/pki/impl.h", "src/replio/aead.h", "src/replio/tls.c", "src/k8s/apiserver/seal.c", "src/http/session.c",
                        "src/iscsi/chap.c",
                        "src/http/tls.c"],
    "gnutls/x509.h": ["src/pki/impl.h", "src/http/session.c", "src/http/tls.c"],
    "gnutls/abstract.h": ["src/pki/impl.h", "src/http/tls.c"],
    "gnutls/crypto.h": ["src/pki/impl.h", "src/k8s/apiserver/seal.c", "src/iscsi/chap.c", "src/replio/aead.c",
                        "src/replio/record.c"],
    "intel-ipsec-mb.h": ["src/replio/aead.c"],
    "pcre2.h": ["src/base/pattern.c"],
    "microhttpd.h": ["src/http/server_impl.h"],
    "sqlite3.h": ["src/k8s/apiserver/store_impl.h"],
    "nghttp2/nghttp2.h": ["src/grpc/impl.h"],
    "protobuf-c/protobuf-c.h": ["src/grpc/grpc.h"],
    "zlib.h": ["src/http/gzip.c"],
    "liburing.h": ["src/io/uring.c"],
    "isa-l.h": ["src/base/crc.c"],
    "isa-l/crc.h": ["src/base/crc.c"],
}
# libzpool's are many, and found in two folders of their own.
OWNERS.update(dict.fromkeys((
    "sys/zfs_context.h", "sys/spa.h", "sys/spa_impl.h", "sys/arc.h", "sys/arc_impl.h", "sys/dbuf.h",
    "sys/dmu.h", "sys/dmu_objset.h", "sys/dmu_recv.h", "sys/dmu_send.h", "sys/dmu_tx.h",
    "sys/dnode.h", "sys/dsl_dataset.h", "sys/dsl_destroy.h", "sys/dsl_dir.h", "sys/dsl_pool.h",
    "sys/dsl_prop.h", "sys/dsl_scan.h", "sys/txg.h", "sys/vdev.h", "sys/vdev_impl.h", "sys/uberblock_impl.h", "sys/zap.h",
    "sys/zfs_file.h", "sys/zfs_rlock.h", "sys/zil.h", "sys/zio.h", "sys/zio_checksum.h",
    "zfeature_common.h", "zfs_namecheck.h", "zfs_prop.h",
), ["src/zpool/impl.h"]))


def module_of(path):
    """The module of a path below src: "kube", "k8s/cel"."""
    parts = path.split("/")
    return "/".join(parts[:2]) if parts[0] == "k8s" else parts[0]


INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def violations(top):
    for folder, _, files in os.walk(os.path.join(top, "src")):
        for file in sorted(files):
            if not file.endswith((".c", ".h")):
                continue
            path = os.path.relpath(os.path.join(folder, file), top)
            module = module_of(path.replace(os.sep, "/")[len("src/"):])
            if module not in BELOW:
                yield f"{path}: module '{module}' has no place in tools/layers.py"
                continue
            with open(os.path.join(top, path), encoding="utf-8") as source:
                for number, line in enumerate(source, 1):
                    found = INCLUDE.match(line)
                    if not found:
                        continue
                    quote, name = found.groups()
                    if quote == "<":
                        if name in OWNERS and path not in OWNERS[name]:
                            yield f"{path}:{number}: <{name}> belongs to {OWNERS[name][0]}"
                    elif "/" not in name:
                        yield f"{path}:{number}: include \"{module}/{name}\", not \"{name}\""
                    elif module_of(name) not in BELOW[module] + [module]:
                        yield f"{path}:{number}: {module} must not include {name}"


def main():
    top = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..")
    found = list(violations(top))
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
