"""InferenceService: a container that serves a model, how many of it, and how requests reach it."""

from typing import Annotated, Literal

from pydantic import Field

from modelfleet.api.base import (
    Annotations,
    ApiObject,
    Count,
    Format,
    Generation,
    Items,
    PercentOrCount,
    Port,
    Range,
    Text,
)
from modelfleet.api.core.container import Container
from modelfleet.api.core.pod import Pod
from modelfleet.api.object import ObjectMeta
from modelfleet.api.route import Route
from modelfleet.api.scaling import Scaling
from modelfleet.api.status import Conditions

APP_PROTOCOL = Format("application protocol")
KIND = "InferenceService"


class Model(ApiObject):
    """Identity of the model, for people and dashboards.

    It is written to annotations of the pods, so that a new revision rolls them; nothing is downloaded
    because of it.
    """

    name: Annotated[str, Text(max=253, min=1)]
    """Name of the model, such as Qwen/Qwen3-8B."""
    revision: Annotated[str, Text(max=253, min=1)] | None = None
    """Version, such as a tag, a commit or a digest; changing it restarts the pods one by one."""
    format: Annotated[str, Text(max=63, min=1)] | None = None
    """Format of the weights, such as safetensors, gguf or onnx."""


class Service(ApiObject):
    """The Service in front of the pods; it has the InferenceService's name and is never a load balancer."""

    port: Port = 80
    """Port of the Service. Default 80."""
    headless: bool = False
    """true: no cluster IP; the DNS name resolves to the pods. Can't be changed later. Default false."""
    app_protocol: Annotated[str, Text(max=316, min=1), APP_PROTOCOL] | None = None
    """Protocol hint for gateways and meshes, such as http, kubernetes.io/h2c or grpc."""
    annotations: Annotations = Field(default_factory=dict)
    """Annotations of the Service. Keys of modelfleet.dev are set by the controller."""


class PodDisruptionBudget(ApiObject):
    """Limits voluntary disruptions such as node drains; exactly one field must be set."""

    min_available: PercentOrCount | None = None
    """Pods that must stay: a number, or a percentage such as "50%"."""
    max_unavailable: PercentOrCount | None = None
    """Pods that may be away at once: a number, or a percentage such as "25%"."""


class Rollout(ApiObject):
    """How a change of the pods is rolled out."""

    max_surge: PercentOrCount | None = None
    """Pods above the wanted number during a rollout, as a number or a percentage. Default 25%."""
    max_unavailable: PercentOrCount | None = None
    """Pods that may be missing during a rollout, as a number or a percentage. Default 25%. With scarce GPUs
    use maxSurge: 0 and maxUnavailable: 1, else new pods wait for the GPUs of the old ones."""
    progress_deadline_seconds: Annotated[int, Range(min=1)] | None = None
    """Seconds without progress before a rollout is reported as failed; must be longer than the startup probe
    allows a model to load. Default 600, or more where the startup probe allows more."""
    pod_disruption_budget: PodDisruptionBudget | None = None
    """Limits voluntary disruptions. Default: no PodDisruptionBudget."""


class InferenceServiceSpec(ApiObject):
    """What should run."""

    model: Model | None = None
    """Identity of the model."""
    container: Container
    """The container that serves the model."""
    pod: Pod | None = None
    """Identity, placement and volumes of the pods."""
    scaling: Scaling = Scaling()
    """How many pods. Default: one."""
    service: Service = Service()
    """The Service in front of the pods."""
    route: Route | None = None
    """An HTTPRoute to the model. Default: none, reachable inside the cluster only. Needs the Gateway API."""
    rollout: Rollout | None = None
    """How changes are rolled out."""
    suspend: bool = False
    """true: no pods, whatever the triggers say; Service and route stay. Default false."""


class Address(ApiObject):
    """An address."""

    url: Annotated[str, Text(max=2048)]
    """URL."""


class ReplicaStatus(ApiObject):
    """Pods, as the Deployment reports them."""

    desired: Count
    """Pods that should run."""
    updated: Count
    """Pods of the current revision."""
    ready: Count
    """Pods that take requests."""


class TriggerStatus(ApiObject):
    """One trigger, as KEDA reports it."""

    name: Annotated[str, Text(max=253, min=1)]
    """KEDA's name of the trigger's metric."""
    active: bool
    """The trigger asks for pods."""
    failing: bool | None = None
    """True when KEDA can't read the trigger's source."""


class ScalingStatus(ApiObject):
    """What decides about the number of pods."""

    mode: Literal["Fixed", "Triggers", "Suspended"]
    """Fixed (minReplicas), Triggers (KEDA) or Suspended (none)."""
    active: bool | None = None
    """A trigger asks for pods; absent without triggers."""
    triggers: Annotated[tuple[TriggerStatus, ...], Items(max=32)] = ()
    """The triggers, by name."""


class Summary(ApiObject):
    """Strings for the printer columns."""

    replicas: Annotated[str, Text(max=32)] | None = None
    """Ready and desired pods, such as 2/3."""


class InferenceServiceStatus(ApiObject):
    """What was observed; recomputed whole on each pass."""

    observed_generation: Generation | None = None
    """metadata.generation of the spec this status is about."""
    conditions: Conditions = ()
    """Ready: the object is what its spec says. Serving: requests are answered now; alert on this one.
    WorkloadReady, ScalingReady, RouteReady: the parts. Reconciling and Stalled exist only while
    True. A condition that does not apply is absent."""
    url: Annotated[str, Text(max=2048)] | None = None
    """URL through the gateway, if there is a route with a host name."""
    address: Address | None = None
    """URL inside the cluster."""
    replicas: ReplicaStatus | None = None
    """Pods."""
    scaling: ScalingStatus | None = None
    """What decides about the number of pods."""
    summary: Summary | None = None
    """Strings for the printer columns."""


class InferenceService(ApiObject):
    """Serves a model from a container.

    It becomes a Deployment and a Service, on demand a ScaledObject (KEDA), an HTTPRoute (Gateway API) and a
    PodDisruptionBudget, all under the InferenceService's name.
    """

    api_version: Literal["modelfleet.dev/v1alpha1"] = "modelfleet.dev/v1alpha1"
    """modelfleet.dev/v1alpha1."""
    kind: Literal["InferenceService"] = "InferenceService"
    """InferenceService."""
    metadata: ObjectMeta
    """Name, namespace, labels, annotations."""
    spec: InferenceServiceSpec
    """What should run."""
    status: InferenceServiceStatus | None = None
    """What was observed. Written by the controller."""
