"""The Lease record: what electors write for each other to read, and when it counts as expired.

Rule (facts 1.7): expiry is judged by the reader's own elapsed time since the record last *changed*, with
`leaseDurationSeconds` taken from the record. `renewTime` is for people: no elector compares it with a clock,
so clocks that disagree, or step, can't make two leaders (kubernetes_asyncio wrote local time as UTC).
"""

import socket
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from modelfleet.plan import Api
from modelfleet.runtime.clock import rfc3339_micro

LEASE = Api("coordination.k8s.io", "v1", "Lease", "leases")

RELEASED_DURATION_SECONDS = 1
"""client-go's value on release: the API server refuses 0."""

RETRY_JITTER = 1.2
"""client-go JitterFactor: candidates wait 1 to 2.2 retry periods, so that they don't march in step."""


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """The three durations of an election, in seconds; defaults are client-go's and kube-controller-manager's.

    `duration` is how long others wait after the last change before they take over; `renew_deadline` how long
    a leader goes on without a successful renewal; `retry_period` the pause between tries.
    """

    duration: int = 15
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        if self.duration < 1:
            raise ValueError(f"lease duration must be at least 1 second, not {self.duration}")
        if self.retry_period <= 0:
            raise ValueError(f"retry period must be positive, not {self.retry_period:g}")
        if self.duration <= self.renew_deadline:
            raise ValueError(
                f"lease duration ({self.duration:g}s) must be longer than the renew deadline "
                f"({self.renew_deadline:g}s), or two processes lead at once"
            )
        if self.renew_deadline <= RETRY_JITTER * self.retry_period:
            raise ValueError(
                f"renew deadline ({self.renew_deadline:g}s) must be longer than {RETRY_JITTER} times "
                f"the retry period ({self.retry_period:g}s), or one failed try loses the lease"
            )


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """`spec` of a Lease as electors use it."""

    holder: str
    """Identity of the leader; "" when released."""
    duration: int
    acquired: str
    """acquireTime as written, or ""."""
    renewed: str
    """renewTime as written, or ""."""
    transitions: int

    @classmethod
    def of(cls, lease: Mapping[str, Any]) -> "LeaseRecord":
        """Read a wire Lease; absent fields read as zero values, as in client-go."""
        spec = lease.get("spec") or {}
        return cls(
            holder=spec.get("holderIdentity") or "",
            duration=spec.get("leaseDurationSeconds") or 0,
            acquired=spec.get("acquireTime") or "",
            renewed=spec.get("renewTime") or "",
            transitions=spec.get("leaseTransitions") or 0,
        )

    @classmethod
    def first(cls, identity: str, duration: int, now: datetime) -> "LeaseRecord":
        """The record of whoever creates the Lease."""
        moment = rfc3339_micro(now)
        return cls(identity, duration, moment, moment, transitions=0)

    def spec(self) -> dict[str, Any]:
        """Wire form."""
        return {
            "holderIdentity": self.holder,
            "leaseDurationSeconds": self.duration,
            "acquireTime": self.acquired,
            "renewTime": self.renewed,
            "leaseTransitions": self.transitions,
        }

    def held_by(self, identity: str, duration: int, now: datetime) -> "LeaseRecord":
        """The record that follows this one when `identity` acquires or renews."""
        moment = rfc3339_micro(now)
        if self.holder == identity:
            return LeaseRecord(identity, duration, self.acquired or moment, moment, self.transitions)
        return LeaseRecord(identity, duration, moment, moment, self.transitions + 1)

    def released(self, now: datetime) -> "LeaseRecord":
        """The record that lets a successor in at once, with the count of transitions kept."""
        moment = rfc3339_micro(now)
        return LeaseRecord("", RELEASED_DURATION_SECONDS, moment, moment, self.transitions)


@dataclass(frozen=True, slots=True)
class Observation:
    """A record together with the local moment at which we first saw it say this."""

    record: LeaseRecord
    since: float

    def then(self, record: LeaseRecord, now: float) -> "Observation":
        """Follow with what was read at `now`: an unchanged record keeps its moment."""
        return self if record == self.record else Observation(record, now)

    def blocks(self, identity: str, now: float) -> bool:
        """Whether someone other than `identity` may still be leading at `now`."""
        held_by_other = self.record.holder not in ("", identity)
        return held_by_other and now < self.since + self.record.duration


def new_identity() -> str:
    """`hostname_uuid`: readable, and unlike any former process of the same pod."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"
