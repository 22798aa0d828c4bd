"""What a test wrote to a volume, block by block, and whether that is what is read."""
import random
import struct

from initiator import Initiator
from replicated import IQN, PORTAL

BLOCK, STEP, DEPTH = 4096, 32 << 10, 12
CHECK_CONDITION, UNIT_ATTENTION = 2, 6


class Refused(Exception):
    """The target answered a command with an error."""


class Ledger:
    """An initiator that remembers what it wrote. Reads give what is there, or Refused."""

    def __init__(self, size, name="iqn.2026-01.test:ledger", seed=1):
        self.size, self.name, self.random = size, name, random.Random(seed)
        self.now = bytearray(size)
        self.session = None

    def login(self):
        if self.session is None:
            session = Initiator(PORTAL, IQN, self.name)
            status = session.login()
            if status:
                session.close()
                raise Refused(f"login: {status:#06x}")
            self.session = session
        return self

    def logout(self):
        if self.session:
            self.session.send(0x46, 0x80, itt=self.session.itt, rest=struct.pack(">III", 0, self.session.cmdsn, 0))
            self.session.receive()
            self.drop()

    def drop(self):
        """The connection is gone."""
        if self.session:
            self.session.close()
        self.session = None

    def _do(self, send):
        """A command; sent again after a unit attention, as initiators do."""
        self.login()
        try:
            while True:
                send(self.session)
                status, sense, data = self.session.answer()
                if status == 0:
                    return data
                if status != CHECK_CONDITION or not sense or sense[0] != UNIT_ATTENTION:
                    raise Refused(f"status {status}, sense {sense}")
        except OSError:
            self.drop()
            raise

    def write(self, block, data=None):
        data = data or self.random.randbytes(BLOCK)
        self._do(lambda s: s.rw(block * 8, 8, data))
        self.now[block * BLOCK:(block + 1) * BLOCK] = data

    def write_some(self, n, flush=True):
        for block in self.random.sample(range(self.size // BLOCK), n):
            self.write(block)
        if flush:
            self.flush()

    def flush(self):
        self._do(lambda s: s.command(b"\x35"))

    def read(self, at, size=STEP):
        return self._do(lambda s: s.rw(at // 512, size // 512))

    def _read_at_once(self, places):
        """So many reads under way together: a target spreads them over the replicas. {place: data, None if refused}."""
        self.login()
        tags = {self.session.rw(at // 512, STEP // 512): at for at in places}
        parts, done = {at: bytearray(STEP) for at in places}, {}
        try:
            while len(done) < len(places):
                header, data = self.session.receive()
                tag, = struct.unpack(">I", header[16:20])
                if tag not in tags or header[0] & 0x3f not in (0x21, 0x25):
                    continue
                at = tags[tag]
                if header[0] & 0x3f == 0x25:
                    offset, = struct.unpack(">I", header[40:44])
                    parts[at][offset:offset + len(data)] = data
                if header[0] & 0x3f == 0x21 or header[1] & 1:
                    done[at] = parts[at] if header[3] == 0 else None
        except OSError:
            self.drop()
            raise
        return done

    def wrong(self, times=1):
        """Reads everything, so often: the blocks that are not what was written, and how many reads were refused."""
        bad, refused = set(), 0
        self._do(lambda s: s.command(b"\0" * 6))  # takes what a unit attention has to say
        for _ in range(times):
            places = self.random.sample(range(0, self.size, STEP), self.size // STEP)
            for i in range(0, len(places), DEPTH):
                for at, data in self._read_at_once(places[i:i + DEPTH]).items():
                    refused += data is None
                    if data is not None and data != self.now[at:at + STEP]:
                        bad |= {(at + k) // BLOCK for k in range(0, STEP, BLOCK)
                                if data[k:k + BLOCK] != self.now[at + k:at + k + BLOCK]}
        return sorted(bad), refused
