"""Typed objects and their wire form."""

from typing import Any

import pytest

from modelfleet.api.validate import apply_defaults, parse, validate
from test.unit.api.cases import ACCEPTED, Object, isvc


def wire(spec: Object) -> Object:
    """The spec that a typed object writes."""
    return parse(isvc(spec)).spec.wire()


@pytest.mark.parametrize("body", ACCEPTED)
def test_wire_is_accepted_and_stable(body: Object) -> None:
    """What a typed object writes is valid, and reads back as the same object."""
    parsed = parse(body)
    again = body | {"spec": parsed.spec.wire()}
    assert [] == validate(again)
    assert parsed.spec == parse(again).spec


@pytest.mark.parametrize("body", ACCEPTED)
def test_nothing_is_invented(body: Object) -> None:
    """The wire form has no key that the stored object has not (rule A2)."""
    stored = apply_defaults(body)["spec"]
    assert [] == list(_added(parse(body).spec.wire(), stored, "spec"))


def _added(written: Any, stored: Any, path: str) -> list[str]:
    if isinstance(written, dict) and isinstance(stored, dict):
        found = [f"{path}.{key}" for key in written if key not in stored]
        return found + [
            each for k in written if k in stored for each in _added(written[k], stored[k], f"{path}.{k}")
        ]
    if isinstance(written, list) and isinstance(stored, list):
        return [each for a, b in zip(written, stored, strict=True) for each in _added(a, b, f"{path}[]")]
    return []


def test_go_zero_values_are_left_out() -> None:
    """Of core/v1 fields that are no pointers, false, 0 and "" are what the server drops (rule A2)."""
    mount = {"name": "a", "mountPath": "/a", "readOnly": False}
    spec = {
        "container": {"volumeMounts": [mount]},
        "pod": {"volumes": [{"name": "a", "emptyDir": {"medium": ""}}]},
    }
    written = wire(spec)
    assert [{"name": "a", "mountPath": "/a"}] == written["container"]["volumeMounts"]
    assert [{"name": "a", "emptyDir": {}}] == written["pod"]["volumes"]


def test_pointers_keep_false_and_zero() -> None:
    """Of core/v1 fields that are pointers, false and 0 are decisions."""
    context = {"allowPrivilegeEscalation": False, "runAsUser": 0}
    spec = {"container": {"securityContext": context}, "pod": {"terminationGracePeriodSeconds": 0}}
    written = wire(spec)
    assert context == written["container"]["securityContext"]
    assert {"terminationGracePeriodSeconds": 0} == written["pod"]


def test_triggers_pass_unchanged() -> None:
    """A trigger is written as it was read: zero values, unknown fields and all."""
    trigger = {
        "type": "kafka",
        "metadata": {},
        "useCachedMetrics": False,
        "future": {"nested": [1, {"deep": None}]},
    }
    assert [trigger] == wire({"scaling": {"maxReplicas": 2, "triggers": [trigger]}})["scaling"]["triggers"]


def test_empty_objects_stay() -> None:
    """{} selects everything where nothing selects nothing: the two must not be mixed up."""
    term = {"topologyKey": "zone", "namespaceSelector": {}, "labelSelector": {"matchLabels": {"a": "b"}}}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    assert affinity == wire({"pod": {"affinity": affinity}})["pod"]["affinity"]


def test_objects_are_frozen() -> None:
    """A cached object can't be changed by accident."""
    parsed = parse(isvc())
    with pytest.raises(ValueError, match="frozen"):
        parsed.spec.suspend = True  # type: ignore[misc]  # that is the point
