"""Leader election over one Lease: at any moment at most one process may write.

The promise rests on three clocks that never meet (facts 1.7):
- a candidate takes over only when the record has not changed for `leaseDurationSeconds` of its own time;
- the leader stops writing `renew_deadline` after it *sent* its last successful renewal, which is earlier than
  any moment a candidate can count from. `fence()` is that check; the client calls it as late as possible
  before each write, so that a process which was stopped (SIGSTOP, a suspended machine) and woken finds the
  fence down before it can send a byte;
- every request has a deadline of its own, so that a hanging API server can't stretch a term (k/k#124588).

On loss `run` raises `LeaderLost` and the process must end at once, without a drain that writes: a slow stop
after loss gave others two leaders and corrupt data (cilium#42920).
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Literal, Protocol

import structlog

from modelfleet.kube.client import Client
from modelfleet.kube.errors import FencedError, StatusError
from modelfleet.plan import Ref
from modelfleet.runtime.clock import Clock
from modelfleet.runtime.lease import RETRY_JITTER, LeaseRecord, LeaseTimes, Observation

log = structlog.get_logger("modelfleet.runtime.leader")

HEALTH_TOLERANCE_SECONDS = 20.0
"""controller-runtime's LeaderElectionHealthzAdaptor: past lease + this, a leader is stuck and not slow."""


class LeaderLost(Exception):  # noqa: N818  # the name says what happened; handlers end the process
    """This process led and no longer may."""


class LeaderMetrics(Protocol):
    """What the elector reports."""

    def leading(self, status: Literal[0, 1], /) -> None:
        """Set leader_election_master_status."""

    def slow_path(self) -> None:
        """Count a renewal that needed a read first."""


class SuspendAwareClock:
    """Elapsed time that goes on while the machine sleeps (CLOCK_BOOTTIME).

    CLOCK_MONOTONIC stops in a suspended virtual machine, where a former leader would wake up believing that
    no time had passed. Both go on while a process is stopped.
    """

    _clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

    def monotonic(self) -> float:
        """Seconds since boot, sleep included."""
        return time.clock_gettime(self._clock)

    def now(self) -> datetime:
        """Wall clock in UTC, for timestamps only."""
        return datetime.now(UTC)


@dataclass(slots=True)
class _Term:
    """What we know about the Lease, and how far our right to write reaches."""

    seen: Observation | None = None
    lease: Mapping[str, Any] | None = None
    """The Lease as last read or written, for the next optimistic PUT."""
    renewed_at: float | None = None
    """When the last successful renewal was sent; None: not leading."""


