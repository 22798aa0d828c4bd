"""What the tests of objects' life share: a server, kubectl at it, and objects to send."""
import http.client
import json
import signal
import subprocess
import time
import urllib.parse

from tap import Tap, run

tap = Tap()
DEADLINE = 60  # seconds, for whatever the server does by itself


class Server:
    """One on loopback until the block ends; kill() ends it as a crash would."""

    def __init__(self, program, folder, *flags):
        self.program, self.folder, self.flags, self.status = program, folder, flags, None

    def __enter__(self):
        self.process = subprocess.Popen(
            [self.program, "--data-dir", self.folder, "--port", "0", "--plain-http", *self.flags],
            stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.status = self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def connect(self):
        where = urllib.parse.urlsplit(self.url)
        return http.client.HTTPConnection(where.hostname, where.port, timeout=60)

    def ask(self, method, path, body=None, content_type="application/json"):
        """The status and the JSON, or text, of one request."""
        connection = self.connect()
        headers = {"Content-Type": content_type} if content_type and body is not None else {}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        reply = connection.getresponse()
        text = reply.read().decode()
        connection.close()
        try:
            return reply.status, json.loads(text)
        except ValueError:
            return reply.status, text

    def get(self, path):
        return self.ask("GET", path)

    def create(self, path, value):
        status, reply = self.ask("POST", path, value)
        if status != 201:
            raise AssertionError(f"POST {path}: {status} {reply}")
        return reply


def until(what, check):
    """Waits for something that the server does in its own time."""
    end = time.monotonic() + DEADLINE
    while not check():
        if time.monotonic() > end:
            return tap.ok(False, what, "it did not happen")
        time.sleep(0.05)
    return tap.ok(True, what)


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

    def __init__(self, server, scratch):
        self.server, self.scratch = server, scratch

    def kubectl(self, *argv, stdin=None):
        return run("kubectl", "--server", self.server.url, *argv, stdin=stdin,
                   env=self.scratch.kubectl_env())

    def expect(self, name, argv, status=0, stdout=None, stderr=None, **options):
        result = self.kubectl(*argv, **options)
        passed = result.returncode == status
        passed &= stdout is None or stdout in result.stdout
        passed &= stderr is None or stderr in result.stderr
        tap.ok(passed, name, f"exit status {result.returncode}\n{result.stdout}{result.stderr}")
        return result

    def refused(self, name, reply, status, message, reason=None):
        code, body = reply
        text = body.get("message", "") if isinstance(body, dict) else body
        tap.ok(code == status and message in text and
               (reason is None or body.get("reason") == reason), name, f"{code} {body}")
        return body

    def is_gone(self, path):
        return self.server.get(path)[0] == 404

    def names(self, path):
        return sorted(item["metadata"]["name"] for item in self.server.get(path)[1]["items"])
