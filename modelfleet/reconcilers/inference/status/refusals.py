"""What a failed action means for the condition of the part it concerns.

Passing troubles (a conflict, a throttled or unanswered request, a lost lease) turn no condition: they are
retried, and each would be a status write and an event for nothing.
"""

from collections.abc import Iterable

from modelfleet.api.meta import ConditionType, ReadyReason, RouteReason, ScalingReason, WorkloadReason
from modelfleet.kube.store import State
from modelfleet.plan import Api, Cause, Condition, Outcomes, Problem, Result
from modelfleet.reconcilers.inference.apis import HTTP_ROUTE, SCALED_OBJECT
from modelfleet.reconcilers.inference.observe import Seen
from modelfleet.reconcilers.inference.plan import action_name
from modelfleet.reconcilers.inference.status.wording import condition, steady

_PASSING = frozenset({Cause.STALE, Cause.NOT_FOUND, Cause.THROTTLED, Cause.UNREACHABLE, Cause.NOT_LEADING})
_TOLD_WHILE_BEHIND = frozenset({Cause.NOT_FOUND, Cause.THROTTLED, Cause.UNREACHABLE})
"""Passing troubles that may last, such as a webhook that is down: told where a part is behind anyway."""
_REASONS = {
    Cause.NAME_CONFLICT: ReadyReason.NAME_CONFLICT,
    Cause.FORBIDDEN: ReadyReason.FORBIDDEN,
    Cause.NAMESPACE_TERMINATING: ReadyReason.NAMESPACE_TERMINATING,
}
_NOT_INSTALLED = {
    SCALED_OBJECT: ScalingReason.KEDA_NOT_INSTALLED,
    HTTP_ROUTE: RouteReason.GATEWAY_API_NOT_INSTALLED,
}
_REMEDY = {
    SCALED_OBJECT: "install KEDA, or remove spec.scaling.triggers",
    HTTP_ROUTE: "install the Gateway API CRDs and a Gateway controller, or remove spec.route",
}


def refusal(outcomes: Outcomes, actions: Iterable[str]) -> Problem | None:
    """The first problem worth telling among the outcomes of these actions."""
    for name in actions:
        outcome = outcomes.get(name)
        if outcome is not None and outcome.problem is not None and outcome.problem.cause not in _PASSING:
            return outcome.problem
    return None


def behind(outcomes: Outcomes, api: Api) -> str:
    """Why a child is not yet what the spec asks for, while nothing stands in the way for good."""
    outcome = outcomes.get(action_name(api))
    problem = outcome.problem if outcome is not None else None
    detail = f": {words_of(problem)}" if problem is not None and problem.cause in _TOLD_WHILE_BEHIND else ""
    return f"the spec is newer than the {api.kind}{detail}"


def needs_a_person(problem: Problem) -> bool:
    """Whether neither retrying nor waiting can help (condition Stalled)."""
    return problem.terminal or problem.cause is Cause.NAME_CONFLICT


def reason_of(problem: Problem, api: Api | None = None) -> str:
    """The condition reason for a problem with the child of a kind."""
    if problem.cause is Cause.NOT_INSTALLED and api in _NOT_INSTALLED:
        return str(_NOT_INSTALLED[api])
    if problem.cause is Cause.QUOTA_EXCEEDED:
        return str(WorkloadReason.QUOTA_EXCEEDED)
    return str(_REASONS.get(problem.cause, ReadyReason.APPLY_FAILED))


def words_of(problem: Problem) -> str:
    """The problem for people; the cause says what `ApplyFailed` leaves open."""
    told = problem.cause in _REASONS
    return steady(problem.message) if told else f"{problem.cause}: {steady(problem.message)}"


def hindrance(kind: ConditionType, api: Api, seen: Seen, outcomes: Outcomes) -> Condition | None:
    """The condition of a part whose child can't be read or was refused; None when its child can be judged."""
    if seen.state is State.NOT_INSTALLED:
        reason = _NOT_INSTALLED.get(api, ReadyReason.APPLY_FAILED)
        remedy = _REMEDY.get(api, "use a cluster that serves it")
        return condition(kind, "False", reason, f"the cluster does not serve {api}: {remedy}")
    if seen.state is State.FORBIDDEN:
        return condition(kind, "False", ReadyReason.FORBIDDEN, seen.problem)
    if seen.state is State.SYNCING:
        return condition(
            kind, "Unknown", WorkloadReason.UNKNOWN, seen.problem or f"{api} have not been listed yet"
        )
    name = action_name(api)
    if name in outcomes and outcomes[name].result is Result.SKIPPED:
        blocked = f"the {api.kind} waits for a child it depends on, which could not be applied"
        return condition(kind, "False", ReadyReason.PROGRESSING, blocked)
    problem = refusal(outcomes, (name,))
    if problem is None:
        return None
    return condition(kind, "False", reason_of(problem, api), words_of(problem))
