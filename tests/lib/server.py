"""An API server for a test: starts, is killed, starts again at the same place; and clients of it.

They are what users have: TLS, and the credentials that the server made for its administrator. A token
in their place is that of somebody else, and "" is nobody.
"""
import base64
import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess

from tap import run

START_SECONDS = 60
MERGE = "application/merge-patch+json"


def _pem(text, name):
    found = re.search(rf"{name}: *(\S+)", text)
    return base64.b64decode(found.group(1)) if found else None


def _text(value):
    return json.dumps(value) if isinstance(value, (dict, list)) else value


class Reply:
    """What the server answered: status, headers, and the body, as JSON where it is that."""

    def __init__(self, response):
        self.status, self.headers, self.body = response.status, response.headers, response.read()

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def value(self):
        """JSON, or the text."""
        try:
            return self.json
        except ValueError:
            return self.text

    @property
    def text(self):
        return self.body.decode()

    @property
    def warnings(self):
        return self.headers.get_all("Warning") or []


class Client:
    """One connection, kept open; a request on a broken one raises and the next connects again."""

    def __init__(self, server, timeout=60, token=None):
        self.server, self.timeout, self.token, self.connection = server, timeout, token, None

    def _connect(self):
        return self.server.connect(self.timeout, self.token)

    def send(self, method, path, body=None, content_type="application/json", headers=None):
        """Sends a request and returns the response, unread. A connection that was kept may have been shut."""
        kept = self.connection is not None
        if not kept:
            self.connection = self._connect()
        data = _text(body)
        try:
            self.connection.request(method, path, data, {
                **({"Content-Type": content_type} if data is not None and content_type else {}),
                **({"Authorization": f"Bearer {self.token}"} if self.token else {}),
                **(headers or {})})
            return self.connection.getresponse()
        except (OSError, http.client.HTTPException) as e:
            self.close()
            if kept and isinstance(e, (http.client.RemoteDisconnected, ssl.SSLEOFError, BrokenPipeError)):
                return self.send(method, path, body, content_type, headers)
            raise

    def ask(self, method, path, body=None, **options):
        try:
            return Reply(self.send(method, path, body, **options))
        except (OSError, http.client.HTTPException):
            self.close()
            raise

    def merge(self, path, value):
        """Merge-patches an object, then its status, which is a call of its own; the last Reply. With a
        resourceVersion both are for what was read."""
        rest = {k: v for k, v in value.items() if k != "status"}
        reply = self.ask("PATCH", path, rest, content_type=MERGE) if rest else None
        if "status" in value and (reply is None or reply.status == 200):
            seen = {"metadata": {"resourceVersion": reply.json["metadata"]["resourceVersion"]}} \
                if "resourceVersion" in rest.get("metadata", {}) else {}
            reply = self.ask("PATCH", f"{path}/status", {**seen, "status": value["status"]}, content_type=MERGE)
        return reply

    def create(self, path, value):
        """Creates an object and writes its status, if the value has one; the last Reply."""
        reply = self.ask("POST", path, value)
        if reply.status == 201 and "status" in value:
            reply = self.merge(f"{path}/{value['metadata']['name']}", {"status": value["status"]})
        return reply

    def events(self, path):
        """The events of a watch, until it ends or breaks."""
        response = self.send("GET", path)
        if response.status != 200:
            raise ConnectionError(f"{response.status} {response.read()}")
        while line := response.readline():
            yield json.loads(line)

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None


