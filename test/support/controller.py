"""`modelfleet controller` as a real process: started, stopped, killed, frozen and watched from outside.

A test that used the process fails when its log holds a traceback, whatever else happened (oracle O8 of
facts/controller.md 3.3): an exception nobody expected is a defect even where the loop survives it.
"""

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp

from test.support.waiting import wait_for

START_SECONDS = 60.0
"""Python's imports take 1-2 s on an idle core, several times that on a busy one."""
STOP_SECONDS = 45.0
"""Above the controller's own grace period of 30 s."""
TRACEBACK = "Traceback (most recent call last)"


class Controller:
    """One process with its own token, ports and log."""

    def __init__(
        self, kubeconfig: Path, folder: Path, flags: Mapping[str, str | bool], *, name: str = "controller"
    ) -> None:
        """Describe it.

        `flags`: `lease_duration: "3s"` is `--lease-duration=3s`, `leader_elect: False` `--no-leader-elect`.
        """
        self.name = name
        self.kubeconfig = kubeconfig
        self.log_file = folder / f"{name}.log"
        self._health = _free_port()
        self._metrics = _free_port()
        self._flags: dict[str, str | bool] = {
            "kubeconfig": str(kubeconfig),
            "health_bind": f"127.0.0.1:{self._health}",
            "metrics_bind": f"127.0.0.1:{self._metrics}",
            "field_validation": "Strict",  # rule A12: a misspelt field must fail a test
            "log_format": "json",
            **flags,
        }
        self._process: subprocess.Popen[bytes] | None = None

    # --- life -------------------------------------------------------------------------------------

    async def start(self, *, ready: bool = True) -> None:
        """Start the process and, unless told otherwise, wait until it is ready."""
        arguments = [_flag(*setting) for setting in self._flags.items()]
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: ASYNC220  # outlives any one event loop call; fork is brief
                [sys.executable, "-m", "modelfleet", "controller", *arguments],
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=Path(__file__).parents[2],
            )
        if ready:
            await self.wait_ready()

    async def wait_ready(self, deadline: float = START_SECONDS) -> None:
        """Wait for /readyz; fails at once when the process ends."""

        async def is_ready() -> bool:
            code = self.exit_code
            if code is not None:
                raise RuntimeError(
                    f"{self.name} exited with {code} instead of becoming ready:\n{self.tail()}"
                )
            return await self.ready()

        await wait_for(is_ready, deadline, lambda: f"{self.name} is not ready:\n{self.tail()}")

    async def stop(self) -> int:
        """SIGTERM, as a kubelet does; returns the exit code. A process that is gone already is fine."""
        if self.exit_code is None:
            self.signal(signal.SIGCONT)
            self.signal(signal.SIGTERM)
        return await self.wait_exit(STOP_SECONDS)

    async def wait_exit(self, deadline: float) -> int:
        """Wait until the process has ended and return its exit code."""
        await wait_for(
            lambda: self.exit_code is not None, deadline, lambda: f"{self.name} does not end:\n{self.tail()}"
        )
        code = self.exit_code
        assert code is not None
        return code

    def kill(self) -> None:
        """SIGKILL: a crash."""
        self.process.kill()
        self.process.wait()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal: SIGSTOP freezes, SIGCONT thaws."""
        self.process.send_signal(number)

    @property
    def process(self) -> subprocess.Popen[bytes]:
        """The running process."""
        assert self._process is not None, f"{self.name} was not started"
        return self._process

    @property
    def pid(self) -> int:
        """Process id; the same as long as nothing restarted."""
        return self.process.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; negative when a signal ended it."""
        return self.process.poll()

    # --- what it says -----------------------------------------------------------------------------

    async def ready(self) -> bool:
        """Whether /readyz says so."""
        return await self._ask(self._health, "/readyz") is not None

    async def healthy(self) -> bool:
        """Whether /healthz says so."""
        return await self._ask(self._health, "/healthz") is not None

    async def metric(self, name: str, **labels: str) -> float:
        """Sum over all series of a metric that carry these labels."""
        text = await self._ask(self._metrics, "/metrics")
        assert text is not None, f"{self.name} serves no metrics"
        total = 0.0
        for series, given, value in re.findall(r"^(\w+)(?:\{(.*)\})? (\S+)$", text, re.MULTILINE):
            have = dict(re.findall(r'(\w+)="([^"]*)"', given))
            if series == name and all(have.get(key) == wanted for key, wanted in labels.items()):
                total += float(value)
        return total

    def log(self) -> str:
        """Everything it has written."""
        return self.log_file.read_text(errors="replace")

    def tail(self, lines: int = 30) -> str:
        """The end of the log, for failure texts."""
        return "\n".join(self.log().splitlines()[-lines:])

    def records(self) -> list[Mapping[str, Any]]:
        """Structured log lines."""
        return [json.loads(line) for line in self.log().splitlines() if line.startswith("{")]

    def unexpected(self) -> list[str]:
        """Log lines that hold a traceback."""
        return [line for line in self.log().splitlines() if TRACEBACK in line]

    async def _ask(self, port: int, path: str) -> str | None:
        """Body of a 200, else None."""
        timeout = aiohttp.ClientTimeout(total=2)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.get(f"http://127.0.0.1:{port}{path}") as answer,
            ):
                return await answer.text() if answer.status == 200 else None
        except (aiohttp.ClientError, TimeoutError):
            return None


def _flag(name: str, value: object) -> str:
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{flag}" if value else f"--no-{flag}"
    return f"--{flag}={value}"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
