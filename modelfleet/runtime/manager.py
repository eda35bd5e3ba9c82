"""Starts the parts of a controller in order, keeps them together, and stops them in order.

Start: probes -> caches -> required kinds synced -> Lease -> caches caught up with the quorum -> workers.
Stop (SIGTERM, SIGINT): readiness false -> no new work -> running reconciles finish (grace) -> reflectors stop
-> Events are flushed -> Lease released -> probes close. The flush comes before the release, unlike in
controller-runtime: an Event series is a PATCH, and nothing of a former leader may be written after its
successor's first write.

Promises:
- no task without an owner: every part runs in one task group, and a part that fails or ends by itself ends
  the process non-zero with a log line;
- an API server that is away never ends the start; a reachable one that refuses a required kind does, after
  `sync_timeout`, with a sentence that names verb, kind and service account (rule I15);
- nothing is started for a leader once stopping has begun (controller-runtime#2719);
- a lost lease ends the process at once (cilium#42920); so does a second signal, and so does a stop that
  takes longer than it may.
"""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

import structlog

from modelfleet.kube.changes import State
from modelfleet.kube.store import Store
from modelfleet.runtime.endpoint import Endpoint, EndpointError
from modelfleet.runtime.leader import LeaderElector, LeaderLost
from modelfleet.runtime.process import Exit, exit_now, stop_signals

log = structlog.get_logger("modelfleet.runtime.manager")

POLL_SECONDS = 0.1
"""How often the start looks whether the caches are synced; short against a person's patience."""

FLUSH_SECONDS = 2.0
"""How long Events may hold up the release of the Lease."""

CANCEL_SECONDS = 5.0
"""How long a cancelled part may take to end before the process ends without it."""

STOP_MARGIN_SECONDS = 12.0
"""What a stop may take beyond the grace period: cancel, flush and release; with the default grace of 30 s it
fits the 45 s terminationGracePeriodSeconds of manifests/base."""


class StartError(Exception):
    """The start can't succeed without somebody's help; the message says whose."""


class PartFailed(Exception):  # noqa: N818  # names what happened; it has been logged where it did
    """A part that should run for ever raised or returned."""


class Caches(Protocol):
    """`modelfleet.kube.cache.Cache` as seen from here."""

    async def run(self) -> None:
        """Keep the stores up to date until cancelled."""

    async def catch_up(self) -> None:
        """Wait until every store has seen what a quorum read sees now."""


class Workload(Protocol):
    """What only the leader runs: a controller."""

    name: str

    async def run(self) -> None:
        """Work; return after `stop` when running reconciles have ended."""

    def stop(self) -> None:
        """Take no new work."""


class Events(Protocol):
    """`modelfleet.runtime.events.EventRecorder` as seen from here."""

    async def run(self) -> None:
        """Write what was recorded until cancelled."""

    async def flush(self) -> None:
        """Return when everything recorded so far is written."""


