"""What a test wrote to a volume, block by block, and whether that is what is read."""
import random
import struct

from initiator import Initiator
from replicated import IQN, PORTAL

BLOCK, STEP = 4096, 128 << 10
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

    def wrong(self, times=1):
        """Reads everything, so often: the blocks that are not what was written, and how many reads were refused."""
        bad, refused = set(), 0
        for _ in range(times):
            for at in range(0, self.size, STEP):
                try:
                    data = self.read(at)
                except Refused:
                    refused += 1
                    continue
                if data != self.now[at:at + STEP]:
                    bad |= {(at + i) // BLOCK for i in range(0, STEP, BLOCK)
                            if data[i:i + BLOCK] != self.now[at + i:at + i + BLOCK]}
        return sorted(bad), refused
