#!/usr/bin/env python3
"""JivaVolumes in a whole system of three nodes: served over iSCSI, resized while in use, mended, deleted.

jiva.py ORLOP
"""
import json
import os
import signal
import sys
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from initiator import Initiator  # noqa: E402
from jiva import ENABLED, GIBI, LOCK, PATIENCE, Jiva, kill, resize, volume, wake  # noqa: E402
from namespaces import own_network  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402

orlop = sys.argv[1]
tap = Tap()
CAPACITY_CHANGED = (6, 0x2a, 0x09)


def qemu_io(url, *commands):
    return run("qemu-io", "-f", "raw", *(w for c in commands for w in ("-c", c)), url)


def check_seed(s):
    """The design's own manifest, as it stands there."""
    tap.ran(s.kubectl("apply", "-f", "-", stdin="""
apiVersion: openebs.io/v1alpha1
kind: JivaVolume
metadata:
  name: my-jiva
  annotations:
    resize.jiva.openebs.io/enabled: "true"
spec:
  capacity: 6
"""), "the design's volume", stderr="6 is taken for 6Gi")
    tap.ok(s.ready("my-jiva"), "is ready, with three replicas", s.volume("my-jiva"))
    v = s.volume("my-jiva")
    portal = v["iscsi"]["targetPortal"]
    tap.equal([v[part] for part in ("service", "targetDeployment", "replicaDeployment")],
              [{"name": f"my-jiva-{end}", "namespace": "default"} for end in ("svc", "ctrl", "rep")],
              "says where its parts are")
    tap.equal((v["spec"]["capacity"], v["status"]["capacity"], v["status"]["replicaCount"]),
              ("6Gi", "6Gi", 3), "how large it is and how many replicas are there")
    pods = s.pods("jiva-replica", "my-jiva")
    tap.equal(sorted(p["spec"]["nodeName"] for p in pods), ["node-1", "node-2", "node-3"],
              "each replica is on a node of its own")
    tap.equal(sorted(r["address"] for r in v["status"]["replicaStatus"]),
              sorted(p["status"]["podIP"] for p in pods), "the replicas' addresses are their pods'")
    tap.ran(run("iscsi-ls", "-s", "iscsi://{}%{}@{}".format(*s.login("my-jiva")[:2], portal)), "iscsi-ls finds it",
            stdout=v["iscsi"]["iqn"])
    tap.ran(qemu_io(s.url("my-jiva"), "write -P 0x5a 0 1M", "write -P 0x77 6143M 1M", "flush"),
            "qemu-io writes to it")


def check_path(s):
    """Nothing stands between an initiator and the target: it listens at its Service's address itself."""
    address, port = s.portal("my-jiva").rsplit(":", 1)
    listens = run("ss", "-Hltnp", f"src {address} and sport = :{port}").stdout
    tap.ok(f"pid={s.target('my-jiva')}," in listens and listens.count("pid=") == 1,
           "the target itself listens at the volume's portal, without a forwarder", listens)


def check_rights(s):
    """The sidecar's account may do what it does, and nothing else."""
    def may(verb, what, ns="default"):
        who = "system:serviceaccount:default:orlop-volume-my-jiva"
        return s.kubectl("auth", "can-i", verb, what, "-n", ns, "--as", who).stdout.strip()
    tap.equal([may("patch", "jivavolumes/my-jiva", ), may("get", "jivavolumes.openebs.io/my-jiva"),
               may("get", "jivavolumes.openebs.io/other"), may("get", "secrets"), may("list", "pods"),
               may("delete", "jivavolumes.openebs.io/my-jiva"), may("get", "jivavolumeresizes.openebs.io")],
              ["no", "yes", "no", "no", "no", "no", "no"], "orlop-sidecar has rights on its volume alone")


