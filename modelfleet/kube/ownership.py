"""Moving list items from other field managers to ours, where a forced apply can't (rule A5, k/k#131147).

Server-side apply merges lists by key and force settles who owns a value, but an item of another manager
under another key is kept beside ours. Somebody who edits the port of a Service turns our item into such a
foreign one: the next apply puts ours back next to it, and the server refuses two ports of one name. Once
our Apply entry owns the foreign item, the same apply drops it, as it drops every field we owned and no
longer ask for. managedFields may be written like any other field (csaupgrade in client-go does the same).
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from modelfleet.kube.errors import StatusError

Fields = Mapping[str, Any]
"""One node of a FieldsV1 tree; see `modelfleet.kube.projection`."""

_DUPLICATE = "FieldValueDuplicate"
"""metav1.CauseTypeFieldValueDuplicate."""
_ANY = "[]"
"""Path step: any item of a list. The server counts in the merged list, which nobody else has seen."""
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def duplicates(error: StatusError) -> list[str]:
    """Fields of which the server says that two items of a list hold the same value: `spec.ports[1].name`."""
    return [str(cause.get("field") or "") for cause in error.causes if cause.get("reason") == _DUPLICATE]


def with_foreign_items(obj: Mapping[str, Any], manager: str, field: str) -> list[dict[str, Any]] | None:
    """The object's managedFields with the foreign items of one list moved to the manager's Apply entry.

    Args:
        obj: The live object.
        manager: Whose Apply entry takes them.
        field: A field of one of the items, as in `duplicates`.

    Returns:
        None when the manager has applied nothing, or no other manager owns an item that it doesn't own.
    """
    entries = [dict(entry) for entry in (obj.get("metadata") or {}).get("managedFields") or ()]
    mine = next((e for e in entries if e.get("manager") == manager and _applied(e)), None)
    path = _path_of_list(field)
    if mine is None or not path:
        return None
    before = mine["fieldsV1"]
    for entry in entries:
        if entry is not mine and not entry.get("subresource"):
            mine["fieldsV1"], entry["fieldsV1"] = _move(mine["fieldsV1"], entry.get("fieldsV1") or {}, path)
    return [entry for entry in entries if entry["fieldsV1"]] if mine["fieldsV1"] != before else None


def _applied(entry: Mapping[str, Any]) -> bool:
    return entry.get("operation") == "Apply" and not entry.get("subresource") and bool(entry.get("fieldsV1"))


def _path_of_list(field: str) -> list[str]:
    """`spec.containers[0].ports[1].name` -> spec, containers, any item, ports; [] outside of lists."""
    steps = [name or _ANY for name, _ in _STEP.findall(field)]
    return steps[: len(steps) - 1 - steps[::-1].index(_ANY)] if _ANY in steps else []


def _move(mine: Fields, theirs: Fields, path: Sequence[str]) -> tuple[Fields, Fields]:
    """Both trees after the items below `path` that only they own have become mine."""
    if not path:
        foreign = {key: below for key, below in theirs.items() if key.startswith("k:") and key not in mine}
        return {**mine, **foreign}, {key: below for key, below in theirs.items() if key not in foreign}
    got, left = dict(mine), dict(theirs)
    for element in _elements(path[0], mine, theirs):
        got[element], left[element] = _move(mine.get(element, {}), theirs[element], path[1:])
        # An empty node stands for the whole value below it: neither side may be left with one by accident.
        for tree in (got, left):
            if not tree[element]:
                del tree[element]
    return got, left


def _elements(step: str, mine: Fields, theirs: Fields) -> list[str]:
    """The nodes to descend into; of a list on the way only the items that are ours too."""
    if step == _ANY:
        return [element for element in theirs if element.startswith("k:") and element in mine]
    element = f"f:{step}"
    return [element] if theirs.get(element) else []
