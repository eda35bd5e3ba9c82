"""The event loop's lag, measured and judged."""

import asyncio
import time

import pytest
from structlog.testing import capture_logs

from modelfleet.runtime.watchdog import LoopWatchdog


class Lags(list[float]):
    """What was measured, and a way to wait for so many measurements."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count
        self._enough = asyncio.Event()

    def observe(self, lag: float) -> None:
        """Keep one."""
        self.append(lag)
        if len(self) == self._count:
            self._enough.set()

    async def measured_by(self, watchdog: LoopWatchdog) -> None:
        """Run a watchdog until it has measured often enough."""
        task = asyncio.create_task(watchdog.run())
        await self._enough.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_sees_a_blocked_loop() -> None:
    """Whatever holds the loop shows as lag of the next timer, and fails the check beyond the limit."""
    lags = Lags(1)
    watchdog = LoopWatchdog(lags.observe, limit=0.25)
    assert "" == watchdog.check()
    asyncio.get_running_loop().call_later(0.1, time.sleep, 1.0)  # blocks the loop: that is the point
    await lags.measured_by(watchdog)

    assert lags[0] >= 0.4
    assert "late (limit 0.25s)" in watchdog.check()


async def test_recovers() -> None:
    """One pause is forgiven as soon as a timer is on time again: liveness is about now."""
    lags = Lags(2)
    watchdog = LoopWatchdog(lags.observe, limit=0.4)
    asyncio.get_running_loop().call_later(0.1, time.sleep, 1.0)
    await lags.measured_by(watchdog)

    assert lags[0] > 0.4 >= lags[1]
    assert "" == watchdog.check()


async def test_says_so_when_it_was_long() -> None:
    """A pause of a second is a line in the log, with its length."""
    lags = Lags(1)
    asyncio.get_running_loop().call_later(0.1, time.sleep, 1.6)
    with capture_logs() as logs:
        await lags.measured_by(LoopWatchdog(lags.observe))

    assert [("event loop was blocked", round(lags[0], 3))] == [
        (line["event"], line["seconds"]) for line in logs
    ]


@pytest.mark.looptime
async def test_is_quiet_on_time() -> None:
    """No pause, no lag, no line."""
    lags = Lags(20)
    with capture_logs() as logs:
        await lags.measured_by(LoopWatchdog(lags.observe))

    assert [0.0] * 20 == lags
    assert [] == logs
