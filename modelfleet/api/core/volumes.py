"""Volumes of the pod; every source is typed, and none reaches into the node's file system."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from modelfleet.api.base import (
    Annotations,
    ConfigKey,
    CoreObject,
    DNSLabel,
    DNSSubdomain,
    Entries,
    FileMode,
    Format,
    Items,
    Labels,
    Quantity,
    Range,
    RelativePath,
    Text,
)
from modelfleet.api.core.env import FieldReference
from modelfleet.api.core.selectors import LocalReference

CLAIM_RESOURCES = Format("resources of a claim")


class KeyToPath(CoreObject):
    """One key as one file."""

    key: ConfigKey
    """Key of the ConfigMap or Secret."""
    path: RelativePath
    """Path of the file, relative to the mount."""
    mode: FileMode | None = None
    """File mode, 0 to 511 decimal (0777 octal). Default: defaultMode."""


KeyPaths = Annotated[tuple[KeyToPath, ...], Items(max=32)]


class DownwardAPIFile(CoreObject):
    """One field of the pod as one file."""

    path: RelativePath
    """Path of the file, relative to the mount."""
    field_ref: FieldReference
    """The field: metadata.labels, metadata.annotations, metadata.name, metadata.namespace or metadata.uid."""
    mode: FileMode | None = None
    """File mode, 0 to 511 decimal (0777 octal). Default: defaultMode."""


DownwardAPIFiles = Annotated[tuple[DownwardAPIFile, ...], Items(max=8)]


class EmptyDir(CoreObject):
    """An empty directory that lives as long as the pod."""

    medium: Literal["", "Memory"] = ""
    """Memory: a tmpfs that counts against the container's memory limit. Default: the node's disk."""
    size_limit: Quantity | None = None
    """The pod is evicted when it writes more, such as 20Gi. Default: no limit of its own."""


class PersistentVolumeClaim(CoreObject):
    """A PersistentVolumeClaim in the same namespace."""

    claim_name: DNSSubdomain
    """Name of the claim. With more than one replica it must be ReadWriteMany or ReadOnlyMany."""
    read_only: bool = False
    """true: mounted read-only everywhere. Default false."""


class ConfigMapVolume(CoreObject):
    """A ConfigMap as files."""

    name: DNSSubdomain
    """Name of the ConfigMap."""
    items: KeyPaths = ()
    """Which keys, and where. Default: every key, under its own name."""
    default_mode: FileMode | None = None
    """Mode of files without their own. Default 420 (0644 octal)."""
    optional: bool | None = None
    """true: the pod starts even if the ConfigMap is missing. Default false."""


class SecretVolume(CoreObject):
    """A Secret as files. Only the kubelet reads it; the controller never does."""

    secret_name: DNSSubdomain
    """Name of the Secret."""
    items: KeyPaths = ()
    """Which keys, and where. Default: every key, under its own name."""
    default_mode: FileMode | None = None
    """Mode of files without their own. Default 420 (0644 octal)."""
    optional: bool | None = None
    """true: the pod starts even if the Secret is missing. Default false."""


class DownwardAPIVolume(CoreObject):
    """Fields of the pod as files."""

    items: DownwardAPIFiles = ()
    """The files."""
    default_mode: FileMode | None = None
    """Mode of files without their own. Default 420 (0644 octal)."""


class ConfigMapProjection(CoreObject):
    """A ConfigMap inside a projected volume."""

    name: DNSSubdomain
    """Name of the ConfigMap."""
    items: KeyPaths = ()
    """Which keys, and where. Default: every key."""
    optional: bool | None = None
    """true: the pod starts even if it is missing. Default false."""


class SecretProjection(CoreObject):
    """A Secret inside a projected volume."""

    name: DNSSubdomain
    """Name of the Secret."""
    items: KeyPaths = ()
    """Which keys, and where. Default: every key."""
    optional: bool | None = None
    """true: the pod starts even if it is missing. Default false."""


class DownwardAPIProjection(CoreObject):
    """Fields of the pod inside a projected volume."""

    items: DownwardAPIFiles = ()
    """The files."""


class ServiceAccountTokenProjection(CoreObject):
    """A token of the pod's service account, renewed by the kubelet; this is how workload identity works."""

    path: RelativePath
    """Path of the file, relative to the mount."""
    audience: Annotated[str, Text(max=1024)] = ""
    """Whom the token is meant for. Default: the API server."""
    expiration_seconds: Annotated[int, Range(min=600)] | None = None
    """Lifetime of a token in seconds, at least 600. Default 3600."""


