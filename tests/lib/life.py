"""What the tests of objects' life share: kubectl at a server, and objects to send."""
from tap import Tap, wait_for

tap = Tap()


def until(what, check):
    """Waits for something that the server does in its own time."""
    return tap.ok(wait_for(check), what, "it did not happen")


CORE = "/api/v1"
APPS = "/apis/apps/v1"


def plural(kind, namespace="default", name=""):
    return f"{CORE}/namespaces/{namespace}/{kind}" + (f"/{name}" if name else "")


def config(name, owners=(), **metadata):
    return {"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "ownerReferences": list(owners), **metadata}}


def owner(value, block=None, **change):
    reference = {"apiVersion": value["apiVersion"], "kind": value["kind"],
                 "name": value["metadata"]["name"], "uid": value["metadata"]["uid"], **change}
    if block is not None:
        reference["blockOwnerDeletion"] = block
    return reference


def namespace(name):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def claim(name, size="1Gi", **spec):
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
            "spec": {"accessModes": ["ReadWriteOnce"],
                     "resources": {"requests": {"storage": size}}, **spec}}


def storage_class(name, grows, default=False):
    annotations = {"storageclass.kubernetes.io/is-default-class": "true"} if default else {}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
            "metadata": {"name": name, "annotations": annotations},
            "provisioner": "csi.example.test", "parameters": {"a": "b"},
            "allowVolumeExpansion": grows}


def pod_template(app, image="example.test/a:1"):
    return {"metadata": {"labels": {"app": app}},
            "spec": {"containers": [{"name": "main", "image": image}]}}


def workload(kind, name, **spec):
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name},
            "spec": {"selector": {"matchLabels": {"app": name}},
                     "template": pod_template(name), **spec}}


class Life:
    """A server, asked by kubectl and by plain HTTP."""

    def __init__(self, server):
        self.server = server

    def expect(self, name, argv, status=0, stdout=None, stderr=None, **options):
        return tap.ran(self.server.kubectl(*argv, **options), name, status, stdout, stderr)

    def refused(self, name, reply, status, message, reason=None):
        code, body = reply
        text = body.get("message", "") if isinstance(body, dict) else body
        tap.ok(code == status and message in text and
               (reason is None or body.get("reason") == reason), name, f"{code} {body}")
        return body

    def is_gone(self, path):
        return self.server.get(path)[0] == 404

    def names(self, path):
        """But for what every namespace has."""
        found = {item["metadata"]["name"] for item in self.server.get(path)[1]["items"]}
        return sorted(found - {"kube-root-ca.crt"})
