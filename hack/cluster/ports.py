"""Ports of one instance: free when chosen, the same after a restart.

Chosen below the kernel's ephemeral range (32768 by default), so that no outgoing connection takes one
between the choice and the listener, and at random, so that instances starting together don't collide.
"""

import json
import random
import socket
from pathlib import Path

from hack.cluster.errors import HostError
from hack.cluster.files import put

FIRST, LAST = 20000, 32000
ATTEMPTS = 200


def reserve(file: Path, names: tuple[str, ...], *, running: bool) -> dict[str, int]:
    """A port for each name, recorded in `file`.

    Args:
        file: what was chosen before.
        names: what ports are for.
        running: the listeners run on their recorded ports, so those are kept; otherwise they are kept while
            they are free.
    """
    before = recorded(file)
    chosen: dict[str, int] = {}
    for name in names:
        old = before.get(name, 0)
        chosen[name] = old if old and (running or is_free(old)) else _new(set(chosen.values()))
    put(file, json.dumps(before | chosen))
    return chosen


def recorded(file: Path) -> dict[str, int]:
    """What `reserve` chose the last time; empty before the first."""
    return dict(json.loads(file.read_text())) if file.exists() else {}


def is_free(port: int) -> bool:
    """True when nothing listens on that port on any address."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("", port))
        except OSError:
            return False
    return True


def _new(taken: set[int]) -> int:
    chooser = random.SystemRandom()
    for _ in range(ATTEMPTS):
        port = chooser.randrange(FIRST, LAST)
        if port not in taken and is_free(port):
            return port
    raise HostError(f"no free port in {FIRST}-{LAST}: stop other instances (`python -m hack.cluster down`)")
