#!/usr/bin/env python3
"""What a machine needs of the API server to join and to be one of its nodes: the authority pinned by
a token, a certificate, its own objects and those of its pods; and what pods need: a node, addresses.

joining.py APISERVER
"""
import base64
import concurrent.futures
import hashlib
import hmac
import http.client
import json
import os
import ssl
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from server import Server  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402

program = sys.argv[1]
tap = Tap()
CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
CLIENT = "kubernetes.io/kube-apiserver-client"
KUBELET = CLIENT + "-kubelet"
TOKEN = "abcdef.0123456789abcdef"


def b64(text):
    return base64.b64encode(text if isinstance(text, bytes) else text.encode()).decode()


def b64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


with Scratch() as scratch, Server(program, scratch.file("data")) as server:
    def make_key(name, kind="ec"):
        path = scratch.file(f"{name}.key")
        how = {"ec": ["EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
               "weak": ["RSA", "-pkeyopt", "rsa_keygen_bits:1024"],
               "rsa": ["RSA", "-pkeyopt", "rsa_keygen_bits:2048"]}[kind]
        run("openssl", "genpkey", "-algorithm", *how, "-out", path)
        return path

    def make_request(name, subject, key="ec", names=None):
        argv = ["openssl", "req", "-new", "-key", make_key(name, key), "-subj", subject]
        return run(*argv, *(["-addext", f"subjectAltName={names}"] if names else [])).stdout

    def csr(name, pem, signer=CLIENT, usages=("client auth", "digital signature"), **more):
        return {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
                "metadata": {"name": name},
                "spec": {"request": b64(pem), "signerName": signer, "usages": list(usages), **more}}

    def issued(name):
        def get():
            status = server.get(f"{CSRS}/{name}")[1].get("status", {})
            return status if "certificate" in status or any(
                c["type"] == "Failed" for c in status.get("conditions", [])) else None
        return wait_for(get, 20) or {}

    def as_certificate(name, certificate):
        """A context with a certificate that was issued."""
        pair = scratch.file(f"{name}.pem")
        with open(pair, "wb") as f, open(scratch.file(f"{name}.key"), "rb") as key:
            f.write(base64.b64decode(certificate) + key.read())
        context = ssl.create_default_context(cafile=server.ca)
        context.load_cert_chain(pair)
        return context

    def ask(context, method, path, body=None, content_type="application/json"):
        connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=60,
                                                 context=context)
        connection.request(method, path, json.dumps(body) if body is not None else None,
                           {"Content-Type": content_type} if body is not None else {})
        response = connection.getresponse()
        value = json.loads(response.read())
        connection.close()
        return response.status, value

    def refused(reply, name, text, status=403):
        tap.ok(reply[0] == status and text in reply[1].get("message", ""), name, reply)

    # The programs' own ways in.
    controller = os.path.join(server.folder, "controller.kubeconfig")
    who = run("kubectl", "--kubeconfig", controller, "auth", "whoami", "-o", "json",
              env=server.kubectl_env)
    tap.equal(json.loads(who.stdout)["status"]["userInfo"]["username"], "system:orlop-controller",
              "the controller has a kubeconfig")
    for verb, what in (("create", "pods"), ("create", "pods/binding"), ("patch", "nodes/status"),
                       ("delete", "endpointslices.discovery.k8s.io")):
        result = run("kubectl", "--kubeconfig", controller, "auth", "can-i", verb, *what.split("/")[:1],
                     *(["--subresource", what.split("/")[1]] if "/" in what else []),
                     env=server.kubectl_env)
        tap.equal(result.stdout.strip(), "yes", f"the controller may {verb} {what}")
    result = run("kubectl", "--kubeconfig", controller, "create", "clusterrolebinding", "more",
                 "--clusterrole=cluster-admin", "--user=somebody", env=server.kubectl_env)
    tap.ok(result.returncode == 1 and "forbidden" in result.stderr, "it may not make others more powerful than it is",
           result.stderr)

    # cluster-info.
    def info():
        connection = http.client.HTTPSConnection(
            "127.0.0.1", server.port, context=ssl._create_unverified_context())
        connection.request("GET", "/api/v1/namespaces/kube-public/configmaps/cluster-info")
        response = connection.getresponse()
        value = json.loads(response.read())
        connection.close()
        return value.get("data", {}) if response.status == 200 else {}

    def make_token(name, **more):
        ident, secret = name.split(".")
        texts = {"token-id": ident, "token-secret": secret, "usage-bootstrap-signing": "true",
                 "usage-bootstrap-authentication": "true",
                 "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token", **more}
        server.create("/api/v1/namespaces/kube-system/secrets", {
            "apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token",
            "metadata": {"name": f"bootstrap-token-{ident}"},
            "data": {key: b64(text) for key, text in texts.items()}})

    tap.ok(wait_for(lambda: "kubeconfig" in info()), "everybody can read cluster-info")
    make_token(TOKEN)
    make_token("fedcba.0123456789abcdef", **{"usage-bootstrap-signing": "false"})
    make_token("0ldold.0123456789abcdef", expiration="2020-01-01T00:00:00Z")
    data = wait_for(lambda: (d := info()) and "jws-kubeconfig-abcdef" in d and d) or {}
    header, payload, signature = data.get("jws-kubeconfig-abcdef", "..").split(".")
    text = f"{header}.{b64url(data.get('kubeconfig', '').encode())}".encode()
    wanted = b64url(hmac.new(b"0123456789abcdef", text, hashlib.sha256).digest())
    tap.equal((payload, signature), ("", wanted), "it is signed by the token")
    tap.equal(json.loads(base64.urlsafe_b64decode(header + "==")),
              {"alg": "HS256", "kid": "abcdef"}, "in kubeadm's form")
    tap.equal(sorted(data), ["jws-kubeconfig-abcdef", "kubeconfig"], "only by those that may sign")
    tap.ok(b64(open(server.ca, "rb").read()) in data["kubeconfig"] and server.url
           in data["kubeconfig"], "it says whom to trust, and where", data)
    tap.ok(wait_for(lambda: server.get(
        "/api/v1/namespaces/kube-system/secrets/bootstrap-token-0ldold")[0] == 404, 20),
        "a token whose time is over is taken away")
    server.ask("DELETE", "/api/v1/namespaces/kube-system/secrets/bootstrap-token-fedcba")
    server.ask("DELETE", "/api/v1/namespaces/kube-public/configmaps/cluster-info")
    tap.ok(wait_for(lambda: "jws-kubeconfig-abcdef" in info()), "it comes back")

    # A node joins with a token.
    def join(node):
        pem = make_request(node, f"/O=system:nodes/CN=system:node:{node}")
        status, reply = server.ask("POST", CSRS, csr(
            f"node-{node}", pem, KUBELET, ("digital signature", "key encipherment", "client auth"),
            expirationSeconds=3600), token=TOKEN)
        if status != 201:
            return reply
        return issued(f"node-{node}")

    joined = join("n1")
    tap.ok("certificate" in joined, "a machine with a token gets its certificate", joined)
    tap.ok([(c["type"], c["reason"]) for c in joined.get("conditions", [])]
           == [("Approved", "AutoApproved")], "approved without a person", joined)
    n1 = as_certificate("n1", joined["certificate"])
    status, who = ask(n1, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {
        "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
    tap.equal((who["status"]["userInfo"]["username"], "system:nodes"
               in who["status"]["userInfo"]["groups"]), ("system:node:n1", True),
              "it is who it asked to be")
    dates = subprocess.run(["openssl", "x509", "-noout", "-checkend", "3500"],
                           input=base64.b64decode(joined["certificate"]), check=False,
                           capture_output=True)
    later = subprocess.run(["openssl", "x509", "-noout", "-checkend", "3700"],
                           input=base64.b64decode(joined["certificate"]), check=False,
                           capture_output=True)
    tap.equal((dates.returncode, later.returncode), (0, 1), "for as long as it asked")
    object_ = server.get(f"{CSRS}/node-n1")[1]
    tap.equal((object_["spec"]["username"], object_["spec"]["groups"][0]),
              ("system:bootstrap:abcdef", "system:bootstrappers"), "the server wrote down who asked")
    n2 = as_certificate("n2", join("n2")["certificate"])

    pem = make_request("renewed", "/O=system:nodes/CN=system:node:n1")
    ask(n1, "POST", CSRS, csr("renew", pem, KUBELET))
    tap.ok("certificate" in issued("renew"), "a node renews its own")
    pem = make_request("other", "/O=system:nodes/CN=system:node:n9")
    ask(n1, "POST", CSRS, csr("steal", pem, KUBELET))
    pending = {
        "with names in it": make_request("san", "/O=system:nodes/CN=system:node:x", names="DNS:x"),
        "of another group": make_request("grp", "/O=system:others/CN=system:node:x"),
        "of no node": make_request("nonode", "/O=system:nodes/CN=somebody"),
        "with more in the subject": make_request("ou", "/O=system:nodes/OU=x/CN=system:node:x")}
    for i, request in enumerate(pending.values()):
        server.ask("POST", CSRS, csr(f"odd-{i}", request, KUBELET), token=TOKEN)
    server.ask("POST", CSRS, csr("usage", make_request("usage", "/O=system:nodes/CN=system:node:x"),
                                 KUBELET, ("server auth",)), token=TOKEN)
    # Those come before one that is approved, so they have been looked at.
    tap.ok("certificate" in join("n3"), "a node that joins later")
    states = {line.split()[0]: line.split()[-1]
              for line in server.kubectl("get", "csr", "--no-headers").stdout.splitlines()}
    tap.equal(states.get("steal"), "Pending", "not that of another")
    for i, name in enumerate(pending):
        tap.equal(states.get(f"odd-{i}"), "Pending", f"a request {name} waits for a person")
    tap.equal(states.get("usage"), "Pending", "so does one for another use")
    tap.equal(states.get("node-n1"), "Approved,Issued", "kubectl get csr shows it")
    heading = server.kubectl("get", "csr").stdout.splitlines()[0].split()
    tap.equal(heading, ["NAME", "AGE", "SIGNERNAME", "REQUESTOR", "REQUESTEDDURATION", "CONDITION"],
              "with the columns that people know")
    server.kubectl("certificate", "approve", "odd-1")
    failed = issued("odd-1")
    tap.ok(any(c["type"] == "Failed" and c["reason"] == "SignerValidationFailure"
               and "system:nodes" in c["message"] for c in failed.get("conditions", [])),
           "what is approved and unfit fails", failed)

    # People.
    people = make_request("jane", "/O=devs/O=ops/CN=jane", "rsa")
    tap.ran(server.kubectl("create", "-f", "-", stdin=csr("jane", people)), "a person asks")
    tap.ran(server.kubectl("get", "csr", "jane"), "and waits", stdout="Pending")
    tap.ran(server.kubectl("certificate", "approve", "jane"), "approved by another",
            stdout="certificatesigningrequest.certificates.k8s.io/jane approved")
    jane = as_certificate("jane", issued("jane")["certificate"])
    who = ask(jane, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {
        "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})[1]
    tap.equal((who["status"]["userInfo"]["username"], who["status"]["userInfo"]["groups"][:2]),
              ("jane", ["devs", "ops"]), "the subject is the user")
    server.kubectl("create", "-f", "-", stdin=csr("joe", make_request("joe", "/CN=joe")))
    tap.ran(server.kubectl("certificate", "deny", "joe"), "denied", stdout="denied")
    tap.ran(server.kubectl("get", "csr", "joe"), "and seen", stdout="Denied")
    tap.ran(server.kubectl("certificate", "approve", "joe"), "not both", status=1,
            stderr="is already Denied")
    decision = server.get(f"{CSRS}/joe")[1]
    decision["status"]["conditions"].append({"type": "Approved", "status": "True", "reason": "x"})
    refused(server.ask("PUT", f"{CSRS}/joe/approval", decision), "whoever writes it",
            "mutually exclusive", 422)
    decision["status"]["conditions"] = []
    refused(server.ask("PUT", f"{CSRS}/joe/approval", decision), "a decision stays",
            "may not remove a condition", 422)
    refused(server.ask("POST", CSRS, csr("root", make_request("root", "/O=system:masters/CN=me"))),
            "nobody becomes a master this way",
            f'use of {CLIENT} signer with system:masters group is not allowed')
    for name, request in {"no request": "hello", "an empty one": "-----BEGIN CERTIFICATE REQUEST-----"
                          "\n-----END CERTIFICATE REQUEST-----\n", "a certificate":
                          open(server.ca, encoding="ascii").read(),
                          "a weak key": make_request("weak", "/CN=weak", "weak"),
                          "a long one": "-----BEGIN CERTIFICATE REQUEST-----\n" + "A" * 20000}.items():
        refused(server.ask("POST", CSRS, csr("bad", request)), f"refused: {name}", "spec.request", 422)
    tampered = bytearray(people.encode())
    lines = people.splitlines()
    raw = bytearray(base64.b64decode("".join(lines[1:-1])))
    raw[-1] ^= 1
    refused(server.ask("POST", CSRS, csr("bad", "\n".join(
        [lines[0], base64.b64encode(raw).decode(), lines[-1], ""]))),
        "refused: signed by another", "not signed by its own key", 422)

    # Who may approve.
    server.kubectl("create", "clusterrole", "csr-approver", "--verb", "update,get",
                   "--resource", "certificatesigningrequests/approval,certificatesigningrequests")
    server.kubectl("create", "clusterrolebinding", "jane", "--clusterrole", "csr-approver",
                   "--user", "jane")
    server.kubectl("create", "-f", "-", stdin=csr("jim", make_request("jim", "/CN=jim")))
    decision = server.get(f"{CSRS}/jim")[1]
    decision["status"] = {"conditions": [{"type": "Approved", "status": "True", "reason": "x"}],
                          "certificate": b64("forged")}
    refused(ask(jane, "PUT", f"{CSRS}/jim/approval", decision), "not everybody approves",
            f'user not permitted to approve requests with signerName "{CLIENT}"')
    server.kubectl("create", "clusterrolebinding", "jane-signer", "--user", "jane", "--clusterrole",
                   "system:certificates.k8s.io:kube-apiserver-client-approver")
    status, reply = ask(jane, "PUT", f"{CSRS}/jim/approval", decision)
    tap.equal((status, reply.get("status", {}).get("certificate")), (200, None),
              "who approves cannot also sign")
    tap.ok("certificate" in issued("jim"), "the signer does")
    decision = server.get(f"{CSRS}/jim")[1]
    decision["status"]["certificate"] = b64("other")
    refused(server.ask("PUT", f"{CSRS}/jim/status", decision), "a certificate stays",
            "may not change an existing certificate", 422)
    decision["spec"]["signerName"] = "example.com/other"
    tap.equal(server.ask("PUT", f"{CSRS}/jim", decision)[1]["spec"]["signerName"], CLIENT,
              "so does what was asked for")

    # A node writes what is its own.
    def node(name, **metadata):
        return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, **metadata}}

    NODES = "/api/v1/nodes"
    tap.equal(ask(n1, "POST", NODES, node("n1", labels={"kubernetes.io/hostname": "n1", "a": "b"}))[0],
              201, "a node makes itself")
    tap.equal(ask(n2, "POST", NODES, node("n2"))[0], 201, "another does, too")
    refused(ask(n1, "POST", NODES, node("n9")), "no other",
            'nodes "n9" is forbidden: node "n1" is not allowed to modify node "n9"')
    merge = "application/merge-patch+json"
    refused(ask(n1, "PATCH", f"{NODES}/n2/status", {"status": {"phase": "x"}}, merge),
            "nor another's status", 'node "n1" is not allowed to modify node "n2"')
    tap.equal(ask(n1, "PATCH", f"{NODES}/n1/status", {"status": {"conditions": [
        {"type": "Ready", "status": "True"}]}}, merge)[0], 200, "its own status")
    refused(ask(n1, "PATCH", f"{NODES}/n1", {"spec": {"taints": [
        {"key": "a", "effect": "NoSchedule"}]}}, merge), "not its taints", "modify taints")
    refused(ask(n1, "PATCH", f"{NODES}/n1", {"metadata": {"labels": {
        "node-restriction.kubernetes.io/x": "y"}}}, merge), "not labels that are others'",
        "is not allowed to modify labels: node-restriction.kubernetes.io/x")
    refused(ask(n1, "DELETE", f"{NODES}/n2"), "it deletes no node",
            'cannot delete resource "nodes"')
    refused(ask(n1, "PATCH", f"{NODES}/n1", {"metadata": {"ownerReferences": [{
        "apiVersion": "v1", "kind": "Node", "name": "n2", "uid": "x"}]}}, merge),
        "nor says that it belongs to somebody", "it would change metadata.ownerReferences")

    def lease(name):
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name},
                "spec": {"holderIdentity": name}}

    LEASES = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
    tap.equal(ask(n1, "POST", LEASES.format("kube-node-lease"), lease("n1"))[0], 201, "its lease")
    refused(ask(n1, "POST", LEASES.format("kube-node-lease"), lease("n2")), "no other's",
            "can only access node lease with the same name as the requesting node")
    refused(ask(n1, "POST", LEASES.format("default"), lease("n1")), "nor elsewhere",
            'can only access leases in the "kube-node-lease" system namespace')

    # Pods: bound once, written by their node.
    PODS = "/api/v1/namespaces/default/pods"

    def pod(name, **spec):
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
            "containers": [{"name": "c", "image": "i"}], **spec}}

    def binding(name, target="n1", **metadata):
        return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, **metadata},
                "target": {"apiVersion": "v1", "kind": "Node", "name": target}}

    made = server.create(PODS, pod("a", volumes=[{"name": "s", "secret": {"secretName": "mine"}}]))
    refused(server.ask("POST", f"{PODS}/a/binding", binding("a", uid="other")), "another of that name",
            "Precondition failed", 409)
    refused(server.ask("POST", f"{PODS}/a/binding", {**binding("a"), "target": {"kind": "Node"}}),
            "bound to nothing", "target.name", 422)
    status, reply = server.ask("POST", f"{PODS}/a/binding", binding(
        "a", uid=made["metadata"]["uid"], annotations={"x": "y"}))
    tap.equal((status, reply["status"]), (201, "Success"), "a pod is bound")
    bound = server.get(f"{PODS}/a")[1]
    tap.equal((bound["spec"]["nodeName"], bound["metadata"]["annotations"],
               [(c["type"], c["status"]) for c in bound["status"]["conditions"]]),
              ("n1", {"x": "y"}, [("PodScheduled", "True")]), "that is to be seen")
    refused(server.ask("POST", f"{PODS}/a/binding", binding("a", "n2")), "once",
            'pod is already assigned to node "n1"', 409)
    refused(server.ask("POST", f"{PODS}/none/binding", binding("none")), "if there is one",
            'pods "none" not found', 404)
    running = {"status": {"phase": "Running"}}
    tap.equal(ask(n1, "PATCH", f"{PODS}/a/status", running, merge)[0], 200, "its node says how it is")
    refused(ask(n2, "PATCH", f"{PODS}/a/status", running, merge), "no other node does",
            'node "n2" can only update pod status for pods with spec.nodeName set to itself')
    refused(ask(n2, "DELETE", f"{PODS}/a"), "nor deletes it",
            'node "n2" can only delete pods with spec.nodeName set to itself')
    LVS = "/apis/topolvm.io/v1/logicalvolumes"
    server.create(LVS, {"apiVersion": "topolvm.io/v1", "kind": "LogicalVolume", "metadata": {"name": "v"},
                        "spec": {"name": "v", "nodeName": "n1", "size": "1Gi"}})
    there = {"status": {"currentSize": "1Gi"}}
    tap.equal(ask(n1, "PATCH", f"{LVS}/v/status", there, merge)[0], 200, "a node says what volumes it has")
    for path, what in ((f"{LVS}/v/status", there), (f"{LVS}/v", {"metadata": {"finalizers": ["a/b"]}})):
        refused(ask(n2, "PATCH", path, what, merge), "and nothing of those of others",
                'node "n2" may not update logicalvolumes')
    refused(ask(n1, "POST", PODS, pod("b", nodeName="n1")), "nodes make no pods",
            'annotation, node "n1" can only create mirror pods')
    for name in ("mine", "other"):
        server.create("/api/v1/namespaces/default/secrets", {
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}})
    SECRETS = "/api/v1/namespaces/default/secrets"
    tap.equal([ask(who, "GET", f"{SECRETS}/{name}")[0] for who, name in (
        (n1, "mine"), (n2, "mine"), (n1, "other"))], [200, 403, 403],
        "a node reads the Secrets of its pods")
    tap.equal(ask(n1, "GET", SECRETS)[0], 403, "and not all of them")
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {
        "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "a",
                           "uid": made["metadata"]["uid"]}}}
    TOKENS = "/api/v1/namespaces/default/serviceaccounts/default/token"
    tap.equal(ask(n1, "POST", TOKENS, request)[0], 201, "and gets tokens for them")
    refused(ask(n2, "POST", TOKENS, request), "others do not",
            "node requested token bound to a pod scheduled on a different node")
    refused(ask(n1, "POST", TOKENS, {**request, "spec": {}}), "nor for no pod",
            "node requested token not bound to a pod")

    # A node makes mirror Pods, and gets nothing by them.
    def mirror(name, **spec):
        return {**pod(name, nodeName="n1", **spec), "metadata": {
            "name": name, "annotations": {"kubernetes.io/config.mirror": "x"}}}

    server.create("/api/v1/namespaces/default/serviceaccounts", {
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "boss"}})
    volume = {"name": "v"}
    for what, spec in {
            "secrets": {"volumes": [{**volume, "secret": {"secretName": "other"}}]},
            "secrets by a variable": {"containers": [{"name": "c", "image": "i", "env": [
                {"name": "A", "valueFrom": {"secretKeyRef": {"name": "other", "key": "k"}}}]}]},
            "secrets for images": {"imagePullSecrets": [{"name": "other"}]},
            "configmaps": {"volumes": [{**volume, "configMap": {"name": "other"}}]},
            "configmaps by a variable": {"initContainers": [{"name": "d", "image": "i", "envFrom": [
                {"configMapRef": {"name": "other"}}]}]},
            "persistentvolumeclaims": {"volumes": [{**volume, "persistentVolumeClaim": {"claimName": "c"}}]},
            "projected volumes": {"volumes": [{**volume, "projected": {"sources": [
                {"secret": {"name": "other"}}]}}]},
            "a service account": {"serviceAccountName": "boss"}}.items():
        refused(ask(n1, "POST", PODS, mirror("sneaky", **spec)), f"a mirror Pod refers to no {what}",
                f'node "n1" can not create pods that reference {what.split(" by ")[0].split(" for ")[0]}')
    refused(ask(n1, "POST", PODS, {**mirror("sneaky"), "metadata": {
        **mirror("sneaky")["metadata"], "ownerReferences": [{
            "apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"}]}}),
        "nor belongs to anybody else", "can only create pods with an owner reference set to itself")
    status, own = ask(n1, "POST", PODS, mirror("own"))
    tap.equal(status, 201, "one that refers to nothing is made")
    refused(ask(n1, "POST", TOKENS, {**request, "spec": {"boundObjectRef": {
        "kind": "Pod", "apiVersion": "v1", "name": "own", "uid": own["metadata"]["uid"]}}}),
        "there are no tokens for it", "bound to a mirror pod")
    refused(server.ask("PATCH", f"{PODS}/own", {"metadata": {"annotations": {
        "kubernetes.io/config.mirror": None}}}, content_type=merge), "it stays a mirror Pod",
        "may not add, remove or update mirror pod annotation", 422)
    # One that somebody made by hand mentions a Secret: that is no leave for its node either.
    server.create(PODS, mirror("by-hand", volumes=[{**volume, "secret": {"secretName": "other"}}]))
    tap.equal(ask(n1, "GET", f"{SECRETS}/other")[0], 403, "a mirror Pod gives its node no Secret")
    for name in ("named", "unnamed"):
        server.create("/api/v1/namespaces/default/configmaps", {
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
        server.create("/api/v1/namespaces/default/persistentvolumeclaims", {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
                     "storageClassName": "none", "volumeName": f"pv-{name}"}})
        server.create("/api/v1/persistentvolumes", {
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"pv-{name}"},
            "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"},
                     "hostPath": {"path": "/x"}, "storageClassName": "none",
                     "claimRef": {"namespace": "default", "name": name}}})
    server.create(PODS, pod("uses", nodeName="n1", volumes=[
        {"name": "c", "configMap": {"name": "named"}},
        {"name": "d", "persistentVolumeClaim": {"claimName": "named"}}]))
    core = "/api/v1/namespaces/default"
    paths = [f"{core}/configmaps/{{}}", f"{core}/persistentvolumeclaims/{{}}", "/api/v1/persistentvolumes/pv-{}"]
    tap.equal([[ask(who, "GET", p.format(name))[0] for p in paths] for who, name in (
        (n1, "named"), (n1, "unnamed"), (n2, "named"))], [[200] * 3, [403] * 3, [403] * 3],
        "a node reads the ConfigMaps, claims and volumes of its pods, and no others")
    tap.equal([ask(n1, "GET", p.rsplit("/", 1)[0])[0] for p in paths], [403] * 3, "nor all of them")

    # Services have addresses of their own.
    SERVICES = "/api/v1/namespaces/default/services"

    def service(name, **spec):
        return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {
            "ports": [{"port": 80}], **spec}}

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda i: server.create(SERVICES, service(f"s{i}")), range(24)))
    addresses = [s["spec"]["clusterIP"] for s in made]
    tap.equal(len(set(addresses)), 24, "each service has its own address")
    tap.ok(all(a.startswith("127.") and 96 <= int(a.split(".")[1]) < 112 for a in addresses),
           "of the range", addresses)
    spec = made[0]["spec"]
    tap.equal((spec["clusterIPs"], spec["ipFamilies"], spec["ipFamilyPolicy"],
               spec["internalTrafficPolicy"]), ([spec["clusterIP"]], ["IPv4"], "SingleStack",
                                                "Cluster"), "with what goes with it")
    none = server.create(SERVICES, service("headless", clusterIP="None"))["spec"]
    tap.equal((none["clusterIP"], none["clusterIPs"]), ("None", ["None"]), "or none, if it says so")
    outside = server.create(SERVICES, {**service("outside"), "spec": {
        "type": "ExternalName", "externalName": "example.com"}})["spec"]
    tap.equal("clusterIP" in outside, False, "one that stands for a name has none")
    refused(server.ask("POST", SERVICES, service("x", clusterIP=addresses[0])), "none twice",
            f"failed to allocate IP {addresses[0]}: provided IP is already allocated", 422)
    refused(server.ask("POST", SERVICES, service("x", clusterIP="10.0.0.1")), "none of elsewhere",
            "is not in the valid range. The range of valid IPs is 127.96.0.0/12", 422)
    refused(server.ask("PATCH", f"{SERVICES}/s0", {"spec": {"clusterIP": "127.96.9.9"}},
                       content_type=merge), "it stays", "may not change once set", 422)
    status, reply = server.ask("PUT", f"{SERVICES}/s0", service("s0", selector={"a": "b"}))
    tap.equal((status, reply["spec"].get("clusterIP")), (200, addresses[0]),
              "also when an update does not mention it")
    status, reply = server.ask("PATCH", f"{SERVICES}/outside", {"spec": {
        "type": "ClusterIP", "externalName": None, "ports": [{"port": 1}]}}, content_type=merge)
    tap.ok(status == 200 and reply["spec"]["clusterIP"].startswith("127."), "one that changes its mind",
           reply)
    status, reply = server.ask("POST", f"{SERVICES}?dryRun=All", service("dry", clusterIP="127.100.0.1"))
    tap.equal((status, reply["spec"]["clusterIP"]), (201, "127.100.0.1"), "a dry run has one")
    tap.equal(server.create(SERVICES, service("wet", clusterIP="127.100.0.1"))["spec"]["clusterIP"],
              "127.100.0.1", "and keeps nothing")
    server.ask("DELETE", f"{SERVICES}/wet")
    tap.equal(server.ask("POST", SERVICES, service("again", clusterIP="127.100.0.1"))[0], 201,
              "what is deleted is free")
    server.kill()
    server.start()
    late = server.create(SERVICES, service("late"))["spec"]["clusterIP"]
    tap.ok(late not in addresses, "a restart forgets none", late)

with Scratch() as scratch:
    with Server(program, scratch.file("small"), "--service-cluster-ip-range", "10.9.8.0/30") as server:
        got = [server.ask("POST", "/api/v1/namespaces/default/services", {
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": f"s{i}"},
            "spec": {"ports": [{"port": 80}]}}) for i in range(3)]
        tap.equal([s for s, _ in got], [201, 201, 422], "a range can be full")
        tap.ok("range is full" in got[2][1]["message"], "and says so", got[2])
    for text in ("10.0.0.0", "10.0.0.1/24", "10.0.0.0/31", "fe80::/64", "10.0.0.0/24x"):
        tap.ran(run(program, "--data-dir", scratch.file("bad"), "--port", "0",
                    "--service-cluster-ip-range", text), f"no range: {text}", status=1,
                stderr="is no range of addresses for services")
tap.done()
