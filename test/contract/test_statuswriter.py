"""Statuses and Events on a real API server: stable bytes, refused pasts, valid Events (facts 1.5, 1.9)."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from modelfleet.kube.auth import load_access
from modelfleet.kube.client import Client
from modelfleet.kube.resource import Resource
from modelfleet.kube.store import Store
from modelfleet.kube.transport import AiohttpTransport
from modelfleet.plan import Cause, Condition, DesiredStatus, Key, Ref
from modelfleet.runtime.clock import SystemClock
from modelfleet.runtime.events import EventRecorder
from modelfleet.runtime.statuswriter import StatusWriter
from modelfleet.runtime.written import Written
from test.support.cluster import Cluster
from test.support.kinds import EVENT, INFERENCE_SERVICE, NODE, path_of
from test.support.waiting import wait_for
from test.support.world import Object, World

pytestmark = pytest.mark.contract

MANAGER = "modelfleet-controller"
SPEC = {"container": {"image": "example.com/server:1"}}


def view(obj: Mapping[str, Any]) -> Object:
    """The whole status."""
    return dict(obj.get("status", {}))


class Bench:
    """A status writer as after a restart: it remembers nothing."""

    def __init__(self, client: Client, events: EventRecorder, world: World, namespace: str) -> None:
        self.world = world
        self.namespace = namespace
        self.store: Store[Object] = Store(Resource(api=INFERENCE_SERVICE, view=view, manager=MANAGER))
        written = Written({INFERENCE_SERVICE: self.store}, lambda _: None)
        self.writer = StatusWriter(
            client, self.store, manager=MANAGER, written=written, events=events, clock=SystemClock()
        )

    async def observe(self) -> Object:
        """Bring the present state into the store; the resourceVersion and status of it."""
        live = await self.world.get(INFERENCE_SERVICE, self.namespace, "x")
        self.store.feed().replace(
            [self.store.resource.decode(live)], int(live["metadata"]["resourceVersion"])
        )
        return live

    async def write(self, status: DesiredStatus) -> Cause | None:
        """Write what is decided from the store."""
        item = self.store.get(self.namespace, "x")
        assert item is not None
        key = Key(self.namespace, "x")
        live = item.view.get("conditions", ())
        problem = await self.writer.write(item, INFERENCE_SERVICE, status, key, live)
        return problem.cause if problem else None


class Server:
    """The API server with one InferenceService; makes benches."""

    def __init__(self, client: Client, events: EventRecorder, world: World, namespace: str) -> None:
        self.events = events
        self._parts = (client, events, world, namespace)

    async def bench(self) -> Bench:
        """A process just started."""
        bench = Bench(*self._parts)
        await bench.observe()
        return bench


@pytest.fixture
async def server(cluster: Cluster, namespace: str, api: World) -> AsyncIterator[Server]:
    """With an InferenceService called x, and a recorder that runs."""
    transport = AiohttpTransport(await load_access(str(cluster.kubeconfig)))
    client = Client(transport, field_validation="Strict")
    recorder = EventRecorder(
        client, controller="modelfleet.dev/test", instance="test-1", manager=MANAGER, clock=SystemClock()
    )
    await api.request("POST", path_of(INFERENCE_SERVICE, namespace), _service())
    task = asyncio.create_task(recorder.run())
    yield Server(client, recorder, api, namespace)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await transport.close()


def _service() -> Object:
    api = INFERENCE_SERVICE
    return {"apiVersion": api.api_version, "kind": api.kind, "metadata": {"name": "x"}, "spec": SPEC}


def status(*conditions: Condition, **fields: Any) -> DesiredStatus:
    """A status of these conditions."""
    return DesiredStatus(1, conditions, fields)


READY = Condition("Ready", "True", "Ready")
BROKEN = Condition("Ready", "False", "Broken")
SERVING = Condition("Serving", "True", "Serving")
WORKLOAD = Condition("WorkloadReady", "True", "Available")
ROUTE = Condition("RouteReady", "True", "Accepted")
SCALING = Condition("ScalingReady", "False", "TriggerError")
STALLED = Condition("Stalled", "True", "InvalidSpec")

SEQUENCES: dict[str, list[DesiredStatus]] = {
    "all at once": [status(READY, SERVING, WORKLOAD, ROUTE, SCALING)],
    "one in the middle": [status(READY, WORKLOAD, ROUTE), status(READY, SERVING, WORKLOAD, ROUTE)],
    "one in front": [status(SERVING, ROUTE), status(READY, SERVING, ROUTE)],
    "one gone": [status(READY, STALLED, ROUTE), status(READY, ROUTE)],
    "swapped": [status(READY, SERVING, ROUTE), status(ROUTE, READY, SERVING)],
    "replaced": [status(READY, STALLED), status(ROUTE, SCALING)],
    "fields": [
        status(READY, url="http://a", replicas={"desired": 2, "updated": 1, "ready": 0}),
        status(READY, SERVING, replicas={"desired": 2, "updated": 2, "ready": 2}),
    ],
    "summary": [status(READY, summary={"replicas": "2/2"}), status(READY)],
}


@pytest.mark.parametrize("sequence", SEQUENCES.values(), ids=SEQUENCES.keys())
async def test_a_restart_writes_nothing(server: Server, sequence: list[DesiredStatus]) -> None:
    """However a status came about, a process that remembers nothing finds it as it wants it."""
    for step in sequence:
        bench = await server.bench()
        assert await bench.write(step) is None
    restarted = await server.bench()
    before = await restarted.observe()
    await restarted.write(sequence[-1])
    after = await restarted.observe()
    written = [(c["type"], c["status"], c["reason"]) for c in after["status"]["conditions"]]

    assert before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]
    assert [(c.type, c.status, c.reason) for c in sequence[-1].conditions] == written
    assert set(sequence[-1].fields) | {"conditions", "observedGeneration"} == set(after["status"])


async def test_status_only(server: Server, api: World, namespace: str) -> None:
    """The write touches the status alone: generation and spec stay, and the fields are one manager's."""
    bench = await server.bench()
    before = await api.get(INFERENCE_SERVICE, namespace, "x")
    await bench.write(status(READY))
    after = await api.get(INFERENCE_SERVICE, namespace, "x")
    owners = {(m["manager"], m.get("subresource", "")) for m in after["metadata"]["managedFields"]}

    assert before["metadata"]["generation"] == after["metadata"]["generation"]
    assert before["spec"] == after["spec"]
    assert (MANAGER, "status") in owners
    assert (MANAGER, "") not in owners


