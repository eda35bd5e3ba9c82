"""The work queue: which key a worker takes next, and when (rules Q1-Q8).

Promises:
- a key is handed to one worker at a time; any number of adds meanwhile cause exactly one more run, which
  starts after the last of them: no lost edge, no piled-up runs (client-go's dirty/processing sets);
- a key waits in one place: it is due (`dirty`) or delayed, never both;
- higher priorities first, arrival order within one; ageing of low priorities is not done yet (rule Q7).

Decision on rule Q3: an immediate add absorbs the delayed one, whose timer does not survive. The run that
follows decides anew when to look again, and a second run at the old time would find nothing to do. For the
same reason a delayed request for a key that is already due is dropped.
"""

import asyncio
import heapq
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar

from modelfleet.runtime.backoff import Backoff

K = TypeVar("K", bound=Hashable)

EDGE = 0
"""Priority of something that just happened."""
LOW = -100
"""Priority of initial lists and resyncs; controller-runtime's handler.LowPriority (rule Q7)."""
HEARTBEAT_SECONDS = 10.0
"""Longest the one timer sleeps, as client-go's maxWait (rule Q2)."""
_SLACK = 64
"""Cancelled heap entries tolerated beyond one for each live one."""


class QueueShutDown(Exception):  # noqa: N818  # an end, not an error; named as asyncio.QueueShutDown is
    """`get` has nothing to give and never will again."""


class QueueMetrics(Protocol):
    """What a queue reports, bound to its name by whoever implements it (facts 1.9: client-go's names).

    workqueue_unfinished_work_seconds and workqueue_longest_running_processor_seconds are read at scrape
    time from `WorkQueue.unfinished_seconds` and `WorkQueue.longest_running_seconds`.
    """

    def added(self) -> None:
        """workqueue_adds_total: a key became due."""

    def depth(self, priority: int, keys: int) -> None:
        """workqueue_depth: keys waiting for a worker in one priority."""

    def started(self, waited: float) -> None:
        """workqueue_queue_duration_seconds: a worker took a key that had waited this long."""

    def finished(self, worked: float) -> None:
        """workqueue_work_duration_seconds: a worker gave a key back."""

    def retried(self) -> None:
        """workqueue_retries_total: a key was added after a failure."""


class NoQueueMetrics:
    """Reports to nobody."""

    def added(self) -> None:
        """Drop it."""

    def depth(self, priority: int, keys: int) -> None:
        """Drop it."""

    def started(self, waited: float) -> None:
        """Drop it."""

    def finished(self, worked: float) -> None:
        """Drop it."""

    def retried(self) -> None:
        """Drop it."""


