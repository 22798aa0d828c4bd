#!/usr/bin/env python3
"""orlop-target against tgt, istgt and nbdkit: the same load on the same kind of file, in one run.

Every figure is the median of rounds that take turns over the targets. The client is `orlop bench`
for iSCSI, and fio for NBD (nbdkit), on the same machine. A peer that is not installed is left out. At
queue depth 1 client and target, ours and the peers', share one processor: on a virtual machine it takes an
idle processor up to 40 us to wake, and where the scheduler puts them would decide, not what they do.

bench_iscsi.py [--rounds N] [--seconds S] [--stores memory,disk] [--only TEXT] [--json FILE]
"""
import argparse
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(TOP, "tests", "lib"))
from tap import run, wait_for  # noqa: E402

BUILD = os.environ.get("BUILD_DIR", f"{TOP}/build/release")
os.environ["PATH"] += ":/usr/sbin:/sbin"
IQN = "iqn.2026-01.io.orlop:bench"
SIZE = 256 << 20

# name: block, pattern, percent of reads, depth, sessions
CELLS = {
    "4K random read QD1": (4096, "random", 100, 1, 1),
    "4K random write QD1": (4096, "random", 0, 1, 1),
    "4K random read QD32": (4096, "random", 100, 32, 1),
    "4K random write QD32": (4096, "random", 0, 32, 1),
    "4K random read 4xQD32": (4096, "random", 100, 32, 4),
    "4K random write 4xQD32": (4096, "random", 0, 32, 4),
    "128K sequential read QD32": (131072, "sequential", 100, 32, 1),
    "128K sequential write QD32": (131072, "sequential", 0, 32, 1),
    "128K sequential read 4xQD32": (131072, "sequential", 100, 32, 4),
    "128K sequential write 4xQD32": (131072, "sequential", 0, 32, 4),
}