def check_resize(s):
    v = s.volume("my-jiva")
    host, port = v["iscsi"]["targetPortal"].rsplit(":", 1)
    i = Initiator(int(port), v["iscsi"]["iqn"], host=host)
    tap.equal(i.login(chap=s.login("my-jiva")[:2]), 0, "an initiator logs in")
    i.ready()
    tap.equal(i.capacity(), 6 * GIBI, "and sees 6 GiB")
    tap.ok(wait_for(lambda: s.volume("my-jiva")["status"].get("initiators")), "the status says who is logged in")
    tap.ran(s.apply(resize("resize-6-to-12", "my-jiva", 12)), "the design's resize")
    status = s.phase("resize-6-to-12", "COMPLETED", "FAILED")
    tap.equal((status.get("phase"), status.get("fromCapacity")), ("COMPLETED", "6Gi"), "is COMPLETED")
    tap.equal([r["capacity"] for r in status.get("replicas", [])], ["12Gi"] * 3, "it names what each replica has")
    v = s.volume("my-jiva")
    tap.equal((v["spec"]["capacity"], v["status"]["capacity"]), ("12Gi", "12Gi"), "the volume says 12Gi")
    tap.ok(LOCK not in v["metadata"]["annotations"], "the lock is gone", v["metadata"])
    tap.equal(i.ready(), [CAPACITY_CHANGED], "the initiator is told, where it is")
    tap.equal(i.capacity(), 12 * GIBI, "and sees 12 GiB without having logged out")
    i.close()
    tap.ran(qemu_io(s.url("my-jiva"), "read -P 0x5a 0 1M", "read -P 0x77 6143M 1M", "read -P 0 6G 1M",
                    "write -P 0x33 12287M 1M"), "old data is there, and new can be written")
    tap.ran(s.kubectl("delete", "jvr", "resize-6-to-12", "--timeout=60s"), "the resize goes")


def refused(s, what, patch, *texts):
    result = s.kubectl("patch", "jivavolume.v1alpha1.openebs.io", "my-jiva", "--type=merge", "-p", json.dumps(patch))
    tap.ok(result.returncode == 1 and all(t in result.stderr for t in texts), what, result.stderr)


def check_refusals(s):
    refused(s, "a direct edit is refused, with the resize to create", {"spec": {"capacity": "20Gi"}},
            "JivaVolumeResize", '"jiva.openebs.io/name":"my-jiva"', '"capacity":"20Gi"')
    refused(s, "shrinking too", {"spec": {"capacity": "1Gi"}}, "spec.capacity")
    for size, text in (("0", "spec.capacity"), ("many", "spec.capacity"), ("900Ei", "spec.capacity"),
                       (-5, "spec.capacity")):
        result = s.apply(resize("bad", "my-jiva", size))
        tap.ran(result, f"a resize to {size} is refused", 1, stderr=text)
    table = [
        ("shrink", "my-jiva", "1Gi", "CannotShrink", "does not shrink"),
        ("nowhere", "no-such-volume", "1Gi", "VolumeNotFound", "no JivaVolume \"no-such-volume\""),
    ]
    s.apply(*(resize(name, about, size) for name, about, size, _, _ in table))
    for name, _, _, reason, text in table:
        status = s.phase(name, "FAILED", "COMPLETED")
        tap.ok(status.get("phase") == "FAILED" and status.get("reason") == reason and text in status["message"],
               f"{name}: FAILED, {reason}", status)
    s.kubectl("annotate", "jv", "my-jiva", f"{ENABLED}=false", "--overwrite")
    s.apply(resize("not-enabled", "my-jiva", "20Gi"))
    status = s.phase("not-enabled", "FAILED", "COMPLETED")
    tap.ok(status.get("reason") == "NotEnabled" and "kubectl annotate jivavolume my-jiva" in status["message"],
           "not enabled: FAILED, and how to allow it", status)
    cli = s.orlop_("volume", "resize", "my-jiva", "20Gi")
    tap.ran(cli, "the command says so before it makes anything", 1, stderr="kubectl annotate")
    s.kubectl("annotate", "jv", "my-jiva", f"{ENABLED}=true", "--overwrite")
    v = s.volume("my-jiva")
    tap.ok(v["spec"]["capacity"] == "12Gi" and LOCK not in v["metadata"]["annotations"],
           "after all of them the volume is as it was, and its lock free", v)


