"""Metrics of the caches: how current they are, and what it cost to keep them so (facts 1.9, KEP-5647).

A store that has not heard anything for much longer than a minute, the interval of the server's bookmarks, is
out of date whatever its state says.
"""

import asyncio
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Counter, Gauge

from modelfleet.plan import Api


@dataclass(slots=True)
class _Heard:
    """When a reflector last heard from the server."""

    at: float = field(default_factory=lambda: asyncio.get_running_loop().time())

    def seconds_ago(self) -> float:
        return asyncio.get_running_loop().time() - self.at


class Reflectors:
    """Implements `modelfleet.kube.reflector_metrics.ReflectorMetrics`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ("resource", "namespace")
        self._version = Gauge(
            "modelfleet_reflector_last_resource_version",
            "Highest resourceVersion processed, bookmarks included",
            labels,
            registry=registry,
        )
        self._silence = Gauge(
            "modelfleet_reflector_seconds_since_last_event",
            "Seconds since an event, a bookmark or a list was processed",
            labels,
            registry=registry,
        )
        self._lists = Counter(
            "modelfleet_reflector_lists",
            "Lists that came in, by what made them necessary",
            (*labels, "cause"),
            registry=registry,
        )
        self._failures = Counter(
            "modelfleet_reflector_failures",
            "Lists and watches that ended otherwise than agreed",
            (*labels, "ending"),
            registry=registry,
        )
        self._objects = Gauge("modelfleet_store_objects", "Objects in the store", labels, registry=registry)
        self._known: dict[tuple[Api, str], tuple[Gauge, _Heard]] = {}

    def listed(self, api: Api, namespace: str, cause: str) -> None:
        """A list came in."""
        self._lists.labels(str(api), namespace, cause).inc()

    def progressed(self, api: Api, namespace: str, resource_version: int) -> None:
        """This is the highest resourceVersion now."""
        known = self._known.get((api, namespace))
        if known is None:
            known = (self._version.labels(str(api), namespace), _Heard())
            self._silence.labels(str(api), namespace).set_function(known[1].seconds_ago)
            self._known[(api, namespace)] = known
        version, heard = known
        version.set(resource_version)
        heard.at = asyncio.get_running_loop().time()

    def failed(self, api: Api, namespace: str, ending: str) -> None:
        """A list or watch ended otherwise than agreed."""
        self._failures.labels(str(api), namespace, ending).inc()

    def held(self, api: Api, namespace: str, objects: int) -> None:
        """So many objects are in the store now."""
        self._objects.labels(str(api), namespace).set(objects)
