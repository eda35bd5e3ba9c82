"""OpenAPI v3 structural schemas from the API types, as a CustomResourceDefinition wants them.

Promises: every list, map, string and number is bounded (an unbounded field fails here, not as an obscure
cost error of the API server); a default on an object spells out its fields' defaults, since the API
server checks it against the rules as it stands; unknown fields are kept for `Open` types only; each rule of
the table stands on the object it is about, so that an edit elsewhere is never blocked by it (ratcheting,
KEP-4008).
"""

from collections.abc import Iterable, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from modelfleet.api.base import (
    DATE_TIME,
    INT32_MAX,
    ApiObject,
    CoreObject,
    Entries,
    Format,
    IntegerOrText,
    Items,
    Open,
    Range,
    Text,
)
from modelfleet.api.rules import RULES, Rule

Schema = dict[str, Any]
RULES_KEY = "x-rules"
"""Where a node keeps its `Rule`s until `published` writes them as x-kubernetes-validations."""
M = TypeVar("M")


class SchemaError(TypeError):
    """A type can't be written as a structural schema: our own mistake, found by the first test that runs."""


def object_schema(model: type[ApiObject]) -> Schema:
    """The schema of one object and of everything below it, with its rules under `RULES_KEY`."""
    properties: dict[str, Schema] = {}
    required: list[str] = []
    for name, field in model.model_fields.items():
        wire_name = field.alias or name
        properties[wire_name] = _property(model, wire_name, field)
        if field.is_required():
            required.append(wire_name)
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    if issubclass(model, Open):
        schema["x-kubernetes-preserve-unknown-fields"] = True
    return schema | _ruled(rule for rule in RULES if isinstance(rule.on, type) and issubclass(model, rule.on))


def _property(model: type[ApiObject], name: str, field: FieldInfo) -> Schema:
    where = f"{model.__name__}.{name}"
    if not field.description:
        raise SchemaError(f"{where} has no docstring: kubectl explain would have nothing to say")
    schema = {"description": " ".join(field.description.split())}
    schema |= value_schema(field.annotation, field.metadata, where)
    default = _default(model, field)
    return schema if default is None else schema | {"default": default}


def _default(model: type[ApiObject], field: FieldInfo) -> Any:
    """The default as the CRD has it, or None. See `CoreObject` for why those have none."""
    value = field.default
    if field.is_required() or field.default_factory or value is None or issubclass(model, CoreObject):
        return None  # only empty maps have a factory
    if isinstance(value, ApiObject):
        fields = type(value).model_fields.items()
        return {
            each.alias or name: d for name, each in fields if (d := _default(type(value), each)) is not None
        }
    if isinstance(value, tuple):
        return list(value) or None
    return None if value == "" else value


def value_schema(annotation: Any, markers: Sequence[Any], where: str) -> Schema:
    """The schema of a value of any type an API class may use."""
    annotation, markers = _flatten(annotation, tuple(markers))
    schema = _typed(annotation, markers, where)
    formats = [marker for marker in markers if isinstance(marker, Format)]
    if DATE_TIME in formats:
        schema["format"] = DATE_TIME.name
    return schema | _ruled(rule for rule in RULES if rule.on in formats)


def _flatten(annotation: Any, markers: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """Strip Optional and Annotated, collecting markers."""
    while True:
        origin = get_origin(annotation)
        if origin is Annotated:
            annotation, *inner = get_args(annotation)
            markers = (*inner, *markers)
        elif origin in (Union, UnionType) and NoneType in get_args(annotation):
            present = [arg for arg in get_args(annotation) if arg is not NoneType]
            annotation = Union[tuple(present)]  # noqa: UP007  # built from a runtime list
        else:
            return annotation, markers


def _typed(annotation: Any, markers: tuple[Any, ...], where: str) -> Schema:
    origin = get_origin(annotation)
    if isinstance(annotation, type) and issubclass(annotation, ApiObject):
        return object_schema(annotation)
    if origin is Literal:
        return {"type": "string", "enum": list(get_args(annotation))}
    if origin is tuple:
        return _list(annotation, _marker(markers, Items, where), where)
    if origin in (dict, Mapping):
        values = value_schema(get_args(annotation)[1], (), f"{where}[*]")
        entries = _marker(markers, Entries, where)
        return {"type": "object", "additionalProperties": values, "maxProperties": entries.max}
    return _scalar(annotation, markers, where)


def _scalar(annotation: Any, markers: tuple[Any, ...], where: str) -> Schema:
    if any(isinstance(marker, IntegerOrText) for marker in markers):
        return {
            "x-kubernetes-int-or-string": True,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "maxLength": _marker(markers, Text, where).max,
        }
    if annotation is bool:
        return {"type": "boolean"}
    if annotation is int:
        bounds = _marker(markers, Range, where)
        width = "int32" if bounds.max <= INT32_MAX else "int64"
        return {"type": "integer", "format": width, "minimum": bounds.min, "maximum": bounds.max}
    if annotation is str:
        return _string(_marker(markers, Text, where))
    raise SchemaError(f"{where}: {annotation!r} has no structural schema")


def _list(annotation: Any, items: Items, where: str) -> Schema:
    schema: Schema = {"type": "array", "items": value_schema(get_args(annotation)[0], (), f"{where}[]")}
    if items.min:
        schema["minItems"] = items.min
    schema["maxItems"] = items.max
    if items.key:
        return schema | {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [items.key]}
    return schema | {"x-kubernetes-list-type": "atomic"}


def _string(text: Text) -> Schema:
    schema: Schema = {"type": "string"}
    if text.min:
        schema["minLength"] = text.min
    schema["maxLength"] = text.max
    return schema


def _marker(markers: Iterable[Any], kind: type[M], where: str) -> M:
    found = [marker for marker in markers if isinstance(marker, kind)]
    if not found:
        raise SchemaError(
            f"{where} needs a {kind.__name__} bound: unbounded fields exceed the CEL cost budget"
        )
    return found[-1]


def _ruled(rules: Iterable[Rule]) -> Schema:
    found = tuple(rules)
    return {RULES_KEY: found} if found else {}


def published(node: Any) -> Any:
    """The schema as the API server takes it: rules as x-kubernetes-validations."""
    if isinstance(node, list):
        return [published(item) for item in node]
    if not isinstance(node, dict):
        return node
    written = {key: published(value) for key, value in node.items() if key != RULES_KEY}
    if RULES_KEY in node:
        written["x-kubernetes-validations"] = [rule.validation() for rule in node[RULES_KEY]]
    return written
