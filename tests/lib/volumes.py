"""LogicalVolumes for tests: what the API says of them, and what a node's own LVM does."""
import json
import os

from tap import run, wait_for

GROUPS = ("topolvm.cybozu.com", "topolvm.io")
MEBI = 1 << 20


def volume(name, node, size, group=GROUPS[0], **spec):
    """A manifest."""
    return {"apiVersion": f"{group}/v1", "kind": "LogicalVolume", "metadata": {"name": name},
            "spec": {"name": name, "nodeName": node, "size": size, **spec}}


def manifest(*objects):
    """Several, for kubectl."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})


class Lvm:
    """The LVM of a node, by its data folder."""

    def __init__(self, folder):
        self.folder = folder
        self.env = {**os.environ, "LVM_SYSTEM_DIR": f"{folder}/lvm/etc", "LVM_SUPPRESS_FD_WARNINGS": "1"}

    def run(self, *words):
        return run(*words, env=self.env)

    def report(self, command, columns):
        """Rows of lvs or vgs; [] while it cannot be asked."""
        result = self.run(command, "--reportformat", "json", "--units", "b", "--nosuffix", "-o", columns)
        if result.returncode != 0:
            return []
        return json.loads(result.stdout)["report"][0][command[:-1]]

    def volumes(self):
        """name -> size"""
        return {lv["lv_name"]: int(lv["lv_size"]) for lv in self.report("lvs", "lv_name,lv_size")}

    def free(self):
        return int(self.report("vgs", "vg_free")[0]["vg_free"])


def agree(objects, lvms):
    """"" when LVM has exactly what these objects say, on each node; else what is different."""
    for node, lvm in lvms.items():
        said = {o["status"]["volumeID"]: parse(o["status"]["currentSize"]) for o in objects
                if o["spec"]["nodeName"] == node and o.get("status", {}).get("volumeID")}
        there = lvm.volumes()
        if said != there:
            return f"{node}: objects say {said}, LVM {there}"
        wrong = [o for o in objects if o.get("status", {}).get("volumeID", o["metadata"]["uid"])
                 != o["metadata"]["uid"]]
        if wrong:
            return f"not called by their uid: {wrong}"
    return ""


def parse(quantity):
    """The quantities that the agent writes."""
    units = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}
    return int(quantity[:-2]) * units[quantity[-2:]] if quantity[-2:] in units else int(quantity)


def settle(question, seconds=60):
    """Waits until it answers ""; what it answered last."""
    last = [question()]

    def asked():
        last[0] = question()
        return last[0] == ""
    wait_for(asked, seconds)
    return last[0]
