"""Walking a JSON value along its structural schema, as the API server does when it decodes and compares.

Two things happen to an object before it is validated: nulls of fields that may not be null vanish or give
way to the default, and defaults are filled in (apiextensions-apiserver, schema/defaulting). On an update a
value is compared with the one it replaces, where that can be told: by field name, by key in a list that is
a map, never inside an atomic list (apiserver, cel/common/equality.go).
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from modelfleet.api.keywords import MapKey, Path
from modelfleet.api.schema import Schema


def settle(schema: Schema, value: Any) -> Any:
    """A copy with nulls dropped and defaults filled in."""
    if isinstance(value, dict):
        return _settle_object(schema, value)
    if isinstance(value, list):
        return [settle(schema.get("items", {}), item) for item in value]
    return copy.deepcopy(value)


def _settle_object(schema: Schema, value: dict[Any, Any]) -> dict[Any, Any]:
    properties: dict[str, Schema] = schema.get("properties", {})
    other: Schema | None = schema.get("additionalProperties")
    settled = {}
    for name, item in value.items():
        known = properties.get(name, other)
        if item is not None or known is None:
            settled[name] = settle(known or {}, item)
    for name, known in properties.items():
        if name not in settled and "default" in known:
            settled[name] = settle(known, known["default"])
    return settled


@dataclass(slots=True)
class Node:
    """One value of an object, with the value it replaces."""

    path: Path
    schema: Schema
    value: Any
    old: Any
    """What it replaces; None when it is new or can't be told."""
    unchanged: bool
    """It, or the nearest value around it that can be compared, equals what it replaces."""

    def children(self) -> Iterator["Node"]:
        """The values directly below."""
        if isinstance(self.value, dict):
            yield from self._fields(self.value)
        elif isinstance(self.value, list) and "items" in self.schema:
            yield from self._items(self.value, self.schema["items"])

    def _fields(self, value: dict[Any, Any]) -> Iterator["Node"]:
        properties: dict[str, Schema] = self.schema.get("properties", {})
        other: Schema | None = self.schema.get("additionalProperties")
        for name, item in value.items():
            old = self.old.get(name) if isinstance(self.old, dict) else None
            if name in properties:
                yield self._child(name, properties[name], item, old, comparable=self.old is not None)
            elif other is not None:
                yield self._child(MapKey(name), other, item, old, comparable=self.old is not None)

    def _items(self, value: list[Any], schema: Schema) -> Iterator["Node"]:
        key = map_key(self.schema)
        before = by_key(self.old, key) if key and isinstance(self.old, list) else {}
        for index, item in enumerate(value):
            old = before.get(key_of(item, key) or "")
            yield self._child(index, schema, item, old, comparable=bool(key) and self.old is not None)

    def _child(self, name: str | int, schema: Schema, value: Any, old: Any, *, comparable: bool) -> "Node":
        unchanged = (old is not None and same(schema, value, old)) if comparable else self.unchanged
        return Node((*self.path, name), schema, value, old, unchanged)

    def walk(self) -> Iterator["Node"]:
        """This node and every node below it."""
        yield self
        for child in self.children():
            yield from child.walk()


def root(schema: Schema, value: Any, old: Any) -> Node:
    """The node of a whole object."""
    return Node((), schema, value, old, old is not None and same(schema, value, old))


def map_key(schema: Schema) -> str:
    """The key of a list that is a map; "" for an atomic one."""
    keys: list[str] = schema.get("x-kubernetes-list-map-keys", [""])
    return keys[0]


def key_of(item: Any, key: str) -> str | None:
    """The key of an item of a list that is a map; None when it has none, or not of the right type."""
    name = item.get(key) if isinstance(item, dict) else None
    return name if isinstance(name, str) else None


def by_key(items: list[Any], key: str) -> dict[str, Any]:
    """Items of a list that is a map, by key."""
    return {name: item for item in items if (name := key_of(item, key)) is not None}


def same(schema: Schema, new: Any, old: Any) -> bool:
    """Equality as ratcheting sees it: the order of a list that is a map does not count."""
    if isinstance(new, dict) and isinstance(old, dict):
        properties: dict[str, Schema] = schema.get("properties", {})
        return new.keys() == old.keys() and all(same(properties.get(k, {}), new[k], old[k]) for k in new)
    if isinstance(new, list) and isinstance(old, list) and (key := map_key(schema)):
        before = by_key(old, key)
        return len(new) == len(old) and all(
            same(schema.get("items", {}), item, before.get(key_of(item, key) or "")) for item in new
        )
    return type(new) is type(old) and bool(new == old)
