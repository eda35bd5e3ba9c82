"""What the stores keep of an object: identity, the view a planner asked for, and digests; never a body.

Objects are immutable once they are in a store (rule I13), hence frozen structs.
"""

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import msgspec

V = TypeVar("V")
View = Callable[[Mapping[str, Any]], V]
"""Decodes the wire object (managedFields included) into what a planner reads. Must not keep the mapping."""


class Owner(msgspec.Struct, frozen=True, gc=False):
    """One owner reference."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False


class Meta(msgspec.Struct, frozen=True):
    """The part of metadata every planner may read."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    generation: int = 0
    deleting: bool = False
    """deletionTimestamp is set."""
    created: str = ""
    """creationTimestamp as the server wrote it (RFC 3339, UTC)."""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    owners: tuple[Owner, ...] = ()

    @property
    def controller(self) -> Owner | None:
        """The owner reference with controller=true, if any."""
        return next((owner for owner in self.owners if owner.controller), None)


class Item(msgspec.Struct, Generic[V], frozen=True):
    """One cached object."""

    meta: Meta
    view: V
    digest: str = ""
    """Digest of the projection of what our field manager owns; "" when it owns nothing.

    Comparable with `Manifest.digest`: equal means an apply of that manifest would change nothing.
    """
    status_digest: str = ""
    """The same for the status subresource."""
