"""The idle oracle: a converged controller leaves the API server alone, also after a restart.

architecture.md section 5, promises 1 and 2; the audit log is the witness.
"""

import asyncio

import pytest

from test.support.audit import lists
from test.support.cluster import Cluster
from test.support.fleet import Fleet
from test.support.kinds import CHILDREN, INFERENCE_SERVICE
from test.support.report import write_report
from test.support.samples import ROUTED, SCALED, accept_route, scaler_ready, service, settled, verdict
from test.support.waiting import wait_for
from test.support.world import Object, World

pytestmark = pytest.mark.contract

OBJECTS = 50
WINDOW_SECONDS = 30.0
"""The issue's own numbers."""
DEFAULT_LEASE = {"lease_duration": "15s", "renew_deadline": "10s", "retry_period": "2s"}


@pytest.fixture
def cluster(control_plane_full: Cluster) -> Cluster:
    """Pods "run", so that the objects become Ready."""
    return control_plane_full


def sample(namespace: str, number: int) -> Object:
    """Every fifth one has a route, every fifth one is scaled."""
    spec: dict[str, object] = {}
    if number % 5 == 0:
        spec["route"] = ROUTED
    if number % 5 == 1:
        spec["scaling"] = SCALED
    return service(namespace, f"model-{number:02}", **spec)


async def converge(api: World, fleet: Fleet, namespace: str) -> None:
    """Create the objects, answer for gateway and KEDA, and wait until all are Ready and all is quiet."""
    await asyncio.gather(*(api.create(INFERENCE_SERVICE, sample(namespace, n)) for n in range(OBJECTS)))

    async def verdicts(kind: str) -> list[str]:
        found = await api.list(INFERENCE_SERVICE, namespace)
        return sorted(
            f"{o['metadata']['name']}: {verdict(o, kind)}" for o in found if verdict(o, kind)[0] != "True"
        )

    async def all_settled() -> bool:
        return all(settled(o) for o in await api.list(INFERENCE_SERVICE, namespace))

    await wait_for(all_settled, 60, lambda: verdicts("Ready"))
    for number in range(0, OBJECTS, 5):
        await accept_route(api, namespace, f"model-{number:02}")
        await scaler_ready(api, namespace, f"model-{number + 1:02}")

    async def all_ready() -> bool:
        return not await verdicts("Ready")

    await wait_for(all_ready, 120, lambda: verdicts("Ready"))
    await fleet.until_quiet()


async def versions(api: World, namespace: str) -> dict[str, str]:
    """The resourceVersion of every object of ours."""
    found = {}
    for kind in (INFERENCE_SERVICE, *CHILDREN):
        for it in await api.list(kind, namespace):
            found[f"{kind}/{it['metadata']['name']}"] = it["metadata"]["resourceVersion"]
    return found


@pytest.mark.timeout(400)
async def test_idle_and_restart(api: World, fleet: Fleet, namespace: str) -> None:
    """50 objects converged: 30 s without a write or list but for the Lease; a restart writes nothing."""
    controller = await fleet.start(settings=DEFAULT_LEASE)
    await converge(api, fleet, namespace)
    before = await versions(api, namespace)

    mark = fleet.audit.mark()
    await asyncio.sleep(WINDOW_SECONDS)  # the promise is about this stretch of time itself
    asked = fleet.seen(mark)

    wrote, listed = fleet.writes(mark), lists(asked)
    write_report("idle", objects=OBJECTS, seconds=WINDOW_SECONDS, writes=len(wrote), lists=len(listed))
    assert ([], []) == (wrote, listed)
    assert before == await versions(api, namespace)
    assert any(e.resource == "leases.coordination.k8s.io" for e in asked), "the witness saw nothing at all"

    assert 0 == await controller.stop()
    mark = fleet.audit.mark()
    again = await fleet.start("again", settings=DEFAULT_LEASE)

    async def looked_at_all() -> bool:
        return await again.metric("controller_runtime_reconcile_total", result="success") >= OBJECTS

    await wait_for(looked_at_all, 60, again.tail)
    await fleet.until_quiet()
    wrote = fleet.writes(mark)
    write_report("restart", objects=OBJECTS, writes=len(wrote))
    assert [] == wrote
    assert before == await versions(api, namespace)
