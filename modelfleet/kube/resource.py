"""What to watch of one resource type, and what to keep of each object."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic

import msgspec

from modelfleet.kube.objects import Item, Meta, V, View, meta_of
from modelfleet.kube.projection import owned_digest
from modelfleet.plan import Api

Index = Callable[[Item[V]], Iterable[str]]
"""The values under which `Store.by_index` finds an item."""

UNREADABLE = (msgspec.MsgspecError, ValueError, TypeError, LookupError, AttributeError)
"""What decoding a shape that nobody foresaw raises: a CRD of another release, a field of another type."""


class UnreadableObjectError(Exception):
    """A stored object whose view could not be taken."""

    def __init__(self, api: Api, meta: Meta, error: Exception) -> None:
        self.meta = meta
        super().__init__(
            f"{api.kind} {meta.namespace}/{meta.name} at resourceVersion {meta.resource_version} "
            f"can't be read and is treated as absent: {type(error).__name__}: {error}"
        )


class Resource(msgspec.Struct, Generic[V], frozen=True, kw_only=True):
    """One resource type as a reconciler wants to see it."""

    api: Api
    view: View[V]
    """Takes from the wire object what planners read. If it raises, that one object is treated as absent."""
    label_selector: str = ""
    """Evaluated by the server: an object that loses the label arrives as deleted (rule I14)."""
    manager: str = ""
    """Field manager whose owned fields `Item.digest` covers; "" when we never apply this kind."""
    required: bool = True
    """Readiness waits for it; an optional type may be missing from the server."""
    namespaces: tuple[str, ...] | None = None
    """Namespaces to watch instead of the cache's own list; empty is all of them."""
    indexes: Mapping[str, Index[V]] = {}
    metadata_only: bool = False
    """Ask for PartialObjectMetadata: the view sees apiVersion, kind and metadata alone."""

    def decode(self, obj: Mapping[str, Any]) -> Item[V]:
        """Make the item of a wire object; nothing of it keeps the mapping alive.

        Raises:
            MalformedObjectError: See `meta_of`.
            UnreadableObjectError: The view can't make sense of it; others of the type are not affected.
        """
        meta = meta_of(obj)
        try:
            view = self.view(obj)
        except UNREADABLE as error:
            raise UnreadableObjectError(self.api, meta, error) from error
        return Item(
            meta,
            view,
            owned_digest(obj, self.manager) if self.manager else "",
            owned_digest(obj, self.manager, "status") if self.manager else "",
        )
