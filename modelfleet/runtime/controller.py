"""Runs one reconciler: events become keys, keys become passes, passes become writes and a next look.

Promises:
- a pass starts only when the stores show what earlier passes of the key wrote (`Written`);
- a pass that hangs is cut off and repeated (rule Q9), one that raises is logged and repeated; in both cases
  the other keys go on;
- an event that shows nothing a decision could depend on causes no pass, our own status writes above all;
- every object is looked at again 10 h after the last look, give or take an hour by its uid (rule Q10): from
  the stores, at low priority.
"""

import asyncio
import hashlib
import random
from collections.abc import Callable, Mapping
from typing import Any, Generic, Protocol

import structlog
from msgspec.structs import replace

from modelfleet.kube.client import Client
from modelfleet.kube.objects import Item
from modelfleet.kube.store import Change, Event, State, Store
from modelfleet.plan import Api, Cause, Key, Problem
from modelfleet.runtime.backoff import Backoff
from modelfleet.runtime.clock import Clock, SystemClock
from modelfleet.runtime.events import EventRecorder
from modelfleet.runtime.executor import Executor
from modelfleet.runtime.queue import EDGE, LOW, QueueMetrics, QueueShutDown, WorkQueue
from modelfleet.runtime.reconciler import Observed, Reconciler
from modelfleet.runtime.statuswriter import StatusWriter
from modelfleet.runtime.verdict import Result, Verdict, judge
from modelfleet.runtime.written import Written

log = structlog.get_logger("modelfleet.runtime.controller")

CONCURRENCY = 4
"""Passes at a time. Between controller-runtime's 1 and kube-rs's unbounded (rule Q11): a pass waits for the
network, not for a core."""
RECONCILE_SECONDS = 60.0
"""Deadline of a pass: two requests at their own deadline of 30 s."""
RESYNC_SECONDS = 36_000.0
"""10 h, controller-runtime's SyncPeriod (rule Q10)."""
RESYNC_SPREAD = 0.1
HUMAN_JITTER = 0.2
_HASH_BYTES = 8


class ControllerMetrics(Protocol):
    """What a controller reports, bound to its name (facts 1.9: controller_runtime_*)."""

    def workers(self, limit: int) -> None:
        """max_concurrent_reconciles."""

    def active(self, workers: int) -> None:
        """active_workers."""

    def reconciled(self, result: Result, seconds: float) -> None:
        """reconcile_total by result, reconcile_errors_total for "error", reconcile_time_seconds."""

    def terminal_error(self) -> None:
        """terminal_reconcile_errors_total: a pass failed in a way that only an edit can help."""

    def panic(self) -> None:
        """reconcile_panics_total: a pure function of the reconciler raised."""

    def timeout(self) -> None:
        """reconcile_timeouts_total: a pass was cut off."""


class NoControllerMetrics:
    """Reports to nobody."""

    def workers(self, limit: int) -> None:
        """Drop it."""

    def active(self, workers: int) -> None:
        """Drop it."""

    def reconciled(self, result: Result, seconds: float) -> None:
        """Drop it."""

    def terminal_error(self) -> None:
        """Drop it."""

    def panic(self) -> None:
        """Drop it."""

    def timeout(self) -> None:
        """Drop it."""


