"""One small HTTP server on one address, for probes and metrics.

It starts before anything else and closes last, so that probes always get an answer (architecture.md
section 3). It serves GET without authentication: nothing it serves may be secret.
"""

import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import structlog
from aiohttp import web

log = structlog.get_logger("modelfleet.runtime.endpoint")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

CLOSE_SECONDS = 1.0
"""How long close() waits for answers being sent; probes and scrapes take milliseconds."""

DISABLED = "0"
"""controller-runtime's word for "do not listen"."""

MAX_PORT = 65535


class EndpointError(Exception):
    """The address can't be listened on; the message names it."""


@dataclass(frozen=True, slots=True)
class Bind:
    """Where to listen."""

    host: str | None
    """None: all addresses, IPv4 and IPv6."""
    port: int
    """0: any free port, for tests."""

    @classmethod
    def parse(cls, text: str) -> "Bind | None":
        """Read `:8080`, `127.0.0.1:8080` or `[::1]:8080`; `0` gives None: disabled.

        Raises:
            ValueError: The text is none of these.
        """
        if text == DISABLED:
            return None
        host, colon, port = text.rpartition(":")
        if not colon or not port.isascii() or not port.isdigit() or int(port) > MAX_PORT:
            raise ValueError(
                f"{text!r} is no address; write :8080, 127.0.0.1:8080 or [::1]:8080, or 0 to disable"
            )
        if ":" in host and not (host.startswith("[") and host.endswith("]")):
            raise ValueError(f"{text!r}: put an IPv6 address in brackets, as in [::1]:8080")
        return cls(host.strip("[]") or None, int(port))

    def __str__(self) -> str:
        host = self.host or ""
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"


class Endpoint:
    """Serves fixed paths. Use as `await start()` ... `await close()`; closing twice is fine."""

    def __init__(self, bind: Bind, routes: Mapping[str, Handler]) -> None:
        self._bind = bind
        self._paths = sorted(routes)
        app = web.Application()
        for path, handler in routes.items():
            app.router.add_get(path, handler)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=CLOSE_SECONDS)

    @property
    def port(self) -> int:
        """The port listened on, known after `start`."""
        port: int = self._runner.addresses[0][1]
        return port

    async def start(self) -> None:
        """Listen.

        Raises:
            EndpointError: The address is taken or not ours.
        """
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._bind.host, self._bind.port).start()
        except OSError as error:
            await self._runner.cleanup()
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise EndpointError(f"cannot listen on {self._bind}: {reason}") from error
        log.info("listening", address=str(Bind(self._bind.host, self.port)), paths=self._paths)

    async def close(self) -> None:
        """Stop listening and end open connections."""
        await self._runner.cleanup()