def check_turns(s):
    """Several at once: one after the other, and one holder at a time."""
    version = s.ask("GET", s.path("jivavolumes")).json["metadata"]["resourceVersion"]
    tap.ran(s.apply(resize("a-13", "my-jiva", "13Gi"), resize("b-14", "my-jiva", "14Gi"),
                    resize("c-13", "my-jiva", "13Gi")), "three resizes at once")
    phases = {n: s.phase(n, "COMPLETED", "FAILED") for n in ("a-13", "b-14", "c-13")}
    tap.equal((phases["a-13"].get("phase"), phases["b-14"].get("phase")), ("COMPLETED", "COMPLETED"),
              "the first two are COMPLETED")
    tap.ok(phases["c-13"].get("phase") == "FAILED" and "14Gi" in phases["c-13"]["message"],
           "the third comes too late: it would shrink", phases["c-13"])
    holders = []
    for event in s.client.events(f"{s.path('jivavolumes')}?watch=1&resourceVersion={version}&timeoutSeconds=2"):
        holder = event["object"]["metadata"].get("annotations", {}).get(LOCK, "")
        if not holders or holders[-1] != holder:
            holders.append(holder)
    s.client.close()
    tap.equal([h for h in holders if h], ["a-13", "b-14", "c-13"] if "c-13" in holders else ["a-13", "b-14"],
              "they had the lock in their order")
    tap.ok(all(not (a and b) for a, b in zip(holders, holders[1:])), "and none took it from another", holders)
    tap.equal(s.volume("my-jiva")["spec"]["capacity"], "14Gi", "the volume has 14Gi")


def check_quota(s):
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "storage", "namespace": "default"},
             "spec": {"hard": {"requests.storage": "15Gi"}}}
    tap.ran(s.apply(quota), "a quota of 15Gi")
    s.apply(resize("over", "my-jiva", "16Gi"))
    tap.ok(wait_for(lambda: s.resize("over").get("reason") == "QuotaExceeded", PATIENCE),
           "a resize beyond it waits", s.resize("over"))
    status = s.resize("over")
    tap.ok(status["phase"] == "INIT" and 'ResourceQuota "storage" allows requests.storage of 15Gi, 14Gi are used'
           in status["message"], "in INIT, with the figures", status)
    s.apply({**quota, "spec": {"hard": {"requests.storage": "16Gi"}}})
    tap.equal(s.phase("over", "COMPLETED", "FAILED").get("phase"), "COMPLETED", "more quota, and it goes on")
    s.apply(resize("gone", "my-jiva", "17Gi"))
    wait_for(lambda: s.resize("gone").get("reason") == "QuotaExceeded", PATIENCE)
    tap.ran(s.kubectl("delete", "jvr", "gone", "--timeout=60s"), "one that waits can be deleted")
    tap.ok(LOCK not in s.volume("my-jiva")["metadata"]["annotations"], "and leaves the lock free")
    tap.ran(s.kubectl("delete", "quota", "storage"), "no quota")


def rebuilding(s, name):
    """The replica that is being rebuilt, as the status has it."""
    replicas = s.volume(name).get("status", {}).get("replicaStatus", [])
    return next((r for r in replicas if r["state"] == "Rebuilding" and r.get("rebuildPercent", 100) < 100), None)


def begin_rebuild(s, name, byte, which):
    """A replica is killed, misses writes, and comes back to a rebuild that takes its time."""
    agents = s.hold_down(name, skip=which)
    try:
        wait_for(lambda: "Offline" in s.state(name)[2], PATIENCE)
        tap.ran(qemu_io(s.url(name), f"write -P {byte} 0 32M", "flush"), "a killed replica misses writes")
        tap.ran(s.rate(name, "64Ki"), "rebuilds are slowed down")
    finally:
        wake(*agents)
    tap.ok(wait_for(lambda: rebuilding(s, name), PATIENCE), "it is back, and is being rebuilt", s.state(name))