async def test_status_of_the_past_or_of_a_namesake(server: Server, api: World, namespace: str) -> None:
    """A status decided before an edit, or for an object that was deleted and made again, is not written."""
    bench = await server.bench()
    path = path_of(INFERENCE_SERVICE, namespace, "x")
    edit = {"spec": {"container": {"image": "example.com/server:2"}}}
    await api.request("PATCH", path, edit, content_type="application/merge-patch+json")
    edited = await bench.write(status(READY))
    await api.request("DELETE", path)
    gone = await bench.write(status(READY))
    await api.request("POST", path_of(INFERENCE_SERVICE, namespace), _service())
    reborn = await bench.write(status(READY))

    assert [Cause.STALE, Cause.NOT_FOUND, Cause.STALE] == [edited, gone, reborn]
    assert "status" not in await api.get(INFERENCE_SERVICE, namespace, "x")


async def test_transition_times_survive(server: Server) -> None:
    """The server keeps the times as sent; a restart goes on with them."""
    bench = await server.bench()
    await bench.write(status(READY, SERVING))
    first = {c["type"]: c["lastTransitionTime"] for c in (await bench.observe())["status"]["conditions"]}
    now = datetime.now(UTC)
    await wait_for(lambda: (datetime.now(UTC) - now).total_seconds() > 1.1, describe="the next second")
    restarted = await server.bench()
    await restarted.write(status(READY, Condition("Serving", "False", "NoReadyEndpoints")))
    second = {c["type"]: c["lastTransitionTime"] for c in (await bench.observe())["status"]["conditions"]}

    assert first["Ready"] == second["Ready"]
    assert first["Serving"] < second["Serving"]


async def test_events_of_transitions(server: Server, api: World, namespace: str) -> None:
    """The server takes our Events, they are found by their object, and a repeat becomes a series."""
    bench = await server.bench()
    for step in (status(READY), status(BROKEN), status(READY)):
        await bench.observe()
        await bench.write(step)
    await server.events.flush()
    events = await api.list(
        EVENT, namespace, fieldSelector="regarding.name=x,regarding.kind=InferenceService"
    )
    told = {(e["type"], e["reason"], e.get("series", {}).get("count", 1)) for e in events}
    live = await api.get(INFERENCE_SERVICE, namespace, "x")

    assert {("Normal", "Ready", 2), ("Warning", "Broken", 1)} == told
    assert {live["metadata"]["uid"]} == {e["regarding"]["uid"] for e in events}
    assert {"modelfleet.dev/test"} == {e["reportingController"] for e in events}


async def test_events_at_the_limits(server: Server, api: World, namespace: str) -> None:
    """Names, reasons and notes beyond their limits make valid Events, of cluster-scoped objects too."""
    for ref in (Ref(INFERENCE_SERVICE, namespace, "n" * 253), Ref(NODE, "", f"node-{namespace}")):
        server.events.record(
            ref, "some-uid", event_type="Normal", reason="R" * 300, action="A" * 300, note="ä" * 3000
        )
    await server.events.flush()
    ours = await api.list(EVENT, namespace)
    node = await api.list(EVENT, "default", fieldSelector=f"regarding.name=node-{namespace}")

    assert (1, 1) == (len(ours), len(node))
