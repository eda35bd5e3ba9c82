"""The fault proxy against a small server: each fault as the client sees it, and what reached the server."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web

from test.support.faults import (
    GONE,
    TOO_LARGE_VERSION,
    Answer,
    Cut,
    Delay,
    DropResponse,
    End,
    Hang,
    error_event,
    forbidden,
    throttled,
)
from test.support.proxy import FaultProxy
from test.support.waiting import wait_for

PODS = "/api/v1/namespaces/a/pods"
WATCH = f"{PODS}?watch=true"


class Server:
    """Counts writes and serves a watch of numbered events, one per `emit`."""

    def __init__(self) -> None:
        self.writes = 0
        self.watchers: list[asyncio.Queue[int | None]] = []
        self.url = ""

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        if request.method != "GET":
            self.writes += 1
            return web.json_response({"auth": request.headers.get("Authorization", "")}, status=201)
        if "watch" not in request.query:
            return web.json_response({"items": [], "query": request.query_string})
        response = web.StreamResponse()
        await response.prepare(request)
        events: asyncio.Queue[int | None] = asyncio.Queue()
        self.watchers.append(events)
        while (number := await events.get()) is not None:
            await response.write(json.dumps({"type": "ADDED", "object": {"n": number}}).encode() + b"\n")
        return response

    async def emit(self, *numbers: int | None) -> None:
        """Send events (None ends the stream) to every watcher, once there is one."""
        await wait_for(lambda: self.watchers)
        for watcher in self.watchers:
            for number in numbers:
                watcher.put_nowait(number)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    """The server behind the proxy."""
    it = Server()
    runner = web.ServerRunner(web.Server(it.handle, handler_cancellation=True), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    it.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield it
    await runner.cleanup()


@pytest.fixture(params=[False, True], ids=["http", "https"])
async def proxy(server: Server, request: pytest.FixtureRequest) -> AsyncIterator[FaultProxy]:
    """The proxy, with and without TLS."""
    async with FaultProxy(server.url, tls=request.param) as it:
        yield it


@pytest.fixture
async def client(proxy: FaultProxy) -> AsyncIterator[aiohttp.ClientSession]:
    """A client that trusts the proxy."""
    context = ssl.create_default_context(cadata=proxy.ca) if proxy.ca else True
    async with aiohttp.ClientSession(
        proxy.url,
        connector=aiohttp.TCPConnector(ssl=context),
        headers={"Authorization": "Bearer t"},
        timeout=aiohttp.ClientTimeout(total=5),
    ) as session:
        yield session


async def numbers(client: aiohttp.ClientSession) -> list[int]:
    """Events of a watch up to its end."""
    async with client.get(WATCH) as answer:
        return [json.loads(line)["object"]["n"] async for line in answer.content]


async def test_passes_requests_and_streams_unchanged(
    proxy: FaultProxy, client: aiohttp.ClientSession, server: Server
) -> None:
    """Without rules the proxy can't be noticed."""
    async with client.get(f"{PODS}?labelSelector=a%3Db,c") as answer:
        assert {"items": [], "query": "labelSelector=a%3Db,c"} == await answer.json()
    async with client.post(PODS, data=b"{}") as answer:
        assert {"auth": "Bearer t"} == await answer.json()
        assert 201 == answer.status
    _, seen = await asyncio.gather(server.emit(1, 2, None), numbers(client))
    assert [1, 2] == seen
    assert [("list", 200), ("create", 201), ("watch", 200)] == [(s.info.verb, s.code) for s in proxy.seen]


@pytest.mark.parametrize(
    "fault",
    [GONE, TOO_LARGE_VERSION, throttled(7), Answer(500, "InternalError"), forbidden("me", "list", "pods")],
    ids=lambda fault: str(fault.code),
)
async def test_answers_for_the_server(
    proxy: FaultProxy, client: aiohttp.ClientSession, server: Server, fault: Answer
) -> None:
    """An injected answer is a metav1.Status, reaches nobody else and is given once."""
    rule = proxy.on(fault, verb="create", resource="pods")
    async with client.post(PODS) as answer:
        assert (fault.code, fault.reason) == (answer.status, (await answer.json())["reason"])
        assert fault.headers.get("Retry-After") == answer.headers.get("Retry-After")
    async with client.post(PODS) as answer:
        assert 201 == answer.status
    assert (1, 1) == (server.writes, rule.hits)


async def test_addresses_the_nth_match_by_predicate(
    proxy: FaultProxy, client: aiohttp.ClientSession, server: Server
) -> None:
    """`nth`, `times` and `where` choose among requests of the same verb and resource."""
    proxy.on(Answer(500), verb="create", nth=2, times=2, where=lambda _, body: body == b"yes")
    codes = []
    for body in (b"yes", b"no", b"yes", b"yes", b"yes"):
        async with client.post(PODS, data=body) as answer:
            codes.append(answer.status)
    assert [201, 201, 500, 500, 201] == codes
    assert 3 == server.writes