class WorkQueue(Generic[K]):
    """Keys to reconcile. For one event loop; no method but `get` waits."""

    def __init__(self, *, backoff: Backoff[K] | None = None, metrics: QueueMetrics | None = None) -> None:
        self._backoff: Backoff[K] = Backoff() if backoff is None else backoff
        self._metrics: QueueMetrics = NoQueueMetrics() if metrics is None else metrics
        self._dirty: dict[K, int] = {}
        """Keys that must run, with their priority: those in `_ready` and those whose worker isn't done."""
        self._processing: dict[K, float] = {}
        """Keys a worker holds, since when."""
        self._ready: dict[int, OrderedDict[K, float]] = {}
        """By priority, in order of arrival: keys a worker may take, since when."""
        self._delays: _Delays[K] = _Delays(self._due)
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._closed = False

    def add(self, key: K, *, priority: int = EDGE) -> None:
        """The key must run now, or once more if a worker holds it."""
        if self._closed:
            return
        delayed = self._delays.cancel(key)
        self._due(key, priority if delayed is None else max(priority, delayed))

    def add_after(self, key: K, seconds: float, *, priority: int = EDGE) -> None:
        """The key must run in so many seconds; the earliest of several requests wins (rule Q2)."""
        if seconds <= 0:
            self.add(key, priority=priority)
        elif not self._closed and key not in self._dirty:
            self._delays.put(key, asyncio.get_running_loop().time() + seconds, priority)

    def add_rate_limited(self, key: K, *, floor: float = 0.0, priority: int = EDGE) -> None:
        """The key failed: run it again after its backoff, on top of `floor` seconds the server asked for."""
        self._metrics.retried()
        self.add_after(key, floor + self._backoff.failed(key), priority=priority)

    def forget(self, key: K) -> None:
        """The key succeeded or is gone: its next failure is its first (rule Q6)."""
        self._backoff.forget(key)

    def failures(self, key: K) -> int:
        """Failures in a row of a key."""
        return self._backoff.failures(key)

    async def get(self) -> K:
        """Take the next key; `done` must follow in a `finally` (rule Q1). Raises QueueShutDown.

        The key is taken in the same step that returns it, so that a cancelled waiter never holds one.
        """
        while not self._ready:
            if self._closed:
                raise QueueShutDown
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():
                    self._wake()  # it was woken for a key that another waiter must now take
                raise
            finally:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)
        return self._take()

    def done(self, key: K) -> None:
        """Give a key back. If it was added meanwhile it is ready again."""
        now = asyncio.get_running_loop().time()
        self._metrics.finished(now - self._processing.pop(key))
        if key in self._dirty:
            self._enqueue(key, self._dirty[key], now)

    def shut_down(self, *, drain: bool) -> None:
        """Take no more keys; with `drain` hand out those that are due, else drop them. Waiters wake (Q8)."""
        self._closed = True
        self._delays.clear()
        if not drain:
            for priority in self._ready:
                self._metrics.depth(priority, 0)
            self._ready.clear()
            self._dirty.clear()
        while self._waiters:
            self._wake()

    def unfinished_seconds(self) -> float:
        """Sum of the time the keys in work have been in work."""
        now = asyncio.get_running_loop().time()
        return sum(now - since for since in self._processing.values())

    def longest_running_seconds(self) -> float:
        """How long the key longest in work has been there; 0 when none is."""
        return max((asyncio.get_running_loop().time() - s for s in self._processing.values()), default=0.0)

    def __len__(self) -> int:
        """Keys a worker could take now."""
        return sum(map(len, self._ready.values()))

    def _due(self, key: K, priority: int) -> None:
        known = self._dirty.get(key)
        if known is not None and known >= priority:
            return
        self._dirty[key] = priority
        since = asyncio.get_running_loop().time()
        if known is None:
            self._metrics.added()
        elif key not in self._processing:
            since = self._leave(key, known)
        if key not in self._processing:
            self._enqueue(key, priority, since)

    def _enqueue(self, key: K, priority: int, since: float) -> None:
        keys = self._ready.setdefault(priority, OrderedDict())
        keys[key] = since
        self._metrics.depth(priority, len(keys))
        self._wake()

    def _leave(self, key: K, priority: int) -> float:
        keys = self._ready[priority]
        since = keys.pop(key)
        if not keys:
            del self._ready[priority]
        self._metrics.depth(priority, len(keys))
        return since

    def _take(self) -> K:
        priority = max(self._ready)
        key = next(iter(self._ready[priority]))
        since = self._leave(key, priority)
        del self._dirty[key]
        now = asyncio.get_running_loop().time()
        self._processing[key] = now
        self._metrics.started(now - since)
        return key

    def _wake(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return


class _Delays(Generic[K]):
    """Keys that become due later: one entry a key, one timer for all (rule Q2).

    The heap keeps cancelled entries until they surface or outnumber the live ones, so that it stays
    proportional to the keys although each run of a key replaces its entry.
    """

    def __init__(self, due: Callable[[K, int], None]) -> None:
        self._due = due
        self._entries: dict[K, tuple[float, int, int]] = {}
        """When, the number that makes it unique, and the priority."""
        self._heap: list[tuple[float, int, K]] = []
        self._counter = 0
        self._timer: asyncio.TimerHandle | None = None

    def put(self, key: K, when: float, priority: int) -> None:
        """Earliest time and highest priority of all requests win (rule Q7)."""
        known = self._entries.get(key)
        if known is not None:
            priority = max(priority, known[2])
            if known[0] <= when:
                self._entries[key] = (known[0], known[1], priority)
                return
        self._counter += 1
        self._entries[key] = (when, self._counter, priority)
        heapq.heappush(self._heap, (when, self._counter, key))
        self._compact()
        self._arm()

    def cancel(self, key: K) -> int | None:
        """Drop the entry of a key; its priority, None when it had none."""
        known = self._entries.pop(key, None)
        return None if known is None else known[2]

    def clear(self) -> None:
        """Drop everything."""
        self._entries.clear()
        self._heap.clear()
        self._arm()

    def _live(self, number: int, key: K) -> bool:
        known = self._entries.get(key)
        return known is not None and known[1] == number

    def _compact(self) -> None:
        if len(self._heap) > 2 * len(self._entries) + _SLACK:
            self._heap = [entry for entry in self._heap if self._live(entry[1], entry[2])]
            heapq.heapify(self._heap)

    def _arm(self) -> None:
        loop = asyncio.get_running_loop()
        when = min(self._heap[0][0], loop.time() + HEARTBEAT_SECONDS) if self._heap else None
        if self._timer is not None:
            if when is not None and self._timer.when() <= when:
                return
            self._timer.cancel()
        self._timer = None if when is None else loop.call_at(when, self._fire)

    def _fire(self) -> None:
        self._timer = None
        now = asyncio.get_running_loop().time()
        while self._heap and (self._heap[0][0] <= now or not self._live(*self._heap[0][1:])):
            _, number, key = heapq.heappop(self._heap)
            if self._live(number, key):
                _, _, priority = self._entries.pop(key)
                self._due(key, priority)
        self._arm()
