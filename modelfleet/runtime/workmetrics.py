"""Metrics of the machinery that does the work: queues, controllers and the Events they record.

Each group is made once; `of(name)` gives what one queue or controller reports to, with its labels at 0.
"""

from typing import Any, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from modelfleet.runtime.queue import EDGE, LOW, WorkQueue
from modelfleet.runtime.verdict import Result

QUEUE_BUCKETS = tuple(10.0**exponent for exponent in range(-8, 4))
"""client-go: ExponentialBuckets(10e-9, 10, 12)."""

RECONCILE_BUCKETS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    *(1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60),
)
"""controller-runtime, internal/controller/metrics."""

DROPS = ("QueueFull", "Refused", "GaveUp", "NotLeading")
"""Why an Event is not written; the values of `EventMetrics.event_dropped`."""


class Queues:
    """The work queues; `of` gives what one queue reports to."""

    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ("name", "controller")
        self.depth = Gauge(
            "workqueue_depth", "Keys waiting for a worker", (*labels, "priority"), registry=registry
        )
        self.adds = Counter("workqueue_adds", "Keys that became due", labels, registry=registry)
        self.waited = Histogram(
            "workqueue_queue_duration_seconds",
            "How long a key waited for a worker",
            labels,
            buckets=QUEUE_BUCKETS,
            registry=registry,
        )
        self.worked = Histogram(
            "workqueue_work_duration_seconds",
            "How long a worker held a key",
            labels,
            buckets=QUEUE_BUCKETS,
            registry=registry,
        )
        self.unfinished = Gauge(
            "workqueue_unfinished_work_seconds",
            "Sum of the time the keys in work have been in work",
            labels,
            registry=registry,
        )
        self.longest = Gauge(
            "workqueue_longest_running_processor_seconds",
            "Time the key longest in work has been in work",
            labels,
            registry=registry,
        )
        self.retries = Counter("workqueue_retries", "Keys added after a failure", labels, registry=registry)

    def of(self, controller: str) -> "QueueReport":
        """What the queue of one controller reports to."""
        return QueueReport(self, controller)


class QueueReport:
    """Implements `modelfleet.runtime.queue.QueueMetrics` for one queue, which is called as its controller."""

    def __init__(self, queues: Queues, controller: str) -> None:
        self._queues = queues
        self._labels = (controller, controller)
        for priority in (LOW, EDGE):
            self.depth(priority, 0)
        self._adds = queues.adds.labels(*self._labels)
        self._waited = queues.waited.labels(*self._labels)
        self._worked = queues.worked.labels(*self._labels)
        self._retries = queues.retries.labels(*self._labels)

    def follow(self, queue: WorkQueue[Any]) -> None:
        """Read the two durations that only the queue knows, whenever somebody scrapes."""
        self._queues.unfinished.labels(*self._labels).set_function(queue.unfinished_seconds)
        self._queues.longest.labels(*self._labels).set_function(queue.longest_running_seconds)

    def added(self) -> None:
        """A key became due."""
        self._adds.inc()

    def depth(self, priority: int, keys: int) -> None:
        """So many keys wait in one priority."""
        self._queues.depth.labels(*self._labels, str(priority)).set(keys)

    def started(self, waited: float) -> None:
        """A worker took a key that had waited this long."""
        self._waited.observe(waited)

    def finished(self, worked: float) -> None:
        """A worker gave a key back."""
        self._worked.observe(worked)

    def retried(self) -> None:
        """A key was added after a failure."""
        self._retries.inc()


class Controllers:
    """The reconcile loops; `of` gives what one controller reports to."""

    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ("controller",)
        self.total = Counter(
            "controller_runtime_reconcile", "Passes by result", (*labels, "result"), registry=registry
        )
        self.errors = Counter(
            "controller_runtime_reconcile_errors", "Passes that failed", labels, registry=registry
        )
        self.terminal = Counter(
            "controller_runtime_terminal_reconcile_errors",
            "Passes with a failure that only an edit can help",
            labels,
            registry=registry,
        )
        self.panics = Counter(
            "controller_runtime_reconcile_panics", "Passes that a bug ended", labels, registry=registry
        )
        self.timeouts = Counter(
            "controller_runtime_reconcile_timeouts",
            "Passes cut off at their deadline",
            labels,
            registry=registry,
        )
        self.seconds = Histogram(
            "controller_runtime_reconcile_time_seconds",
            "How long a pass took",
            labels,
            buckets=RECONCILE_BUCKETS,
            registry=registry,
        )
        self.limit = Gauge(
            "controller_runtime_max_concurrent_reconciles", "Workers", labels, registry=registry
        )
        self.active = Gauge("controller_runtime_active_workers", "Workers at work", labels, registry=registry)

    def of(self, controller: str) -> "ControllerReport":
        """What one controller reports to."""
        return ControllerReport(self, controller)


class ControllerReport:
    """Implements `modelfleet.runtime.controller.ControllerMetrics` for one controller."""

    def __init__(self, controllers: Controllers, controller: str) -> None:
        results: tuple[Result, ...] = get_args(Result)
        self._total = {result: controllers.total.labels(controller, result) for result in results}
        self._errors = controllers.errors.labels(controller)
        self._terminal = controllers.terminal.labels(controller)
        self._panics = controllers.panics.labels(controller)
        self._timeouts = controllers.timeouts.labels(controller)
        self._seconds = controllers.seconds.labels(controller)
        self._limit = controllers.limit.labels(controller)
        self._active = controllers.active.labels(controller)

    def workers(self, limit: int) -> None:
        """So many passes may run at a time."""
        self._limit.set(limit)

    def active(self, workers: int) -> None:
        """So many passes run now."""
        self._active.set(workers)

    def reconciled(self, result: Result, seconds: float) -> None:
        """A pass ended."""
        self._total[result].inc()
        self._seconds.observe(seconds)
        if result == "error":
            self._errors.inc()

    def terminal_error(self) -> None:
        """A pass failed in a way that only an edit can help."""
        self._terminal.inc()

    def panic(self) -> None:
        """A pure function of the reconciler raised."""
        self._panics.inc()

    def timeout(self) -> None:
        """A pass was cut off."""
        self._timeouts.inc()


class Events:
    """Implements `modelfleet.runtime.events.EventMetrics`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._written = Counter(
            "modelfleet_events_written", "Events and series updates written", registry=registry
        )
        dropped = Counter(
            "modelfleet_events_dropped", "Events not written, by reason", ("reason",), registry=registry
        )
        self._dropped = {reason: dropped.labels(reason) for reason in DROPS}

    def event_written(self) -> None:
        """An Event or its series is in the cluster."""
        self._written.inc()

    def event_dropped(self, why: str) -> None:
        """One is not."""
        self._dropped[why].inc()
