"""The CustomResourceDefinition on a real API server, and our copy of core/v1 against the server's own."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from modelfleet.api.base import ApiObject
from modelfleet.api.core import Container, Pod
from modelfleet.api.schema import Schema, object_schema
from modelfleet.api.validate import parse
from modelfleet.compiler import compile_inference
from modelfleet.plan import Api
from test.support.cluster import Kubectl
from test.support.kinds import CRD, DEPLOYMENT, DISRUPTION_BUDGET, INFERENCE_SERVICE, SERVICE, path_of
from test.support.world import Object, World

pytestmark = pytest.mark.contract

SPECS = [
    pytest.param(case["spec"], id=f"{path.stem}: {case['name']}")
    for path in sorted((Path(__file__).parent / "schema").glob("*.yaml"))
    for case in yaml.safe_load(path.read_text())
    if "refused" not in case and "old" not in case and "spec" in case and not case.get("keep_nulls")
]
CHILDREN = {api.kind: api for api in (DEPLOYMENT, SERVICE, DISRUPTION_BUDGET)}

STATUS: Object = {
    "observedGeneration": 1,
    "conditions": [
        {
            "type": "Ready",
            "status": "False",
            "reason": "Progressing",
            "message": "1 of 2 pods are ready",
            "lastTransitionTime": "2026-01-31T12:00:00Z",
            "observedGeneration": 1,
        },
        {
            "type": "Serving",
            "status": "True",
            "reason": "Serving",
            "message": "",
            "lastTransitionTime": "2026-01-31T12:00:00Z",
        },
    ],
    "url": "http://models.example.com/",
    "address": {"url": "http://qwen.models.svc.cluster.local:80"},
    "replicas": {"desired": 2, "updated": 2, "ready": 1},
    "scaling": {"mode": "Triggers", "active": True, "triggers": [{"name": "s0-kafka-jobs", "active": True}]},
    "summary": {"replicas": "1/2"},
}


def _isvc(namespace: str, spec: Object) -> Object:
    container = {"image": "registry.example.com/server:1.0"} | spec.get("container", {})
    return {
        "apiVersion": INFERENCE_SERVICE.api_version,
        "kind": INFERENCE_SERVICE.kind,
        "metadata": {"name": "qwen", "namespace": namespace},
        "spec": {**spec, "container": container},
    }


async def test_server_serves_the_crd(api: World) -> None:
    """The schema is structural and its rules fit into the cost budget, else the server would say so here."""
    crd = await api.get(CRD, "", INFERENCE_SERVICE.qualified)
    conditions = {each["type"]: each["status"] for each in crd["status"]["conditions"]}
    assert {"NamesAccepted": "True", "Established": "True"} == conditions


async def test_columns(api: World, kubectl: Kubectl, namespace: str) -> None:
    """`kubectl get` prints the columns of api.md from a status that the schema lets in."""
    spec = {"scaling": {"minReplicas": 2, "maxReplicas": 3}}
    created = await api.create(INFERENCE_SERVICE, _isvc(namespace, spec))
    await api.request(
        "PUT",
        path_of(INFERENCE_SERVICE, namespace, "qwen", "status"),
        created | {"status": STATUS},
        fieldValidation="Strict",
    )
    narrow = kubectl("get", "isvc", "-n", namespace).splitlines()
    wide = kubectl("get", "modelfleet", "-n", namespace, "-o", "wide").splitlines()
    assert ["NAME", "READY", "REASON", "REPLICAS", "URL", "AGE"] == narrow[0].split()
    assert ["qwen", "False", "Progressing", "1/2", "http://models.example.com/"] == narrow[1].split()[:5]
    assert ["SERVING", "MIN", "MAX", "MESSAGE"] == wide[0].split()[-4:]
    assert wide[1].rstrip().endswith("True      2     3     1 of 2 pods are ready")


async def test_explain_teaches(kubectl: Kubectl) -> None:
    """`kubectl explain` says what a field does, its unit and its default."""
    text = " ".join(kubectl("explain", "inferenceservice.spec.scaling.cooldownPeriod").split())
    assert "Seconds from the last activity of a trigger until the model goes to zero. Default 300." in text


async def test_server_fills_in_the_same_defaults(api: World, namespace: str) -> None:
    """What is stored for the smallest object is what `parse` makes of it."""
    created = await api.create(INFERENCE_SERVICE, _isvc(namespace, {}))
    spec = parse(_isvc(namespace, {})).spec
    stored = created["spec"]
    assert (1, 80, 8080, False, False) == (
        stored["scaling"]["minReplicas"],
        stored["service"]["port"],
        stored["container"]["port"],
        stored["service"]["headless"],
        stored["suspend"],
    )
    assert parse(created).spec == spec


@pytest.mark.parametrize("spec", SPECS)
async def test_accepted_means_accepted_in_the_children_too(api: World, namespace: str, spec: Object) -> None:
    """The API server takes every child of an accepted object, without unknown fields."""
    children = compile_inference(parse(_isvc(namespace, spec)), owner_uid=None).at_birth
    for manifest in children:
        if child := CHILDREN.get(manifest.body["kind"]):
            await _dry_run(api, child, namespace, dict(manifest.body))


async def _dry_run(api: World, child: Api, namespace: str, body: Object) -> None:
    await api.request("POST", path_of(child, namespace), body, dryRun="All", fieldValidation="Strict")


async def test_core_types_are_those_of_core_v1(api: World) -> None:
    """Each core field we type exists in core/v1 under this name and with this type."""
    server = (await api.request("GET", "/openapi/v3/api/v1"))["components"]["schemas"]
    ours = [(Container, "Container", {"port"}), (Pod, "PodSpec", {"labels", "annotations"})]
    differing = [
        difference
        for model, name, added in ours
        for difference in _differences(
            _without(model, added), server[f"io.k8s.api.core.v1.{name}"], server, name
        )
    ]
    assert [] == differing


def _without(model: type[ApiObject], names: set[str]) -> Schema:
    schema = object_schema(model)
    kept = {name: value for name, value in schema["properties"].items() if name not in names}
    return schema | {"properties": kept}


def _differences(ours: Schema, theirs: Schema, server: Mapping[str, Schema], where: str) -> Iterator[str]:
    theirs = _resolved(theirs, server)
    if ours.get("x-kubernetes-int-or-string"):
        scalar = (
            theirs.get("format") == "int-or-string" or "oneOf" in theirs or theirs.get("type") == "string"
        )
        if not scalar:
            yield f"{where}: int-or-string here, {theirs} there"
        return
    if ours["type"] != theirs.get("type"):
        yield f"{where}: {ours['type']} here, {theirs.get('type')} there"
        return
    for name, field in ours.get("properties", {}).items():
        if name in theirs.get("properties", {}):
            yield from _differences(field, theirs["properties"][name], server, f"{where}.{name}")
        else:
            yield f"{where}.{name}: unknown to core/v1"
    for name in set(theirs.get("required", ())) & set(ours.get("properties", {})) - set(
        ours.get("required", ())
    ):
        yield f"{where}.{name}: required by core/v1"
    for child in ("items", "additionalProperties"):
        if isinstance(ours.get(child), dict) and isinstance(theirs.get(child), dict):
            yield from _differences(ours[child], theirs[child], server, f"{where}[]")


def _resolved(schema: Schema, server: Mapping[str, Schema]) -> Schema:
    """Follow references; the server wraps them in allOf to add a description."""
    while True:
        if "allOf" in schema:
            schema = schema["allOf"][0]
        elif "$ref" in schema:
            schema = server[schema["$ref"].rsplit("/", 1)[1]]
        else:
            return schema
