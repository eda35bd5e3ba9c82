"""What the controller watches for InferenceServices, and whom an event wakes.

Children are watched by our managed-by label, pods and endpoint slices by the label that names their
InferenceService: the server filters, so foreign objects cost neither memory nor events. A child that loses
the label looks deleted; its next apply meets the live object and takes it back (rule I14).
"""

from collections.abc import Iterable
from typing import Any

from modelfleet.api.meta import GROUP, MANAGED_BY, MANAGED_BY_LABEL, MANAGER, OWNER_LABEL
from modelfleet.kube.objects import Item
from modelfleet.kube.resource import Resource
from modelfleet.plan import Api, Key
from modelfleet.reconcilers.inference import views
from modelfleet.reconcilers.inference.apis import (
    DEPLOYMENT,
    ENDPOINT_SLICE,
    HTTP_ROUTE,
    INFERENCE_SERVICE,
    POD,
    POD_DISRUPTION_BUDGET,
    SCALED_OBJECT,
    SERVICE,
)
from modelfleet.reconcilers.inference.observe import BY_SERVICE, labelled

_OURS = f"{MANAGED_BY_LABEL}={MANAGED_BY}"


def resources() -> tuple[Resource[Any], ...]:
    """Every watched type. KEDA and the Gateway API are optional: they may come and go at any time."""
    return (
        Resource(api=INFERENCE_SERVICE, view=views.view_inference_service, manager=MANAGER),
        _child(DEPLOYMENT, views.view_deployment),
        _child(SERVICE, views.view_service),
        _child(SCALED_OBJECT, views.view_scaled_object, required=False),
        _child(HTTP_ROUTE, views.view_http_route, required=False),
        _child(POD_DISRUPTION_BUDGET, views.view_pod_disruption_budget),
        _labelled(POD, views.view_pod),
        _labelled(ENDPOINT_SLICE, views.view_endpoint_slice),
    )


def keys_of(api: Api, item: Item[Any]) -> Iterable[Key]:
    """Which InferenceServices an event of a watched object concerns."""
    meta = item.meta
    if api == INFERENCE_SERVICE:
        return (Key(meta.namespace, meta.name),)
    if api in (POD, ENDPOINT_SLICE):
        name = meta.labels.get(OWNER_LABEL)
        return (Key(meta.namespace, name),) if name else ()
    owner = meta.controller
    if owner is None or owner.kind != INFERENCE_SERVICE.kind or owner.api_version.partition("/")[0] != GROUP:
        return ()
    return (Key(meta.namespace, owner.name),)


def _child(api: Api, view: Any, *, required: bool = True) -> Resource[Any]:
    return Resource(api=api, view=view, label_selector=_OURS, manager=MANAGER, required=required)


def _labelled(api: Api, view: Any) -> Resource[Any]:
    return Resource(api=api, view=view, label_selector=OWNER_LABEL, indexes={BY_SERVICE: labelled})
