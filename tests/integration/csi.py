#!/usr/bin/env python3
"""The rules that a CSI driver has to keep, asked by gRPC's own client; on JivaVolumes of a whole system.

csi.py ORLOP CSI TOP
"""
import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from csi import Csi, Messages  # noqa: E402
from jiva import PATIENCE, Jiva  # noqa: E402
from namespaces import own_network  # noqa: E402
from tap import Scratch, Tap, wait_for  # noqa: E402

orlop, program, top = sys.argv[1:4]
tap = Tap()
DRIVER = "jiva.csi.openebs.io"
MIB, GIB = 1 << 20, 1 << 30
LONG = "A" * 100 + "-name.of_128/bytes" + "z" * 10


class Driver:
    """orlop-csi, and a client of it."""

    def __init__(self, folder, kubeconfig, messages):
        self.folder, self.kubeconfig, self.messages = folder, kubeconfig, messages
        self.socket = f"{folder}/{DRIVER}/csi.sock"
        self.process = self.csi = None

    def start(self):
        self.process = subprocess.Popen(
            [program, "csi", "serve", "--socket-dir", self.folder, "--namespace", "default", "--kubeconfig", self.kubeconfig],
            stdin=subprocess.DEVNULL)
        self.csi = Csi(self.messages, self.socket)
        tap.ok(wait_for(lambda: getattr(self.call("Probe"), "ready", None) and self.call("Probe").ready.value, PATIENCE),
               "the driver is ready")
        return self

    def stop(self, signum=signal.SIGTERM):
        if self.csi:
            self.csi.close()
        if self.process:
            self.process.send_signal(signum)
            status = self.process.wait(60)
            self.process = None
            return status
        return None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop(signal.SIGKILL)

    def call(self, rpc, **fields):
        return self.csi.call(rpc, **fields)


def capability(mode="SINGLE_NODE_WRITER", fs="ext4", block=False):
    modes = ["UNKNOWN", "SINGLE_NODE_WRITER", "SINGLE_NODE_READER_ONLY", "MULTI_NODE_READER_ONLY",
             "MULTI_NODE_SINGLE_WRITER", "MULTI_NODE_MULTI_WRITER", "SINGLE_NODE_SINGLE_WRITER",
             "SINGLE_NODE_MULTI_WRITER"]
    return {**({"block": {}} if block else {"mount": {"fs_type": fs}}), "access_mode": {"mode": modes.index(mode)}}


def create(d, name, size=16 * MIB, **more):
    return d.call("CreateVolume", **{"name": name, "capacity_range": {"required_bytes": size},
                                     "volume_capabilities": [capability()], "parameters": {"replicaCount": "1"}, **more})


def ids(d):
    listed = d.call("ListVolumes")
    return [e.volume.volume_id for e in listed.entries]


def check_identity(d):
    info = d.call("GetPluginInfo")
    tap.equal(info.name, DRIVER, "the driver says its name")
    tap.ok(info.vendor_version, "and its version")
    tap.equal([(c.service.type, c.volume_expansion.type) for c in d.call("GetPluginCapabilities").capabilities],
              [(1, 0), (0, 1)], "it has a controller, and volumes grow while they are used")
    types = [c.rpc.type for c in d.call("ControllerGetCapabilities").capabilities]
    tap.equal(sorted(set(types)), sorted(types), "no capability is named twice")
    tap.ok(0 not in types, "and none is unknown")
    tap.equal(d.call("NodeGetInfo"), "UNIMPLEMENTED", "what is not served is unimplemented")


