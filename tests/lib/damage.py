"""Damages to a file, as disks, people and backups do them."""
import os
import random
import shutil

DAMAGES = ("deleted", "truncated", "zeroed", "flipped", "rolled back", "swapped")


def _rewrite(path, change):
    with open(path, "r+b") as f:
        data = bytearray(f.read())
        change(data)
        f.seek(0)
        f.write(data)


def _flip(data, seed, start):
    """About two hundred bytes, or every eighth of a small file."""
    chosen = random.Random(seed)
    for at in chosen.sample(range(start, len(data)), min(200, max(1, len(data) // 8))):
        data[at] ^= chosen.randrange(1, 256)


def damage(how, path, earlier=None, other=None, seed=1, start=0):
    """
    Damages the file; earlier is an older copy of it, other is that of somebody else; bytes are flipped from start on.
    False: it cannot be done.
    """
    size = os.path.getsize(path)
    if how == "deleted":
        os.unlink(path)
    elif how == "truncated":
        os.truncate(path, size // 2)
    elif how == "zeroed":
        os.truncate(path, 0)
        os.truncate(path, size)
    elif how == "flipped":
        _rewrite(path, lambda data: _flip(data, seed, start))
    else:
        source = earlier if how == "rolled back" else other
        if not source or not os.path.exists(source):
            return False
        with open(source, "rb") as one, open(path, "rb") as two:
            if one.read() == two.read():
                return False
        shutil.copyfile(source, path)
    return True