def check_rebuild(s):
    """A resize while a replica is rebuilt; a volume that is deleted while one is, by a target that does not answer."""
    tap.ran(s.orlop_("volume", "create", "mends", "48Mi", "--wait", "--reclaim", "Delete"), "a volume to mend")
    begin_rebuild(s, "mends", 0x61, 0)
    s.apply(resize("rebuilt", "mends", "64Mi"))
    tap.ok(wait_for(lambda: s.resize("rebuilt").get("reason") == "WaitsForReplicas", PATIENCE),
           "a resize waits for the rebuild", s.resize("rebuilt"))
    tap.ok(rebuilding(s, "mends") and s.resize("rebuilt")["phase"] == "INIT" and
           s.volume("mends")["status"]["capacity"] == "48Mi", "in INIT: it goes on, and nothing has grown",
           (s.resize("rebuilt"), s.state("mends")))
    show = s.orlop_("volume", "show", "mends")
    tap.ok("WO Rebuilding  [" in show.stdout and "s left" in show.stdout, "the command has a bar for it", show.stdout)
    tap.ran(s.rate("mends", "0"), "it may take all it can")
    tap.equal(s.phase("rebuilt", "COMPLETED", "FAILED").get("phase"), "COMPLETED", "and then the resize goes on")
    tap.ok(s.ready("mends"), "all are healthy", s.state("mends"))
    tap.ran(qemu_io(s.url("mends"), "read -P 0x61 0 32M", "read -P 0 48M 16M"), "with all that was written")

    begin_rebuild(s, "mends", 0x62, 1)
    s.apply(resize("too-late", "mends", "80Mi"))
    wait_for(lambda: s.resize("too-late").get("reason") == "WaitsForReplicas", PATIENCE)
    kill(s.target("mends"), signal.SIGSTOP)
    tap.ran(s.orlop_("volume", "delete", "mends", "--wait", "--timeout", str(PATIENCE)),
            "a volume is deleted while it is rebuilt, and its target does not answer")
    status = s.phase("too-late", "FAILED", "COMPLETED")
    tap.ok(status.get("phase") == "FAILED" and status["reason"] in ("VolumeDeleted", "VolumeNotFound"),
           "the resize that waited for it is FAILED", status)
    tap.equal(s.folders("mends"), set(), "its data is gone")
    tap.ok(wait_for(lambda: not s.pods(of="mends"), PATIENCE), "and its pods", s.pods(of="mends"))


def check_load(s, scratch):
    """Replicas and target are killed under a load whose data is checked."""
    tap.ran(s.orlop_("volume", "create", "busy", "64Mi", "--wait", "--reclaim", "Delete"), "a volume by command")
    load = s.bench("busy", "--verify", "--reconnect", "-q", "8", "-r", "50", "-t", "600", "--flush-every", "50",
                   "--span", "16Mi", "--save-map", scratch.file("map"), wait=False)
    pods = {p["metadata"]["name"] for p in s.pods("jiva-replica", "busy")}
    agents = s.hold_down("busy", skip=2)
    try:
        tap.ok(wait_for(lambda: "Offline" in s.state("busy")[2], PATIENCE), "a replica is killed", s.state("busy"))
    finally:
        wake(*agents)
    tap.ok(s.ready("busy"), "and comes back", s.state("busy"))
    tap.equal({p["metadata"]["name"] for p in s.pods("jiva-replica", "busy")}, pods, "in the same pod")
    agents = s.hold_down("busy", 2)
    try:
        tap.ok(wait_for(lambda: s.condition("busy", "Serving").get("reason") == "QuorumLost", PATIENCE),
               "two are killed: I/O waits, and the volume says why", s.volume("busy").get("status"))
        tap.ok("I/O waits: 1 of 3" in s.condition("busy", "Serving")["message"], "with the figures",
               s.condition("busy", "Serving"))
        show = s.orlop_("volume", "show", "busy")
        tap.ok("Offline" in show.stdout and "I/O waits" in show.stdout, "the command shows it", show.stdout)
        s.apply(resize("two-killed", "busy", "96Mi"))
        tap.ok(wait_for(lambda: s.resize("two-killed").get("reason") == "WaitsForReplicas", PATIENCE),
               "a resize waits for them", s.resize("two-killed"))
        wake(agents.pop())
        tap.ok(wait_for(lambda: s.condition("busy", "Serving").get("status") == "True", PATIENCE),
               "one is back: I/O goes on", s.condition("busy", "Serving"))
        tap.equal((s.resize("two-killed")["phase"], s.volume("busy")["status"]["capacity"]), ("INIT", "64Mi"),
                  "the resize is in INIT, and nothing has grown")
    finally:
        wake(*agents)
    tap.equal(s.phase("two-killed", "COMPLETED", "FAILED").get("phase"), "COMPLETED", "all are back: it goes on")
    tap.ok(s.ready("busy"), "all are healthy", s.state("busy"))
    target = s.target("busy")
    kill(target)
    tap.ok(wait_for(lambda: s.target("busy") not in (0, target), PATIENCE) and s.ready("busy"),
           "a target that is killed comes back", s.state("busy"))
    for pid in s.pids("orlop-sidecar", "busy"):
        kill(pid)
    tap.ran(s.orlop_("volume", "resize", "busy", "128Mi"), "a resize under load, with a sidecar that was killed",
            stdout="resized")
    load.send_signal(signal.SIGINT)
    text, errors = load.communicate(timeout=120)
    tap.ok(load.returncode == 0 and '"verify"' in text, "no I/O failed, nothing was lost", text + errors)
    result = json.loads(text) if text.startswith("{") else {}
    print(f"# {result.get('verify')}")
    check = s.bench("busy", "--span", "16Mi", "--load-map", scratch.file("map"), "--check")
    tap.ok(check.returncode == 0, "everything acknowledged is there", check.stdout + check.stderr)
    tap.equal(len(s.folders("busy")), 3, "three folders have its data")
    tap.ran(s.orlop_("volume", "delete", "busy", "--wait", "--timeout", str(PATIENCE)), "it is deleted")
    tap.equal(s.folders("busy"), set(), "with its data, as it was said")


