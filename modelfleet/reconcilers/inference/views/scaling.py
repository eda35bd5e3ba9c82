"""What the planner and the status read of ScaledObjects and PodDisruptionBudgets."""

from collections.abc import Mapping
from typing import Any

import msgspec

from modelfleet.reconcilers.inference.views.conditions import LiveCondition, read_conditions


class ScaledObjectView(msgspec.Struct, frozen=True, gc=False):
    """KEDA's answer. It carries no observedGeneration, so staleness is judged by what it does carry."""

    conditions: tuple[LiveCondition, ...] = ()
    hpa: str = ""
    """Name of the HorizontalPodAutoscaler KEDA made; "" before the first pass and while paused."""
    trigger_types: str = ""
    """Trigger types of the spec KEDA last processed, joined by commas (KEDA 2.16+)."""
    activity: Mapping[str, bool] = {}
    """Metric name (`s<index>-<metric>`) to whether that trigger is active (KEDA 2.19+)."""
    failing: frozenset[str] = frozenset()
    """Metric names whose source KEDA can't read."""


def view_scaled_object(obj: Mapping[str, Any]) -> ScaledObjectView:
    """Decode keda.sh/v1alpha1 ScaledObject."""
    status = obj.get("status") or {}
    activity = status.get("triggersActivity") or {}
    return ScaledObjectView(
        conditions=read_conditions(status.get("conditions")),
        hpa=status.get("hpaName") or "",
        trigger_types=status.get("triggersTypes") or "",
        failing=frozenset(name for name, health in (status.get("health") or {}).items() if _fails(health)),
        activity={name: bool(entry.get("isActive")) for name, entry in sorted(activity.items())},
    )


def _fails(health: Mapping[str, Any]) -> bool:
    """KEDA's own verdict; its counter of failures ticks and is not looked at."""
    return health.get("status") == "Failing"


class PodDisruptionBudgetView(msgspec.Struct, frozen=True, gc=False):
    """Nothing but its existence is read of a budget."""


def view_pod_disruption_budget(_obj: Mapping[str, Any]) -> PodDisruptionBudgetView:
    """Decode policy/v1 PodDisruptionBudget."""
    return PodDisruptionBudgetView()
