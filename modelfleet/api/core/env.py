"""Environment variables of a container (core/v1 EnvVar, EnvFromSource)."""

from typing import Annotated, Literal

from modelfleet.api.base import ConfigKey, CoreObject, DNSSubdomain, Format, Quantity, Text

ENV_NAME = Format("environment variable name")
ENV_PREFIX = Format("prefix of environment variable names")
FIELD_PATH = Format("field of the pod")
RESOURCE_FIELD = Format("resource of the container")

EnvName = Annotated[str, Text(max=256, min=1), ENV_NAME]


class KeySelector(CoreObject):
    """One key of a ConfigMap or of a Secret in the same namespace."""

    name: DNSSubdomain
    """Name of the ConfigMap or Secret."""
    key: ConfigKey
    """The key whose value is used."""
    optional: bool | None = None
    """true: the pod starts even if the object or the key is missing. Default false."""


class FieldReference(CoreObject):
    """A field of the pod, resolved when the container starts."""

    api_version: Literal["v1"] | None = None
    """Version of the schema the path is written for. Default v1."""
    field_path: Annotated[str, Text(max=256, min=1), FIELD_PATH]
    """metadata.name, metadata.namespace, metadata.uid, metadata.labels['<key>'],
    metadata.annotations['<key>'], spec.nodeName, spec.serviceAccountName, status.hostIP, status.hostIPs,
    status.podIP or status.podIPs."""


class ResourceFieldReference(CoreObject):
    """A request or limit of the serving container."""

    resource: Annotated[str, Text(max=253, min=1), RESOURCE_FIELD]
    """limits.cpu, limits.memory, limits.ephemeral-storage, limits.hugepages-<size>, or the same under
    requests."""
    divisor: Quantity | None = None
    """Unit of the result, such as 1Mi for memory in MiB. Default 1: bytes, or whole CPUs rounded up."""


class EnvVarSource(CoreObject):
    """Where the value of a variable comes from; exactly one field must be set."""

    field_ref: FieldReference | None = None
    """A field of the pod, such as status.podIP."""
    resource_field_ref: ResourceFieldReference | None = None
    """A request or limit of this container, such as limits.memory."""
    config_map_key_ref: KeySelector | None = None
    """A key of a ConfigMap."""
    secret_key_ref: KeySelector | None = None
    """A key of a Secret. Only the kubelet reads it; the controller never does."""


class EnvVar(CoreObject):
    """One environment variable."""

    name: EnvName
    """Name of the variable: any printable ASCII character except `=`."""
    value: Annotated[str, Text(max=32768)] = ""
    """The value. `$(NAME)` is replaced by a variable defined earlier in the list, `$$` is a literal `$`."""
    value_from: EnvVarSource | None = None
    """Takes the value from the pod, a ConfigMap or a Secret instead. Not allowed together with `value`."""


class OptionalReference(CoreObject):
    """A ConfigMap or Secret in the same namespace."""

    name: DNSSubdomain
    """Name of the object."""
    optional: bool | None = None
    """true: the pod starts even if the object is missing. Default false."""


class EnvFromSource(CoreObject):
    """All keys of one ConfigMap or Secret as variables; exactly one of the two must be set."""

    prefix: Annotated[str, Text(max=256), ENV_PREFIX] = ""
    """Put in front of each key."""
    config_map_ref: OptionalReference | None = None
    """The ConfigMap."""
    secret_ref: OptionalReference | None = None
    """The Secret. Only the kubelet reads it; the controller never does."""
