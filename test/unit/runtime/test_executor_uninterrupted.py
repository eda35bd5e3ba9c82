"""Facts 1.8: a write in flight outlives the cancellation of its caller."""

import asyncio

import pytest

from modelfleet.runtime.uninterrupted import uninterrupted

pytestmark = pytest.mark.looptime


async def write(log: list[str], error: Exception | None = None) -> str:
    """Takes ten seconds."""
    try:
        await asyncio.sleep(10)
    except asyncio.CancelledError:
        log.append("cancelled")
        raise
    log.append("written")
    if error is not None:
        raise error
    return "answer"


async def test_result_and_error_pass_through() -> None:
    """Without cancellation nothing is different."""
    assert "answer" == await uninterrupted(write([]))
    with pytest.raises(ValueError, match="refused"):
        await uninterrupted(write([], ValueError("refused")))


@pytest.mark.parametrize("error", [None, ValueError("refused")])
async def test_cancellation_waits_for_the_answer(error: Exception | None) -> None:
    """The caller is cancelled when the answer is there, good or bad; nothing is left unretrieved."""
    log: list[str] = []
    caller = asyncio.create_task(uninterrupted(write(log, error)))
    await asyncio.sleep(1)
    caller.cancel()
    await asyncio.wait([caller])

    assert (["written"], 10.0) == (log, asyncio.get_running_loop().time())
    assert caller.cancelled()


async def test_second_cancellation_ends_both() -> None:
    """Who insists is not kept waiting, and no task stays behind."""
    log: list[str] = []
    caller = asyncio.create_task(uninterrupted(write(log)))
    for _ in range(2):
        await asyncio.sleep(1)
        caller.cancel()
    await asyncio.wait([caller])
    await asyncio.sleep(0)

    assert (["cancelled"], 2.0) == (log, asyncio.get_running_loop().time())
    assert caller.cancelled()
