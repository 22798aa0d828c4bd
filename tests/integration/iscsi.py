#!/usr/bin/env python3
"""orlop-target with real initiators: libiscsi's tools, qemu-img and qemu-io; CHAP, digests, growth, drain,
read-only, metrics, a clean stop. Both back ends of the event loop.

iscsi.py ORLOP-TARGET
"""
import json
import os
import signal
import socket
import sys
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from initiator import Initiator  # noqa: E402
from iscsi_target import IQN, Target  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402

PROGRAM = sys.argv[1]
MIB = 1 << 20
tap = Tap()


def ask(target, verb, *more):
    """`orlop target VERB`: the answer as JSON."""
    result = run(PROGRAM, "target", verb, "--control", target.folder + "/control", "-o", "json", *more)
    return json.loads(result.stdout) if result.returncode == 0 else result


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def check_tools(scratch, backend):
    folder = scratch.file(backend)
    os.mkdir(folder)
    store = f"file:{folder}/volume"
    flags = ["--io", backend, "--control", f"{folder}/control", "--alias", "a volume"]
    with Target(PROGRAM, folder, store, "64Mi", flags) as t:
        said = run("iscsi-ls", "-s", f"iscsi://127.0.0.1:{t.port}")
        tap.ok(IQN in said.stdout and "DIRECT_ACCESS (Size:63M)" in said.stdout,
               f"{backend}: discovery and a LUN, by iscsi-ls", said.stdout + said.stderr)
        tap.ran(run("iscsi-inq", t.url()), f"{backend}: iscsi-inq", stdout="Vendor:ORLOP")
        tap.ran(run("iscsi-readcapacity16", t.url()), f"{backend}: iscsi-readcapacity16",
                stdout="RETURNED LOGICAL BLOCK ADDRESS:131071")
        tap.ran(run("iscsi-swp", t.url()), f"{backend}: iscsi-swp", stdout="SWP:0")
        image = scratch.file("image")
        with open(image, "wb") as file:
            file.write(os.urandom(9 * MIB) + bytes(3 * MIB) + os.urandom(52 * MIB))
        tap.ran(run("qemu-img", "convert", "-n", "-f", "raw", "-O", "raw", image, t.url()),
                f"{backend}: an image in, by qemu-img")
        tap.ran(run("qemu-img", "compare", "-f", "raw", "-F", "raw", image, t.url()),
                f"{backend}: and it is the same", stdout="Images are identical")
        tap.ran(run("qemu-io", "-f", "raw", "-c", "write -P 7 1M 3M", "-c", "flush",
                    "-c", "read -P 7 1M 3M", "-c", "discard 2M 1M", "-c", "read -P 0 2M 1M",
                    "-c", "write -z 8M 1M", "-c", "read -P 0 8M 1M", t.url()),
                f"{backend}: reads, writes, discards, by qemu-io")
        for digest in ("none", "crc32c"):
            said = run("qemu-io", "--image-opts", "-c", "write -P 9 0 512k", "-c", "read -P 9 0 512k",
                       f"driver=iscsi,transport=tcp,portal=127.0.0.1:{t.port},target={IQN},lun=0,"
                       f"header-digest={digest}")
            tap.ran(said, f"{backend}: header digest {digest}")
        status = ask(t, "show")
        tap.ok(status["io"] == ("io_uring" if backend == "uring" else backend) and
               status["statistics"]["writes"]["bytes"] >= 60 * MIB and
               status["statistics"]["reads"]["errors"] == 0 and status["used"] <= status["size"],
               f"{backend}: what it did is counted", status)
        check_growth(t, backend)
        tap.equal(t.stop(), 0, f"{backend}: SIGTERM ends it well")
        said = t.said()
        tap.ok("target stopped" in said and "ERROR" not in said, f"{backend}: and its log says so", said)
    with open(f"{folder}/volume", "rb") as file:
        file.seek(1 * MIB)
        tap.ok(file.read(MIB) == b"\7" * MIB, f"{backend}: the file holds what was written")


