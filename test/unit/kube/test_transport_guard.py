"""The fence is asked as late as possible before bytes leave (facts 1.7)."""

import asyncio

import pytest
from aiohttp import web

from modelfleet.kube.auth import Access
from modelfleet.kube.errors import FencedError
from modelfleet.kube.transport import AiohttpTransport
from test.unit.kube.fake_apiserver import serving


class Fence:
    """Up until it is taken down, or for a number of questions."""

    def __init__(self, allowed: int | None = None) -> None:
        self.allowed = allowed
        self.asked = 0

    def __call__(self) -> None:
        """The guard."""
        self.asked += 1
        if self.allowed is not None and self.asked > self.allowed:
            raise FencedError("not leading any more")

    def take_down(self) -> None:
        """From now on every question is answered with no."""
        self.allowed = 0


@pytest.mark.parametrize(("method", "body"), [("PATCH", b"{}"), ("DELETE", None)])
async def test_a_fence_that_falls_while_waiting_for_a_connection_stops_the_write(
    method: str, body: bytes | None
) -> None:
    """A leader that lost its lease in the queue must not write when its turn comes."""
    release = asyncio.Event()

    async def handler(_: web.Request) -> web.Response:
        await release.wait()
        return web.Response()

    fence = Fence()
    async with serving(handler) as server:
        transport = AiohttpTransport(Access(server.url), max_connections=1)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(transport.request("GET", "/holds-the-connection", timeout=10))
            await server.until(1)
            write = tasks.create_task(_fenced(transport, method, body, fence))
            await asyncio.sleep(0)
            fence.take_down()
            release.set()
        after = await transport.request("GET", "/still-usable", timeout=10)
        await transport.close()
    assert write.result()
    assert fence.asked > 0
    assert 200 == after.status
    assert ["/holds-the-connection", "/still-usable"] == [seen.path for seen in server.seen]


async def _fenced(transport: AiohttpTransport, method: str, body: bytes | None, fence: Fence) -> bool:
    """Whether the fence refused."""
    with pytest.raises(FencedError):
        await transport.request(method, "/write", body=body, timeout=10, guard=fence)
    return True


async def test_a_fence_that_falls_between_connection_and_body_stops_the_write() -> None:
    """Headers and body are written in a task of their own; the last question is asked there."""
    received: asyncio.Queue[bytes] = asyncio.Queue()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.put_nowait(await reader.read())
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        transport = AiohttpTransport(Access(f"http://127.0.0.1:{port}"))
        with pytest.raises(FencedError):
            await transport.request("PATCH", "/x", body=b"{}", timeout=10, guard=Fence(allowed=1))
        await transport.close()
        assert b"" == await asyncio.wait_for(received.get(), timeout=10)


async def test_a_standing_fence_lets_the_write_through() -> None:
    """And was asked on the way."""

    async def handler(_: web.Request) -> web.Response:
        return web.Response(status=201)

    fence = Fence()
    async with serving(handler) as server:
        transport = AiohttpTransport(Access(server.url))
        response = await transport.request("POST", "/x", body=b"{}", timeout=10, guard=fence)
        await transport.close()
    assert (201, b"{}") == (response.status, server.seen[0].body)
    assert fence.asked > 0
