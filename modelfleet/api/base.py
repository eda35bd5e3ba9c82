"""How an API type is written down: one class per JSON object, one marker per bound.

The classes are the single source of the wire format: `modelfleet.api.schema` walks them to build the CRD,
`modelfleet.api.validate` checks objects against that schema, and the rest of the code reads typed, frozen
values. Attributes are snake_case, the wire is camelCase. The docstring under a field is what
`kubectl explain` prints.

Markers say what a schema needs and a Python type can't: `Text`, `Range`, `Items`, `Entries` bound a string,
a number, a list and a map (an unbounded one makes CEL rules exceed the API server's cost budget), `Format`
names a kind of value that `modelfleet.api.rules` has rules for.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict
from pydantic.alias_generators import to_camel

from modelfleet.api import quantity

INT32_MAX = 2**31 - 1
"""Kubernetes stores counts, ports and seconds as int32."""
EXACT_MAX = 2**53
"""Largest integer a JSON reader keeps exact; the API server can't check a larger bound (seen on 1.36.3)."""


@dataclass(frozen=True, slots=True)
class Text:
    """Length of a string in characters."""

    max: int
    min: int = 0


@dataclass(frozen=True, slots=True)
class Range:
    """Bounds of an integer, both inclusive."""

    min: int = 0
    max: int = INT32_MAX


@dataclass(frozen=True, slots=True)
class Items:
    """Length of a list. With `key` the list is a map by that field for server-side apply, else atomic."""

    max: int
    min: int = 0
    key: str = ""


@dataclass(frozen=True, slots=True)
class Entries:
    """Number of entries of a map from string to scalar."""

    max: int


@dataclass(frozen=True, slots=True)
class Format:
    """A named kind of value; the rules for it are in the rule table, under this value."""

    name: str


@dataclass(frozen=True, slots=True)
class IntegerOrText:
    """Marks a scalar that the wire writes as an integer or as a string (x-kubernetes-int-or-string)."""


class ApiObject(BaseModel):
    """One JSON object of our API. A default other than None, "" or empty is a default in the CRD too."""

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",  # what a newer CRD let in must still be readable; `validate` reports it
        alias_generator=to_camel,
        populate_by_name=True,
        use_attribute_docstrings=True,
        protected_namespaces=(),
    )

    def wire(self) -> dict[str, Any]:
        """The wire form without what says nothing (rule A2): nulls, empty lists and maps, Go's zeros."""
        fields = type(self).model_fields
        written: dict[str, Any] = {}
        for name, field in fields.items():
            value = getattr(self, name)
            if not says_nothing(value, field.default):
                written[field.alias or name] = to_wire(value)
        return written


class CoreObject(ApiObject):
    """An object of Kubernetes' own API, passed through unchanged.

    Its defaults are Go's zero values and mean "absent": they never enter the CRD, so that the API server's
    own defaults apply in the child. A field that is None by default is a pointer in Go: false and 0 count.
    """


class Open(CoreObject):
    """An object whose unknown fields are kept; in our CRDs a KEDA trigger and nothing else."""

    model_config = ConfigDict(extra="allow")

    def wire(self) -> dict[str, Any]:
        """Exactly what was written, zero values included: whoever receives it decides what they mean."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude_none=True)


def says_nothing(value: object, default: object) -> bool:
    """Whether the server would drop this value, or never sees it: null, empty, a non-pointer's zero value."""
    if value is None:
        return True
    if isinstance(value, (tuple, Mapping)):
        return not value
    return value == default and not value and default is not None


def to_wire(value: Any) -> Any:
    """A field's value as JSON has it."""
    if isinstance(value, ApiObject):
        return value.wire()
    if isinstance(value, tuple):
        return [to_wire(item) for item in value]
    if isinstance(value, Mapping):
        return {key: to_wire(item) for key, item in value.items()}
    return value


def _canonical(value: Any) -> str:
    return quantity.canonical(str(value))


def _canonical_milli(value: Any) -> str:
    return quantity.canonical(str(value), smallest=quantity.MILLI)


DATE_TIME = Format("date-time")
"""RFC 3339; the one format the server checks itself."""
KEY_MAX = 253
"""Length of a label, annotation or resource key. Kubernetes allows 317; nobody has been seen to need it."""
ANNOTATIONS_MAX = 48
"""With values of up to 4 KiB this stays below the 256 KiB an object's annotations may have in all."""

QUANTITY = Format("quantity")
DNS_LABEL = Format("DNS label")
DNS_SUBDOMAIN = Format("DNS subdomain")
QUALIFIED_NAME = Format("qualified name")
LABEL_VALUE = Format("label value")
LABELS = Format("labels")
ANNOTATIONS = Format("annotations")
CONFIG_KEY = Format("key of a ConfigMap or Secret")
PERCENT_OR_COUNT = Format("percent or count")
PORT = Format("port number or name")
RELATIVE_PATH = Format("relative path")

Quantity = Annotated[str, BeforeValidator(_canonical), IntegerOrText(), Text(max=64, min=1), QUANTITY]
"""A Kubernetes quantity; always in its canonical form once parsed, as the API server stores it."""
ResourceQuantity = Annotated[
    str, BeforeValidator(_canonical_milli), IntegerOrText(), Text(max=64, min=1), QUANTITY
]
"""A quantity of a container's resources: the API server rounds those up to a thousandth."""

DNSLabel = Annotated[str, Text(max=63, min=1), DNS_LABEL]
DNSSubdomain = Annotated[str, Text(max=253, min=1), DNS_SUBDOMAIN]
QualifiedName = Annotated[str, Text(max=KEY_MAX, min=1), QUALIFIED_NAME]
"""A label or resource key: a name of at most 63 characters with an optional DNS prefix and a slash."""
LabelValue = Annotated[str, Text(max=63), LABEL_VALUE]
Labels = Annotated[Mapping[str, Annotated[str, Text(max=63)]], Entries(max=64), LABELS]
Annotations = Annotated[
    Mapping[str, Annotated[str, Text(max=4096)]], Entries(max=ANNOTATIONS_MAX), ANNOTATIONS
]
ConfigKey = Annotated[str, Text(max=253, min=1), CONFIG_KEY]
RelativePath = Annotated[str, Text(max=512, min=1), RELATIVE_PATH]
Port = Annotated[int, Range(1, 65535)]
PortReference = Annotated[int | str, IntegerOrText(), Text(max=15, min=1), PORT]
Count = Annotated[int, Range()]
Generation = Annotated[int, Range(0, EXACT_MAX)]
PercentOrCount = Annotated[int | str, IntegerOrText(), Text(max=10, min=1), PERCENT_OR_COUNT]
FileMode = Annotated[int, Range(0, 0o777)]
