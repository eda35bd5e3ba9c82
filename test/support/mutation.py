"""Finds out who changes what is in a store (rule I13, client-go's mutation detector).

Frozen structs can't be changed, but a dict or list inside a view can, by anybody who reads it.
"""

from typing import Any

import msgspec

from modelfleet.kube.changes import Event
from modelfleet.kube.objects import Item
from modelfleet.kube.store import Store


class MutationDetector:
    """Takes a fingerprint of each object when it is stored; `verify` takes it again."""

    def __init__(self, store: Store[Any]) -> None:
        self._store = store
        self._prints: dict[int, tuple[Item[Any], bytes]] = {}
        store.subscribe(self._note)

    def _note(self, event: Event[Any]) -> None:
        """Keep the item alive, so that its id stays its own."""
        self._prints.setdefault(id(event.item), (event.item, _print(event.item)))

    def verify(self) -> None:
        """Fail with the name of the first object that is no longer what was stored."""
        for item, before in self._prints.values():
            after = _print(item)
            where = f"{self._store.api.kind} {item.meta.namespace}/{item.meta.name}"
            assert before == after, f"{where} was changed in the store: {before!r} became {after!r}"


def _print(item: Item[Any]) -> bytes:
    return msgspec.json.encode(item, order="sorted")
