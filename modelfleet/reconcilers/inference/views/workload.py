"""What the planner and the status read of Deployments and of the pods behind them."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from modelfleet.kube.projection import owners_of
from modelfleet.reconcilers.inference.views.conditions import LiveCondition, find, read_conditions

TEMPLATE_HASH = "pod-template-hash"
"""Label the Deployment controller puts on the pods of one template."""
_REPLICAS = ("spec", "replicas")


class DeploymentView(msgspec.Struct, frozen=True, gc=False):
    """Rollout state of a Deployment, and who owns its replica count."""

    replicas: int
    """spec.replicas: what is wanted now, whoever decided it."""
    replica_owners: frozenset[str]
    """Field managers that own spec.replicas."""
    observed_generation: int = 0
    existing: int = 0
    """status.replicas: pods of every template that are not terminated."""
    updated: int = 0
    ready: int = 0
    available: int = 0
    conditions: tuple[LiveCondition, ...] = ()


def view_deployment(obj: Mapping[str, Any]) -> DeploymentView:
    """Decode apps/v1 Deployment."""
    status = obj.get("status") or {}
    replicas = (obj.get("spec") or {}).get("replicas")
    return DeploymentView(
        replicas=1 if replicas is None else replicas,
        replica_owners=owners_of(obj, _REPLICAS),
        observed_generation=status.get("observedGeneration") or 0,
        existing=status.get("replicas") or 0,
        updated=status.get("updatedReplicas") or 0,
        ready=status.get("readyReplicas") or 0,
        available=status.get("availableReplicas") or 0,
        conditions=read_conditions(status.get("conditions")),
    )


class ContainerState(msgspec.Struct, frozen=True, gc=False):
    """One container of a pod; `init` marks an init container."""

    name: str
    init: bool = False
    ready: bool = False
    restarts: int = 0
    waiting: str = ""
    """Reason it is not running, such as CrashLoopBackOff."""
    waiting_message: str = ""
    ended: str = ""
    """Reason the current or else the last run ended, such as OOMKilled; "" when no run has ended."""
    exit_code: int | None = None
    """Exit code of that run."""


class PodView(msgspec.Struct, frozen=True, gc=False):
    """Why a pod is or is not ready."""

    template_hash: str
    phase: str = ""
    ready: bool = False
    reason: str = ""
    """status.reason, such as Evicted."""
    message: str = ""
    unschedulable: str = ""
    """The scheduler's words while no node fits, else ""."""
    containers: tuple[ContainerState, ...] = ()


def _container(status: Mapping[str, Any], *, init: bool) -> ContainerState:
    state = status.get("state") or {}
    waiting = state.get("waiting") or {}
    ended = state.get("terminated") or (status.get("lastState") or {}).get("terminated") or {}
    return ContainerState(
        name=status.get("name") or "",
        init=init,
        ready=bool(status.get("ready")),
        restarts=status.get("restartCount") or 0,
        waiting=waiting.get("reason") or "",
        waiting_message=waiting.get("message") or "",
        ended=ended.get("reason") or "",
        exit_code=ended.get("exitCode"),
    )


def _containers(status: Mapping[str, Any]) -> Iterable[ContainerState]:
    for container in status.get("initContainerStatuses") or ():
        yield _container(container, init=True)
    for container in status.get("containerStatuses") or ():
        yield _container(container, init=False)


def view_pod(obj: Mapping[str, Any]) -> PodView:
    """Decode v1 Pod; its spec is not looked at."""
    status = obj.get("status") or {}
    conditions = read_conditions(status.get("conditions"))
    ready, scheduled = find(conditions, "Ready"), find(conditions, "PodScheduled")
    refused = scheduled is not None and scheduled.false and scheduled.reason == "Unschedulable"
    return PodView(
        template_hash=(obj["metadata"].get("labels") or {}).get(TEMPLATE_HASH, ""),
        phase=status.get("phase") or "",
        ready=ready is not None and ready.true,
        reason=status.get("reason") or "",
        message=status.get("message") or "",
        unschedulable=scheduled.message if scheduled is not None and refused else "",
        containers=tuple(_containers(status)),
    )
