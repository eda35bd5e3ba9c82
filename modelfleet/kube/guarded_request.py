"""The last look before bytes leave: asks a write's guard when its connection is ready (facts 1.7).

A request can wait long after the client asked the fence: for a free connection, for TCP and TLS. So the
guard is asked again when the connection is there, and once more in the task that writes headers and body
(aiohttp holds headers back until the body is written); from there to the socket nothing awaits.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from aiohttp import ClientHandlerType, ClientOSError, ClientRequest, ClientResponse, ServerDisconnectedError
from aiohttp.abc import AbstractStreamWriter
from aiohttp.connector import Connection

from modelfleet.kube.errors import FencedError


@dataclass(slots=True)
class Passage:
    """What is known of one request on its way; an aiohttp middleware that accompanies it."""

    guard: Callable[[], None] | None = None
    sent: bool = False
    """A byte of it may have reached the server."""

    async def __call__(self, request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
        """Attach this passage to the request; keep aiohttp from sending a write twice (rule A14).

        aiohttp repeats what HTTP calls idempotent on a connection found dead. A PUT or DELETE that took
        effect would come back as a conflict with itself.
        """
        cast("GuardedRequest", request).passage = self
        try:
            return await handler(request)
        except (ClientOSError, ServerDisconnectedError) as error:
            if request.method == "GET" or not self.sent:
                raise
            raise NotRepeatedError(error) from error


class NotRepeatedError(Exception):
    """A write failed after its first byte may have left; `cause` tells how."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class GuardedRequest(ClientRequest):
    """A request that looks at its guard as late as it can."""

    passage: Passage | None = None

    async def send(self, conn: Connection) -> ClientResponse:
        """Called with the connection in hand."""
        self._admit()
        if self.passage is not None:
            self.passage.sent = True
        return await super().send(conn)

    async def write_bytes(
        self, writer: AbstractStreamWriter, conn: Connection, content_length: int | None = None
    ) -> None:
        """Runs as its own task, which nobody awaits: a refusal is handed to whoever waits for the answer."""
        try:
            self._admit()
        except FencedError as refusal:
            if conn.protocol is not None:
                conn.protocol.set_exception(refusal)
            conn.close()
            return
        await super().write_bytes(writer, conn, content_length)

    def _admit(self) -> None:
        if self.passage is not None and self.passage.guard is not None:
            self.passage.guard()
