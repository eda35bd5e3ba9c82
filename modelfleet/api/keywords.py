"""The keywords of our schemas, each with its check and its words.

A structural schema as `modelfleet.api.schema` writes it uses a dozen keywords; a generic validator would
check them in ten times the time and speak about schemas instead of fields. The unit tests compare the
verdicts with those of the jsonschema library, the contract tests with those of an API server.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from modelfleet.api.schema import Schema


class MapKey(str):
    """A key of a map, as opposed to a field of an object: written in brackets."""

    __slots__ = ()


Path = tuple[str | int, ...]
Finding = tuple[Path, str]
"""Where, below the checked value, and what to write instead."""

_ABSENT = {
    "hostPath": "pods must not reach into a node's file system: use a persistentVolumeClaim",
    "privileged": "pods must not have the node's privileges: add single capabilities instead",
    "replicas": "use spec.scaling.minReplicas",
    "ports": "use spec.container.port",
    "containers": "there is one container: use spec.container",
    "initContainers": "there is one container: use spec.container",
    "loadBalancer": "use spec.route with a Gateway of the platform",
}
"""Fields people look for -> what there is instead."""
_LISTED = 12
"""Fields named in one message."""
_TYPES = {
    "string": "a string",
    "integer": "a whole number",
    "boolean": "true or false",
    "array": "a list",
    "object": "an object",
}


def check(schema: Schema, value: Any) -> Iterator[Finding]:
    """What is wrong with this value itself, unknown fields apart; its children are checked on their own."""
    wanted = _wanted(schema)
    if not any(_is(each, value) for each in wanted):
        yield (), _wrong_type(wanted, value)
    elif "enum" in schema and value not in schema["enum"]:
        yield (), f"must be one of {', '.join(each for each in schema['enum'] if each)}, not {_named(value)}"
    elif isinstance(value, dict):
        yield from _object(schema, value)
    elif isinstance(value, (str, list)):
        units, names = (
            (("character", "characters"), ("minLength", "maxLength"))
            if isinstance(value, str)
            else (("item", "items"), ("minItems", "maxItems"))
        )
        yield from _size(schema, names, len(value), units)
        if schema.get("format") == "date-time" and not _is_time(value):
            yield (), "must be a time such as 2026-01-31T12:00:00Z"
    elif not isinstance(value, bool):
        yield from _limits(schema, value)


def _wanted(schema: Schema) -> tuple[str, ...]:
    return ("integer", "string") if schema.get("x-kubernetes-int-or-string") else (schema["type"],)


def _is(wanted: str, value: Any) -> bool:
    match wanted:
        case "string":
            return isinstance(value, str)
        case "integer":
            return (isinstance(value, int) and not isinstance(value, bool)) or (
                isinstance(value, float) and value.is_integer()
            )
        case "boolean":
            return isinstance(value, bool)
        case "array":
            return isinstance(value, list)
        case _:
            return isinstance(value, dict)


def _wrong_type(wanted: tuple[str, ...], value: Any) -> str:
    message = f"must be {' or '.join(_TYPES[each] for each in wanted)}, not {_named(value)}"
    if "string" in wanted and isinstance(value, (bool, int, float)):
        written = str(value).lower() if isinstance(value, bool) else value
        return f'{message}: put it in quotes, "{written}"'
    if wanted[0] in ("integer", "boolean") and isinstance(value, str):
        return f"{message}: write it without quotes"
    return message


def _named(value: Any) -> str:
    match value:
        case bool():
            return f"the boolean {str(value).lower()}"
        case int() | float():
            return f"the number {value}"
        case str():
            return f"the string {value[:40]!r}"
        case list():
            return "a list"
        case dict():
            return "an object"
        case _:
            return "null"


def _object(schema: Schema, value: Mapping[str, Any]) -> Iterator[Finding]:
    yield from _size(schema, ("minProperties", "maxProperties"), len(value), ("entry", "entries"))
    for name in schema.get("required", ()):
        if name not in value:
            yield (name,), "is required: add it"


def unknown_fields(schema: Schema, value: Any) -> Iterator[Finding]:
    """Fields the schema does not know; the server would drop them, or refuse them under strict validation."""
    if not isinstance(value, dict) or schema.get("type") != "object":
        return
    properties: Mapping[str, Schema] = schema.get("properties", {})
    if not schema.get("x-kubernetes-preserve-unknown-fields") and "additionalProperties" not in schema:
        for name in value:
            if name not in properties:
                yield (name,), _unknown(str(name), properties)


def _unknown(name: str, known: Iterable[str]) -> str:
    if name in _ABSENT:
        return f"is not a field here: {_ABSENT[name]}"
    fields = sorted(known)
    folded = {field.lower(): field for field in fields}
    close = folded.get(name.replace("_", "").lower()) or next(
        iter(difflib.get_close_matches(name, fields, n=1)), ""
    )
    if close:
        return f"is not a field here: did you mean {close}?"
    more = f" and {len(fields) - _LISTED} more" if len(fields) > _LISTED else ""
    return f"is not a field here: allowed are {', '.join(fields[:_LISTED])}{more}"


def _size(schema: Schema, names: tuple[str, str], size: int, units: tuple[str, str]) -> Iterator[Finding]:
    least, most = schema.get(names[0], 0), schema.get(names[1])
    if size < least:
        yield (), f"must have at least {least} {units[least != 1]}, has {size}"
    if most is not None and size > most:
        yield (), f"must have at most {most} {units[most != 1]}, has {size}"


def _limits(schema: Schema, value: float) -> Iterator[Finding]:
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and value < least:
        yield (), f"must be at least {least}, is {value}"
    if most is not None and value > most:
        yield (), f"must be at most {most}, is {value}"


def _is_time(value: Any) -> bool:
    try:
        return datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False
