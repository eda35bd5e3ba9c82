"""The first part of a WatchList stream, held back until it is complete (rules I5, I10, I11).

Initial events come in no order of resourceVersion, so none of them moves the resume point, and a stream that
breaks among them leaves nothing behind.
"""

import asyncio
import logging
from types import TracebackType
from typing import Generic, Self

from modelfleet.kube.objects import Item, Meta, V

OVERDUE_SECONDS = 10.0
"""client-go warns as often while the closing bookmark does not come (reflector.watchList)."""

_log = logging.getLogger(__name__)


class InitialEvents(Generic[V]):
    """Collects the set; used as a context manager it complains for as long as the set is not complete."""

    def __init__(self, what: str) -> None:
        """`what` names the type and namespace in warnings."""
        self._what = what
        self._items: dict[tuple[str, str], Item[V]] = {}
        self._waited = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        self._wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def items(self) -> tuple[Item[V], ...]:
        """What has come so far."""
        return tuple(self._items.values())

    def put(self, item: Item[V]) -> None:
        """Take an ADDED or MODIFIED event."""
        self._items[item.meta.namespace, item.meta.name] = item

    def drop(self, meta: Meta) -> None:
        """Take a DELETED event, or an object that can't be read."""
        self._items.pop((meta.namespace, meta.name), None)

    def close(self) -> None:
        """The set is complete, or will never be."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(OVERDUE_SECONDS, self._overdue)

    def _overdue(self) -> None:
        self._waited += OVERDUE_SECONDS
        _log.warning(
            "%s: the end of the initial events is overdue: %d objects after %.0f s; still waiting",
            self._what,
            len(self._items),
            self._waited,
        )
        self._wait()