def check_refusals(d):
    cases = [
        ("CreateVolume", {"volume_capabilities": [capability()]}, "INVALID_ARGUMENT", "without a name"),
        ("CreateVolume", {"name": "x"}, "INVALID_ARGUMENT", "without capabilities"),
        ("CreateVolume", {"name": "x", "volume_capabilities": [{"access_mode": {"mode": 1}}]}, "INVALID_ARGUMENT",
         "with a capability that is neither block nor mount"),
        ("CreateVolume", {"name": "x", "volume_capabilities": [capability("MULTI_NODE_MULTI_WRITER")]},
         "INVALID_ARGUMENT", "for writers on many nodes"),
        ("CreateVolume", {"name": "x", "volume_capabilities": [capability(fs="zfs")]}, "INVALID_ARGUMENT",
         "with a file system that is not served"),
        ("CreateVolume", {"name": "x" * 129, "volume_capabilities": [capability()]}, "INVALID_ARGUMENT",
         "with a name of 129 bytes"),
        ("CreateVolume", {"name": "x", "volume_capabilities": [capability()],
                          "capacity_range": {"required_bytes": 2, "limit_bytes": 1}}, "INVALID_ARGUMENT",
         "with a limit below what is required"),
        ("CreateVolume", {"name": "x", "volume_capabilities": [capability()],
                          "capacity_range": {"required_bytes": 5000, "limit_bytes": 5001}}, "OUT_OF_RANGE",
         "where no size fits"),
        ("CreateVolume", {"name": "x", "volume_capabilities": [capability()], "mutable_parameters": {"a": "b"}},
         "INVALID_ARGUMENT", "with a mutable parameter that is not known"),
        ("CreateVolume", {"name": "x", "volume_capabilities": [capability()], "parameters": {"replicaCount": "many"}},
         "INVALID_ARGUMENT", "with a number of replicas that is none"),
        ("CreateVolume", {"name": "x", "volume_capabilities": [capability()],
                          "volume_content_source": {"snapshot": {"snapshot_id": "no"}}}, "INVALID_ARGUMENT",
         "from a snapshot"),
        ("DeleteVolume", {}, "INVALID_ARGUMENT", "of nothing"),
        ("ValidateVolumeCapabilities", {}, "INVALID_ARGUMENT", "of nothing"),
        ("ValidateVolumeCapabilities", {"volume_id": "vol"}, "INVALID_ARGUMENT", "without capabilities"),
        ("ValidateVolumeCapabilities", {"volume_id": "none", "volume_capabilities": [capability()]}, "NOT_FOUND",
         "of a volume that is not there"),
        ("ControllerExpandVolume", {"capacity_range": {"required_bytes": GIB}}, "INVALID_ARGUMENT", "of nothing"),
        ("ControllerExpandVolume", {"volume_id": "none"}, "INVALID_ARGUMENT", "without a size"),
        ("ControllerExpandVolume", {"volume_id": "none", "capacity_range": {"required_bytes": GIB}}, "NOT_FOUND",
         "of a volume that is not there"),
        ("ControllerGetVolume", {}, "INVALID_ARGUMENT", "of nothing"),
        ("ControllerGetVolume", {"volume_id": "../../etc"}, "NOT_FOUND", "of a path"),
        ("ControllerGetVolumeHealth", {"volume_id": "none"}, "NOT_FOUND", "of a volume that is not there"),
        ("ListVolumes", {"starting_token": "invalid-token"}, "ABORTED", "with a token that is none"),
        ("ListVolumes", {"max_entries": -1}, "INVALID_ARGUMENT", "of fewer than no volumes"),
    ]
    for rpc, fields, code, what in cases:
        tap.equal(d.call(rpc, **fields), code, f"{rpc} {what}: {code}")
    for name in ("none", "not/a name", "x" * 300):
        tap.equal(str(d.call("DeleteVolume", volume_id=name)), "", f"deleting {name[:12]} succeeds: it is not there")
    tap.equal(ids(d), [], "and nothing was left behind")


