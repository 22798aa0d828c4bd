"""What benchmarks measure with: processes' time and memory, disks, and whether the machine was quiet."""
import ctypes
import os
import shutil
import socket
import statistics
import subprocess
import sys

TOP = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(TOP, "tests", "lib"))
from tap import run  # noqa: E402

BUILD = os.environ.get("BUILD_DIR", f"{TOP}/build/release")
PROGRAMS = f"{BUILD}/cmd"
os.environ["PATH"] += ":/usr/sbin:/sbin"
TICKS = os.sysconf("SC_CLK_TCK")
# Where a file system says that a file is being synced, however that was asked for.
SYNC_EVENTS = {"ext4": "ext4:ext4_sync_file_enter", "xfs": "xfs:xfs_file_fsync", "btrfs": "btrfs:btrfs_sync_file",
               "f2fs": "f2fs:f2fs_sync_file_enter"}
PR_SET_CHILD_SUBREAPER = 36
NOT_DISKS = ("tmpfs", "ramfs", "overlay", "devtmpfs")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def stat_fields(pid):
    """What follows the name in /proc/PID/stat; [] when the process is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()
    except OSError:
        return []


def processor(pid):
    """Seconds of processor time."""
    fields = stat_fields(pid)
    return (int(fields[11]) + int(fields[12])) / TICKS if fields else 0


def memory(pid, field="VmRSS"):
    """Resident megabytes; VmHWM: at most."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(field)) / 1024


def medians(rows):
    """Of figures that several rounds have seen: figure -> median."""
    return {figure: statistics.median(r.get(figure, 0) for r in rows) for figure in rows[0]}


def turns(peers, rounds):
    """Every peer in every round, each round beginning with another."""
    for number in range(rounds):
        first = number % len(peers)
        yield from peers[first:] + peers[:first]


def file_system(folder):
    """Its type, and the device below it."""
    words = run("findmnt", "-no", "FSTYPE,SOURCE", "-T", folder).stdout.split()
    return (words[0], words[1]) if len(words) > 1 else ("unknown", "")


def disk_folder(folder):
    """A folder that is on a disk, made if need be; ends the program if it is in memory."""
    os.makedirs(folder, exist_ok=True)
    kind = file_system(folder)[0]
    if kind in NOT_DISKS:
        sys.exit(f"{folder} is on {kind}, where a sync costs nothing: name a folder on a disk with --folder DIR")
    return folder


def sync_disk(folder):
    """Nothing that was written before waits to be written now."""
    run("sync", "-f", folder, timeout=600)


def forget_files():
    """What others have read and written takes no memory from who comes next: on machines of their own they would not."""
    with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
        file.write("1")


class Syncs:
    """Counts how often processes have files synced, in `with`; .count, None where it cannot be known."""

    def __init__(self, folder, pids):
        self.event, self.pids, self.count = SYNC_EVENTS.get(file_system(folder)[0]), pids, None

    def __enter__(self):
        self.perf = None
        if self.event and self.pids and shutil.which("perf"):
            self.perf = subprocess.Popen(["perf", "stat", "-x,", "-e", self.event, "-p", ",".join(map(str, self.pids))],
                                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_):
        if not self.perf:
            return
        self.perf.send_signal(2)
        try:
            text = self.perf.communicate(timeout=30)[1]
        except subprocess.TimeoutExpired:
            self.perf.kill()
            text = self.perf.communicate()[1]
        found = [line.split(",")[0] for line in text.splitlines() if self.event in line]
        self.count = int(found[0]) if found and found[0].isdigit() else None


def family(pid):
    """Whether a process is this one, one that it has started, or one in the network that it made for itself."""
    own = os.readlink("/proc/self/ns/net")
    try:
        if own != os.readlink("/proc/1/ns/net") and os.readlink(f"/proc/{pid}/ns/net") == own:
            return True
    except OSError:
        pass
    while pid > 1:
        if pid == os.getpid():
            return True
        fields = stat_fields(pid)
        pid = int(fields[1]) if fields else 0
    return False


def own_time():
    """Processor seconds of this program's family, with those that have ended, and of the kernel's threads. What a process
    used moves to its parent when it ends; who has no parent any more is given to this process (Quiet), which leaves it be."""
    total = 0
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        fields = stat_fields(pid)
        if fields and (pid == 2 or fields[1] == "2" or family(pid)):
            total += sum(map(int, fields[11:15]))
    return total / TICKS


def machine_time():
    """Seconds of all processors, those spent in programs and the kernel, and those that the host has given to others."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return sum(ticks) / TICKS, sum(ticks[:3]) / TICKS, ticks[7] / TICKS


class Quiet:
    """Whether anything else ran, from its making until report(): shares of the machine's processor time."""

    OTHERS, STEAL, LOAD = 0.05, 0.02, 0.5

    def __init__(self):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.load = os.getloadavg()[0] / os.cpu_count()
        self.begun = [*machine_time(), own_time()]

    def report(self):
        spent, busy, steal, own = (now - then for now, then in zip([*machine_time(), own_time()], self.begun))
        spent = max(spent, 0.01)
        found = {"load": round(self.load, 2), "others": round(max(busy - own, 0) / spent, 3), "steal": round(steal / spent, 3)}
        found["quiet"] = found["load"] < self.LOAD and found["others"] < self.OTHERS and found["steal"] < self.STEAL
        return found


def describe_noise(noise):
    """A sentence about a machine that was not quiet; "" for one that was."""
    if noise["quiet"]:
        return ""
    return (f"The machine was not quiet: when the run began its load was {noise['load']:.1f} for each processor; during it "
            f"other programs took {100 * noise['others']:.0f} % of the processors and the host {100 * noise['steal']:.0f} %.")


def machine(folder=None):
    """The machine in a line."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        models = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    with open("/proc/meminfo", encoding="ascii") as file:
        gib = round(int(file.readline().split()[1]) / (1 << 20))
    where = f", {file_system(folder)[0]} on a disk" if folder else ""
    return f"{models[0] if models else os.uname().machine}, {os.cpu_count()} processors, {gib} GiB, Linux " \
           f"{os.uname().release.split('-')[0]}{where}"
