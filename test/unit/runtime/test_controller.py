"""The loop of one kind: events to passes, passes to writes, writes to the next look."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from modelfleet.kube.client import Client
from modelfleet.kube.errors import FencedError
from modelfleet.kube.objects import Item
from modelfleet.kube.resource import Resource
from modelfleet.kube.store import State, Store
from modelfleet.plan import (
    Api,
    Apply,
    Condition,
    DesiredStatus,
    Key,
    Manifest,
    Outcomes,
    Plan,
    Precondition,
    Ref,
    Result,
)
from modelfleet.runtime import verdict
from modelfleet.runtime.controller import Controller, spread_of
from modelfleet.runtime.events import EventRecorder
from test.unit.runtime.fake_api import FakeApiServer, Fault, Object, failure

pytestmark = pytest.mark.looptime

THING = Api("example.dev", "v1", "Thing", "things")
CHILD = Api("example.dev", "v1", "Child", "children")
MANAGER = "modelfleet-controller"
HOUR = 3600.0


class LoopClock:
    """A wall clock that goes with the loop's time."""

    def monotonic(self) -> float:
        """The loop's time."""
        return asyncio.get_running_loop().time()

    def now(self) -> datetime:
        """From the start of 2026 on."""
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.monotonic())


@dataclass(frozen=True)
class Observed:
    """A thing and its child."""

    item: Item[Object]
    child: Item[Object] | None


class Things:
    """Each thing has one child of its name and size; `boom` in the spec is a bug in the planner."""

    name = "thing"
    api = THING

    def __init__(self, stores: Mapping[Api, Store[Object]]) -> None:
        self._stores = stores
        self.passes: list[str] = []

    def keys_of(self, api: Api, item: Item[Any], /) -> Iterable[Key]:
        """By name, which child and thing share."""
        if "lost" in item.meta.labels:
            raise LookupError("a bug")
        yield Key(item.meta.namespace, item.meta.name if api == THING else item.meta.labels["thing"])

    def observe(self, key: Key, _now: datetime, /) -> Observed | None:
        """From both stores."""
        self.passes.append(key.name)
        item = self._stores[THING].get(key.namespace, key.name)
        return None if item is None else Observed(item, self._stores[CHILD].get(key.namespace, key.name))

    def item(self, observed: Observed, /) -> Item[Any]:
        """The thing."""
        return observed.item

    def live_conditions(self, observed: Observed, /) -> Sequence[Mapping[str, Any]]:
        """As they are."""
        return list(observed.item.view.get("status", {}).get("conditions", ()))

    def plan(self, observed: Observed, /) -> Plan:
        """Make the child what it should be."""
        meta, spec = observed.item.meta, observed.item.view["spec"]
        if spec.get("boom"):
            raise RuntimeError("a bug")
        owners = [{"apiVersion": "v1", "kind": "Thing", "name": "o", "uid": meta.uid, "controller": True}]
        metadata = {"labels": {"thing": meta.name}, "ownerReferences": owners}
        wanted = Manifest.of({"metadata": metadata, "spec": {"size": spec["size"]}})
        child = observed.child
        if child is not None and child.digest == wanted.digest:
            return Plan(requeue_after=spec.get("after"))
        live = Precondition(child.meta.uid, child.meta.resource_version) if child else None
        ref = Ref(CHILD, meta.namespace, meta.name)
        action = Apply("child", ref, wanted, MANAGER, meta.uid, live, child.digest if child else "")
        return Plan((action,), spec.get("after"))

    def status(self, observed: Observed, outcomes: Outcomes, /) -> DesiredStatus:
        """Ready when nothing failed."""
        failed = [o for o in outcomes.values() if o.result is Result.FAILED and o.problem]
        reason = failed[0].problem.cause.value if failed and failed[0].problem else "Fine"
        condition = Condition("Ready", "False" if failed else "True", reason)
        return DesiredStatus(observed.item.meta.generation, (condition,))


