"""Finds the programs of the cluster, and builds those that are nowhere.

Order: KUBEBUILDER_ASSETS, PATH (both only when the program prints the right minor version), the cache, a
build into the cache. A binary of another version is passed over, with a note that says which and why.
"""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from hack.cluster import golang
from hack.cluster.cache import Cache, digest
from hack.cluster.programs import MODS, Program

PROBE_SECONDS = 10.0
"""For `--version` of a foreign binary; a wrapper that hangs must not hang the start."""


class Source(Protocol):
    """Whoever can say where a program lies, building or waiting as it must."""

    def get(self, program: Program) -> Path:
        """The program's path. Raises `BuildError`."""
        ...


class Binaries:
    """Paths of programs by name."""

    def __init__(self, cache: Cache, *, note: Callable[[str], None] = print) -> None:
        self._cache = cache
        self._note = note
        self._go: golang.Go | None = None
        self._found: dict[str, Path] = {}

    def find(self, program: Program) -> Path | None:
        """The program, or None when it has to be built."""
        if outside := self._outside(program):
            return outside
        folder = self._cache.find("bin", entry_of(program))
        return folder / program.name if folder else None

    def get(self, program: Program) -> Path:
        """The program; builds it when it is nowhere. Raises `BuildError`."""
        if program.name not in self._found:  # asking a foreign binary for its version costs 0.1 s each time
            self._found[program.name] = self.find(program) or self._build(program)
        return self._found[program.name]

    def cancel(self) -> None:
        """End a build that runs in another thread; what it waits for raises `BuildError`."""
        if self._go is not None:
            self._go.cancel()

    def _outside(self, program: Program) -> Path | None:
        if not program.probe:
            return None
        assets = os.environ.get("KUBEBUILDER_ASSETS", "")
        for where, folders in (("KUBEBUILDER_ASSETS", assets), ("PATH", os.environ.get("PATH", ""))):
            found = shutil.which(program.name, path=folders) if folders else None
            if found is None:
                continue
            if is_wanted(program, printed := _print_version(Path(found), program.probe)):
                return Path(os.path.realpath(found))
            if where == "KUBEBUILDER_ASSETS":
                self._note(
                    f"{found} is not {program.minor}x (it says {printed.strip() or 'nothing'!r}): passed over"
                )
        return None

    def _build(self, program: Program) -> Path:
        self._go = go = golang.find(self._cache)

        def make(folder: Path) -> None:
            target = str(folder / program.name)
            flags = ("-trimpath", "-ldflags", program.ldflags, "-o", target)
            go.run("build", *flags, program.package, directory=MODS / program.module)

        return self._cache.obtain("bin", entry_of(program), make) / program.name


def entry_of(program: Program) -> str:
    """Cache entry: name, version, and a digest of sources, pins and flags."""
    sources = sorted(
        file for file in (MODS / program.module).iterdir() if file.suffix in {".mod", ".sum", ".go"}
    )
    content = [part for file in sources for part in (file.name, file.read_bytes())]
    return f"{program.name}-{program.version}-{digest(program.package, program.ldflags, *content)}"


def is_wanted(program: Program, printed: str) -> bool:
    """True when what a binary printed names the program's minor version, with or without its `v`."""
    return any(word.removeprefix("v").startswith(program.minor.removeprefix("v")) for word in printed.split())


def _print_version(binary: Path, probe: tuple[str, ...]) -> str:
    try:
        done = subprocess.run(
            [binary, *probe], capture_output=True, text=True, timeout=PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
