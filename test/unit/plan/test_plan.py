"""The vocabulary of change: what a plan may hold, what a manifest means, how things are called."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelfleet.plan import (
    Api,
    Apply,
    Cause,
    Condition,
    Delete,
    Key,
    Manifest,
    Plan,
    Precondition,
    Problem,
    Ref,
    canonical,
    digest_of,
    intent,
)

SERVICE = Api("", "v1", "Service", "services")
DEPLOYMENT = Api("apps", "v1", "Deployment", "deployments")
NODE = Api("", "v1", "Node", "nodes", namespaced=False)
MANIFEST = Manifest.of({"spec": {"a": 1}})

SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=10)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


def apply(name: str, *after: str) -> Apply:
    """A birth."""
    return Apply(name, Ref(SERVICE, "a", name), MANIFEST, "m", "uid", after=after)


def shuffled(value: Any, rng: random.Random) -> Any:
    """The same JSON value with its keys in another order."""
    if isinstance(value, list):
        return [shuffled(item, rng) for item in value]
    if not isinstance(value, dict):
        return value
    keys = list(value)
    rng.shuffle(keys)
    return {key: shuffled(value[key], rng) for key in keys}


def test_plan_keeps_its_order() -> None:
    """Actions are carried out in the order in which they were decided."""
    delete = Delete("c", Ref(SERVICE, "a", "old"), Precondition("u", "1"), after=("a", "b"))

    assert ["a", "b", "c"] == [action.name for action in Plan((apply("a"), apply("b", "a"), delete)).actions]


@pytest.mark.parametrize(
    ("actions", "complaint"),
    [
        ((apply("a"), apply("a")), "'a'"),
        ((apply("a", "b"), apply("b")), r"'a' depends on \['b'\]"),
        ((apply("a", "a"),), "depends on"),
        ((apply("a", "nobody"),), "nobody"),
    ],
)
def test_plan_refuses_what_cannot_be_done(actions: tuple[Apply, ...], complaint: str) -> None:
    """Double names, unknown dependencies and cycles are bugs of a planner, found when the plan is made."""
    with pytest.raises(ValueError, match=complaint):
        Plan(actions)


@given(value=JSON, seed=st.integers())
def test_key_order_does_not_matter(value: Any, seed: int) -> None:
    """The same value gives the same bytes and the same digest, whatever the order of its keys."""
    other = shuffled(value, random.Random(seed))

    assert canonical(value) == canonical(other)
    assert digest_of(value) == digest_of(other)


@given(one=JSON, other=JSON)
def test_different_values_have_different_digests(one: Any, other: Any) -> None:
    """Nothing that the server would tell apart reads as equal: null and absent, 1 and "1", order of lists."""
    assert (canonical(one) == canonical(other)) == (digest_of(one) == digest_of(other))


@pytest.mark.parametrize(
    ("one", "other"), [({"a": None}, {}), ({"a": {}}, {}), ({"a": 1}, {"a": "1"}), ([1, 2], [2, 1])]
)
def test_empty_and_absent_are_different(one: Any, other: Any) -> None:
    """Rule A2: the digest sees the differences the server sees."""
    assert digest_of(one) != digest_of(other)


def test_intent_leaves_out_address_and_incarnation() -> None:
    """What names or pins an object decides nothing; labels and owners do."""
    body = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "x",
            "namespace": "a",
            "uid": "u",
            "resourceVersion": "5",
            "labels": {"l": "1"},
            "ownerReferences": [{"uid": "o"}],
        },
        "spec": {"name": "kept"},
    }
    before = canonical(body)

    assert {
        "metadata": {"labels": {"l": "1"}, "ownerReferences": [{"uid": "o"}]},
        "spec": {"name": "kept"},
    } == intent(body)
    assert before == canonical(body)


def test_intent_without_metadata() -> None:
    """A body that decides nothing in its metadata has none, as the projection of a live object has none."""
    assert {"spec": {}} == intent({"spec": {}, "metadata": {"name": "x"}}) == intent({"spec": {}})


def test_manifest_digest_is_that_of_its_intent() -> None:
    """The same intent for another name or at another revision has the same digest."""
    pinned = {"metadata": {"name": "x", "uid": "u", "resourceVersion": "9"}, "spec": {"a": 1}}

    assert MANIFEST.digest == Manifest.of(pinned).digest == digest_of({"spec": {"a": 1}})
    assert 32 == len(MANIFEST.digest)


@pytest.mark.parametrize(
    ("api", "version", "qualified"),
    [(SERVICE, "v1", "services"), (DEPLOYMENT, "apps/v1", "deployments.apps")],
)
def test_names_of_types(api: Api, version: str, qualified: str) -> None:
    """The core group has no name, neither in apiVersion nor in RBAC."""
    assert (version, qualified, qualified) == (api.api_version, api.qualified, str(api))


def test_names_of_objects() -> None:
    """People read kind, namespace and name; a cluster-scoped object has no namespace."""
    assert "Service a/x" == str(Ref(SERVICE, "a", "x"))
    assert "Node n" == str(Ref(NODE, "", "n"))
    assert "a/x" == str(Key("a", "x"))


def test_references_are_values() -> None:
    """Equal references are one key of a dict and sort the same way each time."""
    refs = [Ref(SERVICE, "b", "x"), Ref(SERVICE, "a", "y"), Ref(DEPLOYMENT, "a", "z"), Ref(SERVICE, "a", "y")]

    assert 3 == len(set(refs))
    assert ["a/y", "a/y", "b/x", "a/z"] == [f"{ref.namespace}/{ref.name}" for ref in sorted(refs)]


@pytest.mark.parametrize("cause", list(Cause))
def test_terminal_causes(cause: Cause) -> None:
    """Only what the server refuses for the request itself is terminal; everything else may pass by itself."""
    assert (cause in {Cause.IMMUTABLE, Cause.INVALID, Cause.TOO_LARGE}) == Problem(cause, "").terminal


def test_condition_truth() -> None:
    """Unknown is not true."""
    assert [True, False, False] == [Condition("Ready", s, "R").true for s in ("True", "False", "Unknown")]
