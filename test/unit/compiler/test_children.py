"""What the children promise, whatever the spec: identity, ownership, and nothing nobody asked for."""

from pathlib import Path
from typing import Any

import pytest

from modelfleet.api.validate import parse
from modelfleet.compiler import compile_inference
from test.unit.compiler.golden import OWNER_UID, SPECS, compiled, load

each_spec = pytest.mark.parametrize("spec", SPECS, ids=lambda path: path.stem)


def isvc(**spec: Any) -> dict[str, Any]:
    """A small InferenceService."""
    return {
        "apiVersion": "modelfleet.dev/v1alpha1",
        "kind": "InferenceService",
        "metadata": {"name": "echo", "namespace": "models"},
        "spec": {"container": {"image": "example.com/server:1"}, **spec},
    }


def template(body: dict[str, Any]) -> dict[str, Any]:
    """The pod template of an InferenceService."""
    found: dict[str, Any] = compiled(body).workload["spec"]["template"]
    return found


def walk(value: Any) -> list[Any]:
    """A JSON value and everything in it."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [value, *(found for one in inner for found in walk(one))]


@each_spec
def test_identity(spec: Path) -> None:
    """Every child has the owner's name, our two labels, and one controlling owner (A8)."""
    body = load(spec)
    name = body["metadata"]["name"]
    for manifest in compiled(body).at_birth:
        metadata = manifest.body["metadata"]
        assert (name, "models") == (metadata["name"], metadata["namespace"])
        labels = {"app.kubernetes.io/managed-by": "modelfleet", "modelfleet.dev/inferenceservice": name}
        assert labels == metadata["labels"]
        (owner,) = metadata["ownerReferences"]
        assert (name, OWNER_UID, True, True) == (
            owner["name"],
            owner["uid"],
            owner["controller"],
            owner["blockOwnerDeletion"],
        )


@each_spec
def test_the_selector_is_one_label_for_ever(spec: Path) -> None:
    """A Deployment's selector can't be changed, so nothing in a spec may change it (A9)."""
    body = load(spec)
    children = compiled(body)
    selector = {"modelfleet.dev/inferenceservice": body["metadata"]["name"]}
    assert {"matchLabels": selector} == children.workload["spec"]["selector"]
    assert selector == children.service.body["spec"]["selector"]
    assert selector.items() <= children.workload["spec"]["template"]["metadata"]["labels"].items()


@each_spec
def test_nothing_that_would_differ_on_every_pass(spec: Path) -> None:
    """No null, and no list or map that is empty by accident (A2)."""
    body = load(spec)
    for manifest in compiled(body).at_birth:
        for value in walk(manifest.body):
            assert value is not None
            assert value != []
    empty = [value for manifest in compiled(body).at_birth for value in walk(manifest.body) if value == {}]
    meant = 2 if spec.stem == "everything" else 0  # emptyDir: {} and a labelSelector that selects all
    assert meant == len(empty)


@each_spec
def test_a_deployment_without_a_count_says_nothing_about_it(spec: Path) -> None:
    """The field that a scaler owns is not in the intent, so applying the rest never touches it (A4)."""
    children = compiled(load(spec))
    assert "replicas" not in children.deployment(None).body["spec"]
    assert 7 == children.deployment(7).body["spec"]["replicas"]
    assert (
        children.deployment(7).body["spec"]["template"] == children.deployment(None).body["spec"]["template"]
    )


def test_the_hand_over_holds_the_count_alone() -> None:
    """The second field manager's full intent is one field."""
    assert {"replicas": 3} == compiled(isvc()).replicas(3).body["spec"]
    assert "spec" not in compiled(isvc()).replicas(None).body


def test_without_a_uid_there_is_no_owner_reference() -> None:
    """`render` has no stored object to refer to."""
    for manifest in compile_inference(parse(isvc()), owner_uid=None).at_birth:
        assert "ownerReferences" not in manifest.body["metadata"]


def test_without_a_namespace_none_is_made_up() -> None:
    """`render` leaves it to kubectl's context."""
    body = isvc()
    del body["metadata"]["namespace"]
    assert "namespace" not in compiled(body).service.body["metadata"]


def test_labels_and_annotations_of_the_owner_are_not_copied() -> None:
    """A GitOps tool prunes objects that carry its tracking label and are not in its repository."""
    body = isvc()
    body["metadata"] |= {
        "labels": {"app.kubernetes.io/instance": "x"},
        "annotations": {"a.example.com/b": "c"},
    }
    for manifest in compiled(body).at_birth:
        assert "app.kubernetes.io/instance" not in manifest.body["metadata"]["labels"]
        assert "annotations" not in manifest.body["metadata"]


