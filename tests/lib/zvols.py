"""A replicated volume whose replicas are zvols, each in a pool and a process of its own."""
import json
import os

from replicated import REPLICA_PORT, Process, Volume


class ZvolVolume(Volume):
    """program: zvolreplica. A pool is a stripe of one sparse file of `disk` MiB."""

    def __init__(self, programs, program, folder, disk=512, block=4096, **how):
        self.program, self.disk, self.block = program, disk, block
        super().__init__(programs, folder, **how)

    def device(self, i):
        return f"{self.folder}/disk{i}"

    def replica(self, i, store=None):
        if not os.path.exists(self.device(i)):
            with open(self.device(i), "wb") as f:
                f.truncate(self.disk << 20)
        mebibytes = str(int(self.size.removesuffix("Mi")))
        return Process(f"{self.folder}/r{i}.log", self.program, self.device(i), self.name, self.key,
                       f"127.0.0.1{i}", str(REPLICA_PORT), mebibytes, str(self.block))

    def view(self, i):
        """What the pool's process says of its replica last."""
        try:
            with open(self.device(i) + ".view", encoding="utf-8") as f:
                return json.loads(f.read().splitlines()[-1])
        except (OSError, IndexError, ValueError):
            return {}

    def views(self, i):
        with open(self.device(i) + ".view", encoding="utf-8") as f:
            return [json.loads(line) for line in f.read().splitlines()]

    def counts(self, i):
        """Bytes that were compared and copied for replica i since it was last connected."""
        status = self.status()
        return status["volumeStatus"][0]["replicaStatus"][i] if status else {}
