"""A bad network and an API server that comes and goes: the controller waits, then converges.

architecture.md section 3 ("API server away") and rules I4, I6, I7, I9, A14. All network faults run side by
side, each with a controller, a proxy and a namespace of its own: the longest one, a half-open connection,
lasts as long as the idle timeout (70 s, rule I4).
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from test.conftest import new_namespace
from test.support.cluster import Cluster
from test.support.controller import Controller
from test.support.controlplanes import Running
from test.support.eventually import Eventually
from test.support.faults import (
    GONE,
    INTERNAL,
    TOO_LARGE_VERSION,
    Cut,
    Delay,
    DropResponse,
    End,
    Hang,
    Inject,
    Rule,
    error_event,
    throttled,
)
from test.support.fleet import ELECTED, SINGLE, Fleet
from test.support.kinds import DEPLOYMENT, INFERENCE_SERVICE, SERVICE
from test.support.proxy import FaultProxy
from test.support.requestinfo import RequestInfo
from test.support.samples import condition, service, settled
from test.support.waiting import holds_for, wait_for
from test.support.world import World

pytestmark = [pytest.mark.contract, pytest.mark.timeout(280)]

NAMES = [f"model-{number}" for number in range(3)]
PATIENT = {"lease_duration": "60s", "renew_deadline": "45s", "retry_period": "1s"}
"""Longer than a restart of the API server."""
LASTING_SECONDS = 60
CONVERGE_SECONDS = 60.0
"""The reflector's backoff cap is 30 s (rule I8)."""


@pytest.fixture
def cluster(control_plane_private: Running) -> Cluster:
    """Its API server may be restarted."""
    return control_plane_private.cluster


@dataclass(frozen=True)
class Bench:
    """One controller behind one proxy, with three objects converged."""

    api: World
    proxy: FaultProxy
    fleet: Fleet
    controller: Controller
    namespace: str

    async def change_and_converge(self, image: str, deadline: float = CONVERGE_SECONDS) -> None:
        """Edit one object, delete a child of another, delete a third: all must be seen."""
        api, namespace = self.api, self.namespace
        lost = await api.get(SERVICE, namespace, NAMES[1])
        await api.merge(INFERENCE_SERVICE, namespace, NAMES[0], {"spec": {"container": {"image": image}}})
        await api.delete(SERVICE, namespace, NAMES[1])

        async def converged() -> bool:
            edited = await api.get(DEPLOYMENT, namespace, NAMES[0])
            assert image == edited["spec"]["template"]["spec"]["containers"][0]["image"]
            reborn = await api.find(SERVICE, namespace, NAMES[1])
            assert reborn is not None, "the deleted Service is not back"
            assert lost["metadata"]["uid"] != reborn["metadata"]["uid"]
            return True

        await wait_for(converged, deadline, self.controller.tail)


@asynccontextmanager
async def bench(
    cluster: Cluster, folder: Path, name: str, settings: Mapping[str, str | bool]
) -> AsyncIterator[Bench]:
    """Set one up; `settings` are the controller's flags."""
    namespace = new_namespace(cluster, name)
    async with World(cluster) as api, FaultProxy(cluster.server, cluster.ca) as proxy:
        fleet = Fleet(cluster, namespace, folder)
        try:
            controller = await fleet.start(name, proxy=proxy, settings=settings)
            await asyncio.gather(*(api.create(INFERENCE_SERVICE, service(namespace, n)) for n in NAMES))
            it = Bench(api, proxy, fleet, controller, namespace)

            async def all_settled() -> bool:
                return all(settled(o) for o in await api.list(INFERENCE_SERVICE, namespace))

            await wait_for(all_settled, 60, controller.tail)
            await wait_for(lambda: lasting(proxy.open_streams), 60, controller.tail)
            await fleet.until_quiet(1.0)
            yield it
            assert controller.exit_code is None
        finally:
            await fleet.stop()


