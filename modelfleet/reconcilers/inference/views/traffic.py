"""What the planner and the status read of Services, EndpointSlices and HTTPRoutes."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from modelfleet.api.meta import MANAGER, PORT_NAME
from modelfleet.plan import canonical
from modelfleet.reconcilers.inference.views.conditions import LiveCondition, read_conditions

SERVICE_NAME = "kubernetes.io/service-name"
"""Label that ties an EndpointSlice to its Service."""


PortKey = tuple[int, str]
"""Port and protocol: what tells the ports of a Service apart for server-side apply."""


class ServiceView(msgspec.Struct, frozen=True, gc=False):
    """Which ports of a Service would stand in the way of ours (rule A5)."""

    rivals: tuple[PortKey, ...] = ()
    """Ports that carry the name of ours and are held by somebody else: they survive an apply of ours."""
    others: bytes = b"[]"
    """The ports with other names, as JSON: somebody added them and keeps them."""


def view_service(obj: Mapping[str, Any]) -> ServiceView:
    """Decode v1 Service."""
    ports = (obj.get("spec") or {}).get("ports") or ()
    held = frozenset(_held_by_others(obj))
    named = [port for port in ports if port.get("name") == PORT_NAME]
    others = [port for port in ports if port.get("name") != PORT_NAME]
    rivals = tuple(key for port in named if (key := port_key(port)) in held)
    return ServiceView(rivals, canonical(others))


def port_key(port: Mapping[str, Any]) -> PortKey:
    """The key of a port in the list map `spec.ports`."""
    return int(port.get("port") or 0), str(port.get("protocol") or "TCP")


def _held_by_others(obj: Mapping[str, Any]) -> Iterator[PortKey]:
    for entry in obj["metadata"].get("managedFields") or ():
        if (entry.get("manager"), entry.get("operation")) == (MANAGER, "Apply"):
            continue
        fields = ((entry.get("fieldsV1") or {}).get("f:spec") or {}).get("f:ports") or {}
        for key in fields:
            if key.startswith("k:"):
                yield port_key(msgspec.json.decode(key.removeprefix("k:")))


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
