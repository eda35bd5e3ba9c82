"""`RouteReady`: every Gateway the spec names has accepted the route as it is now. Absent without a route.

`status.parents` is a list any controller may write to, for any parent, at any generation. Counted is an entry
for exactly our reference (group, kind, namespace, name, sectionName, port) with Accepted and ResolvedRefs
True at the route's current generation. No entry means that nobody has answered, which is neither acceptance
nor rejection (kserve#5986, #6072, #5582; envoyproxy/gateway#8861).
"""

from modelfleet.api.meta import ConditionType, RouteReason
from modelfleet.kube.objects import Item
from modelfleet.plan import Condition, Outcomes
from modelfleet.plan.status import ConditionStatus
from modelfleet.reconcilers.inference.apis import HTTP_ROUTE
from modelfleet.reconcilers.inference.observe import Observed
from modelfleet.reconcilers.inference.status.refusals import behind, hindrance
from modelfleet.reconcilers.inference.status.wording import condition, steady
from modelfleet.reconcilers.inference.views import (
    HTTPRouteView,
    ParentReference,
    RouteParent,
    find,
    parent_reference,
)

_RANK = {"False": 0, "Unknown": 1, "True": 2}
"""A refusal is told before a silence, a silence before an acceptance."""


def route_ready(observed: Observed, outcomes: Outcomes) -> Condition | None:
    """Judge the HTTPRoute; None when the spec asks for none."""
    intent = observed.intents.get(HTTP_ROUTE)
    if intent is None:
        return None
    seen = observed.seen[HTTP_ROUTE]
    if (hindered := hindrance(ConditionType.ROUTE_READY, HTTP_ROUTE, seen, outcomes)) is not None:
        return hindered
    live = seen.named(observed.key.name)
    if live is not None and live.meta.deleting:
        return _waiting("the HTTPRoute is being deleted; a new one follows")
    if live is None or live.digest != intent.digest:
        return _waiting(behind(outcomes, HTTP_ROUTE))
    references = [parent_reference(ref, observed.key.namespace) for ref in intent.body["spec"]["parentRefs"]]
    return min((_judge(reference, live) for reference in references), key=_rank)


def _judge(reference: ParentReference, live: Item[HTTPRouteView]) -> Condition:
    """The verdict for one parent. When several controllers claim it, one acceptance is enough."""
    entries = sorted(
        (entry for entry in live.view.parents if entry.parent == reference),
        key=lambda entry: entry.controller,
    )
    if not entries:
        return _waiting(
            f"no Gateway controller has answered for {reference}: check that it exists and that the "
            "controller of its GatewayClass runs"
        )
    return max((_entry(entry, live.meta.generation) for entry in entries), key=_rank)


def _entry(entry: RouteParent, generation: int) -> Condition:
    accepted, resolved = find(entry.conditions, "Accepted"), find(entry.conditions, "ResolvedRefs")
    where = f"{entry.parent}, reported by {entry.controller}"
    if accepted is None:
        return _waiting(f"{entry.controller} has not decided on {entry.parent}")
    for answer in (accepted, resolved):
        if answer is not None and 0 < answer.observed_generation < generation:
            message = f"{entry.controller} has judged a former spec of the route, not the current one"
            return _condition("Unknown", RouteReason.STALE_GATEWAY_STATUS, message)
    if accepted.false:
        message = f"{where}: {accepted.reason}: {steady(accepted.message)}"
        return _condition("False", RouteReason.NOT_ACCEPTED_BY_GATEWAY, message)
    if resolved is not None and resolved.false:
        message = f"{where}: {resolved.reason}: {steady(resolved.message)}"
        return _condition("False", RouteReason.REFS_NOT_RESOLVED, message)
    if not accepted.true or resolved is None or not resolved.true:
        return _waiting(f"{entry.controller} has not decided on {entry.parent}")
    return _condition("True", RouteReason.ACCEPTED, f"accepted by {where}")


def _rank(verdict: Condition) -> int:
    return _RANK[verdict.status]


def _waiting(message: str) -> Condition:
    return _condition("Unknown", RouteReason.NO_CONTROLLER_ANSWERED, message)


def _condition(status: ConditionStatus, reason: RouteReason, message: str) -> Condition:
    return condition(ConditionType.ROUTE_READY, status, reason, message)
