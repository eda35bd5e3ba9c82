"""The cache of one resource type: read by planners, written by its reflectors only.

Promises: readers see the old or the new set, never half a list (rule I10); an object missing from a relist
is removed and announced with its last known state (rule I9); nothing here does I/O.
`seen()` is the highest resourceVersion this cache has caught up with, bookmarks included; read-your-writes
waits on it (facts 1.4). One store may be fed by several reflectors, one per watched namespace.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Generic

import msgspec

from modelfleet.kube.objects import Item, V
from modelfleet.plan import Api


class State(StrEnum):
    """What the store's emptiness means."""

    SYNCING = "Syncing"
    """The first list has not come in: nothing may be concluded from an absent object."""
    SYNCED = "Synced"
    NOT_INSTALLED = "NotInstalled"
    """The server does not know the type (no CRD). The store is empty and that is the truth."""
    FORBIDDEN = "Forbidden"
    """List or watch is refused with 403; `problem` names verb, kind and service account."""


class Change(StrEnum):
    """What happened to an object."""

    ADDED = "Added"
    MODIFIED = "Modified"
    DELETED = "Deleted"


class Event(msgspec.Struct, Generic[V], frozen=True):
    """One change, delivered in order per object."""

    change: Change
    item: Item[V]
    """The new state; for DELETED the last known one."""
    previous: Item[V] | None = None
    initial: bool = False
    """Part of the first list (rule I16): lower priority, no news."""
    final_state_unknown: bool = False
    """DELETED found by a relist or by leaving a selector (rules I9, I14)."""


Handler = Callable[[Event[V]], None]
