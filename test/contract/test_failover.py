"""Two replicas, one Lease: at most one writes at any moment (facts 1.7), shown by the audit log."""

import signal

import pytest

from test.support.audit import Entry, Mark
from test.support.cluster import Cluster
from test.support.controller import Controller
from test.support.eventually import Eventually
from test.support.fleet import ELECTED, Fleet
from test.support.kinds import DEPLOYMENT, INFERENCE_SERVICE
from test.support.load import Load, editing
from test.support.samples import service
from test.support.waiting import wait_for
from test.support.world import World

pytestmark = [pytest.mark.contract, pytest.mark.timeout(180)]

NAMES = [f"model-{number}" for number in range(5)]
TAKEOVER_SECONDS = 30.0
"""Lease 3 s, retry 0.5 s; the rest is for a busy machine."""

EXIT_CODES = {signal.SIGKILL: -9, signal.SIGTERM: 0}
LEASE_LOST = 3
"""Exit code of `modelfleet controller`, from its --help."""


@pytest.fixture
def cluster(control_plane_full: Cluster) -> Cluster:
    """The shared full control plane."""
    return control_plane_full


async def leader_and_standby(fleet: Fleet) -> tuple[Controller, Controller]:
    """Two ready replicas of which the first one leads."""
    first = await fleet.start("first", settings=ELECTED)
    await wait_for(lambda: leads(first), TAKEOVER_SECONDS)
    second = await fleet.start("second", settings=ELECTED)
    assert not await leads(second)
    return first, second


async def leads(controller: Controller) -> bool:
    """Whether a replica says it leads."""
    return await controller.metric("leader_election_master_status") == 1


async def has_written(fleet: Fleet, mark: Mark, controller: Controller, count: int = 10) -> None:
    """Wait until a replica has made some changes since a mark."""
    await wait_for(lambda: len(fleet.writes(mark, controller)) >= count, TAKEOVER_SECONDS, controller.tail)


async def images_arrived(eventually: Eventually, load: Load) -> None:
    """Wait until every Deployment runs the image its object was given last."""
    for name, image in load.images.items():
        await eventually.holds(
            DEPLOYMENT, name, image, lambda it: it["spec"]["template"]["spec"]["containers"][0]["image"]
        )


def late(fleet: Fleet, mark: Mark, former: Controller, successor: Controller) -> list[Entry]:
    """Changes of the former leader, but for births, that took effect after the successor's first write."""
    first = min(e.received for e in fleet.writes(mark, successor))
    changes = (e for e in fleet.seen(mark, former) if e.verb in {"update", "patch", "delete"})
    return [e for e in changes if e.succeeded and e.finished > first]


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "stopped"])
async def test_standby_takes_over(
    api: World, fleet: Fleet, eventually: Eventually, namespace: str, how: signal.Signals
) -> None:
    """Kill or stop the leader under load: the standby takes over, no edit is lost, nobody writes late."""
    for name in NAMES:
        await api.create(INFERENCE_SERVICE, service(namespace, name))
    first, second = await leader_and_standby(fleet)
    mark = fleet.audit.mark()
    async with editing(api, namespace, NAMES) as load:
        await has_written(fleet, mark, first)
        assert [] == fleet.writes(mark, second), "a standby writes nothing"
        first.signal(how)
        await has_written(fleet, mark, second)
    assert EXIT_CODES[how] == await first.wait_exit(TAKEOVER_SECONDS)
    assert await leads(second)
    await images_arrived(eventually, load)
    assert [] == late(fleet, mark, first, second)


async def test_stopped_leader_never_writes_again(
    api: World, fleet: Fleet, eventually: Eventually, namespace: str
) -> None:
    """Freeze the leader past its term and thaw it: it exits non-zero, not one late write takes effect."""
    for name in NAMES:
        await api.create(INFERENCE_SERVICE, service(namespace, name))
    first, second = await leader_and_standby(fleet)
    mark = fleet.audit.mark()
    async with editing(api, namespace, NAMES) as load:
        await has_written(fleet, mark, first)
        first.signal(signal.SIGSTOP)
        await has_written(fleet, mark, second)
        first.signal(signal.SIGCONT)
        assert LEASE_LOST == await first.wait_exit(TAKEOVER_SECONDS)
        thawed = fleet.audit.mark()
        await has_written(fleet, thawed, second)
    await images_arrived(eventually, load)
    assert [] == late(fleet, mark, first, second)
    assert await leads(second)