class Meter:
    """Keeps what a controller reports."""

    def __init__(self) -> None:
        self.results: list[str] = []
        self.busiest = 0
        self.terminal = self.panics = self.timeouts = 0

    def workers(self, limit: int) -> None:
        """Keep it."""
        self.limit = limit

    def active(self, workers: int) -> None:
        """Keep the highest."""
        self.busiest = max(self.busiest, workers)

    def reconciled(self, result: verdict.Result, seconds: float) -> None:
        """Keep the result."""
        assert seconds >= 0
        self.results.append(result)

    def terminal_error(self) -> None:
        """Count."""
        self.terminal += 1

    def panic(self) -> None:
        """Count."""
        self.panics += 1

    def timeout(self) -> None:
        """Count."""
        self.timeouts += 1


def view(obj: Any) -> Object:
    """The body without metadata."""
    return {k: v for k, v in obj.items() if k != "metadata"}


class World:
    """A controller, its server and stores."""

    def __init__(self, *, synced: bool = True, **options: Any) -> None:
        self.server = FakeApiServer()
        self.client = Client(self.server)
        self.stores: dict[Api, Store[Object]] = {
            api: Store(Resource(api=api, view=view, manager=MANAGER)) for api in (THING, CHILD)
        }
        self.things = Things(self.stores)
        self.meter = Meter()
        events = EventRecorder(
            self.client, controller="m.dev/c", instance="i", manager=MANAGER, clock=LoopClock()
        )
        self.controller = Controller(
            self.things,
            self.client,
            self.stores,
            manager=MANAGER,
            events=events,
            clock=LoopClock(),
            metrics=self.meter,
            **{"uniform": lambda _, high: high, **options},
        )
        for store in self.stores.values():
            if synced:
                store.feed().replace([], 100)

    def thing(self, name: str = "x", **spec: Any) -> None:
        """Create or edit a thing, and let the watch bring it."""
        generation = self.server.version
        self.server.put(
            Ref(THING, "a", name), {"metadata": {"generation": generation}, "spec": {"size": 1, **spec}}
        )
        self.deliver(name, THING)

    def deliver(self, name: str = "x", *apis: Api) -> None:
        """Let the watches bring the present state."""
        for api in apis or (CHILD, THING):
            self.server.deliver(Ref(api, "a", name), self.stores[api])

    def live(self, api: Api, name: str = "x") -> Any:
        """An object as it is."""
        return self.server.live(Ref(api, "a", name))

    def writes(self) -> list[str]:
        """Writes in short: method and the end of the path."""
        return [" ".join((w.split()[0], *w.split("/")[6:])) for w in self.server.writes()]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """With workers, stopped in order."""
        task = asyncio.create_task(self.controller.run())
        yield
        self.controller.stop()
        await asyncio.wait_for(task, 200)

    async def converge(self, *names: str) -> None:
        """Let passes and watches alternate until nothing moves."""
        for _ in range(6):
            await asyncio.sleep(0.5)
            for name in names or ("x",):
                self.deliver(name)


async def test_converges_and_rests() -> None:
    """One child, one status; then the objects rest: no request and no pass, however long."""
    world = World()
    world.thing()
    async with world.running():
        await world.converge()
        writes, passes = world.writes(), len(world.things.passes)
        await asyncio.sleep(8 * HOUR)

    assert ["PATCH children x", "PATCH things x status"] == writes
    assert writes == world.writes()
    assert passes == len(world.things.passes)
    assert {"size": 1} == world.live(CHILD)["spec"]
    assert "True" == world.live(THING)["status"]["conditions"][0]["status"]


async def test_own_status_write_is_no_news() -> None:
    """The watch bringing our own status back starts no pass (konflux#5874)."""
    world = World()
    world.thing()
    async with world.running():
        await asyncio.sleep(1)
        world.deliver("x", CHILD)
        await asyncio.sleep(1)
        before = len(world.things.passes)
        world.deliver("x", THING)
        await asyncio.sleep(1)

    assert before == len(world.things.passes) - 1  # the key was waiting for the status it had written
    assert 2 == len(world.writes())


