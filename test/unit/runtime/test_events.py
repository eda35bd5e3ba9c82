"""Facts 1.9: Events are complete, deduplicated, and never in anybody's way."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from modelfleet.kube.client import Client
from modelfleet.kube.errors import FencedError
from modelfleet.plan import Api, Ref
from modelfleet.runtime.conditions import EventType
from modelfleet.runtime.events import FINISH_SECONDS, QUEUE_SIZE, REFRESH_SECONDS, TRIES, EventRecorder
from test.unit.runtime.fake_api import FakeApiServer, Fault, Object, failure

pytestmark = pytest.mark.looptime

THING = Api("example.dev", "v1", "Thing", "things")
NODE = Api("", "v1", "Node", "nodes", namespaced=False)
REF = Ref(THING, "a", "x")
START = datetime(2026, 1, 1, tzinfo=UTC)


class LoopClock:
    """A wall clock that goes with the loop's time."""

    def monotonic(self) -> float:
        """The loop's time."""
        return asyncio.get_running_loop().time()

    def now(self) -> datetime:
        """From the start of 2026 on."""
        return START + timedelta(seconds=self.monotonic())


class World:
    """A recorder and its server; counts what was written and dropped."""

    def __init__(self) -> None:
        self.server = FakeApiServer()
        self.client = Client(self.server)
        self.written = 0
        self.dropped: list[str] = []
        self.recorder = EventRecorder(
            self.client,
            controller="modelfleet.dev/controller",
            instance="pod-1",
            manager="modelfleet-controller",
            clock=LoopClock(),
            metrics=self,
        )

    def event_written(self) -> None:
        """Count."""
        self.written += 1

    def event_dropped(self, why: str) -> None:
        """Keep it."""
        self.dropped.append(why)

    def record(
        self,
        reason: str = "Ready",
        *,
        ref: Ref = REF,
        event_type: EventType = "Normal",
        note: str = "all well",
    ) -> None:
        """One occurrence."""
        self.recorder.record(ref, "uid-x", event_type=event_type, reason=reason, action="Ready", note=note)

    async def happen(self, reason: str = "Ready", **more: Any) -> None:
        """One occurrence, written."""
        self.record(reason, **more)
        await self.recorder.flush()

    @property
    def events(self) -> list[Object]:
        """What the cluster has."""
        return list(self.server.objects.values())

    @contextmanager
    def running(self) -> Iterator[None]:
        """With the recorder's task."""
        task = asyncio.create_task(self.recorder.run())
        try:
            yield
        finally:
            task.cancel()


def is_(method: str) -> Any:
    """Requests of a method."""
    return lambda request: request.method == method


async def test_complete_event() -> None:
    """Everything events.k8s.io/v1 asks for, with six decimals of a second even at a full one."""
    world = World()
    with world.running():
        await world.happen(event_type="Warning")
    event = world.events[0]
    del event["metadata"]["uid"], event["metadata"]["resourceVersion"], event["metadata"]["managedFields"]

    assert {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "x.18867251edfa0000", "namespace": "a"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "modelfleet.dev/controller",
        "reportingInstance": "pod-1",
        "type": "Warning",
        "reason": "Ready",
        "action": "Ready",
        "note": "all well",
        "regarding": {
            "apiVersion": "example.dev/v1",
            "kind": "Thing",
            "namespace": "a",
            "name": "x",
            "uid": "uid-x",
        },
    } == event


async def test_cluster_scoped_objects() -> None:
    """Events about them live in the namespace default, by validation."""
    world = World()
    with world.running():
        await world.happen(ref=Ref(NODE, "", "n1"))

    assert ["/apis/events.k8s.io/v1/namespaces/default/events"] == [r.path for r in world.server.requests]


async def test_limits_of_the_api() -> None:
    """Long notes, reasons and names are cut to what validation accepts, never within a character."""
    world = World()
    with world.running():
        await world.happen("R" * 500, ref=Ref(THING, "a", "n" * 250), note="ä" * 2000)
    event = world.events[0]

    assert (128, 512, "ä") == (len(event["reason"]), len(event["note"]), event["note"][-1])
    assert len(event["metadata"]["name"]) <= 253


async def test_repeats_become_a_series() -> None:
    """The second occurrence makes a series at once; more of them only count."""
    world = World()
    with world.running():
        await world.happen()
        await asyncio.sleep(10)
        for _ in range(20):
            await world.happen(note="different words")

    assert ["POST", "PATCH"] == [request.method for request in world.server.requests]
    assert {"count": 2, "lastObservedTime": "2026-01-01T00:00:10.000000Z"} == world.events[0]["series"]
    assert "all well" == world.events[0]["note"]


