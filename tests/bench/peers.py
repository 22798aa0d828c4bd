"""Targets that serve one file, ours and others': started, loaded by a client, stopped."""
import json
import os
import signal
import socket
import subprocess

from measure import PROGRAMS, free_port
from tap import run, wait_for

IQN = "iqn.2026-01.io.orlop:bench"
SIZE = 256 << 20


def listens(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def bench_words(cell, seconds):
    """The words of `orlop bench iscsi` for (block, pattern, percent of reads, depth, sessions)."""
    block, pattern, reads, depth, sessions = cell
    return ["-b", str(block), "-p", pattern, "-r", str(reads), "-q", str(depth), "-s", str(sessions), "-t", str(seconds),
            "-w", "0.2"]


def bench(url, words, env=None):
    """What `orlop bench iscsi` has seen."""
    done = run(f"{PROGRAMS}/orlop", "bench", "iscsi", url, *words, "-o", "json", timeout=3600, env=env)
    if done.returncode:
        raise RuntimeError(f"orlop bench iscsi: {done.stderr}")
    return json.loads(done.stdout)


class Peer:
    """A target that serves one file. Started by start(), which sets self.process."""

    name = needs = ""

    def __init__(self, folder, number, file=None):
        self.folder, self.number, self.port = folder, number, free_port()
        self.file = file or os.path.join(folder, f"{self.name}.volume")
        if not file:
            self.fill()

    def fill(self):
        with open(self.file, "wb") as file:
            for _ in range(SIZE >> 20):
                file.write(os.urandom(1 << 20))

    def spawn(self, *argv, env=None):
        with open(os.path.join(self.folder, f"{self.name}.log"), "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(argv, stdout=log, stderr=log, env=env)
        if not wait_for(lambda: listens(self.port) or self.process.poll() is not None, 20) or \
                self.process.poll() is not None:
            with open(os.path.join(self.folder, f"{self.name}.log"), encoding="utf-8") as log:
                raise RuntimeError(f"{self.name} did not start: {log.read()}")

    def stop(self):
        # tgtd ends only when it has to while it has targets.
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def load(self, cell, seconds):
        """iops, p50 and p99 in microseconds."""
        said = bench(self.url(), bench_words(cell, seconds))
        return said["iops"], said["latencyMicroseconds"]["all"]["p50"], \
            said["latencyMicroseconds"]["all"]["p99"]

    lun = 0

    def url(self):
        return f"iscsi://127.0.0.1:{self.port}/{IQN}/{self.lun}"


class Ours(Peer):
    name, io = "orlop", "auto"

    def start(self):
        self.spawn(f"{PROGRAMS}/orlop-target", "target", "serve", "--store", f"file:{self.file}",
                   "--iqn", IQN, "--portal", f"127.0.0.1:{self.port}", "--io", self.io)


class Epoll(Ours):
    """Ours, where io_uring is refused."""

    name, io = "epoll", "epoll"


class Tgt(Peer):
    name, needs, lun = "tgt", "tgtd", 1
    # As generous as ours; its defaults cost it half of its throughput at large blocks.
    TUNED = {"MaxRecvDataSegmentLength": 262144, "MaxXmitDataSegmentLength": 262144,
             "FirstBurstLength": 262144, "MaxBurstLength": 1048576, "InitialR2T": "No",
             "ImmediateData": "Yes", "MaxOutstandingR2T": 16}

    def admin(self, *argv):
        done = run("tgtadm", "-C", str(self.control), "--lld", "iscsi", *argv)
        if done.returncode:
            raise RuntimeError(f"tgtadm {' '.join(argv)}: {done.stderr}")

    def start(self):
        self.control = 20000 + os.getpid() % 10000 + self.number  # it is one for the whole machine
        self.spawn("tgtd", "-f", "-C", str(self.control), "--iscsi", f"portal=127.0.0.1:{self.port}")
        wait_for(lambda: run("tgtadm", "-C", str(self.control), "--op", "show", "--mode",
                             "sys").returncode == 0, 10)
        self.admin("--op", "new", "--mode", "target", "--tid", "1", "-T", IQN)
        for name, value in self.TUNED.items():
            self.admin("--op", "update", "--mode", "target", "--tid", "1", "-n", name, "-v", str(value))
        self.admin("--op", "new", "--mode", "logicalunit", "--tid", "1", "--lun", "1", "-b", self.file)
        self.admin("--op", "bind", "--mode", "target", "--tid", "1", "-I", "ALL")


class Istgt(Peer):
    name = needs = "istgt"
    CONFIG = """[Global]
  NodeBase "iqn.2026-01.io.orlop"
  PidFile {folder}/istgt.pid
  AuthFile {folder}/istgt.auth
  LogFacility "local7"
  MaxSessions 16
  MaxConnections 4
  FirstBurstLength 262144
  MaxBurstLength 1048576
  MaxRecvDataSegmentLength 262144
[UnitControl]
  AuthMethod None
  Portal UC1 127.0.0.1:{control}
  Netmask 127.0.0.1
[PortalGroup1]
  Portal DA1 127.0.0.1:{port}
[InitiatorGroup1]
  InitiatorName "ALL"
  Netmask ALL
[LogicalUnit1]
  TargetName "bench"
  Mapping PortalGroup1 InitiatorGroup1
  AuthMethod None
  UnitType Disk
  LUN0 Storage {file} {size}MB
"""

    def start(self):
        config = os.path.join(self.folder, "istgt.conf")
        with open(config, "w", encoding="utf-8") as file:
            file.write(self.CONFIG.format(folder=self.folder, port=self.port, control=free_port(),
                                          file=self.file, size=SIZE >> 20))
        with open(os.path.join(self.folder, "istgt.auth"), "w", encoding="utf-8"):
            os.chmod(os.path.join(self.folder, "istgt.auth"), 0o600)
        self.spawn("istgt", "-D", "-c", config)


class Nbdkit(Peer):
    name = needs = "nbdkit"

    def start(self):
        self.spawn("nbdkit", "-f", "-i", "127.0.0.1", "-p", str(self.port), "file", self.file)

    def load(self, cell, seconds):
        block, pattern, reads, depth, sessions = cell
        how = ("rand" if pattern == "random" else "") + ("read" if reads else "write")
        done = run("fio", "--name=x", "--ioengine=nbd", f"--uri=nbd://127.0.0.1:{self.port}",
                   f"--rw={how}", f"--bs={block}", f"--iodepth={depth}", f"--numjobs={sessions}",
                   f"--size={SIZE}", f"--runtime={int(1000 * seconds)}ms", "--time_based", "--ramp_time=200ms",
                   "--group_reporting", "--output-format=json", "--thread", "--lat_percentiles=1",
                   "--clat_percentiles=0")
        if done.returncode:
            raise RuntimeError(f"fio: {done.stderr}")
        side = json.loads(done.stdout[done.stdout.index("{"):])["jobs"][0]["read" if reads else "write"]
        times = side["lat_ns"]["percentile"]
        return side["iops"], times["50.000000"] / 1e3, times["99.000000"] / 1e3
