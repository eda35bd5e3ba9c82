"""A fault proxy in front of an API server: the network and the server as they are on a bad day.

It speaks HTTP/1.1, with TLS of its own, to the client under test and forwards with the client's own
bearer token, so that RBAC and the audit log see the real user. Which request meets which fault is said by
rules (`on`), what happens to streams that are open already by `disturb`, the server's absence by `down` and
`up`. Without rules every byte passes unchanged.
"""

import asyncio
import contextlib
import re
import socket
import ssl
import struct
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import aiohttp
import yarl
from aiohttp import web

from test.support.certificates import server_context
from test.support.faults import Answer, Cut, Delay, DropResponse, End, Fault, Hang, Inject, Rule
from test.support.requestinfo import RequestInfo, parse

_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "host", "upgrade", "te"}
_TORN_LINE = b'{"type":"MODIFIED","object":{"metadata":{"na'
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
"""SO_LINGER on with zero seconds: close() sends RST."""
_BODY_LIMIT = 4 * 1024 * 1024
"""Above the API server's own limit of 3 MiB for a request body."""


@dataclass
class Seen:
    """One request that reached the proxy."""

    info: RequestInfo
    at: float
    """`time.monotonic()` at its arrival."""
    body: bytes
    code: int = 0
    """What the client was answered; 0 while it was not."""
    fault: Fault | None = None


@dataclass
class _Stream:
    info: RequestInfo
    orders: "asyncio.Queue[Fault]" = field(default_factory=asyncio.Queue)


