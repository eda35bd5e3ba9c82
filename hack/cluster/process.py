"""Processes that outlive the command that started them, found again by pid file alone.

Invariant: a signal reaches only a process this package started. A pid file holds pid, start time and
executable; all three must match /proc before a signal is sent, and the signal goes through a pidfd opened
before the check, so a pid reused in between is never hit. Nothing is ever looked up by name.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self

from hack.cluster.errors import StartError

EXEC_SECONDS = 10.0
"""How long a fork may take to become the wanted executable; milliseconds, seconds on a loaded machine."""
KILL_SECONDS = 10.0
"""SIGKILL is not refused; a process that is still there then sits in uninterruptible I/O."""
POLL_SECONDS = 0.05
"""Between two looks at a part that is starting; a look costs the API server about 1 ms."""

# The shell ends at once, so that init adopts the process: Envoy's wheel asks to die with its parent.
_DETACH = '"$@" >>"$LOG_FILE" 2>&1 </dev/null & echo $!'


@dataclass(frozen=True)
class Identity:
    """One incarnation of a process."""

    pid: int
    started: int
    """Clock ticks since boot, field 22 of /proc/PID/stat: it tells a reused pid from the old one."""
    executable: str

    @classmethod
    def of(cls, pid: int, proc: Path = Path("/proc")) -> Self | None:
        """Who has this pid now; None when nobody, a zombie, or a process we may not look at."""
        try:
            # The command name may hold spaces and brackets: the fixed fields start behind the last bracket.
            fields = (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
            executable = str((proc / str(pid) / "exe").readlink())
        except OSError:
            return None
        return cls(pid, int(fields[19]), executable.removesuffix(" (deleted)"))

    def signal(self, number: signal.Signals) -> bool:
        """Signal this incarnation; False when it is gone."""
        with self._pidfd() as descriptor:
            if descriptor is not None:
                signal.pidfd_send_signal(descriptor, number)
            return descriptor is not None

    def stop(self, grace: float) -> None:
        """TERM, up to `grace` seconds, then KILL. Raises `StartError` when even that does not end it."""
        with self._pidfd() as descriptor:
            for number, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, KILL_SECONDS)):
                if descriptor is None:
                    return
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(descriptor, number)
                if select.select([descriptor], [], [], seconds)[0]:
                    return
        raise StartError(f"{self.executable} ({self.pid}) did not end {KILL_SECONDS:.0f} s after SIGKILL")

    @contextlib.contextmanager
    def _pidfd(self) -> Iterator[int | None]:
        """A descriptor of this incarnation: opened first, checked then, so never a successor's."""
        try:
            descriptor = os.pidfd_open(self.pid)
        except ProcessLookupError:
            yield None
            return
        try:
            yield descriptor if Identity.of(self.pid) == self else None
        finally:
            os.close(descriptor)


@dataclass(frozen=True)
class PidFile:
    """Remembers one incarnation on disk."""

    path: Path

    def read(self) -> Identity | None:
        """What was recorded; None when there is no file or it is not one of ours."""
        try:
            return Identity(**json.loads(self.path.read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def write(self, identity: Identity) -> None:
        """Atomically, so that a reader never sees half a file."""
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(asdict(identity)))
        new.replace(self.path)

    @property
    def alive(self) -> bool:
        """True while the recorded incarnation runs."""
        recorded = self.read()
        return recorded is not None and Identity.of(recorded.pid) == recorded

    def signal(self, number: signal.Signals) -> bool:
        """Signal the recorded incarnation; False when it is gone."""
        recorded = self.read()
        return recorded is not None and recorded.signal(number)

    def stop(self, grace: float) -> None:
        """TERM, up to `grace` seconds, then KILL; afterwards neither process nor file is left."""
        if recorded := self.read():
            recorded.stop(grace)
        self.path.unlink(missing_ok=True)


@dataclass(frozen=True)
class Process:
    """A command line, its log and its pid file."""

    name: str
    argv: Sequence[str]
    run: Path
    """Folder of the pid file."""
    log: Path
    """File that both output streams are appended to."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Added to the caller's environment."""

    @property
    def pid_file(self) -> PidFile:
        """Where this process is remembered."""
        return PidFile(self.run / f"{self.name}.pid")

    @property
    def alive(self) -> bool:
        """True while it runs."""
        return self.pid_file.alive

    def start(self) -> bool:
        """Start unless it runs; True when it was started. Raises `StartError` when it can't be executed."""
        if self.alive:
            return False
        self.run.mkdir(parents=True, exist_ok=True)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, **self.env, "LOG_FILE": str(self.log)}
        shell = ["/bin/sh", "-c", _DETACH, "sh", *self.argv]
        done = subprocess.run(
            shell, env=environment, stdout=subprocess.PIPE, check=True, start_new_session=True
        )
        self.pid_file.write(self._became(int(done.stdout)))
        return True

    def stop(self, grace: float = 10.0) -> None:
        """TERM, up to `grace` seconds, then KILL."""
        self.pid_file.stop(grace)

    def tail(self, lines: int = 15) -> str:
        """The last lines of its log."""
        try:
            text = self.log.read_text(errors="replace")
        except OSError:
            return "(no log)"
        return "\n".join(text.splitlines()[-lines:])

    def _became(self, pid: int) -> Identity:
        wanted = os.path.realpath(self.argv[0])
        deadline = time.monotonic() + EXEC_SECONDS
        while (identity := Identity.of(pid)) is not None and time.monotonic() < deadline:
            if identity.executable == wanted:
                return identity
            time.sleep(0.002)
        raise StartError(f"{self.name}: {wanted} could not be executed or ended at once:\n{self.tail()}")


def wait_until(
    what: str, probe: Callable[[], bool], *, seconds: float, processes: Sequence[Process] = ()
) -> None:
    """Poll `probe` until it is true.

    Raises:
        StartError: after `seconds`, or as soon as one of `processes` is gone, with the end of its log.
    """
    deadline = time.monotonic() + seconds
    while not probe():
        for process in processes:
            if not process.alive:
                raise StartError(
                    f"{process.name} ended while waiting for {what} ({process.log}):\n{process.tail()}"
                )
        if time.monotonic() > deadline:
            logs = "".join(f"\n{process.log}:\n{process.tail()}" for process in processes)
            raise StartError(f"{what}: not there after {seconds:.0f} s{logs}")
        time.sleep(POLL_SECONDS)
