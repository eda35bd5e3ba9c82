"""The per-user cache: built programs and unpacked packages, shared by all checkouts.

An entry is a folder whose name says what is in it (version and digest of everything that went in), complete
or absent: it is made under another name and renamed. A lock file lets two processes make one thing once.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hack.cluster.errors import BuildError

DIGEST_CHARACTERS = 12
"""48 bits: a file name stays readable, and a cache holds some hundred entries."""


def default_root() -> Path:
    """`MODELFLEET_CACHE`, else `modelfleet` in the XDG cache folder."""
    if chosen := os.environ.get("MODELFLEET_CACHE"):
        return Path(chosen).absolute()  # builds run in other folders
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "modelfleet"


@dataclass(frozen=True)
class Cache:
    """Entries below one folder."""

    root: Path

    def find(self, kind: str, entry: str) -> Path | None:
        """The folder of a complete entry."""
        path = self.root / kind / entry
        with self._usable():
            return path if path.is_dir() else None

    def obtain(self, kind: str, entry: str, make: Callable[[Path], None]) -> Path:
        """The folder of an entry; when it is missing, `make` fills an empty folder that becomes it.

        Raises:
            BuildError: this user can't write to the cache.
        """
        if found := self.find(kind, entry):
            return found
        with self.lock(f"{kind}-{entry}"):
            if found := self.find(kind, entry):  # another process made it while this one waited
                return found
            with self._usable():
                (self.root / kind).mkdir(parents=True, exist_ok=True)
                unfinished = Path(tempfile.mkdtemp(prefix=f".{entry}-", dir=self.root / kind))
            try:
                make(unfinished)
                unfinished.chmod(0o755)
                return unfinished.rename(self.root / kind / entry)
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)

    @contextlib.contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """One process at a time; the kernel frees it when the holder dies."""
        locks = self.root / "locks"
        with self._usable():
            locks.mkdir(parents=True, exist_ok=True)
            opened = (locks / name).open("w")
        with opened as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    @contextlib.contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise BuildError(
                f"the cache {self.root} can't be used ({error.strerror}): "
                "set MODELFLEET_CACHE to a folder that you may write to"
            ) from error


def digest(*parts: bytes | str) -> str:
    """Short digest of everything that determines an entry's content, each part delimited by its length."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        total.update(f"{len(data)}:".encode() + data)
    return total.hexdigest()[:DIGEST_CHARACTERS]
