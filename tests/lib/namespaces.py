"""Namespaces that a test enters itself, so that neither it nor the tests beside it see the other.

Both are for the start of a test, before any thread: what it starts from then on is inside. They
return False where the machine does not allow it.
"""
import ctypes

from tap import run

CLONE_NEWNS, CLONE_NEWNET = 0x00020000, 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)


def own_network():
    """A network with lo alone."""
    return LIBC.unshare(CLONE_NEWNET) == 0 and run("ip", "link", "set", "lo", "up").returncode == 0


def own_mounts():
    """Mounts that nobody else has. Where / is not shared, a mount namespace made elsewhere while
    something is mounted keeps a copy of that mount, and with it the device busy, after umount."""
    return LIBC.unshare(CLONE_NEWNS) == 0 and run("mount", "--make-rprivate", "/").returncode == 0
