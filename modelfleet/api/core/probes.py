"""Probes and lifecycle hooks of a container.

`host` of httpGet and tcpSocket is left out on purpose: it lets a pod author make the kubelet call any
address it can reach (Pod Security "baseline" refuses it since Kubernetes 1.34).
"""

from typing import Annotated, Literal

from modelfleet.api.base import CoreObject, Count, Format, Items, Port, PortReference, Range, Text

HTTP_HEADER = Format("HTTP header name")

Command = Annotated[tuple[Annotated[str, Text(max=32768)], ...], Items(max=256)]


class HTTPHeader(CoreObject):
    """One request header."""

    name: Annotated[str, Text(max=256, min=1), HTTP_HEADER]
    """Header name, such as X-Probe."""
    value: Annotated[str, Text(max=4096)]
    """Header value."""


class HTTPGet(CoreObject):
    """An HTTP GET to the pod; 200-399 is success."""

    path: Annotated[str, Text(max=2048)] = ""
    """Path of the request. Default /."""
    port: PortReference
    """Port number, or http for the serving port."""
    scheme: Literal["HTTP", "HTTPS"] | None = None
    """HTTP or HTTPS (the certificate is not verified). Default HTTP."""
    http_headers: Annotated[tuple[HTTPHeader, ...], Items(max=32)] = ()
    """Headers to send."""


class TCPSocket(CoreObject):
    """A TCP connection to the pod; being accepted is success."""

    port: PortReference
    """Port number, or http for the serving port."""


class GRPC(CoreObject):
    """A call of grpc.health.v1.Health/Check; SERVING is success."""

    port: Port
    """Port number."""
    service: Annotated[str, Text(max=253)] = ""
    """Service name sent in the request. Default empty: the whole server."""


class Exec(CoreObject):
    """A command in the container; exit status 0 is success. No shell is involved."""

    command: Annotated[tuple[Annotated[str, Text(max=32768)], ...], Items(min=1, max=256)]
    """Program and arguments."""


class Sleep(CoreObject):
    """Waits."""

    seconds: Count
    """Seconds to wait, at most pod.terminationGracePeriodSeconds."""


class Probe(CoreObject):
    """A periodic check of the container; exactly one of httpGet, tcpSocket, grpc and exec must be set."""

    http_get: HTTPGet | None = None
    """HTTP request to make."""
    tcp_socket: TCPSocket | None = None
    """TCP connection to open."""
    grpc: GRPC | None = None
    """gRPC health check to make."""
    exec: Exec | None = None
    """Command to run in the container."""
    initial_delay_seconds: Count = 0
    """Seconds after the container's start before the first check. Default 0."""
    timeout_seconds: Count = 0
    """Seconds before one check counts as failed. Default 1."""
    period_seconds: Count = 0
    """Seconds between checks. Default 10."""
    success_threshold: Count = 0
    """Successes in a row after a failure. Default 1; must be 1 for startup and liveness probes."""
    failure_threshold: Count = 0
    """Failures in a row before the check counts as failed. Default 3. A startup probe gives a model
    initialDelaySeconds + periodSeconds x failureThreshold seconds to load."""
    termination_grace_period_seconds: Annotated[int, Range(min=1)] | None = None
    """Seconds between SIGTERM and SIGKILL when this probe ends the container. Default: the pod's. Not for
    readiness probes."""


class RestartingProbe(Probe):
    """A probe that ends the container: startup and liveness."""


class ReadinessProbe(Probe):
    """A probe that only takes the pod out of the Service."""


class LifecycleHandler(CoreObject):
    """An action; exactly one of exec, httpGet and sleep must be set."""

    exec: Exec | None = None
    """Command to run in the container."""
    http_get: HTTPGet | None = None
    """HTTP request to make."""
    sleep: Sleep | None = None
    """Pause, for example to let a gateway notice that the pod is going away."""


class Lifecycle(CoreObject):
    """Actions around the life of the container."""

    post_start: LifecycleHandler | None = None
    """Runs right after the start; a failure restarts the container."""
    pre_stop: LifecycleHandler | None = None
    """Runs before SIGTERM and counts against the termination grace period."""
