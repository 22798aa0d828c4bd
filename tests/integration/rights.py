#!/usr/bin/env python3
"""Who may do what, as users of the API server find out: by certificate, by token, and as others.

rights.py APISERVER
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from server import Client, Server  # noqa: E402
from tap import Scratch, Tap  # noqa: E402

program = sys.argv[1]
tap = Tap()
RBAC = "/apis/rbac.authorization.k8s.io/v1"
TEAM = "/api/v1/namespaces/team"
MERGE = "application/merge-patch+json"


def config(name):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def role(name, *rules, kind="Role"):
    """Rules are (group, resources, verbs[, names])."""
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name},
            "rules": [{"apiGroups": [group], "resources": resources.split(","),
                       "verbs": verbs.split(","),
                       **({"resourceNames": names[0].split(",")} if names else {})}
                      for group, resources, verbs, *names in rules]}


def binding(name, to, user, kind="RoleBinding", role_kind="Role"):
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind, "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": to},
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}]}


class Rights:
    def __init__(self, server):
        self.server = server

    def codes(self, name, token, *cases):
        """Each is (expected, method, path[, body])."""
        for expected, method, path, *body in cases:
            status, value = self.server.ask(method, path, *body, token=token)
            tap.ok(status == expected, f"{name}: {method} {path} is {expected}", f"{status} {value}")

    def grant(self, name, user, *rules):
        self.server.create(f"{RBAC}/namespaces/team/roles", role(name, *rules))
        self.server.create(f"{RBAC}/namespaces/team/rolebindings", binding(name, name, user))

    def strangers(self):
        self.codes("nobody", "", *((200, "GET", path) for path in (
            "/healthz", "/livez", "/readyz", "/version")))
        self.codes("nobody", "", *((403, "GET", path) for path in (
            "/", "/api", "/apis", "/readyz/ping", "/apis/openebs.io/v1alpha1", "/openapi/v2",
            "/openapi/v3", "/metrics", "/nowhere", "/apis/nowhere/v1/things", "/api/v1/namespaces",
            "/api/v1/nodes/none", f"{TEAM}/secrets", f"{TEAM}/pods/none/log")),
                   (403, "POST", f"{TEAM}/configmaps", config("x")),
                   (403, "POST", "/version"), (403, "DELETE", "/api/v1/nodes"),
                   (403, "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {}))
        self.codes("somebody without a role", "john-token", *((200, "GET", path) for path in (
            "/api", "/apis", "/apis/openebs.io/v1alpha1", "/openapi/v3", "/version")),
                   (403, "GET", "/metrics"), (403, "GET", "/nowhere"), (403, "GET", "/api/v1/nodes"))
        tap.equal(self.server.get("/nowhere")[0], 404, "only who may look learns what is not there")

    def wording(self):
        """As kube-apiserver says it."""
        server = self.server

        def status(message, **details):
            return 403, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                         "message": message, "reason": "Forbidden", "details": details, "code": 403}

        for name, method, path, expected in (
                ("a list in a namespace", "GET", f"{TEAM}/pods", status(
                    'pods is forbidden: User "john" cannot list resource "pods" in API group "" in '
                    'the namespace "team"', kind="pods")),
                ("a list of the cluster", "GET", "/apis/cstor.openebs.io/v1/cstorvolumes", status(
                    'cstorvolumes.cstor.openebs.io is forbidden: User "john" cannot list resource '
                    '"cstorvolumes" in API group "cstor.openebs.io" at the cluster scope',
                    group="cstor.openebs.io", kind="cstorvolumes")),
                ("a watch", "GET", f"{TEAM}/pods?watch=1", status(
                    'pods is forbidden: User "john" cannot watch resource "pods" in API group "" in '
                    'the namespace "team"', kind="pods")),
                ("an object", "DELETE", f"{TEAM}/configmaps/x", status(
                    'configmaps "x" is forbidden: User "john" cannot delete resource "configmaps" in '
                    'API group "" in the namespace "team"', name="x", kind="configmaps")),
                ("a subresource", "GET", "/apis/apps/v1/namespaces/team/deployments/d/scale", status(
                    'deployments.apps "d" is forbidden: User "john" cannot get resource '
                    '"deployments/scale" in API group "apps" in the namespace "team"',
                    name="d", group="apps", kind="deployments")),
                ("a path", "GET", "/metrics", status(
                    'forbidden: User "john" cannot get path "/metrics"'))):
            tap.equal(server.ask(method, path, token="john-token"), expected, f"words of: {name}")
        for argv, text in (
                (["get", "cspc", "--as", "jane"],
                 'Error from server (Forbidden): cstorpoolclusters.openebs.io is forbidden: User "jane" '
                 'cannot list resource "cstorpoolclusters" in API group "openebs.io" in the namespace '
                 '"default"\n'),
                (["get", "nodes", "--as", "jane", "--as-group", "a"],
                 'Error from server (Forbidden): nodes is forbidden: User "jane" cannot list resource '
                 '"nodes" in API group "" at the cluster scope\n'),
                (["delete", "ns", "team", "--as", "jane"],
                 'Error from server (Forbidden): namespaces "team" is forbidden: User "jane" cannot '
                 'delete resource "namespaces" in API group "" in the namespace "team"\n')):
            result = server.kubectl(*argv)
            tap.equal((result.returncode, result.stderr), (1, text), f"kubectl {' '.join(argv)}")

    def roles(self):
        server = self.server
        self.grant("reader", "jane", ("", "pods,configmaps", "get,list,watch"))
        self.codes("a reader", "jane-token",
                   (200, "GET", f"{TEAM}/configmaps"), (200, "GET", f"{TEAM}/pods"),
                   (404, "GET", f"{TEAM}/configmaps/none"), (403, "GET", f"{TEAM}/secrets"),
                   (403, "GET", "/api/v1/configmaps"),
                   (403, "GET", "/api/v1/namespaces/default/configmaps"),
                   (403, "GET", f"{TEAM}/pods/none/log"),
                   (403, "POST", f"{TEAM}/configmaps", config("x")),
                   (403, "DELETE", f"{TEAM}/configmaps/kube-root-ca.crt"),
                   (403, "DELETE", f"{TEAM}/configmaps"),
                   (403, "GET", TEAM))
        tap.ran(server.kubectl("get", "cm", "-n", "team", "--as", "jane"), "kubectl as the reader",
                stdout="kube-root-ca.crt")
        tap.ran(server.kubectl("get", "cm", "-A", "--as", "jane"), "not in all namespaces", 1,
                stderr='cannot list resource "configmaps" in API group "" at the cluster scope')
        tap.ran(server.kubectl("auth", "can-i", "list", "cm", "-n", "team", token="jane-token"),
                "the reader asks", stdout="yes")
        tap.ran(server.kubectl("auth", "can-i", "list", "cm", token="jane-token"),
                "and elsewhere", 1, stdout="no")
        self.grant("one", "one", ("", "configmaps", "get,list,watch,patch", "kube-root-ca.crt"))
        one = "fieldSelector=metadata.name%3Dkube-root-ca.crt"
        self.codes("one object", "one-token",
                   (200, "GET", f"{TEAM}/configmaps/kube-root-ca.crt"),
                   (200, "GET", f"{TEAM}/configmaps?{one}"),
                   (403, "GET", f"{TEAM}/configmaps"), (403, "GET", f"{TEAM}/configmaps/other"))
        client = Client(server, token="one-token")
        tap.equal(client.send("GET", f"{TEAM}/configmaps?{one}&watch=1").status, 200,
                  "one object: a watch of it")
        client.close()
        self.grant("status", "status", ("apps", "deployments/status", "patch,update"),
                   ("apps", "deployments", "get"))
        deployment = "/apis/apps/v1/namespaces/team/deployments/none"
        tap.equal([server.ask("PATCH", path, {}, MERGE, token="status-token")[0]
                   for path in (deployment, f"{deployment}/status", f"{deployment}/scale")],
                  [403, 404, 403], "a subresource is apart")
        server.create(f"{RBAC}/namespaces/team/rolebindings",
                      binding("viewer", "view", "viewer", role_kind="ClusterRole"))
        self.codes("a viewer of one namespace", "viewer-token",
                   (200, "GET", f"{TEAM}/configmaps"), (403, "GET", f"{TEAM}/secrets"),
                   (200, "GET", "/apis/cstor.openebs.io/v1/namespaces/team/cstorvolumes"),
                   (403, "GET", "/api/v1/namespaces/default/configmaps"))

    def at_once(self):
        """No request sees roles older than the last answer about them."""
        server = self.server
        bindings = f"{RBAC}/namespaces/team/rolebindings"
        server.create(f"{RBAC}/namespaces/team/roles", role("brief", ("", "secrets", "list")))
        client, admin = Client(server, token="john-token"), Client(server)
        seen = []
        for _ in range(20):
            made = admin.ask("POST", bindings, binding("brief", "brief", "john")).status
            allowed = client.ask("GET", f"{TEAM}/secrets").status
            gone = admin.ask("DELETE", f"{bindings}/brief").status
            seen.append((made, allowed, gone, client.ask("GET", f"{TEAM}/secrets").status))
        tap.equal(set(seen), {(201, 200, 200, 403)}, "a binding holds until it is removed, at once")
        admin.ask("POST", bindings, binding("brief", "brief", "john"))
        before = client.ask("GET", f"{TEAM}/secrets").status
        admin.ask("PATCH", f"{RBAC}/namespaces/team/roles/brief", {"rules": []}, content_type=MERGE)
        tap.equal((before, client.ask("GET", f"{TEAM}/secrets").status), (200, 403),
                  "so does a role without rules")
        client.close()
        admin.close()

    def escalation(self):
        server = self.server
        roles = f"{RBAC}/namespaces/team/roles"
        bindings = f"{RBAC}/namespaces/team/rolebindings"
        self.grant("keeper", "keeper",
                   ("rbac.authorization.k8s.io", "roles,rolebindings", "create,update,patch,get"),
                   ("", "pods", "get"))

        def refused(name, method, path, value, text, content_type="application/json"):
            status, reply = server.ask(method, path, value, content_type, token="keeper-token")
            tap.ok(status == 403 and text in reply["message"], name, f"{status} {reply}")

        tap.equal(server.ask("POST", roles, role("same", ("", "pods", "get")),
                             token="keeper-token")[0], 201, "what one has can be given")
        refused("but no more", "POST", roles, role("more", ("", "secrets", "get")),
                'roles.rbac.authorization.k8s.io "more" is forbidden: user "keeper" '
                '(groups=["keepers" "system:authenticated"]) is attempting to grant RBAC permissions '
                'not currently held:\n{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}')
        refused("nor by an update", "PATCH", f"{roles}/same", role("same", ("", "pods", "*")),
                "is attempting to grant RBAC permissions not currently held", MERGE)
        refused("nor by a binding", "POST", bindings,
                binding("all", "cluster-admin", "keeper", role_kind="ClusterRole"),
                "is attempting to grant RBAC permissions not currently held")
        refused("nor for the whole cluster", "POST", f"{RBAC}/clusterrolebindings",
                binding("all", "cluster-admin", "keeper", "ClusterRoleBinding", "ClusterRole"),
                'cannot create resource "clusterrolebindings"')
        tap.equal(server.ask("POST", bindings, binding("same", "same", "john"),
                             token="keeper-token")[0], 201, "a role of what one has can be bound")
        tap.ran(server.kubectl("create", "role", "more", "--verb=get", "--resource=secrets", "-n",
                               "team", token="keeper-token"), "as kubectl shows it", 1,
                stderr="is attempting to grant RBAC permissions not currently held")
        self.grant("escalate", "keeper", ("rbac.authorization.k8s.io", "roles", "escalate"),
                   ("rbac.authorization.k8s.io", "clusterroles", "bind", "view"))
        tap.equal(server.ask("POST", roles, role("more", ("", "secrets", "get")),
                             token="keeper-token")[0], 201, "unless one may escalate")
        tap.equal(server.ask("POST", bindings, binding("views", "view", "x", role_kind="ClusterRole"),
                             token="keeper-token")[0], 201, "or bind that role")
        refused("and no other", "POST", bindings,
                binding("edits", "edit", "x", role_kind="ClusterRole"),
                "is attempting to grant RBAC permissions not currently held")

    def accounts(self):
        server = self.server
        server.create(f"{TEAM}/serviceaccounts", {"apiVersion": "v1", "kind": "ServiceAccount",
                                                  "metadata": {"name": "robot"}})
        token = server.kubectl("create", "token", "robot", "-n", "team").stdout.strip()
        self.codes("an account without a role", token, (403, "GET", f"{TEAM}/configmaps"))
        tap.ran(server.kubectl("create", "role", "robots", "--verb=create,get,list,delete",
                               "--resource=configmaps", "-n", "team"), "a role for an account")
        tap.ran(server.kubectl("create", "rolebinding", "robots", "--role=robots",
                               "--serviceaccount=team:robot", "-n", "team"), "is bound to it")
        self.codes("an account with a role", token,
                   (201, "POST", f"{TEAM}/configmaps", config("made")),
                   (200, "GET", f"{TEAM}/configmaps/made"),
                   (403, "PUT", f"{TEAM}/configmaps/made", config("made")),
                   (200, "DELETE", f"{TEAM}/configmaps/made"),
                   (403, "GET", f"{TEAM}/secrets"), (403, "GET", f"{TEAM}/serviceaccounts/robot"),
                   (403, "POST", "/api/v1/namespaces/default/configmaps", config("made")))
        tap.ran(server.kubectl("get", "cm", "-n", "team", "--as", "system:serviceaccount:team:robot"),
                "the administrator as the account", stdout="kube-root-ca.crt")
        tap.ran(server.kubectl("create", "token", "robot", "-n", "team", "--as", "jane"),
                "tokens are not for everybody", 1,
                stderr='cannot create resource "serviceaccounts/token"')

    def acting(self):
        """Impersonation with a role."""
        server = self.server
        server.create(f"{RBAC}/clusterroles", role(
            "act", ("", "users", "impersonate", "jane"), ("", "groups", "impersonate", "devs"),
            kind="ClusterRole"))
        server.create(f"{RBAC}/clusterrolebindings",
                      binding("act", "act", "john", "ClusterRoleBinding", "ClusterRole"))
        tap.ran(server.kubectl("get", "cm", "-n", "team", "--as", "jane", token="john-token"),
                "a user acts as another", stdout="kube-root-ca.crt")
        for name, text, argv in (
                ("not as a third", 'users "keeper" is forbidden: User "john" cannot impersonate resource '
                 '"users" in API group "" at the cluster scope', ["--as", "keeper"]),
                ("not in every group", 'groups "system:masters" is forbidden: User "john" cannot '
                 'impersonate resource "groups" in API group "" at the cluster scope',
                 ["--as", "jane", "--as-group", "system:masters"]),
                ("not as an account", 'serviceaccounts "robot" is forbidden: User "john" cannot '
                 'impersonate resource "serviceaccounts" in API group "" in the namespace "team"',
                 ["--as", "system:serviceaccount:team:robot"]),
                ("and with no more than the other has", 'secrets is forbidden: User "jane" cannot list',
                 ["--as", "jane", "--as-group", "devs"])):
            tap.ran(server.kubectl("get", "secrets", "-n", "team", *argv, token="john-token"), name, 1,
                    stderr=text)
        server.ask("POST", f"{TEAM}/configmaps", config("x"), headers={
            "Audit-ID": "acted", "Impersonate-User": "jane", "Impersonate-Group": "devs"})
        server.ask("POST", f"{TEAM}/configmaps", config("x"), headers={"Audit-ID": "herself"},
                   token="jane-token")


def audit(path):
    with open(path, encoding="utf-8") as f:
        events = [json.loads(line) for line in f]

    acted, herself = (next(e for e in events if e["auditID"] == name)
                      for name in ("acted", "herself"))
    tap.equal((acted["user"]["username"], acted.get("impersonatedUser"),
               acted["responseStatus"]["code"], acted["annotations"]["authorization.k8s.io/decision"]),
              ("kubernetes-admin", {"username": "jane", "groups": ["devs", "system:authenticated"]},
               403, "forbid"), "the audit log knows who acted as whom")
    tap.equal((herself["user"]["username"], "impersonatedUser" in herself),
              ("jane", False), "and who acted as themselves")
    refused = [e for e in events if e.get("requestURI", "").startswith(f"{TEAM}/secrets")
               and e["user"]["username"] == "john" and e["responseStatus"]["code"] == 403]
    tap.equal({e.get("impersonatedUser", {}).get("username") for e in refused}, {None, "jane"},
              "what was refused is in it, reads too")
    text = json.dumps(events)
    tap.ok("-token" not in text, "no token is in it")


def limits(scratch, tokens):
    rate = 5
    with Server(program, scratch.file("limits"), "--token-auth-file", tokens,
                "--max-requests-per-client", str(rate)) as server:
        def burst(token):
            client = Client(server, token=token)
            replies = [client.ask("GET", "/version") for _ in range(40)]
            client.close()
            return replies

        replies = burst("john-token")
        over = [r for r in replies if r.status == 429]
        tap.equal({r.status for r in replies}, {200, 429}, "a client over its rate is refused")
        tap.equal([r.status for r in replies[:2 * rate]], [200] * 2 * rate, "not at first")
        tap.ok(over and {r.headers["Retry-After"] for r in over} == {"1"}, "it is told when to come back")
        tap.equal(over[0].json, {
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "too many requests, please try again later.", "reason": "TooManyRequests",
            "details": {"retryAfterSeconds": 1}, "code": 429}, "in a Status")
        tap.equal(server.get("/version", token="jane-token")[0], 200, "others are not")
        tap.equal({r.status for r in burst(None)}, {200}, "administrators never")
        tap.equal({r.status for r in burst("")}, {200, 429}, "those without a name share one rate")
        burst("john-token")
        tap.ran(server.kubectl("api-versions", token="john-token"), "kubectl waits and asks again",
                stdout="openebs.io")
    tap.equal(server.status, 0, "it stops when told")


with Scratch() as scratch:
    users = ["jane", "john", "one", "status", "viewer"]
    token_file = scratch.file("tokens.csv", "".join(f"{u}-token,{u},{u}\n" for u in users)
                              + 'keeper-token,keeper,keeper,"keepers"\n')
    with Server(program, scratch.file("data"), "--token-auth-file", token_file) as server:
        server.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace",
                                             "metadata": {"name": "team"}})
        rights = Rights(server)
        rights.strangers()
        rights.wording()
        rights.roles()
        rights.at_once()
        rights.escalation()
        rights.accounts()
        rights.acting()
    tap.equal(server.status, 0, "it stops when told")
    audit(os.path.join(server.folder, "audit.log"))
    limits(scratch, token_file)
tap.done()
