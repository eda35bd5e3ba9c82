"""metav1.ObjectMeta as far as our objects use it, with the checks the API server makes itself."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from modelfleet.api.base import Entries, Generation, Labels, Open, Text

_NAME_MAX = 253
_ANNOTATION_MAX = 256 * 1024
"""kubectl keeps a whole manifest in one annotation; all of them together may have 256 KiB."""


class ObjectMeta(Open):
    """Identity of an object. Fields the server fills in are kept but not typed."""

    name: Annotated[str, Text(max=_NAME_MAX)] = ""
    """Name, unique in the namespace."""
    namespace: Annotated[str, Text(max=63)] = ""
    """Namespace."""
    uid: Annotated[str, Text(max=64)] = ""
    """Set by the server; a new object with the same name has another one."""
    resource_version: Annotated[str, Text(max=64)] = ""
    """Set by the server."""
    generation: Generation = 0
    """Set by the server; counts changes of the spec."""
    labels: Labels = Field(default_factory=dict)
    """Labels."""
    annotations: Annotated[Mapping[str, Annotated[str, Text(max=_ANNOTATION_MAX)]], Entries(max=1024)] = (
        Field(default_factory=dict)
    )
    """Annotations."""