def lasting(watches: list[RequestInfo]) -> bool:
    """Whether all are meant for minutes; those that catch up after the start are closed within seconds."""
    return all(int(watch.query["timeoutSeconds"]) > LASTING_SECONDS for watch in watches)


Fault = Callable[[Bench], list[Rule]]
"""Does something to the open streams, and names the rules that later requests must have met."""


def streams(fault: Cut | Hang | Inject, *rules: Callable[[FaultProxy], Rule]) -> Fault:
    """All open watches meet this fault now, and what follows meets the rules."""

    def strike(b: Bench) -> list[Rule]:
        following = [rule(b.proxy) for rule in rules]
        assert b.proxy.disturb(fault) > 0, "no stream was open"
        return following

    return strike


def requests(*rules: Callable[[FaultProxy], Rule]) -> Fault:
    """Only what follows meets a fault."""
    return lambda b: [rule(b.proxy) for rule in rules]


def is_list(info: RequestInfo, _body: bytes) -> bool:
    """LIST, or a watch that begins with a list (rule I11)."""
    return info.verb == "list" or "sendInitialEvents" in info.query


FAULTS: dict[str, Fault] = {
    # The longest, hence the first: nobody hears the silence before 70 s are over (rule I4).
    "silent": streams(Hang()),
    "eof": streams(Cut(End.EOF)),
    "torn": streams(Cut(End.TORN)),
    "reset": streams(Cut(End.RESET)),
    # Both forms of 410, and a server that is behind what the client has seen (rule I6).
    "expired-event": streams(error_event()),
    "expired-request": streams(Cut(End.EOF), lambda p: p.on(GONE, verb="watch", times=8)),
    "behind": streams(error_event(), lambda p: p.on(TOO_LARGE_VERSION, where=is_list, times=4)),
    # ERROR events that are no 410 (rule I7), and again on the next attempts.
    "internal-errors": streams(
        error_event(INTERNAL), lambda p: p.on(error_event(INTERNAL), verb="watch", times=10)
    ),
    # Committed, but nobody said so (rule A14).
    "lost-answers": requests(lambda p: p.on(DropResponse(), verb="apply", times=6)),
    "refused-writes": requests(
        lambda p: p.on(throttled(1), verb="apply", times=3),
        lambda p: p.on(INTERNAL, verb="apply", nth=4, times=3),
    ),
    "slow-writes": requests(lambda p: p.on(Delay(1.0), verb="apply", times=None)),
}
HALF_OPEN_SECONDS = 120.0
"""70 s of silence (rule I4), then a new watch."""
MANY_REQUESTS = 120
"""Seen: 9 to 29, for two changes and up to two relists; a hot loop makes thousands (rule I8)."""
SIDE_BY_SIDE = 6
"""Controllers at once; more would only wait for the two cores."""


