"""The store against the simplest thing that could be right: a dict per namespace."""

from collections.abc import Iterable
from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from modelfleet.kube.changes import Change, Event, State
from modelfleet.kube.objects import Item, Meta, Owner
from modelfleet.kube.resource import Resource
from modelfleet.kube.store import Store
from test.support.kinds import CONFIG_MAP
from test.support.mutation import MutationDetector

NAMESPACES = ("a", "b")
NAMES = ("x", "y", "z")
OWNERS = ("o1", "o2")
Name = tuple[str, str]

names = st.tuples(st.sampled_from(NAMESPACES), st.sampled_from(NAMES))
owners = st.sets(st.sampled_from(OWNERS))


class StoreMachine(RuleBasedStateMachine):
    """A server with one history, two feeds that see it by events or by lists, and a listener."""

    def __init__(self) -> None:
        super().__init__()
        self.revision = 0
        self.server: dict[Name, Item[int]] = {}
        self.expected: dict[str, dict[Name, Item[int]]] = {namespace: {} for namespace in NAMESPACES}
        self.synced: set[str] = set()
        self.heard: dict[Name, Item[int]] = {}
        self.store: Store[int] = Store(
            Resource(api=CONFIG_MAP, view=lambda _: 0, indexes={"parity": _parity}), NAMESPACES
        )
        self.detector = MutationDetector(self.store)
        self.store.subscribe(self._hear)

    def _hear(self, event: Event[int]) -> None:
        """Events alone give the same picture, and each one fits what was told before."""
        name = (event.item.meta.namespace, event.item.meta.name)
        known = self.heard.get(name)
        assert event.initial == (event.change is Change.ADDED and name[0] not in self.synced)
        match event.change:
            case Change.ADDED:
                assert known is None
                self.heard[name] = event.item
            case Change.MODIFIED:
                assert known is not None
                assert known == event.previous
                assert known.meta.uid == event.item.meta.uid
                self.heard[name] = event.item
            case Change.DELETED:
                assert known == event.item
                del self.heard[name]

    def _write(self, name: Name, uids: Iterable[str], uid: str) -> Item[int]:
        self.revision += 1
        meta = Meta(
            *name,
            uid,
            str(self.revision),
            owners=tuple(Owner("v1", "K", "n", uid) for uid in sorted(uids)),
        )
        self.server[name] = Item(meta, self.revision)
        return self.server[name]

    @rule(name=names, uids=owners, unseen=st.booleans())
    def write(self, *, name: Name, uids: set[str], unseen: bool) -> None:
        """Create or change an object; the watch of its namespace may miss it."""
        known = self.server.get(name)
        item = self._write(name, uids, known.meta.uid if known else f"uid-{self.revision}")
        if not unseen and name[0] in self.synced:
            self.expected[name[0]][name] = item
            self.store.feed(name[0]).put(item)

    @rule(name=names, unseen=st.booleans())
    def delete(self, *, name: Name, unseen: bool) -> None:
        """Delete an object; the watch may miss it."""
        if (known := self.server.pop(name, None)) is None:
            return
        self.revision += 1
        if not unseen and name[0] in self.synced:
            if (held := self.expected[name[0]].get(name)) and held.meta.uid == known.meta.uid:
                del self.expected[name[0]][name]
            self.store.feed(name[0]).drop(name, known.meta.uid, str(self.revision))

    @rule(name=names)
    def repeat(self, name: Name) -> None:
        """A resumed watch says again what is known."""
        if item := self.expected[name[0]].get(name):
            self.store.feed(name[0]).put(item)

    @rule(namespace=st.sampled_from(NAMESPACES))
    def relist(self, namespace: str) -> None:
        """Everything the server holds now."""
        self.expected[namespace] = {name: item for name, item in self.server.items() if name[0] == namespace}
        self.store.feed(namespace).replace(self.expected[namespace].values(), self.revision)
        self.synced.add(namespace)

    @rule(namespace=st.sampled_from(NAMESPACES))
    def withdraw(self, namespace: str) -> None:
        """The type disappears for this feed."""
        self.expected[namespace] = {}
        self.store.feed(namespace).withdraw("gone")
        self.synced.discard(namespace)

    @invariant()
    def reads_agree(self) -> None:
        """Every way to read gives the same, and it is what the server said."""
        expected = self.expected["a"] | self.expected["b"]
        assert expected == {(i.meta.namespace, i.meta.name): i for i in self.store.items()}
        assert expected == self.heard
        assert len(expected) == len(self.store)
        for uid in OWNERS:
            owned = [item for _, item in sorted(expected.items()) if uid in {o.uid for o in item.meta.owners}]
            assert owned == list(self.store.by_owner(uid))
        for value in ("even", "odd"):
            filed = [item for _, item in sorted(expected.items()) if value in _parity(item)]
            assert filed == list(self.store.by_index("parity", value))
        assert (self.store.state is State.SYNCED) == (self.synced == set(NAMESPACES))

    def teardown(self) -> None:
        """Nothing that was stored has changed since (rule I13)."""
        self.detector.verify()


def _parity(item: Item[Any]) -> list[str]:
    return ["even" if int(item.meta.resource_version) % 2 == 0 else "odd"]


TestStore = StoreMachine.TestCase
TestStore.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
