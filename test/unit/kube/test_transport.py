"""Requests over a real socket: answers, failures (rule A14) and the credentials that go out."""

import asyncio
import socket
from pathlib import Path

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from modelfleet.kube.auth import Access
from modelfleet.kube.credentials import TokenFile
from modelfleet.kube.errors import CredentialsError, TransportError
from modelfleet.kube.transport import AiohttpTransport, Response
from test.unit.kube.fake_apiserver import Handler, serving


async def ok(_: web.Request) -> web.Response:
    """200 and an empty object."""
    return web.json_response({})


async def hang(_: web.Request) -> web.Response:
    """Never answer."""
    await asyncio.Event().wait()
    raise AssertionError


async def abort(request: web.Request) -> web.Response:
    """Read the request, then reset the connection."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def cut(request: web.Request) -> web.StreamResponse:
    """Promise more than is sent."""
    response = web.StreamResponse(headers={"Content-Length": "100"})
    await response.prepare(request)
    await response.write(b"{")
    assert request.transport is not None
    request.transport.close()
    return response


def answering(status: int, text: str = "", **headers: str) -> Handler:
    """A fixed answer."""

    async def handler(_: web.Request) -> web.Response:
        return web.Response(
            status=status,
            text=text,
            headers={name.replace("_", "-"): value for name, value in headers.items()},
        )

    return handler


@pytest.mark.parametrize("status", [200, 201, 301, 404, 409, 500])
async def test_any_answer_is_returned(status: int) -> None:
    """Only the client knows what a status means; redirects are not followed."""
    async with serving(answering(status, "text", Location="/elsewhere")) as server:
        transport = AiohttpTransport(Access(server.url))
        response = await transport.request("GET", "/x", timeout=10)
        await transport.close()
    assert (status, b"text") == (response.status, response.body)
    assert 1 == len(server.seen)


async def test_headers_come_in_lower_case_and_joined() -> None:
    """Several warnings are several headers."""

    async def handler(_: web.Request) -> web.Response:
        response = web.Response()
        response.headers.extend([("Warning", "a"), ("Warning", "b"), ("X-Other", "c")])
        return response

    async with serving(handler) as server:
        transport = AiohttpTransport(Access(server.url))
        response = await transport.request("GET", "/x", timeout=10)
        await transport.close()
    assert ("a, b", "c") == (response.headers["warning"], response.headers["x-other"])


async def test_paths_and_queries_arrive_as_they_were_meant() -> None:
    """Selectors hold commas, spaces and slashes; a prefix of the server's address is kept."""
    query = {"labelSelector": "a in (b,c),d/e=f g", "continue": "x+/="}
    async with serving(ok) as server:
        transport = AiohttpTransport(Access(f"{server.url}/prefix/"))
        await transport.request("GET", "/api/v1/a%2Fb", query=query, timeout=10)
        await transport.close()
    assert ("/prefix/api/v1/a%2Fb", query) == (server.seen[0].path, server.seen[0].query)


async def test_a_loopback_server_is_asked_not_to_compress() -> None:
    """Compression costs more than it saves there (facts 4.3); caller's headers win."""
    async with serving(ok) as server:
        transport = AiohttpTransport(Access(server.url))
        await transport.request("GET", "/x", headers={"Accept": "a/b"}, timeout=10)
        await transport.close()
    assert ("identity", "a/b") == (
        server.seen[0].headers["accept-encoding"],
        server.seen[0].headers["accept"],
    )


