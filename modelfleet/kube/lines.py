"""Lines out of chunks: a watch sends one JSON event a line, cut anywhere by the network.

Invariant: however the bytes are cut, the lines are the same; no line is handed out before its newline came.
"""

from modelfleet.kube.errors import TransportError

MAX_LINE = 8 * 1024 * 1024
"""Bytes. etcd takes objects up to 1.5 MiB (--max-request-bytes); escapes in JSON can make them longer."""


class LineSplitter:
    """Feed it chunks, get complete lines without their newline."""

    def __init__(self, limit: int = MAX_LINE) -> None:
        self._limit = limit
        self._held: list[bytes] = []
        self._held_size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines this chunk completes. Raises TransportError for a line over the limit."""
        *complete, rest = chunk.split(b"\n")
        if complete:
            complete[0] = b"".join((*self._held, complete[0]))
            self._held.clear()
            self._held_size = 0
        if rest:
            self._held.append(rest)
            self._held_size += len(rest)
        if self._held_size > self._limit or any(len(line) > self._limit for line in complete):
            raise TransportError(
                f"the server sent a line of more than {self._limit} bytes, far over what an object may have; "
                "is this an API server?"
            )
        return complete

    def finish(self) -> None:
        """The body ended. Raises TransportError in the middle of a line."""
        if self._held_size:
            raise TransportError(
                f"the stream ended in the middle of a line, after {self._held_size} bytes of it"
            )
