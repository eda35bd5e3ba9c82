"""Views take what decisions read from the wire objects, absent fields included."""

from typing import Any

import pytest

from modelfleet.reconcilers.inference import views
from modelfleet.reconcilers.inference.views import (
    ContainerState,
    DeploymentView,
    EndpointSliceView,
    HTTPRouteView,
    ParentReference,
    PodView,
    ScaledObjectView,
)


def wire(**parts: Any) -> dict[str, Any]:
    """An object with a name and a namespace."""
    metadata = {"name": "echo", "namespace": "models", **parts.pop("metadata", {})}
    return {"metadata": metadata, **parts}


def test_objects_without_a_status() -> None:
    """A newborn object has an empty view, not an exception."""
    assert DeploymentView(replicas=1, replica_owners=frozenset()) == views.view_deployment(wire(spec={}))
    assert ScaledObjectView() == views.view_scaled_object(wire())
    assert HTTPRouteView() == views.view_http_route(wire(status={"parents": None}))
    assert PodView(template_hash="") == views.view_pod(wire())
    assert EndpointSliceView(service="", ready=0) == views.view_endpoint_slice(wire(endpoints=None))


def test_deployment() -> None:
    """Numbers, conditions and who owns the count; a count of 0 is 0."""
    fields: dict[str, Any] = {"f:spec": {"f:replicas": {}}}
    managed = [
        {"manager": "modelfleet-replicas", "operation": "Apply", "fieldsV1": fields},
        {"manager": "keda", "operation": "Update", "subresource": "scale", "fieldsV1": fields},
        {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {"f:paused": {}}}},
    ]
    status = {
        "observedGeneration": 3,
        "replicas": 4,
        "updatedReplicas": 3,
        "readyReplicas": 2,
        "availableReplicas": 1,
    }
    view = views.view_deployment(
        wire(metadata={"managedFields": managed}, spec={"replicas": 0}, status=status)
    )
    assert frozenset({"modelfleet-replicas", "keda"}) == view.replica_owners
    assert (0, 3, 4, 3, 2, 1) == (
        view.replicas,
        view.observed_generation,
        view.existing,
        view.updated,
        view.ready,
        view.available,
    )


def test_pod() -> None:
    """Init containers first; the current end of a container wins over its former one."""
    ended = {"terminated": {"exitCode": 1, "reason": "Error"}}
    status = {
        "phase": "Pending",
        "conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1"}
        ],
        "initContainerStatuses": [{"name": "init", "ready": True, "state": ended}],
        "containerStatuses": [
            {
                "name": "model",
                "state": {"waiting": {"reason": "X", "message": "y"}},
                "lastState": ended,
                "restartCount": 2,
            }
        ],
    }
    expected = PodView(
        template_hash="abc",
        phase="Pending",
        unschedulable="0/1",
        containers=(
            ContainerState("init", init=True, ready=True, ended="Error", exit_code=1),
            ContainerState("model", restarts=2, waiting="X", waiting_message="y", ended="Error", exit_code=1),
        ),
    )
    assert expected == views.view_pod(wire(metadata={"labels": {"pod-template-hash": "abc"}}, status=status))


@pytest.mark.parametrize(
    ("rivals", "manager", "operation"),
    [
        ((), "modelfleet-controller", "Apply"),
        (((81, "TCP"),), "kubectl-edit", "Update"),
        (((81, "TCP"),), "modelfleet-controller", "Update"),
        (((81, "TCP"),), "helm", "Apply"),
    ],
)
def test_ports_in_the_way(rivals: tuple[tuple[int, str], ...], manager: str, operation: str) -> None:
    """A port of our name is a rival when anything but our own apply holds it."""
    ports = [{"name": "http", "port": 81}, {"name": "metrics", "port": 9090, "protocol": "TCP"}]
    fields: dict[str, Any] = {
        "f:spec": {"f:ports": {".": {}, 'k:{"port":81,"protocol":"TCP"}': {".": {}, "f:port": {}}}}
    }
    managed = [{"manager": manager, "operation": operation, "fieldsV1": fields}]
    view = views.view_service(wire(metadata={"managedFields": managed}, spec={"ports": ports}))
    assert rivals == view.rivals
    assert b'[{"name":"metrics","port":9090,"protocol":"TCP"}]' == view.others


@pytest.mark.parametrize(
    ("expected", "conditions"),
    [(1, {"ready": True}), (0, {"ready": False}), (1, {}), (1, None), (0, {"ready": False, "serving": True})],
)
def test_endpoint(expected: int, conditions: dict[str, bool] | None) -> None:
    """An endpoint that says nothing is ready (KEP-752); a terminating one that still serves is not."""
    labels = {"kubernetes.io/service-name": "echo"}
    endpoint = {} if conditions is None else {"conditions": conditions}
    view = views.view_endpoint_slice(wire(metadata={"labels": labels}, endpoints=[endpoint]))
    assert EndpointSliceView(service="echo", ready=expected) == view


@pytest.mark.parametrize(
    ("expected", "reference"),
    [
        (("gateway.networking.k8s.io", "Gateway", "models", "g", "", 0), {"name": "g"}),
        (
            ("", "Service", "mesh", "s", "http", 80),
            {
                "group": "",
                "kind": "Service",
                "namespace": "mesh",
                "name": "s",
                "sectionName": "http",
                "port": 80,
            },
        ),
    ],
)
def test_parent_reference(expected: tuple[Any, ...], reference: dict[str, Any]) -> None:
    """The Gateway API's defaults are filled in, and an explicit core group is not taken for a missing one."""
    assert ParentReference(*expected) == views.parent_reference(reference, "models")


def test_scaled_object_does_not_look_at_what_ticks() -> None:
    """Counters and times in KEDA's status change no view, and so wake nobody up."""
    first = {
        "health": {"s0": {"status": "Failing", "numberOfFailures": 1}},
        "lastActiveTime": "2026-01-01T00:00:00Z",
    }
    later = {
        "health": {"s0": {"status": "Failing", "numberOfFailures": 9}},
        "lastActiveTime": "2026-01-02T00:00:00Z",
    }
    assert views.view_scaled_object(wire(status=first)) == views.view_scaled_object(wire(status=later))


@pytest.mark.parametrize("spec", [None, [], "text", 7, {"a": {"b": 1}}])
def test_an_inference_service_may_hold_anything(spec: object) -> None:
    """Whatever a laxer schema let in is kept as it is; judging it is not the view's business."""
    view = views.view_inference_service(wire(spec=spec))
    assert [] == view.conditions()
    assert view == views.view_inference_service(wire(spec=spec, status={}))
