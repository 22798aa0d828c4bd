"""An API server for a test: starts, is killed, starts again at the same place; and clients of it."""
import base64
import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess

START_SECONDS = 60


def _pem(text, name):
    found = re.search(rf"{name}: *(\S+)", text)
    return base64.b64decode(found.group(1)) if found else None


class Reply:
    """What the server answered: status, headers, and the body, as JSON where it is that."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)


class Client:
    """One connection, kept open; a request on a broken one raises and the next connects again."""

    def __init__(self, server, timeout=60):
        self.server, self.timeout, self.connection = server, timeout, None

    def _connect(self):
        return self.server.connect(self.timeout)

    def send(self, method, path, body=None, content_type="application/json", headers=None):
        """Sends a request and returns the response, unread."""
        if self.connection is None:
            self.connection = self._connect()
        data = json.dumps(body).encode() if isinstance(body, (dict, list)) else body
        try:
            self.connection.request(method, path, data, {
                **({"Content-Type": content_type} if data is not None and content_type else {}),
                **(headers or {})})
            return self.connection.getresponse()
        except (OSError, http.client.HTTPException):
            self.close()
            raise

    def ask(self, method, path, body=None, **options):
        try:
            response = self.send(method, path, body, **options)
            return Reply(response.status, response.headers, response.read())
        except (OSError, http.client.HTTPException):
            self.close()
            raise

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

    def __init__(self, program, folder, *flags, wrapper=()):
        self.program, self.folder, self.flags, self.wrapper = program, folder, flags, wrapper
        self.process, self.url, self.port, self.context = None, None, 0, None

    def start(self):
        argv = [*self.wrapper, self.program, "--data-dir", self.folder, "--port", str(self.port),
                *self.flags]
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().strip()
        if not self.url:
            raise RuntimeError(f"{argv[0]} did not start: exit status {self.process.wait()}")
        self.port = int(self.url.rsplit(":", 1)[1])
        if self.url.startswith("https") and self.context is None:
            self.context = self._tls()
        return self

    def _tls(self):
        with open(self.kubeconfig, encoding="utf-8") as f:
            text = f.read()
        context = ssl.create_default_context(
            cadata=_pem(text, "certificate-authority-data").decode())
        pair = os.path.join(self.folder, "client.pem")
        descriptor = os.open(pair, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "wb") as f:
            f.write(_pem(text, "client-certificate-data") + _pem(text, "client-key-data"))
        context.load_cert_chain(pair)
        return context

    @property
    def kubeconfig(self):
        return os.path.join(self.folder, "admin.kubeconfig")

    def connect(self, timeout):
        if self.context:
            return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=timeout,
                                               context=self.context)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def socket(self, timeout=60):
        """A bare connection, for what no client library would send."""
        raw = socket.create_connection(("127.0.0.1", self.port), timeout)
        return self.context.wrap_socket(raw, server_hostname="127.0.0.1") if self.context else raw

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """Ends it politely; its exit status, or None when it had to be killed."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout=START_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def resident_mb(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as f:
            return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1)) / 1024

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()
