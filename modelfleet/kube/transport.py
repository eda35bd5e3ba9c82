"""The seam between the client and the wire: one interface, one real implementation, faults injected here.

Promises of every `Transport`: an answer, whatever its status, is returned; no answer raises
`TransportError`, whose `unknown_outcome` tells whether the request may have reached the server (rule A14);
nothing waits without a deadline; redirects are not followed; a `Guard` that raises stops the request before
its first byte leaves (facts 1.7).
"""

import asyncio
import io
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from functools import partial
from http import HTTPStatus
from typing import NamedTuple, Protocol, Self

import aiohttp
import msgspec
import structlog
from yarl import URL

from modelfleet.kube.auth import Access, Grant
from modelfleet.kube.errors import TransportError
from modelfleet.kube.failures import explain, is_tls
from modelfleet.kube.guarded_request import GuardedRequest, NotRepeatedError, Passage
from modelfleet.kube.lines import LineSplitter
from modelfleet.kube.paths import query_string
from modelfleet.kube.proxy import is_loopback

CONNECT_TIMEOUT = 10.0
"""Seconds for TCP and TLS to one address; client-go's dialer takes 30, more than a Lease can wait."""

KEEPALIVE = 60.0
"""Seconds an idle connection is kept; the API server closes it after 90 (http.Server IdleTimeout)."""

MAX_CONNECTIONS = 100
"""For requests; well over the writes in flight. Watches have their own, unbounded: each keeps one."""

_INLINE_BODY = 256 * 1024
"""Bytes above which a body is handed to aiohttp as a file, written in pieces so that the loop can breathe."""

_log = structlog.get_logger(__name__)

Guard = Callable[[], None]
"""Raises `FencedError` when this process may not write; called as late as possible, so it must be quick."""


class Response(msgspec.Struct, frozen=True, gc=False):
    """A complete answer."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case; repeated headers are joined with a comma (RFC 9110, 5.3)."""
    body: bytes

    def __repr__(self) -> str:
        """Size instead of content: a body may hold a Secret (facts 1.9)."""
        return f"Response(status={self.status}, body={len(self.body)} bytes)"


class Stream(Protocol):
    """An answer whose body is read line by line while it arrives."""

    @property
    def status(self) -> int:
        """HTTP status; lines are only meaningful for 200."""

    @property
    def headers(self) -> Mapping[str, str]:
        """As `Response.headers`."""

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Complete lines without their newline; a clean end of the body ends the iteration.

        Raises `TransportError` when no byte came for the idle timeout, when the total timeout has passed
        and when the body is cut.
        """

    async def read(self) -> bytes:
        """The rest of the body, for answers other than 200."""


class Transport(Protocol):
    """One API server, credentials included."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        timeout: float,  # noqa: ASYNC109 -- a deadline is part of every call, so that none is forgotten
        guard: Guard | None = None,
    ) -> Response:
        """Send one request and read the whole answer within `timeout` seconds; `path` is URL-escaped."""

    def stream(
        self,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        idle_timeout: float,
        total_timeout: float,
    ) -> AbstractAsyncContextManager[Stream]:
        """GET whose answer is read line by line; both timeouts are in seconds (rules I3, I4)."""

    async def close(self) -> None:
        """Close every connection; nothing can be sent afterwards."""


_REQUEST_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT)
"""The rest of a request's deadline is an `asyncio.timeout` around all of it, credentials included."""


class _Call(msgspec.Struct, frozen=True):
    """One request as aiohttp takes it, but for credentials."""

    method: str
    url: URL
    headers: Mapping[str, str]
    timeout: aiohttp.ClientTimeout
    body: bytes | None = None

    def data(self) -> bytes | io.BytesIO | None:
        """A new body for each attempt."""
        large = self.body is not None and len(self.body) > _INLINE_BODY
        return io.BytesIO(self.body) if self.body is not None and large else self.body


class _Sessions(NamedTuple):
    """Two pools, so that watches can't take the connections of requests."""

    requests: aiohttp.ClientSession
    watches: aiohttp.ClientSession


def _session(connections: int) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=connections, keepalive_timeout=KEEPALIVE),
        cookie_jar=aiohttp.DummyCookieJar(),
        request_class=GuardedRequest,
    )


