"""The rest of the status: addresses, numbers and the strings of the printer columns.

Nothing here ticks, and every list has a fixed order: the same cluster gives the same bytes (facts 1.5).
"""

from collections.abc import Iterator
from typing import Any

from modelfleet.api.inference import InferenceService
from modelfleet.plan import Condition
from modelfleet.reconcilers.inference.apis import DEPLOYMENT, SCALED_OBJECT, SERVICE
from modelfleet.reconcilers.inference.observe import Observed
from modelfleet.reconcilers.inference.views import DeploymentView, ScaledObjectView, find


def status_fields(observed: Observed, route: Condition | None) -> dict[str, Any]:
    """Everything in status but its conditions and observedGeneration, in wire form."""
    return dict(_fields(observed, route))


def _fields(observed: Observed, route: Condition | None) -> Iterator[tuple[str, Any]]:
    name = observed.key.name
    if observed.spec is not None:
        if route is not None and route.true and (url := _url(observed.spec)) is not None:
            yield "url", url
        if observed.seen[SERVICE].named(name) is not None:
            yield "address", {"url": _address(observed.spec)}
        yield "scaling", _scaling(observed, observed.spec)
    deployment = observed.seen[DEPLOYMENT].named(name)
    if deployment is not None:
        view: DeploymentView = deployment.view
        yield "replicas", {"desired": view.replicas, "updated": view.updated, "ready": view.ready}
        yield "summary", {"replicas": f"{view.ready}/{view.replicas}"}


def _url(isvc: InferenceService) -> str | None:
    """Where the route leads from outside; a wildcard or a listener's own names give no one address.

    The scheme is http: whether a listener terminates TLS is the Gateway's to know, which is not read.
    """
    route = isvc.spec.route
    host = next((host for host in route.hostnames if not host.startswith("*")), None) if route else None
    return f"http://{host}{route.paths[0]}" if route is not None and host is not None else None


def _address(isvc: InferenceService) -> str:
    """Where the Service answers; the port is the Service's, or the pods' own when it has no cluster IP."""
    port = isvc.spec.container.port if isvc.spec.service.headless else isvc.spec.service.port
    return f"http://{isvc.metadata.name}.{isvc.metadata.namespace}.svc.cluster.local:{port}"


def _scaling(observed: Observed, isvc: InferenceService) -> dict[str, Any]:
    suspended, scaled = isvc.spec.suspend, bool(isvc.spec.scaling.triggers)
    scaling: dict[str, Any] = {"mode": "Suspended" if suspended else "Triggers" if scaled else "Fixed"}
    live = observed.seen[SCALED_OBJECT].named(isvc.metadata.name)
    if live is None or not scaled or suspended:
        return scaling
    active = find(live.view.conditions, "Active")
    if active is not None and active.status != "Unknown":
        scaling["active"] = active.true
    if triggers := _triggers(live.view):
        scaling["triggers"] = triggers
    return scaling


def _triggers(view: ScaledObjectView) -> list[dict[str, Any]]:
    names = sorted({*view.activity, *view.failing})
    return [_trigger(view, name) for name in names]


def _trigger(view: ScaledObjectView, name: str) -> dict[str, Any]:
    trigger: dict[str, Any] = {"name": name, "active": view.activity.get(name, False)}
    return {**trigger, "failing": True} if name in view.failing else trigger
