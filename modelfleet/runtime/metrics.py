"""Prometheus metrics of a controller process, in a registry of their own.

Names and labels are client-go's and controller-runtime's where those have one, so that dashboards and alerts
written for any other controller work unchanged (facts 1.9); the rest is called `modelfleet_*`. Label sets
that are known at the start begin at 0, so that a rate over the first error is not lost. Labels never carry
object names. `docs/metrics.md` lists them; a test compares.
"""

import platform
from typing import Literal

from aiohttp import web
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import choose_encoder

from modelfleet.kube.client import RequestRecord
from modelfleet.runtime.cachemetrics import Reflectors
from modelfleet.runtime.workmetrics import Controllers, Events, Queues

REQUEST_BUCKETS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
"""component-base, metrics/prometheus/restclient."""

SIZE_BUCKETS = tuple(4.0**exponent for exponent in range(3, 13))
"""64 B to 16 MiB; component-base has the same bounds with 512 and 1024 in place of 1024."""

LAG_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""From what one decode takes to the renew deadline."""

NO_ANSWER = "<error>"
"""client-go's code label for a request without an answer."""


class Metrics:
    """Everything this process counts."""

    def __init__(self, *, version: str) -> None:
        # No dashboard reads the *_created series, and they double a scrape.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the one function without types
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        info = Gauge("modelfleet_build_info", "Constant 1", ("version", "python"), registry=self.registry)
        info.labels(version, platform.python_version()).set(1)
        self.requests = Requests(self.registry)
        self.reflectors = Reflectors(self.registry)
        self.queues = Queues(self.registry)
        self.controllers = Controllers(self.registry)
        self.events = Events(self.registry)
        self._lag = Histogram(
            "modelfleet_event_loop_lag_seconds",
            "How late the event loop ran a timer",
            buckets=LAG_BUCKETS,
            registry=self.registry,
        )

    def loop_lag(self, seconds: float) -> None:
        """Take one measurement of the watchdog."""
        self._lag.observe(seconds)

    def leader(self, lease: str) -> "Leadership":
        """Metrics of the election over one Lease."""
        return Leadership(self.registry, lease)

    async def handle(self, request: web.Request) -> web.Response:
        """Answer one scrape, in the format it asks for."""
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=encode(self.registry), headers={"Content-Type": content_type})


class Leadership:
    """Implements `modelfleet.runtime.leader.LeaderMetrics`."""

    def __init__(self, registry: CollectorRegistry, lease: str) -> None:
        self._status = Gauge(
            "leader_election_master_status",
            "Whether this process leads",
            ("name",),
            registry=registry,
        ).labels(lease)
        self._slow_path = Counter(
            "leader_election_slowpath",
            "Renewals that needed a read first",
            ("name",),
            registry=registry,
        ).labels(lease)

    def leading(self, status: Literal[0, 1], /) -> None:
        """Set whether this process leads."""
        self._status.set(status)

    def slow_path(self) -> None:
        """Count a renewal that needed a read first."""
        self._slow_path.inc()


class Requests:
    """Requests to the API server; `record` is the client's `observe`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._total = Counter(
            "rest_client_requests",
            "HTTP requests by status code, method and host",
            ("code", "method", "host"),
            registry=registry,
        )
        self._seconds = Histogram(
            "rest_client_request_duration_seconds",
            "Until the whole answer was read; for a watch until its headers came",
            ("verb", "host"),
            buckets=REQUEST_BUCKETS,
            registry=registry,
        )
        self._sent = Histogram(
            "rest_client_request_size_bytes",
            "Bytes of request bodies",
            ("verb", "host"),
            buckets=SIZE_BUCKETS,
            registry=registry,
        )
        self._received = Histogram(
            "rest_client_response_size_bytes",
            "Bytes of answers; watches are not counted",
            ("verb", "host"),
            buckets=SIZE_BUCKETS,
            registry=registry,
        )
        self._by_resource = Counter(
            "modelfleet_api_requests",
            "Requests by Kubernetes verb and resource type",
            ("verb", "resource", "code"),
            registry=registry,
        )

    def record(self, request: RequestRecord) -> None:
        """Count one request."""
        code = str(request.code or NO_ANSWER)
        self._total.labels(code, request.method, request.host).inc()
        self._seconds.labels(request.method, request.host).observe(request.seconds)
        self._sent.labels(request.method, request.host).observe(request.request_bytes)
        self._received.labels(request.method, request.host).observe(request.response_bytes)
        self._by_resource.labels(request.verb, request.resource, code).inc()