class Manager:
    """One controller process."""

    def __init__(
        self,
        *,
        caches: Caches,
        stores: Sequence[Store[Any]],
        workloads: Sequence[Workload],
        events: Events,
        elector: LeaderElector | None,
        background: Sequence[tuple[str, Callable[[], Coroutine[Any, Any, None]]]] = (),
        after_sync: Callable[[], None] = lambda: None,
        sync_timeout: float = 120.0,
        grace_period: float = 30.0,
        exit_process: Callable[[int], None] = exit_now,
    ) -> None:
        """`elector` None: lead without asking. `background` parts run from the start to the very end."""
        self._caches = caches
        self._stores = stores
        self._workloads = workloads
        self._events = events
        self._elector = elector
        self._background = background
        self._after_sync = after_sync
        self._sync_timeout = sync_timeout
        self._grace_period = grace_period
        self._exit_process = exit_process
        self._stopping = asyncio.Event()
        self._drained = True

    def stop(self) -> None:
        """Begin the ordered stop; returns at once."""
        if self._stopping.is_set():
            return
        log.info("stopping", grace_seconds=self._grace_period)
        self._stopping.set()
        self._exit_after(self._grace_period + STOP_MARGIN_SECONDS)

    def check_sync(self) -> str:
        """For /readyz: which required kinds are not synced, and why."""
        return "; ".join(f"{store.api} {store.problem or store.state.value}" for store in self._missing())

    def check_stop(self) -> str:
        """For /readyz: whether the process is on its way out."""
        return "shutting down" if self._stopping.is_set() else ""

    async def run(self, endpoints: Sequence[Endpoint] = ()) -> Exit:
        """Start everything, wait to be stopped, stop everything; the exit code.

        `endpoints` answer probes from before the first part starts until after the last has ended.
        """
        try:
            async with contextlib.AsyncExitStack() as stack:
                for endpoint in endpoints:
                    await endpoint.start()
                    stack.push_async_callback(endpoint.close)
                stack.enter_context(stop_signals(self.stop, self._exit_process))
                async with asyncio.TaskGroup() as group:
                    await self._live(group)
        except* LeaderLost:
            code = Exit.LEADER_LOST
        except* PartFailed:
            code = Exit.FAILURE
        except* Exception as errors:  # noqa: BLE001  # whatever it is, the process ends and says why
            _explain(errors)
            code = Exit.FAILURE
        else:
            code = Exit.CLEAN if self._drained else Exit.FAILURE
        log.info("exiting", code=int(code))
        return code

    async def _live(self, group: asyncio.TaskGroup) -> None:
        background = [self._start(group, name, run()) for name, run in self._background]
        events = self._start(group, "events", self._events.run())
        caches = self._start(group, "caches", self._caches.run())
        leader: asyncio.Task[None] | None = None
        if await self._reached(self._sync()):
            self._after_sync()
            if self._elector is not None:
                leader = self._start(group, "leader", self._elector.run())
            if await self._reached(self._lead()):
                workers = [self._start(group, load.name, load.run()) for load in self._workloads]
                log.info("working", controllers=[load.name for load in self._workloads])
                await self._stopping.wait()
                await self._drain(workers)
        await self._end(caches)
        await self._flush()
        await self._end(events)
        if self._elector is not None and leader is not None:
            await self._end(leader)
            # A reconcile that was cut off may still have a write on the wire: then the lease must expire.
            # Also asked of a candidate: the try that was just cancelled may have won.
            if self._drained:
                await self._elector.release()
        for task in background:
            await self._end(task)

    async def _sync(self) -> None:
        """Wait for the caches; how long depends on what is missing and why (rule I15).

        A required kind: for ever while nobody answers, `sync_timeout` while we are refused. An optional one
        that neither syncs nor turns out to be missing holds up the others for `sync_timeout` too.
        """
        refusal, delay = _Patience(self._sync_timeout), _Patience(self._sync_timeout)
        while True:
            missing = self._missing()
            late = [store for store in self._stores if store.state is State.SYNCING]
            if not missing and (not late or delay.over(waiting=True)):
                break
            if refusal.over(waiting=any(store.state is not State.SYNCING for store in missing)):
                raise StartError("; ".join(_refusal(store) for store in missing))
            await asyncio.sleep(POLL_SECONDS)
        log.info("caches synced", without=[str(store.api) for store in late])

    def _missing(self) -> list[Store[Any]]:
        return [s for s in self._stores if s.resource.required and s.state is not State.SYNCED]

    async def _lead(self) -> None:
        """Wait for the lease, then for caches that know all that any former leader did (facts 1.4)."""
        if self._elector is not None:
            await self._elector.acquired.wait()
        await self._caches.catch_up()

    async def _drain(self, workers: Sequence[asyncio.Task[None]]) -> None:
        for load in self._workloads:
            load.stop()
        if not workers:
            return
        _, late = await asyncio.wait(workers, timeout=self._grace_period)
        self._drained = not late
        if late:
            log.error(
                "reconciles cut off after the grace period", controllers=sorted(t.get_name() for t in late)
            )
            for task in late:
                await self._end(task)

    async def _flush(self) -> None:
        try:
            async with asyncio.timeout(FLUSH_SECONDS):
                await self._events.flush()
        except TimeoutError:
            log.warning("some Events were not written in time", seconds=FLUSH_SECONDS)

    async def _reached(self, step: Coroutine[Any, Any, None]) -> bool:
        """Await one step of the start; False, and the step cancelled, when told to stop first."""
        going = asyncio.create_task(step)
        halt = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({going, halt}, return_when=asyncio.FIRST_COMPLETED)
            if going.done():
                going.result()
            return going.done() and not self._stopping.is_set()
        finally:
            going.cancel()
            halt.cancel()
            await asyncio.gather(going, halt, return_exceptions=True)

    def _start(
        self, group: asyncio.TaskGroup, name: str, work: Coroutine[Any, Any, None]
    ) -> asyncio.Task[None]:
        return group.create_task(self._part(name, work), name=name)

    async def _part(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except LeaderLost as error:
            log.critical("leadership lost, exiting at once", error=str(error))
            self._exit_process(Exit.LEADER_LOST)
            raise
        except Exception as error:
            log.critical("a part of the controller failed", part=name, exc_info=True)
            self._exit_after(CANCEL_SECONDS)
            raise PartFailed(name) from error
        if not self._stopping.is_set():
            log.critical("a part of the controller ended by itself", part=name)
            self._exit_after(CANCEL_SECONDS)
            raise PartFailed(name)

    async def _end(self, task: asyncio.Task[None]) -> None:
        task.cancel()
        await asyncio.wait({task}, timeout=CANCEL_SECONDS)

    def _exit_after(self, seconds: float) -> None:
        """Bound what follows: a task that does not end when cancelled must not keep a zombie alive."""
        asyncio.get_running_loop().call_later(seconds, self._exit_process, Exit.FAILURE)


class _Patience:
    """Measures how long something has been the case without a break."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: float | None = None

    def over(self, *, waiting: bool) -> bool:
        """Whether `waiting` has been true for the whole time allowed."""
        now = asyncio.get_running_loop().time()
        self._since = None if not waiting else now if self._since is None else self._since
        return self._since is not None and now - self._since >= self._seconds


def _refusal(store: Store[Any]) -> str:
    return store.problem or f"{store.api} is {store.state.value}"


def _explain(errors: BaseExceptionGroup[Exception]) -> None:
    """One line for what an operator can mend, a traceback for what only we can."""
    for error in errors.exceptions:
        if isinstance(error, BaseExceptionGroup):
            _explain(error)
        elif isinstance(error, StartError | EndpointError):
            log.critical("the controller can't start", error=str(error))
        else:
            log.critical("the controller failed", exc_info=error)
