"""The pod template: what the user wrote, under names that never change.

It changes only when the user changes a field of it; everything else, an upgrade of the controller included,
leaves it byte for byte as it was. Values the API server would fill in inside an atomic list or map are
written out, since we own such a value as a whole and an added default would look like drift (rule A2).
"""

from typing import Any

from modelfleet.api.inference import InferenceService, Model
from modelfleet.api.meta import (
    CONTAINER_NAME,
    MODEL_FORMAT_ANNOTATION,
    MODEL_NAME_ANNOTATION,
    MODEL_REVISION_ANNOTATION,
    PORT_NAME,
)
from modelfleet.compiler.identity import labels, selector

_ATOMIC_DEFAULTS: dict[str, dict[str, Any]] = {
    "fieldRef": {"apiVersion": "v1"},
    "resourceFieldRef": {"divisor": "0"},
    "serviceAccountToken": {"expirationSeconds": 3600},
}
"""Defaults of core/v1 inside atomic maps (fieldRef, resourceFieldRef) and lists (sources of a projection)."""


def pod_template(isvc: InferenceService) -> dict[str, Any]:
    """core/v1 PodTemplateSpec."""
    pod = isvc.spec.pod
    spec = pod.wire() if pod is not None else {}
    own_labels: dict[str, str] = spec.pop("labels", {})
    annotations: dict[str, str] = spec.pop("annotations", {})
    annotations |= _model_annotations(isvc.spec.model)
    metadata: dict[str, Any] = {"labels": own_labels | labels(isvc)}
    if annotations:
        metadata["annotations"] = annotations
    for constraint in spec.get("topologySpreadConstraints", ()):
        constraint.setdefault("labelSelector", {"matchLabels": selector(isvc)})
    spec["containers"] = [_container(isvc)]
    _write_out_defaults(spec)
    return {"metadata": metadata, "spec": spec}


def _container(isvc: InferenceService) -> dict[str, Any]:
    container = isvc.spec.container.wire()
    port = container.pop("port")
    return {
        "name": CONTAINER_NAME,
        "ports": [{"name": PORT_NAME, "containerPort": port, "protocol": "TCP"}],
        **container,
    }


def _model_annotations(model: Model | None) -> dict[str, str]:
    if model is None:
        return {}
    values = {
        MODEL_NAME_ANNOTATION: model.name,
        MODEL_REVISION_ANNOTATION: model.revision,
        MODEL_FORMAT_ANNOTATION: model.format,
    }
    return {key: value for key, value in values.items() if value}


def _write_out_defaults(value: Any) -> None:
    if isinstance(value, list):
        for item in value:
            _write_out_defaults(item)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(inner, dict):
                for name, default in _ATOMIC_DEFAULTS.get(key, {}).items():
                    inner.setdefault(name, default)
            _write_out_defaults(inner)