class LeaderElector:
    """One candidate. `run` acquires, then renews until cancelled or lost; `release` comes after."""

    def __init__(
        self,
        client: Client,
        *,
        lease: Ref,
        identity: str,
        manager: str,
        times: LeaseTimes | None = None,
        metrics: LeaderMetrics,
        clock: Clock | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """`manager` is the field manager of Lease writes; `jitter` gives numbers in [0, 1)."""
        self.acquired = asyncio.Event()
        self.identity = identity
        self._client = client
        self._ref = lease
        self._manager = manager
        self._times = times or LeaseTimes()
        self._metrics = metrics
        self._clock = clock or SuspendAwareClock()
        self._jitter = jitter
        self._term = _Term()
        self._complaint = ""
        self._answered_at: float | None = None
        metrics.leading(0)

    @property
    def is_leader(self) -> bool:
        """Whether this process may write now."""
        return self._remaining() > 0

    def fence(self) -> None:
        """Raise `FencedError` unless this process leads and its last renewal is younger than the deadline."""
        if self._remaining() <= 0:
            raise FencedError(
                f"{self.identity} does not lead: {self._ref} is not held, or not renewed in time"
            )

    def check(self) -> str:
        """For /healthz: why this process is stuck, or "". It never asks the API server (facts 1.9)."""
        if self._term.renewed_at is None:
            return ""
        age = self._clock.monotonic() - self._term.renewed_at
        if age <= self._times.duration + HEALTH_TOLERANCE_SECONDS:
            return ""
        return f"leads, but has not renewed {self._ref} for {age:.0f}s"

    def check_answers(self) -> str:
        """For /readyz: what has kept us from the Lease for longer than a term, leading or not; or ""."""
        if self._answered_at is None:
            return ""
        silence = self._clock.monotonic() - self._answered_at
        if silence <= self._times.renew_deadline:
            return ""
        return f"not able to read or write {self._ref} for {silence:.0f}s: {self._complaint or 'no answer'}"

    async def run(self) -> None:
        """Acquire, then renew for ever.

        Raises:
            LeaderLost: the lease was held and is no longer, or could not be renewed in time.
        """
        self._answered_at = self._clock.monotonic()
        await self._acquire()
        self._metrics.leading(1)
        self.acquired.set()
        log.info("lease acquired", lease=str(self._ref), identity=self.identity)
        try:
            await self._renew()
        except LeaderLost:
            self._term.renewed_at = None
            self._metrics.leading(0)
            raise

    async def release(self) -> None:
        """Let a successor in at once. Call it when `run` has ended and nothing here writes any more."""
        self._term.renewed_at = None
        self._metrics.leading(0)
        try:
            async with asyncio.timeout(self._times.renew_deadline):
                await self._release()
        except Exception as error:  # noqa: BLE001  # release is a courtesy: the lease expires without it
            log.warning("lease not released, it will expire", lease=str(self._ref), error=_text(error))

    def _remaining(self) -> float:
        if self._term.renewed_at is None:
            return 0.0
        return self._term.renewed_at + self._times.renew_deadline - self._clock.monotonic()

    async def _acquire(self) -> None:
        """Try until it works. The API server being away is no reason to end (architecture.md section 3)."""
        while True:
            if await self._attempt():
                return
            await asyncio.sleep(self._times.retry_period * (1 + RETRY_JITTER * self._jitter()))

    async def _renew(self) -> None:
        while (remaining := self._remaining()) > 0:
            await asyncio.sleep(min(self._times.retry_period, remaining))
            # Looked at again after the sleep: a process that was stopped wakes up here, and must not try.
            if self._remaining() <= 0:
                break
            await self._attempt()
            if self._term.seen and self._term.seen.record.holder != self.identity:
                raise LeaderLost(f"{self._ref} is now held by {self._term.seen.record.holder or 'nobody'}")
        raise LeaderLost(f"{self._ref} could not be renewed within {self._times.renew_deadline:g}s")

    async def _attempt(self) -> bool:
        """One try; any failure, of whatever class, is just a failed try."""
        try:
            held = await self._acquire_or_renew()
        except Exception as error:  # noqa: BLE001  # an elector that dies of an odd error leaves a zombie leader
            self._complain(_advice(error, self._ref))
            return False
        self._complaint = ""
        self._answered_at = self._clock.monotonic()
        return held

    async def _acquire_or_renew(self) -> bool:
        leads = self._term.renewed_at is not None
        if leads and self._term.lease is not None:
            try:
                await self._put(self._term.lease)
            except Exception as error:  # noqa: BLE001  # as in _attempt; the slow path tells what is wrong
                self._metrics.slow_path()
                log.debug("optimistic renewal failed", lease=str(self._ref), error=_text(error))
            else:
                return True
        try:
            lease = await self._bounded(self._client.get(self._ref))
        except StatusError as error:
            if error.code != HTTPStatus.NOT_FOUND:
                raise
            await self._create()
            return True
        seen = self._observe(lease)
        if seen.blocks(self.identity, self._clock.monotonic()):
            return False
        if leads and seen.record.holder != self.identity:
            return False  # another may have led since: never take it back within this process
        await self._put(lease)
        return True

    async def _bounded(self, request: Awaitable[dict[str, Any]]) -> dict[str, Any]:
        """Await one request for at most a retry period, and never past the end of our term."""
        leads = self._term.renewed_at is not None
        seconds = min(self._times.retry_period, self._remaining()) if leads else self._times.retry_period
        async with asyncio.timeout(max(0.0, seconds)):
            return await request

    async def _put(self, lease: Mapping[str, Any]) -> None:
        """Write our next record over `lease`, which the server accepts only at the same resourceVersion."""
        record = LeaseRecord.of(lease).held_by(self.identity, self._times.duration, self._clock.now())
        sent = self._clock.monotonic()
        self._hold(await self._update(lease, record), sent)

    async def _create(self) -> None:
        record = LeaseRecord.first(self.identity, self._times.duration, self._clock.now())
        sent = self._clock.monotonic()
        answer = await self._bounded(
            self._client.create(self._ref, {"spec": record.spec()}, manager=self._manager, fenced=False)
        )
        self._hold(answer, sent)

    async def _update(self, lease: Mapping[str, Any], record: LeaseRecord) -> dict[str, Any]:
        """PUT `lease` with `record` in it; fields of others (strategy, labels) stay."""
        body = {**lease, "spec": {**(lease.get("spec") or {}), **record.spec()}}
        return await self._bounded(self._client.update(self._ref, body, manager=self._manager, fenced=False))

    def _hold(self, lease: Mapping[str, Any], sent: float) -> None:
        """Our write was accepted: the term counts from when it was sent, never from its answer."""
        self._observe(lease)
        self._term.renewed_at = sent

    def _observe(self, lease: Mapping[str, Any]) -> Observation:
        record, now = LeaseRecord.of(lease), self._clock.monotonic()
        before = self._term.seen
        if before is None or before.record.holder != record.holder:
            log.info("leader seen", lease=str(self._ref), holder=record.holder or "nobody")
        self._term.seen = before.then(record, now) if before else Observation(record, now)
        self._term.lease = lease
        return self._term.seen

    async def _release(self) -> None:
        """Empty the record if it is ours; a conflict is worth another look."""
        while True:
            lease = await self._bounded(self._client.get(self._ref))
            record = LeaseRecord.of(lease)
            if record.holder != self.identity:
                return
            try:
                await self._update(lease, record.released(self._clock.now()))
            except StatusError as error:
                if error.code != HTTPStatus.CONFLICT:
                    raise
            else:
                log.info("lease released", lease=str(self._ref))
                return
            await asyncio.sleep(self._times.retry_period * self._jitter())

    def _complain(self, complaint: str) -> None:
        """Log each new reason once, not on each try."""
        if complaint != self._complaint:
            log.warning("lease not held", leads=self.is_leader, error=complaint)
        self._complaint = complaint


def _text(error: Exception) -> str:
    return str(error) or type(error).__name__


def _advice(error: Exception, lease: Ref) -> str:
    """The error with the next step where one is known."""
    if isinstance(error, StatusError) and error.code == HTTPStatus.NOT_FOUND:
        return f"{error.message}; create it with: kubectl create namespace {lease.namespace}"
    if isinstance(error, StatusError) and error.code == HTTPStatus.FORBIDDEN:
        return f"{error.message}; bind the role of manifests/base/rbac.yaml in namespace {lease.namespace}"
    if isinstance(error, TimeoutError):
        return f"no answer about {lease} in time"
    return _text(error)