def check_life(d, s):
    made = create(d, "pvc-1")
    tap.equal((made.volume.volume_id, made.volume.capacity_bytes), ("pvc-1", 16 * MIB), "a volume is made, and serves")
    tap.equal(s.volume("pvc-1")["status"]["phase"], "Ready", "when that is answered")
    tap.equal(create(d, "pvc-1").volume.volume_id, "pvc-1", "asked for again, it is the same")
    tap.equal(create(d, "pvc-1", 64 * MIB), "ALREADY_EXISTS", "with another size it is refused")
    exact = {"required_bytes": 20 * MIB, "limit_bytes": 20 * MIB}
    tap.equal(create(d, LONG[:128], capacity_range=exact).volume.capacity_bytes, 20 * MIB,
              "a name of 128 bytes works, and a size is met exactly")
    tap.equal(len(ids(d)), 2, "both are listed at once")
    first = d.call("ListVolumes", max_entries=1)
    second = d.call("ListVolumes", max_entries=1, starting_token=first.next_token)
    tap.equal([e.volume.volume_id for e in (*first.entries, *second.entries)] + [second.next_token], ids(d) + [""],
              "page by page, too")
    confirmed = d.call("ValidateVolumeCapabilities", volume_id="pvc-1", volume_capabilities=[capability(block=True)])
    tap.equal(len(confirmed.confirmed.volume_capabilities), 1, "what it can do is confirmed")
    refused = d.call("ValidateVolumeCapabilities", volume_id="pvc-1",
                     volume_capabilities=[capability("MULTI_NODE_MULTI_WRITER")])
    tap.ok(not refused.HasField("confirmed") and refused.message, "what it cannot do is not, and why is said")
    well = d.call("ControllerGetVolume", volume_id="pvc-1")
    tap.equal((well.volume.capacity_bytes, well.status.volume_condition.abnormal), (16 * MIB, False), "it is well")
    tap.equal(len(d.call("ControllerGetVolumeHealth", volume_id="pvc-1").volume_health.health_statuses), 0,
              "in the newer form, too")


def check_growth(d, s):
    grown = d.call("ControllerExpandVolume", volume_id="pvc-1", capacity_range={"required_bytes": 32 * MIB})
    tap.equal((grown.capacity_bytes, grown.node_expansion_required), (32 * MIB, True), "it grows")
    tap.equal(s.volume("pvc-1")["status"]["capacity"], "32Mi", "and has that size")
    again = d.call("ControllerExpandVolume", volume_id="pvc-1", capacity_range={"required_bytes": 32 * MIB})
    tap.equal(again.capacity_bytes, 32 * MIB, "asked again, nothing changes")
    small = d.call("ControllerExpandVolume", volume_id="pvc-1",
                   capacity_range={"required_bytes": 8 * MIB, "limit_bytes": 16 * MIB})
    tap.equal(small, "OUT_OF_RANGE", "it does not shrink")


def check_many(d):
    """The same volume ten times at once: one is made, and nobody is told a lie."""
    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda _: create(d, "crowd"), range(10)))
    made = [a for a in answers if not isinstance(a, str)]
    tap.ok(made and {a.volume.volume_id for a in made} == {"crowd"} and
           {a for a in answers if isinstance(a, str)} <= {"ABORTED"}, "of ten at once, none makes another", answers)
    tap.equal(ids(d).count("crowd"), 1, "there is one")


def check_restart(d):
    d.stop(signal.SIGKILL)
    d.start()
    tap.ok("pvc-1" in ids(d), "a driver that was killed knows its volumes again")


def check_strangers(d):
    held = []
    for _ in range(400):
        c = socket.socket(socket.AF_UNIX)
        c.connect(d.socket)
        held.append(c)
    tap.ok(not isinstance(d.call("Probe"), str), "400 silent connections keep nobody out")
    for c in held:
        c.close()
    tap.equal(os.stat(d.socket).st_mode & 0o777, 0o600, "the socket is root's alone")


def check_end(d, s):
    for name in ids(d):
        tap.equal(str(d.call("DeleteVolume", volume_id=name)), "", f"{name[:12]} is deleted")
        tap.equal(str(d.call("DeleteVolume", volume_id=name)), "", "and again")
    tap.equal((ids(d), s.ask("GET", s.path("jivavolumes")).json["items"]), ([], []), "nothing is left")
    tap.equal(d.stop(), 0, "the driver ends when it is told to")
    tap.ok(not os.path.exists(d.socket), "and its socket is gone")


if not own_network():
    tap.skip("CSI", "no network namespaces here")
    tap.done()
with Scratch() as scratch, Jiva(orlop, scratch.file("data"), "--nodes", "1") as system:
    with Driver(scratch.file("csi"), f"{system.folder}/kubeconfig",
                Messages(f"{top}/src/csi/csi.proto", os.path.dirname(scratch.file("x")))) as driver:
        check_identity(driver)
        check_refusals(driver)
        check_life(driver, system)
        check_growth(driver, system)
        check_many(driver)
        check_restart(driver)
        check_strangers(driver)
        check_end(driver, system)
    tap.equal(system.complaints(), "", "no sanitizer complained")
tap.done()
