"""The serving container: the part of core/v1 Container that a model server needs."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from modelfleet.api.base import (
    ApiObject,
    CoreObject,
    DNSLabel,
    Entries,
    Format,
    Items,
    Port,
    RelativePath,
    ResourceQuantity,
    Text,
)
from modelfleet.api.core.env import EnvFromSource, EnvVar
from modelfleet.api.core.probes import Command, Lifecycle, ReadinessProbe, RestartingProbe
from modelfleet.api.core.security import SecurityContext

IMAGE = Format("image reference")
RESOURCE_LIST = Format("resources")
MOUNT_PATH = Format("mount path")
EXPANDED_PATH = Format("relative path with variables")

ResourceList = Annotated[Mapping[str, ResourceQuantity], Entries(max=32), RESOURCE_LIST]


class Resources(CoreObject):
    """What the container gets and may use."""

    requests: ResourceList = Field(default_factory=dict)
    """Reserved on the node: cpu, memory, ephemeral-storage, hugepages-<size> or a device such as rdma/hca.
    Default: the limits."""
    limits: ResourceList = Field(default_factory=dict)
    """Never exceeded; a container over its memory limit is killed."""


class VolumeMount(CoreObject):
    """One of pod.volumes in the file system of the container."""

    name: DNSLabel
    """Name of the volume in pod.volumes."""
    mount_path: Annotated[str, Text(max=1024, min=1), MOUNT_PATH]
    """Absolute path in the container, without `:`."""
    sub_path: RelativePath | None = None
    """Path inside the volume. Default: its root."""
    sub_path_expr: Annotated[str, Text(max=1024, min=1), EXPANDED_PATH] | None = None
    """Path inside the volume in which `$(NAME)` is replaced from the environment. Not together with
    subPath."""
    read_only: bool = False
    """true: mounted read-only. Default false."""


class Container(ApiObject):
    """The container that serves the model."""

    image: Annotated[str, Text(max=1024, min=1), IMAGE]
    """Image of the model server, such as vllm/vllm-openai:v0.11.0; a digest pins it."""
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    """When the image is pulled. Default Always for the tag latest and for no tag, else IfNotPresent."""
    command: Command = ()
    """Program to run instead of the image's entrypoint."""
    args: Command = ()
    """Arguments of the program. `$(NAME)` is replaced from the environment."""
    env: Annotated[tuple[EnvVar, ...], Items(max=256)] = ()
    """Environment variables; the order counts, since a value may refer to an earlier variable."""
    env_from: Annotated[tuple[EnvFromSource, ...], Items(max=32)] = ()
    """All keys of ConfigMaps and Secrets as environment variables; `env` wins over them."""
    port: Port = 8080
    """Port the server listens on; called http in the pod. Default 8080."""
    resources: Resources | None = None
    """CPU, memory and devices."""
    startup_probe: RestartingProbe | None = None
    """Checked until it succeeds once; the others wait for it. Give it the time the model takes to load."""
    readiness_probe: ReadinessProbe | None = None
    """While it fails the pod gets no requests."""
    liveness_probe: RestartingProbe | None = None
    """When it fails the container is restarted."""
    lifecycle: Lifecycle | None = None
    """Actions after the start and before the end."""
    security_context: SecurityContext | None = None
    """Privileges of the container."""
    volume_mounts: Annotated[tuple[VolumeMount, ...], Items(max=64, key="mountPath")] = ()
    """Volumes of the pod to mount."""
