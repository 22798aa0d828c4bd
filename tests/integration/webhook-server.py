#!/usr/bin/env python3
"""orlop-controller --webhook: the same rules, asked by an API server that has Kubernetes' kinds alone, and
ours as definitions, each group apart, as on any cluster. Its certificates, its configuration, what becomes
of a cluster when it is down, and what it does with bytes that are no review.

webhook-server.py APISERVER TOP ORLOP CONTROLLER
"""
import base64
import http.client
import json
import os
import signal
import socket
import ssl
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import identities  # noqa: E402
import pool_rules  # noqa: E402
from controller import Controller  # noqa: E402
from pool_cases import CASES  # noqa: E402
from pool_objects import cluster, device, group, path, pool, put  # noqa: E402
from server import Server  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402

program, top, orlop, controller_program = sys.argv[1:5]
tap = Tap()
CONFIGURATION = ("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/"
                 "orlop-webhook")
SECRET = "/api/v1/namespaces/openebs/secrets/orlop-webhook"
LVS = "/apis/topolvm.io/v1/logicalvolumes"
JIVAS = "/apis/openebs.io/v1alpha1/namespaces/default/jivavolumes"
MERGE = "application/merge-patch+json"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Account:
    """What deploy/webhook lets its account do is all that the program may."""

    def __init__(self, server, scratch):
        tap.ran(server.kubectl("apply", "-f", f"{top}/deploy/webhook"), "its manifests are accepted",
                stdout="deployment.apps/orlop-webhook created")
        token = server.kubectl("create", "token", "orlop-webhook", "-n", "openebs").stdout.strip()
        self.kubeconfig = scratch.file("webhook.kubeconfig", json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": server.url,
                                                   "certificate-authority": server.ca}}],
            "users": [{"name": "c", "user": {"token": token}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}]}))


class Webhook(Controller):
    """The program with nothing but the webhook, on a port of its own."""

    def __init__(self, account, scratch, *flags, service=False):
        self.port = free_port()
        url = () if service else ("--webhook-url", f"https://127.0.0.1:{self.port}")
        super().__init__(controller_program, account, scratch.file(f"webhook-{self.port}.log"),
                         "--controllers", "", "--leader-elect=false", "--webhook", "--webhook-address",
                         "127.0.0.1", "--webhook-port", str(self.port), "--namespace", "openebs",
                         "--webhook-check-period", "1s", *url, *flags)

    def send(self, body, method="POST", where="/validate", ca=None):
        """The status and text of a request."""
        context = ssl.create_default_context(cadata=ca) if ca else ssl._create_unverified_context()
        context.check_hostname = False  # it is called after its Service
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=60, context=context)
        try:
            connection.request(method, where, body)
            reply = connection.getresponse()
            return reply.status, reply.read().decode()
        finally:
            connection.close()


def bundle(server):
    hooks = server.get(CONFIGURATION)[1].get("webhooks")
    return base64.b64decode(hooks[0]["clientConfig"]["caBundle"]).decode() if hooks else None


def lv(name, size):
    return {"apiVersion": "topolvm.io/v1", "kind": "LogicalVolume", "metadata": {"name": name},
            "spec": {"name": name, "nodeName": "node-1", "size": size, "deviceClass": "ssd"}}


def check_off(server):
    """The API server itself has no opinion."""
    status, reply = server.ask("POST", path("CStorPoolCluster", "openebs"),
                               cluster(pool("nowhere", group("mirror", "x")), name="odd"))
    tap.equal(status, 201, f"without the webhook nobody asks: {reply.get('message')}")
    server.ask("DELETE", path("CStorPoolCluster", "openebs") + "/odd")


def check_configuration(server):
    hooks = {it["name"]: it for it in server.get(CONFIGURATION)[1]["webhooks"]}
    tap.equal([(name, it["failurePolicy"], it["timeoutSeconds"], it["sideEffects"])
               for name, it in hooks.items()],
              [("pools.orlop.io", "Fail", 5, "NoneOnDryRun"),
               ("kinds.orlop.io", "Ignore", 5, "NoneOnDryRun"),
               ("deletion.orlop.io", "Ignore", 5, "NoneOnDryRun"),
               ("access.orlop.io", "Fail", 5, "NoneOnDryRun")], "what happens without an answer")
    groups = {g for it in hooks.values() for rule in it["rules"] for g in rule["apiGroups"]}
    tap.equal(groups, {"openebs.io", "cstor.openebs.io", "topolvm.io", "topolvm.cybozu.com"},
              "nothing but our groups")
    tap.ok(not any("*" in json.dumps(it["rules"]) for it in hooks.values()), "no wildcard", hooks)
    tap.equal(server.get(CONFIGURATION)[1]["metadata"]["ownerReferences"][0]["kind"], "Namespace",
              "it goes with its namespace")


