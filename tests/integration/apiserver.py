#!/usr/bin/env python3
"""The API server, as kubectl sees it.

apiserver.py APISERVER TOP ORLOP
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
from pool_objects import provide  # noqa: E402
from server import Server  # noqa: E402
from tap import Scratch, Tap  # noqa: E402

program, top, orlop = sys.argv[1:4]
tap = Tap()


def expect(server, name, argv, status=0, stdout=None, stderr=None, **options):
    return tap.ran(server.kubectl(*argv, **options), name, status, stdout, stderr)


with Scratch() as scratch:
    data = scratch.file("data")
    pools = f"{top}/examples/cspc/mirror-two-nodes.yaml"
    with Server(program, data) as server:
        tap.ok(server.url.startswith("https://127.0.0.1:"), "it says where it listens", server.url)
        expect(server, "version", ["version"], stdout="Server Version")
        expect(server, "api-resources", ["api-resources"], stdout="cspc")
        expect(server, "explain", ["explain", "cspc.spec.pools"], stdout="nodeSelector")
        expect(server, "namespaces are there", ["get", "ns"], stdout="default")
        expect(server, "its namespace", ["create", "-f", "-"], stdout="created",
               stdin="apiVersion: v1\nkind: Namespace\nmetadata: {name: openebs}\n")
        provide(server, orlop, pools, *(f"{top}/examples/cspc/{it}.yaml"
                                        for it in ("stripe", "stripe-four-devices", "all-roles")))
        expect(server, "create", ["create", "-f", pools], stdout="cstor-pool-mirror created")
        expect(server, "create again", ["create", "-f", pools], status=1, stderr="AlreadyExists")
        expect(server, "get", ["get", "cspc", "-n", "openebs"], stdout="HEALTHYINSTANCES")
        expect(server, "get -o name", ["get", "cspc", "-A", "-o", "name"], stdout="cstor-pool-mirror")
        expect(server, "get what is not there", ["get", "cspc", "none"], status=1,
               stderr='cstorpoolclusters.openebs.io "none" not found')
        expect(server, "label", ["label", "cspc", "cstor-pool-mirror", "-n", "openebs", "team=a"])
        expect(server, "select", ["get", "cspc", "-A", "-l", "team=a", "-o", "name"],
               stdout="cstor-pool-mirror")
        result = expect(server, "select nothing", ["get", "cspc", "-A", "-l", "team!=a", "-o", "name"])
        tap.equal(result.stdout, "", "nothing is selected")
        expect(server, "an edit that is refused", [
            "patch", "cspc", "cstor-pool-mirror", "-n", "openebs", "--type=json", "-p",
            '[{"op":"remove","path":"/spec/pools/0/raidGroups/1"}]'], status=1,
               stderr="is gone; a group can neither be removed")
        expect(server, "an unknown field", ["create", "-f", "-"], status=1, stderr="unknown field",
               stdin="apiVersion: openebs.io/v1alpha1\nkind: JivaVolume\nmetadata: {name: j}\n"
                     "spec: {capacity: 5Gi, colour: red}\n")
        expect(server, "apply", ["apply", "-f", f"{top}/examples/cspc/stripe.yaml"], stdout="created")
        expect(server, "apply what has its own words", [
            "apply", "-f", f"{top}/examples/cspc/all-roles.yaml"], stdout="created")
        expect(server, "apply it again", ["apply", "-f", f"{top}/examples/cspc/all-roles.yaml"],
               stdout="unchanged")
        expect(server, "apply an expansion",
               ["apply", "-f", f"{top}/examples/cspc/stripe-four-devices.yaml"], stdout="configured")
        published = expect(server, "the published version of the same object",
                           ["get", "cstorpoolclusters.v1.cstor.openebs.io", "cstor-pool-stripe",
                            "-n", "openebs", "-o", "json"])
        if published.returncode == 0:
            spec = json.loads(published.stdout)["spec"]["pools"][0]
            tap.equal(len(spec.get("dataRaidGroups", [{}])[0].get("blockDevices", [])), 4,
                      "it has the published names")
        expect(server, "scale-out is watched", ["wait", "cspc/cstor-pool-stripe", "-n", "openebs",
                                                "--for=jsonpath={.metadata.generation}=2",
                                                "--timeout=20s"])
        expect(server, "a status", ["patch", "cspc", "cstor-pool-stripe", "-n", "openebs", "--subresource=status",
                                    "--type", "merge", "-p", '{"status":{"healthyInstances":1}}'])
        result = expect(server, "columns show it", ["get", "cspc", "cstor-pool-stripe", "-n",
                                                    "openebs"])
        tap.equal(result.stdout.split("\n")[1].split()[:2], ["cstor-pool-stripe", "1"],
                  "the column has the value")
        watching = server.kubectl_begin("get", "jv", "-A", "-w", "-o", "name")
        for name in ("one", "two"):
            expect(server, f"create {name}", ["create", "-f", "-"], stdin=json.dumps(
                {"apiVersion": "openebs.io/v1alpha1", "kind": "JivaVolume",
                 "metadata": {"name": name}, "spec": {"capacity": "1Gi"}}))
            tap.equal(watching.stdout.readline(), f"jivavolume.openebs.io/{name}\n",
                      f"a watch sees {name}")
        watching.kill()
        watching.wait()
        server.kill()

    with Server(program, data) as server:
        expect(server, "everything is there after a crash", ["get", "cspc", "-A", "-o", "name"],
               stdout="cstor-pool-stripe")
        expect(server, "delete and wait", ["delete", "cspc", "--all", "-n", "openebs",
                                           "--timeout=20s"], stdout="deleted")
        result = expect(server, "nothing is left", ["get", "cspc", "-A", "-o", "name"])
        tap.equal(result.stdout, "", "the list is empty")
    tap.equal(server.status, 0, "it stops when told")
tap.done()
