"""Kubernetes Events (events.k8s.io/v1) that never hold up a reconcile (facts 1.9).

`record` only puts an occurrence in a bounded queue and drops it when that is full; one task writes. Repeats
of the same thing within 6 minutes are one Event with a series: written at the second occurrence, then every
30 minutes while it goes on and once when it ends. An Event that somebody deleted meanwhile is created anew.
"""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Any, Protocol

import structlog
from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, wait_random

from modelfleet.kube.client import Client
from modelfleet.kube.errors import FencedError, KubeError, StatusError
from modelfleet.plan import Api, Ref
from modelfleet.runtime.clock import Clock, rfc3339_micro
from modelfleet.runtime.conditions import EventType

log = structlog.get_logger("modelfleet.runtime.events")

EVENT = Api("events.k8s.io", "v1", "Event", "events")

QUEUE_SIZE = 1000
"""Occurrences waiting to be written; client-go's maxQueuedEvents."""
FINISH_SECONDS = 360.0
"""A series ends when nothing was added to it for so long; client-go's finishTime."""
REFRESH_SECONDS = 1800.0
"""How often a series that goes on is written; client-go's refreshTime."""
TRIES = 12
RETRY_SECONDS = 10.0
"""client-go's maxTriesPerEvent and sleepDuration; the pause is jittered."""
NOTE_BYTES = 1024
REASON_CHARACTERS = 128
"""Limits of events.k8s.io/v1 validation; the latter holds for reason and action."""
_NAME_CHARACTERS = 253
_DEFAULT_NAMESPACE = "default"
"""Where Events about cluster-scoped objects go, by validation."""

_patiently = AsyncRetrying(
    stop=stop_after_attempt(TRIES),
    wait=wait_random(RETRY_SECONDS / 2, RETRY_SECONDS),
    retry=retry_if_exception(lambda error: isinstance(error, KubeError) and error.retriable),
    reraise=True,
)


class EventMetrics(Protocol):
    """What the recorder reports."""

    def event_written(self) -> None:
        """An Event or its series is in the cluster."""

    def event_dropped(self, why: str) -> None:
        """One is not: QueueFull, Refused, GaveUp or NotLeading."""


class NoEventMetrics:
    """Reports to nobody."""

    def event_written(self) -> None:
        """Drop it."""

    def event_dropped(self, why: str) -> None:
        """Drop it."""


@dataclass(frozen=True, slots=True)
class _Occurrence:
    """What makes two Events the same: everything but the note and the time."""

    regarding: Ref
    uid: str
    event_type: EventType
    reason: str
    action: str
    note: str = field(compare=False)
    time: datetime = field(compare=False)


@dataclass(slots=True)
class _Series:
    """One Event of ours, and how much of its series the cluster knows."""

    first: _Occurrence
    ref: Ref
    last: datetime
    last_at: float
    """Loop time of the last occurrence."""
    written_at: float
    """Loop time of the last write."""
    count: int = 1
    written: int = 1
    """The count in the cluster."""


