"""metav1.ObjectMeta as far as our objects use it, with the checks the API server makes itself."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from modelfleet.api.base import LABELS, CoreObject, Entries, Generation, Items, Open, Text

_NAME_MAX = 253
_ENTRIES_MAX = 4096
"""Labels and annotations of one object; far more than anybody has."""
_ANNOTATION_MAX = 256 * 1024
"""kubectl keeps a whole manifest in one annotation; all of them together may have 256 KiB."""


class Opaque(Open):
    """Written and read by the API server and its controllers; none of our business."""


class ObjectMeta(CoreObject):
    """Identity of an object."""

    name: Annotated[str, Text(max=_NAME_MAX)] = ""
    """Name, unique in the namespace."""
    generate_name: Annotated[str, Text(max=_NAME_MAX)] = ""
    """Beginning of a name that the server completes."""
    namespace: Annotated[str, Text(max=63)] = ""
    """Namespace."""
    uid: Annotated[str, Text(max=64)] = ""
    """Set by the server; a new object with the same name has another one."""
    resource_version: Annotated[str, Text(max=64)] = ""
    """Set by the server."""
    generation: Generation = 0
    """Set by the server; counts changes of the spec."""
    creation_timestamp: Annotated[str, Text(max=64)] = ""
    """Set by the server."""
    deletion_timestamp: Annotated[str, Text(max=64)] = ""
    """Set by the server when the object is being deleted."""
    deletion_grace_period_seconds: Generation | None = None
    """Set by the server."""
    labels: Annotated[Mapping[str, Annotated[str, Text(max=63)]], Entries(max=_ENTRIES_MAX), LABELS] = Field(
        default_factory=dict
    )
    """Labels."""
    annotations: Annotated[
        Mapping[str, Annotated[str, Text(max=_ANNOTATION_MAX)]], Entries(max=_ENTRIES_MAX)
    ] = Field(default_factory=dict)
    """Annotations."""
    finalizers: Annotated[tuple[Annotated[str, Text(max=_NAME_MAX)], ...], Items(max=64)] = ()
    """What must happen before the object goes away."""
    owner_references: Annotated[tuple[Opaque, ...], Items(max=64)] = ()
    """Objects this one is deleted with."""
    managed_fields: Annotated[tuple[Opaque, ...], Items(max=1024)] = ()
    """Who applied which field."""
    self_link: Annotated[str, Text(max=1024)] = ""
    """No longer set by the server."""
