"""The writing side of a store: what one reflector knows about one namespace, and the news it makes.

Every method is synchronous, so that nobody can see a step of it (rule I10). A feed turns lists and watch
events into ordered changes: objects missing from a list become deletions with their last known state (rule
I9), unchanged ones make no news, and another uid under the same name is a deletion followed by a birth.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Generic, Protocol

from modelfleet.kube.changes import Change, Event, State
from modelfleet.kube.objects import Item, V
from modelfleet.kube.settlement import Settlements
from modelfleet.plan import Api

Name = tuple[str, str]
"""Namespace and name."""


class Listener(Protocol):
    """Hears that a feed has moved."""

    def progressed(self) -> None:
        """The feed has seen more of the server's history."""

    def state_changed(self) -> None:
        """The feed's state or problem is another one."""


class Feed(Generic[V]):
    """The objects of one namespace (or of all: "") as one reflector has seen them."""

    def __init__(
        self,
        api: Api,
        namespace: str,
        *,
        deliver: Callable[[Sequence[Event[V]]], None],
        listener: Listener,
        filtered: bool = False,
    ) -> None:
        """`deliver` takes changes that happened together; `filtered`: a selector may hide live objects."""
        self.namespace = namespace
        self.state = State.SYNCING
        self.problem = ""
        self.resource_version = 0
        """The highest resourceVersion seen, bookmarks included."""
        self.epoch = 0
        """How often the server went back in time (etcd restored from a backup)."""
        self._items: dict[Name, Item[V]] = {}
        self._deliver = deliver
        self._listener = listener
        self._settlements = Settlements(api)
        self._filtered = filtered
        self._listed = False

    @property
    def items(self) -> Mapping[Name, Item[V]]:
        """Everything known, by namespace and name."""
        return self._items

    @property
    def listed(self) -> bool:
        """Whether a list came in since the start, or since the type appeared on the server."""
        return self._listed

    def replace(self, items: Iterable[Item[V]], resource_version: int) -> None:
        """Take a complete list read at `resource_version`: all of it at once (rules I9, I10, I12)."""
        before = self._items
        after = {(item.meta.namespace, item.meta.name): self._settlements.read(item) for item in items}
        initial, self._listed = not self._listed, True
        went_back = resource_version < self.resource_version
        self.epoch += went_back
        self.resource_version = resource_version
        self._items = after
        self._deliver([*_vanished(before, after), *_news(before, after, initial=initial, doubt=went_back)])
        self._settlements.prune((item.meta.uid for item in after.values()), resource_version)
        self.mark(State.SYNCED)
        self._listener.progressed()

    def put(self, item: Item[V]) -> None:
        """Take an ADDED or MODIFIED event; what we already know, or know better, makes no news."""
        item = self._settlements.read(item)
        name = (item.meta.namespace, item.meta.name)
        previous = self._items.get(name)
        if previous is None or not _outdated(item, previous):
            self._items[name] = item
            if previous is not None and previous.meta.uid != item.meta.uid:
                self._settlements.forget(previous.meta.uid)
            self._deliver(_transition(previous, item))
        self._advance(item.meta.resource_version)

    def drop(self, name: Name, uid: str, resource_version: str, *, certain: bool = True) -> None:
        """Take a DELETED event, or (not `certain`) lose sight of an object that can't be read any more."""
        known = self._items.get(name)
        if known is not None and known.meta.uid == uid:
            del self._items[name]
            self._settlements.forget(uid)
            unknown = self._filtered or not certain
            self._deliver([Event(Change.DELETED, known, known, final_state_unknown=unknown)])
        self._advance(resource_version)

    def bookmark(self, resource_version: str) -> None:
        """The server says that nothing happened up to here (rule I5)."""
        self._advance(resource_version)

    def withdraw(self, problem: str) -> None:
        """The type is gone from the server: the feed is empty and that is the truth (rule I15)."""
        before, self._items = self._items, {}
        self._listed = False
        self._settlements.clear()
        self._deliver(_vanished(before, {}))
        self.mark(State.NOT_INSTALLED, problem)
        self._listener.progressed()

    def mark(self, state: State, problem: str = "") -> None:
        """Say what the feed's content is worth."""
        if (state, problem) == (self.state, self.problem):
            return
        self.state, self.problem = state, problem
        self._listener.state_changed()

    def settle(self, item: Item[V], desired: str, *, subresource: str) -> None:
        """The server answered our own apply with `item`; see `modelfleet.kube.settlement`."""
        self._settlements.remember(item, desired, subresource=subresource)
        name = (item.meta.namespace, item.meta.name)
        known = self._items.get(name)
        if known is not None and known.meta.uid == item.meta.uid:
            self._items[name] = self._settlements.read(known)

    def _advance(self, resource_version: str) -> None:
        self.resource_version = max(self.resource_version, int(resource_version))
        self._listener.progressed()


def _outdated(item: Item[V], known: Item[V]) -> bool:
    """The same incarnation at the same revision or an older one."""
    same = item.meta.uid == known.meta.uid
    return same and int(item.meta.resource_version) <= int(known.meta.resource_version)


def _transition(
    previous: Item[V] | None, item: Item[V], *, initial: bool = False, unknown: bool = False
) -> list[Event[V]]:
    if previous is None:
        return [Event(Change.ADDED, item, initial=initial)]
    if previous.meta.uid == item.meta.uid:
        return [Event(Change.MODIFIED, item, previous)]
    return [
        Event(Change.DELETED, previous, previous, final_state_unknown=unknown),
        Event(Change.ADDED, item, initial=initial),
    ]


def _vanished(before: Mapping[Name, Item[V]], after: Mapping[Name, Item[V]]) -> list[Event[V]]:
    return [
        Event(Change.DELETED, item, item, final_state_unknown=True)
        for name, item in before.items()
        if name not in after
    ]


def _news(
    before: Mapping[Name, Item[V]], after: Mapping[Name, Item[V]], *, initial: bool, doubt: bool
) -> Iterator[Event[V]]:
    """Births and changes; in `doubt` equal resourceVersions may belong to different histories."""
    for name, item in after.items():
        previous = before.get(name)
        if previous is None or previous.meta.uid != item.meta.uid:
            yield from _transition(previous, item, initial=initial, unknown=True)
        elif doubt or previous.meta.resource_version != item.meta.resource_version:
            yield Event(Change.MODIFIED, item, previous)
