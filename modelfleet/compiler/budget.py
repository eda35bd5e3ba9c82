"""The PodDisruptionBudget, when the spec asks for one."""

from typing import Any

from modelfleet.api.inference import InferenceService
from modelfleet.compiler.identity import child, selector

API_VERSION = "policy/v1"
KIND = "PodDisruptionBudget"


def pod_disruption_budget(isvc: InferenceService, *, owner_uid: str | None) -> dict[str, Any] | None:
    """policy/v1 PodDisruptionBudget; None when the spec asks for none."""
    rollout = isvc.spec.rollout
    if rollout is None or rollout.pod_disruption_budget is None:
        return None
    spec = {"selector": {"matchLabels": selector(isvc)}, **rollout.pod_disruption_budget.wire()}
    return child(isvc, API_VERSION, KIND, spec, owner_uid=owner_uid)
