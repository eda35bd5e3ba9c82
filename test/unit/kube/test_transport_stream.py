"""Streams: silence, cuts and long lines (rules I3, I4)."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from aiohttp import web

from modelfleet.kube.auth import Access
from modelfleet.kube.credentials import TokenFile
from modelfleet.kube.errors import TransportError
from modelfleet.kube.transport import AiohttpTransport
from test.unit.kube.fake_apiserver import Handler, serving


def sending(chunks: Sequence[bytes], *, then: str = "end", pause: float = 0.0) -> Handler:
    """Send chunks, then "end" cleanly, "cut" the connection or "hang"."""

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
            await asyncio.sleep(pause)
        if then == "cut":
            assert request.transport is not None
            request.transport.close()
        elif then == "hang":
            await asyncio.Event().wait()
        return response

    return handler


async def lines_of(
    handler: Handler, *, idle: float = 10.0, total: float = 20.0
) -> tuple[list[bytes], TransportError | None]:
    """The lines that came, and how the stream failed."""
    got: list[bytes] = []
    failure = None
    async with serving(handler) as server:
        transport = AiohttpTransport(Access(server.url))
        try:
            async with transport.stream("/w", idle_timeout=idle, total_timeout=total) as stream:
                async for line in stream:
                    got.append(line)  # noqa: PERF401  # what came before a failure counts
        except TransportError as error:
            failure = error
        await transport.close()
    return got, failure


async def test_lines_come_whole_and_a_clean_end_ends_them() -> None:
    """However they were sent."""
    assert ([b"one", b"two", b"three"], None) == await lines_of(sending([b"one\ntw", b"o\n", b"three\n"]))


async def test_an_objects_largest_size_fits_in_a_line() -> None:
    """That is 1.5 MiB in etcd; the line of an event is longer."""
    line = b"x" * (3 * 1024 * 1024)
    assert ([line], None) == await lines_of(sending([line + b"\n"]))


async def test_a_line_without_end_is_an_error() -> None:
    """Whoever sends that is no API server."""
    got, failure = await lines_of(sending([b"x" * 1024 * 1024] * 9))
    assert [] == got
    assert "is this an API server?" in str(failure)


@pytest.mark.parametrize(
    ("handler", "message"),
    [
        (sending([b"one\n", b"tw"], then="cut"), "the answer was cut off"),
        (sending([b"one\n"], then="cut"), "the answer was cut off"),
        (sending([b"one\n", b"tw"]), "ended in the middle of a line"),
    ],
)
async def test_a_cut_is_an_error(handler: Handler, message: str) -> None:
    """Only a complete body is a clean end; what came before the cut was delivered."""
    got, failure = await lines_of(handler)
    assert [b"one"] == got
    assert message in str(failure)


async def test_silence_is_an_error() -> None:
    """A peer that vanished without a FIN sends nothing for ever (rule I4)."""
    got, failure = await lines_of(sending([b"one\n"], then="hang"), idle=0.2)
    assert [b"one"] == got
    assert "went silent" in str(failure)


async def test_silence_before_the_headers_is_an_error() -> None:
    """A server that accepts and never answers must not hold us."""

    async def handler(_: web.Request) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError

    _, failure = await lines_of(handler, idle=0.2)
    assert failure is not None


async def test_any_byte_shows_that_the_peer_lives() -> None:
    """A stream may be much longer than its idle timeout."""
    got, failure = await lines_of(sending([b"x\n"] * 20, pause=0.05), idle=0.6)
    assert ([b"x"] * 20, None) == (got, failure)


async def test_a_stream_ends_at_its_total_timeout() -> None:
    """A server that ignores timeoutSeconds must not keep a stream for ever (rule I3)."""
    got, failure = await lines_of(sending([b"x\n"] * 1000, pause=0.05), total=0.3)
    assert got
    assert "no complete answer in time" in str(failure)


async def test_a_refusal_can_be_read() -> None:
    """Other answers than 200 have a Status as body."""

    async def handler(_: web.Request) -> web.Response:
        return web.Response(status=410, text="gone", headers={"Warning": "w"})

    async with serving(handler) as server:
        transport = AiohttpTransport(Access(server.url))
        async with transport.stream("/w", query={"watch": "1"}, idle_timeout=10, total_timeout=10) as stream:
            assert (410, "w", b"gone") == (stream.status, stream.headers["warning"], await stream.read())
        await transport.close()
    assert ("identity", {"watch": "1"}) == (server.seen[0].headers["accept-encoding"], server.seen[0].query)


async def test_a_401_refreshes_the_token_once(tmp_path: Path) -> None:
    """A stream is opened with the newest credentials there are."""
    file = tmp_path / "token"
    file.write_text("old")

    async def handler(request: web.Request) -> web.StreamResponse:
        if request.headers["Authorization"] != "Bearer new":
            return web.Response(status=401)
        return await sending([b"one\n"])(request)

    async with serving(handler) as server:
        source = TokenFile(file)
        await source.current()
        file.write_text("new")
        transport = AiohttpTransport(Access(server.url, credentials=source))
        async with transport.stream("/w", idle_timeout=10, total_timeout=10) as stream:
            assert [b"one"] == [line async for line in stream]
        await transport.close()
    assert ["Bearer old", "Bearer new"] == [seen.headers["authorization"] for seen in server.seen]


async def test_streams_do_not_take_the_connections_of_requests() -> None:
    """Each watch keeps a connection for minutes."""

    async def handler(request: web.Request) -> web.StreamResponse:
        return await sending([b"x\n"], then="hang")(request) if request.path == "/w" else web.Response()

    async with serving(handler) as server:
        transport = AiohttpTransport(Access(server.url), max_connections=1)
        streams = [transport.stream("/w", idle_timeout=10, total_timeout=10) for _ in range(3)]
        async with streams[0] as one, streams[1] as two, streams[2] as three:
            assert [b"x"] * 3 == [await anext(aiter(stream)) for stream in (one, two, three)]
            assert 200 == (await transport.request("GET", "/r", timeout=10)).status
        await transport.close()


async def test_an_error_of_the_reader_closes_the_stream() -> None:
    """The connection goes with the block, whatever ends it."""
    closed = asyncio.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        try:
            return await sending([b"x\n"], then="hang")(request)
        finally:
            closed.set()

    async with serving(handler) as server:
        transport = AiohttpTransport(Access(server.url))
        with pytest.raises(LookupError):  # noqa: PT012  # the block is what ends the stream
            async with transport.stream("/w", idle_timeout=10, total_timeout=10) as stream:
                await anext(aiter(stream))
                raise LookupError
        await transport.close()
        await asyncio.wait_for(closed.wait(), timeout=10)