class FaultProxy:
    """`async with FaultProxy(server, ca) as proxy`: listens on a free loopback port."""

    def __init__(self, server: str, ca: str = "", *, tls: bool = True) -> None:
        """`server`: base URL of the real one; `ca`: PEM that its certificate is checked with."""
        self._upstream = server
        self._upstream_ssl: ssl.SSLContext | bool = ssl.create_default_context(cadata=ca) if ca else True
        self._ssl: ssl.SSLContext | None = None
        self.ca = ""
        if tls:
            self._ssl, self.ca = server_context()
        self._session: aiohttp.ClientSession | None = None
        self._listener: asyncio.Server | None = None
        self._web = web.Server(self._handle, handler_cancellation=True, access_log=None)
        self._port = 0
        self._rules: list[Rule] = []
        self._streams: list[_Stream] = []
        self._late: set[asyncio.Task[web.Response]] = set()
        self._open = asyncio.Event()
        self._open.set()
        self.seen: list[Seen] = []
        """Every request in order of arrival."""

    # --- what a test says -------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """Base URL for clients."""
        return f"{'https' if self._ssl else 'http'}://127.0.0.1:{self._port}"

    def on(
        self,
        fault: Fault,
        *,
        verb: str = "",
        resource: str = "",
        nth: int = 1,
        times: int | None = 1,
        where: Callable[[RequestInfo, bytes], bool] | None = None,
    ) -> Rule:
        """Let requests meet a fault (see `Rule`); the first rule that fits wins."""
        rule = Rule(fault, verb, resource, nth, times, where)
        self._rules.append(rule)
        return rule

    def clear(self) -> None:
        """Forget all rules; what already hangs goes on hanging."""
        self._rules.clear()

    def disturb(self, fault: Cut | Hang | Inject, resource: str = ".*") -> int:
        """Let open streams of these resources meet a fault now; returns how many there are."""
        hit = [stream for stream in self._streams if re.fullmatch(resource, stream.info.resource)]
        for stream in hit:
            stream.orders.put_nowait(fault)
        return len(hit)

    def pause(self) -> None:
        """Hold every request and every line until `resume`; connections stay open."""
        self._open.clear()

    def resume(self) -> None:
        """Let everything that was held go on, in order."""
        self._open.set()

    async def down(self) -> None:
        """As if the server had died: refuse connections and reset the open ones."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        for connection in self._web.connections:
            _reset(connection.transport)

    async def up(self) -> None:
        """Listen (again, on the same port)."""
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(
            self._web, "127.0.0.1", self._port, ssl=self._ssl, reuse_address=True
        )
        self._port = self._listener.sockets[0].getsockname()[1]

    @property
    def open_streams(self) -> list[RequestInfo]:
        """The watches that are being served now."""
        return [stream.info for stream in self._streams]

    def requests(self, verb: str = "", resource: str = ".*") -> list[Seen]:
        """What was seen of one verb (all when empty) and resource."""
        return [s for s in self.seen if verb in {"", s.info.verb} and re.fullmatch(resource, s.info.resource)]

    # --- life -------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(ssl=self._upstream_ssl, limit=0)
        self._session = aiohttp.ClientSession(
            connector=connector, auto_decompress=False, timeout=aiohttp.ClientTimeout(sock_connect=5)
        )
        await self.up()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.down()
        for task in self._late:
            task.cancel()
        await asyncio.gather(*self._late, return_exceptions=True)
        await self._web.shutdown(timeout=1)
        assert self._session is not None
        await self._session.close()

    # --- one request ------------------------------------------------------------------------------

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        info = parse(
            request.method, request.path, dict(request.query), request.headers.get("Content-Type", "")
        )
        seen = Seen(info, time.monotonic(), body)
        self.seen.append(seen)
        await self._open.wait()
        seen.fault = next((rule.fault for rule in self._rules if rule.meets(info, body)), None)
        if isinstance(seen.fault, Answer):
            seen.code = seen.fault.code
            headers = {"Content-Type": "application/json", **seen.fault.headers}
            return web.Response(status=seen.fault.code, body=seen.fault.body, headers=headers)
        if info.verb == "watch":
            return await self._stream(request, seen)
        if isinstance(seen.fault, Hang):
            await asyncio.Event().wait()
        if isinstance(seen.fault, Cut):
            return _hang_up(request)
        task = asyncio.create_task(self._forward(request, seen))  # goes on when the client gives up
        self._late.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    def _forget(self, task: "asyncio.Task[web.Response]") -> None:
        self._late.discard(task)
        if not task.cancelled():
            task.exception()  # the client has seen it or is gone

    async def _forward(self, request: web.BaseRequest, seen: Seen) -> web.Response:
        if isinstance(seen.fault, Delay):
            await asyncio.sleep(seen.fault.seconds)
        try:
            async with self._send(request, seen.body) as answer:
                content = await answer.read()
                headers = {k: v for k, v in answer.headers.items() if k.lower() not in _HOP_BY_HOP}
        except aiohttp.ClientError:
            return _hang_up(request)
        if isinstance(seen.fault, DropResponse):
            return _hang_up(request)
        seen.code = answer.status
        return web.Response(status=answer.status, body=content, headers=headers)

    def _send(self, request: web.BaseRequest, body: bytes) -> "aiohttp.client._RequestContextManager":
        assert self._session is not None
        headers = {k: v for k, v in request.headers.items() if k.lower() not in _HOP_BY_HOP}
        url = yarl.URL(self._upstream + request.raw_path, encoded=True)
        return self._session.request(request.method, url, data=body or None, headers=headers)

    # --- one stream -------------------------------------------------------------------------------

    async def _stream(self, request: web.BaseRequest, seen: Seen) -> web.StreamResponse:
        stream = _Stream(seen.info)
        if seen.fault is not None and not getattr(seen.fault, "lines", 0):
            stream.orders.put_nowait(seen.fault)
        self._streams.append(stream)
        try:
            async with self._send(request, seen.body) as answer:
                seen.code = answer.status
                headers = {k: v for k, v in answer.headers.items() if k.lower() not in _HOP_BY_HOP}
                response = web.StreamResponse(status=answer.status, headers=headers)
                await response.prepare(request)
                return await self._pump(request, response, answer, stream, seen.fault)
        except aiohttp.ClientError:
            return _hang_up(request)
        finally:
            self._streams.remove(stream)

    async def _pump(
        self,
        request: web.BaseRequest,
        response: web.StreamResponse,
        answer: aiohttp.ClientResponse,
        stream: _Stream,
        planned: Fault | None,
    ) -> web.StreamResponse:
        """Pass lines on until the stream ends or a fault ends it."""
        lines = _lines(answer)
        line = asyncio.ensure_future(anext(lines, None))
        order = asyncio.ensure_future(stream.orders.get())
        passed = 0
        try:
            while True:
                await asyncio.wait({line, order}, return_when=asyncio.FIRST_COMPLETED)
                await self._open.wait()
                if order.done():
                    return await _disturb(request, response, order.result())
                data = line.result()
                if data is None:
                    return response
                await response.write(data)
                passed += 1
                if planned is not None and getattr(planned, "lines", 0) == passed:
                    return await _disturb(request, response, planned)
                line = asyncio.ensure_future(anext(lines, None))
        finally:
            for task in (line, order):
                task.cancel()
            await asyncio.gather(line, order, return_exceptions=True)


async def _lines(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Lines of any length (aiohttp's readline has a limit), the end of an unfinished one included."""
    held = b""
    async for chunk in answer.content.iter_any():
        *whole, held = (held + chunk).split(b"\n")
        for line in whole:
            yield line + b"\n"
    if held:
        yield held


async def _disturb(
    request: web.BaseRequest, response: web.StreamResponse, fault: Fault
) -> web.StreamResponse:
    match fault:
        case Hang():
            await asyncio.Event().wait()
        case Inject(line):
            await response.write(line)
        case Cut(End.TORN):
            await response.write(_TORN_LINE)
            return _hang_up(request, response, reset=False)
        case Cut(End.RESET):
            return _hang_up(request, response)
        case Cut(End.EOF):
            pass
        case _:
            raise ValueError(f"{fault} is for plain requests, not for streams")
    return response


def _hang_up(
    request: web.BaseRequest, response: web.StreamResponse | None = None, *, reset: bool = True
) -> web.Response:
    """Close the connection without another byte of HTTP."""
    if reset:
        _reset(request.transport)
    elif request.transport is not None:
        request.transport.close()
    if response is not None:
        response.force_close()
    raise asyncio.CancelledError  # ends the handler without an answer


def _reset(transport: asyncio.BaseTransport | None) -> None:
    if transport is None:
        return
    raw = transport.get_extra_info("socket")
    if raw is not None:  # else it is closed already
        with contextlib.suppress(OSError):  # as above
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
    assert isinstance(transport, asyncio.Transport)
    transport.abort()
