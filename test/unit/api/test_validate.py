"""`validate` and `parse`; their verdicts against a real API server are test/contract/test_schema.py."""

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from modelfleet.api.inference import InferenceService
from modelfleet.api.keywords import check, unknown_fields
from modelfleet.api.schema import RULES_KEY, object_schema
from modelfleet.api.tree import root
from modelfleet.api.validate import InvalidObject, Violation, apply_defaults, parse, read, validate
from test.unit.api.cases import ACCEPTED, Object, isvc

SCHEMA = object_schema(InferenceService)


def paths(obj: Object, old: Object | None = None) -> list[str]:
    """The fields that something is wrong with."""
    return [violation.path for violation in validate(obj, old)]


def test_every_violation_is_reported() -> None:
    """All mistakes are shown at once, sorted by field, those of shape and those against rules."""
    spec = {"container": {"image": "A", "port": "1"}, "scaling": {"minReplicas": 0}, "pod": {"x": 1}}
    assert ["spec.container.image", "spec.container.port", "spec.pod.x", "spec.scaling.minReplicas"] == paths(
        isvc(spec)
    )


def test_rules_wait_for_the_shape() -> None:
    """A rule may rely on the types around it: it is not asked about a value of the wrong shape."""
    spec = {"scaling": {"minReplicas": "many", "maxReplicas": 1}, "route": {"parentRefs": [{"name": "a"}, 5]}}
    assert [
        "spec.route.parentRefs[0].sectionName",
        "spec.route.parentRefs[1]",
        "spec.scaling.minReplicas",
    ] == paths(isvc(spec))


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"apiVersion": "v1", "kind": "Pod"},
        {"apiVersion": "modelfleet.dev/v1", "kind": "InferenceService"},
    ],
)
def test_other_kinds(body: Object) -> None:
    """What is none of our kinds is one violation, not a crash."""
    assert ["kind"] == paths(body)
    with pytest.raises(InvalidObject, match="must be one of InferenceService with apiVersion"):
        parse(body)


@pytest.mark.parametrize(
    "spec", [None, 5, [], "text", {"container": 5}, {"container": [{}]}, {"pod": {"volumes": {"a": 1}}}]
)
def test_nonsense(spec: Any) -> None:
    """Values of any shape anywhere give violations, never an exception."""
    assert validate(isvc() | {"spec": spec})


def test_metadata_may_be_missing() -> None:
    """An object without metadata is told about its name."""
    body = isvc()
    del body["metadata"]
    assert ["metadata"] == paths(body)
    assert ["metadata.name"] == paths(isvc(name=""))


def test_generated_names_count_with_their_suffix() -> None:
    """The server appends five characters to generateName before rules are checked."""
    assert [] == paths(isvc(name=None, generateName="a" * 49))
    assert ["metadata.name"] == paths(isvc(name=None, generateName="a" * 50))


def test_status_is_not_looked_at() -> None:
    """Status goes through its own door; a copy of a live object stays valid whatever is in there."""
    assert [] == paths(isvc() | {"status": {"from": "another version"}})


def test_what_an_edit_leaves_alone_is_forgiven() -> None:
    """A stored mistake blocks edits of the value it is in, and no others (ratcheting)."""
    broken = {"scaling": {"minReplicas": 9, "maxReplicas": 2}, "pod": {"volumes": [{"name": "a"}]}}
    old = isvc(broken)
    suspended = isvc(broken | {"suspend": True})
    edited = isvc(broken | {"scaling": {"minReplicas": 8, "maxReplicas": 2}})
    reordered = isvc(broken | {"pod": {"volumes": [{"name": "b", "emptyDir": {}}, {"name": "a"}]}})
    assert ["spec.pod.volumes[0]", "spec.scaling.minReplicas"] == paths(suspended)
    assert [] == paths(suspended, old)
    assert ["spec.scaling.minReplicas"] == paths(edited, old)
    assert [] == paths(reordered, old)


def test_unknown_fields_are_never_forgiven() -> None:
    """The server refuses them before it compares anything."""
    body = isvc({"pod": {"hostNetwork": True}})
    assert ["spec.pod.hostNetwork"] == paths(body, body)


def test_defaults_count_on_both_sides() -> None:
    """A default that was written out, or no longer is, is no change."""
    assert [] == paths(isvc({"service": {"headless": False}}), isvc())
    assert ["spec.service.headless"] == paths(isvc(), isvc({"service": {"headless": True}}))


