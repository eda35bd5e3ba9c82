"""Who the server must be, who we are to it, and changing either while streams run (facts 1.10, kopf#980)."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from hack.cluster.certificates import Authority, Pair
from modelfleet.kube.auth import Access
from modelfleet.kube.credentials import Credential
from modelfleet.kube.errors import TransportError
from modelfleet.kube.tls import Identity, Pem, TlsSource
from modelfleet.kube.transport import AiohttpTransport
from test.unit.kube.fake_apiserver import port_of, serving

HOST = ("127.0.0.1",)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The cluster's authority."""
    return Authority(tmp_path_factory.mktemp("authority"), "first")


@pytest.fixture(scope="module")
def successor(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The authority after a rotation."""
    return Authority(tmp_path_factory.mktemp("successor"), "second")


def server_side(pair: Pair, *, clients: Authority | None = None) -> ssl.SSLContext:
    """A server's context; with `clients` it wants a certificate of theirs."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.certificate, pair.key)
    if clients is not None:
        context.load_verify_locations(clients.pair.certificate)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


async def common_name(request: web.Request) -> web.Response:
    """Answer with the name in the client's certificate."""
    assert request.transport is not None
    certificate = request.transport.get_extra_info("peercert")
    return web.Response(
        text=str(dict(part[0] for part in certificate["subject"])["commonName"]) if certificate else ""
    )


@contextlib.asynccontextmanager
async def connected(server: str, tls: TlsSource, **settings: object) -> AsyncIterator[AiohttpTransport]:
    """A transport, closed in the end."""
    transport = AiohttpTransport(Access(server, tls=tls, source="context 'x'", **settings))  # type: ignore[arg-type]  # Access's own settings
    try:
        yield transport
    finally:
        await transport.close()


async def text_of(transport: AiohttpTransport) -> str:
    """The answer to one request."""
    return (await transport.request("GET", "/x", timeout=10)).body.decode()


async def test_a_server_of_another_authority_gets_no_byte(authority: Authority, successor: Authority) -> None:
    """The message says what is wrong and where the authority was configured."""
    tls = TlsSource(ca=Pem(successor.pair.certificate))
    context = server_side(authority.server("s", "s", HOST))
    async with serving(common_name, tls=context) as server, connected(server.url, tls) as transport:
        with pytest.raises(TransportError, match=r"not trusted .* authority in context 'x'") as caught:
            await text_of(transport)
    assert not caught.value.unknown_outcome
    assert [] == server.seen


async def test_a_server_of_another_name_is_refused_unless_that_is_configured(authority: Authority) -> None:
    """tls-server-name is for servers reached by an address their certificate lacks."""
    ca = Pem(authority.pair.certificate)
    async with serving(common_name, tls=server_side(authority.server("n", "n", ("k8s.internal",)))) as server:
        async with connected(server.url, TlsSource(ca=ca)) as transport:
            with pytest.raises(TransportError, match="IP address mismatch"):
                await text_of(transport)
        async with connected(server.url, TlsSource(ca=ca, server_name="k8s.internal")) as transport:
            assert "" == await text_of(transport)
        async with connected(server.url, TlsSource(insecure=True)) as transport:
            assert "" == await text_of(transport)


async def test_client_certificates_are_presented_and_rotate(tmp_path: Path, authority: Authority) -> None:
    """New connections present the new one; the server sees it with the next connection, not before."""
    one, two = authority.client("one", "one"), authority.client("two", "two")
    mine = Pair(tmp_path / "me.crt", tmp_path / "me.key")

    def become(pair: Pair) -> None:
        mine.certificate.write_bytes(pair.certificate.read_bytes())
        mine.key.write_bytes(pair.key.read_bytes())

    become(one)
    tls = TlsSource(ca=Pem(authority.pair.certificate), certificate=Pem(mine.certificate), key=Pem(mine.key))
    context = server_side(authority.server("c", "c", HOST), clients=authority)
    async with serving(common_name, tls=context) as server, connected(server.url, tls) as transport:
        assert "one" == await text_of(transport)
        become(two)
        assert "one" == await text_of(transport)
        tls.distrust()
        assert "two" == await text_of(transport)


class FakeIssuer:
    """Credentials that are a certificate, another one after each refusal."""

    def __init__(self, *pairs: Pair) -> None:
        self._left = [
            Credential(identity=Identity(pair.certificate.read_bytes(), pair.key.read_bytes()))
            for pair in pairs
        ]

    async def current(self) -> Credential:
        """The first one left."""
        return self._left[0]

    async def renew(self, refused: Credential) -> Credential:
        """The next one."""
        if refused is self._left[0]:
            del self._left[0]
        return self._left[0]


async def test_an_issued_certificate_is_replaced_after_a_401(authority: Authority) -> None:
    """Exec plugins hand out certificates too; the server refuses an outdated one with 401."""

    async def handler(request: web.Request) -> web.Response:
        name = await common_name(request)
        return name if name.text == "new" else web.Response(status=401)

    issuer = FakeIssuer(authority.client("old", "old"), authority.client("new", "new"))
    context = server_side(authority.server("i", "i", HOST), clients=authority)
    tls = TlsSource(ca=Pem(authority.pair.certificate))
    async with (
        serving(handler, tls=context) as server,
        connected(server.url, tls, credentials=issuer) as transport,
    ):
        assert "new" == await text_of(transport)
    assert 2 == len(server.seen)


async def test_a_new_authority_is_trusted_after_one_failed_handshake(
    tmp_path: Path, authority: Authority, successor: Authority
) -> None:
    """A server that comes back with a certificate of the new authority costs one request, not an outage."""
    ca = tmp_path / "ca.crt"
    ca.write_bytes(authority.pair.certificate.read_bytes())
    async with serving(common_name, tls=server_side(authority.server("r1", "r1", HOST))) as server:
        port = port_of(server)
        transport = AiohttpTransport(Access(server.url, tls=TlsSource(ca=Pem(ca))))
        await text_of(transport)
    ca.write_bytes(successor.pair.certificate.read_bytes())
    async with serving(common_name, tls=server_side(successor.server("r2", "r2", HOST)), port=port):
        with pytest.raises(TransportError, match="not trusted"):
            await text_of(transport)
        assert "" == await text_of(transport)
        await transport.close()


async def test_a_running_stream_survives_a_new_authority(
    tmp_path: Path, authority: Authority, successor: Authority
) -> None:
    """The swap is for whoever connects next: events of open watches are not lost (kopf#980)."""
    release = asyncio.Event()

    async def handler(request: web.Request) -> web.StreamResponse:
        if request.path != "/w":
            return web.Response()
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"before\n")
        await release.wait()
        await response.write(b"after\n")
        return response

    ca = tmp_path / "ca.crt"
    ca.write_bytes(authority.pair.certificate.read_bytes())
    tls = TlsSource(ca=Pem(ca))
    context = server_side(authority.server("w", "w", HOST))
    async with (
        serving(handler, tls=context) as server,
        connected(server.url, tls) as transport,
        transport.stream("/w", idle_timeout=20, total_timeout=20) as stream,
    ):
        lines = aiter(stream)
        assert b"before" == await anext(lines)
        ca.write_bytes(successor.pair.certificate.read_bytes())
        tls.distrust()
        with pytest.raises(TransportError, match="not trusted"):
            await text_of(transport)
        release.set()
        assert [b"after"] == [line async for line in lines]


async def test_a_server_with_tls_is_reached_through_a_proxy(authority: Authority) -> None:
    """The proxy sees CONNECT and bytes; TLS, its names included, is between us and the server."""
    asked: list[bytes] = []

    async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(65536):
            sink.write(data)
        sink.close()

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0])
        upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", port_of(server))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await asyncio.gather(
            pump(reader, upstream_writer), pump(upstream_reader, writer), return_exceptions=True
        )

    ca = Pem(authority.pair.certificate)
    context = server_side(authority.server("p", "p", ("k8s.internal",)))
    proxies = await asyncio.start_server(proxy, "127.0.0.1", 0)
    async with proxies, serving(common_name, tls=context) as server:
        through = f"http://127.0.0.1:{proxies.sockets[0].getsockname()[1]}"
        tls = TlsSource(ca=ca, server_name="k8s.internal")
        async with connected("https://k8s.invalid:6443", tls, proxy=through) as transport:
            assert "" == await text_of(transport)
    assert [b"CONNECT k8s.invalid:6443 HTTP/1.1"] == asked
