"""`ScalingReady`: KEDA does with the Deployment what the triggers say. Absent without triggers.

KEDA's conditions carry neither observedGeneration nor times, and `Ready` alone does not mean that the model
can scale (keda#7914): pauses, fallbacks and a HorizontalPodAutoscaler without metrics are
told by other conditions. That KEDA has not seen an edit shows only where its status repeats the spec: the
pause, and the types of the triggers; everything else is taken at its word.
"""

from modelfleet.api.meta import ConditionType, ScalingReason
from modelfleet.compiler import Children
from modelfleet.kube.objects import Item
from modelfleet.plan import Condition, Outcomes
from modelfleet.plan.status import ConditionStatus
from modelfleet.reconcilers.inference.apis import SCALED_OBJECT
from modelfleet.reconcilers.inference.observe import Observed
from modelfleet.reconcilers.inference.status.refusals import behind, hindrance
from modelfleet.reconcilers.inference.status.wording import condition, steady
from modelfleet.reconcilers.inference.views import LiveCondition, ScaledObjectView, find

_PAUSED_PREFIX = "autoscaling.keda.sh/paused"
"""paused, paused-replicas, paused-scale-in, paused-scale-out."""
_TAKEN = "already managed by"
"""KEDA's words for a target or autoscaler that another ScaledObject or HPA has (scaledobject_webhook.go)."""


def scaling_ready(observed: Observed, outcomes: Outcomes) -> Condition | None:
    """Judge the ScaledObject; None without triggers."""
    wanted = observed.wanted
    if wanted is None or not wanted.scaled:
        return None
    seen = observed.seen[SCALED_OBJECT]
    if (hindered := hindrance(ConditionType.SCALING_READY, SCALED_OBJECT, seen, outcomes)) is not None:
        taken = _TAKEN in hindered.message
        return _condition("False", ScalingReason.CONFLICTING_SCALER, hindered.message) if taken else hindered
    live = seen.named(wanted.name)
    if live is not None and live.meta.deleting:
        return _waiting("the ScaledObject is being deleted; a new one follows")
    if live is None or live.digest != observed.intents[SCALED_OBJECT].digest:
        return _waiting(behind(outcomes, SCALED_OBJECT))
    expected = ",".join(dict.fromkeys(trigger.type for trigger in wanted.isvc.spec.scaling.triggers))
    return _judge(wanted, live, expected)


def _judge(wanted: Children, live: Item[ScaledObjectView], triggers: str) -> Condition:
    conditions = live.view.conditions
    ready = find(conditions, "Ready")
    if ready is None or (ready.status == "Unknown" and not ready.reason):
        return _waiting("KEDA has not answered: check that its operator runs and watches this namespace")
    paused = find(conditions, "Paused")
    if (pause := _pause(wanted, live, paused is not None and paused.true)) is not None:
        return pause
    if not ready.true:
        return _not_ready(ready)
    if live.view.trigger_types not in ("", triggers):
        return _waiting(f"KEDA still acts on the former triggers ({live.view.trigger_types})")
    return _ready(live.view)


def _pause(wanted: Children, live: Item[ScaledObjectView], paused: bool) -> Condition | None:  # noqa: FBT001
    if wanted.suspended:
        if paused:
            return _condition(
                "True", ScalingReason.SUSPENDED, "spec.suspend is true; KEDA is paused at 0 replicas"
            )
        return _waiting("KEDA has not paused yet")
    annotations = sorted(name for name in live.meta.annotations if name.startswith(_PAUSED_PREFIX))
    if annotations:
        message = f"someone paused the ScaledObject: remove its annotation {annotations[0]} to resume"
        return _condition("False", ScalingReason.PAUSED, message)
    return _waiting("KEDA has not resumed yet") if paused else None


def _not_ready(ready: LiveCondition) -> Condition:
    if ready.reason in ("TriggerError", "PartialTriggerError"):
        return _condition("False", ScalingReason.TRIGGER_ERROR, f"KEDA: {steady(ready.message)}")
    taken = _TAKEN in ready.message
    reason = ScalingReason.CONFLICTING_SCALER if taken else ScalingReason.SCALED_OBJECT_CHECK_FAILED
    return _condition("False", reason, f"KEDA: {steady(ready.message)}")


def _ready(view: ScaledObjectView) -> Condition:
    fallback, hpa, active = (find(view.conditions, kind) for kind in ("Fallback", "HPAActive", "Active"))
    if fallback is not None and fallback.true:
        return _condition(
            "False", ScalingReason.FALLBACK, f"a trigger fails; KEDA: {steady(fallback.message)}"
        )
    if hpa is not None and hpa.false:
        message = f"KEDA: {hpa.reason}: {steady(hpa.message)}"
        return _condition("False", ScalingReason.HPA_METRICS_UNAVAILABLE, message)
    if active is None or active.status == "Unknown":
        return _waiting("KEDA has not evaluated the triggers yet")
    if active.true:
        return _condition("True", ScalingReason.ACTIVE, "at least one trigger is active")
    return _condition("True", ScalingReason.IDLE, "no trigger is active")


def _waiting(message: str) -> Condition:
    return _condition("Unknown", ScalingReason.KEDA_NOT_ANSWERING, message)


def _condition(status: ConditionStatus, reason: ScalingReason, message: str) -> Condition:
    return condition(ConditionType.SCALING_READY, status, reason, message)
