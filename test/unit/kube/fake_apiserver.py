"""An HTTP server in place of an API server, for faults and answers a real one can't be made to give."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

MAX_BODY = 16 * 1024 * 1024
"""Bytes; as much as any test sends."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Seen:
    """One request as it arrived."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes


@dataclass
class FakeApiServer:
    """Answers with `handler` and keeps what it was asked."""

    handler: Handler
    url: str = ""
    seen: list[Seen] = field(default_factory=list)
    _arrival: asyncio.Event = field(default_factory=asyncio.Event)

    async def until(self, count: int) -> None:
        """Wait for so many requests."""
        while len(self.seen) < count:
            self._arrival.clear()
            await self._arrival.wait()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Note the request, then let the handler answer."""
        self.seen.append(
            Seen(
                request.method,
                request.raw_path.partition("?")[0],
                dict(request.query),
                {name.lower(): value for name, value in request.headers.items()},
                await request.read(),
            )
        )
        self._arrival.set()
        return await self.handler(request)


@asynccontextmanager
async def serving(
    handler: Handler, *, tls: ssl.SSLContext | None = None, port: int = 0
) -> AsyncIterator[FakeApiServer]:
    """Serve on a free port of 127.0.0.1 until the block ends; requests under way are then dropped."""
    server = FakeApiServer(handler)
    app = web.Application(client_max_size=MAX_BODY)
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.01, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls)
    await site.start()
    server.url = f"{'https' if tls else 'http'}://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()


def port_of(server: FakeApiServer) -> int:
    """The port in its address."""
    return int(server.url.rpartition(":")[2])
