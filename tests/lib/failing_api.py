"""An API server that fails: a proxy before a real one, which spoils writes.

    controller --> FailingApi: each Nth write gets the next fault --> orlop-apiserver

Some faults come before the server has seen the write, some after it was done, so that whoever asked does not know.
Reads and watches pass; so do events, whose loss nobody would notice.
"""
import http.server
import json
import threading
import time

from server import Client

KUBECONFIG = """kind: Config
current-context: c
contexts: [{{name: c, context: {{cluster: k}}}}]
clusters: [{{name: k, cluster: {{server: "http://127.0.0.1:{}"}}}}]
"""
SLOW_SECONDS = 1.5  # this is a fault


def _status(code, reason):
    return code, {"Content-Type": "application/json"}, json.dumps({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason,
        "message": f"spoiled: {reason}"}).encode()


# What becomes of a write: a function of one that forwards it and returns the answer; None: no answer at all.
FAULTS = {
    "a conflict": lambda forward: _status(409, "Conflict"),
    "an error": lambda forward: _status(500, "InternalError"),
    "done, and an error": lambda forward: forward() and _status(500, "InternalError"),
    "done, and no answer": lambda forward: forward() and None,
    "nobody is there": lambda forward: _status(503, "ServiceUnavailable"),
    "slow": lambda forward: time.sleep(SLOW_SECONDS) or forward(),
}


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def _forward(self):
        """Status, headers and body of the server's answer."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        reply = self.server.api.request(self.command, self.path, body.decode() or None,
                                        content_type=self.headers.get("Content-Type"))
        return reply.status, {"Content-Type": reply.headers.get("Content-Type", "application/json")}, reply.body

    def _answer(self, answer):
        if answer is None:
            self.close_connection = True
            return
        status, headers, body = answer
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _watch(self):
        client = Client(self.server.api, timeout=3600)
        response = client.send("GET", self.path)
        self.send_response(response.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            while line := response.readline():
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            self.wfile.write(b"0\r\n\r\n")
        finally:
            client.close()

    def do_GET(self):
        try:
            if "watch=1" in self.path or "watch=true" in self.path:
                self._watch()
            else:
                self._answer(self._forward())
        except OSError:
            self.close_connection = True

    def _write(self):
        try:
            fault = None if "/events" in self.path else self.server.next_fault()
            if fault in ("a conflict", "an error", "nobody is there"):
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self._answer(FAULTS[fault](self._forward) if fault else self._forward())
        except OSError:
            self.close_connection = True

    do_POST = do_PUT = do_PATCH = do_DELETE = _write


class FailingApi(http.server.ThreadingHTTPServer):
    """Before `api`, a Server. every: of how many writes one is spoiled; 0: none."""
    daemon_threads = True

    def __init__(self, api, folder):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.api, self.every, self.writes, self.done = api, 0, 0, {}
        self.lock = threading.Lock()
        self.kubeconfig = f"{folder}/failing.kubeconfig"
        with open(self.kubeconfig, "w", encoding="utf-8") as f:
            f.write(KUBECONFIG.format(self.server_address[1]))
        self.thread = threading.Thread(target=self.serve_forever, daemon=True)
        self.thread.start()

    def next_fault(self):
        with self.lock:
            self.writes += 1
            if not self.every or self.writes % self.every:
                return None
            fault = list(FAULTS)[sum(self.done.values()) % len(FAULTS)]
            self.done[fault] = self.done.get(fault, 0) + 1
            return fault

    def handle_error(self, request, client_address):
        pass  # whoever was killed does not read its answer

    def close(self):
        self.shutdown()
        self.server_close()
