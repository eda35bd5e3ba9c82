"""What the pods share: identity, placement, volumes. No hostPath, host namespaces or extra containers."""

from typing import Annotated

from pydantic import Field

from modelfleet.api.base import (
    Annotations,
    CoreObject,
    Count,
    DNSSubdomain,
    Format,
    Items,
    Labels,
)
from modelfleet.api.core.affinity import Affinity
from modelfleet.api.core.scheduling import SpreadConstraints, Toleration
from modelfleet.api.core.security import PodSecurityContext
from modelfleet.api.core.selectors import LocalReference
from modelfleet.api.core.volumes import Volume

POD_LABELS = Format("labels of the pod")


class Pod(CoreObject):
    """Settings of the pods that serve the model."""

    service_account_name: DNSSubdomain | None = None
    """Service account the pods run as; it must exist. Default: default."""
    image_pull_secrets: Annotated[tuple[LocalReference, ...], Items(max=16, key="name")] = ()
    """Secrets with registry credentials, read by the kubelet only."""
    node_selector: Labels = Field(default_factory=dict)
    """Node labels that must be present with exactly these values."""
    affinity: Affinity | None = None
    """Which nodes, and near to or away from which pods."""
    tolerations: Annotated[tuple[Toleration, ...], Items(max=32)] = ()
    """Taints the pods tolerate, such as nvidia.com/gpu."""
    topology_spread_constraints: SpreadConstraints = ()
    """How pods are spread over zones or nodes."""
    runtime_class_name: DNSSubdomain | None = None
    """RuntimeClass, such as nvidia. Default: the node's default runtime."""
    priority_class_name: DNSSubdomain | None = None
    """PriorityClass. Default: the cluster's default."""
    scheduler_name: DNSSubdomain | None = None
    """Scheduler that places the pods. Default: default-scheduler."""
    termination_grace_period_seconds: Count | None = None
    """Seconds between SIGTERM and SIGKILL: time to finish running requests. Default 30."""
    security_context: PodSecurityContext | None = None
    """Privileges of the pods and ownership of volumes."""
    labels: Annotated[Labels, POD_LABELS] = Field(default_factory=dict)
    """Further labels of the pods, not of anything else. app.kubernetes.io/managed-by and keys of
    modelfleet.dev are set by the controller."""
    annotations: Annotations = Field(default_factory=dict)
    """Further annotations of the pods, not of anything else. Keys of modelfleet.dev are set by the
    controller."""
    volumes: Annotated[tuple[Volume, ...], Items(max=32, key="name")] = ()
    """Volumes that container.volumeMounts can mount."""
