"""Where one instance keeps its things.

State lies in the checkout (`build/cluster/NAME`). What holds unix sockets lies in a second, short folder:
the kernel takes at most 107 bytes for a socket's path, and a checkout may lie deep.
"""

import hashlib
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from hack.cluster.errors import HostError

REPOSITORY = Path(__file__).resolve().parents[2]
KUBECTL = REPOSITORY / "build" / "bin" / "kubectl"
"""A link for people: one folder for PATH, whatever the version and wherever the program lies."""
SOCKET_PATH_BYTES = 107
"""sizeof(sockaddr_un.sun_path) is 108 with the final zero."""
_DEEPEST_SOCKET = "kubelet/pod-resources/kubelet.sock"
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")


@dataclass(frozen=True)
class Layout:
    """Folders and files of one instance."""

    state: Path
    """Data, logs, certificates, configuration, pid files; survives `down`."""
    runtime: Path
    """Sockets, container state and the kubelet's folder; gone after `down`."""

    @classmethod
    def named(cls, name: str) -> Self:
        """The instance of a name in this checkout. Raises `HostError` for a bad name or a path too long."""
        if not _NAME.fullmatch(name):
            raise HostError(f"name {name!r}: use at most 40 lower-case letters, digits and inner dashes")
        state = REPOSITORY / "build" / "cluster" / name
        layout = cls(state, runtime_root() / hashlib.sha256(os.fsencode(state)).hexdigest()[:8])
        check_socket(layout.runtime / _DEEPEST_SOCKET)
        return layout

    @property
    def conf(self) -> Path:
        """Rendered configuration and kubeconfigs."""
        return self.state / "conf"

    @property
    def run(self) -> Path:
        """Pid files."""
        return self.state / "run"

    def log(self, name: str) -> Path:
        """Log of one process."""
        return self.state / "log" / f"{name}.log"

    @property
    def containerd_socket(self) -> Path:
        """Where containerd listens."""
        return self.runtime / "containerd.sock"


def runtime_root() -> Path:
    """`MODELFLEET_RUNTIME_DIR`, else for root /var/lib (on disk: volumes lie there), else below TMPDIR."""
    if chosen := os.environ.get("MODELFLEET_RUNTIME_DIR"):
        return Path(chosen)
    if os.geteuid() == 0:
        return Path("/var/lib/modelfleet")
    return Path(tempfile.gettempdir()) / f"modelfleet-{os.geteuid()}"


def check_socket(path: Path) -> None:
    """Raise `HostError` when a unix socket can't have this path."""
    if (length := len(os.fsencode(path))) > SOCKET_PATH_BYTES:
        raise HostError(
            f"{path} is {length} bytes long and a unix socket's path may have {SOCKET_PATH_BYTES}: "
            "set MODELFLEET_RUNTIME_DIR to a shorter folder"
        )
