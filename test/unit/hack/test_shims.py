import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from hack.cluster import shims
from hack.cluster.process import wait_until

SOCKET = Path("/run/mf-test/containerd.sock")
ARGUMENTS = {
    "ours": ["-namespace", "k8s.io", "-address", str(SOCKET)],
    "another instance's": ["-address", f"{SOCKET}2"],
    "the socket in another place": ["-id", str(SOCKET), "-address", "/run/other.sock"],
}


@pytest.fixture
def processes() -> Iterator[dict[str, int]]:
    """Processes with such arguments, by description."""
    wait = (sys.executable, "-c", "import signal; signal.pause()")
    with ExitStack() as stack:
        started = {}
        for name, arguments in ARGUMENTS.items():
            process = stack.enter_context(subprocess.Popen([*wait, *arguments]))
            stack.callback(process.kill)
            started[name] = process.pid
        yield started


def test_only_shims_of_this_socket(processes: dict[str, int]) -> None:
    """A shim of another instance, or one that merely mentions our path, is not ours."""
    wait_until("exec", lambda: bool(shims.of(SOCKET)), seconds=10)
    assert {processes["ours"]} == {identity.pid for identity in shims.of(SOCKET)}
