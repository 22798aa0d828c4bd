"""A small iSCSI initiator made of sockets and bytes, for what real ones do not do: go silent in the middle,
break rules, count what comes back."""
import hashlib
import socket
import struct

NO_TAG = 0xffffffff


class Initiator:
    """One connection. login() first; then command(), read(), write() and the like."""

    def __init__(self, port, target, name="iqn.2026-01.test:python", isid=1, host="127.0.0.1"):
        self.sock = socket.create_connection((host, port), timeout=20)
        self.target, self.name, self.isid = target, name, isid
        self.cmdsn, self.itt = 1, 1

    def close(self):
        self.sock.close()

    def send(self, opcode, flags, data=b"", lun=b"\0" * 8, itt=0, rest=b""):
        """rest is the header from byte 20 on."""
        header = bytes([opcode, flags, 0, 0, 0]) + struct.pack(">I", len(data))[1:] + lun
        header += struct.pack(">I", itt) + rest.ljust(28, b"\0")
        self.sock.sendall(header + data + b"\0" * (-len(data) % 4))

    def _exactly(self, n):
        data = b""
        while len(data) < n:
            part = self.sock.recv(n - len(data))
            if not part:
                raise ConnectionError("the target closed the connection")
            data += part
        return data

    def receive(self):
        """The next PDU: header, data."""
        header = self._exactly(48)
        n = int.from_bytes(header[5:8], "big")
        return header, self._exactly(n + -n % 4)[:n]

    def _say(self, flags, keys, more=()):
        """A login request with these keys; the status, and the keys of the answer."""
        data = b"".join(key.encode() + b"\0" for key in [*keys, *more])
        isid = b"\x80\0\0" + self.isid.to_bytes(3, "big") + b"\0\0"
        self.send(0x43, flags, data, lun=isid, rest=struct.pack(">III", 0, self.cmdsn, 0))
        header, data = self.receive()
        answer = dict(pair.split("=", 1) for pair in data.decode().split("\0") if "=" in pair)
        return int.from_bytes(header[36:38], "big"), answer

    def prove(self, who, user, password):
        """CHAP; the status at its end."""
        status, answer = self._say(0x00, who, ["AuthMethod=CHAP"])
        if status == 0:
            status, answer = self._say(0x00, ["CHAP_A=7"])
        if status:
            return status
        proof = hashlib.sha256(bytes([int(answer["CHAP_I"])]) + password.encode()
                               + bytes.fromhex(answer["CHAP_C"][2:])).hexdigest()
        return self._say(0x81, [f"CHAP_N={user}", f"CHAP_R=0x{proof}"])[0]

    def login(self, keys=(), normal=True, chap=None):
        """The status, as a number of class and detail. chap is a name and a secret."""
        text = [f"InitiatorName={self.name}", f"SessionType={'Normal' if normal else 'Discovery'}"]
        text += [f"TargetName={self.target}"] if normal else []
        if chap:
            return self.prove(text, *chap) or self._say(0x87, list(keys))[0]
        return self._say(0x87, text, keys)[0]

    def command(self, cdb, expected=0, data=b"", write=False):
        """Sends a command; its tag."""
        tag, self.itt = self.itt, self.itt + 1
        flags = 0x80 | (0x20 if write else 0x40 if expected else 0)
        self.send(0x01, flags, data, itt=tag,
                  rest=struct.pack(">III", expected, self.cmdsn, 0) + cdb.ljust(16, b"\0"))
        self.cmdsn += 1
        return tag

    def rw(self, lba, blocks, data=None):
        cdb = struct.pack(">BBIBHB", 0x28 if data is None else 0x2a, 0, lba, 0, blocks, 0)
        return self.command(cdb, blocks * 512, data or b"", data is not None)

    def abort(self, tag):
        own, self.itt = self.itt, self.itt + 1
        self.send(0x42, 0x81, itt=own, rest=struct.pack(">III", tag, self.cmdsn, 0))
        return own

    def answer(self):
        """Of a command: status, sense key and code, data."""
        data = b""
        while True:
            header, part = self.receive()
            if header[0] & 0x3f == 0x25:
                data += part
                if header[1] & 1:
                    return header[3], None, data
            elif header[0] & 0x3f == 0x21:
                sense = (part[4] & 15, part[14], part[15]) if len(part) > 15 else None
                return header[3], sense, data

    def ready(self):
        """TEST UNIT READY until no unit attention is left; the senses there were."""
        seen = []
        while True:
            self.command(b"\0" * 6)
            status, sense, _ = self.answer()
            if status == 0:
                return seen
            seen.append(sense)

    def capacity(self):
        """Bytes, by READ CAPACITY (16)."""
        self.command(b"\x9e\x10" + b"\0" * 8 + b"\0\0\0\x20", 32)
        _, _, data = self.answer()
        return (int.from_bytes(data[:8], "big") + 1) * int.from_bytes(data[8:12], "big")
