"""Names that are part of the API: group, labels, annotations, field managers, condition types and reasons.

Changing a value here breaks objects, selectors, alerts or scripts in clusters: values are only added. The
Deployment's selector is the one label `OWNER_LABEL`, for ever (api.md, "Rules for every kind").
"""

from enum import StrEnum

GROUP = "modelfleet.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
CATEGORY = "modelfleet"
"""`kubectl get modelfleet -A` lists every kind of the group."""

MANAGED_BY_LABEL = "app.kubernetes.io/managed-by"
MANAGED_BY = "modelfleet"
OWNER_LABEL = f"{GROUP}/inferenceservice"
"""Name of the InferenceService; on every child and every pod, and the whole selector of its Deployment."""

MODEL_NAME_ANNOTATION = f"{GROUP}/model-name"
MODEL_REVISION_ANNOTATION = f"{GROUP}/model-revision"
MODEL_FORMAT_ANNOTATION = f"{GROUP}/model-format"
"""Raw values of `spec.model`; annotations, because a label value may hold no `/` and 63 characters."""

MANAGER = "modelfleet-controller"
"""Field manager of the children and of our own status subresource."""
REPLICAS_MANAGER = "modelfleet-replicas"
"""Field manager of a Deployment's first replica count, which is left alone while triggers exist."""

NAME_MAX = 54
"""KEDA names its HPA `keda-hpa-<name>`, a label value of at most 63 characters (keda#6998)."""
CONTAINER_NAME = "model"
"""The serving container in the pod."""
PORT_NAME = "http"
"""Name of the container's and the Service's port; probes may refer to it."""
RESERVED_VOLUME_PREFIX = "modelfleet-"
"""Volumes the compiler adds itself carry this prefix, users' volumes may not."""


class ConditionType(StrEnum):
    """Condition types of every kind. Positive polarity but for RECONCILING and STALLED (kstatus)."""

    READY = "Ready"
    """The object is what its spec says."""
    RECONCILING = "Reconciling"
    """Present, and True, only while work is going on."""
    STALLED = "Stalled"
    """Present, and True, only while waiting does not help, or a rollout has used up its deadline."""
    SERVING = "Serving"
    """Requests are answered now; the one to alert on."""
    WORKLOAD_READY = "WorkloadReady"
    SCALING_READY = "ScalingReady"
    ROUTE_READY = "RouteReady"


class ReadyReason(StrEnum):
    """Reasons of `Ready`, `Reconciling` and `Stalled`. A failing part lends `Ready` its own reason."""

    READY = "Ready"
    SCALED_TO_ZERO = "ScaledToZero"
    SUSPENDED = "Suspended"
    PROGRESSING = "Progressing"
    """The spec is newer than what runs."""
    INVALID_SPEC = "InvalidSpec"
    """The stored object breaks a rule; the message names the field and the remedy."""
    NAME_CONFLICT = "NameConflict"
    APPLY_FAILED = "ApplyFailed"
    """The server refused a child; the message is the server's."""
    FORBIDDEN = "Forbidden"
    """The controller's service account lacks a permission; the message names it."""
    NAMESPACE_TERMINATING = "NamespaceTerminating"
    TERMINATING = "Terminating"


class ServingReason(StrEnum):
    """Reasons of `Serving`."""

    SERVING = "Serving"
    NO_READY_ENDPOINTS = "NoReadyEndpoints"
    ROUTE_NOT_READY = "RouteNotReady"
    SCALED_TO_ZERO = "ScaledToZero"
    SUSPENDED = "Suspended"


class WorkloadReason(StrEnum):
    """Reasons of `WorkloadReady`."""

    AVAILABLE = "Available"
    PROGRESSING = "Progressing"
    ROLLOUT_BLOCKED = "RolloutBlocked"
    """New pods can't start while the old ones keep what they need."""
    PROGRESS_DEADLINE_EXCEEDED = "ProgressDeadlineExceeded"
    CRASH_LOOP_BACK_OFF = "CrashLoopBackOff"
    IMAGE_PULL_BACK_OFF = "ImagePullBackOff"
    CREATE_CONTAINER_ERROR = "CreateContainerError"
    OOM_KILLED = "OOMKilled"
    UNSCHEDULABLE = "Unschedulable"
    SCALED_TO_ZERO = "ScaledToZero"
    SUSPENDED = "Suspended"
    QUOTA_EXCEEDED = "QuotaExceeded"
    REPLICA_FAILURE = "ReplicaFailure"
    """Pods can't be created for another reason than a quota, for example an admission policy."""
    NAME_CONFLICT = "NameConflict"
    APPLY_FAILED = "ApplyFailed"
    FORBIDDEN = "Forbidden"
    NAMESPACE_TERMINATING = "NamespaceTerminating"
    UNKNOWN = "Unknown"
    """The child has not been seen since it was written."""


class ScalingReason(StrEnum):
    """Reasons of `ScalingReady`."""

    ACTIVE = "Active"
    IDLE = "Idle"
    FALLBACK = "Fallback"
    PAUSED = "Paused"
    TRIGGER_ERROR = "TriggerError"
    HPA_METRICS_UNAVAILABLE = "HPAMetricsUnavailable"
    KEDA_NOT_INSTALLED = "KEDANotInstalled"
    KEDA_NOT_ANSWERING = "KEDANotAnswering"
    """The ScaledObject has no conditions: no KEDA operator watches this namespace."""
    SCALED_OBJECT_CHECK_FAILED = "ScaledObjectCheckFailed"
    CONFLICTING_SCALER = "ConflictingScaler"
    """Another autoscaler has the same Deployment for its target."""
    SUSPENDED = "Suspended"
    NAME_CONFLICT = "NameConflict"
    APPLY_FAILED = "ApplyFailed"
    FORBIDDEN = "Forbidden"


class RouteReason(StrEnum):
    """Reasons of `RouteReady`."""

    ACCEPTED = "Accepted"
    NOT_ACCEPTED_BY_GATEWAY = "NotAcceptedByGateway"
    REFS_NOT_RESOLVED = "RefsNotResolved"
    STALE_GATEWAY_STATUS = "StaleGatewayStatus"
    NO_CONTROLLER_ANSWERED = "NoControllerAnswered"
    GATEWAY_API_NOT_INSTALLED = "GatewayAPINotInstalled"
    NAME_CONFLICT = "NameConflict"
    APPLY_FAILED = "ApplyFailed"
    FORBIDDEN = "Forbidden"
