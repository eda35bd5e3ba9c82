"""Facts 1.5: when a status is written, with what, and what follows."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from modelfleet.kube.client import Client
from modelfleet.kube.objects import Item
from modelfleet.kube.resource import Resource
from modelfleet.kube.store import Store
from modelfleet.plan import Api, Cause, Condition, DesiredStatus, Key, Ref
from modelfleet.runtime.conditions import EventType
from modelfleet.runtime.events import EventRecorder
from modelfleet.runtime.statuswriter import StatusWriter
from modelfleet.runtime.written import Written
from test.unit.runtime.fake_api import FakeApiServer, Fault, Object, Request, failure

pytestmark = pytest.mark.looptime

THING = Api("example.dev", "v1", "Thing", "things")
REF = Ref(THING, "a", "x")
KEY = Key("a", "x")
MANAGER = "modelfleet-controller"
START = datetime(2026, 1, 1, tzinfo=UTC)
INVALID = failure(
    422, "Invalid", "is invalid", {"causes": [{"field": "status.x", "message": "Unsupported value"}]}
)


class LoopClock:
    """A wall clock that goes with the loop's time."""

    def monotonic(self) -> float:
        """The loop's time."""
        return asyncio.get_running_loop().time()

    def now(self) -> datetime:
        """From the start of 2026 on."""
        return START + timedelta(seconds=self.monotonic())


class Recorder(EventRecorder):
    """Keeps what is recorded instead of writing it."""

    def __init__(self) -> None:
        self.recorded: list[tuple[str, str, str, str, str]] = []

    def record(
        self, regarding: Ref, uid: str, *, event_type: EventType, reason: str, action: str, note: str
    ) -> None:
        """Keep it."""
        assert REF == regarding
        self.recorded.append((uid, event_type, reason, action, note))


def view(obj: Any) -> Object:
    """The whole status."""
    return dict(obj.get("status", {}))


class World:
    """A writer, its server and store, and one object."""

    def __init__(self) -> None:
        self.server = FakeApiServer()
        self.store: Store[Object] = Store(Resource(api=THING, view=view, manager=MANAGER))
        self.store.feed().replace([], 100)
        self.ready: list[Key] = []
        self.written = Written({THING: self.store}, self.ready.append)
        self.events = Recorder()
        self.writer = StatusWriter(
            Client(self.server),
            self.store,
            manager=MANAGER,
            written=self.written,
            events=self.events,
            clock=LoopClock(),
        )
        self.server.put(REF, {"metadata": {"generation": 1}, "spec": {}})
        self.deliver()

    def deliver(self) -> None:
        """Let the watch catch up."""
        self.server.deliver(REF, self.store)

    @property
    def item(self) -> Item[Object]:
        """The object as cached."""
        item = self.store.get("a", "x")
        assert item is not None
        return item

    @property
    def live(self) -> Any:
        """The object as it is."""
        return self.server.live(REF)

    async def write(
        self, *conditions: Condition, observed: Item[Object] | None = None, **fields: Any
    ) -> Cause | None:
        """Make the status say this; the cause of what went wrong."""
        item = observed or self.item
        live = item.view.get("conditions", ())
        problem = await self.writer.write(item, THING, DesiredStatus(1, conditions, fields), KEY, live)
        return problem.cause if problem else None


READY = Condition("Ready", "True", "Ready", "2 of 2")
NOT_READY = Condition("Ready", "False", "Broken")


async def test_writes_the_whole_status() -> None:
    """Fields and conditions arrive, by server-side apply on the subresource, as one manager."""
    world = World()

    assert await world.write(READY, url="http://x") is None
    assert {
        "url": "http://x",
        "observedGeneration": 1,
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "observedGeneration": 1,
                "lastTransitionTime": "2026-01-01T00:00:00Z",
                "reason": "Ready",
                "message": "2 of 2",
            }
        ],
    } == world.live["status"]
    assert ["PATCH /apis/example.dev/v1/namespaces/a/things/x/status"] == world.server.writes()


async def test_same_meaning_is_not_written() -> None:
    """Time passing alone changes nothing: no request."""
    world = World()
    await world.write(READY, url="http://x")
    world.deliver()
    await asyncio.sleep(3600)

    assert await world.write(READY, url="http://x") is None
    assert 1 == len(world.server.writes())


async def test_transition_time_moves_with_the_status() -> None:
    """A new reason keeps the time, a new status takes the present one."""
    world = World()
    times = []
    for condition in (READY, Condition("Ready", "True", "Other"), NOT_READY):
        await world.write(condition)
        world.deliver()
        times.append(world.live["status"]["conditions"][0]["lastTransitionTime"])
        await asyncio.sleep(60)

    assert ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "2026-01-01T00:02:00Z"] == times


async def test_status_of_the_past_is_refused() -> None:
    """A status computed from an older object does not land on a newer one (infinispan-operator#2166)."""
    world = World()
    observed = world.item
    world.server.put(REF, {"spec": {"size": 2}})
    unseen = await world.write(READY, observed=observed)
    world.deliver()

    assert [Cause.STALE] * 2 == [unseen, await world.write(READY, observed=observed)]
    assert "status" not in world.live
    assert [] == world.events.recorded


