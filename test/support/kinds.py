"""The resource types the tests look at, as plain values.

Written down here and not imported from the reconcilers: a wrong plural or version there must fail a test.
"""

from modelfleet.plan import Api

INFERENCE_SERVICE = Api("modelfleet.dev", "v1alpha1", "InferenceService", "inferenceservices")
DEPLOYMENT = Api("apps", "v1", "Deployment", "deployments")
REPLICA_SET = Api("apps", "v1", "ReplicaSet", "replicasets")
SERVICE = Api("", "v1", "Service", "services")
SCALED_OBJECT = Api("keda.sh", "v1alpha1", "ScaledObject", "scaledobjects")
HTTP_ROUTE = Api("gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes")
DISRUPTION_BUDGET = Api("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
POD = Api("", "v1", "Pod", "pods")
ENDPOINT_SLICE = Api("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices")
LEASE = Api("coordination.k8s.io", "v1", "Lease", "leases")
EVENT = Api("events.k8s.io", "v1", "Event", "events")
CONFIG_MAP = Api("", "v1", "ConfigMap", "configmaps")
SECRET = Api("", "v1", "Secret", "secrets")
SERVICE_ACCOUNT = Api("", "v1", "ServiceAccount", "serviceaccounts")
RESOURCE_QUOTA = Api("", "v1", "ResourceQuota", "resourcequotas")
NODE = Api("", "v1", "Node", "nodes", namespaced=False)
NAMESPACE = Api("", "v1", "Namespace", "namespaces", namespaced=False)
CLUSTER_ROLE = Api("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", namespaced=False)
CRD = Api(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)

CHILDREN = (DEPLOYMENT, SERVICE, SCALED_OBJECT, HTTP_ROUTE, DISRUPTION_BUDGET)
"""Everything an InferenceService may own (api.md); each is called like its owner."""


def path_of(api: Api, namespace: str = "", name: str = "", subresource: str = "") -> str:
    """URL path of a collection, an object or a subresource."""
    path = f"/apis/{api.group}/{api.version}" if api.group else f"/api/{api.version}"
    if namespace:
        path += f"/namespaces/{namespace}"
    path += f"/{api.plural}"
    if name:
        path += f"/{name}"
    return f"{path}/{subresource}" if subresource else path
