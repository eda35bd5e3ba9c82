"""`Ready`, and `Reconciling` or `Stalled` beside it, as kstatus reads them.

Ready is True only when every part that applies is True; else it takes the reason and the message of the part
that keeps it. Reconciling and Stalled exist only while they are True, never both: Stalled when waiting can't
help (an invalid spec, a final refusal, a held name) or when a rollout has used up its deadline.
"""

from collections.abc import Iterator, Sequence

from modelfleet.api.meta import ConditionType, ReadyReason, ScalingReason, WorkloadReason
from modelfleet.plan import Condition, Outcomes, Problem
from modelfleet.reconcilers.inference.observe import Observed
from modelfleet.reconcilers.inference.status.refusals import needs_a_person, reason_of, refusal, words_of
from modelfleet.reconcilers.inference.status.wording import condition
from modelfleet.reconcilers.inference.status.workload import deadline_exceeded

_RESTING = (WorkloadReason.SUSPENDED, WorkloadReason.SCALED_TO_ZERO)
"""Reasons of a True WorkloadReady that Ready repeats, so that no pods is never mistaken for an outage."""


def ready(observed: Observed, outcomes: Outcomes, parts: Sequence[Condition]) -> Condition:
    """Judge the whole.

    Args:
        observed: What was seen.
        outcomes: What became of this pass's actions.
        parts: WorkloadReady first, then the other parts that apply.
    """
    if observed.item.meta.deleting:
        return condition(ConditionType.READY, "False", ReadyReason.TERMINATING, "the object is being deleted")
    if observed.violations:
        return condition(ConditionType.READY, "False", ReadyReason.INVALID_SPEC, _violations(observed))
    blocking = [part for part in parts if not part.true and not _rests(observed, part)]
    blocking.sort(key=lambda part: part.status != "False")
    if blocking:
        first = blocking[0]
        return condition(ConditionType.READY, first.status, first.reason, first.message)
    problem = refusal(outcomes, outcomes)
    if problem is not None:
        return condition(ConditionType.READY, "False", reason_of(problem), words_of(problem))
    workload = parts[0]
    reason = workload.reason if workload.reason in _RESTING else ReadyReason.READY
    return condition(ConditionType.READY, "True", reason, workload.message)


def progress(observed: Observed, outcomes: Outcomes, verdict: Condition) -> Condition | None:
    """Reconciling or Stalled; None when the object is ready or on its way out."""
    if verdict.true or observed.item.meta.deleting:
        return None
    if observed.violations or any(map(needs_a_person, _problems(outcomes))):
        problem = next(filter(needs_a_person, _problems(outcomes)), None)
        reason = reason_of(problem) if problem is not None else verdict.reason
        message = words_of(problem) if problem is not None else verdict.message
        return condition(ConditionType.STALLED, "True", reason, message)
    if deadline_exceeded(observed):
        reason = WorkloadReason.PROGRESS_DEADLINE_EXCEEDED
        message = f"the rollout made no progress for spec.rollout.progressDeadlineSeconds: {verdict.message}"
        return condition(ConditionType.STALLED, "True", reason, message)
    return condition(ConditionType.RECONCILING, "True", ReadyReason.PROGRESSING, verdict.message)


def _rests(observed: Observed, part: Condition) -> bool:
    """A suspended object needs no scaler: without KEDA nothing can bring its pods back."""
    suspended = observed.wanted is not None and observed.wanted.suspended
    return suspended and part.reason == ScalingReason.KEDA_NOT_INSTALLED


def _problems(outcomes: Outcomes) -> Iterator[Problem]:
    return (outcome.problem for outcome in outcomes.values() if outcome.problem is not None)


def _violations(observed: Observed) -> str:
    return "; ".join(f"{violation.path}: {violation.message}" for violation in observed.violations)
