"""People who never stop editing: a background task that changes the images of some objects, in turn."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from test.support.kinds import INFERENCE_SERVICE
from test.support.world import World

EDITS_PER_SECOND = 20.0
"""Each edit costs the controller about three writes; one API server here takes some hundred a second."""


@dataclass
class Load:
    """What has been asked for so far."""

    images: dict[str, str] = field(default_factory=dict)
    """The last image each object was given."""
    edits: int = 0


@contextlib.asynccontextmanager
async def editing(api: World, namespace: str, names: Sequence[str]) -> AsyncIterator[Load]:
    """Edit until the block ends; afterwards the result says what the world must look like."""
    load, enough = Load(), asyncio.Event()

    async def edit() -> None:
        for number, name in enumerate(itertools.cycle(names)):
            if enough.is_set():  # never in the middle of an edit, whose outcome nobody would know
                return
            image = f"example.com/model:{number}"
            await api.merge(INFERENCE_SERVICE, namespace, name, {"spec": {"container": {"image": image}}})
            load.images[name], load.edits = image, number + 1
            await asyncio.sleep(1 / EDITS_PER_SECOND)

    task = asyncio.create_task(edit())
    try:
        yield load
    finally:
        enough.set()
        await task