@pytest.mark.parametrize(
    ("api", "change", "passes"),
    [
        (CHILD, {}, 0),
        (CHILD, {"metadata": {"annotations": {"seen": "x"}}}, 1),
        (CHILD, {"status": {"ready": 1}}, 1),
        (CHILD, {"spec": {"size": 9}}, 1),
        (THING, {}, 0),
        (THING, {"metadata": {"labels": {"team": "x"}}}, 1),
        (THING, {"metadata": {"generation": 5}, "spec": {"size": 1, "more": 1}}, 1),
        (THING, {"status": {"theirs": 1}}, 1),
    ],
)
async def test_which_events_matter(api: Api, change: Object, passes: int) -> None:
    """A new revision that reads the same is no news; anything a planner could read is."""
    world = World()
    world.thing()
    async with world.running():
        await world.converge()
        before = len(world.things.passes)
        world.server.put(Ref(api, "a", "x"), change)
        world.deliver("x", api)
        await asyncio.sleep(0.1)

    assert passes == len(world.things.passes) - before


async def test_waits_for_its_own_writes() -> None:
    """Facts 1.4: the child's watch 3 s late, ten edits meanwhile: one birth and one update."""
    world = World()
    world.thing(size=1)
    async with world.running():
        await asyncio.sleep(0.1)
        for size in range(2, 12):
            world.thing(size=size)
            await asyncio.sleep(0.3)
        late = world.writes()
        await world.converge()

    assert ["PATCH children x", "PATCH things x status"] == late
    assert 2 == world.writes().count("PATCH children x")
    assert {"size": 11} == world.live(CHILD)["spec"]


async def test_drift_is_undone_and_deletion_healed() -> None:
    """An owned field edited by somebody comes back; so does a deleted child."""
    world = World()
    world.thing()
    async with world.running():
        await world.converge()
        world.server.put(Ref(CHILD, "a", "x"), {"spec": {"size": 99}})
        world.deliver("x", CHILD)
        await world.converge()
        undone = world.live(CHILD)["spec"]
        world.server.objects.pop("/apis/example.dev/v1/namespaces/a/children/x")
        world.deliver("x", CHILD)
        await world.converge()

    assert ({"size": 1}, {"size": 1}) == (undone, world.live(CHILD)["spec"])


async def test_a_bug_stops_one_key_only() -> None:
    """A planner that raises is logged, counted and repeated with backoff; the other keys go on."""
    world = World()
    world.thing("bad", boom=1)
    world.thing("good")
    async with world.running():
        await world.converge("bad", "good")
        tries, panics = world.things.passes.count("bad"), world.meter.panics
        fine = world.live(CHILD, "good")["spec"]
        world.thing("bad", boom=0)
        await world.converge("bad")

    assert {"size": 1} == fine
    assert 5 < tries < 12
    assert tries == panics
    assert {"size": 1} == world.live(CHILD, "bad")["spec"]


async def test_a_bug_in_the_mapping_of_an_event() -> None:
    """An event whose keys can't be told is counted and dropped; the store and its reflector live on."""
    world = World()
    world.server.put(Ref(CHILD, "a", "x"), {"metadata": {"labels": {"lost": "1"}}})
    world.deliver("x", CHILD)

    assert 1 == world.meter.panics
    assert 0 == len(world.controller.queue)


async def test_a_hanging_pass_is_cut_off() -> None:
    """Rule Q9: a pass over its deadline ends with its request and is repeated; others go on."""
    world = World(concurrency=1, reconcile_timeout=5.0)
    world.thing("slow")
    world.server.faults.append(Fault(lambda r: r.path.endswith("children/slow"), hold=asyncio.Event()))
    async with world.running():
        await asyncio.sleep(1)
        world.thing("quick")
        await asyncio.sleep(40)
        world.deliver("slow")
        await world.converge("slow", "quick")

    assert 1 == world.meter.timeouts
    assert {"size": 1} == world.live(CHILD, "slow")["spec"]
    assert "True" == world.live(THING, "slow")["status"]["conditions"][0]["status"]
    assert "True" == world.live(THING, "quick")["status"]["conditions"][0]["status"]