def check_kinds(server):
    """Rules of other kinds, as their tables have them."""
    server.create(LVS, lv("a", "2Gi"))
    status, reply = server.ask("PATCH", f"{LVS}/a/status",
                               {"status": {"volumeID": "v", "currentSize": "2Gi"}}, content_type=MERGE)
    status, reply = server.ask("PATCH", f"{LVS}/a", {"spec": {"size": "1Gi"}}, content_type=MERGE)
    tap.ok(status == 422 and 'admission webhook "kinds.orlop.io" denied the request' in
           reply["message"] and "spec.size" in reply["message"], "a LogicalVolume that shrinks", reply)
    tap.equal([it["field"] for it in reply["details"]["causes"]], ["spec.size"], "with its cause")
    status, reply = server.ask("PATCH", f"{LVS}/a/status", {"status": {"volumeID": "w"}},
                               content_type=MERGE)
    tap.equal(status, 422, f"a volume that becomes another: {reply.get('message')}")
    server.create(JIVAS, {"metadata": {"name": "j"}, "spec": {"capacity": "2Gi"}})
    result = server.kubectl("patch", "jivavolume", "j", "--type", "merge", "-p",
                            '{"spec":{"capacity":"1Gi"}}')
    tap.ok(result.returncode == 1 and "spec.capacity" in result.stderr, "a JivaVolume that shrinks",
           result.stderr)
    status, reply = server.ask("POST", "/apis/cstor.openebs.io/v1/namespaces/default/cstorpoolclusters", {
        "apiVersion": "cstor.openebs.io/v1", "kind": "CStorPoolCluster", "metadata": {"name": "p"},
        "spec": {"pools": [{"nodeSelector": {"kubernetes.io/hostname": "node-1"},
                            "dataRaidGroups": [{"blockDevices": [{"blockDeviceName": "nix"}]}],
                            "poolConfig": {"dataRaidGroupType": "stripe"}}]}})
    tap.ok(status == 422 and "[device-exists]" in reply["message"] and "dataRaidGroups[0]" in
           reply["message"], "the published form, in its own words", reply)


def check_access(server):
    """Programs of Orlop write what is their own, by the same table as in the embedded server."""
    identities.allow_everything(server)
    identities.make_objects(server)
    n1, pool_ = identities.node(server, "n1"), identities.pool(server, "mine")
    target = identities.Identity(server, identities.ACCOUNT + "orlop-volume-mine")
    api, hold = identities.API, {"metadata": {"finalizers": ["orlop.io/test"]}}
    for who, where, name in (
            (n1, f"{api}/blockdevices", "bd-{}"), (n1, f"{api}/blockdeviceclaims", "bdc-{}"), (n1, LVS, "lv-{}"),
            (pool_, f"{api}/cstorpoolinstances", "{}"), (pool_, f"{api}/cstorvolumereplicas", "cvr-{}")):
        got = [who.patch(f"{where}/{name.format(owner)}", hold) for owner in ("mine", "other")]
        tap.ok([it[0] for it in got] == [200, 403] and '.orlop.io" denied the request: '
               in got[1][1]["message"], f"{who.user} holds {name} of its own alone", got)
        tap.equal(who.ask("DELETE", f"{where}/{name.format('other')}")[0], 403, "and deletes none of others")
    tap.equal([target.patch(f"{JIVAS}/{name}/status", {"status": {"status": "RW"}})[0]
               for name in ("mine", "other")], [200, 403], "a target writes the status of its volume alone")
    for kind, name in (("blockdevices", "bd-mine"), ("blockdeviceclaims", "bdc-mine"), ("blockdevices", "bd-other"),
                       ("cstorpoolinstances", "mine"), ("cstorvolumereplicas", "cvr-mine")):
        server.ask("PATCH", f"{api}/{kind}/{name}", {"metadata": {"finalizers": None}}, content_type=MERGE)


def check_namespace(server):
    """Who empties a namespace is not held up, whatever lives on its pools."""
    (index,) = [i for i, it in enumerate(CASES) if it.title == "the cluster deleted with a replica on a pool"]
    server.ask("DELETE", f"/api/v1/namespaces/case-{index}")
    tap.ok(wait_for(lambda: server.get(f"/api/v1/namespaces/case-{index}")[0] == 404),
           "a namespace goes with pools and replicas")


