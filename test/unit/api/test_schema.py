"""The generated schemas keep the promises of api.md."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import pytest
import yaml

from modelfleet.api.base import EXACT_MAX, ApiObject, Text
from modelfleet.api.crd import KINDS, SIZE_LIMIT, crds
from modelfleet.api.schema import SchemaError, object_schema

COMMITTED = Path(__file__).parents[3] / "manifests" / "crd"
CRDS = crds()


def root_of(crd: dict[str, Any]) -> dict[str, Any]:
    """The schema of a CRD's only version."""
    schema: dict[str, Any] = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema node with its path; items and values of maps are written [] and [*]."""
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}".lstrip("."))
    if "items" in schema:
        yield from nodes(schema["items"], f"{path}[]")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from nodes(schema["additionalProperties"], f"{path}[*]")


ALL = [(name, path, node) for name, crd in CRDS.items() for path, node in nodes(root_of(crd))]


@pytest.mark.parametrize("name", CRDS)
def test_committed_is_generated(name: str) -> None:
    """manifests/crd holds what the types say; else run `make manifests`."""
    assert CRDS[name] == yaml.safe_load((COMMITTED / f"{name}.yaml").read_text())


def test_nothing_else_is_committed() -> None:
    """No CRD of a kind that is gone stays behind."""
    assert {f"{name}.yaml" for name in CRDS} == {path.name for path in COMMITTED.iterdir()}


@pytest.mark.parametrize("name", CRDS)
def test_size(name: str) -> None:
    """`kubectl apply` keeps a copy in an annotation, which has 256 KiB."""
    assert SIZE_LIMIT > len(json.dumps(CRDS[name]))


def test_unknown_fields_are_kept_for_triggers_only() -> None:
    """CEL equality ignores unknown keys, so anything else that keeps them could smuggle fields in."""
    kept = [path for _, path, node in ALL if node.get("x-kubernetes-preserve-unknown-fields")]
    assert ["spec.scaling.triggers[]"] == kept


def test_no_host_path() -> None:
    """No field, at any depth, reaches into the node's file system."""
    assert [] == [path for _, path, _ in ALL if path.lower().endswith("hostpath")]


def test_lists() -> None:
    """The lists that are maps are those of api.md; everything else, `env` included, is atomic."""
    lists = {path: node for _, path, node in ALL if node.get("type") == "array"}
    maps = {
        path: node["x-kubernetes-list-map-keys"]
        for path, node in lists.items()
        if "x-kubernetes-list-map-keys" in node
    }
    assert {
        "spec.container.volumeMounts": ["mountPath"],
        "spec.pod.imagePullSecrets": ["name"],
        "spec.pod.volumes": ["name"],
        "status.conditions": ["type"],
    } == maps
    assert {"map"} == {lists[path]["x-kubernetes-list-type"] for path in maps}
    assert {"atomic"} == {node["x-kubernetes-list-type"] for path, node in lists.items() if path not in maps}


def test_everything_is_bounded() -> None:
    """An unbounded list, map, string or number makes rules exceed the API server's cost budget."""

    def bounded(node: Mapping[str, Any]) -> bool:
        if node.get("x-kubernetes-int-or-string"):
            return "maxLength" in node
        match node["type"]:
            case "string":
                return "maxLength" in node or "enum" in node
            case "array":
                return "maxItems" in node
            case "integer":
                return "minimum" in node and node["maximum"] <= EXACT_MAX
            case "object":
                return (
                    "properties" in node
                    or "maxProperties" in node
                    or "x-kubernetes-preserve-unknown-fields" in node
                )
            case _:
                return True

    server_own = ("apiVersion", "kind", "metadata", "metadata.name")
    assert [] == [path for _, path, node in ALL if path not in server_own and not bounded(node)]


def test_every_field_is_explained() -> None:
    """`kubectl explain` has a sentence for each field, which ends like one."""
    fields = [
        (path, node) for _, path, node in ALL if path and not path.endswith("]") and "metadata" not in path
    ]
    assert [] == [path for path, node in fields if not node.get("description", "").endswith(".")]


def test_messages_fit() -> None:
    """The API server refuses a rule whose message has several lines or more than 2048 characters."""
    messages = [rule["message"] for _, _, node in ALL for rule in node.get("x-kubernetes-validations", ())]
    assert [] == [message for message in messages if "\n" in message or len(message) > 2048]


def test_defaults() -> None:
    """The defaults of api.md are in the schema, spelled out on the objects around them."""
    defaults = {path: node["default"] for _, path, node in ALL if "default" in node}
    assert {
        "spec.container.port": 8080,
        "spec.route.paths": ["/"],
        "spec.route.timeouts": {"request": "0s"},
        "spec.route.timeouts.request": "0s",
        "spec.scaling": {"minReplicas": 1},
        "spec.scaling.minReplicas": 1,
        "spec.service": {"port": 80, "headless": False},
        "spec.service.headless": False,
        "spec.service.port": 80,
        "spec.suspend": False,
    } == defaults


def test_no_defaults_in_status() -> None:
    """We apply the whole status: a default that the server adds would look like somebody's change (A2)."""
    assert [] == [path for _, path, node in ALL if path.startswith("status") and "default" in node]


def test_names() -> None:
    """Short names and the category are what people type."""
    [kind] = KINDS
    names = CRDS[kind.crd_name]["spec"]["names"]
    assert (["isvc"], ["modelfleet"]) == (names["shortNames"], names["categories"])


class _Silent(ApiObject):
    name: Annotated[str, Text(max=1)]


class _Endless(ApiObject):
    name: str
    """A name."""


class _Strange(ApiObject):
    price: float
    """A price."""


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (_Silent, "_Silent.name has no docstring"),
        (_Endless, "_Endless.name needs a Text bound"),
        (_Strange, "_Strange.price: .* has no structural schema"),
    ],
)
def test_types_that_make_no_schema(model: type[ApiObject], message: str) -> None:
    """A field without a docstring, a bound or a structural type fails when the schema is made."""
    with pytest.raises(SchemaError, match=message):
        object_schema(model)
