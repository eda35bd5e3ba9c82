"""What the planner and the status read of Services, EndpointSlices and HTTPRoutes."""

from collections.abc import Mapping
from typing import Any

import msgspec

from modelfleet.reconcilers.inference.views.conditions import LiveCondition, read_conditions

SERVICE_NAME = "kubernetes.io/service-name"
"""Label that ties an EndpointSlice to its Service."""


class ServiceView(msgspec.Struct, frozen=True, gc=False):
    """Nothing but its existence is read of a Service."""


def view_service(_obj: Mapping[str, Any]) -> ServiceView:
    """Decode v1 Service."""
    return ServiceView()


class EndpointSliceView(msgspec.Struct, frozen=True, gc=False):
    """Which Service a slice belongs to and how many of its endpoints take traffic."""

    service: str
    ready: int


def view_endpoint_slice(obj: Mapping[str, Any]) -> EndpointSliceView:
    """Decode discovery.k8s.io/v1 EndpointSlice; an absent `ready` condition means ready (KEP-752)."""
    ready = 0
    for endpoint in obj.get("endpoints") or ():
        state = (endpoint.get("conditions") or {}).get("ready")
        ready += state is None or bool(state)
    return EndpointSliceView(service=(obj["metadata"].get("labels") or {}).get(SERVICE_NAME, ""), ready=ready)


class ParentReference(msgspec.Struct, frozen=True, gc=False):
    """A Gateway listener a route attaches to, with the defaults of Gateway API filled in."""

    group: str
    kind: str
    namespace: str
    name: str
    section: str
    port: int = 0
    """0 when the reference names no port."""

    def __str__(self) -> str:
        return f'listener "{self.section}" of {self.kind} {self.namespace}/{self.name}'


class RouteParent(msgspec.Struct, frozen=True, gc=False):
    """What one controller says about one parent reference."""

    parent: ParentReference
    controller: str
    conditions: tuple[LiveCondition, ...] = ()


class HTTPRouteView(msgspec.Struct, frozen=True, gc=False):
    """The answers of the Gateway controllers."""

    parents: tuple[RouteParent, ...] = ()


def parent_reference(reference: Mapping[str, Any], namespace: str) -> ParentReference:
    """Decode a parentRef; `namespace` is the route's own, the default of the reference."""
    return ParentReference(
        group=reference.get("group", "gateway.networking.k8s.io"),
        kind=reference.get("kind") or "Gateway",
        namespace=reference.get("namespace") or namespace,
        name=reference.get("name") or "",
        section=reference.get("sectionName") or "",
        port=reference.get("port") or 0,
    )


def view_http_route(obj: Mapping[str, Any]) -> HTTPRouteView:
    """Decode gateway.networking.k8s.io/v1 HTTPRoute."""
    namespace = obj["metadata"].get("namespace") or ""
    return HTTPRouteView(
        parents=tuple(
            RouteParent(
                parent=parent_reference(entry.get("parentRef") or {}, namespace),
                controller=entry.get("controllerName") or "",
                conditions=read_conditions(entry.get("conditions")),
            )
            for entry in (obj.get("status") or {}).get("parents") or ()
        )
    )