async def test_a_body_of_an_objects_largest_size_arrives_whole() -> None:
    """That is 1.5 MiB in etcd."""
    body = b"x" * (3 * 1024 * 1024 // 2)
    async with serving(ok) as server:
        transport = AiohttpTransport(Access(server.url))
        await transport.request("PUT", "/x", body=body, timeout=30)
        await transport.close()
    assert body == server.seen[0].body
    assert str(len(body)) == server.seen[0].headers["content-length"]


async def test_connections_are_kept() -> None:
    """One connection serves requests that follow each other."""
    peers: list[object] = []

    async def handler(request: web.Request) -> web.Response:
        assert request.transport is not None
        peers.append(request.transport.get_extra_info("peername"))
        return web.Response()

    async with serving(handler) as server:
        transport = AiohttpTransport(Access(server.url))
        for _ in range(3):
            await transport.request("PATCH", "/x", body=b"{}", timeout=10)
        await transport.close()
    assert 1 == len(set(peers))


async def test_a_refused_connection_was_not_sent() -> None:
    """Nobody listens: the caller may repeat without looking. Address and next step are named."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        transport = AiohttpTransport(Access(f"http://127.0.0.1:{port}", source="context 'x'"))
        with pytest.raises(
            TransportError, match=r"connect \(Connection refused\); is it .* context 'x'"
        ) as caught:
            await transport.request("PATCH", "/x", body=b"{}", timeout=10)
        await transport.close()
    assert f"PATCH /x at 127.0.0.1:{port}" in str(caught.value)
    assert not caught.value.unknown_outcome


@pytest.mark.parametrize(
    ("handler", "timeout", "message"),
    [
        (abort, 10.0, "closed the connection without an answer"),
        (cut, 10.0, "the answer was cut off"),
        (hang, 0.2, "no complete answer in time"),
    ],
)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_a_write_without_an_answer_is_sent_once_and_may_have_happened(
    handler: Handler,
    timeout: float,  # noqa: ASYNC109  # a parameter of the case
    message: str,
    method: str,
) -> None:
    """A repeated PUT or DELETE would come back as a conflict with itself (rule A14)."""
    async with serving(handler) as server:
        transport = AiohttpTransport(Access(server.url))
        with pytest.raises(TransportError, match=message) as caught:
            await transport.request(method, "/x", body=b"{}", timeout=timeout)
        await transport.close()
    assert caught.value.unknown_outcome
    assert 1 == len(server.seen)


async def test_waiting_for_a_connection_counts_and_sends_nothing() -> None:
    """The deadline covers everything, and what never left has no unknown outcome."""
    async with serving(hang) as server:
        transport = AiohttpTransport(Access(server.url), max_connections=1)
        first = asyncio.ensure_future(transport.request("GET", "/first", timeout=10))
        await server.until(1)
        with pytest.raises(TransportError, match="no complete answer in time") as caught:
            await transport.request("PATCH", "/second", body=b"{}", timeout=0.2)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await transport.close()
    assert not caught.value.unknown_outcome
    assert ["/first"] == [seen.path for seen in server.seen]


@pytest.mark.parametrize("used", [True, False])
async def test_after_close_nothing_is_sent(*, used: bool) -> None:
    """A late task gets an error, not a new connection."""
    async with serving(ok) as server:
        transport = AiohttpTransport(Access(server.url))
        if used:
            await transport.request("GET", "/x", timeout=10)
        await transport.close()
        with pytest.raises(TransportError, match="we have closed") as caught:
            await transport.request("GET", "/x", timeout=10)
    assert not caught.value.unknown_outcome
    assert used == bool(server.seen)


def test_a_response_does_not_show_its_body() -> None:
    """It may be a Secret (facts 1.9)."""
    assert "Response(status=200, body=6 bytes)" == repr(Response(200, {}, b"s3cret"))


def bearer_required(token: str) -> Handler:
    """401 for everything but one token."""

    async def handler(request: web.Request) -> web.Response:
        good = request.headers.get("Authorization") == f"Bearer {token}"
        return web.Response(status=200 if good else 401)

    return handler


async def test_a_401_refreshes_the_token_once_and_repeats(tmp_path: Path) -> None:
    """The token expired before its file was read again (facts 1.10); guard and body are the same."""
    file = tmp_path / "token"
    file.write_text("old")
    async with serving(bearer_required("new")) as server:
        source = TokenFile(file)
        await source.current()
        file.write_text("new")
        transport = AiohttpTransport(Access(server.url, credentials=source))
        response = await transport.request("PATCH", "/x", body=b"{}", timeout=10)
        await transport.close()
    assert 200 == response.status
    assert [("Bearer old", b"{}"), ("Bearer new", b"{}")] == [
        (seen.headers["authorization"], seen.body) for seen in server.seen
    ]


async def test_a_401_to_a_fresh_token_is_the_answer(tmp_path: Path) -> None:
    """There is nothing else to try: no loop; the log says whose credentials were refused."""
    file = tmp_path / "token"
    file.write_text("wrong")
    async with serving(bearer_required("right")) as server:
        transport = AiohttpTransport(Access(server.url, credentials=TokenFile(file), source="the pod"))
        with capture_logs() as logs:
            response = await transport.request("GET", "/x", timeout=10)
        await transport.close()
    assert (401, 1) == (response.status, len(server.seen))
    assert [("the API server refuses our credentials", "the pod")] == [
        (e["event"], e["source"]) for e in logs
    ]
    assert "wrong" not in str(logs)


async def test_a_request_that_was_refused_with_401_has_not_happened(tmp_path: Path) -> None:
    """Its repetition found nobody listening: the caller may repeat without looking."""
    file = tmp_path / "token"
    file.write_text("old")
    source = TokenFile(file)
    await source.current()
    file.write_text("new")

    async def refuse_and_leave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"{}")
        server.close()
        writer.write(b"HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(refuse_and_leave, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    transport = AiohttpTransport(Access(url, credentials=source))
    with pytest.raises(TransportError, match="can't connect") as caught:
        await transport.request("PATCH", "/x", body=b"{}", timeout=10)
    await transport.close()
    assert not caught.value.unknown_outcome


async def test_without_credentials_nothing_is_sent(tmp_path: Path) -> None:
    """No anonymous request goes out by accident."""
    async with serving(ok) as server:
        transport = AiohttpTransport(Access(server.url, credentials=TokenFile(tmp_path / "missing")))
        with pytest.raises(CredentialsError):
            await transport.request("GET", "/x", timeout=10)
        await transport.close()
    assert [] == server.seen


async def test_requests_for_a_plain_server_go_through_its_proxy() -> None:
    """The proxy sees the whole address."""
    async with serving(answering(200, "from the proxy")) as proxy:
        transport = AiohttpTransport(Access("http://k8s.invalid:80", proxy=proxy.url))
        response = await transport.request("GET", "/x", timeout=10)
        await transport.close()
    assert (b"from the proxy", "k8s.invalid") == (response.body, proxy.seen[0].headers["host"])