@pytest.mark.parametrize(
    ("expected", "spec"),
    [
        (600, {}),
        (600, {"failureThreshold": 30}),
        (1861, {"failureThreshold": 180}),
        (661, {"failureThreshold": 60}),
        (1205, {"initialDelaySeconds": 60, "periodSeconds": 5, "failureThreshold": 216, "timeoutSeconds": 5}),
    ],
)
def test_the_deadline_is_above_the_startup_budget(expected: int, spec: dict[str, int]) -> None:
    """A model that may load for half an hour is not reported as stuck after ten minutes."""
    body = isvc()
    body["spec"]["container"]["startupProbe"] = {"tcpSocket": {"port": "http"}, **spec}
    assert expected == compiled(body).workload["spec"]["progressDeadlineSeconds"]


@pytest.mark.parametrize(
    "change",
    [
        {"scaling": {"minReplicas": 5}},
        {"service": {"port": 8443, "appProtocol": "http"}},
        {"suspend": True},
        {"route": {"parentRefs": [{"name": "g", "sectionName": "s"}]}},
        {"rollout": {"maxSurge": 0, "maxUnavailable": 1, "podDisruptionBudget": {"minAvailable": 1}}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_pods_roll_only_for_fields_of_the_pod(change: dict[str, Any]) -> None:
    """Scaling, service, route, rollout and suspend leave the template byte for byte as it was."""
    assert template(isvc()) == template(isvc(**change))


def test_a_new_revision_of_the_model_rolls_the_pods() -> None:
    """The raw identity is in annotations: a label value may hold no `/` and no 64th character."""
    model = {"name": "Qwen/Qwen3-8B", "revision": "a" * 100, "format": "safetensors"}
    expected = {
        "modelfleet.dev/model-name": "Qwen/Qwen3-8B",
        "modelfleet.dev/model-revision": "a" * 100,
        "modelfleet.dev/model-format": "safetensors",
    }
    assert expected == template(isvc(model=model))["metadata"]["annotations"]


def test_order_that_has_meaning_is_kept() -> None:
    """An environment variable may refer to an earlier one."""
    body = isvc()
    body["spec"]["container"]["env"] = [{"name": "B", "value": "1"}, {"name": "A", "value": "$(B)"}]
    assert ["B", "A"] == [one["name"] for one in template(body)["spec"]["containers"][0]["env"]]


def test_user_settings_of_the_pod_never_win_over_identity() -> None:
    """The labels our selector depends on are written last."""
    labels = {"team": "nlp", "app.kubernetes.io/part-of": "chat"}
    found = template(isvc(pod={"labels": labels, "annotations": {"example.com/a": "b"}}))["metadata"]
    assert "echo" == found["labels"]["modelfleet.dev/inferenceservice"]
    assert labels.items() <= found["labels"].items()
    assert {"example.com/a": "b"} == found["annotations"]


def test_triggers_pass_through_unchanged() -> None:
    """What KEDA understands is KEDA's business, fields we have never heard of included."""
    trigger = {
        "type": "external",
        "metadata": {"scalerAddress": "scaler:9090", "zeta": "1", "alpha": "2"},
        "authenticationRef": {"name": "auth"},
        "novelty": {"deep": [1, {"er": 2}]},
    }
    body = isvc(scaling={"maxReplicas": 2, "triggers": [trigger]})
    scaled_object = compiled(body).scaled_object
    assert scaled_object is not None
    assert [trigger] == scaled_object.body["spec"]["triggers"]


def test_a_trigger_keeps_empty_metadata() -> None:
    """KEDA's schema requires the field even where a scaler has no setting."""
    body = isvc(scaling={"maxReplicas": 2, "triggers": [{"type": "x", "metadata": {}}]})
    scaled_object = compiled(body).scaled_object
    assert scaled_object is not None
    assert [{"type": "x", "metadata": {}}] == scaled_object.body["spec"]["triggers"]


def test_the_longest_name_fits_every_child() -> None:
    """54 characters: KEDA's HPA is called keda-hpa-NAME and that is a label value."""
    body = isvc(scaling={"maxReplicas": 2, "triggers": [{"type": "x", "metadata": {}}]})
    body["metadata"]["name"] = "a" * 54
    assert {"a" * 54} == {manifest.body["metadata"]["name"] for manifest in compiled(body).at_birth}
    assert len("keda-hpa-" + "a" * 54) == 63
