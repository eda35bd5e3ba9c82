"""What the stores keep of an object: identity, the view a planner asked for, and digests; never a body.

Objects are immutable once they are in a store (rule I13), hence frozen structs. They hold no reference
cycles, so they opt out of the garbage collector (`gc=False`): a full collection over 50,000 tracked bodies
stops the event loop for a second (facts 4.2).
"""

from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import msgspec

V = TypeVar("V")
View = Callable[[Mapping[str, Any]], V]
"""Decodes the wire object (managedFields included) into what a planner reads. Must not keep the mapping."""

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""kubectl's copy of the whole manifest: as large as the body we don't keep."""


class MalformedObjectError(ValueError):
    """The server sent something that is no object, or none we can tell apart from others."""


class Owner(msgspec.Struct, frozen=True, gc=False):
    """One owner reference."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False


class Meta(msgspec.Struct, frozen=True, gc=False):
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
    """Without kubectl's last-applied configuration."""
    owners: tuple[Owner, ...] = ()

    @property
    def controller(self) -> Owner | None:
        """The owner reference with controller=true, if any."""
        return next((owner for owner in self.owners if owner.controller), None)


class Item(msgspec.Struct, Generic[V], frozen=True, gc=False):
    """One cached object."""

    meta: Meta
    view: V
    digest: str = ""
    """Digest of the projection of what our field manager owns; "" when it owns nothing.

    Comparable with `Manifest.digest`: equal means an apply of that manifest would change nothing.
    """
    status_digest: str = ""
    """The same for the status subresource."""


def meta_of(obj: Mapping[str, Any]) -> Meta:
    """Decode the metadata of a wire object.

    Raises:
        MalformedObjectError: It has no metadata, name or uid, or a resourceVersion that is no number; without
            these it can be neither stored nor compared (KEP-5504: resourceVersions are integers).
    """
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        raise MalformedObjectError(f"{_what(obj)} has no metadata")
    try:
        name, uid, version = metadata["name"], metadata["uid"], metadata["resourceVersion"]
    except KeyError as missing:
        raise MalformedObjectError(f"{_what(obj)} has no metadata.{missing.args[0]}") from None
    if not (uid and name and isinstance(version, str) and version.isascii() and version.isdigit()):
        raise MalformedObjectError(f"{_what(obj)} has uid {uid!r} and resourceVersion {version!r}")
    return Meta(
        metadata.get("namespace", ""),
        name,
        uid,
        version,
        metadata.get("generation", 0),
        "deletionTimestamp" in metadata,
        metadata.get("creationTimestamp") or "",
        metadata.get("labels") or {},
        _kept(metadata.get("annotations") or {}),
        tuple(_owner(owner) for owner in metadata.get("ownerReferences") or ()),
    )


def _kept(annotations: Mapping[str, str]) -> Mapping[str, str]:
    if LAST_APPLIED not in annotations:
        return annotations
    return {key: value for key, value in annotations.items() if key != LAST_APPLIED}


def _owner(owner: Mapping[str, Any]) -> Owner:
    return Owner(
        owner["apiVersion"], owner["kind"], owner["name"], owner["uid"], bool(owner.get("controller", False))
    )


def _what(obj: Mapping[str, Any]) -> str:
    metadata = obj.get("metadata")
    where = metadata if isinstance(metadata, dict) else {}
    return f"{obj.get('kind', 'object')} {where.get('namespace', '')}/{where.get('name', '?')}"
