"""The HTTPRoute: listeners, host names and path prefixes that lead to the Service.

`parentRefs`, `matches` and `backendRefs` are atomic lists, so the defaults the CRD puts inside them (group,
kind, weight) are written out: else the stored list would differ from ours for ever (rule A2). `sectionName`
is always there, because some gateways attach a route without it to the wrong listener (cilium#42159, #46359).
"""

from typing import Any

from modelfleet.api.inference import InferenceService
from modelfleet.api.route import ParentRef, Route
from modelfleet.compiler.identity import child

API_VERSION = "gateway.networking.k8s.io/v1"
KIND = "HTTPRoute"
_GATEWAY = {"group": "gateway.networking.k8s.io", "kind": "Gateway"}


def http_route(isvc: InferenceService, *, owner_uid: str | None) -> dict[str, Any] | None:
    """gateway.networking.k8s.io/v1 HTTPRoute; None when the spec asks for none."""
    route = isvc.spec.route
    if route is None:
        return None
    spec: dict[str, Any] = {"parentRefs": [_parent(parent) for parent in route.parent_refs]}
    if route.hostnames:
        spec["hostnames"] = list(route.hostnames)
    spec["rules"] = [_rule(isvc, route)]
    return child(isvc, API_VERSION, KIND, spec, owner_uid=owner_uid)


def _parent(parent: ParentRef) -> dict[str, Any]:
    return {**_GATEWAY, **parent.wire()}


def _rule(isvc: InferenceService, route: Route) -> dict[str, Any]:
    backend = {
        "group": "",
        "kind": "Service",
        "name": isvc.metadata.name,
        "port": isvc.spec.service.port,
        "weight": 1,
    }
    return {
        "matches": [{"path": {"type": "PathPrefix", "value": path}} for path in route.paths],
        "backendRefs": [backend],
        "timeouts": route.timeouts.wire(),
    }