def check_mending(s):
    before = s.portal("my-jiva")
    repaired = [e["message"] for e in s.get("events", "-n", "default") if e["reason"] == "Repaired"]
    tap.equal(repaired, [], "children that nobody touched are found as they were applied")
    for kind, name in (("service", "my-jiva-svc"), ("deployment", "my-jiva-rep"), ("deployment", "my-jiva-ctrl"),
                       ("role", "my-jiva-ctrl"), ("rolebinding", "my-jiva-ctrl"),
                       ("serviceaccount", "orlop-volume-my-jiva")):
        s.kubectl("delete", kind, name, "--timeout=60s")
        tap.ok(wait_for(lambda k=kind, n=name: s.get(k, n, "-n", "default"), PATIENCE),
               f"a {kind} that is deleted comes back")
    s.kubectl("patch", "deployment", "my-jiva-rep", "-p", '{"spec":{"replicas":1}}')
    s.kubectl("patch", "service", "my-jiva-svc", "-p", '{"spec":{"ports":[{"port":3260,"targetPort":99}]}}')
    tap.ok(wait_for(lambda: s.get("deployment", "my-jiva-rep")[0]["spec"]["replicas"] == 3 and
                    s.get("service", "my-jiva-svc")[0]["spec"]["ports"][0]["targetPort"] == 3260, PATIENCE),
           "what is changed is put right")
    role = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles/my-jiva-ctrl"
    rules = s.ask("GET", role).json["rules"]
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
    s.kubectl("patch", "role", "my-jiva-ctrl", "--type=merge", "-p", json.dumps({"rules": [*rules, everything]}))
    tap.ok(wait_for(lambda: s.ask("GET", role).json["rules"] == rules, PATIENCE),
           "a right that somebody adds to the sidecar's Role is taken away", s.ask("GET", role).json)
    s.kubectl("label", "service", "my-jiva-svc", "theirs=yes")
    s.kubectl("patch", "service", "my-jiva-svc", "-p", '{"spec":{"ports":[{"port":3260,"targetPort":98}]}}')
    tap.ok(wait_for(lambda: s.get("service", "my-jiva-svc")[0]["spec"]["ports"][0]["targetPort"] == 3260, PATIENCE)
           and s.get("service", "my-jiva-svc")[0]["metadata"]["labels"].get("theirs") == "yes",
           "a label that somebody adds to a Service stays when the Service is put right", s.get("service", "my-jiva-svc"))
    for kind, end in (("service", "svc"), ("deployment", "rep")):
        s.kubectl("patch", kind, f"my-jiva-{end}", "--type=merge", "-p", json.dumps(
            {"metadata": {"ownerReferences": None, "labels": {"openebs.io/cas-type": None}}}))
        tap.ok(wait_for(lambda k=kind, n=f"my-jiva-{end}": [
            o for o in s.get(k, n) if o["metadata"].get("ownerReferences")
            and o["metadata"]["labels"].get("openebs.io/cas-type") == "jiva"], PATIENCE),
            f"a {kind} without owner and label has them again", s.get(kind, f"my-jiva-{end}"))
    tap.ok(s.ready("my-jiva"), "the volume is ready again", s.volume("my-jiva"))
    tap.equal(s.portal("my-jiva"), before, "at the same address")
    tap.ran(qemu_io(s.url("my-jiva"), "read -P 0x5a 0 1M", "read -P 0x77 6143M 1M"), "with its data")


