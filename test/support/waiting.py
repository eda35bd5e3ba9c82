"""Waiting for a state of the world, the only way a test may let time pass.

A deadline is generous (it only ends a failing test) and what was last seen is part of the failure text.
"""

import asyncio
import inspect
import time
from collections.abc import Callable

POLL_SECONDS = 0.05
"""Short against every deadline, long against one request to a local API server (2-5 ms)."""

Predicate = Callable[[], object]
"""Looks at the world; its result, awaited where it is awaitable, counts by its truth."""


async def wait_for(
    predicate: Predicate, deadline: float = 20.0, describe: str | Callable[[], object] = ""
) -> None:
    """Poll until the predicate is true; an `AssertionError` raised by it counts as "not yet".

    Args:
        predicate: What should become true.
        deadline: Seconds until the test fails.
        describe: What was waited for, or a function (async too) that tells what the world looks like then.
    """
    end = time.monotonic() + deadline
    while True:
        try:
            seen = await _value(predicate())
        except AssertionError as error:
            seen, problem = False, f"\nlast seen: {error}"
        else:
            problem = f"\nlast seen: {seen!r}"
        if seen:
            return
        if time.monotonic() > end:
            break
        await asyncio.sleep(POLL_SECONDS)
    text = await _value(describe()) if callable(describe) else describe
    raise AssertionError(
        f"not within {deadline:g} s: {text or inspect.getsource(predicate).strip()}{problem}"
    )


async def holds_for(predicate: Predicate, seconds: float, describe: str = "") -> None:
    """Check that something stays true for a while; for promises of the form "nothing happens"."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        held = await _value(predicate())
        assert held, f"did not hold for {seconds:g} s: {describe or inspect.getsource(predicate).strip()}"
        await asyncio.sleep(POLL_SECONDS)


async def _value(result: object) -> object:
    return await result if inspect.isawaitable(result) else result