class Server:
    """Runs from start() or `with`; always on the port it had first."""

    def __init__(self, program, folder, *flags, wrapper=(), own_mounts=False, log=None):
        self.program, self.folder, self.flags, self.wrapper = program, folder, flags, wrapper
        self.own_mounts = own_mounts  # the wrapper mounted something that only it sees
        self.log = log  # a file for its standard error; None: ours
        self.process, self.url, self.port, self.context = None, None, 0, None
        self.status = None  # with which it ended

    def start(self):
        argv = [*self.wrapper, self.program, "--data-dir", self.folder, "--port", str(self.port),
                *self.flags]
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=self.log, text=True)
        self.url = self.process.stdout.readline().strip()
        if not self.url:
            raise RuntimeError(f"{argv[0]} did not start: exit status {self.process.wait()}")
        return self.reach(self.url)

    def reach(self, url):
        """Of one that is there, in its folder, also when somebody else has started it."""
        self.url, self.port = url, int(url.rsplit(":", 1)[1])
        if url.startswith("https") and self.context is None:
            self.context = self._tls()
        return self

    def _tls(self):
        with open(self.kubeconfig, encoding="utf-8") as f:
            text = f.read()
        context = ssl.create_default_context(
            cadata=_pem(text, "certificate-authority-data").decode())
        pair = f"{self.folder}.client.pem"
        descriptor = os.open(pair, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "wb") as f:
            f.write(_pem(text, "client-certificate-data") + _pem(text, "client-key-data"))
        context.load_cert_chain(pair)
        return context

    @property
    def inside(self):
        """Its folder, as it sees it itself."""
        return f"/proc/{self.process.pid}/root{self.folder}" if self.own_mounts else self.folder

    @property
    def kubeconfig(self):
        return os.path.join(self.inside, "admin.kubeconfig")

    @property
    def ca(self):
        return os.path.join(self.inside, "pki", "ca.crt")

    def connect(self, timeout, token=None):
        """With the administrator's certificate, unless there is a token."""
        if not self.context:
            return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        context = self.context if token is None else ssl.create_default_context(cafile=self.ca)
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout,
                                           context=context)

    def request(self, method, path, body=None, token=None, timeout=60, **options):
        """The Reply to one request, on a connection of its own."""
        client = Client(self, timeout, token)
        try:
            return client.ask(method, path, body, **options)
        finally:
            client.close()

    def send(self, method, path, body=None, content_type="application/json", **options):
        """The status, the JSON or text, and the warnings of one request."""
        reply = self.request(method, path, body, content_type=content_type, **options)
        return reply.status, reply.value, reply.warnings

    def ask(self, *what, **options):
        """The status and the JSON, or text, of one request."""
        return self.send(*what, **options)[:2]

    def get(self, path, **options):
        return self.ask("GET", path, **options)

    def merge(self, path, value):
        """The status and JSON of a merge patch, of which the object's status is a second one."""
        client = Client(self)
        try:
            reply = client.merge(path, value)
            return reply.status, reply.value
        finally:
            client.close()

    def create(self, path, value):
        """The object, with its status if the value has one."""
        client = Client(self)
        try:
            reply = client.create(path, value)
        finally:
            client.close()
        if reply.status not in (200, 201):
            raise AssertionError(f"POST {path}: {reply.status} {reply.value}")
        return reply.value

    def _kubectl(self, argv, token):
        if not self.context:
            access = ["--server", self.url]
        elif token is None:
            access = ["--kubeconfig", self.kubeconfig]
        else:
            access = ["--server", self.url, "--certificate-authority", self.ca,
                      *(["--token", token] if token else [])]
        return ["kubectl", *access, *argv]

    @property
    def kubectl_env(self):
        """An environment in which kubectl knows no other cluster and keeps its caches beside ours."""
        return {**os.environ, "HOME": f"{self.folder}.kubectl", "KUBECONFIG": "/dev/null"}

    def kubectl(self, *argv, stdin=None, token=None):
        return run(*self._kubectl(argv, token), stdin=_text(stdin), env=self.kubectl_env)

    def kubectl_begin(self, *argv, stderr=None):
        """One that goes on; its process."""
        return subprocess.Popen(self._kubectl(argv, None), stdout=subprocess.PIPE, stderr=stderr,
                                text=True, env=self.kubectl_env)

    def socket(self, timeout=60):
        """A bare connection, for what no client library would send."""
        raw = socket.create_connection(("127.0.0.1", self.port), timeout)
        return self.context.wrap_socket(raw, server_hostname="127.0.0.1") if self.context else raw

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def stop(self):
        """Ends it politely; its exit status, or None when it had to be killed."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.status = self.process.wait(timeout=START_SECONDS)
            self.process.stdout.close()
        except subprocess.TimeoutExpired:
            self.kill()
        return self.status

    def resident_mb(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as f:
            return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1)) / 1024

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()