# (cell, figure, peer, at least or at most, ratio of ours to the peer's), memory-backed
AIMS = [
    ("4K random read QD32", "iops", "tgt", ">=", 2.0),
    ("4K random read QD32", "iops", "nbdkit", ">=", 1.4),
    ("4K random write QD32", "iops", "tgt", ">=", 2.0),
    ("4K random write QD32", "iops", "nbdkit", ">=", 1.4),
    ("128K sequential read QD32", "iops", "tgt", ">=", 3.0),
    ("128K sequential write QD32", "iops", "tgt", ">=", 1.5),
    ("4K random read QD1", "p50", "tgt", "<=", 0.5),
    ("4K random read QD1", "p50", "nbdkit", "<=", 1.0),
    ("4K random write QD1", "p50", "tgt", "<=", 0.5),
    ("4K random write QD1", "p50", "nbdkit", "<=", 1.0),
    ("4K random read QD32", "cpu", "tgt", "<=", 0.33),
    ("4K random write QD32", "cpu", "tgt", "<=", 0.33),
]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def listens(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def processor(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def pin(pid, cpus):
    """All threads of a process."""
    for task in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(task), cpus)


def memory(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) / 1024


class Peer:
    """A target that serves one file. Started by start(), which sets self.process."""

    name = needs = ""

    def __init__(self, folder, number):
        self.folder, self.number, self.port = folder, number, free_port()
        self.file = os.path.join(folder, f"{self.name}.volume")
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
        block, pattern, reads, depth, sessions = cell
        done = run(f"{BUILD}/cmd/orlop", "bench", "iscsi",
                   f"iscsi://127.0.0.1:{self.port}/{IQN}/{self.lun}", "-b", str(block), "-p", pattern,
                   "-r", str(reads), "-q", str(depth), "-s", str(sessions), "-t", str(seconds), "-w",
                   "0.2", "-o", "json")
        if done.returncode:
            raise RuntimeError(f"{self.name}: {done.stderr}")
        said = json.loads(done.stdout)
        return said["iops"], said["latencyMicroseconds"]["all"]["p50"], \
            said["latencyMicroseconds"]["all"]["p99"]

    lun = 0


class Ours(Peer):
    name, io = "orlop", "auto"

    def start(self):
        self.spawn(f"{BUILD}/cmd/orlop-target", "target", "serve", "--store", f"file:{self.file}",
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


def settle(peers):
    """What earlier rounds wrote is on the disk: else the kernel writes it out during the next one, and whoever has
    that round waits for pages that are under way."""
    for peer in peers:
        with open(peer.file, "rb") as file:
            os.fsync(file.fileno())


def measure(peers, args):
    """{cell: {peer: {figure: median}}}"""
    figures, all_cpus = {}, os.sched_getaffinity(0)
    for name, cell in CELLS.items():
        if args.only not in name:
            continue
        rounds = {p.name: [] for p in peers}
        for number in range(args.rounds):
            for peer in peers[number % len(peers):] + peers[:number % len(peers)]:
                settle(peers)
                before = processor(peer.process.pid)
                cpus = {0} if cell[3] == 1 else all_cpus
                pin(peer.process.pid, cpus)
                os.sched_setaffinity(0, cpus)  # and so the client's
                iops, p50, p99 = peer.load(cell, args.seconds)
                os.sched_setaffinity(0, all_cpus)
                used = processor(peer.process.pid) - before
                # The warm-up is in the processor time, so it is in the number of I/Os too.
                rounds[peer.name].append({"iops": iops, "p50": p50, "p99": p99,
                                          "cpu": used / (iops * (args.seconds + 0.2)) * 1e5,
                                          "rss": memory(peer.process.pid)})
        figures[name] = {p: {f: statistics.median(r[f] for r in rows) for f in rows[0]}
                         for p, rows in rounds.items()}
        show(name, cell, figures[name])
    return figures


def show(name, cell, row):
    print(f"\n  {name}")
    ours = row["orlop"]
    for peer, f in row.items():
        rate = f"{f['iops'] * cell[0] / 1e6:8.0f} MB/s" if cell[0] > 65536 else f"{f['iops']:8.0f} IOPS"
        print(f"    {peer:8} {rate}  p50 {f['p50']:7.0f} us  p99 {f['p99']:7.0f} us  "
              f"CPU {f['cpu']:5.2f} s/100k  memory {f['rss']:4.0f} MB   "
              f"ours/its: {ours['iops'] / f['iops']:5.2f}x, p50 {ours['p50'] / f['p50']:4.2f}x, "
              f"CPU {ours['cpu'] / f['cpu'] if f['cpu'] else 0:4.2f}x", flush=True)


def line(what, value, sign, aim, unit="x"):
    good = value >= aim if sign == ">=" else value <= aim
    print(f"    {what:52} {value:6.2f}{unit}  aim {sign} {aim}{unit}  {'reached' if good else 'NOT reached'}")


def judge_back_ends(figures):
    """Whatever the load and the store: the default back end is not much slower than the other."""
    print("\n  aims (back ends)")
    for cell, row in figures.items():
        if "epoll" in row:
            line(f"{cell}: default / epoll", row["orlop"]["iops"] / row["epoll"]["iops"], ">=", 0.9)


def judge(figures, idle):
    """The aims, for the memory-backed file."""
    print("\n  aims (memory-backed)")
    for cell, figure, peer, sign, aim in AIMS:
        row = figures.get(cell, {})
        if peer in row and row[peer][figure]:
            line(f"{cell}: {figure} / {peer}", row["orlop"][figure] / row[peer][figure], sign, aim)
    for how in ("read", "write"):
        one, four = figures.get(f"4K random {how} QD32"), figures.get(f"4K random {how} 4xQD32")
        if one and four:
            line(f"4K random {how}: four sessions / one",
                 four["orlop"]["iops"] / one["orlop"]["iops"], ">=", 1.0)
    line("memory, idle", idle, "<=", 8, " MB")
    busy = [f["orlop"]["rss"] for n, f in figures.items() if "4x" in n]
    if busy:
        line("memory, after four sessions of depth 32", max(busy), "<=", 32, " MB")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--stores", default="memory,disk")
    parser.add_argument("--only", default="")
    parser.add_argument("--json")
    args = parser.parse_args()
    kinds = []
    for kind in (Ours, Epoll, Tgt, Istgt, Nbdkit):
        missing = [p for p in (kind.needs, "fio" if kind is Nbdkit else "") if p and not shutil.which(p)]
        if missing:
            print(f"iSCSI: {kind.name} is left out: {missing[0]} is not installed")
        else:
            kinds.append(kind)
    result = {}
    for store in args.stores.split(","):
        print(f"\niSCSI targets, {'memory' if store == 'memory' else 'disk'}-backed file of 256 MiB, "
              f"medians of {args.rounds}")
        folder = tempfile.mkdtemp(prefix="orlop-bench-", dir="/dev/shm" if store == "memory" else "/var/tmp")
        peers = []
        try:
            for number, kind in enumerate(kinds):
                peer = kind(folder, number)
                peer.start()
                peers.append(peer)
            idle = memory(peers[0].process.pid)
            result[store] = measure(peers, args)
            judge_back_ends(result[store])
            if store == "memory":
                judge(result[store], idle)
        finally:
            for peer in peers:
                peer.stop()
            shutil.rmtree(folder, ignore_errors=True)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=2)


if __name__ == "__main__":
    main()