async def test_terminal_refusals_rest_until_the_resync() -> None:
    """Rule A9: a refused child is sent once; nothing is repeated before the resync, which asks again."""
    world = World()
    world.thing()
    invalid = failure(422, "Invalid", "no", {"causes": [{"field": "spec.size", "message": "too small"}]})
    world.server.faults.append(Fault(lambda r: r.path.endswith("children/x"), invalid, times=99))
    async with world.running():
        await world.converge()
        early = len(world.things.passes)
        await asyncio.sleep(8 * HOUR)
        sent, passes = world.writes().count("PATCH children x"), len(world.things.passes)
        await asyncio.sleep(4 * HOUR)

    assert (1, early) == (sent, passes)
    assert (2, early + 1) == (world.writes().count("PATCH children x"), len(world.things.passes))
    assert world.meter.terminal >= 1
    assert "Invalid" == world.live(THING)["status"]["conditions"][0]["reason"]


async def test_name_conflicts_are_looked_at_each_minute() -> None:
    """No event tells that a foreign object left: each minute, until the child is born."""
    world = World()
    world.server.put(Ref(CHILD, "a", "x"), {"spec": {}})
    world.thing()
    async with world.running():
        await asyncio.sleep(0.1)
        world.deliver("x", THING)
        await asyncio.sleep(600)
        tries = world.writes().count("PATCH children x")
        world.server.objects.pop("/apis/example.dev/v1/namespaces/a/children/x")
        await asyncio.sleep(verdict.HUMAN_SECONDS * 1.3)
        world.deliver()

    assert 8 <= tries <= 11
    assert {"size": 1} == world.live(CHILD)["spec"]


async def test_an_unreachable_server_is_backed_off_from() -> None:
    """Rule Q4: an outage of an hour costs a bounded number of requests and ends by itself."""
    world = World()
    world.thing()
    outage = Fault(lambda _: asyncio.get_running_loop().time() < HOUR, sent=False, times=10**9)
    world.server.faults.append(outage)
    async with world.running():
        await asyncio.sleep(HOUR)
        requests = len(world.server.requests)
        await asyncio.sleep(400)
        await world.converge()

    assert requests < 100
    assert {"size": 1} == world.live(CHILD)["spec"]
    assert 0 == world.controller.queue.failures(Key("a", "x"))


async def test_retry_after_is_honoured() -> None:
    """Rule A14: a throttled key comes back no earlier than the server asked."""
    world = World()
    world.thing()
    answer = failure(429, "TooManyRequests", "slow down", headers={"retry-after": "30"})
    world.server.faults.append(Fault(lambda r: r.path.endswith("children/x"), answer))
    async with world.running():
        await asyncio.sleep(0.1)
        world.deliver("x", THING)
        await asyncio.sleep(29)
        early = world.writes().count("PATCH children x")
        await asyncio.sleep(2)

    assert (1, 2) == (early, world.writes().count("PATCH children x"))


async def test_requeue_after() -> None:
    """A plan that wants another look gets it, again and again, without a request."""
    world = World()
    world.thing(after=60)
    async with world.running():
        await world.converge()
        before, writes = len(world.things.passes), world.writes()
        await asyncio.sleep(600)

    assert 9 <= len(world.things.passes) - before <= 11
    assert writes == world.writes()
    assert "requeue_after" in world.meter.results


async def test_resync_once_in_ten_hours() -> None:
    """Rule Q10: every object is looked at again, at low priority, spread by its uid, without a request."""
    world = World()
    names = [f"n{number}" for number in range(30)]
    for name in names:
        world.thing(name)
    async with world.running():
        await world.converge(*names)
        world.things.passes.clear()
        writes = world.writes()
        await asyncio.sleep(8.9 * HOUR)
        early = list(world.things.passes)
        await asyncio.sleep(1.1 * HOUR)
        half = len(world.things.passes)
        await asyncio.sleep(1.1 * HOUR)

    assert [] == early
    assert 5 < half < 25
    assert sorted(names) == sorted(world.things.passes)
    assert writes == world.writes()


