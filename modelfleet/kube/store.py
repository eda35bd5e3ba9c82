"""The cache of one resource type: read by planners, written by its reflectors only.

Promises: readers see the old or the new set, never half a list (rule I10); an object missing from a relist
is removed and announced with its last known state (rule I9); nothing here does I/O.
`seen()` is the highest resourceVersion this cache has caught up with, bookmarks included; read-your-writes
waits on it (facts 1.4). One store may be fed by several reflectors, one per watched namespace.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic

from modelfleet.kube.changes import Change, Event, Handler, State
from modelfleet.kube.feed import Feed, Name
from modelfleet.kube.objects import Item, V
from modelfleet.kube.resource import Index, Resource, UnreadableObjectError
from modelfleet.plan import Manifest

__all__ = ["Change", "Event", "Handler", "State", "Store"]

_GRAVITY = (State.FORBIDDEN, State.NOT_INSTALLED, State.SYNCING, State.SYNCED)
"""The store is in the worst state of its feeds: a conclusion needs all of them."""


class Store(Generic[V]):
    """Every cached object of one resource type."""

    def __init__(self, resource: Resource[V], namespaces: Iterable[str] = ()) -> None:
        """`namespaces` lists what is watched; empty (or a cluster-scoped type) is everything."""
        self.resource = resource
        self.api = resource.api
        self.state = State.SYNCING
        self.problem = ""
        """What keeps the store from being in sync, for people; "" when nothing does."""
        self._owners = _NameIndex(_owner_uids)
        self._indexes = {name: _NameIndex(values) for name, values in resource.indexes.items()}
        self._handlers: list[Handler[V]] = []
        self._progress: list[Callable[[], None]] = []
        self._states: list[Callable[[State], None]] = []
        watched = tuple(dict.fromkeys(namespaces)) if resource.api.namespaced else ()
        self._feeds = {namespace: self._new_feed(namespace) for namespace in watched or ("",)}

    def __len__(self) -> int:
        return sum(len(feed.items) for feed in self._feeds.values())

    def get(self, namespace: str, name: str) -> Item[V] | None:
        """The object of this name, or None."""
        feed = self._covering(namespace)
        return feed.items.get((namespace, name)) if feed else None

    def items(self) -> tuple[Item[V], ...]:
        """Every object, in no particular order."""
        return tuple(item for feed in self._feeds.values() for item in feed.items.values())

    def by_owner(self, uid: str) -> tuple[Item[V], ...]:
        """The objects with an owner reference to `uid`, ordered by namespace and name."""
        return self._named(self._owners.names(uid))

    def by_index(self, index: str, value: str) -> tuple[Item[V], ...]:
        """The objects an index of the resource files under `value`, ordered by namespace and name."""
        return self._named(self._indexes[index].names(value))

    def seen(self, namespace: str) -> int:
        """Highest resourceVersion seen of a namespace; 0 when it is not watched or nothing came yet.

        It goes down only when the server itself went back in time, which `epoch` counts.
        """
        feed = self._covering(namespace)
        return feed.resource_version if feed else 0

    def epoch(self, namespace: str) -> int:
        """How often the server went back in time: resourceVersions of an earlier epoch are never reached."""
        feed = self._covering(namespace)
        return feed.epoch if feed else 0

    def feed(self, namespace: str = "") -> Feed[V]:
        """The writing side for one watched namespace; for reflectors and tests."""
        return self._feeds[namespace]

    @property
    def feeds(self) -> tuple[Feed[V], ...]:
        """One for each watched namespace."""
        return tuple(self._feeds.values())

    def subscribe(self, handler: Handler[V]) -> None:
        """Call `handler` for each change from now on; register before the reflectors start (rule I12)."""
        self._handlers.append(handler)

    def on_progress(self, callback: Callable[[], None]) -> None:
        """Call after each event, bookmark, relist or change of state, when all of it can be read."""
        self._progress.append(callback)

    def on_state(self, callback: Callable[[State], None]) -> None:
        """Call with the new state whenever `state` or `problem` changes."""
        self._states.append(callback)

    def settle(self, obj: Mapping[str, Any], desired: Manifest, subresource: str = "") -> None:
        """Take the server's answer to our own apply of `desired` (rule A13a, `kube.settlement`)."""
        try:
            item = self.resource.decode(obj)
        except UnreadableObjectError:  # it won't be stored either; the reflector says so
            return
        if feed := self._covering(item.meta.namespace):
            feed.settle(item, desired.digest, subresource=subresource)

    def receive(self, events: Sequence[Event[V]]) -> None:
        """Feeds only: take changes that have happened together."""
        for event in events:
            self._owners.update(event)
            for index in self._indexes.values():
                index.update(event)
        for event in events:
            for handler in self._handlers:
                handler(event)

    def progressed(self) -> None:
        """Feeds only: more of the server's history was seen."""
        for callback in self._progress:
            callback()

    def state_changed(self) -> None:
        """Feeds only: a feed's state or problem changed."""
        worst = min((feed.state for feed in self.feeds), key=_GRAVITY.index)
        problem = "; ".join(dict.fromkeys(feed.problem for feed in self.feeds if feed.problem))
        if (worst, problem) == (self.state, self.problem):
            return
        self.state, self.problem = worst, problem
        for callback in self._states:
            callback(worst)
        self.progressed()

    def _new_feed(self, namespace: str) -> Feed[V]:
        filtered = bool(self.resource.label_selector)
        return Feed(self.api, namespace, deliver=self.receive, listener=self, filtered=filtered)

    def _covering(self, namespace: str) -> Feed[V] | None:
        return self._feeds.get("") or self._feeds.get(namespace)

    def _named(self, names: Iterable[Name]) -> tuple[Item[V], ...]:
        found = (self.get(namespace, name) for namespace, name in sorted(names))
        return tuple(item for item in found if item is not None)


class _NameIndex(Generic[V]):
    """From a value to the names of the items that have it."""

    def __init__(self, values: Index[V]) -> None:
        self._values = values
        self._names: dict[str, set[Name]] = {}

    def names(self, value: str) -> Iterable[Name]:
        return self._names.get(value, ())

    def update(self, event: Event[V]) -> None:
        """Move the event's object from its former values to its present ones."""
        name = (event.item.meta.namespace, event.item.meta.name)
        before = set(self._values(event.previous)) if event.previous is not None else set()
        after = set(self._values(event.item)) if event.change is not Change.DELETED else set()
        for value in before - after:
            names = self._names[value]
            names.discard(name)
            if not names:
                del self._names[value]
        for value in after - before:
            self._names.setdefault(value, set()).add(name)


def _owner_uids(item: Item[Any]) -> Iterable[str]:
    return (owner.uid for owner in item.meta.owners)
