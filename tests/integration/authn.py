#!/usr/bin/env python3
"""TLS, certificates and tokens of the API server, as clients see them.

authn.py APISERVER
"""
import base64
import http.client
import json
import os
import shutil
import stat
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from server import Server  # noqa: E402
from tap import Scratch, Tap, run, wait_for  # noqa: E402

program = sys.argv[1]
tap = Tap()


REVIEW = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def der_to_raw(der):
    """An ECDSA signature of openssl's as r and s."""
    at, out = 2, b""
    for _ in range(2):
        size = der[at + 1]
        out += der[at + 2:at + 2 + size].lstrip(b"\0").rjust(32, b"\0")
        at += 2 + size
    return out


def sign(folder, header, claims):
    """A token with the server's own key."""
    text = b64(json.dumps(header).encode()) + "." + b64(json.dumps(claims).encode())
    der = subprocess.run(["openssl", "dgst", "-sha256", "-sign",
                          os.path.join(folder, "pki", "service-accounts.pem")],
                         input=text.encode(), capture_output=True, check=True).stdout
    return text + "." + b64(der_to_raw(der))


def claims_of(token):
    part = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


with Scratch() as scratch, open(scratch.file("log"), "a+", encoding="utf-8") as log:
    data = scratch.file("data")
    tokens = scratch.file("tokens.csv", 'static-secret,alice,a-1,"devs,ops"\n')

    def kubectl(server, *argv, **options):
        return server.kubectl(*argv, **options)

    def create(server, kind, name, namespace=None, **more):
        return kubectl(server, "create", "-f", "-", stdin={
            "apiVersion": "v1", "kind": kind, "metadata": {
                "name": name, **({"namespace": namespace} if namespace else {})}, **more})

    def as_token(server, token, *argv):
        return server.kubectl(*argv, token=token)

    def says(result, name, *texts, status=0):
        output = result.stdout + result.stderr
        tap.ok(result.returncode == status and all(text in output for text in texts), name,
               f"exit status {result.returncode}, wanted {status} and {texts}\n{output}")
        return result

    def unauthorized(server, name, token):
        status, body = server.ask("GET", "/api/v1/namespaces", token=token)
        tap.equal((status, body), (401, {
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "Unauthorized", "reason": "Unauthorized", "code": 401}), name)

    def mode(*path):
        return stat.S_IMODE(os.stat(os.path.join(*path)).st_mode)

    with Server(program, data, "--token-auth-file", tokens, "--tls-san", "api.example.test",
                log=log) as server:
        tap.ok(server.url.startswith("https://127.0.0.1:"), "it says where it listens", server.url)

        # Files.
        tap.equal(mode(data, "admin.kubeconfig"), 0o600, "the kubeconfig is for its owner")
        tap.equal(mode(data, "pki"), 0o700, "the folder is for its owner")
        tap.equal({name: mode(data, "pki", name) for name in os.listdir(os.path.join(data, "pki"))},
                  {name: 0o600 for name in ("ca.pem", "ca.crt", "apiserver.pem", "admin.pem",
                                            "controller.pem", "service-accounts.pem")}, "keys are for their owner")

        # Certificates.
        says(kubectl(server, "get", "ns"), "kubectl gets in with the kubeconfig", "default")
        says(kubectl(server, "auth", "whoami"), "it is the administrator", "kubernetes-admin",
             "system:masters", "system:authenticated", "X509SHA256=")
        shown = run("openssl", "s_client", "-connect", f"127.0.0.1:{server.port}", "-CAfile",
                    server.ca, "-verify_hostname", "api.example.test", "-verify_return_error",
                    stdin="")
        says(shown, "its certificate has the names it was given", "Verify return code: 0")
        other = scratch.file("other")
        with Server(program, other) as stranger:
            says(run("kubectl", "--kubeconfig", server.kubeconfig, "--server", stranger.url, "get",
                     "ns", env=scratch.kubectl_env()),
                 "a server of another authority is refused", "certificate", status=1)
            # Their certificate, our server: the handshake is fine, the client is nobody.
            result = run("kubectl", "--kubeconfig", stranger.kubeconfig, "--server", server.url,
                         "--insecure-skip-tls-verify", "get", "ns", env=scratch.kubectl_env())
            tap.ok(result.returncode == 1, "a client of another authority is refused",
                   result.stdout + result.stderr)
        try:
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
            connection.request("GET", "/version")
            answer = connection.getresponse().status
        except (http.client.HTTPException, OSError) as e:
            answer = type(e).__name__
        tap.ok(not isinstance(answer, int), "plain HTTP is not spoken", answer)

        # Nobody.
        status, body = server.ask("POST", REVIEWS, REVIEW, token="")
        tap.ok("system:anonymous" in json.dumps(body), "without credentials it is nobody", body)
        says(as_token(server, "wrong", "get", "ns"), "a wrong token", "You must be logged in", status=1)
        unauthorized(server, "the answer to a wrong token", "wrong")

        # Static tokens.
        says(as_token(server, "static-secret", "auth", "whoami"), "a token of the file", "alice",
             "a-1", "[devs ops system:authenticated]")

        # What each namespace has.
        says(create(server, "Namespace", "team"), "a namespace")
        tap.ok(wait_for(lambda: kubectl(server, "get", "sa", "default", "-n", "team").returncode == 0),
               "it gets an account")
        bundle = wait_for(lambda: kubectl(server, "get", "cm", "kube-root-ca.crt", "-n", "team", "-o",
                                       "jsonpath={.data.ca\\.crt}").stdout)
        with open(server.ca, encoding="utf-8") as f:
            tap.equal(bundle, f.read(), "it gets the authority")
        uid = ["get", "sa", "default", "-n", "team", "-o", "jsonpath={.metadata.uid}"]
        first = kubectl(server, *uid).stdout
        lost = kubectl(server, "create", "token", "default", "-n", "team").stdout.strip()
        kubectl(server, "delete", "sa", "default", "-n", "team")
        second = wait_for(lambda: kubectl(server, *uid).stdout)
        tap.ok(second and second != first, "the account comes back as another", f"{first} {second}")
        unauthorized(server, "the token of the first is over", lost)
        kubectl(server, "patch", "cm", "kube-root-ca.crt", "-n", "team", "-p",
                '{"data":{"ca.crt":"evil"}}')
        tap.ok(wait_for(lambda: kubectl(server, "get", "cm", "kube-root-ca.crt", "-n", "team", "-o",
                                     "jsonpath={.data.ca\\.crt}").stdout == bundle),
               "the authority is put right")

        # Tokens of accounts.
        says(create(server, "ServiceAccount", "builder"), "an account")
        token = says(kubectl(server, "create", "token", "builder"), "a token").stdout.strip()
        says(as_token(server, token, "auth", "whoami"), "the token is the account's",
             "system:serviceaccount:default:builder",
             "[system:serviceaccounts system:serviceaccounts:default system:authenticated]", "JTI=")
        claims = claims_of(token)
        tap.equal(claims["exp"] - claims["iat"], 3600, "it lasts an hour")
        long = kubectl(server, "create", "token", "builder", "--duration", "2h").stdout.strip()
        tap.equal(claims_of(long)["exp"] - claims_of(long)["iat"], 7200, "or as long as asked for")
        says(kubectl(server, "create", "token", "builder", "--duration", "1m"), "but not too short",
             "spec.expirationSeconds: Invalid value: 60: may not specify a duration less than 10 "
             "minutes", status=1)
        says(kubectl(server, "create", "token", "nobody"), "no account, no token",
             'serviceaccounts "nobody" not found', status=1)
        elsewhere = kubectl(server, "create", "token", "builder", "--audience", "vault").stdout.strip()
        unauthorized(server, "a token for somebody else is not for the API", elsewhere)
        head, middle, tail = token.split(".")
        for name, bad in {
                "a changed claim": f"{head}.{middle[:-2]}{'AA' if middle[-2:] != 'AA' else 'BB'}.{tail}",
                "a changed signature": f"{head}.{middle}.{tail[:-4]}AAAA",
                "no signature": f"{head}.{middle}.",
                "alg none": b64(b'{"alg":"none"}') + f".{middle}."}.items():
            unauthorized(server, name, bad)
        if shutil.which("openssl"):
            header = {"alg": "ES256"}
            good = sign(data, header, claims)
            status, body = server.ask("POST", REVIEWS, REVIEW, token=good)
            tap.ok("system:serviceaccount:default:builder" in json.dumps(body),
                   "the claims, signed again", body)
            unauthorized(server, "an expired token",
                         sign(data, header, {**claims, "exp": int(time.time()) - 1}))
            unauthorized(server, "a token of the future",
                         sign(data, header, {**claims, "nbf": int(time.time()) + 600}))
            unauthorized(server, "the token of another issuer",
                         sign(data, header, {**claims, "iss": "https://elsewhere"}))

        # Tokens that are bound to something.
        create(server, "Secret", "anchor")
        bound = kubectl(server, "create", "token", "builder", "--bound-object-kind", "Secret",
                        "--bound-object-name", "anchor").stdout.strip()
        says(as_token(server, bound, "auth", "whoami"), "a bound token", "builder")
        says(kubectl(server, "create", "token", "builder", "--bound-object-kind", "Secret",
                     "--bound-object-name", "anchor", "--bound-object-uid", "other"),
             "bound to another one of that name", "does not match the UID in record", status=1)
        says(kubectl(server, "create", "token", "builder", "--bound-object-kind", "Secret",
                     "--bound-object-name", "none"), "bound to nothing", 'secrets "none" not found',
             status=1)
        kubectl(server, "delete", "secret", "anchor")
        unauthorized(server, "its anchor is gone", bound)

        # Reviews.
        def review(token, **spec):
            result = kubectl(server, "create", "-f", "-", "-o", "json", stdin={
                "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
                "spec": {"token": token, **spec}})
            return json.loads(result.stdout)["status"] if result.stdout else result.stderr

        answer = review(token)
        tap.ok(answer.get("authenticated") is True
               and answer["user"]["username"] == "system:serviceaccount:default:builder"
               and answer["audiences"] == ["https://kubernetes.default.svc.cluster.local"],
               "TokenReview knows whose it is", answer)
        tap.equal(review("wrong"), {"user": {}, "error": "invalid bearer token"},
                  "TokenReview knows a wrong one")
        tap.equal(review(elsewhere, audiences=["vault", "x"]).get("audiences"), ["vault"],
                  "TokenReview knows for whom it is")
        tap.equal(review(elsewhere, audiences=["x"]).get("authenticated"), None,
                  "TokenReview knows for whom it is not")

        # Bootstrap tokens.
        texts = {"token-id": "abcdef", "token-secret": "0123456789abcdef",
                 "usage-bootstrap-authentication": "true",
                 "auth-extra-groups": "system:bootstrappers:nodes"}
        says(create(server, "Secret", "bootstrap-token-abcdef", "kube-system",
                    type="bootstrap.kubernetes.io/token",
                    data={key: base64.b64encode(text.encode()).decode()
                          for key, text in texts.items()}), "a bootstrap token")
        says(as_token(server, "abcdef.0123456789abcdef", "auth", "whoami"), "it lets a node in",
             "system:bootstrap:abcdef",
             "[system:bootstrappers system:bootstrappers:nodes system:authenticated]")
        unauthorized(server, "another secret does not", "abcdef.0123456789abcdee")

        # Acting as others.
        says(kubectl(server, "auth", "whoami", "--as", "bob", "--as-group", "a", "--as-group", "b",
                     "--as-uid", "7"), "the administrator acts as another", "bob",
             "[a b system:authenticated]", "7")
        says(kubectl(server, "auth", "whoami", "--as", "system:serviceaccount:team:default"),
             "or as an account", "system:serviceaccounts:team")
        for name, headers in {"others do not": {"Impersonate-User": "kubernetes-admin"},
                              "least of all as masters": {"Impersonate-User": "x",
                                                          "Impersonate-Group": "system:masters"}}.items():
            status, body = server.ask("GET", "/version", token=token, headers=headers)
            tap.ok(status == 403 and body["reason"] == "Forbidden"
                   and 'cannot impersonate resource "users"' in body["message"], name, body)
        status, body = server.ask("GET", "/version", token=token, headers={"Impersonate-Group": "a"})
        tap.equal((status, body["reason"]), (400, "BadRequest"), "a group without a user")

        # A watch outlives the call that began it, and the user with it.
        watching = server.kubectl_begin("get", "cm", "-w", "-n", "team", "-o", "name")
        watching.stdout.readline()
        create(server, "ConfigMap", "seen", "team")
        tap.equal(watching.stdout.readline(), "configmap/seen\n", "a watch over TLS")
        watching.kill()
        watching.wait()
        watching.stdout.close()

    tap.equal(server.status, 0, "it stops when told")
    old = scratch.file("old.kubeconfig")
    shutil.copy(server.kubeconfig, old)
    ca = open(server.ca, encoding="utf-8").read()

    with Server(program, data, log=log) as server:
        tap.equal(open(server.ca, encoding="utf-8").read(), ca, "the authority outlives a restart")
        says(run("kubectl", "--kubeconfig", old, "--server", server.url, "get", "ns",
                 env=scratch.kubectl_env()), "so does the old kubeconfig", "team")
        says(as_token(server, token, "auth", "whoami"), "so do tokens", "builder")
        unauthorized(server, "not those of a file that is no longer given", "static-secret")
        kubectl(server, "delete", "sa", "builder")
        unauthorized(server, "a deleted account's token", token)

    log.seek(0)
    text = log.read()
    tap.ok(text and not any(secret in text for secret in (token, "static-secret", "0123456789abcdef",
                                                    "PRIVATE")), "no secret is in the log", text)

    # Plain HTTP.
    for address in ("0.0.0.0", "::"):
        says(run(program, "--data-dir", scratch.file("plain"), "--port", "0", "--plain-http",
                 "--address", address), f"plain HTTP on {address} is refused",
             "plain HTTP is not served on", status=1)
    with Server(program, scratch.file("plain"), "--plain-http") as server:
        tap.ok(server.url.startswith("http://127.0.0.1:"), "plain HTTP on loopback", server.url)
        says(kubectl(server, "get", "ns"), "is for tests", "default")

    # What is wrong is said.
    says(run(program, "--data-dir", scratch.file("bad"), "--port", "0", "--tls-san", "no name"),
         "a name that cannot be one", "'no name' cannot stand in a certificate", status=1)
    broken = scratch.file("broken.csv", "only-a-token\n")
    says(run(program, "--data-dir", scratch.file("bad"), "--port", "0", "--token-auth-file", broken),
         "a token file that is none", "line 1", status=1)
tap.done()