def check_snapshots(s):
    """Taken, listed, gone back to, deleted; and a resize that waits for one."""
    def snapshot(*words):
        return s.orlop_("volume", "snapshot", *words)
    url = s.url("my-jiva")
    tap.ran(snapshot("create", "my-jiva", "first"), "a snapshot", stdout="first of my-jiva created")
    tap.ran(qemu_io(url, "write -P 0x99 0 1M", "flush"), "other data")
    tap.ran(snapshot("create", "my-jiva", "second"), "another")
    tap.ran(snapshot("create", "my-jiva", "second"), "not of the same name", 1, stderr="second")
    tap.ok(wait_for(lambda: [x["name"] for x in s.volume("my-jiva")["status"].get("snapshots", [])] ==
                    ["first", "second"], PATIENCE), "the status has both, the oldest first",
           s.volume("my-jiva")["status"])
    listed = snapshot("list", "my-jiva")
    tap.ok("first" in listed.stdout and "second" in listed.stdout, "the command shows them", listed.stdout)
    tap.ran(snapshot("revert", "my-jiva", "first"), "not back past a later one", 1, stderr="second")
    tap.ran(snapshot("delete", "my-jiva", "second"), "the later one is deleted")
    tap.ran(qemu_io(url, "read -P 0x99 0 1M"), "which changes nothing")
    tap.ran(snapshot("revert", "my-jiva", "first"), "back to the first")
    tap.ran(qemu_io(url, "read -P 0x5a 0 1M", "read -P 0x77 6143M 1M"), "the data is what it was then")
    tap.ran(snapshot("delete", "my-jiva", "first"), "it is deleted")
    tap.ran(qemu_io(url, "read -P 0x5a 0 1M", "read -P 0x77 6143M 1M"), "and the data stays")
    tap.ran(snapshot("delete", "my-jiva", "nobody"), "one that is not there", 1, stderr="nobody")

    tap.ok(wait_for(lambda: len(s.pids("orlop-sidecar", "my-jiva")) == 1, PATIENCE), "one sidecar runs")
    sidecar = s.pids("orlop-sidecar", "my-jiva")[0]
    kill(sidecar, signal.SIGSTOP)  # the snapshot is ordered and not yet begun
    last = s.volume("my-jiva")["spec"]["snapshotOrder"]["generation"]
    order = {"generation": last, "command": "create", "name": "third"}
    refused(s, "an order with the generation of the one before is refused", {"spec": {"snapshotOrder": order}},
            "spec.snapshotOrder.generation", f"write {last + 1}")
    order["generation"] += 1
    tap.ran(s.kubectl("patch", "jv", "my-jiva", "--type=merge", "-p", json.dumps({"spec": {"snapshotOrder": order}})),
            "a snapshot is ordered with the next")
    s.apply(resize("meanwhile", "my-jiva", "19Gi"))
    tap.ok(wait_for(lambda: s.resize("meanwhile").get("reason") == "SnapshotRunning", PATIENCE),
           "a resize waits for a snapshot", s.resize("meanwhile"))
    kill(sidecar, signal.SIGCONT)
    tap.equal(s.phase("meanwhile", "COMPLETED", "FAILED").get("phase"), "COMPLETED", "and goes on after it")
    tap.equal([x["name"] for x in s.volume("my-jiva")["status"]["snapshots"]], ["third"], "which there is")