async def test_dropped_response_was_committed(
    proxy: FaultProxy, client: aiohttp.ClientSession, server: Server
) -> None:
    """After `DropResponse` the client knows nothing and the write has happened."""
    proxy.on(DropResponse(), verb="create")
    with pytest.raises(aiohttp.ClientConnectionError):
        await client.post(PODS)
    assert 1 == server.writes


async def test_cut_request_never_arrives(
    proxy: FaultProxy, client: aiohttp.ClientSession, server: Server
) -> None:
    """A plain request that is cut has not happened."""
    proxy.on(Cut(End.RESET), verb="create")
    with pytest.raises(aiohttp.ClientConnectionError):
        await client.post(PODS)
    assert 0 == server.writes


async def test_delayed_write_arrives_after_the_client_gave_up(
    proxy: FaultProxy, client: aiohttp.ClientSession, server: Server
) -> None:
    """The late write of a client that timed out still reaches the server."""
    proxy.on(Delay(0.2), verb="create")
    with pytest.raises(TimeoutError):
        await client.post(PODS, timeout=aiohttp.ClientTimeout(total=0.05))
    assert 0 == server.writes
    await wait_for(lambda: server.writes == 1)


async def test_hanging_request_never_arrives(
    proxy: FaultProxy, client: aiohttp.ClientSession, server: Server
) -> None:
    """A request into a half-open connection gets no answer and no effect."""
    proxy.on(Hang(), verb="create")
    with pytest.raises(TimeoutError):
        await client.post(PODS, timeout=aiohttp.ClientTimeout(total=0.1))
    assert 0 == server.writes


@pytest.mark.parametrize("when", ["planned", "now"])
async def test_stream_ends_cleanly(
    proxy: FaultProxy, client: aiohttp.ClientSession, server: Server, when: str
) -> None:
    """A clean cut looks like the server's own timeout: whole lines, then the end."""
    if when == "planned":
        proxy.on(Cut(End.EOF, lines=2), verb="watch")
    async with client.get(WATCH) as answer:
        await server.emit(1, 2)
        assert [b"ADDED", b"ADDED"] == [(await answer.content.readline())[10:15] for _ in range(2)]
        if when == "now":
            assert 1 == proxy.disturb(Cut(End.EOF), "pods")
        assert b"" == await answer.content.read()


@pytest.mark.parametrize("end", [End.TORN, End.RESET])
async def test_stream_breaks(
    proxy: FaultProxy, client: aiohttp.ClientSession, server: Server, end: End
) -> None:
    """A torn or reset stream is an error for the client, never an end."""
    proxy.on(Cut(end, lines=1), verb="watch")
    async with client.get(WATCH) as answer:
        await server.emit(1)
        with pytest.raises(aiohttp.ClientError):
            await answer.content.read()


async def test_stream_falls_silent(proxy: FaultProxy, client: aiohttp.ClientSession, server: Server) -> None:
    """A hanging stream stays open and delivers nothing more."""
    proxy.on(Hang(lines=1), verb="watch")
    async with client.get(WATCH) as answer:
        await server.emit(1, 2, None)
        assert await answer.content.readline()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(answer.content.readline(), 0.2)


async def test_injected_error_event(proxy: FaultProxy, client: aiohttp.ClientSession, server: Server) -> None:
    """The second form of 410: an ERROR event inside a healthy stream."""
    async with client.get(WATCH) as answer:
        await server.emit(1)
        await answer.content.readline()
        proxy.disturb(error_event())
        event = json.loads(await answer.content.read())
    assert ("ERROR", 410, "Expired") == (event["type"], event["object"]["code"], event["object"]["reason"])


async def test_pause_holds_and_resume_delivers_in_order(
    proxy: FaultProxy, client: aiohttp.ClientSession, server: Server
) -> None:
    """While paused nothing passes; afterwards nothing is lost."""
    async with client.get(WATCH) as answer:
        await server.emit(1)
        await answer.content.readline()
        proxy.pause()
        await server.emit(2, 3, None)
        with pytest.raises(TimeoutError):
            await client.post(PODS, timeout=aiohttp.ClientTimeout(total=0.1))
        assert 0 == server.writes
        proxy.resume()
        assert [2, 3] == [json.loads(line)["object"]["n"] async for line in answer.content]


async def test_down_refuses_and_up_serves_again(
    proxy: FaultProxy, client: aiohttp.ClientSession, server: Server
) -> None:
    """A server that is away refuses connections, resets streams and comes back at the same address."""
    async with client.get(WATCH) as answer:
        await server.emit(1)
        await answer.content.readline()
        await proxy.down()
        with pytest.raises(aiohttp.ClientError):
            await answer.content.read()
    with pytest.raises(aiohttp.ClientConnectionError):
        await client.post(PODS)
    await proxy.up()
    async with client.post(PODS) as answer:
        assert 201 == answer.status
