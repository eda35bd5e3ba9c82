"""The Service: one port, one selector, never a load balancer."""

from typing import Any

from modelfleet.api.inference import InferenceService
from modelfleet.api.meta import PORT_NAME
from modelfleet.compiler.identity import child, selector

API_VERSION = "v1"
KIND = "Service"


def service(isvc: InferenceService, *, owner_uid: str | None) -> dict[str, Any]:
    """core/v1 Service. `protocol` is written out because it is part of the port's key (rule A5)."""
    wanted = isvc.spec.service
    port = {"name": PORT_NAME, "port": wanted.port, "protocol": "TCP", "targetPort": PORT_NAME}
    if wanted.app_protocol is not None:
        port["appProtocol"] = wanted.app_protocol
    spec = {"type": "ClusterIP", "selector": selector(isvc), "ports": [port]}
    if wanted.headless:
        spec["clusterIP"] = "None"
    return child(isvc, API_VERSION, KIND, spec, owner_uid=owner_uid, annotations=dict(wanted.annotations))