def metrics(s, name):
    """What Prometheus gets of the volume's target; "" when it gets nothing."""
    try:
        with urllib.request.urlopen(f"http://{s.portal(name).rsplit(':', 1)[0]}:9500/metrics", timeout=60) as reply:
            return reply.read().decode()
    except OSError:
        return ""


def check_policy(s):
    """What a published policy says is done, or it is said that it is not."""
    condition = s.condition("published", "PolicyHonoured")
    tap.ok(condition.get("reason") == "ReplicaSCIgnored" and "openebs-hostpath" in condition["message"],
           "a storage class for replicas is said to have no effect", condition)
    flags = []
    for pid in s.replicas("published").values():
        for fd in os.listdir(f"/proc/{pid}/fd"):
            if os.readlink(f"/proc/{pid}/fd/{fd}").endswith("/data"):
                with open(f"/proc/{pid}/fdinfo/{fd}", encoding="ascii") as f:
                    flags += [int(line.split()[1], 8) for line in f if line.startswith("flags:")]
    log = run("grep", "-rl", "no direct I/O here", s.folder).stdout
    tap.ok(flags and (all(f & os.O_DIRECT for f in flags) or log), "without enableBufio, data goes past the page cache "
           "or the replica says that it cannot", (flags, log))
    tap.equal(metrics(s, "published"), "", "with disableMonitor there are no metrics")
    tap.ok("openebs_size_of_volume" in metrics(s, "my-jiva"), "else there are", metrics(s, "my-jiva")[:2000])


def check_factor(s):
    """The published form; fewer replicas and more, one at a time."""
    published = {"apiVersion": "openebs.io/v1", "kind": "JivaVolume",
                 "metadata": {"name": "published", "namespace": "default"},
                 "spec": {"capacity": "32Mi", "pv": "published",
                          "policy": {"replicaSC": "openebs-hostpath", "enableBufio": False,
                                     "target": {"replicationFactor": 1, "disableMonitor": True}}}}
    tap.ran(s.apply(published), "a volume in the published form", stderr="replicaSC: has no effect")
    tap.ok(s.ready("published", 1), "is ready, with one replica", s.volume("published"))
    check_policy(s)
    got = json.loads(s.kubectl("get", "jivavolumes.v1.openebs.io", "published", "-o", "json").stdout)
    tap.equal(f"{got['spec']['iscsiSpec']['targetIP']}:{got['spec']['iscsiSpec']['targetPort']}",
              s.portal("published"), "and says in that form where it is")
    said = s.kubectl("get", "jv", "published", "-o", "jsonpath={.apiVersion} {.iscsi.targetPortal} {.service.name} "
                     "{.targetDeployment.name} {.replicaDeployment.name}").stdout
    tap.equal(said.split(), ["openebs.io/v1", s.portal("published"), "published-svc", "published-ctrl", "published-rep"],
              "and in ours, in the version that kubectl prefers")
    s.kubectl("patch", "jv", "published", "--type=merge", "-p",
              json.dumps({"spec": {"iscsiSpec": {"targetIP": "10.9.9.9"}}}))
    tap.ok(wait_for(lambda: s.volume("published")["spec"]["iscsiSpec"]["targetIP"] == s.portal("published").split(":")[0],
                    PATIENCE), "an address that is not so does not stay", s.volume("published"))
    tap.ran(qemu_io(s.url("published"), "write -P 0x44 0 8M", "flush"), "it is written to")
    for factor in (3, 2):
        s.kubectl("patch", "jv", "published", "--type=merge", "-p",
                  json.dumps({"spec": {"desiredReplicationFactor": factor}}))
        tap.ok(s.ready("published", factor) and wait_for(
            lambda f=factor: len(s.pods("jiva-replica", "published")) == f, PATIENCE),
            f"has {factor} replicas when that is asked for", s.volume("published"))
    s.kubectl("patch", "jv", "published", "--type=merge", "-p", '{"spec": {"lun": 3}}')
    tap.ok(wait_for(lambda: qemu_io(s.url("published"), "read -P 0x44 0 8M").returncode == 0, PATIENCE),
           "its data is there under another LUN", s.url("published"))
    tap.ok(wait_for(lambda: len(s.folders("published")) == 2, PATIENCE), "the folder of who left is erased",
           s.folders("published"))
    tap.ran(qemu_io(s.url("published"), "read -P 0x44 0 8M"), "the data is there")
    got = s.volume("published")
    tap.ran(s.kubectl("delete", "jv", "published", "--timeout=120s"), "it is deleted")
    tap.equal(len(s.folders("published")), 2, "and its data stays, as nobody said otherwise")
    kept = {k: got["metadata"]["annotations"][k] for k in ("jiva.openebs.io/volume-id", "jiva.openebs.io/nodes")}
    s.apply(volume("again", "32Mi", 2, **kept, **{"jiva.openebs.io/reclaim-policy": "Delete"}))
    tap.ok(wait_for(lambda: s.condition("again", "Serving"), PATIENCE), "a volume with its identity", s.volume("again"))
    tap.equal(s.volume("again")["status"]["phase"], "Pending", "of another name finds no folders, and waits")
    s.kubectl("delete", "jv", "again", "--timeout=120s")
    s.apply(volume("published", "32Mi", 2, **kept, **{"jiva.openebs.io/reclaim-policy": "Delete"}))
    tap.ok(s.ready("published", 2), "of the same name it has its data", s.volume("published"))
    tap.ran(qemu_io(s.url("published"), "read -P 0x44 0 8M"), "which is what it was")
    tap.ran(s.kubectl("delete", "jv", "published", "--timeout=120s"), "it is deleted again")
    tap.equal(s.folders("published"), set(), "and its data with it")


