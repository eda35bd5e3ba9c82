"""What the controllers of the children report when all is well, for tests that then break one thing."""

from typing import Any

from modelfleet.api.meta import OWNER_LABEL
from modelfleet.plan import Condition, DesiredStatus, Outcome, Problem, Ref, Result
from modelfleet.reconcilers.inference.apis import DEPLOYMENT, ENDPOINT_SLICE, HTTP_ROUTE, POD, SCALED_OBJECT
from test.unit.reconcilers.inference.world import NAME, NAMESPACE, World

IMAGE = "registry.example.com/server:1"
CRON = {"type": "cron", "metadata": {"timezone": "UTC", "start": "0 8 * * *", "end": "0 9 * * *"}}
SCALED = {"minReplicas": 1, "maxReplicas": 4, "triggers": [CRON]}
PARENT = {"name": "shared", "namespace": "gateway", "sectionName": "http"}
ROUTED = {"parentRefs": [PARENT], "hostnames": ["*.example.com", "echo.example.com"], "paths": ["/v1"]}
CONTROLLER = "example.com/gateway-controller"


def spec(**parts: Any) -> dict[str, Any]:
    """A spec with more or other parts."""
    return {"container": {"image": IMAGE}, **parts}


def condition(kind: str, status: str, reason: str = "", message: str = "", **more: Any) -> dict[str, Any]:
    """A condition in wire form."""
    return {"type": kind, "status": status, "reason": reason or kind, "message": message, **more}


def deployment(
    world: World, want: int = 1, *, conditions: tuple[dict[str, Any], ...] = (), **numbers: Any
) -> None:
    """The Deployment controller's report: everything done, unless numbers say otherwise."""
    done = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), want)
    generation = world.extra[Ref(DEPLOYMENT, NAMESPACE, NAME)]["generation"]
    report = {"observedGeneration": generation, **done, "conditions": list(conditions), **numbers}
    world.set_status(DEPLOYMENT, report)


def scaler(world: World, *changes: dict[str, Any], **more: Any) -> None:
    """KEDA's report: working and active, unless changes say otherwise."""
    usual = [
        condition("Ready", "True", "ScaledObjectReady", "ScaledObject is defined correctly"),
        condition("Active", "True", "ScalerActive"),
        condition("Fallback", "False", "NoFallbackFound"),
        condition("Paused", "False", "ScaledObjectUnpaused"),
        condition("HPAActive", "True", "HPAActive"),
    ]
    changed = {change["type"]: change for change in changes}
    conditions = [changed.pop(usual_one["type"], usual_one) for usual_one in usual]
    world.set_status(
        SCALED_OBJECT, {"conditions": conditions, "triggersTypes": "cron", "hpaName": "h", **more}
    )


def parent_status(
    *conditions: dict[str, Any], controller: str = CONTROLLER, **reference: Any
) -> dict[str, Any]:
    """One entry of an HTTPRoute's status.parents."""
    usual = (condition("Accepted", "True"), condition("ResolvedRefs", "True"))
    parent = {"group": "gateway.networking.k8s.io", "kind": "Gateway", **PARENT, **reference}
    return {"parentRef": parent, "controllerName": controller, "conditions": list(conditions or usual)}


def route(world: World, *parents: dict[str, Any]) -> None:
    """The Gateway controllers' report."""
    world.set_status(HTTP_ROUTE, {"parents": list(parents)})


def endpoints(world: World, ready: int) -> None:
    """One EndpointSlice of the Service."""
    labels = {OWNER_LABEL: NAME, "kubernetes.io/service-name": NAME}
    entries = [{"conditions": {"ready": True}}] * ready + [{"conditions": {"ready": False}}]
    world.put(ENDPOINT_SLICE, "echo-x", {"metadata": {"labels": labels}, "endpoints": entries})


def pod(world: World, name: str, status: dict[str, Any], *, template: str = "new", created: str = "") -> None:
    """One pod of a template."""
    labels = {OWNER_LABEL: NAME, "pod-template-hash": template}
    whole = {"metadata": {"labels": labels}, "status": {"phase": "Pending", **status}}
    world.put(POD, name, whole, created=created or "2026-01-01T00:00:00Z")


def container(**state: Any) -> dict[str, Any]:
    """Status of a pod whose serving container is in a state; `lastState` and `restartCount` go beside it."""
    beside = {key: state.pop(key) for key in ("lastState", "restartCount") if key in state}
    return {"containerStatuses": [{"name": "model", "ready": False, "state": state, **beside}]}


def healthy(world: World) -> None:
    """Converge, then let every controller report success."""
    world.converge()
    deployment(world, world.replicas())
    endpoints(world, world.replicas())
    if Ref(SCALED_OBJECT, NAMESPACE, NAME) in world.values:
        scaler(world)
    if Ref(HTTP_ROUTE, NAMESPACE, NAME) in world.values:
        route(world, parent_status())


def failed(action: str, problem: Problem) -> dict[str, Outcome]:
    """Outcomes of a pass in which one action failed."""
    return {action: Outcome(action, Result.FAILED, problem)}


def judge(world: World, outcomes: dict[str, Outcome] | None = None) -> DesiredStatus:
    """The status of a pass."""
    return world.reconciler.status(world.look(), outcomes or {})


def found(status: DesiredStatus, kind: str) -> Condition:
    """The condition of a type; it must be there."""
    return next(condition for condition in status.conditions if condition.type == kind)


def verdicts(status: DesiredStatus) -> dict[str, str]:
    """Every condition as `type: status/reason`."""
    return {condition.type: f"{condition.status}/{condition.reason}" for condition in status.conditions}
