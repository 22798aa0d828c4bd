"""A controller program for a test: runs beside a server, and answers about its health."""
import http.client
import json
import os
import signal
import subprocess

from tap import wait_for

STOP_SECONDS = 60


class Controller:
    """Runs from start() or `with`; its log is JSON lines in a file."""

    def __init__(self, program, server, log, *flags):
        self.program, self.server, self.log, self.flags = program, server, log, flags
        self.process, self._port = None, 0

    def start(self):
        with open(self.log, "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [self.program, "--kubeconfig", self.server.kubeconfig, "--health-port", "0",
                 "--log-format", "json", *self.flags],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log)
        self._port = 0
        return self

    def lines(self, message=None):
        """What it logged, or of that what has this message."""
        found = []
        with open(self.log, encoding="utf-8") as f:
            for line in f:
                if line.startswith("{") and line.endswith("\n"):
                    found.append(json.loads(line))
        return [it for it in found if message is None or it["msg"] == message]

    def _find_port(self):
        found = self.lines("serves health and metrics")
        return found[0]["port"] if found else None

    def get(self, path, method="GET"):
        """The status and text of its own HTTP; (0, "") while it does not listen."""
        self._port = self._port or wait_for(self._find_port)
        connection = http.client.HTTPConnection("127.0.0.1", self._port or 1, timeout=30)
        try:
            connection.request(method, path)
            reply = connection.getresponse()
            return reply.status, reply.read().decode()
        except OSError:
            return 0, ""
        finally:
            connection.close()

    def metric(self, line):
        """The value of a series, or None."""
        for text in self.get("/metrics")[1].splitlines():
            if text.startswith(line + " "):
                return float(text.rsplit(" ", 1)[1])
        return None

    @property
    def ready(self):
        return self.get("/readyz")[0] == 200

    @property
    def leads(self):
        return bool(self.lines("leads"))

    def signal(self, number):
        os.kill(self.process.pid, number)

    def wait(self, seconds=STOP_SECONDS):
        """Its exit status, or None when it had to be killed."""
        try:
            return self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None

    def stop(self):
        self.signal(signal.SIGTERM)
        return self.wait()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.stop()
