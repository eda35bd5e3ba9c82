"""Two replicas, one Lease: at any moment at most one writes (facts 1.7), shown by the audit log under load."""

import signal

import pytest

from test.support.audit import Entry, Mark
from test.support.cluster import Cluster
from test.support.controller import Controller
from test.support.fleet import Fleet
from test.support.kinds import DEPLOYMENT, INFERENCE_SERVICE
from test.support.load import Load, editing
from test.support.samples import service
from test.support.waiting import wait_for
from test.support.world import World

pytestmark = [pytest.mark.contract, pytest.mark.timeout(180)]

NAMES = [f"model-{number}" for number in range(5)]
TAKEOVER_SECONDS = 30.0
"""Lease 3 s, retry 0.5 s; the rest is for a busy machine."""


@pytest.fixture
def cluster(control_plane_full: Cluster) -> Cluster:
    """The shared full control plane."""
    return control_plane_full


async def leader_and_standby(fleet: Fleet) -> tuple[Controller, Controller]:
    """Two ready replicas of which the first one leads."""
    first = await fleet.start("first")
    await wait_for(lambda: leads(first), TAKEOVER_SECONDS)
    second = await fleet.start("second")
    assert not await leads(second)
    return first, second


async def leads(controller: Controller) -> bool:
    """Whether a replica says it leads."""
    return await controller.metric("leader_election_master_status") == 1


async def has_written(fleet: Fleet, mark: Mark, controller: Controller, count: int = 10) -> None:
    """Wait until a replica has made some changes since a mark."""
    await wait_for(lambda: len(fleet.writes(mark, controller)) >= count, TAKEOVER_SECONDS, controller.tail)


async def images_arrived(api: World, namespace: str, load: Load) -> None:
    """Wait until every Deployment runs the image its object was given last."""

    async def arrived() -> bool:
        found = {d["metadata"]["name"]: d for d in await api.list(DEPLOYMENT, namespace)}
        now = {
            n: found[n]["spec"]["template"]["spec"]["containers"][0]["image"]
            for n in load.images
            if n in found
        }
        assert load.images == now
        return True

    await wait_for(arrived, 30)


def late(fleet: Fleet, mark: Mark, former: Controller, successor: Controller) -> list[Entry]:
    """Updates, patches and deletes of the former leader that took effect after the successor's first write."""
    first = min(e.received for e in fleet.writes(mark, successor))
    changes = (e for e in fleet.seen(mark, former) if e.verb in {"update", "patch", "delete"})
    return [e for e in changes if e.succeeded and e.finished > first]


@pytest.mark.parametrize(
    ("number", "expected"), [(signal.SIGKILL, -9), (signal.SIGTERM, 0)], ids=["killed", "stopped"]
)
async def test_standby_takes_over(
    api: World, fleet: Fleet, namespace: str, number: signal.Signals, expected: int
) -> None:
    """Kill or stop the leader under load: the standby takes over, no edit is lost, writes never interleave."""
    for name in NAMES:
        await api.create(INFERENCE_SERVICE, service(namespace, name))
    first, second = await leader_and_standby(fleet)
    mark = fleet.audit.mark()
    async with editing(api, namespace, NAMES) as load:
        await has_written(fleet, mark, first)
        assert [] == fleet.writes(mark, second), "a standby writes nothing"
        first.signal(number)
        await has_written(fleet, mark, second)
    assert expected == await first.wait_exit(TAKEOVER_SECONDS)
    assert await leads(second)
    await images_arrived(api, namespace, load)
    assert [] == late(fleet, mark, first, second)


async def test_stopped_leader_never_writes_again(api: World, fleet: Fleet, namespace: str) -> None:
    """Freeze the leader past its term and thaw it: it exits non-zero and not one late write takes effect."""
    for name in NAMES:
        await api.create(INFERENCE_SERVICE, service(namespace, name))
    first, second = await leader_and_standby(fleet)
    mark = fleet.audit.mark()
    async with editing(api, namespace, NAMES) as load:
        await has_written(fleet, mark, first)
        first.signal(signal.SIGSTOP)
        await has_written(fleet, mark, second)
        first.signal(signal.SIGCONT)
        code = await first.wait_exit(TAKEOVER_SECONDS)
        assert code > 0, f"the former leader ended with {code}, which says that all is well"
        thawed = fleet.audit.mark()
        await has_written(fleet, thawed, second)
    await images_arrived(api, namespace, load)
    assert [] == late(fleet, mark, first, second)
    assert await leads(second)