def check_growth(t, backend):
    i = Initiator(t.port, IQN)
    tap.equal(i.login(), 0, f"{backend}: an initiator stays logged in")
    i.ready()
    tap.equal(i.capacity(), 64 * MIB, f"{backend}: it sees the size")
    tap.equal(ask(t, "grow", "--size", "96Mi")["size"], 96 * MIB, f"{backend}: the volume grows")
    tap.equal(i.ready(), [(6, 0x2a, 9)], f"{backend}: it hears CAPACITY DATA HAS CHANGED, once")
    tap.equal(i.capacity(), 96 * MIB, f"{backend}: and sees the new size")
    i.rw(96 * MIB // 512 - 1, 1, b"e" * 512)
    tap.equal(i.answer()[0], 0, f"{backend}: the new end can be written")
    shrunk = ask(t, "grow", "--size", "32Mi")
    tap.ok(shrunk.returncode == 1 and "does not shrink" in shrunk.stderr, f"{backend}: it does not shrink")
    show = run(PROGRAM, "target", "show", "--control", t.folder + "/control").stdout
    tap.ok("iqn.2026-01.test:python" in show and "1 sessions" in show,
           f"{backend}: it is shown to people", show)
    i.close()
    tap.ok(wait_for(lambda: not ask(t, "show")["sessions"], 10), f"{backend}: a session goes with its connection")


def check_chap(scratch):
    secret, mutual = scratch.file("secret", "secret-of-initiator\n"), scratch.file("mutual", "secret-of-target\n")
    flags = ["--chap-user", "joe", "--chap-secret-file", secret, "--mutual-user", "volume",
             "--mutual-secret-file", mutual]
    with Target(PROGRAM, scratch.path, flags=flags) as t:
        def log_in(user, password, target_user=None, target_password=None):
            env = {**os.environ, "LIBISCSI_CHAP_USERNAME": user, "LIBISCSI_CHAP_PASSWORD": password}
            if target_user:
                env |= {"LIBISCSI_CHAP_TARGET_USERNAME": target_user,
                        "LIBISCSI_CHAP_TARGET_PASSWORD": target_password}
            return run("iscsi-inq", t.url(), env=env).returncode == 0
        tap.ok(log_in("joe", "secret-of-initiator"), "CHAP: the right secret")
        tap.ok(not log_in("joe", "secret-of-somebody"), "CHAP: a wrong one")
        tap.ok(not log_in("jim", "secret-of-initiator"), "CHAP: a wrong name")
        tap.ok(run("iscsi-inq", t.url()).returncode != 0, "CHAP: nothing")
        tap.ok(log_in("joe", "secret-of-initiator", "volume", "secret-of-target"), "mutual CHAP")
        tap.ok(not log_in("joe", "secret-of-initiator", "volume", "secret-of-nobody"),
               "mutual CHAP: the target is not who it should be")
        said = t.said()
        tap.ok("secret-of" not in said and "CHAP: wrong name, secret or algorithm" in said,
               "the log tells of refusals, and no secrets", said)
        tap.equal(t.stop(), 0, "it ends well")
    short = scratch.file("short", "short\n")
    said = run(PROGRAM, "target", "serve", "--store", "mem:", "--size", "1Mi", "--iqn", IQN, "--portal",
               "127.0.0.1:0", "--chap-user", "joe", "--chap-secret-file", short)
    tap.ran(said, "a secret that is too short is refused", status=1,
            stderr="a CHAP secret has 12 to 255 characters")


def check_modes(scratch):
    with Target(PROGRAM, scratch.path, f"file:{scratch.file('ro')}", "8Mi") as t:
        t.stop()
    port = free_port()
    flags = ["--read-only", "--block-size", "4096", "--metrics", f"127.0.0.1:{port}", "--initiators",
             "iqn.2026-01.test:python,iqn.2026-01.test:other"]
    with Target(PROGRAM, scratch.path, f"file:{scratch.file('ro')}", "", flags) as t:
        i = Initiator(t.port, IQN)
        tap.equal(i.login(), 0, "an initiator on the list")
        i.ready()
        tap.equal(i.capacity(), 8 * MIB, "blocks of 4096")
        i.command(b"\x2a\0\0\0\0\0\0\0\x01\0", 4096, b"x" * 4096, True)
        tap.equal(i.answer()[:2], (2, (7, 0x27, 0)), "read-only: WRITE PROTECTED")
        stranger = Initiator(t.port, IQN, "iqn.2026-01.test:stranger")
        tap.equal(stranger.login(), 0x0202, "an initiator that is not on the list")
        stranger.close()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as reply:
            text = reply.read().decode()
        labels = f'{{volName="{IQN}",castype="orlop"}}'
        lines = text.splitlines()
        tap.ok(f"openebs_size_of_volume{labels} 0.0078125" in lines and
               f"openebs_sector_size{labels} 4096" in lines and
               f"openebs_volume_status{labels} 3" in lines and
               f"openebs_iscsi_initiator_login_status{labels} 1" in lines and
               any(line.startswith(f"openebs_actual_used{labels}") for line in lines), "metrics", text)
        # The refused write is in the histogram, which has an end, a sum and a count.
        tap.ok('orlop_target_latency_seconds_bucket{op="write",le="+Inf"} 1' in lines and
               'orlop_target_latency_seconds_count{op="write"} 1' in lines and
               any(float(line.split()[1]) > 0 for line in lines
                   if line.startswith('orlop_target_latency_seconds_sum{op="write"}')), "latencies", text)
        i.close()
    tap.ran(run(PROGRAM, "target", "serve", "--store", "mem:"), "what is missing is said", status=2,
            stderr="serve needs --iqn")
    tap.ran(run(PROGRAM, "target", "show", "--control", scratch.file("nothing")), "nobody answers", status=1,
            stderr="nobody answers at")


def check_lun(scratch):
    with Target(PROGRAM, scratch.path, "mem:", "8Mi", ["--lun", "200"]) as t:
        said = run("iscsi-ls", "-s", f"iscsi://127.0.0.1:{t.port}")
        tap.ok("Lun:200 " in said.stdout and "Lun:0 " not in said.stdout, "a unit of another number", said.stdout)
        url = t.url()[:-1] + "200"
        tap.ran(run("qemu-io", "-f", "raw", "-c", "write -P 7 0 1M", "-c", "read -P 7 0 1M", url), "is used under it")
        tap.ok(run("iscsi-readcapacity16", t.url()).returncode != 0, "and not under 0")
    tap.ran(run(PROGRAM, "target", "serve", "--store", "mem:", "--size", "1Mi", "--iqn", IQN, "--lun", "256"),
            "there are 256", status=2, stderr="--lun: '256' is not a number from 0 to 255")


def check_drain(scratch):
    flags = ["--control", scratch.file("control"), "--drain-seconds", "30"]
    with Target(PROGRAM, scratch.path, flags=flags) as t:
        i = Initiator(t.port, IQN)
        i.login()
        tap.ok(ask(t, "drain")["draining"], "drain")
        header, _ = i.receive()
        tap.ok(header[0] == 0x32 and header[36] == 1, "the initiator is asked to log out")
        late = Initiator(t.port, IQN, "iqn.2026-01.test:late")
        tap.equal(late.login(), 0x0301, "nobody else gets in")
        i.ready()
        i.rw(0, 1, b"d" * 512)
        tap.equal(i.answer()[0], 0, "who is in can finish")
        t.process.send_signal(signal.SIGTERM)
        header, _ = i.receive()
        tap.equal(header[36], 1, "SIGTERM: it is asked again")
        tap.ok(t.alive(), "and waited for")
        i.send(0x46, 0x80)
        i.receive()
        tap.equal(t.process.wait(20), 0, "when it has logged out, the target ends")
        i.close()
        late.close()


with Scratch() as scratch:
    for io in ("uring", "epoll"):
        check_tools(scratch, io)
    check_chap(scratch)
    check_modes(scratch)
    check_lun(scratch)
    check_drain(scratch)
tap.done()
