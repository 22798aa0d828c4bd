"""JivaVolumes of a whole system: what tests ask of them, and what they do to their processes."""
import base64
import http.client
import json
import os
import signal
import subprocess

from server import Client, Server
from system import System
from tap import run, wait_for

VERSION = "openebs.io/v1alpha1"
ENABLED, LOCK = "resize.jiva.openebs.io/enabled", "resize.jiva.openebs.io/name"
GIBI = 1 << 30
PATIENCE = 180  # a sanitized system with many processes, on a busy machine


def volume(name, capacity, factor=None, **annotations):
    spec = {"capacity": capacity, **({"desiredReplicationFactor": factor} if factor else {})}
    return {"apiVersion": VERSION, "kind": "JivaVolume", "spec": spec,
            "metadata": {"name": name, "namespace": "default",
                         "annotations": {ENABLED: "true", **annotations}}}


def resize(name, about, capacity):
    return {"apiVersion": VERSION, "kind": "JivaVolumeResize", "spec": {"capacity": capacity},
            "metadata": {"name": name, "namespace": "default", "labels": {"jiva.openebs.io/name": about}}}


class Jiva(System):
    """`orlop up`, and volumes in the namespace default."""

    def start(self):
        super().start()
        self.client = Client(Server(None, f"{self.folder}/apiserver").reach(self.status()["url"]))
        return self

    def path(self, kind, name=""):
        return f"/apis/{VERSION}/namespaces/default/{kind}" + (f"/{name}" if name else "")

    def ask(self, method, path, body=None, **options):
        try:
            return self.client.ask(method, path, body, **options)
        except (OSError, http.client.HTTPException):  # a connection that was idle for long
            return self.client.ask(method, path, body, **options)

    def apply(self, *objects):
        return self.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List",
                                                                   "items": objects}))

    def volume(self, name):
        """The object, or {}."""
        reply = self.ask("GET", self.path("jivavolumes", name))
        return reply.json if reply.status == 200 else {}

    def resize(self, name):
        """Its status, or {}."""
        reply = self.ask("GET", self.path("jivavolumeresizes", name))
        return reply.json.get("status", {}) if reply.status == 200 else {}

    def pods(self, component=None, of=None):
        items = self.ask("GET", "/api/v1/namespaces/default/pods").json["items"]
        return [p for p in items
                if (not component or p["metadata"].get("labels", {}).get("openebs.io/component") == component)
                and (not of or p["metadata"].get("labels", {}).get("openebs.io/persistent-volume") == of)]

    def state(self, name):
        status = self.volume(name).get("status", {})
        return status.get("phase"), status.get("status"), [r["state"] for r in status.get("replicaStatus", [])]

    def ready(self, name, factor=3):
        wanted = ("Ready", "RW", ["Healthy"] * factor)
        return wait_for(lambda: self.state(name) == wanted, PATIENCE)

    def phase(self, name, *phases):
        """Waits until the resize has one of the phases; its status."""
        wait_for(lambda: self.resize(name).get("phase") in phases, PATIENCE)
        return self.resize(name)

    def condition(self, name, kind):
        conditions = self.volume(name).get("status", {}).get("conditions", [])
        return next((c for c in conditions if c["type"] == kind), {})

    def portal(self, name):
        return self.volume(name).get("iscsi", {}).get("targetPortal", "")

    def login(self, name):
        """User and password of the volume, then those of the target; () without any."""
        reply = self.ask("GET", f"/api/v1/namespaces/default/secrets/{name}-chap")
        data = reply.json["data"] if reply.status == 200 else {}
        return tuple(base64.b64decode(data[f"node.session.auth.{word}"]).decode() for word in (
            "username", "password", "username_in", "password_in")) if data else ()

    def url(self, name, login=True):
        """With all that is needed to log in, or with none of it."""
        volume, secrets = self.volume(name), self.login(name) if login else ()
        iscsi = volume["iscsi"]
        who, proof = ("%".join(secrets[:2]) + "@", "?target_user={}&target_password={}".format(*secrets[2:])) \
            if secrets else ("", "")
        return f"iscsi://{who}{iscsi['targetPortal']}/{iscsi['iqn']}/{volume['spec'].get('lun', 0)}{proof}"

    def orlop_(self, *words):
        return run(self.orlop, *words, "--data", self.folder, "-n", "default", timeout=PATIENCE + 60)

    def pids(self, program, *words):
        """Processes of a program, in this test's network, whose command line has these words."""
        found, ours = [], os.readlink("/proc/self/ns/net")
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink(f"/proc/{pid}/ns/net") != ours:
                    continue
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    argv = f.read().decode(errors="replace").split("\0")
            except OSError:
                continue
            if argv[0].endswith(f"/{program}") and all(w in argv for w in words):
                found.append(int(pid))
        return found

    def replicas(self, name):
        """pid by address."""
        identity = self.volume(name)["metadata"]["annotations"]["jiva.openebs.io/volume-id"]
        found = {}
        for pid in self.pids("orlop-replica", "serve", identity):
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    words = f.read().decode().split("\0")
                found[words[words.index("--source") + 1]] = pid
            except (OSError, ValueError):
                pass
        return found

    def target(self, name):
        identity = self.volume(name)["metadata"]["annotations"]["jiva.openebs.io/volume-id"]
        return next(iter(self.pids("orlop-target", identity)), 0)

    def lose(self, node):
        """Ends all that a node runs, as if its machine were gone; its agent, which is frozen: wake() it."""
        agent = self.pid(node)
        os.kill(agent, signal.SIGSTOP)
        ours = os.readlink("/proc/self/ns/net")
        addresses = {p["status"]["podIP"] for p in self.pods() if p["spec"].get("nodeName") == node}
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as env, open(f"/proc/{pid}/stat", encoding="ascii") as stat:
                    mine = bool({f"POD_IP={a}".encode() for a in addresses} & set(env.read().split(b"\0")))
                    parent = int(stat.read().rsplit(")", 1)[1].split()[1])
                if mine and os.readlink(f"/proc/{pid}/ns/net") == ours:
                    os.kill(parent, signal.SIGKILL)  # its shim, which would tell of its end
                    os.kill(int(pid), signal.SIGKILL)
            except OSError:
                pass
        return agent

    def hold_down(self, name, count=1, skip=0):
        """Kills replicas of a volume, with the agents of their nodes frozen, so that nobody starts them again:
        the agents, for wake(). One that was killed before is started after a delay only: skip it."""
        nodes = {p["status"]["podIP"]: p["spec"]["nodeName"] for p in self.pods("jiva-replica", name)}
        agents = []
        for address, pid in sorted(self.replicas(name).items())[skip:skip + count]:
            agents.append(self.pid(nodes[address]))
            os.kill(agents[-1], signal.SIGSTOP)
            os.kill(pid, signal.SIGKILL)
        return agents

    def rate(self, name, text):
        """Limits what rebuilds of the volume take in a second."""
        return run(self.orlop, "target", "rate", "--rebuild-rate", text, "--control",
                   f"/proc/{self.target(name)}/root/run/orlop/control/target.sock")

    def folders(self, name):
        """The nodes that have a folder of the volume's."""
        found = set()
        for node in os.listdir(f"{self.folder}/jiva"):
            found |= {node for d in os.listdir(f"{self.folder}/jiva/{node}") if f".{name}." in d}
        return found

    def bench(self, name, *words, wait=True):
        argv = [os.path.join(os.path.dirname(self.orlop), "orlop-bench"), "bench", "iscsi", self.url(name),
                "-o", "json", *words]
        # libiscsi forgets some memory when it connects anew: that is not what is tested here.
        env = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
        if wait:
            return run(*argv, timeout=600, env=env)
        return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)

    def complaints(self):
        """What sanitizers said, in any log of the system."""
        return run("grep", "-rlE", "Sanitizer|runtime error", self.folder, "--include=*.log").stdout


def kill(pid, signum=signal.SIGKILL):
    os.kill(pid, signum)


def wake(*pids):
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
