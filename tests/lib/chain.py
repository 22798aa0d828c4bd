"""Reads a file with snapshots (src/store/chain.h, manifest.h) by its own lights, to compare what replicas have."""
import hashlib
import os
import struct

GRANULE = 4096


def layers(path):
    """[(number, snapshot)], from the bottom up; the last is the head."""
    try:
        with open(path + ".chain", "rb") as f:
            data = f.read()
    except FileNotFoundError:
        return [(0, 0)]
    _magic, _crc, _next, count, _version = struct.unpack_from("<IIIIQ", data)
    return [struct.unpack_from("<QQ", data, 48 + 32 * i) for i in range(count)]


def snapshots(path):
    return [snapshot for _number, snapshot in layers(path) if snapshot]


def granules(path):
    """The bits of a layer's map (src/store/page.h): of each pair of pages the newer one."""
    with open(path, "rb") as f:
        data = f.read()
    out = bytearray()
    for at in range(8192, len(data), 8192):
        pair = [data[at + i * 4096:at + (i + 1) * 4096].ljust(4096, b"\0") for i in range(2)]
        out += max(pair, key=lambda page: struct.unpack_from("<Q", page, 4064))[:4064]
    return out


def _stages(path, size):
    """From the bottom up: the snapshot of each layer, and what is there with it; the same bytes, changed on the way."""
    out = bytearray(size)
    for number, has in layers(path):
        name = f"{path}.layer{number}" if number else path
        with open(name, "rb") as f:
            data = f.read()
        if not number:
            out[:len(data)] = data[:size]
        else:
            bits = granules(name + ".map")
            for byte, eight in enumerate(bits):
                for bit in range(8) if eight else ():
                    at = (byte * 8 + bit) * GRANULE
                    if eight >> bit & 1 and at < size:
                        out[at:at + GRANULE] = data[at:at + GRANULE]
        yield has, out


def content(path, size, snapshot=None):
    """What is there now, or in a snapshot, and zeroes up to size."""
    out = None
    for has, out in _stages(path, size):
        if snapshot is not None and has == snapshot:
            return bytes(out[:size])
    return bytes(out[:size]) if snapshot is None else None


def digests(path, size):
    """{snapshot: digest}; 0 is what is there now."""
    found = [(has, hashlib.sha256(memoryview(out)[:size]).hexdigest()) for has, out in _stages(path, size)]
    return {has: digest for has, digest in found[:-1] if has} | {0: found[-1][1]}


def digest(path, size, snapshot=None):
    data = content(path, size, snapshot)
    return data and hashlib.sha256(data).hexdigest()


def loose(path):
    """Files of layers beside the bottom."""
    folder, name = os.path.split(path)
    return [n for n in os.listdir(folder) if n.startswith(name + ".layer") and not n.endswith((".map", ".sums"))]
