"""One reflector in front of a fake server, and everything it said."""

import asyncio
import contextlib
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from modelfleet.kube.changes import Change, Event
from modelfleet.kube.client import Client
from modelfleet.kube.reflector import Reflector
from modelfleet.kube.reflector_metrics import NoMetrics
from modelfleet.kube.resource import Resource
from modelfleet.kube.store import Store
from modelfleet.plan import Api
from test.support.fake_watch_server import FakeWatchServer, Request
from test.support.kinds import CONFIG_MAP

Labels = Mapping[str, str]
SETTLE = 0.1
"""Fake seconds in which everything that needs no pause has happened."""


def labels_of(obj: Mapping[str, Any]) -> Labels:
    """A view that tells versions of an object apart."""
    return dict(obj["metadata"].get("labels", {}))


class Notebook(NoMetrics):
    """Keeps what a reflector reports."""

    def __init__(self) -> None:
        self.lists: list[str] = []
        self.failures: list[str] = []
        self.resource_version = 0
        self.objects = 0

    def listed(self, api: Api, namespace: str, cause: str) -> None:  # noqa: ARG002 -- the interface's
        """Why lists were taken."""
        self.lists.append(cause)

    def failed(self, api: Api, namespace: str, ending: str) -> None:  # noqa: ARG002 -- as above
        """What went wrong."""
        self.failures.append(ending)

    def progressed(self, api: Api, namespace: str, resource_version: int) -> None:  # noqa: ARG002 -- as above
        """How far it is."""
        self.resource_version = resource_version

    def held(self, api: Api, namespace: str, objects: int) -> None:  # noqa: ARG002 -- as above
        """How much there is."""
        self.objects = objects


class Rig:
    """`async with Rig(server) as rig`: runs until the block ends."""

    def __init__(
        self,
        server: FakeWatchServer,
        *,
        selector: str = "",
        resource: Resource[Any] | None = None,
        jitter: float = 0.0,
    ) -> None:
        self.server = server
        self.resource = resource or Resource(api=CONFIG_MAP, view=labels_of, label_selector=selector)
        self.store: Store[Any] = Store(self.resource)
        self.metrics = Notebook()
        self.reflector = Reflector(
            Client(server), self.resource, self.store.feed(), metrics=self.metrics, jitter=lambda: jitter
        )
        self.events: list[Event[Any]] = []
        self.store.subscribe(self.events.append)
        self.task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self.task = asyncio.create_task(self.reflector.run())
        await passing(SETTLE)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.task is not None
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.task

    def known(self) -> dict[tuple[str, str], str]:
        """What the store holds, comparable with `FakeWatchServer.versions`."""
        return {(i.meta.namespace, i.meta.name): i.meta.resource_version for i in self.store.items()}

    def told(self) -> list[tuple[str, str]]:
        """Changes told so far, in order, as (change, name)."""
        return [(event.change.value, event.item.meta.name) for event in self.events]

    def replayed(self) -> dict[tuple[str, str], str]:
        """What somebody believes who knows nothing but the events."""
        held: dict[tuple[str, str], str] = {}
        for event in self.events:
            meta = event.item.meta
            if event.change is Change.DELETED:
                del held[meta.namespace, meta.name]
            else:
                held[meta.namespace, meta.name] = meta.resource_version
        return held


async def passing(seconds: float) -> None:
    """Let time pass on the fake clock; takes none."""
    await asyncio.sleep(seconds)


def of_watch_lists(requests: list[Request]) -> list[Request]:
    """The requests that ask for initial events."""
    return [request for request in requests if "sendInitialEvents" in request.query]
