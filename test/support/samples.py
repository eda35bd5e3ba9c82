"""InferenceServices for the tests, small and complete, and the answers of parts that are not there.

No KEDA operator and no gateway run in front of these tests (the node tests and e2e/ have the real ones):
`accept_route` and `scaler_ready` write the status those would.
"""

from typing import Any

from test.support.kinds import HTTP_ROUTE, SCALED_OBJECT
from test.support.world import Object, World

IMAGE = "registry.k8s.io/e2e-test-images/agnhost:2.53"
GATEWAY = {"name": "shared", "namespace": "gateway", "sectionName": "http"}
CRON = {
    "type": "cron",
    "metadata": {"timezone": "UTC", "start": "0 0 * * *", "end": "59 23 * * *", "desiredReplicas": "2"},
}
SCALED: dict[str, Any] = {"minReplicas": 1, "maxReplicas": 3, "triggers": [CRON]}
ROUTED: dict[str, Any] = {"parentRefs": [GATEWAY], "hostnames": ["model.example.com"]}


def service(namespace: str, name: str, **spec: Any) -> Object:
    """An InferenceService; keyword arguments are top-level fields of its spec."""
    container = {"image": IMAGE, "args": ["netexec", "--http-port=8080"], **spec.pop("container", {})}
    return {
        "apiVersion": "modelfleet.dev/v1alpha1",
        "kind": "InferenceService",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"container": container, **spec},
    }


def everything(namespace: str, name: str, **spec: Any) -> Object:
    """One with all five children."""
    budget = {"podDisruptionBudget": {"minAvailable": 1}}
    return service(namespace, name, **{"scaling": SCALED, "route": ROUTED, "rollout": budget} | spec)


def condition(thing: Object | None, kind: str) -> Object:
    """One condition of an object's status; empty while there is none."""
    conditions = ((thing or {}).get("status") or {}).get("conditions") or ()
    return next((dict(c) for c in conditions if c["type"] == kind), {})


def verdict(thing: Object | None, kind: str) -> tuple[str, str]:
    """Status and reason of a condition, ("", "") while there is none."""
    found = condition(thing, kind)
    return found.get("status", ""), found.get("reason", "")


def settled(thing: Object | None) -> bool:
    """Whether the controller has seen the latest spec of an object."""
    if thing is None:
        return False
    observed = (thing.get("status") or {}).get("observedGeneration")
    return bool(observed == thing["metadata"]["generation"])


async def accept_route(api: World, namespace: str, name: str) -> None:
    """Say what a gateway controller says about a good HTTPRoute."""
    route = await api.get(HTTP_ROUTE, namespace, name)
    generation = route["metadata"]["generation"]
    conditions = [
        {
            "type": kind,
            "status": "True",
            "reason": kind,
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
            "observedGeneration": generation,
        }
        for kind in ("Accepted", "ResolvedRefs")
    ]
    parent = {"parentRef": GATEWAY, "controllerName": "example.com/gateway", "conditions": conditions}
    await api.merge(HTTP_ROUTE, namespace, name, {"status": {"parents": [parent]}}, "status")


async def scaler_ready(api: World, namespace: str, name: str) -> None:
    """Say what KEDA says about a ScaledObject whose triggers work."""
    conditions = [
        {"type": "Ready", "status": "True", "reason": "ScaledObjectReady", "message": "ready"},
        {"type": "Active", "status": "True", "reason": "ScalerActive", "message": "active"},
        {"type": "Fallback", "status": "False", "reason": "NoFallbackFound", "message": "none"},
        {"type": "Paused", "status": "False", "reason": "NotPaused", "message": "not paused"},
    ]
    status = {
        "conditions": conditions,
        "triggersTypes": "cron",
        "triggersActivity": {"s0-cron": {"isActive": True}, "s1-idle": {"isActive": False}},
        "health": {
            "s0-cron": {"numberOfFailures": 0, "status": "Happy"},
            "s1-idle": {"numberOfFailures": 3, "status": "Failing"},
        },
    }
    await api.merge(SCALED_OBJECT, namespace, name, {"status": status}, "status")
