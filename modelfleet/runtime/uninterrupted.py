"""A write that has left can't be taken back, so nobody walks away from it.

Cancellation (a reconcile's deadline, shutdown) takes effect after the answer, which the client's own request
deadline bounds; what was written is then known and noted, and no task is left without an owner (facts 1.8).
A second cancellation of the same task takes the write down with it.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def uninterrupted(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` to its end even if the caller is cancelled meanwhile, then let the cancellation through."""
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            task.cancel()
            raise
        if not task.cancelled():
            task.exception()  # retrieved: the caller is leaving and can't be told
        raise