def test_spread() -> None:
    """The factor is within 10 %, the same for the same object, and different for others."""
    factors = [spread_of(f"uid-{number}") for number in range(1000)]

    assert all(0.9 <= factor <= 1.1 for factor in factors)
    assert spread_of("uid-7") == factors[7]
    assert max(factors) - min(factors) > 0.19


async def test_deleted_objects_leave_nothing() -> None:
    """The object gone, its key is forgotten everywhere and not looked at again."""
    world = World()
    world.thing()
    async with world.running():
        await world.converge()
        world.server.objects.clear()
        world.deliver()
        await world.converge()
        passes = len(world.things.passes)
        await asyncio.sleep(24 * HOUR)

    assert passes == len(world.things.passes)
    assert {} == world.controller._status._sent
    assert {} == world.controller._written._versions


async def test_initial_list_has_low_priority() -> None:
    """Rules I16, Q7: what the first list brings waits behind what happens meanwhile."""
    world = World(synced=False)
    for name in ("old1", "old2"):
        world.server.put(Ref(THING, "a", name), {"spec": {"size": 1}})
    store = world.stores[THING]
    store.feed().replace(map(store.resource.decode, world.server.objects.values()), world.server.version)
    world.thing("new")
    order = [(await world.controller.queue.get()).name for _ in range(3)]

    assert ["new", "old1", "old2"] == order


async def test_a_kind_that_appears_wakes_everybody() -> None:
    """Installing a CRD later is news for each object, without a restart and in no hurry."""
    world = World()
    for name in ("x", "y"):
        world.thing(name)
    async with world.running():
        await world.converge("x", "y")
        world.things.passes.clear()
        world.stores[CHILD].feed().mark(State.FORBIDDEN, "no permission")
        await asyncio.sleep(1)

    assert ["x", "y"] == sorted(world.things.passes)


async def test_former_leader_stops() -> None:
    """Behind the fence a pass writes nothing, not even the status, and is not repeated."""
    world = World()

    def fence() -> None:
        raise FencedError("not the leader")

    world.client.fence = fence
    world.thing()
    async with world.running():
        await asyncio.sleep(8 * HOUR)

    assert [] == world.server.requests
    assert ["x"] == world.things.passes


async def test_stop_finishes_what_runs_and_drops_the_rest() -> None:
    """Facts 1.8: the pass under way is completed, status included; waiting keys are dropped."""
    world = World(concurrency=1)
    hold = asyncio.Event()
    world.server.faults.append(Fault(lambda r: r.path.endswith("children/x"), hold=hold))
    for name in ("x", "y"):
        world.thing(name)
    run = asyncio.create_task(world.controller.run())
    await asyncio.sleep(1)
    world.controller.stop()
    await asyncio.sleep(1)
    hold.set()
    await asyncio.wait_for(run, 10)

    assert ["PATCH children x", "PATCH things x status"] == world.writes()
    assert ["x"] == world.things.passes


async def test_passes_without_requests_leave_the_loop_alone() -> None:
    """A thousand no-op passes in a row let others run in between: a lease must be renewed meanwhile."""
    world = World()
    names = [f"n{number}" for number in range(1000)]
    for name in names:
        world.controller.queue.add(Key("a", name))
    turns = 0
    run = asyncio.create_task(world.controller.run())
    while len(world.things.passes) < len(names):
        await asyncio.sleep(0)
        turns += 1
    world.controller.stop()
    await run

    assert turns > 200


async def test_concurrency_is_bounded() -> None:
    """Rule Q11: never more passes at a time than workers; the default is small."""
    world = World()
    for number in range(20):
        world.thing(f"n{number}")
    world.server.faults.append(Fault(lambda r: "children" in r.path, hold=asyncio.Event(), times=99))
    async with world.running():
        await asyncio.sleep(1)

    assert (4, 4) == (world.meter.limit, world.meter.busiest)
