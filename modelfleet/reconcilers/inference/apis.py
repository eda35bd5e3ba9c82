"""The resource types an InferenceService is made of, as the API server serves them.

Versions are the oldest that every supported cluster has: Kubernetes 1.34, KEDA 2.19, Gateway API 1.2
(architecture.md section 4).
"""

from typing import Final

from modelfleet.api.meta import GROUP, VERSION
from modelfleet.plan import Api

INFERENCE_SERVICE: Final = Api(GROUP, VERSION, "InferenceService", "inferenceservices")
DEPLOYMENT: Final = Api("apps", "v1", "Deployment", "deployments")
SERVICE: Final = Api("", "v1", "Service", "services")
SCALED_OBJECT: Final = Api("keda.sh", "v1alpha1", "ScaledObject", "scaledobjects")
HTTP_ROUTE: Final = Api("gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes")
POD_DISRUPTION_BUDGET: Final = Api("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
POD: Final = Api("", "v1", "Pod", "pods")
ENDPOINT_SLICE: Final = Api("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")

CHILDREN: Final = (DEPLOYMENT, SERVICE, SCALED_OBJECT, HTTP_ROUTE, POD_DISRUPTION_BUDGET)
"""Every kind of child, in the order in which they are applied."""
