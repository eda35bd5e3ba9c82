"""The event loop's lag, measured and judged."""

import asyncio
import time

import pytest
from structlog.testing import capture_logs

from modelfleet.runtime.watchdog import LoopWatchdog


async def run_until(watchdog: LoopWatchdog, lags: list[float], count: int) -> None:
    """Run a watchdog until it has measured so often."""
    task = asyncio.create_task(watchdog.run())
    async with asyncio.timeout(20):
        while len(lags) < count:  # noqa: ASYNC110  # what is awaited is the measurement itself
            await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_sees_a_blocked_loop() -> None:
    """Whatever holds the loop shows as lag of the next timer, and fails the check beyond the limit."""
    lags: list[float] = []
    watchdog = LoopWatchdog(lags.append, limit=0.25)
    assert "" == watchdog.check()
    asyncio.get_running_loop().call_later(0.1, time.sleep, 1.0)  # blocks the loop: that is the point
    await run_until(watchdog, lags, 1)

    assert lags[0] >= 0.4
    assert "late (limit 0.25s)" in watchdog.check()


async def test_recovers() -> None:
    """One pause is forgiven as soon as a timer is on time again: liveness is about now."""
    lags: list[float] = []
    watchdog = LoopWatchdog(lags.append, limit=0.4)
    asyncio.get_running_loop().call_later(0.1, time.sleep, 1.0)
    await run_until(watchdog, lags, 2)

    assert lags[0] > 0.4 >= lags[1]
    assert "" == watchdog.check()


@pytest.mark.looptime
async def test_says_so_when_it_was_long() -> None:
    """On time nothing is logged."""
    lags: list[float] = []
    with capture_logs() as logs:
        await run_until(LoopWatchdog(lags.append), lags, 1)

    assert [] == logs
