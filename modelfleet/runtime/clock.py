"""The two clocks a controller reads, behind one seam.

Durations and deadlines use `monotonic`, which never jumps; only what people read (transition times, event
times) uses `now`. Modules that also set timers take the event loop's own clock instead, because a timer
and the time it is compared with must come from one source.
"""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What time it is, for code that must not ask the machine itself."""

    def monotonic(self) -> float:
        """Seconds since some fixed moment; comparable within this process only."""

    def now(self) -> datetime:
        """The wall clock in UTC, with its time zone."""


class SystemClock:
    """The machine's clocks."""

    def monotonic(self) -> float:
        """CLOCK_MONOTONIC, the clock of asyncio's loop too."""
        return time.monotonic()

    def now(self) -> datetime:
        """The wall clock in UTC."""
        return datetime.now(UTC)


def rfc3339(moment: datetime) -> str:
    """A metav1.Time: UTC, whole seconds, `Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339_micro(moment: datetime) -> str:
    """A metav1.MicroTime: UTC, always six decimals (a time at a full second keeps its zeros), `Z`."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
