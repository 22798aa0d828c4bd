#!/usr/bin/env python3
"""orlop-controller beside a real server: flags, health, metrics, leaders, the life of nodes.

controller.py APISERVER TOP ORLOP CONTROLLER
"""
import datetime
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from controller import Controller  # noqa: E402
from life import CORE, tap, until  # noqa: E402
from server import Server  # noqa: E402
from tap import Scratch, run, wait_for  # noqa: E402

program, controller_program = sys.argv[1], sys.argv[4]
LEASES = "/apis/coordination.k8s.io/v1/namespaces"
DEVICES = "/apis/openebs.io/v1alpha1/namespaces/default/blockdevices"
GRACE = 3
METRICS = """workqueue_depth workqueue_adds_total workqueue_queue_duration_seconds_count
workqueue_work_duration_seconds_count workqueue_unfinished_work_seconds workqueue_retries_total
workqueue_longest_running_processor_seconds controller_runtime_reconcile_total
controller_runtime_reconcile_errors_total controller_runtime_reconcile_time_seconds_count
controller_runtime_active_workers controller_runtime_max_concurrent_reconciles
rest_client_requests_total process_resident_memory_bytes leader_election_master_status""".split()


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def make_node(server, name):
    server.create(f"{CORE}/nodes", {"metadata": {"name": name}})
    server.create(f"{LEASES}/kube-node-lease/leases",
                  {"metadata": {"name": name},
                   "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now()}})
    say_ready(server, f"{CORE}/nodes/{name}")


def make_pod(server, name, node):
    server.create(f"{CORE}/namespaces/default/pods",
                  {"metadata": {"name": name},
                   "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}})
    say_ready(server, f"{CORE}/namespaces/default/pods/{name}")


def make_device(server, node):
    server.create(DEVICES, {
        "metadata": {"name": f"of-{node}"},
        "spec": {"nodeAttributes": {"nodeName": node}, "path": "/dev/x",
                 "capacity": {"storage": 1 << 30}, "details": {"deviceType": "disk"}},
        "status": {"claimState": "Unclaimed", "state": "Active"}})


def state_of(server, node):
    return server.get(f"{DEVICES}/of-{node}")[1]["status"]["state"]


def say_ready(server, path):
    condition = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "",
                 "lastTransitionTime": now()[:19] + "Z"}
    server.ask("PATCH", f"{path}/status", {"status": {"conditions": [condition]}},
               content_type="application/merge-patch+json")


def renew(server, name):
    server.ask("PATCH", f"{LEASES}/kube-node-lease/leases/{name}", {"spec": {"renewTime": now()}},
               content_type="application/merge-patch+json")


def ready(server, path):
    for it in server.get(path)[1].get("status", {}).get("conditions", []):
        if it["type"] == "Ready":
            return it["status"], it["reason"]
    return None


def taints(server, name):
    return sorted((it["key"], it["effect"])
                  for it in server.get(f"{CORE}/nodes/{name}")[1].get("spec", {}).get("taints", []))


def check_flags(scratch):
    def fails(name, status, message, *flags):
        tap.ran(run(controller_program, *flags), name, status=status, stderr=message)

    helped = tap.ran(run(controller_program, "--help"), "help", stdout="node-lifecycle")
    tap.ok("--leader-elect" in helped.stdout, "help says flags")
    fails("a controller that is none", 2, 'did you mean "node-lifecycle"?',
          "--controllers", "node-lifecycel")
    fails("a duration that is none", 2, "'soon' is not a duration; write one like 15s", "--lease-duration", "soon")
    fails("a duration without a unit", 2, "--lease-duration: '5' has no unit; write 5s", "--lease-duration", "5")
    fails("a lease of half a second", 2, "write at least 1s", "--lease-duration", "500ms")
    fails("a lease of one and a half seconds", 2, "whole seconds", "--lease-duration", "1500ms")
    fails("a word that is no yes or no", 2, "none of auto, true, false", "--leader-elect=perhaps")
    fails("an argument", 2, "unexpected argument 'node-lifecycle'", "node-lifecycle")
    fails("a folder that is not absolute", 2, "not an absolute path", "--jiva-dir", "jiva")
    fails("no kubeconfig", 1, "nowhere", "--kubeconfig", scratch.file("nowhere"))


def check_health(controller):
    until("it becomes ready", lambda: controller.ready)
    tap.equal(controller.get("/healthz"), (200, "ok"), "healthz")
    tap.equal(controller.get("/livez/ping"), (200, "ok"), "one check")
    status, text = controller.get("/readyz?verbose")
    tap.ok(status == 200 and "[+]informers ok\n" in text and text.endswith("readyz check passed\n"),
           "readyz with all checks", text)
    tap.equal(controller.get("/readyz?verbose&exclude=ping")[1].splitlines()[0],
              "[+]ping excluded: ok", "a check is left out")
    tap.equal(controller.get("/livez/informers")[0], 404, "what is not asked for life")
    tap.equal(controller.get("/readyz/nothing")[0], 404, "a check that is none")
    tap.equal(controller.get("/")[0], 404, "nothing else is served")
    tap.equal(controller.get("/readyz", "POST")[0], 405, "nothing can be changed")


def check_metrics(controller):
    text = controller.get("/metrics")[1]
    missing = [name for name in METRICS if f"\n{name}" not in text]
    tap.equal(missing, [], "metrics have the names of others")


def check_nodes(server):
    node, pod = f"{CORE}/nodes/alive", f"{CORE}/namespaces/default/pods/p"
    begin = time.monotonic()
    while time.monotonic() < begin + 2 * GRACE:
        renew(server, "alive")
        time.sleep(0.3)
    tap.equal(ready(server, node), ("True", "KubeletReady"), "a node that renews stays ready")
    tap.equal(taints(server, "alive"), [], "and has no taints")
    tap.equal(ready(server, f"{CORE}/nodes/silent"), ("Unknown", "NodeStatusUnknown"),
              "one that does not is not known to be")
    tap.equal(taints(server, "silent"),
              [("example.org/mine", "NoSchedule"), ("node.kubernetes.io/unreachable", "NoExecute"),
               ("node.kubernetes.io/unreachable", "NoSchedule")], "it has taints, beside others'")
    until("nor are its pods ready", lambda: ready(server, pod)[0] == "False")
    tap.equal(ready(server, f"{CORE}/namespaces/default/pods/q")[0], "True", "those of others are")
    until("nothing is known of its devices", lambda: state_of(server, "silent") == "Unknown")
    until("nor of a node's that is not there", lambda: state_of(server, "nobody") == "Unknown")
    tap.equal(state_of(server, "alive"), "Active", "those of others are as they were")
    tap.ok("NotReady" in server.kubectl("get", "node", "silent").stdout, "kubectl get says so")
    until("and kubectl describe", lambda: "Node silent status is now: NodeNotReady"
          in server.kubectl("describe", "node", "silent").stdout)
    until("and of the pod", lambda: "Node is not ready"
          in server.kubectl("describe", "pod", "p").stdout)

    renew(server, "silent")
    say_ready(server, f"{CORE}/nodes/silent")
    until("when it is back the taints go",
          lambda: taints(server, "silent") == [("example.org/mine", "NoSchedule")])
    tap.equal(ready(server, f"{CORE}/nodes/silent")[0], "True", "and it stays ready")
    until("until it is silent again", lambda: ready(server, f"{CORE}/nodes/silent")[0] == "Unknown")
    until("silence of the other is noticed too", lambda: ready(server, node)[0] == "Unknown")


def check_server_restart(server):
    server.kill()
    server.start()
    make_node(server, "late")
    until("after the server's restart it goes on",
          lambda: ready(server, f"{CORE}/nodes/late")[0] == "Unknown")


def lease(server, namespace="default"):
    return server.get(f"{LEASES}/{namespace}/leases/orlop-controller")[1].get("spec", {})


def check_leaders(server, scratch):
    flags = "--leader-elect", "--embedded", "--controllers=*,-node-lifecycle"
    first = Controller(controller_program, server, scratch.file("first.log"), *flags)
    second = Controller(controller_program, server, scratch.file("second.log"), *flags)
    with first:
        until("the first leads", lambda: first.leads)
        with second:
            until("the second is ready", lambda: second.ready)
            status = 'leader_election_master_status{name="orlop-controller"}'
            tap.equal((first.metric(status), second.metric(status)), (1, 0), "and does not lead")
            holder = lease(server)["holderIdentity"]
            begin = time.monotonic()
            tap.equal(first.stop(), 0, "the first ends well")
            until("the second takes over", lambda: second.leads)
            took = time.monotonic() - begin
            tap.ok(took < 10, "without waiting for the lease of 15 s", f"{took} s")
            tap.ok(lease(server)["holderIdentity"] not in ("", holder), "by its own name")
            tap.equal(lease(server)["leaseTransitions"], 1, "which is a transition")
            tap.equal(second.stop(), 0, "and ends well")
    tap.equal(lease(server)["holderIdentity"], "", "and gives the lease back")


def check_killed_leader(server, scratch):
    flags = "--lease-duration=3s", "--leader-elect", "--namespace=kube-system"
    first = Controller(controller_program, server, scratch.file("first.log"), *flags)
    second = Controller(controller_program, server, scratch.file("second.log"), *flags)
    with first:
        until("the first leads, by a lease of 3 s", lambda: first.leads)
        with second:
            until("the second is ready", lambda: second.ready)
            first.process.kill()
            begin = time.monotonic()
            first.process.wait()
            until("a killed one is replaced", lambda: second.leads)
            took = time.monotonic() - begin
            tap.ok(1 < took < 60, "after the lease", f"{took} s")

            server.process.send_signal(signal.SIGSTOP)
            try:
                tap.equal(second.wait(20), 1, "who cannot renew ends")
            finally:
                server.process.send_signal(signal.SIGCONT)
            tap.ok(second.lines("does not lead any more"), "and says why")


def check_signals(server, scratch):
    controller = Controller(controller_program, server, scratch.file("signals.log"),
                            "--leader-elect", "--lease-duration=60s", "--namespace=kube-public")
    with controller:
        until("it leads", lambda: controller.leads)
        server.process.send_signal(signal.SIGSTOP)
        try:
            began = time.monotonic()
            controller.signal(signal.SIGTERM)
            until("it stops", lambda: controller.lines("stops"))
            # Not for ever: on a machine so busy that we are late, it may have waited already.
            tap.ok(wait_for(lambda: controller.process.poll() is not None, 0.5) is False
                   or time.monotonic() - began > 1, "and waits for the server")
            controller.signal(signal.SIGTERM)
            tap.equal(controller.wait(5), 128 + signal.SIGTERM, "a second signal ends it at once")
        finally:
            server.process.send_signal(signal.SIGCONT)


with Scratch() as scratch, Server(program, scratch.file("data")) as server:
    check_flags(scratch)
    make_node(server, "alive")
    make_node(server, "silent")
    server.ask("PATCH", f"{CORE}/nodes/silent", {"spec": {"taints": [
        {"key": "example.org/mine", "effect": "NoSchedule"}]}},
        content_type="application/merge-patch+json")
    make_pod(server, "p", "silent")
    make_pod(server, "q", "alive")
    for node in ("silent", "alive", "nobody"):
        make_device(server, node)
    with Controller(controller_program, server, scratch.file("controller.log"), "--embedded",
                    "--controllers=node-lifecycle,blockdevice-lifecycle",
                    f"--node-monitor-grace-period={GRACE}s", "--leader-elect",
                    "--namespace=kube-node-lease") as nodes:
        check_health(nodes)
        check_nodes(server)
        check_metrics(nodes)
        check_server_restart(server)
        tap.equal(nodes.stop(), 0, "it ends well")
    with Controller(controller_program, server, scratch.file("alone.log"), "--embedded") as alone:
        until("an embedded one runs without asking", lambda: alone.lines("controllers run"))
        tap.equal(server.get(f"{LEASES}/default/leases/orlop-controller")[0], 404, "for a lease")
        tap.equal(alone.stop(), 0, "and ends well")
    check_leaders(server, scratch)
    check_killed_leader(server, scratch)
    check_signals(server, scratch)
tap.done()
