"""A client of CSI that shares no code with ours: gRPC's own library, and messages from the descriptor of csi.proto."""
import os
import subprocess
import sys

sys.path.append("/usr/lib/python3/dist-packages")  # Debian's, for whichever python3 runs this
import grpc  # noqa: E402
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # noqa: E402

CODES = {code.name: code for code in grpc.StatusCode}


class Messages:
    """Messages.CreateVolumeRequest(name="x"), by the .proto file."""

    def __init__(self, proto, folder):
        path = os.path.join(folder, "csi.desc")
        subprocess.run(["protoc-c", f"--descriptor_set_out={path}", f"-I{os.path.dirname(proto)}", proto], check=True)
        files = descriptor_pb2.FileDescriptorSet()
        with open(path, "rb") as f:
            files.ParseFromString(f.read())
        self.pool = descriptor_pool.DescriptorPool()
        for it in files.file:
            self.pool.Add(it)
        self.factory = message_factory.MessageFactory(self.pool)

    def __getattr__(self, name):
        return self.factory.GetPrototype(self.pool.FindMessageTypeByName(f"csi.v1.{name}"))


class Csi:
    """One driver's socket. A call returns the answer, or the name of the code with which it failed."""

    SERVICES = {"GetPluginInfo": "Identity", "GetPluginCapabilities": "Identity", "Probe": "Identity"}

    def __init__(self, messages, socket):
        self.m = messages
        self.channel = grpc.insecure_channel(f"unix:{socket}")
        self.details = ""

    def call(self, rpc, timeout=60, service=None, **fields):
        request, response = getattr(self.m, f"{rpc}Request"), getattr(self.m, f"{rpc}Response")
        service = service or self.SERVICES.get(rpc, "Node" if rpc.startswith("Node") else "Controller")
        ask = self.channel.unary_unary(f"/csi.v1.{service}/{rpc}", request_serializer=lambda m: m.SerializeToString(),
                                       response_deserializer=response.FromString)
        try:
            return ask(request(**fields), timeout=timeout)
        except grpc.RpcError as e:
            self.details = e.details()
            return e.code().name

    def close(self):
        self.channel.close()
