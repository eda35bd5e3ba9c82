"""All stores of a process and the reflectors that feed them.

One reflector for each resource type and watched namespace, all in one TaskGroup: no task outlives `run`, and
none of them ends while it runs. An optional type may be missing, come and go: its store says so
(`State.NOT_INSTALLED`), and a reflector starts and stops with its CRD (rule I15).
"""

import asyncio
import random
from collections.abc import Callable, Iterable
from typing import Any

from modelfleet.kube.backoff import Backoff
from modelfleet.kube.changes import State
from modelfleet.kube.client import Client
from modelfleet.kube.errors import KubeError
from modelfleet.kube.explain import not_installed
from modelfleet.kube.listing import latest_version
from modelfleet.kube.objects import Item, MalformedObjectError, V
from modelfleet.kube.presence import Presence, crd_resource
from modelfleet.kube.reflector import Reflector
from modelfleet.kube.reflector_metrics import ReflectorMetrics
from modelfleet.kube.resource import Resource
from modelfleet.kube.store import Store
from modelfleet.kube.wakeup import Wakeup
from modelfleet.plan import Api

__all__ = ["Cache", "CacheSyncError", "Resource"]


class CacheSyncError(KubeError):
    """A required type did not get in sync in time; the message names each one and why."""


class Cache:
    """Add every resource and subscribe every handler, then `run`."""

    def __init__(
        self,
        client: Client,
        namespaces: Iterable[str] = (),
        *,
        metrics: ReflectorMetrics | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """`namespaces` lists what is watched of namespaced types; empty is the whole cluster."""
        self._client = client
        self._namespaces = tuple(namespaces)
        self._metrics = metrics
        self._jitter = jitter
        self._stores: dict[Api, Store[Any]] = {}
        self._crds: Store[None] | None = None
        self._presence = Presence(None)
        self._reflectors: list[Reflector[Any]] = []
        self._moved = Wakeup()

    @property
    def stores(self) -> dict[Api, Store[Any]]:
        """What was added, by type."""
        return dict(self._stores)

    def add(self, resource: Resource[V]) -> Store[V]:
        """Make the store of a type; once for each type and before `run`."""
        if resource.api in self._stores:
            raise ValueError(f"{resource.api} is already watched: share its store")
        store = self._stores[resource.api] = self._new_store(resource)
        if not resource.required and self._crds is None:
            self._crds = self._new_store(crd_resource())
            self._presence = Presence(self._crds)
        return store

    def crd(self, api: Api) -> Item[None] | None:
        """Metadata of a type's CRD; None when there is none, or it may not be read."""
        return self._presence.crd(api)

    async def run(self) -> None:
        """Keep all stores equal to the server until cancelled."""
        async with asyncio.TaskGroup() as group:
            for reflector in self._reflectors:
                group.create_task(self._keep(reflector), name=f"reflector of {reflector}")

    def synced(self) -> bool:
        """Whether every required store is in sync, and each optional one too or known to be missing."""
        return not self._unsynced()

    async def wait_synced(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 -- names what is missing
        """Wait until `synced`.

        Raises:
            CacheSyncError: Not within `timeout` seconds.
        """
        try:
            async with asyncio.timeout(timeout):
                while not self.synced():
                    await self._moved.wait()
        except TimeoutError:
            reasons = "; ".join(
                f"{store.api.kind}: {store.problem or store.state}" for store in self._unsynced()
            )
            raise CacheSyncError(f"not in sync after {timeout:g} s: {reasons}") from None

    async def catch_up(self) -> None:
        """Wait until every synced store has seen what the quorum holds now (architecture.md section 3)."""
        async with asyncio.TaskGroup() as group:
            for reflector in self._reflectors:
                group.create_task(self._catch_up(reflector), name=f"catching up with {reflector}")

    async def _keep(self, reflector: Reflector[Any]) -> None:
        """Run a reflector whenever the server knows its type."""
        api = reflector.resource.api
        backoff = Backoff(self._jitter)
        while True:
            async with self._presence.while_present(api):
                await reflector.run()
            reflector.withdraw(not_installed(api))
            await self._presence.wait_worth_asking(api, backoff)

    async def _catch_up(self, reflector: Reflector[Any]) -> None:
        feed, backoff = reflector.feed, Backoff(self._jitter)
        epoch, target = feed.epoch, None

        def pending() -> bool:
            return feed.state is State.SYNCED and feed.epoch == epoch

        while target is None and pending():
            try:
                target = await latest_version(self._client, reflector.resource.api, feed.namespace)
            except (KubeError, MalformedObjectError):
                await asyncio.sleep(backoff.next())
        if target is None:
            return
        reflector.want(target)
        while pending() and feed.resource_version < target:
            await self._moved.wait()

    def _unsynced(self) -> list[Store[Any]]:
        fine = {True: (State.SYNCED,), False: (State.SYNCED, State.NOT_INSTALLED)}
        return [s for s in self._stores.values() if s.state not in fine[s.resource.required]]

    def _new_store(self, resource: Resource[V]) -> Store[V]:
        namespaces = self._namespaces if resource.namespaces is None else resource.namespaces
        store = Store(resource, namespaces)
        store.on_progress(self._moved.wake)
        self._reflectors += [
            Reflector(self._client, resource, feed, metrics=self._metrics, jitter=self._jitter)
            for feed in store.feeds
        ]
        return store