class VolumeProjection(CoreObject):
    """One source of a projected volume; exactly one field must be set."""

    config_map: ConfigMapProjection | None = None
    """A ConfigMap."""
    secret: SecretProjection | None = None
    """A Secret."""
    downward_api: DownwardAPIProjection | None = Field(default=None, alias="downwardAPI")
    """Fields of the pod."""
    service_account_token: ServiceAccountTokenProjection | None = None
    """A service account token."""


class ProjectedVolume(CoreObject):
    """Several sources in one directory."""

    sources: Annotated[tuple[VolumeProjection, ...], Items(max=8)] = ()
    """What the directory is made of."""
    default_mode: FileMode | None = None
    """Mode of files without their own. Default 420 (0644 octal)."""


class CSIVolume(CoreObject):
    """A volume made for this pod by a CSI driver, for example the secrets-store or an object store driver."""

    driver: DNSSubdomain
    """Name of the driver."""
    read_only: bool | None = None
    """true: mounted read-only. Default false."""
    fs_type: Annotated[str, Text(max=64)] | None = None
    """File system to make. Default: the driver's."""
    volume_attributes: Annotated[Mapping[str, Annotated[str, Text(max=4096)]], Entries(max=64)] = Field(
        default_factory=dict
    )
    """Settings for the driver."""
    node_publish_secret_ref: LocalReference | None = None
    """Secret handed to the driver by the kubelet."""


class ImageVolume(CoreObject):
    """The files of an OCI image or artifact, read-only; a model can be shipped this way."""

    reference: Annotated[str, Text(max=1024, min=1)]
    """Image reference."""
    pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    """When the image is pulled. Default Always for the tag latest and for no tag, else IfNotPresent."""


class ClaimTemplateMetadata(CoreObject):
    """Metadata of the claim."""

    labels: Labels = Field(default_factory=dict)
    """Labels of the claim."""
    annotations: Annotations = Field(default_factory=dict)
    """Annotations of the claim."""


class ClaimResources(CoreObject):
    """Size of the claim."""

    requests: Annotated[Mapping[str, Quantity], Entries(max=1), CLAIM_RESOURCES]
    """storage: the size, such as 200Gi."""


class ClaimSpec(CoreObject):
    """What the claim asks for."""

    access_modes: Annotated[
        tuple[Literal["ReadWriteOnce", "ReadWriteOncePod", "ReadOnlyMany", "ReadWriteMany"], ...],
        Items(min=1, max=4),
    ]
    """How the volume may be mounted, usually [ReadWriteOnce]."""
    resources: ClaimResources
    """Size of the volume."""
    storage_class_name: Annotated[str, Text(max=253)] | None = None
    """StorageClass. Default: the cluster's default class."""
    volume_mode: Literal["Filesystem"] | None = None
    """Filesystem."""


class ClaimTemplate(CoreObject):
    """The claim made for each pod."""

    metadata: ClaimTemplateMetadata | None = None
    """Labels and annotations."""
    spec: ClaimSpec
    """What is asked for."""


class EphemeralVolume(CoreObject):
    """A PersistentVolumeClaim that is made for each pod and deleted with it: scratch space of its own."""

    volume_claim_template: ClaimTemplate
    """The claim."""


class Volume(CoreObject):
    """A volume of the pod: a name and exactly one source."""

    name: DNSLabel
    """Name that volumeMounts refer to. Names that start with modelfleet- are reserved."""
    empty_dir: EmptyDir | None = None
    """Scratch space that lives as long as the pod."""
    persistent_volume_claim: PersistentVolumeClaim | None = None
    """An existing PersistentVolumeClaim."""
    config_map: ConfigMapVolume | None = None
    """A ConfigMap as files."""
    secret: SecretVolume | None = None
    """A Secret as files."""
    projected: ProjectedVolume | None = None
    """Several sources in one directory."""
    ephemeral: EphemeralVolume | None = None
    """A claim made for each pod."""
    csi: CSIVolume | None = None
    """A volume made by a CSI driver."""
    downward_api: DownwardAPIVolume | None = Field(default=None, alias="downwardAPI")
    """Fields of the pod as files."""
    image: ImageVolume | None = None
    """The files of an OCI image, read-only."""
