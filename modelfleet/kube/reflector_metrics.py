"""What a reflector tells about itself; implemented by the runtime's metrics (facts 1.9, KEP-5647)."""

from typing import Protocol

from modelfleet.plan import Api


class ReflectorMetrics(Protocol):
    """Called on the event loop, often: must be quick."""

    def listed(self, api: Api, namespace: str, cause: str) -> None:
        """A list came in; `cause` is "initial" or an `Ending`, a closed set."""

    def progressed(self, api: Api, namespace: str, resource_version: int) -> None:
        """An event, a bookmark or a list was processed; this is the highest resourceVersion now."""

    def failed(self, api: Api, namespace: str, ending: str) -> None:
        """A list or watch ended otherwise than agreed."""

    def held(self, api: Api, namespace: str, objects: int) -> None:
        """How many objects of this namespace are in the store now."""


class NoMetrics:
    """Tells nobody."""

    def listed(self, api: Api, namespace: str, cause: str) -> None:
        """See `ReflectorMetrics`, as below."""

    def progressed(self, api: Api, namespace: str, resource_version: int) -> None:
        """Ignored."""

    def failed(self, api: Api, namespace: str, ending: str) -> None:
        """Ignored."""

    def held(self, api: Api, namespace: str, objects: int) -> None:
        """Ignored."""
