"""What the stores keep of each watched kind: the fields a decision reads and nothing else.

A view never keeps the wire object. Whatever is not listed here can't influence a plan or a status, and a
change of it wakes nobody up for nothing.
"""

from modelfleet.reconcilers.inference.views.conditions import LiveCondition, find, read_conditions
from modelfleet.reconcilers.inference.views.inference_service import (
    InferenceServiceView,
    view_inference_service,
)
from modelfleet.reconcilers.inference.views.scaling import (
    PodDisruptionBudgetView,
    ScaledObjectView,
    view_pod_disruption_budget,
    view_scaled_object,
)
from modelfleet.reconcilers.inference.views.traffic import (
    EndpointSliceView,
    HTTPRouteView,
    ParentReference,
    RouteParent,
    ServiceView,
    parent_reference,
    port_key,
    view_endpoint_slice,
    view_http_route,
    view_service,
)
from modelfleet.reconcilers.inference.views.workload import (
    ContainerState,
    DeploymentView,
    PodView,
    view_deployment,
    view_pod,
)

__all__ = [
    "ContainerState",
    "DeploymentView",
    "EndpointSliceView",
    "HTTPRouteView",
    "InferenceServiceView",
    "LiveCondition",
    "ParentReference",
    "PodDisruptionBudgetView",
    "PodView",
    "RouteParent",
    "ScaledObjectView",
    "ServiceView",
    "find",
    "parent_reference",
    "port_key",
    "read_conditions",
    "view_deployment",
    "view_endpoint_slice",
    "view_http_route",
    "view_inference_service",
    "view_pod",
    "view_pod_disruption_budget",
    "view_scaled_object",
    "view_service",
]
