"""Which custom resource types the server serves, now: optional CRDs come and go without a restart (rule I15).

One metadata-only watch on CustomResourceDefinitions tells of all of them, so a missing type costs no polling,
its appearance is noticed at once, and its disappearance does not have to be guessed from 404s. Without the
permission for it a missing type is asked for again every `POLL_SECONDS`.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

from modelfleet.kube.backoff import Backoff
from modelfleet.kube.changes import Change, Event, State
from modelfleet.kube.objects import Item
from modelfleet.kube.resource import Resource
from modelfleet.kube.store import Store
from modelfleet.kube.wakeup import Wakeup
from modelfleet.plan import Api

CRDS = Api(
    "apiextensions.k8s.io",
    "v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    namespaced=False,
)
POLL_SECONDS = 30.0
"""The reflector's own longest backoff (rule I8)."""


def _nothing(_: Mapping[str, Any]) -> None:
    """Presence needs metadata alone."""


def crd_resource() -> Resource[None]:
    """What to watch of CustomResourceDefinitions."""
    return Resource(api=CRDS, view=_nothing, required=False, metadata_only=True)


class Presence:
    """Answers for one process; `store` is None when nobody watches CRDs."""

    def __init__(self, store: Store[None] | None) -> None:
        self._store = store
        self._changed = Wakeup()
        self._gone: dict[str, set[asyncio.Timeout]] = {}
        if store is not None:
            store.subscribe(self._on_change)
            store.on_state(lambda _: self._changed.wake())

    def crd(self, api: Api) -> Item[None] | None:
        """Metadata of the type's CRD, where it is known."""
        return self._store.get("", api.qualified) if self._store is not None else None

    @contextlib.asynccontextmanager
    async def while_present(self, api: Api) -> AsyncIterator[None]:
        """Run the body until it ends, or until the CRD is deleted, whichever comes first."""
        scopes = self._gone.setdefault(api.qualified, set())
        scope = asyncio.timeout(None)
        scopes.add(scope)
        try:
            async with scope:
                yield
        except TimeoutError:
            if not scope.expired():
                raise
        finally:
            scopes.discard(scope)

    async def wait_worth_asking(self, api: Api, backoff: Backoff) -> None:
        """After a 404: wait until the answer may be another one."""
        seconds = backoff.next() if self._known() else POLL_SECONDS
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), seconds)
        while self._missing(api):
            await self._changed.wait()

    def _missing(self, api: Api) -> bool:
        return self._known() and self.crd(api) is None

    def _known(self) -> bool:
        return self._store is not None and self._store.state is State.SYNCED

    def _on_change(self, event: Event[None]) -> None:
        self._changed.wake()
        if event.change is not Change.DELETED:
            return
        now = asyncio.get_running_loop().time()
        for scope in self._gone.get(event.item.meta.name, ()):
            if not scope.expired():
                scope.reschedule(now)