async def test_what_makes_events_different() -> None:
    """Another reason, type, action or object is another Event."""
    world = World()
    with world.running():
        await world.happen()
        await world.happen("Broken")
        await world.happen(event_type="Warning")
        await world.happen(ref=Ref(THING, "a", "y"))
        world.recorder.record(REF, "uid-x", event_type="Normal", reason="Ready", action="Other", note="")
        world.recorder.record(REF, "reborn", event_type="Normal", reason="Ready", action="Ready", note="")
        await world.recorder.flush()

    assert ["POST"] * 6 == [request.method for request in world.server.requests]


async def test_a_series_ends() -> None:
    """After 6 minutes without an occurrence its last count is written; the next one is a new Event."""
    world = World()
    with world.running():
        for _ in range(5):
            await world.happen()
        await asyncio.sleep(2 * FINISH_SECONDS)
        ended = world.events[0]["series"]["count"]
        await world.happen()

    assert 5 == ended
    assert 2 == len(world.events)
    assert {} != world.recorder._series


async def test_a_series_goes_on() -> None:
    """A series without end is refreshed every half hour, whatever happens in it."""
    world = World()
    with world.running():
        for _ in range(int(2 * REFRESH_SECONDS / 60)):
            await world.happen()
            await asyncio.sleep(60)

    assert ["POST"] + ["PATCH"] * 2 == [request.method for request in world.server.requests]
    assert 30 < world.events[0]["series"]["count"] <= 60


async def test_memory_is_bounded_in_time() -> None:
    """Single occurrences are forgotten after 6 minutes, without a request."""
    world = World()
    with world.running():
        for number in range(50):
            await world.happen(f"Reason{number}")
        requests = len(world.server.requests)
        await asyncio.sleep(2 * FINISH_SECONDS)

    assert {} == world.recorder._series
    assert requests == len(world.server.requests)


async def test_deleted_event_is_made_anew() -> None:
    """Events expire on the server; a series whose Event is gone gets a new one with its count."""
    world = World()
    with world.running():
        await world.happen()
        world.server.objects.clear()
        await world.happen()

    assert ["POST", "PATCH", "POST"] == [request.method for request in world.server.requests]
    assert 2 == world.events[0]["series"]["count"]


async def test_recording_never_waits() -> None:
    """With the server away a thousand occurrences are kept, the rest is dropped and counted."""
    world = World()
    world.server.faults.append(Fault(is_("POST"), sent=False, times=10**9))
    with world.running():
        for number in range(QUEUE_SIZE + 50):
            world.record(f"Reason{number}")

    assert ["QueueFull"] * 50 == world.dropped
    assert 0 == asyncio.get_running_loop().time()


async def test_retries_then_gives_up() -> None:
    """12 tries, 5 to 10 s apart; then the occurrence is dropped and the next one starts over."""
    world = World()
    world.server.faults.append(Fault(is_("POST"), sent=False, times=TRIES))
    with world.running():
        await world.happen()
        gave_up = asyncio.get_running_loop().time()
        await world.happen()

    assert 11 * 5 <= gave_up <= 11 * 10
    assert (["GaveUp"], 1) == (world.dropped, world.written)
    assert TRIES + 1 == len(world.server.requests)
    assert "series" not in world.events[0]


async def test_retries_until_it_works() -> None:
    """A short outage loses nothing; an Event whose answer was lost is not made twice."""
    world = World()
    world.server.faults += [Fault(is_("POST"), commit=True), Fault(is_("POST"), sent=False)]
    with world.running():
        await world.happen()

    assert (1, [], 1) == (len(world.events), world.dropped, world.written)


@pytest.mark.parametrize(
    "refusal",
    [
        failure(403, "Forbidden", "namespace a is being terminated"),
        failure(404, "NotFound", 'namespaces "a" not found'),
        failure(422, "Invalid", "no"),
    ],
)
async def test_refusals_are_not_repeated(refusal: Any) -> None:
    """What the server refuses is dropped at once; the next Event is written."""
    world = World()
    world.server.faults.append(Fault(is_("POST"), refusal))
    with world.running():
        await world.happen()
        await world.happen("Other")

    assert (["Refused"], 1) == (world.dropped, world.written)
    assert 0 == asyncio.get_running_loop().time()


async def test_former_leaders_write_no_events() -> None:
    """Behind the fence nothing is written and nothing is tried again."""
    world = World()

    def fence() -> None:
        raise FencedError("not the leader")

    world.client.fence = fence
    with world.running():
        await world.happen()

    assert (["NotLeading"], []) == (world.dropped, world.server.requests)


async def test_flush_waits_for_what_was_recorded() -> None:
    """The stop sequence loses no Event that can be written."""
    world = World()
    with world.running():
        for number in range(10):
            world.record(f"Reason{number}")
        before = world.written
        await world.recorder.flush()

    assert (0, 10) == (before, world.written)
