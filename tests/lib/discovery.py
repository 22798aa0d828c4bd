"""Just enough of a Kubernetes API for `kubectl create --dry-run=client`: discovery on loopback.

kubectl asks which resources there are before it reads a manifest, even when nothing is sent. This
answers that, for the kinds it is given, and nothing else.
"""
import http.server
import json
import threading

CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", False)
CSPC = ("openebs.io/v1alpha1", "CStorPoolCluster", "cstorpoolclusters", True)


def add_openapi(replies, group, version, kind, plural):
    """As much OpenAPI as makes kubectl leave the validation of fields to the server."""
    gvk = {"group": group, "version": version, "kind": kind}
    place = f"apis/{group}/{version}"
    replies.setdefault("/openapi/v3", {"paths": {}})["paths"][place] = {
        "serverRelativeURL": f"/openapi/v3/{place}?hash=1"}
    replies[f"/openapi/v3/{place}"] = {
        "openapi": "3.0.0", "info": {"title": "x", "version": "1"},
        "paths": {f"/{place}/namespaces/{{namespace}}/{plural}/{{name}}": {"patch": {
            "x-kubernetes-action": "patch", "x-kubernetes-group-version-kind": gvk, "responses": {},
            "parameters": [{"name": "dryRun", "in": "query"},
                           {"name": "fieldValidation", "in": "query"}]}}},
        "components": {"schemas": {kind: {"type": "object",
                                          "x-kubernetes-group-version-kind": [gvk]}}}}


class Discovery:
    """`with Discovery([CRD]) as server: run("kubectl", "--server", server.url, ...)`

    resources are (apiVersion, kind, plural, namespaced); replies are further paths and their JSON.
    """

    def __init__(self, resources, replies=None):
        replies = {"/version": {"major": "1", "minor": "32", "gitVersion": "v1.32.0"},
                   "/api": {"kind": "APIVersions", "versions": ["v1"]},
                   "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": []},
                   "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
                   **(replies or {})}
        for group_version, kind, plural, namespaced in resources:
            place = "/api/v1" if group_version == "v1" else "/apis/" + group_version
            if place not in replies:
                group, version = group_version.split("/")
                entry = {"groupVersion": group_version, "version": version}
                replies["/apis"]["groups"].append(
                    {"name": group, "versions": [entry], "preferredVersion": entry})
                replies[place] = {"kind": "APIResourceList", "apiVersion": "v1",
                                  "groupVersion": group_version, "resources": []}
                add_openapi(replies, group, version, kind, plural)
            replies[place]["resources"].append(
                {"name": plural, "singularName": kind.lower(), "kind": kind,
                 "namespaced": namespaced, "verbs": ["create", "get", "list", "patch"]})

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                reply = replies.get(self.path.split("?")[0])
                body = json.dumps(reply if reply is not None else {
                    "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404}).encode()
                self.send_response(200 if reply is not None else 404)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