def check_rotation(server, hook):
    first = bundle(server)
    tap.equal(hook.send("x", ca=first)[0], 400, "the bundle is for its certificate")
    served = server.get(SECRET)[1]["data"]["server.pem"]
    tap.ok(wait_for(lambda: server.get(SECRET)[1]["data"]["server.pem"] != served),
           "its certificate is renewed in time")
    tap.ok(wait_for(lambda: hook.metric("orlop_webhook_certificate_expiry_seconds") or 0 > 0),
           "and says when it ends")
    tap.equal((bundle(server) == first, hook.send("x", ca=first)[0]), (True, 400),
              "by the same authority, while it serves")
    server.ask("PATCH", CONFIGURATION, [{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle",
                                         "value": base64.b64encode(b"nobody").decode()}],
               content_type="application/json-patch+json")
    tap.ok(wait_for(lambda: bundle(server) == first), "a bundle that somebody spoilt is put right")
    server.ask("DELETE", SECRET)
    tap.ok(wait_for(lambda: server.get(SECRET)[0] == 200 and bundle(server) != first),
           "a Secret that is gone is made anew, and trusted")
    tap.equal(wait_for(lambda: accepts(server)), True, "and the API server goes on asking")
    server.ask("PATCH", SECRET, {"data": {"ca.pem": base64.b64encode(b"rubbish").decode()}},
               content_type=MERGE)
    second = bundle(server)
    tap.ok(wait_for(lambda: bundle(server) not in (second, None)), "a damaged one is replaced")
    tap.equal(wait_for(lambda: accepts(server)), True, "which is trusted, too")
    server.ask("DELETE", CONFIGURATION)
    tap.ok(wait_for(lambda: server.get(CONFIGURATION)[0] == 200), "a configuration that is gone is back")


def accepts(server):
    """Whether it is asked, and says no to what it should."""
    status, reply = server.ask("POST", path("CStorPoolCluster", "openebs") + "?dryRun=All",
                               cluster(pool("node-1", group("stripe", "nix"))))
    return status == 422 and "[device-exists]" in reply["message"]


def check_hostile(hook):
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
    request = {"uid": "1", "operation": "CREATE", "kind": {"group": "openebs.io", "version": "v1alpha1",
                                                           "kind": "CStorPoolCluster"}}
    for name, body in (
            ("nothing", ""), ("no JSON", "{"), ("a list", "[]"), ("a number", "7"),
            ("bytes", "\x00\xff"), ("depth", "[" * 100000), ("another kind", '{"kind":"Pod"}'),
            ("no request", json.dumps(review)),
            ("a request that is none", json.dumps({**review, "request": 7})),
            ("no uid", json.dumps({**review, "request": {**request, "uid": ""}})),
            ("no operation", json.dumps({**review, "request": {**request, "operation": "EAT"}})),
            ("no object", json.dumps({**review, "request": request})),
            ("a string for an object", json.dumps({**review, "request": {**request, "object": "x"}})),
            ("no old object", json.dumps({**review, "request": {
                **request, "operation": "UPDATE", "object": {}}}))):
        status, said = hook.send(body)
        tap.ok(status == 400 and said, f"refused as no review: {name}", f"{status} {said}")
    status, said = hook.send(json.dumps({**review, "request": {**request, "object": {"spec": [1]}}}))
    tap.ok(status == 200 and not json.loads(said)["response"]["allowed"], "an object of no shape", said)
    status, said = hook.send(json.dumps({**review, "request": {
        **request, "kind": {"group": "", "version": "v1", "kind": "Pod"}, "object": {}}}))
    tap.equal((status, json.loads(said)["response"]), (200, {"uid": "1", "allowed": True}),
              "what is not ours is not our business")
    tap.equal(hook.send("", method="GET", where="/healthz"), (200, "ok\n"), "health")
    tap.equal([hook.send("", method=m, where=w)[0] for m, w in
               (("GET", "/validate"), ("POST", "/"), ("POST", "/validate/x"))], [404] * 3,
              "nothing else is there")
    try:
        status = hook.send("x" * (9 << 20))[0]
    except (BrokenPipeError, ConnectionResetError):
        status = 413  # it did not wait for the rest
    tap.equal(status, 413, "too much is too much")


