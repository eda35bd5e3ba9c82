"""The news a store gives: what happened to an object, and what the store's emptiness means."""

from collections.abc import Callable
from enum import StrEnum
from typing import Generic

import msgspec

from modelfleet.kube.objects import Item, V


class State(StrEnum):
    """What the store's emptiness means."""

    SYNCING = "Syncing"
    """The first list has not come in: nothing may be concluded from an absent object."""
    SYNCED = "Synced"
    NOT_INSTALLED = "NotInstalled"
    """The server does not know the type (no CRD). The store is empty and that is the truth."""
    FORBIDDEN = "Forbidden"
    """List or watch is refused with 403; `problem` names verb, kind and service account.

    What was known before stays readable, but it may be outdated.
    """


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
    """DELETED as found by a relist, or as told to a watch with a selector (rules I9, I14).

    The object may still exist, or have been another one meanwhile: whoever acts on it asks the server.
    """


Handler = Callable[[Event[V]], None]
"""Takes one change, synchronously and quickly; one that raises ends the process, as any bug of ours does."""
