"""Writes in flight are bounded, and the fence is asked when their turn comes (facts 0.9, 1.7)."""

import asyncio

import pytest
from aiohttp import web

from modelfleet.kube.auth import Access
from modelfleet.kube.client import BIRTH, Client
from modelfleet.kube.errors import FencedError
from modelfleet.kube.transport import AiohttpTransport
from modelfleet.plan import Ref
from test.support.kinds import CONFIG_MAP, LEASE
from test.unit.kube.fake_apiserver import serving

REF = Ref(CONFIG_MAP, "n", "c")


class FakeSlowServer:
    """Answers only when told to, and counts how many wait."""

    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.waiting = 0
        self.peak = 0

    async def __call__(self, request: web.Request) -> web.Response:
        """One request; Leases are answered at once."""
        if "leases" in request.path or request.method == "GET":
            return web.json_response({})
        self.waiting += 1
        self.peak = max(self.peak, self.waiting)
        await self.release.wait()
        self.waiting -= 1
        return web.json_response({})


def refuse() -> None:
    """A fence that is down."""
    raise FencedError("not leading")


async def apply(client: Client, number: int = 0) -> None:
    """Any write."""
    await client.apply(Ref(CONFIG_MAP, "n", f"c{number}"), {}, manager="m", uid=None, resource_version=BIRTH)


async def test_no_more_writes_are_in_flight_than_allowed() -> None:
    """The rest waits its turn; reads and the Lease do not wait behind them."""
    slow = FakeSlowServer()
    async with serving(slow) as server:
        transport = AiohttpTransport(Access(server.url))
        client = Client(transport, max_writes=2)
        async with asyncio.TaskGroup() as tasks:
            for number in range(5):
                tasks.create_task(apply(client, number))
            await server.until(2)
            await client.get(REF)
            await client.create(Ref(LEASE, "n", "l"), {}, manager="m", fenced=False)
            assert (2, 2) == (slow.waiting, slow.peak)
            slow.release.set()
        await transport.close()
    assert (2, 7) == (slow.peak, len(server.seen))


async def test_a_fence_that_falls_while_a_write_waits_its_turn_stops_it() -> None:
    """A leader that lost its lease must not work off its backlog."""
    slow = FakeSlowServer()
    async with serving(slow) as server:
        transport = AiohttpTransport(Access(server.url))
        client = Client(transport, max_writes=1)
        first = asyncio.ensure_future(apply(client, 0))
        await server.until(1)
        second = asyncio.ensure_future(apply(client, 1))
        await asyncio.sleep(0)
        client.fence = refuse
        slow.release.set()
        results = await asyncio.gather(first, second, return_exceptions=True)
        await transport.close()
    assert [None, FencedError] == [result if result is None else type(result) for result in results]
    assert ["/api/v1/namespaces/n/configmaps/c0"] == [seen.path for seen in server.seen]


async def test_a_cancelled_write_gives_its_turn_back() -> None:
    """Per-key timeouts cancel writes (rule Q9)."""
    slow = FakeSlowServer()
    async with serving(slow) as server:
        transport = AiohttpTransport(Access(server.url))
        client = Client(transport, max_writes=1)
        first = asyncio.ensure_future(apply(client, 0))
        await server.until(1)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        slow.release.set()
        await apply(client, 1)
        await transport.close()
    assert 2 == len(server.seen)


async def test_only_writes_are_fenced_and_the_lease_is_not() -> None:
    """Reading is harmless; the Lease is what the fence is made of."""
    async with serving(FakeSlowServer()) as server:
        transport = AiohttpTransport(Access(server.url))
        client = Client(transport)
        client.fence = refuse
        await client.get(REF)
        await client.raw("GET", "/version")
        lease = Ref(LEASE, "n", "l")
        await client.create(lease, {}, manager="m", fenced=False)
        await client.update(lease, {"metadata": {"resourceVersion": "1"}}, manager="m", fenced=False)
        for write in (
            apply(client),
            client.create(REF, {}, manager="m"),
            client.update(REF, {"metadata": {"resourceVersion": "1"}}, manager="m"),
            client.patch(REF, {}, manager="m"),
            client.delete(REF, uid="u", resource_version="1"),
            client.raw("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body={}),
        ):
            with pytest.raises(FencedError):
                await write
        await transport.close()
    assert ["GET", "GET", "POST", "PUT"] == [seen.method for seen in server.seen]
