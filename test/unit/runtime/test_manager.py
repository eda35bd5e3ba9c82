"""Order of start and stop (architecture.md section 3), told by what each part saw when."""

import asyncio
import signal

import pytest
from structlog.testing import capture_logs

from modelfleet.kube.changes import State
from modelfleet.kube.client import Client
from modelfleet.kube.resource import Resource
from modelfleet.kube.store import Store
from modelfleet.plan import Api
from modelfleet.runtime.endpoint import Bind, Endpoint
from modelfleet.runtime.leader import LeaderElector
from modelfleet.runtime.manager import Manager
from modelfleet.runtime.process import Exit, stop_signals
from test.unit.runtime.fake_lease_server import OTHER, REF, Counted, FakeLeaseServer, LoopClock, held, now

pytestmark = pytest.mark.looptime(noop_cycles=0)

THING = Api("example.com", "v1", "Thing", "things")
EXTRA = Api("example.com", "v1", "Extra", "extras")


def store_of(api: Api, *, required: bool = True) -> Store[None]:
    """A store nobody feeds."""
    return Store(Resource(api=api, view=lambda _: None, required=required))


class Parts:
    """The parts of a process: each writes down what happens to it, and does as the test tells it."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.thing = store_of(THING)
        self.extra = store_of(EXTRA, required=False)
        self.server = FakeLeaseServer()
        self.exits: list[int] = []
        self.pass_seconds = 0.0
        self.flush_seconds = 0.0
        self.name = "thing"
        self._stop = asyncio.Event()
        self._kinds: dict[str, asyncio.Event] = {}

    def manager(self, *, elect: bool = True) -> Manager:
        """A manager of these parts."""
        elector = LeaderElector(
            Client(self.server),
            lease=REF,
            identity="me_1",
            manager="test",
            metrics=Counted(),
            clock=LoopClock(),
        )
        return Manager(
            caches=_Caches(self),
            stores=[self.thing, self.extra],
            workloads=[self],
            events=_Events(self),
            elector=elector if elect else None,
            background=[("background", self.background)],
            after_sync=lambda: self.said.append("after sync"),
            exit_process=self.exits.append,
        )

    def synced(self) -> None:
        """Let the required kind be in sync and the optional one be absent."""
        self.thing.feed().mark(State.SYNCED)
        self.extra.feed().mark(State.NOT_INSTALLED)

    async def background(self) -> None:
        """Run from start to end."""
        await self.stays("background")

    async def run(self) -> None:
        """A controller with one pass at work when it is told to stop."""
        self.said.append("workers start")
        await self._stop.wait()
        await asyncio.sleep(self.pass_seconds)
        self.said.append("workers done")

    def stop(self) -> None:
        """Take no more work."""
        self.said.append("no new work")
        self._stop.set()

    async def stays(self, name: str) -> None:
        """Say when a part starts and when it is cancelled."""
        self.said.append(f"{name} start")
        try:
            await asyncio.Event().wait()
        finally:
            self.said.append(f"{name} end")


class _Caches:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def run(self) -> None:
        await self._parts.stays("caches")

    async def catch_up(self) -> None:
        self._parts.said.append(f"catch up under {self._parts.server.holder}")


class _Events:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    async def run(self) -> None:
        await self._parts.stays("events")

    async def flush(self) -> None:
        await asyncio.sleep(self._parts.flush_seconds)
        self._parts.said.append(f"flush under {self._parts.server.holder}")


@pytest.fixture
async def parts() -> Parts:
    """Made inside the loop that runs the test."""
    return Parts()


async def started(manager: Manager, parts: Parts, *, until: str = "workers start") -> asyncio.Task[Exit]:
    """Run a manager in a task until some part has said something."""
    task = asyncio.create_task(manager.run())
    while until not in parts.said and not task.done():  # noqa: ASYNC110  # loop time: this costs nothing
        await asyncio.sleep(0.1)
    return task


async def test_starts_and_stops_in_order(parts: Parts) -> None:
    """Start: caches, sync, lease, catch-up, workers. Stop: work, caches, Events, lease, background."""
    manager = parts.manager()
    parts.synced()
    task = await started(manager, parts)
    manager.stop()

    assert Exit.CLEAN == await task
    assert [
        "background start",
        "events start",
        "caches start",
        "after sync",
        "catch up under me_1",
        "workers start",
        "no new work",
        "workers done",
        "caches end",
        "flush under me_1",
        "events end",
        "background end",
    ] == parts.said
    assert "" == parts.server.holder


async def test_runs_without_an_election(parts: Parts) -> None:
    """--no-leader-elect: workers start after the sync, and no Lease is touched."""
    parts.server.edit(held(OTHER))
    manager = parts.manager(elect=False)
    parts.synced()
    task = await started(manager, parts)
    manager.stop()

    assert Exit.CLEAN == await task
    assert [] == parts.server.requests


async def test_waits_for_ever_for_a_server_that_is_away(parts: Parts) -> None:
    """No answer is no refusal: not ready, no exit, and a start as soon as the caches are in sync."""
    manager = parts.manager()
    task = await started(manager, parts, until="caches start")
    await asyncio.sleep(3600)

    assert not task.done()
    assert "things.example.com Syncing" == manager.check_sync()
    parts.synced()
    await asyncio.sleep(5)
    assert "workers start" in parts.said
    assert "" == manager.check_sync()
    manager.stop()
    assert Exit.CLEAN == await task


@pytest.mark.parametrize("state", [State.FORBIDDEN, State.NOT_INSTALLED])
async def test_gives_up_on_a_required_kind_that_is_refused(parts: Parts, state: State) -> None:
    """A reachable server that refuses a required kind for 2 minutes ends the start with its reason."""
    parts.thing.feed().mark(state, "service account ns/sa may not list Thing")
    with capture_logs() as logs:
        code = await parts.manager().run()

    assert Exit.FAILURE == code
    assert 120 <= now() <= 121
    assert "service account ns/sa may not list Thing" in [entry.get("error") for entry in logs]
    assert "workers start" not in parts.said


async def test_a_refusal_that_ends_in_time_is_forgiven(parts: Parts) -> None:
    """The 2 minutes begin anew after a break: RBAC is often applied after the Deployment."""
    manager = parts.manager()
    parts.thing.feed().mark(State.FORBIDDEN, "no")
    task = await started(manager, parts, until="caches start")
    await asyncio.sleep(110)
    parts.thing.feed().mark(State.SYNCING)
    await asyncio.sleep(5)
    parts.thing.feed().mark(State.FORBIDDEN, "no")
    await asyncio.sleep(110)

    assert not task.done()
    manager.stop()
    assert Exit.CLEAN == await task


async def test_an_optional_kind_can_only_delay(parts: Parts) -> None:
    """A CRD whose lists never come in holds up the others for the sync timeout, not for ever."""
    manager = parts.manager()
    parts.thing.feed().mark(State.SYNCED)
    task = await started(manager, parts)

    assert 120 <= now() <= 125
    manager.stop()
    assert Exit.CLEAN == await task


async def test_no_leader_work_starts_while_stopping(parts: Parts) -> None:
    """A standby that is stopped as the lease falls free begins no work (controller-runtime#2719)."""
    parts.server.edit(held(OTHER))
    manager = parts.manager()
    parts.synced()
    task = await started(manager, parts, until="after sync")
    await asyncio.sleep(5)
    parts.server.edit(held("", duration=1))
    manager.stop()

    assert Exit.CLEAN == await task
    assert "workers start" not in parts.said
    assert "" == parts.server.holder


async def test_ready_turns_false_first(parts: Parts) -> None:
    """While passes finish the probe says that the process is on its way out."""
    manager = parts.manager()
    parts.synced()
    parts.pass_seconds = 5
    task = await started(manager, parts)
    assert "" == manager.check_stop()
    manager.stop()

    assert "shutting down" == manager.check_stop()
    assert Exit.CLEAN == await task


async def test_a_pass_that_does_not_end_in_time(parts: Parts) -> None:
    """Cut off after the grace period: exit code 1, and the lease expires instead of being released."""
    manager = parts.manager()
    parts.synced()
    parts.pass_seconds = 100
    task = await started(manager, parts)
    manager.stop()

    assert Exit.FAILURE == await task
    assert 30 <= now() <= 32
    assert "workers done" not in parts.said
    assert "me_1" == parts.server.holder


async def test_a_slow_flush_does_not_hold_the_lease(parts: Parts) -> None:
    """Events get 2 seconds; then the successor's turn comes first."""
    manager = parts.manager()
    parts.synced()
    parts.flush_seconds = 1000
    task = await started(manager, parts)
    manager.stop()

    assert Exit.CLEAN == await task
    assert now() <= 3
    assert "" == parts.server.holder


async def test_a_lost_lease_exits_at_once(parts: Parts) -> None:
    """No drain: the process ends with its own code before anything else is awaited (cilium#42920)."""
    manager = parts.manager()
    parts.synced()
    task = await started(manager, parts)
    parts.server.edit(held(OTHER))

    assert Exit.LEADER_LOST == await task
    assert [Exit.LEADER_LOST] == parts.exits
    assert "workers done" not in parts.said
    assert OTHER == parts.server.holder


@pytest.mark.parametrize("part", ["run", "background"])
async def test_a_part_that_fails_ends_the_process(
    parts: Parts, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unexpected error anywhere is logged with its part and ends everything with code 1."""

    async def fail() -> None:
        await asyncio.sleep(1)
        raise RuntimeError("broken")

    monkeypatch.setattr(parts, part, fail)
    parts.synced()
    with capture_logs() as logs:
        code = await parts.manager().run()

    assert Exit.FAILURE == code
    failed = [entry["part"] for entry in logs if entry["event"] == "a part of the controller failed"]
    assert ["thing" if part == "run" else part] == failed
    assert "caches end" in parts.said


async def test_a_part_that_returns_ends_the_process(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts run for ever: one that returns without being told to is a failure, not a smaller process."""

    async def leave() -> None:
        await asyncio.sleep(1)

    monkeypatch.setattr(parts, "background", leave)
    parts.synced()

    assert Exit.FAILURE == await parts.manager().run()


async def test_a_part_that_ignores_cancellation_is_left_behind(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stop has an end whatever a part does: the process exits without it."""

    async def stubborn() -> None:
        while not parts.exits:
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                parts.said.append("not me")

    monkeypatch.setattr(parts, "background", stubborn)
    manager = parts.manager()
    parts.synced()
    task = await started(manager, parts)
    manager.stop()
    await task

    assert [Exit.FAILURE] == parts.exits
    assert now() <= 30 + 12 + 2


async def test_an_address_in_use_is_one_line(parts: Parts) -> None:
    """The process does not start, and the line says which address."""
    holder = Endpoint(Bind("127.0.0.1", 0), {})
    await holder.start()
    taken = Bind("127.0.0.1", holder.port)
    try:
        with capture_logs() as logs:
            code = await parts.manager().run([Endpoint(taken, {})])
    finally:
        await holder.close()

    assert Exit.FAILURE == code
    assert [f"cannot listen on {taken}: address already in use"] == [
        str(entry["error"]).lower() for entry in logs if "error" in entry
    ]
    assert [] == parts.said


async def test_signals() -> None:
    """The first signal asks for a stop; the second, of either kind, exits with 128 + its number."""
    stops: list[str] = []
    exits: list[int] = []
    before = signal.getsignal(signal.SIGTERM)
    with stop_signals(lambda: stops.append("stop"), exits.append):
        signal.raise_signal(signal.SIGTERM)
        await asyncio.sleep(0.1)
        assert (["stop"], []) == (stops, exits)
        signal.raise_signal(signal.SIGINT)

    assert (["stop"], [130]) == (stops, exits)
    assert before == signal.getsignal(signal.SIGTERM)