async def test_transitions_become_events() -> None:
    """First the outcome alone, then what changes; unchanged conditions and mere messages are silent."""
    world = World()
    for conditions in (
        (READY, Condition("Serving", "True", "Serving")),
        (Condition("Ready", "True", "Ready", "3 of 3"), Condition("Serving", "True", "Serving")),
        (NOT_READY, Condition("Serving", "True", "Serving")),
    ):
        await world.write(*conditions)
        world.deliver()
    uid = world.item.meta.uid

    assert [
        (uid, "Normal", "Ready", "Ready", "2 of 2"),
        (uid, "Warning", "Broken", "Ready", "Ready is False"),
    ] == world.events.recorded


async def test_own_write_is_recognised() -> None:
    """What the watch brings back of our own write is known as such, before and after the answer."""
    world = World()
    before = world.writer.shows_own_write(world.item)
    hold = asyncio.Event()
    world.server.faults.append(Fault(lambda request: request.method == "PATCH", hold=hold))
    write = asyncio.create_task(world.write(READY))
    await asyncio.sleep(1)
    world.deliver()
    unanswered = world.writer.shows_own_write(world.item)
    hold.set()
    await write

    assert (False, True, True) == (before, unanswered, world.writer.shows_own_write(world.item))


@pytest.mark.parametrize("change", ["spec", "status"])
async def test_others_changes_are_not_taken_for_ours(change: str) -> None:
    """After our write a newer revision is news, even if our part of the status is the same."""
    world = World()
    await world.write(READY)
    world.server.put(REF, {change: {"theirs": 1}})
    world.deliver()

    assert not world.writer.shows_own_write(world.item)


async def test_change_hidden_behind_an_unanswered_write() -> None:
    """A list that shows our write and a later one before the answer came is looked at again."""
    world = World()
    hold = asyncio.Event()
    world.server.faults.append(Fault(lambda request: request.method == "PATCH", hold=hold))
    write = asyncio.create_task(world.write(READY))
    await asyncio.sleep(1)
    world.server.put(REF, {"status": {"theirs": 1}})
    world.deliver()
    hold.set()

    assert Cause.STALE == await write


async def test_key_waits_for_its_status() -> None:
    """Read-your-writes covers the status: the next pass must see the transition times it wrote."""
    world = World()
    await world.write(READY)
    before = world.written.ready(KEY)
    world.deliver()

    assert (False, [KEY]) == (before, world.ready)


async def test_refused_status_is_not_sent_again() -> None:
    """Rule A9 for statuses: time passing does not make a refused status a new one."""
    world = World()
    world.server.faults.append(Fault(lambda request: request.method == "PATCH", INVALID, times=100))
    first = await world.write(NOT_READY)
    await asyncio.sleep(60)
    second = await world.write(NOT_READY)
    sent = len(world.server.writes())
    third = await world.write(READY)

    assert (Cause.INVALID, Cause.INVALID, 1) == (first, second, sent)
    assert (Cause.INVALID, 2) == (third, len(world.server.writes()))


async def test_server_that_stores_another_form_is_settled_with() -> None:
    """Rule A13a for statuses: a default the schema adds does not cause a write on each pass."""
    world = World()

    def rewrite(request: Request) -> bool:
        if request.method == "PATCH":
            request.body["status"]["url"] = "rewritten"
        return False

    world.server.faults.append(Fault(rewrite))
    await world.write(READY, url="http://x")
    world.deliver()
    await world.write(READY, url="http://x")

    assert "rewritten" == world.live["status"]["url"]
    assert 1 == len(world.server.writes())


@pytest.mark.parametrize(("commit", "cause", "events"), [(True, None, 1), (False, Cause.UNREACHABLE, 0)])
async def test_lost_answer_is_read_back(cause: Cause | None, events: int, *, commit: bool) -> None:
    """Rule A14: a status that arrived although no answer came counts, events included."""
    world = World()
    world.server.faults.append(Fault(lambda request: request.method == "PATCH", commit=commit))

    assert cause == await world.write(READY)
    assert events == len(world.events.recorded)
    assert commit == ("status" in world.live)


async def test_lost_answer_and_lost_read() -> None:
    """With the server away the key is tried again, and a write that did arrive is not overwritten blindly."""
    world = World()
    world.server.faults += [
        Fault(lambda request: request.method == "PATCH", commit=True),
        Fault(lambda request: request.method == "GET"),
    ]
    first = await world.write(READY)
    second = await world.write(READY)
    world.deliver()

    assert (Cause.UNREACHABLE, Cause.STALE, None) == (first, second, await world.write(READY))


async def test_gone_objects_leave_nothing() -> None:
    """Memory stays proportional to the objects that exist; a namesake starts afresh."""
    world = World()
    await world.write(READY)
    world.server.faults.append(Fault(lambda request: request.method == "PATCH", INVALID))
    world.deliver()
    await world.write(NOT_READY)
    world.writer.forget(KEY)

    assert ({}, {}) == (world.writer._sent, world.writer._refusals._known)


def test_store_must_follow_the_manager() -> None:
    """A store that can't tell our status from others' would cause a write on each pass: refused at once."""
    store: Store[Object] = Store(Resource(api=THING, view=view))
    written = Written({THING: store}, lambda _: None)

    with pytest.raises(ValueError, match=r"things\.example\.dev"):
        StatusWriter(
            Client(FakeApiServer()),
            store,
            manager=MANAGER,
            written=written,
            events=Recorder(),
            clock=LoopClock(),
        )
