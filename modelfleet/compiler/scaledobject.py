"""The ScaledObject: the user's triggers, unchanged, and the bounds around them.

`suspend` keeps it and pauses KEDA at zero by annotation: without the object KEDA would restore nothing and
its autoscaler would be gone; with it and no pause it would bring the pods back.
"""

from typing import Any

from modelfleet.api.inference import InferenceService
from modelfleet.api.meta import CONTAINER_NAME
from modelfleet.api.scaling import Scaling, Trigger
from modelfleet.compiler import deployment
from modelfleet.compiler.identity import child

API_VERSION = "keda.sh/v1alpha1"
KIND = "ScaledObject"
PAUSED_REPLICAS = "autoscaling.keda.sh/paused-replicas"
"""KEDA scales to this number and stops (keda docs, "Pausing autoscaling")."""


def scaled_object(isvc: InferenceService, *, owner_uid: str | None) -> dict[str, Any] | None:
    """keda.sh/v1alpha1 ScaledObject; None without triggers."""
    scaling = isvc.spec.scaling
    if not scaling.triggers:
        return None
    spec: dict[str, Any] = {
        "scaleTargetRef": {
            "apiVersion": deployment.API_VERSION,
            "kind": deployment.KIND,
            "name": isvc.metadata.name,
            "envSourceContainerName": CONTAINER_NAME,
        },
        "minReplicaCount": scaling.min_replicas,
        **{key: value for key, value in _optional(scaling).items() if value is not None},
        "triggers": [_trigger(trigger) for trigger in scaling.triggers],
    }
    annotations = {PAUSED_REPLICAS: "0"} if isvc.spec.suspend else None
    return child(isvc, API_VERSION, KIND, spec, owner_uid=owner_uid, annotations=annotations)


def _trigger(trigger: Trigger) -> dict[str, Any]:
    """Unchanged but for what the server would drop; KEDA requires `metadata`, empty or not."""
    written = trigger.wire()
    written.setdefault("metadata", {})
    return written


def _optional(scaling: Scaling) -> dict[str, Any]:
    return {
        "maxReplicaCount": scaling.max_replicas,
        "pollingInterval": scaling.polling_interval,
        "cooldownPeriod": scaling.cooldown_period,
        "initialCooldownPeriod": scaling.initial_cooldown_period,
        "idleReplicaCount": scaling.idle_replica_count,
        "fallback": scaling.fallback.wire() if scaling.fallback is not None else None,
        "advanced": _advanced(scaling),
    }


def _advanced(scaling: Scaling) -> dict[str, Any] | None:
    advanced: dict[str, Any] = {}
    if scaling.behavior is not None:
        advanced["horizontalPodAutoscalerConfig"] = {"behavior": scaling.behavior.wire()}
    if scaling.scaling_modifiers is not None:
        advanced["scalingModifiers"] = scaling.scaling_modifiers.wire()
    return advanced or None
