"""containerd's shims: one process for each pod, started by containerd and meant to outlive it.

containerd keeps no pid of theirs, so they are known by what makes them ours alone: the address of this
instance's socket among their arguments. No name is compared.
"""

import itertools
from pathlib import Path

from hack.cluster.process import Identity

_ADDRESS = "-address"


def of(socket: Path, proc: Path = Path("/proc")) -> list[Identity]:
    """The shims of the containerd that listens on `socket`."""
    found = []
    for folder in proc.glob("[0-9]*"):
        try:
            arguments = (folder / "cmdline").read_text(errors="replace").split("\0")
        except OSError:
            continue  # it ended meanwhile
        if (_ADDRESS, str(socket)) in itertools.pairwise(arguments):
            found.append(Identity.of(int(folder.name), proc))
    return [identity for identity in found if identity]
