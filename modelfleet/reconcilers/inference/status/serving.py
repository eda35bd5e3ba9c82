"""`Serving`: a request is answered now. The condition to alert on.

It says nothing about whether the spec has been carried out: while a rollout is stuck, the former pods go on
answering and Serving stays True.
"""

from modelfleet.api.meta import ConditionType, ServingReason
from modelfleet.plan import Condition
from modelfleet.plan.status import ConditionStatus
from modelfleet.reconcilers.inference.apis import DEPLOYMENT
from modelfleet.reconcilers.inference.observe import Observed
from modelfleet.reconcilers.inference.status.wording import condition


def serving(observed: Observed, scaling: Condition | None, route: Condition | None) -> Condition:
    """Judge the endpoints behind the Service, and the route in front of it where there is one."""
    ready = observed.ready_endpoints
    if ready == 0:
        return _silent(observed, scaling)
    if route is not None and not route.true:
        message = f"{_endpoints(ready)} ready but the route is not: {route.reason}: {route.message}"
        return _condition("False", ServingReason.ROUTE_NOT_READY, message)
    return _condition("True", ServingReason.SERVING, f"{_endpoints(ready)} ready")


def _silent(observed: Observed, scaling: Condition | None) -> Condition:
    """No pods are as it should be only while there is somebody to start them: alerts trust the reason."""
    if observed.wanted is not None and observed.wanted.suspended:
        return _condition("False", ServingReason.SUSPENDED, "spec.suspend is true")
    live = observed.seen[DEPLOYMENT].named(observed.key.name)
    if live is not None and live.view.replicas == 0 and scaling is not None and scaling.true:
        return _condition("False", ServingReason.SCALED_TO_ZERO, "no pods run until a trigger starts them")
    return _condition("False", ServingReason.NO_READY_ENDPOINTS, "no endpoint of the Service takes traffic")


def _endpoints(count: int) -> str:
    return "1 endpoint is" if count == 1 else f"{count} endpoints are"


def _condition(status: ConditionStatus, reason: ServingReason, message: str) -> Condition:
    return condition(ConditionType.SERVING, status, reason, message)