class EventRecorder:
    """Records Events of one controller process."""

    def __init__(
        self,
        client: Client,
        *,
        controller: str,
        instance: str,
        manager: str,
        clock: Clock,
        metrics: EventMetrics | None = None,
    ) -> None:
        """`controller` is the reportingController, a qualified name; `instance` tells processes apart."""
        self._client = client
        self._controller = controller
        self._instance = instance[:REASON_CHARACTERS]
        self._manager = manager
        self._clock = clock
        self._metrics: EventMetrics = NoEventMetrics() if metrics is None else metrics
        self._queue: asyncio.Queue[_Occurrence] = asyncio.Queue(QUEUE_SIZE)
        self._series: dict[_Occurrence, _Series] = {}

    def record(
        self, regarding: Ref, uid: str, *, event_type: EventType, reason: str, action: str, note: str
    ) -> None:
        """Something happened to an object. Returns at once; never raises."""
        occurrence = _Occurrence(
            regarding,
            uid,
            event_type,
            reason[:REASON_CHARACTERS],
            action[:REASON_CHARACTERS],
            note.encode()[:NOTE_BYTES].decode(errors="ignore"),
            self._clock.now(),
        )
        try:
            self._queue.put_nowait(occurrence)
        except asyncio.QueueFull:
            self._metrics.event_dropped("QueueFull")

    async def run(self) -> None:
        """Write what is recorded, until cancelled."""
        loop = asyncio.get_running_loop()
        look = loop.time() + FINISH_SECONDS
        while True:
            try:
                async with asyncio.timeout_at(look):
                    occurrence = await self._queue.get()
            except TimeoutError:
                await self._look_at_series()
                look = loop.time() + FINISH_SECONDS
                continue
            try:
                await self._take(occurrence)
            finally:
                self._queue.task_done()

    async def flush(self) -> None:
        """Return when everything recorded so far is written or given up; `run` must be running."""
        await self._queue.join()

    async def _take(self, occurrence: _Occurrence) -> None:
        now = asyncio.get_running_loop().time()
        known = self._series.get(occurrence)
        if known is not None and now - known.last_at < FINISH_SECONDS:
            known.count += 1
            known.last, known.last_at = occurrence.time, now
            if known.written == 1:
                await self._write(known)
            return
        series = _Series(occurrence, self._name(occurrence), occurrence.time, now, now, written=0)
        self._series[occurrence] = series
        await self._write(series)

    async def _look_at_series(self) -> None:
        """End series that stopped, refresh those that go on."""
        now = asyncio.get_running_loop().time()
        for occurrence, series in list(self._series.items()):
            over = now - series.last_at >= FINISH_SECONDS
            if over:
                del self._series[occurrence]
            if series.count > series.written and (over or now - series.written_at >= REFRESH_SECONDS):
                await self._write(series)

    async def _write(self, series: _Series) -> None:
        try:
            await _patiently(self._send, series)
        except FencedError:
            self._drop(series, "NotLeading")
        except KubeError as error:
            if error.retriable:
                return self._drop(series, "GaveUp")
            log.info("event refused", ref=str(series.ref), error=str(error))
            self._drop(series, "Refused")
        else:
            series.written = series.count
            series.written_at = asyncio.get_running_loop().time()
            self._metrics.event_written()

    def _drop(self, series: _Series, why: str) -> None:
        """The next occurrence starts over, with an Event of its own."""
        self._series.pop(series.first, None)
        self._metrics.event_dropped(why)

    async def _send(self, series: _Series) -> None:
        if series.written:
            try:
                await self._client.patch(series.ref, {"series": _wire_series(series)}, manager=self._manager)
            except StatusError as error:
                if error.code != HTTPStatus.NOT_FOUND:
                    raise
            else:
                return
        try:
            await self._client.create(series.ref, self._body(series), manager=self._manager)
        except StatusError as error:
            if error.code != HTTPStatus.CONFLICT:  # the name is ours alone: an earlier try got through
                raise

    def _name(self, occurrence: _Occurrence) -> Ref:
        """client-go's form: the object's name and the time in nanoseconds, in hex."""
        suffix = f".{int(occurrence.time.timestamp() * 1_000_000) * 1000:x}"
        name = occurrence.regarding.name[: _NAME_CHARACTERS - len(suffix)] + suffix
        return Ref(EVENT, occurrence.regarding.namespace or _DEFAULT_NAMESPACE, name)

    def _body(self, series: _Series) -> dict[str, Any]:
        first = series.first
        body = {
            "eventTime": rfc3339_micro(first.time),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "type": first.event_type,
            "reason": first.reason,
            "action": first.action,
            "note": first.note,
            "regarding": {
                "apiVersion": first.regarding.api.api_version,
                "kind": first.regarding.api.kind,
                "namespace": first.regarding.namespace,
                "name": first.regarding.name,
                "uid": first.uid,
            },
        }
        return body | ({"series": _wire_series(series)} if series.count > 1 else {})


def _wire_series(series: _Series) -> dict[str, Any]:
    return {"count": series.count, "lastObservedTime": rfc3339_micro(series.last)}
