"""The Deployment, with and without a replica count, and the hand-over of that count."""

from typing import Any

from modelfleet.api.core import Probe
from modelfleet.api.inference import InferenceService
from modelfleet.compiler.identity import child, selector
from modelfleet.compiler.pod import pod_template

API_VERSION = "apps/v1"
KIND = "Deployment"

_HISTORY = 2
"""ReplicaSets kept for `kubectl rollout undo`; each one more is an object per service in every cache."""
_DEFAULT_SHARE = "25%"
"""maxSurge and maxUnavailable of apps/v1, written out so that removing ours from the spec takes effect."""
_DEFAULT_DEADLINE = 600
"""progressDeadlineSeconds of apps/v1, in seconds."""
_DEADLINE_MARGIN = 60
"""Seconds added to the startup probe's budget: scheduling and starting come before the first check."""
_PERIOD, _FAILURES, _TIMEOUT = 10, 3, 1
"""Defaults of a probe: periodSeconds, failureThreshold, timeoutSeconds (core/v1)."""


def deployment(isvc: InferenceService, *, owner_uid: str | None) -> dict[str, Any]:
    """The Deployment without spec.replicas, which is not always ours to decide."""
    spec = {
        "revisionHistoryLimit": _HISTORY,
        "progressDeadlineSeconds": _deadline(isvc),
        "selector": {"matchLabels": selector(isvc)},
        "strategy": _strategy(isvc),
        "template": pod_template(isvc),
    }
    return child(isvc, API_VERSION, KIND, spec, owner_uid=owner_uid)


def with_replicas(body: dict[str, Any], count: int | None) -> dict[str, Any]:
    """The same Deployment with a replica count; None leaves it out."""
    return body if count is None else {**body, "spec": {"replicas": count, **body["spec"]}}


def replicas_only(isvc: InferenceService, count: int | None) -> dict[str, Any]:
    """The full intent of the field manager that takes the replica count over; None: it decides nothing."""
    metadata = {"name": isvc.metadata.name, "namespace": isvc.metadata.namespace}
    spec = {} if count is None else {"spec": {"replicas": count}}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, **spec}


def _strategy(isvc: InferenceService) -> dict[str, Any]:
    rollout = isvc.spec.rollout
    surge = rollout.max_surge if rollout is not None else None
    unavailable = rollout.max_unavailable if rollout is not None else None
    return {
        "type": "RollingUpdate",
        "rollingUpdate": {
            "maxSurge": _DEFAULT_SHARE if surge is None else surge,
            "maxUnavailable": _DEFAULT_SHARE if unavailable is None else unavailable,
        },
    }


def _deadline(isvc: InferenceService) -> int:
    """Seconds; a model that may load for half an hour must not be reported as stuck after ten minutes."""
    rollout, probe = isvc.spec.rollout, isvc.spec.container.startup_probe
    if rollout is not None and rollout.progress_deadline_seconds is not None:
        return rollout.progress_deadline_seconds
    if probe is None:
        return _DEFAULT_DEADLINE
    return max(_DEFAULT_DEADLINE, _budget(probe) + _DEADLINE_MARGIN)


def _budget(probe: Probe) -> int:
    """Seconds until a startup probe gives up, counted from the container's start."""
    checks = (probe.period_seconds or _PERIOD) * (probe.failure_threshold or _FAILURES)
    return probe.initial_delay_seconds + checks + (probe.timeout_seconds or _TIMEOUT)
