"""Foreign list items become ours, and nothing else does."""

from typing import Any

import pytest

from modelfleet.kube.errors import StatusError
from modelfleet.kube.ownership import duplicates, with_foreign_items

OURS, THEIRS = "ours", "kubectl-edit"
PORT_80 = 'k:{"port":80,"protocol":"TCP"}'
PORT_81 = 'k:{"port":81,"protocol":"TCP"}'
ITEM: dict[str, Any] = {".": {}, "f:name": {}, "f:port": {}}


def entry(manager: str, fields: dict[str, Any], operation: str = "Update", **more: str) -> dict[str, Any]:
    """One entry of managedFields."""
    return {"manager": manager, "operation": operation, "fieldsV1": fields, **more}


def moved(*entries: dict[str, Any], field: str = "spec.ports[1].name") -> dict[str, Any] | None:
    """Manager -> fields afterwards; None when nothing moves."""
    after = with_foreign_items({"metadata": {"managedFields": list(entries)}}, OURS, field)
    return None if after is None else {e["manager"]: e["fieldsV1"] for e in after}


def test_foreign_item_moves_to_our_apply_entry() -> None:
    """The item under another key becomes ours; what else its owner has stays with him."""
    ours = entry(OURS, {"f:spec": {"f:type": {}}}, "Apply")
    theirs = entry(THEIRS, {"f:metadata": {"f:labels": {"f:a": {}}}, "f:spec": {"f:ports": {PORT_81: ITEM}}})

    assert {
        OURS: {"f:spec": {"f:type": {}, "f:ports": {PORT_81: ITEM}}},
        THEIRS: {"f:metadata": {"f:labels": {"f:a": {}}}},
    } == moved(ours, theirs)


def test_manager_that_is_left_with_nothing_disappears() -> None:
    """An entry without fields is no entry."""
    ours = entry(OURS, {"f:spec": {"f:ports": {PORT_80: ITEM}}}, "Apply")
    theirs = entry(THEIRS, {"f:spec": {"f:ports": {PORT_81: ITEM}}})

    assert {OURS: {"f:spec": {"f:ports": {PORT_80: ITEM, PORT_81: ITEM}}}} == moved(ours, theirs)


def test_on_the_way_only_our_items_are_entered() -> None:
    """Ports of our container move, ports of somebody's sidecar don't."""
    ours = entry(OURS, {"f:spec": {"f:containers": {'k:{"name":"model"}': {"f:image": {}}}}}, "Apply")
    side = {'k:{"name":"sidecar"}': {"f:ports": {PORT_81: ITEM}}}
    both = {**side, 'k:{"name":"model"}': {"f:ports": {PORT_81: ITEM}}}
    theirs = entry(THEIRS, {"f:spec": {"f:containers": both}})

    assert {
        OURS: {
            "f:spec": {"f:containers": {'k:{"name":"model"}': {"f:image": {}, "f:ports": {PORT_81: ITEM}}}}
        },
        THEIRS: {"f:spec": {"f:containers": side}},
    } == moved(ours, theirs, field="spec.containers[0].ports[1].name")


@pytest.mark.parametrize(
    ("entries", "field"),
    [
        ([entry(OURS, {"f:spec": {"f:ports": {PORT_80: ITEM}}}, "Apply")], "spec.ports[1].name"),
        ([entry(THEIRS, {"f:spec": {"f:ports": {PORT_81: ITEM}}})], "spec.ports[1].name"),
        (
            [
                entry(OURS, {"f:spec": {"f:ports": {PORT_80: ITEM}}}, "Apply"),
                entry(THEIRS, {"f:spec": {"f:ports": {PORT_80: ITEM}}}),
            ],
            "spec.ports[1].name",
        ),
        (
            [
                entry(OURS, {"f:spec": {"f:ports": {PORT_80: ITEM}}}, "Apply"),
                entry(THEIRS, {"f:spec": {"f:ports": {PORT_81: ITEM}}}, subresource="status"),
            ],
            "spec.ports[1].name",
        ),
        (
            [
                entry(OURS, {"f:spec": {"f:type": {}}}, "Apply"),
                entry(THEIRS, {"f:spec": {"f:ports": {PORT_81: ITEM}}}),
            ],
            "spec.type",
        ),
        ([], "spec.ports[1].name"),
    ],
    ids=["nobody else", "nothing of ours", "same item", "subresource", "no list", "no managedFields"],
)
def test_nothing_moves(entries: list[dict[str, Any]], field: str) -> None:
    """Without a foreign item, or without an Apply entry to take it, the answer is None."""
    assert moved(*entries, field=field) is None


def test_finds_the_duplicates_among_the_causes() -> None:
    """Only causes of reason FieldValueDuplicate count."""
    causes = [
        {"reason": "FieldValueDuplicate", "field": "spec.ports[1].name", "message": "Duplicate value"},
        {"reason": "FieldValueInvalid", "field": "spec.ports[0].port", "message": "Invalid value"},
    ]
    error = StatusError(422, {"reason": "Invalid", "details": {"causes": causes}})

    assert ["spec.ports[1].name"] == duplicates(error)