def check_down(server, hook):
    put(server, cluster(pool("node-1", group("stripe", "a")), name="mine"), "default")
    hook.signal(signal.SIGKILL)
    hook.wait()
    where = path("CStorPoolCluster", "default")
    status, reply = server.ask("PATCH", f"{where}/mine", {"spec": {"pools": [
        pool("node-1", group("stripe", "a", "b"))]}}, content_type=MERGE)
    tap.ok(status == 500 and "pools.orlop.io" in reply["message"],
           "without the webhook a spec does not change", reply)
    for name, method, url, body in (
            ("its labels do", "PATCH", f"{where}/mine", {"metadata": {"labels": {"a": "b"}}}),
            ("its status does", "PATCH", f"{where}/mine/status", {"status": {"phase": "x"}}),
            ("devices do", "PATCH", path("BlockDevice", "default") + "/a/status",
             {"status": {"state": "Inactive"}}),
            ("volumes grow", "PATCH", f"{LVS}/a", {"spec": {"size": "3Gi"}}),
            ("volumes go", "DELETE", f"{JIVAS}/j", None),
            ("clusters go", "DELETE", f"{where}/mine", None),
            ("claims come", "POST", "/api/v1/namespaces/default/persistentvolumeclaims",
             {"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {
                 "requests": {"storage": "1Gi"}}}}),
            ("namespaces go", "DELETE", "/api/v1/namespaces/case-0", None)):
        status, reply = server.ask(method, url, body, **({"content_type": MERGE}
                                                         if method == "PATCH" else {}))
        tap.ok(status in (200, 201), name, reply)
    tap.ok(wait_for(lambda: server.get("/api/v1/namespaces/case-0")[0] == 404), "with all in them")


def check_service(server, account, scratch):
    """Two of them at once behind a Service, which begin with nothing and share what they make."""
    server.ask("DELETE", SECRET)
    with Webhook(account, scratch, service=True) as one, Webhook(account, scratch, service=True) as two:
        put_endpoints(server, one.port)
        tap.ok(wait_for(lambda: one.ready and two.ready), "two are ready")
        tap.ok(wait_for(lambda: accepts(server)), "the API server finds one by its Service")
        tap.equal([it.send("x", ca=bundle(server))[0] for it in (one, two)], [400, 400],
                  "both have certificates of one authority")
        one.signal(signal.SIGKILL)
        one.wait()
        put_endpoints(server, two.port)
        tap.ok(wait_for(lambda: accepts(server)), "when one is killed the other answers")


def put_endpoints(server, port):
    where = "/api/v1/namespaces/openebs/endpoints"
    value = {"metadata": {"name": "orlop-webhook"}, "subsets": [
        {"addresses": [{"ip": "127.0.0.1"}], "ports": [{"name": "https", "port": port}]}]}
    if server.ask("POST", where, value)[0] == 409:
        server.ask("PUT", f"{where}/orlop-webhook", value)


def check_end(server, account, scratch):
    with Webhook(account, scratch, "--webhook-remove-on-stop") as hook:
        tap.ok(wait_for(lambda: hook.ready and accepts(server)), "another takes its place")
        tap.equal(hook.stop(), 0, "it stops when told")
    tap.equal((server.get(CONFIGURATION)[0], server.get(SECRET)[0]), (404, 200),
              "and with the flag takes its configuration along")
    with Webhook(account, scratch) as hook:
        wait_for(lambda: server.get(CONFIGURATION)[0] == 200)
        tap.equal(hook.stop(), 0, "it stops again")
    tap.equal(server.get(CONFIGURATION)[0], 200, "without it the configuration stays")
    for again in ("it is removed", "twice is fine"):
        result = run(controller_program, "--kubeconfig", account.kubeconfig, "--namespace", "openebs",
                     "--webhook=remove")
        tap.equal((result.returncode, server.get(CONFIGURATION)[0], server.get(SECRET)[0]),
                  (0, 404, 404), again)


def main():
    with Scratch() as scratch, Server(program, scratch.file("data"), "--log-level", "warn",
                                      "--only-kubernetes") as server:
        tap.ran(server.kubectl("apply", "-f", f"{top}/deploy/crds"), "our definitions")
        tap.ran(server.kubectl("wait", "--for=condition=Established", "crd", "--all"), "are there")
        server.create("/api/v1/namespaces", {"metadata": {"name": "openebs"}})
        check_off(server)
        account = Account(server, scratch)
        # Of a life so short that a certificate is due after two seconds: it begins in the past.
        with Webhook(account, scratch, "--webhook-certificate-lifetime", "154s") as hook:
            tap.ok(wait_for(lambda: hook.ready), "it is ready", hook.lines())
            check_configuration(server)
            pool_rules.check_all(tap, server, kubectl=lambda case: case.title.startswith("a replacement"))
            check_kinds(server)
            check_access(server)
            check_namespace(server)
            check_rotation(server, hook)
            check_hostile(hook)
            put(server, device("a"), "default")
            check_down(server, hook)
        check_service(server, account, scratch)
        check_end(server, account, scratch)
    tap.done()


main()
