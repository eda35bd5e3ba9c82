"""FieldsV1, element by element (rule A13); test/contract/test_projection.py has the real server's word."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from modelfleet.kube.projection import owned, owned_digest, owners_of
from modelfleet.plan import Manifest, digest_of, intent
from test.support.kinds import CONFIG_MAP
from test.support.mutation import MutationDetector
from test.support.projection_manifests import deployment
from test.unit.kube.test_store import item, store_of

Fields = Mapping[str, Any]


def entry(fields: Fields, manager: str = "us", operation: str = "Apply", **settings: str) -> dict[str, Any]:
    """One entry of managedFields."""
    return {
        "manager": manager,
        "operation": operation,
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        **settings,
    }


def live(body: Mapping[str, Any], *entries: Mapping[str, Any]) -> dict[str, Any]:
    """A live object with its managers."""
    metadata = {
        "name": "x",
        "namespace": "a",
        "uid": "u",
        **body.get("metadata", {}),
        "managedFields": list(entries),
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", **body, "metadata": metadata}


CASES = {
    "a scalar": ({"f:n": {}}, 1, 1),
    "a foreign scalar": ({}, 1, None),
    "a false value": ({"f:n": {}}, False, False),
    "an empty string": ({"f:n": {}}, "", ""),
    "an atomic list": ({"f:n": {}}, [3, 1, 2], [3, 1, 2]),
    "an atomic map": ({"f:n": {}}, {"b": {"c": 1}}, {"b": {"c": 1}}),
    "an empty map": ({"f:n": {}}, {}, {}),
    "an empty map written with itself": ({"f:n": {".": {}}}, {}, {}),
    "a part of a map": ({"f:n": {"f:mine": {}}}, {"mine": 1, "theirs": 2}, {"mine": 1}),
    "a map and a part of it": ({"f:n": {".": {}, "f:mine": {}}}, {"mine": 1, "theirs": 2}, {"mine": 1}),
    "a map of which nothing is left": ({"f:n": {".": {}, "f:mine": {}}}, {"theirs": 2}, None),
    "keys with slashes and dots": ({"f:n": {"f:a.b/c": {}}}, {"a.b/c": "1", "a": 2}, {"a.b/c": "1"}),
    "a key that is a dot": ({"f:n": {"f:.": {}}}, {".": 1, "x": 2}, {".": 1}),
    "a set": ({"f:n": {'v:"b"': {}, 'v:"a"': {}}}, ["b", "x", "a"], ["b", "a"]),
    "a set of numbers": ({"f:n": {"v:1": {}}}, [1, "1", True, 2], [1]),
    "an index": ({"f:n": {"i:1": {}}}, ["x", "y", "z"], ["y"]),
    "items in live order": (
        {"f:n": {'k:{"name":"b"}': {".": {}, "f:name": {}}, 'k:{"name":"a"}': {".": {}, "f:name": {}}}},
        [{"name": "b", "v": 1}, {"name": "x"}, {"name": "a"}],
        [{"name": "b"}, {"name": "a"}],
    ),
    "an item without its defaulted key": (
        {"f:n": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}}},
        [{"port": 80, "protocol": "UDP"}, {"port": 80, "protocol": "TCP"}],
        [{"port": 80}],
    ),
    "an atomic item": ({"f:n": {'k:{"uid":"o"}': {}}}, [{"uid": "o", "a": [1]}], [{"uid": "o", "a": [1]}]),
    "items that lost their keys": ({"f:n": {'k:{"name":"a"}': {"f:name": {}}}}, ["a", {"nom": "a"}, 3], None),
    "elements with different keys": (
        {"f:n": {'k:{"name":"a"}': {"f:name": {}}, 'k:{"id":1}': {"f:id": {}}}},
        [{"id": 1}, {"name": "a", "id": 2}, {"id": 3}],
        [{"id": 1}, {"name": "a"}],
    ),
    "a map that became a scalar": ({"f:n": {"f:mine": {}}}, "text", "text"),
    "a field that is gone": ({"f:n": {}, "f:other": {}}, 1, 1),
}


@pytest.mark.parametrize(("fields", "value", "expected"), CASES.values(), ids=CASES.keys())
def test_a13_a_projection_keeps_what_its_elements_name(fields: Fields, value: Any, expected: Any) -> None:
    """Each kind of path element of fieldpath/serialize-pe.go (rule A13)."""
    projected = owned(live({"spec": {"n": value}}, entry({"f:spec": fields} if fields else {})), "us")

    assert ({} if expected is None else {"spec": {"n": expected}}) == projected


def test_a13_an_empty_map_of_ours_stays_empty_when_others_fill_it() -> None:
    """`emptyDir: {}` is ours; a size limit that somebody adds is not (rule A13)."""
    ours = entry({"f:spec": {"f:emptyDir": {}}})
    theirs = entry({"f:spec": {"f:emptyDir": {"f:sizeLimit": {}}}}, "them", "Update")
    body = {"spec": {"emptyDir": {"sizeLimit": "1Gi"}}}

    assert {"spec": {"emptyDir": {}}} == owned(live(body, ours, theirs), "us")
    assert {"spec": {"emptyDir": {"sizeLimit": "1Gi"}}} == owned(live(body, ours), "us")


@pytest.mark.parametrize(
    ("manager", "operation", "subresource"),
    [("them", "Apply", ""), ("us", "Update", ""), ("us", "Apply", "status"), ("us", "Apply", "scale")],
)
def test_a13_only_our_own_apply_counts(manager: str, operation: str, subresource: str) -> None:
    """Another manager, operation or subresource owns other fields (rule A13)."""
    settings = {"subresource": subresource} if subresource else {}
    obj = live({"spec": {"n": 1}}, entry({"f:spec": {"f:n": {}}}, manager, operation, **settings))

    assert ({}, "") == (owned(obj, "us"), owned_digest(obj, "us"))
    assert ({"spec": {"n": 1}} if subresource == "status" else {}) == owned(obj, "us", "status")


@pytest.mark.parametrize(
    "managed", [None, [], [{}], [entry({})], [{"manager": "us", "operation": "Apply", "fieldsV1": None}]]
)
def test_a13_an_object_without_managers_is_nobodys(managed: Any) -> None:
    """Absent, emptied or reset to [{}]: then nothing is ours (rule A13)."""
    obj = live({"spec": {"n": 1}})
    obj["metadata"]["managedFields"] = managed

    assert ({}, "") == (owned(obj, "us"), owned_digest(obj, "us"))
    assert frozenset() == owners_of(obj, ("spec", "n"))


def test_a13_the_digest_is_that_of_the_manifest() -> None:
    """Equal digests mean that an apply would change nothing; the address is no part of it."""
    body = {"metadata": {"labels": {"a": "1"}}, "data": {"k": "v"}}
    fields = {"f:metadata": {"f:labels": {".": {}, "f:a": {}}}, "f:data": {".": {}, "f:k": {}}}
    manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "x", "labels": {"a": "1"}},
        "data": {"k": "v"},
    }

    assert Manifest.of(manifest).digest == owned_digest(live(body, entry(fields)), "us")


def test_a13_a_recorded_deployment_projects_to_its_manifest() -> None:
    """As Kubernetes 1.36.3 answered the apply of test/support/projection_manifests.py."""
    recorded = json.loads((Path(__file__).parent / "data" / "live_deployment.json").read_text())

    assert intent(deployment("proj")) == owned(recorded, "modelfleet-controller")


def test_a13_the_order_of_applied_items_matters_and_their_neighbours_do_not() -> None:
    """Reordering our items is drift; an item of others between them is not (rule A13)."""
    fields: Fields = {"f:n": {'k:{"name":"a"}': {"f:name": {}}, 'k:{"name":"b"}': {"f:name": {}}}}
    a, b, x = ({"name": name} for name in "abx")
    digests = [
        owned_digest(live({"n": items}, entry(fields)), "us") for items in ([a, b], [x, a, x, b], [b, a])
    ]

    assert digests[0] == digests[1] == digest_of({"n": [a, b]})
    assert digests[0] != digests[2]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (("spec", "replicas"), {"hpa", "us"}),
        (("spec", "selector", "matchLabels"), {"us"}),
        (("spec", "template"), {"editor"}),
        (("spec", "template", "spec"), {"editor"}),
        (("spec", "nothing"), set()),
        (("status",), {"kubelet"}),
    ],
)
def test_the_owners_of_a_field_include_those_of_an_atomic_value_around_it(
    path: tuple[str, ...], expected: set[str]
) -> None:
    """Who owns the whole decides its parts (rule A4: may replicas be left out?)."""
    obj = live(
        {},
        entry({"f:spec": {"f:replicas": {}, "f:selector": {}}}),
        entry({"f:spec": {"f:replicas": {}}}, "hpa", "Update", subresource="scale"),
        entry({"f:spec": {"f:template": {"f:spec": {"f:x": {}}}}}, "editor", "Update"),
        entry({"f:status": {}}, "kubelet", "Update", subresource="status"),
    )

    assert expected == owners_of(obj, path)


def test_i13_the_mutation_detector_names_who_was_changed() -> None:
    """A view that is no frozen value can be edited by its readers; tests find out (rule I13)."""
    store = store_of()
    labels = {"a": "1"}
    detector = MutationDetector(store)
    store.feed().put(item("one", 1, labels=labels))
    detector.verify()
    labels["a"] = "2"

    with pytest.raises(AssertionError, match=f"{CONFIG_MAP.kind} a/one was changed in the store"):
        detector.verify()
