"""Facts 1.4: a key waits until the stores show what was written for it."""

from collections.abc import Mapping
from typing import Any

import pytest

from modelfleet.kube.objects import Item, Meta
from modelfleet.kube.resource import Resource
from modelfleet.kube.store import State, Store
from modelfleet.plan import Api, Key, Ref
from modelfleet.runtime.written import Written

SERVICE = Api("", "v1", "Service", "services")
DEPLOYMENT = Api("apps", "v1", "Deployment", "deployments")
JOB = Api("batch", "v1", "Job", "jobs")
KEY = Key("a", "echo")
REF = Ref(SERVICE, "a", "echo")


def item(uid: str, version: int, *, deleting: bool = False) -> Item[None]:
    """A cached Service a/echo."""
    return Item(Meta("a", "echo", uid, str(version), deleting=deleting), None)


def nothing(_: Mapping[str, Any]) -> None:
    """A view of nothing."""


class Setup:
    """Two stores, and the keys that became ready."""

    def __init__(self, namespaces: tuple[str, ...] = ()) -> None:
        self.stores: dict[Api, Store[Any]] = {
            api: Store(Resource(api=api, view=nothing), namespaces) for api in (SERVICE, DEPLOYMENT)
        }
        self.ready: list[Key] = []
        self.written = Written(self.stores, self.ready.append)
        for store in self.stores.values():
            for feed in store.feeds:
                feed.replace([], 10)


def test_nothing_written_is_ready() -> None:
    """A key that wrote nothing waits for nothing."""
    assert Setup().written.ready(KEY)


@pytest.mark.parametrize("how", ["event", "bookmark", "relist", "deletion of another"])
def test_waits_for_the_version(how: str) -> None:
    """Whatever carries the resourceVersion past what was written makes the key ready, once."""
    world = Setup()
    feed = world.stores[SERVICE].feed()
    world.written.note(KEY, REF, "20")
    before = world.written.ready(KEY)
    feed.bookmark("19")
    early = list(world.ready)
    if how == "event":
        feed.put(item("u", 20))
    elif how == "bookmark":
        feed.bookmark("25")
    elif how == "relist":
        feed.replace([], 21)
    else:
        feed.drop(("b", "other"), "x", "22")
    feed.bookmark("30")

    assert (False, []) == (before, early)
    assert [KEY] == world.ready
    assert world.written.ready(KEY)


def test_every_store_counts() -> None:
    """A key is ready when the slowest store is there; versions of different types are not compared."""
    world = Setup()
    world.written.note(KEY, REF, "20")
    world.written.note(KEY, Ref(DEPLOYMENT, "a", "echo"), "30")
    world.written.note(KEY, REF, "15")
    before = world.written.ready(KEY)
    world.stores[SERVICE].feed().bookmark("40")
    between = list(world.ready)
    world.stores[DEPLOYMENT].feed().bookmark("30")

    assert (False, [], [KEY]) == (before, between, world.ready)


def test_keys_do_not_wait_for_each_other() -> None:
    """What was written for one key holds up no other."""
    world = Setup()
    world.written.note(KEY, REF, "20")

    assert world.written.ready(Key("a", "other"))


def test_nobody_asked_nobody_is_called() -> None:
    """A key that was not found unready is not woken: it has nothing to do."""
    world = Setup()
    world.written.note(KEY, REF, "20")
    world.stores[SERVICE].feed().bookmark("20")

    assert [] == world.ready


def test_namespaces_have_their_own_progress() -> None:
    """With a list of namespaces the reflector of the right one is waited for."""
    world = Setup(namespaces=("a", "b"))
    world.written.note(KEY, REF, "20")
    world.stores[SERVICE].feed("b").bookmark("50")
    before = world.written.ready(KEY)
    world.stores[SERVICE].feed("a").bookmark("20")

    assert (False, [KEY]) == (before, world.ready)


@pytest.mark.parametrize("state", [State.NOT_INSTALLED, State.FORBIDDEN, State.SYNCING])
def test_stores_that_cannot_tell_are_not_waited_for(state: State) -> None:
    """A CRD that vanished after the write does not block its owner for ever."""
    world = Setup()
    world.written.note(KEY, REF, "20")
    before = world.written.ready(KEY)
    world.stores[SERVICE].feed().mark(state)

    assert (False, [KEY]) == (before, world.ready)


def test_a_server_that_went_back_in_time() -> None:
    """After a restore from backup the versions written before will never be reached."""
    world = Setup()
    world.written.note(KEY, REF, "20")
    before = world.written.ready(KEY)
    world.stores[SERVICE].feed().replace([], 5)

    assert (False, [KEY]) == (before, world.ready)


@pytest.mark.parametrize("seen", ["gone", "replaced", "terminating"])
def test_waits_for_a_deletion(seen: str) -> None:
    """A deletion is over when the store shows that incarnation gone or on its way."""
    world = Setup()
    feed = world.stores[SERVICE].feed()
    feed.put(item("u", 15))
    world.written.note_deleted(KEY, REF, "u")
    before = world.written.ready(KEY)
    feed.bookmark("16")
    early = list(world.ready)
    if seen == "gone":
        feed.drop(("a", "echo"), "u", "17")
    else:
        feed.put(item("v" if seen == "replaced" else "u", 17, deleting=seen == "terminating"))

    assert (False, []) == (before, early)
    assert [KEY] == world.ready


def test_types_without_a_store_are_not_waited_for() -> None:
    """Nobody watches them, so nobody decides from them."""
    world = Setup()
    world.written.note(KEY, Ref(JOB, "a", "j"), "99")
    world.written.note_deleted(KEY, Ref(JOB, "a", "j"), "u")

    assert world.written.ready(KEY)


def test_forgotten_keys_leave_nothing() -> None:
    """Memory stays proportional to the objects that exist."""
    world = Setup()
    for number in range(100):
        key = Key("a", str(number))
        world.written.note(key, REF, "20")
        world.written.note_deleted(key, REF, "u")
        world.written.forget(key)
    world.written.note(KEY, REF, "20")
    world.written.ready(KEY)
    world.stores[SERVICE].feed().bookmark("20")

    assert ({}, {}, {}) == (world.written._versions, world.written._deleted, world.written._parked)