class Controller(Generic[Observed]):
    """The loop of one kind. Make it before the stores are fed, run it when leading."""

    def __init__(
        self,
        reconciler: Reconciler[Observed],
        client: Client,
        stores: Mapping[Api, Store[Any]],
        *,
        manager: str,
        events: EventRecorder,
        clock: Clock | None = None,
        concurrency: int = CONCURRENCY,
        reconcile_timeout: float = RECONCILE_SECONDS,
        resync: float = RESYNC_SECONDS,
        metrics: ControllerMetrics | None = None,
        queue_metrics: QueueMetrics | None = None,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        """`stores`: those whose changes matter to the kind, its own included; `manager` writes the status."""
        self.name = reconciler.name
        self.queue: WorkQueue[Key] = WorkQueue(backoff=Backoff(uniform=uniform), metrics=queue_metrics)
        self._reconciler = reconciler
        self._own = stores[reconciler.api]
        self._clock: Clock = SystemClock() if clock is None else clock
        self._concurrency = concurrency
        self._timeout = reconcile_timeout
        self._resync = resync
        self._metrics: ControllerMetrics = NoControllerMetrics() if metrics is None else metrics
        self._uniform = uniform
        self._active = 0
        self._reported: dict[Key, tuple[Problem, ...]] = {}
        """What the last pass of each key complained about."""
        self._log = log.bind(controller=self.name)
        self._written = Written(stores, self.queue.add)
        self._executor = Executor(client, stores, self._written)
        self._status = StatusWriter(
            client, self._own, manager=manager, written=self._written, events=events, clock=self._clock
        )
        self._metrics.workers(concurrency)
        for api, store in stores.items():
            store.subscribe(self._handler(api))
            if store is not self._own:
                store.on_state(self._on_state)

    async def run(self) -> None:
        """Work; returns after `stop` when the running passes have ended."""
        async with asyncio.TaskGroup() as group:
            for number in range(self._concurrency):
                group.create_task(self._work(), name=f"{self.name}-{number}")

    def stop(self) -> None:
        """Start no more passes. What waits is dropped: the next leader lists everything anyway."""
        self.queue.shut_down(drain=False)

    async def _work(self) -> None:
        while True:
            try:
                key = await self.queue.get()
            except QueueShutDown:
                return
            try:
                await self._pass(key)
            finally:
                self.queue.done(key)
            # A pass without requests never waits: let the others run, the lease above all.
            await asyncio.sleep(0)

    async def _pass(self, key: Key) -> None:
        if not self._written.ready(key):
            return
        loop = asyncio.get_running_loop()
        started = loop.time()
        self._count(1)
        try:
            async with asyncio.timeout(self._timeout):
                verdict = await self._reconcile(key)
        except TimeoutError:
            self._metrics.timeout()
            self._log.warning("reconcile cut off", key=str(key), seconds=self._timeout)
            verdict = Verdict("error", backoff=True)
        except Exception:  # noqa: BLE001  # a bug in one kind's logic must not stop the other keys
            self._metrics.panic()
            self._log.exception("reconcile failed by a bug", key=str(key))
            verdict = Verdict("error", backoff=True)
        finally:
            self._count(-1)
        self._metrics.reconciled(verdict.result, loop.time() - started)
        self._look_again(key, verdict)

    async def _reconcile(self, key: Key) -> Verdict:
        observed = self._reconciler.observe(key, self._clock.now())
        if observed is None:
            for memory in (self._executor, self._written, self._status):
                memory.forget(key)
            self._reported.pop(key, None)
            return Verdict("success")
        plan = self._reconciler.plan(observed)
        outcomes = await self._executor.run(plan, key)
        problems = [outcome.problem for outcome in outcomes.values() if outcome.problem is not None]
        if all(problem.cause is not Cause.NOT_LEADING for problem in problems):
            reconciler, desired = self._reconciler, self._reconciler.status(observed, outcomes)
            refused = await self._status.write(
                reconciler.item(observed), reconciler.api, desired, key, reconciler.live_conditions(observed)
            )
            problems += [refused] if refused is not None else []
        self._report(key, problems)
        return judge(problems, plan.requeue_after)

    def _look_again(self, key: Key, verdict: Verdict) -> None:
        """Rule Q5: success forgets before it adds, a failure's backoff comes before any other wish."""
        if verdict.backoff:
            self.queue.add_rate_limited(key, floor=verdict.after or 0.0)
            return
        self.queue.forget(key)
        if verdict.after is not None:
            spread = self._uniform(1 - HUMAN_JITTER, 1 + HUMAN_JITTER) if verdict.jitter else 1.0
            self.queue.add_after(key, verdict.after * spread, priority=EDGE)
        if (item := self._own.get(key.namespace, key.name)) is not None:
            self.queue.add_after(key, self._resync * spread_of(item.meta.uid), priority=LOW)

    def _report(self, key: Key, problems: list[Problem]) -> None:
        """Log what is news: an outage that lasts is told once for each key, a lost race not at all."""
        known = self._reported.pop(key, ())
        for problem in problems:
            say = self._log.debug if problem in known or problem.cause is Cause.STALE else self._log.warning
            say("reconcile problem", key=str(key), cause=problem.cause.value, problem=problem.message)
        if problems:
            self._reported[key] = tuple(problems)
        if any(problem.terminal for problem in problems):
            self._metrics.terminal_error()

    def _count(self, change: int) -> None:
        self._active += change
        self._metrics.active(self._active)

    def _handler(self, api: Api) -> Callable[[Event[Any]], None]:
        def handle(event: Event[Any]) -> None:
            if self._matters(event, own=api == self._reconciler.api):
                for key in self._keys(api, event):
                    self.queue.add(key, priority=LOW if event.initial else EDGE)

        return handle

    def _keys(self, api: Api, event: Event[Any]) -> set[Key]:
        """Of both states: an owner that lost a child must hear of it too."""
        try:
            keys = set(self._reconciler.keys_of(api, event.item))
            if event.previous is not None:
                keys.update(self._reconciler.keys_of(api, event.previous))
        except Exception:  # noqa: BLE001  # nor the reflector that delivers to everybody
            self._metrics.panic()
            self._log.exception("event dropped by a bug", kind=api.kind, name=event.item.meta.name)
            return set()
        return keys

    def _matters(self, event: Event[Any], *, own: bool) -> bool:
        if event.change is not Change.MODIFIED or event.previous is None:
            return True
        item, previous = event.item, event.previous
        if replace(previous.meta, resource_version=item.meta.resource_version) != item.meta:
            return True
        if own and item.status_digest != previous.status_digest and self._status.shows_own_write(item):
            return False
        return not _reads_the_same(previous, item)

    def _on_state(self, _: State) -> None:
        """A kind came, went or became readable: that is news for every object, in no hurry."""
        for item in self._own.items():
            self.queue.add(Key(item.meta.namespace, item.meta.name), priority=LOW)


def spread_of(uid: str) -> float:
    """A factor from 0.9 to 1.1 that stays with the object, so that resyncs don't come in waves (rule Q10)."""
    digest = hashlib.blake2b(uid.encode(), digest_size=_HASH_BYTES).digest()
    part: float = int.from_bytes(digest) / (1 << 8 * _HASH_BYTES)
    return 1 - RESYNC_SPREAD + 2 * RESYNC_SPREAD * part


def _reads_the_same(one: Item[Any], other: Item[Any]) -> bool:
    return bool(
        one.view == other.view and one.digest == other.digest and one.status_digest == other.status_digest
    )
