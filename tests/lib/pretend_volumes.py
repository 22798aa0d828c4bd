"""Nodes with volume groups that only pretend: what orlop-node does with LogicalVolumes, without LVM.

Each says what is free before it says that a volume is made, rounds sizes up to extents, refuses what
does not fit (and counts that), and removes what is deleted. `silent` nodes do nothing, and what
`ignores` says is not looked at.
"""
import json

from cluster import STATUS, Nodes, now
from server import Client

EXTENT = 4 << 20
UNITS = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}
LVS = "/apis/topolvm.io/v1/logicalvolumes"


def size_of(text):
    text = str(text)
    return int(text[:-2]) * UNITS[text[-2:]] if text[-2:] in UNITS else int(text)


def size_text(size):
    for unit, scale in reversed(UNITS.items()):
        if size % scale == 0:
            return f"{size // scale}{unit}"
    return str(size)


class VolumeNodes(Nodes):
    """`room` bytes of the class on every node; `fails` maps a volume's name to (code, message)."""

    def __init__(self, server, *names, room, device_class="ssd", group="topolvm.io"):
        super().__init__(server, *names)
        self.room, self.device_class, self.group = dict.fromkeys(names, room), device_class, group
        self.made = {name: {} for name in names}  # node -> uid -> bytes
        self.tried, self.refusals, self.least, self.fails = {}, 0, room, {}
        self.ignores = lambda lv: False

    def free(self, node):
        return self.room[node] - sum(self.made[node].values())

    def announce(self, client, node):
        free = self.free(node)
        self.least = min(self.least, free)
        classes = [{"name": self.device_class, "vg": "vg0", "type": "thick", "default": True,
                    "sizeBytes": self.room[node], "freeBytes": free}]
        client.ask("PATCH", f"/api/v1/nodes/{node}", {"metadata": {"annotations": {
            f"capacity.{self.group}/{self.device_class}": str(free),
            f"capacity.{self.group}/00default": str(free),
            f"{self.group}/device-classes": json.dumps(classes)}}}, content_type=STATUS)

    def _node(self, client, name):
        super()._node(client, name)
        self.announce(client, name)

    def _renew(self, client, name):
        """Ready again, if this machine was too busy for a while."""
        super()._renew(client, name)
        reply = client.ask("GET", f"/api/v1/nodes/{name}")
        conditions = reply.json.get("status", {}).get("conditions", []) if reply.status == 200 else []
        for condition in conditions:
            if condition["type"] == "Ready" and condition["status"] != "True":
                condition.update(status="True", reason="KubeletReady", lastTransitionTime=now())
                client.ask("PATCH", f"/api/v1/nodes/{name}/status",
                           {"status": {"conditions": conditions}}, content_type=STATUS)

    def resize(self, node, room):
        """Another disk, or one less."""
        client = Client(self.server)
        self.room[node] = room
        self.announce(client, node)
        client.close()

    def _say(self, client, lv, **status):
        client.ask("PATCH", f"{LVS}/{lv['metadata']['name']}/status", {"status": status},
                   content_type=STATUS)

    def _remove(self, client, lv, made):
        metadata = lv["metadata"]
        mine = [f for f in metadata.get("finalizers", []) if f.endswith("/logicalvolume")]
        if made.pop(metadata["uid"], None):
            self.announce(client, lv["spec"]["nodeName"])
        client.ask("PATCH", f"{LVS}/{metadata['name']}", {"metadata": {"finalizers": [
            f for f in metadata.get("finalizers", []) if f not in mine]}}, content_type=STATUS)

    def _volume(self, client, lv):
        metadata, spec, node = lv["metadata"], lv["spec"], lv["spec"]["nodeName"]
        if node not in self.names or node in self.silent or self.ignores(lv):
            return
        made, uid = self.made[node], metadata["uid"]
        if "deletionTimestamp" in metadata:
            if metadata.get("finalizers"):
                self._remove(client, lv, made)
            return
        asked = (spec["size"], [v for k, v in metadata.get("annotations", {}).items()
                                if k.endswith("/resize-requested-at")])
        wanted, has = -(-size_of(spec["size"]) // EXTENT) * EXTENT, made.get(uid, 0)
        if wanted <= has or self.tried.get(uid) == asked:
            return
        self.tried[uid] = asked
        if metadata["name"] in self.fails:
            code, message = self.fails[metadata["name"]]
            self._say(client, lv, code=code, message=message)
        elif wanted - has > self.free(node):
            self.refusals += 1
            self._say(client, lv, code=11 if has else 8,
                      message=f"{size_text(wanted - has)} are wanted, {self.free(node)} are free")
        else:
            made[uid] = wanted
            self.announce(client, node)
            self._say(client, lv, volumeID=uid, currentSize=size_text(wanted), code=0, message="")

    def _agent(self):
        client = Client(self.server)
        while not self.ended.wait(0.02):
            try:
                for lv in client.ask("GET", LVS).json.get("items", []):
                    self._volume(client, lv)
                for pod in client.ask("GET", "/api/v1/pods").json.get("items", []):
                    self._run(client, pod)
            except (OSError, ValueError, KeyError):
                client.close()
        client.close()
