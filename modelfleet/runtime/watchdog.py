"""Measures how late the event loop runs, because one blocked loop blocks everything at once.

A full garbage collection over 50,000 cached objects stopped the loop for a second (facts 4.2); a renewal of
the Lease that comes late for such a reason looks like a slow API server. The lag is a metric, a log line when
it is long, and a /healthz check when it is so long that the lease is at stake.
"""

import asyncio
from collections.abc import Callable

import structlog

log = structlog.get_logger("modelfleet.runtime.watchdog")

INTERVAL_SECONDS = 0.5
"""Two measurements a second cost nothing and see every pause that matters to a 10 s renew deadline."""

WARN_SECONDS = 1.0
"""A pause people notice; the longest full collection measured (facts 4.2)."""

LIMIT_SECONDS = 5.0
"""Half the default renew deadline: a loop this late is about to lose its lease."""


class LoopWatchdog:
    """Run it as a task for as long as the process lives."""

    def __init__(self, observe: Callable[[float], None], *, limit: float = LIMIT_SECONDS) -> None:
        """`observe` gets each measured lag in seconds."""
        self._observe = observe
        self._limit = limit
        self._lag = 0.0
        self._due: float | None = None

    async def run(self) -> None:
        """Measure until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            self._due = loop.time() + INTERVAL_SECONDS
            await asyncio.sleep(INTERVAL_SECONDS)
            self._lag = max(0.0, loop.time() - self._due)
            self._observe(self._lag)
            if self._lag >= WARN_SECONDS:
                log.warning("event loop was blocked", seconds=round(self._lag, 3))

    def check(self) -> str:
        """For /healthz: "" unless the last measurement, or one that is overdue, is beyond the limit."""
        if self._due is None:
            return ""
        lag = max(self._lag, asyncio.get_running_loop().time() - self._due)
        return f"event loop is {lag:.1f}s late (limit {self._limit:g}s)" if lag > self._limit else ""
