"""All children of one InferenceService, in the order in which they are born."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from modelfleet.api.inference import InferenceService
from modelfleet.compiler import budget, deployment, httproute, scaledobject, service
from modelfleet.plan import Manifest


@dataclass(frozen=True)
class Children:
    """The compiled children. The Deployment's replica count is added by whoever knows who owns it."""

    isvc: InferenceService
    workload: dict[str, Any]
    """The Deployment without spec.replicas; treat as read-only."""
    service: Manifest
    scaled_object: Manifest | None
    http_route: Manifest | None
    pod_disruption_budget: Manifest | None

    @property
    def name(self) -> str:
        """The one name of all children."""
        return self.isvc.metadata.name

    @property
    def namespace(self) -> str:
        """The one namespace of all children."""
        return self.isvc.metadata.namespace

    @property
    def scaled(self) -> bool:
        """Whether triggers decide about the number of pods."""
        return self.scaled_object is not None

    @property
    def suspended(self) -> bool:
        """Whether no pods may run."""
        return self.isvc.spec.suspend

    @property
    def min_replicas(self) -> int:
        """The count a Deployment is born with."""
        return self.isvc.spec.scaling.min_replicas

    def deployment(self, replicas: int | None) -> Manifest:
        """The Deployment with a replica count; None leaves the count to its other owners."""
        return Manifest.of(deployment.with_replicas(self.workload, replicas))

    def replicas(self, count: int | None) -> Manifest:
        """What `modelfleet-replicas` applies to hold the count; None lets go of it."""
        return Manifest.of(deployment.replicas_only(self.isvc, count))

    @cached_property
    def at_birth(self) -> tuple[Manifest, ...]:
        """Every manifest as it is first applied: what `modelfleet render` prints."""
        first = self.deployment(0 if self.suspended else self.min_replicas)
        rest = (self.service, self.scaled_object, self.http_route, self.pod_disruption_budget)
        return (first, *(manifest for manifest in rest if manifest is not None))


def compile_inference(isvc: InferenceService, *, owner_uid: str | None) -> Children:
    """Compile a spec.

    Args:
        isvc: A parsed InferenceService with a name.
        owner_uid: Its UID, for the children's owner references; None leaves them out.
    """
    return Children(
        isvc=isvc,
        workload=deployment.deployment(isvc, owner_uid=owner_uid),
        service=Manifest.of(service.service(isvc, owner_uid=owner_uid)),
        scaled_object=_manifest(scaledobject.scaled_object(isvc, owner_uid=owner_uid)),
        http_route=_manifest(httproute.http_route(isvc, owner_uid=owner_uid)),
        pod_disruption_budget=_manifest(budget.pod_disruption_budget(isvc, owner_uid=owner_uid)),
    )


def _manifest(body: dict[str, Any] | None) -> Manifest | None:
    return None if body is None else Manifest.of(body)
