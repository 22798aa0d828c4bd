"""Programs of Orlop as the API server sees them: users that an administrator acts as, with every right that a role
can give, so that whatever is refused is refused because it is not theirs."""
from pool_objects import claim, device, group, instance, put, replica
from pool_objects import pool as pool_spec

MERGE = "application/merge-patch+json"
API = "/apis/openebs.io/v1alpha1/namespaces/default"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
EVERYTHING = "may-do-everything"
ACCOUNT = "system:serviceaccount:default:"


def allow_everything(server):
    """A group that roles let do everything."""
    server.create(f"{RBAC}/clusterrolebindings", {
        "metadata": {"name": EVERYTHING}, "subjects": [
            {"kind": "Group", "name": EVERYTHING, "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}})


class Identity:
    """Somebody who is in that group."""

    def __init__(self, server, user, group=None, **extra):
        self.server, self.user, self.group, self.extra = server, user, group, extra

    def ask(self, method, path, body=None, content_type="application/json"):
        headers = {"Impersonate-User": self.user, "Impersonate-Group": EVERYTHING}
        if self.group:
            headers["impersonate-group"] = self.group  # another key for a dict, the same header
        for key, value in self.extra.items():
            headers[f"Impersonate-Extra-authentication.kubernetes.io%2F{key.replace('_', '-')}"] = value
        return self.server.ask(method, path, body, content_type, headers=headers)

    def patch(self, path, body):
        return self.ask("PATCH", path, body, MERGE)


def node(server, name):
    return Identity(server, f"system:node:{name}", "system:nodes")


def pool(server, name):
    """A pool by its own account."""
    return Identity(server, ACCOUNT + f"orlop-pool-{name}")


def pool_of_pod(server, name):
    """The pool of a Pod that has the account that pools shared before each had its own."""
    pod = server.create("/api/v1/namespaces/default/pods", {
        "metadata": {"name": f"pod-of-{name}", "labels": {"openebs.io/cstor-pool-instance": name}},
        "spec": {"containers": [{"name": "c", "image": "i"}], "serviceAccountName": "orlop-pool"}})
    return Identity(server, ACCOUNT + "orlop-pool", pod_name=f"pod-of-{name}", pod_uid=pod["metadata"]["uid"])


def make_objects(server):
    """Two of each kind: of the node n1 or the pool or volume "mine", and of n2 or "other"."""
    for owner, host in (("mine", "n1"), ("other", "n2")):
        put(server, device(f"bd-{owner}", on=host))
        put(server, claim(f"bdc-{owner}", f"bd-{owner}", cluster="cluster"))
        put(server, instance(owner, "cluster", {
            **pool_spec(host, group("stripe", f"bd-{owner}")), "hostName": host}))
        server.ask("PATCH", f"{API}/cstorpoolinstances/{owner}", {"metadata": {"labels": {
            "kubernetes.io/hostname": host}}}, MERGE)
        put(server, replica(f"cvr-{owner}", owner))
        server.create(f"{API}/jivavolumes", {"apiVersion": "openebs.io/v1alpha1", "kind": "JivaVolume",
                                             "metadata": {"name": owner}, "spec": {"capacity": "1Gi"}})
        server.create("/apis/topolvm.io/v1/logicalvolumes", {
            "apiVersion": "topolvm.io/v1", "kind": "LogicalVolume", "metadata": {"name": f"lv-{owner}"},
            "spec": {"name": f"lv-{owner}", "nodeName": host, "size": "1Gi"}})
