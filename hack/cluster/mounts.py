"""Mounts below a folder: pods' volumes, root file systems and network namespaces."""

import ctypes
import os
from pathlib import Path

from hack.cluster.errors import HostError

_TABLE = Path("/proc/self/mounts")
_MNT_DETACH = 2  # linux/fs.h: off the tree at once, gone when the last user closes it


def below(folder: Path, table: str) -> list[str]:
    """Mount points at or below `folder` in a mount table, deepest first."""
    points = [_unescape(line.split(" ")[1]) for line in table.splitlines()]
    own = [point for point in points if Path(point).is_relative_to(folder)]
    return sorted(own, key=len, reverse=True)


def unmount_below(folder: Path) -> None:
    """Take all of them off. Raises `HostError` naming the first that refuses."""
    libc = ctypes.CDLL(None, use_errno=True)
    for point in below(folder, _TABLE.read_text()):
        if libc.umount2(os.fsencode(point), _MNT_DETACH) != 0:
            raise HostError(f"umount {point}: {os.strerror(ctypes.get_errno())}")


def _unescape(point: str) -> str:
    """The kernel writes blanks, tabs, newlines and backslashes as octal escapes."""
    return point.encode().decode("unicode_escape") if "\\" in point else point