@pytest.mark.usefixtures("shipped")
async def test_converges_after_network_faults(cluster: Cluster, tmp_path: Path) -> None:
    """Whatever happens to streams and answers, later changes are seen, nothing is doubled, no hot loop."""
    slots = asyncio.Semaphore(SIDE_BY_SIDE)

    async def scenario(name: str, fault: Fault) -> None:
        async with slots, bench(cluster, tmp_path, name, SINGLE) as b:
            before, deadline = len(b.proxy.seen), HALF_OPEN_SECONDS if name == "silent" else CONVERGE_SECONDS
            rules = fault(b)
            await b.change_and_converge("example.com/after:1", deadline)
            assert [] == [rule for rule in rules if rule.hits == 0], "met nothing"
            b.proxy.clear()
            await b.change_and_converge("example.com/after:2", deadline)
            for it in await b.api.list(INFERENCE_SERVICE, b.namespace):
                assert {} == condition(it, "Stalled"), "its own child was taken for a foreign one"
            asked = len(b.proxy.seen) - before
            assert asked < MANY_REQUESTS, f"{asked} requests"

    async def foreign_object_goes() -> None:
        """No event tells us that the name is free (rule A8): we look once a minute."""
        async with bench(cluster, tmp_path, "foreign", SINGLE) as b:
            eventually = Eventually(b.api, b.namespace, b.controller.tail)
            foreign = {
                "metadata": {"name": "late", "namespace": b.namespace},
                "spec": {"ports": [{"port": 1}]},
            }
            await b.api.create(SERVICE, foreign)
            await b.api.create(INFERENCE_SERVICE, service(b.namespace, "late"))
            await eventually.says("late", "Stalled", "True", "NameConflict")
            await b.api.delete(SERVICE, b.namespace, "late")
            await eventually.silent("late", "Stalled")

    tasks = {"foreign object": foreign_object_goes()}
    tasks |= {name: scenario(name, fault) for name, fault in FAULTS.items()}
    results = await asyncio.gather(*tasks.values(), return_exceptions=True)
    failures = [
        f"{name}: {result!r}" for name, result in zip(tasks, results, strict=True) if result is not None
    ]
    assert not failures, "\n\n".join(failures)


async def test_api_server_down_at_start(cluster: Cluster, api: World, fleet: Fleet, namespace: str) -> None:
    """The process waits, alive and not ready, without hammering; then it becomes ready by itself."""
    async with FaultProxy(cluster.server, cluster.ca) as proxy:
        await proxy.down()
        controller = await fleet.start(ready=False, proxy=proxy, settings=ELECTED)
        await wait_for(controller.healthy, 30, controller.tail)

        async def waits() -> bool:
            return (
                controller.exit_code is None and await controller.healthy() and not await controller.ready()
            )

        await holds_for(waits, 4.0, "alive, healthy, not ready")
        await proxy.up()
        await controller.wait_ready()
        await api.create(INFERENCE_SERVICE, service(namespace, "m"))

        async def reconciled() -> bool:
            return settled(await api.find(INFERENCE_SERVICE, namespace, "m"))

        await wait_for(reconciled, 30, controller.tail)
        assert 0 == await controller.stop()


@pytest.mark.usefixtures("shipped")
async def test_api_server_restarts(control_plane_private: Running, cluster: Cluster, tmp_path: Path) -> None:
    """The API server crashes and comes back: nobody exits, what happens afterwards is seen."""
    async with bench(cluster, tmp_path, "restart", PATIENT) as b:
        await asyncio.to_thread(control_plane_private.processes.stop_apiserver, 0)
        await asyncio.to_thread(control_plane_private.processes.start_apiserver)
        await b.change_and_converge("example.com/after:1")
        await wait_for(b.controller.ready, 30, b.controller.tail)


async def test_leader_cut_off_exits_once_and_then_waits(
    cluster: Cluster, api: World, fleet: Fleet, namespace: str
) -> None:
    """Past its renew deadline a leader ends, non-zero; started again it waits, then goes on."""
    async with FaultProxy(cluster.server, cluster.ca) as proxy:
        first = await fleet.start(proxy=proxy, settings=ELECTED)

        async def leads() -> bool:
            return await first.metric("leader_election_master_status") == 1

        await wait_for(leads, 30, first.tail)
        await proxy.down()
        code = await first.wait_exit(30)
        assert code > 0, f"exit code {code}: a supervisor would take it for a clean end"
        second = await fleet.start("second", ready=False, proxy=proxy, settings=ELECTED)
        await wait_for(second.healthy, 30, second.tail)
        await holds_for(lambda: second.exit_code is None, 4.0, "a restarted controller waits")
        await proxy.up()
        await second.wait_ready()
        await api.create(INFERENCE_SERVICE, service(namespace, "m"))

        async def reconciled() -> bool:
            return settled(await api.find(INFERENCE_SERVICE, namespace, "m"))

        await wait_for(reconciled, 30, second.tail)
        assert 0 == await second.stop()
