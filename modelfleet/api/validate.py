"""Says about an object what the API server would say, with a remedy, and without a server.

The verdict comes from the generated schema and the rule table, the same that are in the CRD, and not from
pydantic's coercions. Unknown fields are errors, as with strict field validation. With the stored object
given, what it broke already and the edit leaves alone is forgiven (ratcheting, KEP-4008).
The contract test sends each of its cases to a real API server and compares.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import ValidationError

from modelfleet.api.crd import KINDS, Kind
from modelfleet.api.inference import InferenceService
from modelfleet.api.keywords import Finding, MapKey, Path, check, unknown_fields
from modelfleet.api.meta import API_VERSION
from modelfleet.api.schema import RULES_KEY, Schema, object_schema
from modelfleet.api.tree import Node, key_of, map_key, root, settle

_SUFFIX = "0" * 5
"""What the server appends to metadata.generateName, as far as its length goes."""


@dataclass(frozen=True, slots=True, order=True)
class Violation:
    """One thing wrong with an object."""

    path: str
    """Field in wire form, such as spec.container.env[0].name."""
    message: str
    """What is expected and what to write instead."""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class InvalidObject(ValueError):  # noqa: N818  # reads as what it is: an object, invalid
    """An object that the API server would refuse today; it may have been stored under older rules."""

    def __init__(self, violations: Sequence[Violation]) -> None:
        super().__init__("; ".join(map(str, violations)))
        self.violations = tuple(violations)


def validate(obj: Mapping[str, Any], old: Mapping[str, Any] | None = None) -> list[Violation]:
    """Everything wrong with an object of one of our kinds; `old` is what is stored under its name, if any."""
    try:
        schema = _schema_of(obj)
    except InvalidObject as unknown:
        return list(unknown.violations)
    return _violations(schema, _settled(schema, obj), None if old is None else _settled(schema, old))


def apply_defaults(obj: Mapping[str, Any]) -> dict[str, Any]:
    """The object as the server stores it: defaults filled in, nulls dropped.

    Raises:
        InvalidObject: it is none of our kinds.
    """
    settled: dict[str, Any] = settle(_schema_of(obj), dict(obj))
    return settled


def parse(obj: Mapping[str, Any]) -> InferenceService:
    """The typed object, with defaults.

    Raises:
        InvalidObject: it breaks the schema or a rule.
    """
    if violations := validate(obj):
        raise InvalidObject(violations)
    return read(obj)


def read(obj: Mapping[str, Any]) -> InferenceService:
    """The typed object, with defaults, of something that is stored already.

    Rules and bounds are not asked again: the API server checked what it stored, and an object that breaks a
    rule which came later must still obey an edit of `suspend` (api.md, ratcheting). Fields of a newer CRD are
    passed over.

    Raises:
        InvalidObject: a required field is missing or a value has the wrong type.
    """
    settled = _settled(_schema_of(obj), obj)
    try:
        return InferenceService.model_validate(settled | {"status": obj.get("status")})
    except ValidationError as error:
        found = validate(obj) or [Violation(written(each["loc"]), each["msg"]) for each in error.errors()]
        raise InvalidObject(found) from error


def written(path: Path) -> str:
    """A path as the API server writes it: spec.container.env[0].name, spec.pod.labels[app]."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, (int, MapKey)) else f".{part}" if text else str(part)
    return text


def _schema_of(obj: Mapping[str, Any]) -> Schema:
    kind = next((each for each in KINDS if each.name == obj.get("kind")), None)
    if kind is None or obj.get("apiVersion") != API_VERSION:
        known = ", ".join(sorted(each.name for each in KINDS))
        raise InvalidObject([Violation("kind", f"must be one of {known} with apiVersion: {API_VERSION}")])
    return _schema(kind)


@cache
def _schema(kind: Kind) -> Schema:
    return object_schema(kind.model)


def _settled(schema: Schema, obj: Mapping[str, Any]) -> dict[str, Any]:
    """As the server sees it when it validates; status is written through its own door and left out."""
    settled: dict[str, Any] = settle(schema, {key: value for key, value in obj.items() if key != "status"})
    metadata = settled.get("metadata")
    if (
        isinstance(metadata, dict)
        and isinstance(metadata.get("generateName"), str)
        and not metadata.get("name")
    ):
        metadata["name"] = metadata["generateName"] + _SUFFIX
    return settled


def _violations(schema: Schema, new: Any, old: Any) -> list[Violation]:
    nodes = list(root(schema, new, old).walk())
    shape = [finding for node in nodes for finding in _shape(node)]
    broken = {path[:length] for path, _ in shape for length in range(len(path) + 1)}
    rules = [finding for node in nodes if node.path not in broken for finding in _rules(node)]
    return sorted({Violation(written(path), message) for path, message in shape + rules})


def _shape(node: Node) -> Iterator[Finding]:
    """What the schema says about one value; unknown fields are never forgiven, as in the server."""
    for path, message in unknown_fields(node.schema, node.value):
        yield (*node.path, *path), message
    if node.unchanged:
        return
    for path, message in check(node.schema, node.value):
        yield (*node.path, *path), message
    if isinstance(node.value, list) and (key := map_key(node.schema)):
        yield from _duplicates(node, key)


def _duplicates(node: Node, key: str) -> Iterator[Finding]:
    seen = set()
    for index, item in enumerate(node.value):
        name = key_of(item, key)
        if name is not None and name in seen:
            yield (*node.path, index, key), f"is used twice, {name!r}: every {key} must be different"
        seen.add(name)


def _rules(node: Node) -> Iterator[Finding]:
    """What the rules say about one value whose shape, down to its leaves, is right."""
    for rule in node.schema.get(RULES_KEY, ()):
        if (rule.transition or not node.unchanged) and not rule.allows(node.value, node.old):
            yield (*node.path, *rule.field.split(".")) if rule.field else node.path, rule.message
