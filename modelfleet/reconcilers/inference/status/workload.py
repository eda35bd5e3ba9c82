"""`WorkloadReady`: the pods the spec asks for run, all of them on the newest template.

A Deployment's own `Available` stays True while a rollout that will never succeed goes on next to the old pods
(kserve#4626), so it is not asked. Asked are the numbers, and only once the Deployment controller has seen the
generation they belong to (ai-runway/airunway#422).
"""

from modelfleet.api.meta import ConditionType, WorkloadReason
from modelfleet.kube.objects import Item
from modelfleet.plan import Condition, Outcomes
from modelfleet.plan.status import ConditionStatus
from modelfleet.reconcilers.inference.apis import DEPLOYMENT
from modelfleet.reconcilers.inference.observe import Observed
from modelfleet.reconcilers.inference.status.pods import diagnose
from modelfleet.reconcilers.inference.status.refusals import behind, hindrance
from modelfleet.reconcilers.inference.status.wording import condition, steady
from modelfleet.reconcilers.inference.views import DeploymentView, find


def workload_ready(observed: Observed, outcomes: Outcomes) -> Condition:
    """Judge the Deployment and its pods."""
    seen = observed.seen[DEPLOYMENT]
    if (hindered := hindrance(ConditionType.WORKLOAD_READY, DEPLOYMENT, seen, outcomes)) is not None:
        return hindered
    live = seen.named(observed.key.name)
    if live is not None and live.meta.deleting:
        return _progressing("the Deployment is being deleted; a new one follows")
    if live is None or not deployment_settled(observed, live):
        return _progressing(behind(outcomes, DEPLOYMENT))
    if live.view.observed_generation < live.meta.generation:
        return _progressing("the Deployment controller has not acted on the Deployment's latest spec")
    return _judge(observed, live.view)


def deployment_settled(observed: Observed, live: Item[DeploymentView]) -> bool:
    """Whether the live Deployment is what the spec asks for, whoever holds its replica count right now."""
    if observed.wanted is None:
        return True
    own = observed.step.own
    if own is not None and own != live.view.replicas:
        return False
    return live.digest in (
        observed.intents[DEPLOYMENT].digest,
        observed.wanted.deployment(live.view.replicas).digest,
    )


def deadline_exceeded(observed: Observed) -> bool:
    """Whether the Deployment has made no progress for longer than spec.rollout.progressDeadlineSeconds."""
    live = observed.seen[DEPLOYMENT].named(observed.key.name)
    if live is None or live.view.observed_generation < live.meta.generation:
        return False
    progressing = find(live.view.conditions, "Progressing")
    return progressing is not None and progressing.false and progressing.reason == "ProgressDeadlineExceeded"


def _judge(observed: Observed, view: DeploymentView) -> Condition:
    complete = view.replicas == view.updated == view.existing == view.available
    if complete and view.replicas == 0:
        if observed.wanted is not None and observed.wanted.suspended:
            return _condition("True", WorkloadReason.SUSPENDED, "spec.suspend is true; no pods run")
        return _condition("True", WorkloadReason.SCALED_TO_ZERO, "no pods run and none are asked for")
    if complete:
        return _condition(
            "True", WorkloadReason.AVAILABLE, f"{view.available} of {view.replicas} replicas are available"
        )
    if view.replicas == 0:
        return _progressing(f"{view.existing} pods are still shutting down")
    return _not_ready(observed, view)


def _not_ready(observed: Observed, view: DeploymentView) -> Condition:
    failure = find(view.conditions, "ReplicaFailure")
    if failure is not None and failure.true:
        quota = "exceeded quota" in failure.message
        reason = WorkloadReason.QUOTA_EXCEEDED if quota else WorkloadReason.REPLICA_FAILURE
        return _condition("False", reason, f"pods can't be created: {steady(failure.message)}")
    diagnosis = diagnose(observed.pods)
    if diagnosis is not None:
        former = view.existing > view.updated and view.available > 0
        if former and diagnosis.reason is WorkloadReason.UNSCHEDULABLE:
            message = f"pods of the former spec keep running because {diagnosis.message}"
            return _condition("False", WorkloadReason.ROLLOUT_BLOCKED, message)
        return _condition("False", diagnosis.reason, diagnosis.message)
    counts = f"{view.updated} of {view.replicas} replicas are up to date, {view.available} are available"
    if deadline_exceeded(observed):
        return _condition("False", WorkloadReason.PROGRESS_DEADLINE_EXCEEDED, counts)
    return _progressing(counts)


def _progressing(message: str) -> Condition:
    return _condition("False", WorkloadReason.PROGRESSING, message)


def _condition(status: ConditionStatus, reason: WorkloadReason, message: str) -> Condition:
    return condition(ConditionType.WORKLOAD_READY, status, reason, message)