def test_apply_defaults_leaves_the_input_alone() -> None:
    """The object given is not changed."""
    body = isvc({"route": {"parentRefs": [{"name": "a", "sectionName": "b"}], "timeouts": None}})
    before = copy.deepcopy(body)
    spec = apply_defaults(body)["spec"]
    assert before == body
    assert {"request": "0s"} == spec["route"]["timeouts"]
    assert (1, False) == (spec["scaling"]["minReplicas"], spec["suspend"])


def test_parse() -> None:
    """The typed object has defaults and canonical quantities."""
    parsed = parse(isvc({"container": {"resources": {"limits": {"cpu": 2, "memory": "1024Mi"}}}}))
    resources = parsed.spec.container.resources
    assert resources is not None
    assert {"cpu": "2", "memory": "1Gi"} == resources.limits
    assert ("case", "models", 80, 1) == (
        parsed.metadata.name,
        parsed.metadata.namespace,
        parsed.spec.service.port,
        parsed.spec.scaling.min_replicas,
    )


def test_invalid_object_names_the_field() -> None:
    """The error carries the violations, and its text is theirs."""
    with pytest.raises(InvalidObject, match=r"spec\.suspend: must be true or false") as caught:
        parse(isvc({"suspend": 1}))
    assert ["spec.suspend"] == [violation.path for violation in caught.value.violations]


def test_violation_reads_as_a_line() -> None:
    """Field, then what to write."""
    assert "spec.a: must be b" == str(Violation("spec.a", "must be b"))


def _closed(node: Any) -> Any:
    """The schema for another validator: rules taken out, unknown fields an error."""
    if isinstance(node, list):
        return [_closed(item) for item in node]
    if not isinstance(node, dict):
        return node
    closed = {key: _closed(value) for key, value in node.items() if key != RULES_KEY}
    if closed.get("type") == "object" and "properties" in closed:
        closed.setdefault("additionalProperties", bool(closed.get("x-kubernetes-preserve-unknown-fields")))
    return closed


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each container and key below a value."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from _places(value[key])


OTHER = Draft202012Validator(_closed(SCHEMA))
JUNK = st.one_of(
    st.booleans(),
    st.integers(-(2**40), 2**40),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=300),
    st.sampled_from([[], {}, [{}] * 70, {"unknown": 1}]),
)


@given(st.sampled_from(ACCEPTED), st.data())
def test_shape_agrees_with_jsonschema(accepted: Object, data: st.DataObject) -> None:
    """Another implementation of JSON Schema gives the same verdict about the shape of damaged objects."""
    body = apply_defaults(accepted)
    place, key = data.draw(st.sampled_from(list(_places(body))))
    place[key] = data.draw(JUNK)
    ours = [
        finding
        for node in root(SCHEMA, body, None).walk()
        for finding in (*check(node.schema, node.value), *unknown_fields(node.schema, node.value))
    ]
    assert OTHER.is_valid(body) == (ours == [])


@given(st.sampled_from(ACCEPTED), st.data())
def test_damage_never_raises(accepted: Object, data: st.DataObject) -> None:
    """Whatever is wrong with an object, `validate` answers, and `parse` raises nothing but InvalidObject."""
    body = copy.deepcopy(accepted)
    place, key = data.draw(st.sampled_from(list(_places(body))))
    place[key] = data.draw(JUNK | st.none())
    found = validate(body)
    with pytest.raises(InvalidObject) if found else contextlib.nullcontext():
        parse(body)


@pytest.mark.parametrize(
    "spec",
    [
        {"scaling": {"minReplicas": 0}},
        {"container": {"image": "a", "newer": {"field": 1}}},
        {"pod": {"labels": {"modelfleet.dev/inferenceservice": "other"}}},
        {"container": {"image": "a", "volumeMounts": [{"name": "nowhere", "mountPath": "/x"}]}},
    ],
)
def test_what_is_stored_is_read(spec: Object) -> None:
    """A stored object that a later rule would refuse, or that a newer CRD let in, can still be suspended."""
    body = isvc(spec)
    assert [] != validate(body)
    body["spec"]["suspend"] = True

    assert True is read(body).spec.suspend


@pytest.mark.parametrize("body", [{}, {"container": {}}, {"container": {"image": 7}}, None, [], "text"])
def test_what_has_no_shape_is_not_read(body: object) -> None:
    """Without the required fields, or with values of another type, there is nothing to act on."""
    with pytest.raises(InvalidObject) as error:
        read(isvc({}) | {"spec": body})
    assert str(error.value).startswith("spec")
