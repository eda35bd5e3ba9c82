"""Read-your-writes: a key waits until the stores have caught up with what was written for it (facts 1.4).

For each key the highest resourceVersion written per resource type and namespace is kept; while a store has
not seen it, planning from that store would decide from the past. Nothing sleeps or polls: every event,
bookmark, relist and state change of a store asks again. Bookmarks matter, since a write whose object left
the label selector is never delivered. A store that is not synced (no CRD, no permission) is not waited for:
what it can't show it won't show later either, and its state is part of what planners read.
"""

from collections.abc import Callable, Mapping
from typing import Any

from modelfleet.kube.store import State, Store
from modelfleet.plan import Api, Key, Ref


class Written:
    """What each key waits for."""

    def __init__(self, stores: Mapping[Api, Store[Any]], on_ready: Callable[[Key], None]) -> None:
        """`on_ready` is called once for a key that was found not ready, as soon as it is."""
        self._stores = stores
        self._on_ready = on_ready
        self._versions: dict[Key, dict[tuple[Api, str], tuple[int, int]]] = {}
        """By resource type and namespace: the store's epoch and the resourceVersion to reach in it."""
        self._deleted: dict[Key, dict[str, Ref]] = {}
        """By uid: what was deleted for a key, which has no resourceVersion to wait for."""
        self._parked: dict[Api, set[Key]] = {}
        """Keys found not ready, under one resource type that holds them up."""
        for api, store in stores.items():
            store.on_progress(lambda api=api: self._progress(api))  # type: ignore[misc]  # mypy can't infer it

    def note(self, key: Key, ref: Ref, resource_version: str) -> None:
        """A write for `key` left `ref` at this resourceVersion."""
        if ref.api in self._stores:
            versions = self._versions.setdefault(key, {})
            where = (ref.api, ref.namespace)
            wanted = (self._stores[ref.api].epoch(ref.namespace), int(resource_version))
            versions[where] = max(versions.get(where, wanted), wanted)

    def note_deleted(self, key: Key, ref: Ref, uid: str) -> None:
        """A write for `key` deleted this incarnation of `ref`."""
        if ref.api in self._stores:
            self._deleted.setdefault(key, {})[uid] = ref

    def ready(self, key: Key) -> bool:
        """Whether the stores show everything written for `key`; if not, `on_ready` follows."""
        held_by = self._held_by(key)
        if held_by is not None:
            self._parked.setdefault(held_by, set()).add(key)
        return held_by is None

    def forget(self, key: Key) -> None:
        """The object of the key is gone."""
        self._versions.pop(key, None)
        self._deleted.pop(key, None)

    def _held_by(self, key: Key) -> Api | None:
        versions = self._versions.get(key, {})
        for (api, namespace), wanted in list(versions.items()):
            store = self._stores[api]
            if store.state is State.SYNCED and (store.epoch(namespace), store.seen(namespace)) < wanted:
                return api
            del versions[api, namespace]
        deleted = self._deleted.get(key, {})
        for uid, ref in list(deleted.items()):
            store = self._stores[ref.api]
            item = store.get(ref.namespace, ref.name)
            if store.state is State.SYNCED and item and item.meta.uid == uid and not item.meta.deleting:
                return ref.api
            del deleted[uid]
        self.forget(key)
        return None

    def _progress(self, api: Api) -> None:
        for key in self._parked.pop(api, ()):
            if self.ready(key):
                self._on_ready(key)