def check_commands(s):
    listed = s.orlop_("volume", "list", "-o", "wide")
    tap.ran(listed, "volume list", stdout=s.portal("my-jiva"))
    show = s.orlop_("volume", "show", "my-jiva")
    tap.ok(show.returncode == 0 and show.stdout.count("RW Healthy") == 3 and "└── 127." in show.stdout,
           "volume show draws it", show.stdout)
    tap.equal(json.loads(s.orlop_("volume", "show", "my-jiva", "-o", "json").stdout)["metadata"]["name"], "my-jiva",
              "or as JSON")
    tap.ran(s.orlop_("volume", "show", "nobody"), "one that is not there", 1, stderr="not found")
    tap.ran(s.orlop_("volume", "create", "x", "lots"), "a size that is none", 2)
    tap.ran(s.orlop_("volume", "resize", "my-jiva", "1Gi"), "a resize that fails", 1, stderr="does not shrink")
    tap.ok(wait_for(lambda: not [r for r in s.ask("GET", s.path("jivavolumeresizes")).json["items"]
                                 if r["metadata"]["name"].startswith("my-jiva-")], PATIENCE),
           "leaves no resize behind")
    tap.ran(s.orlop_("volume", "delete", "my-jiva", "--erase", "--wait"), "deleted with its data")
    tap.equal(s.folders("my-jiva"), set(), "nothing of it is left on the nodes")
    tap.ok(wait_for(lambda: not s.pods(of="my-jiva") and not s.get("service", "my-jiva-svc"), PATIENCE),
           "nor in the API", s.pods(of="my-jiva"))


if not own_network():
    tap.skip("Jiva volumes", "no network namespaces here")
    tap.done()
with Scratch() as scratch, Jiva(orlop, scratch.file("data"), "--nodes", "3", "--lost-after", "10m") as system:
    check_seed(system)
    check_path(system)
    check_rights(system)
    check_resize(system)
    check_refusals(system)
    check_turns(system)
    check_quota(system)
    check_rebuild(system)
    check_load(system, scratch)
    check_mending(system)
    check_snapshots(system)
    check_factor(system)
    check_commands(system)
    tap.equal(system.complaints(), "", "no sanitizer complained")
    if tap.failed:
        print("\n".join("# " + line for line in run("tail", "-n", "40", f"{system.folder}/logs/controller.log")
                        .stdout.splitlines()))
tap.done()