class AiohttpTransport:
    """The real one, over HTTP/1.1.

    Credentials and TLS context are asked for anew for each request, so both rotate without a pause. The
    context is part of what aiohttp's pool keys connections by: after a change whoever connects next uses
    the new one, while streams and requests under way finish on the connections they have.
    """

    def __init__(self, access: Access, *, max_connections: int = MAX_CONNECTIONS) -> None:
        self._access = access
        self._max_connections = max_connections
        self._encoding = "identity" if is_loopback(access.server) else "gzip"
        self._sessions: _Sessions | None = None
        self._closed = False

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        timeout: float,  # noqa: ASYNC109 -- part of the interface
        guard: Guard | None = None,
    ) -> Response:
        """See `Transport.request`."""
        session = self._open_sessions().requests
        passage = Passage(guard)
        url = self._url(path, query)
        call = _Call(
            method, url, {"Accept-Encoding": self._encoding, **(headers or {})}, _REQUEST_TIMEOUT, body
        )
        with self._failures(f"{method} {path}", passage):
            async with asyncio.timeout(timeout), await self._open(session, call, passage) as response:
                return Response(response.status, _headers(response), await response.read())

    @asynccontextmanager
    async def stream(
        self,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        idle_timeout: float,
        total_timeout: float,
    ) -> AsyncIterator[Stream]:
        """See `Transport.stream`. Identity: a compressor would hold events back."""
        session = self._open_sessions().watches
        passage = Passage()
        timeout = aiohttp.ClientTimeout(
            total=total_timeout, sock_read=idle_timeout, sock_connect=CONNECT_TIMEOUT
        )
        url = self._url(path, query)
        call = _Call("GET", url, {"Accept-Encoding": "identity", **(headers or {})}, timeout)
        with self._failures(f"GET {path}", passage):
            async with asyncio.timeout(idle_timeout):
                response = await self._open(session, call, passage)
        try:
            yield _LineStream(response, partial(self._failures, f"GET {path}", passage))
        finally:
            if response.connection is not None and response.connection.transport is not None:
                response.connection.transport.abort()  # a TLS farewell would outlive `close`
            response.close()

    async def close(self) -> None:
        """See `Transport.close`."""
        self._closed = True
        for session in self._sessions or ():
            await session.close()

    async def _open(
        self, session: aiohttp.ClientSession, call: _Call, passage: Passage
    ) -> aiohttp.ClientResponse:
        """Send with current credentials; after a 401, once more if there are others (facts 1.10)."""
        grant = await self._access.grant()
        response = await self._send(session, call, grant, passage)
        if response.status != HTTPStatus.UNAUTHORIZED:
            return response
        try:
            renewed = await self._access.renew(grant)
        except BaseException:
            response.close()
            raise
        if renewed is None:
            _log.warning("the API server refuses our credentials", source=self._access.source)
            return response
        response.close()
        passage.sent = False
        return await self._send(session, call, renewed, passage)

    async def _send(
        self, session: aiohttp.ClientSession, call: _Call, grant: Grant, passage: Passage
    ) -> aiohttp.ClientResponse:
        return await session.request(
            call.method,
            call.url,
            headers=[*call.headers.items(), *grant.headers],
            data=call.data(),
            timeout=call.timeout,
            ssl=grant.tls if grant.tls is not None else True,
            server_hostname=self._access.server_name,
            proxy=self._access.proxy,
            allow_redirects=False,
            middlewares=(passage,),
        )

    def _open_sessions(self) -> _Sessions:
        """Made on first use, since aiohttp wants a running loop."""
        if self._closed:
            raise TransportError(f"we have closed the connection to {self._access.host}", sent=False)
        if self._sessions is None:
            self._sessions = _Sessions(_session(self._max_connections), _session(0))
        return self._sessions

    def _url(self, path: str, query: Mapping[str, str] | None) -> URL:
        return URL(f"{self._access.server}{path}{query_string(query)}", encoded=True)

    @contextmanager
    def _failures(self, what: str, passage: Passage) -> Iterator[None]:
        """Turn what aiohttp raises into a TransportError that says what happened and what to do."""
        try:
            yield
        except NotRepeatedError as error:
            raise explain(error.cause, what, self._access, sent=True) from error.cause
        except (aiohttp.ClientError, OSError) as error:  # TimeoutError and ssl.SSLError are OSErrors
            if is_tls(error):
                self._access.distrust()
            raise explain(error, what, self._access, sent=passage.sent) from error


class _LineStream:
    """Lines of a response while it arrives."""

    def __init__(
        self, response: aiohttp.ClientResponse, failures: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self.status = response.status
        self.headers = _headers(response)
        self._response = response
        self._failures = failures
        self._splitter = LineSplitter()
        self._lines: deque[bytes] = deque()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        while not self._lines:
            with self._failures():
                chunk = await self._response.content.readany()
            if not chunk:
                self._splitter.finish()
                raise StopAsyncIteration
            self._lines.extend(self._splitter.feed(chunk))
        return self._lines.popleft()

    async def read(self) -> bytes:
        with self._failures():
            return await self._response.read()


def _headers(response: aiohttp.ClientResponse) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in response.headers.items():
        key = name.lower()
        headers[key] = f"{headers[key]}, {value}" if key in headers else value
    return headers
