"""What a fake API server says: answers, lines of watches, and the streams that say them."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from modelfleet.kube.errors import TransportError
from modelfleet.kube.transport import Response

Object = dict[str, Any]
JSON = {"content-type": "application/json"}
BOOKMARK_SECONDS = 60.0


@dataclass(frozen=True)
class Answer:
    """An HTTP answer with a metav1.Status, or any other body."""

    code: int
    reason: str = ""
    message: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None

    @property
    def status(self) -> Object:
        """The Status object."""
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "code": self.code,
            "reason": self.reason,
            "message": self.message or self.reason,
            "details": dict(self.details),
        }

    def response(self) -> Response:
        """As it goes over the wire."""
        body = json.dumps(self.status).encode() if self.body is None else self.body
        return Response(self.code, {**JSON, **self.headers}, body)


class Refused:
    """Nobody listens."""


@dataclass(frozen=True)
class Script:
    """A watch that says these lines and then ends, breaks or falls silent."""

    lines: tuple[bytes, ...] = ()
    then: str = "end"


GONE = Answer(410, "Expired", "too old resource version")
TOO_LARGE = Answer(
    504,
    "Timeout",
    "Too large resource version: 9, current: 1",
    {"causes": [{"reason": "ResourceVersionTooLarge"}], "retryAfterSeconds": 1},
)
NO_WATCH_LIST = Answer(
    422, "Invalid", "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
)
Fault = Answer | Refused | Script


def event(kind: str, obj: Object) -> bytes:
    """A line of a watch."""
    return json.dumps({"type": kind, "object": obj}).encode()


def error_event(answer: Answer) -> bytes:
    """The same trouble as `answer`, told on a stream that is open already."""
    return event("ERROR", answer.status)


def bookmark(revision: int, *, initial_end: bool = False) -> bytes:
    """A BOOKMARK line."""
    metadata: Object = {"resourceVersion": str(revision)}
    if initial_end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    return event("BOOKMARK", {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata})


class FakeStream:
    """One open watch."""

    def __init__(
        self,
        namespace: str,
        selector: str,
        *,
        idle: float,
        total: float,
        asked: float,
        since: int,
        latest: Callable[[], int],
    ) -> None:
        self.namespace = namespace
        self.selector = selector
        self.silent = False
        self._latest = latest
        self._since = since
        self._idle = idle
        now = asyncio.get_running_loop().time()
        self._heard_at = now
        self._dead_at = now + total
        self._end_at = now + asked
        self._bookmark_at = min(now + BOOKMARK_SECONDS, max(now, self._end_at - 2))
        self._lines: asyncio.Queue[bytes | TransportError | None] = asyncio.Queue()

    status = 200
    headers: Mapping[str, str] = JSON

    def push(self, line: bytes | TransportError | None) -> None:
        """Say a line, end (None) or, even when silent, break (an error)."""
        if not self.silent or isinstance(line, TransportError):
            self._lines.put_nowait(line)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            line = await self._next()
            if line == b"":
                continue
            self._heard_at = asyncio.get_running_loop().time()
            if line is None:
                return
            if isinstance(line, TransportError):
                raise line
            yield line

    async def read(self) -> bytes:
        """Only other answers than 200 have a body to read at once."""
        raise AssertionError("a watch was read to its end")

    async def _next(self) -> bytes | TransportError | None:
        """A line, b"" for nothing yet, an error or the end."""
        loop = asyncio.get_running_loop()
        idle_at = self._heard_at + self._idle
        wake = min(idle_at, self._dead_at)
        if not self.silent:
            wake = min(wake, self._bookmark_at, self._end_at)
        try:
            async with asyncio.timeout_at(wake):
                return await self._lines.get()
        except TimeoutError:
            pass
        if wake in (idle_at, self._dead_at):
            return TransportError("no byte came for too long")
        if self.silent:
            return b""
        if wake == self._end_at:
            return None
        self._bookmark_at = loop.time() + BOOKMARK_SECONDS
        # A watch from the future is told nothing until the future has come (cache_watcher.go: process).
        return bookmark(self._latest()) if self._latest() >= self._since else b""


class RefusedStream:
    """The stream of an answer other than 200."""

    def __init__(self, answer: Answer) -> None:
        response = answer.response()
        self.status = response.status
        self.headers = response.headers
        self._body = response.body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield b"an answer other than 200 has no events"

    async def read(self) -> bytes:
        """The Status."""
        return self._body
