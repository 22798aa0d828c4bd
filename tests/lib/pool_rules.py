"""Asks a server, or `orlop validate`, about the cases of pool_cases.py."""
import json

from pool_cases import CASES, NODES
from pool_objects import path, put
from tap import run


def prepare(server):
    for it in NODES:
        put(server, it)


def claims_of(server, namespace):
    """Predecessors by device, of claims that the cluster has."""
    items = server.get(path("BlockDeviceClaim", namespace))[1]["items"]
    return {it["spec"]["blockDeviceName"]: it["metadata"]["annotations"]["openebs.io/bd-predecessor"]
            for it in items
            if it["metadata"].get("labels", {}).get("openebs.io/cstor-pool-cluster") == "pool"
            and it["metadata"].get("annotations", {}).get("openebs.io/bd-predecessor")}


def target_of(case):
    return case.other.split("/") if case.other else ("CStorPoolCluster", "pool")


def ask(server, case, namespace):
    """The last step, over HTTP: its status and what was said."""
    kind, name = target_of(case)
    where = path(kind, namespace)
    if case.new is None:
        status, reply = server.ask("DELETE", f"{where}/{name}")
    elif case.old:
        status, reply = server.ask("PUT", f"{where}/{name}", case.new)
    else:
        status, reply = server.ask("POST", where, case.new)
    return status in (200, 201), reply.get("message", "") if isinstance(reply, dict) else reply


def ask_kubectl(server, case, namespace):
    """The same with kubectl, as people do it."""
    kind, name = target_of(case)
    if case.new is None:
        result = server.kubectl("delete", "-n", namespace, f"{kind.lower()}.openebs.io/{name}",
                                "--wait=false")
    else:
        result = server.kubectl("replace" if case.old else "create", "-n", namespace, "-f", "-",
                                "--validate=false", stdin=case.new)
    return result.returncode == 0, result.stderr


def problem_with(case, allowed, said):
    """What is wrong with an answer; None: nothing."""
    if allowed == case.refused:
        return f"{'allowed' if allowed else 'refused'}: {said}"
    if not case.refused:
        return None
    for word in (f"[{case.rule}]", case.at, case.says):
        if word not in said:
            return f"no {word!r} in: {said}"
    return None


def check(tap, server, index, case, how=ask):
    namespace = f"case-{index}"
    server.create("/api/v1/namespaces", {"metadata": {"name": namespace}})
    for it in case.before:
        put(server, it, namespace)
    if case.old:
        put(server, case.old, namespace)
    for it in case.after:
        put(server, it, namespace)
    kind, name = target_of(case)
    before = server.get(f"{path(kind, namespace)}/{name}")[1]
    problem = problem_with(case, *how(server, case, namespace))
    after = server.get(f"{path(kind, namespace)}/{name}")[1]
    if not problem and case.refused and before != after:
        problem = f"it was refused and changed: {before} {after}"
    if not problem and case.claims is not None and case.claims != claims_of(server, namespace):
        problem = f"claims are {claims_of(server, namespace)}, not {case.claims}"
    tap.ok(not problem, f"{case.rule}: {case.title}", problem or "")


def check_all(tap, server, kubectl=lambda case: case.refused):
    prepare(server)
    for index, case in enumerate(CASES):
        check(tap, server, index, case, ask_kubectl if kubectl(case) else ask)


def check_files(tap, orlop, scratch, expected, update=False):
    """Those that `orlop validate` can be asked: all but deletions. What it says to each stands in a file."""
    said = ""
    for case in CASES:
        if case.new is None:
            continue
        cluster = {(it["kind"], it["metadata"]["name"]): it
                   for it in [*NODES, *case.before, *case.after]}
        file = scratch.file("cluster.json", json.dumps(
            {"apiVersion": "v1", "kind": "List", "items": list(cluster.values())}))
        old = ["--old", scratch.file("old.json", json.dumps(case.old))] if case.old else []
        new = scratch.file("new.json", json.dumps(case.new))
        result = run(orlop, "validate", "--cluster", file, *old, "-o", "json", new)
        problems = [f"{it['field']}: {it['message']}" for it in json.loads(result.stdout)]
        problem = problem_with(case, result.returncode == 0, "\n".join(problems))
        tap.ok(not problem, f"validate: {case.rule}: {case.title}", problem or "")
        said += "".join(f"{case.title}\n    {it}\n" for it in problems)
    if update:
        with open(expected, "w", encoding="utf-8") as f:
            f.write(said)
    with open(expected, encoding="utf-8") as f:
        tap.equal(said.splitlines(), f.read().splitlines(), "in these words")
