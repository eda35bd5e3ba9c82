"""The store as its readers see it: lookups, indexes, states, settlements."""

from collections.abc import Mapping
from typing import Any

import pytest

from modelfleet.kube.changes import Change, State
from modelfleet.kube.objects import LAST_APPLIED, Item, MalformedObjectError, Meta, Owner, meta_of
from modelfleet.kube.resource import Resource
from modelfleet.kube.store import Store
from modelfleet.plan import Manifest
from test.support.kinds import CONFIG_MAP, NODE

NOTHING = ""


def item(name: str, version: int = 1, *, namespace: str = "a", uid: str = "", **settings: Any) -> Item[str]:
    """An item whose view is its revision."""
    digest = settings.pop("digest", "")
    meta = Meta(namespace, name, uid or f"uid-{name}", str(version), **settings)
    return Item(meta, f"{name}@{version}", digest)


def store_of(*namespaces: str, **settings: Any) -> Store[str]:
    """A store nobody feeds yet."""
    return Store(Resource(api=CONFIG_MAP, view=lambda _: NOTHING, **settings), namespaces)


def owner(uid: str) -> Owner:
    """An owner reference."""
    return Owner("v1", "ConfigMap", "owner", uid, controller=True)


def test_children_are_found_by_owner_uid_in_a_fixed_order() -> None:
    """Never by name (19 of Sieve's 46 bugs), and in the same order whatever order they came in."""
    store = store_of()
    late = [item(name, owners=(owner("u1"), owner("u2"))) for name in ("c", "a", "b")]
    store.feed().replace([*late, item("other", owners=(owner("u2"),))], 5)

    assert ["a", "b", "c"] == [found.meta.name for found in store.by_owner("u1")]
    assert ["a", "b", "c", "other"] == [found.meta.name for found in store.by_owner("u2")]
    assert () == store.by_owner("nobody")

    store.feed().put(item("a", 6, owners=(owner("u2"),)))
    store.feed().drop(("a", "b"), "uid-b", "7")
    assert ["c"] == [found.meta.name for found in store.by_owner("u1")]


def test_an_index_follows_its_function() -> None:
    """An item is filed under every value its index function gives, and under no former one."""
    store = store_of(indexes={"app": lambda found: filter(None, [found.meta.labels.get("app")])})
    feed = store.feed()
    feed.put(item("one", 1, labels={"app": "x"}))
    feed.put(item("two", 2, labels={"app": "x"}))
    feed.put(item("one", 3, labels={"app": "y"}))
    feed.put(item("three", 4))

    assert ["two"] == [found.meta.name for found in store.by_index("app", "x")]
    assert ["one"] == [found.meta.name for found in store.by_index("app", "y")]
    with pytest.raises(KeyError):
        store.by_index("typo", "x")


def test_i10_handlers_find_the_indexes_in_step() -> None:
    """A handler told of a replaced object finds the new one under its owner, not the old (rule I10)."""
    store = store_of()
    store.feed().put(item("same", 1, uid="old", owners=(owner("u1"),)))
    seen: list[tuple[Change, int, int]] = []
    store.subscribe(
        lambda event: seen.append((event.change, len(store.by_owner("u1")), len(store.by_owner("u2"))))
    )
    store.feed().put(item("same", 2, uid="new", owners=(owner("u2"),)))

    assert [(Change.DELETED, 0, 1), (Change.ADDED, 0, 1)] == seen


@pytest.mark.parametrize("version", [4, 5])
def test_an_event_we_know_or_know_better_makes_no_news(version: int) -> None:
    """A resumed watch may repeat itself; the store never goes back (rule I5)."""
    store = store_of()
    store.feed().put(item("one", 5))
    events: list[object] = []
    store.subscribe(events.append)

    store.feed().put(item("one", version))

    assert [] == events
    assert "one@5" == store.items()[0].view


def test_a_deletion_of_another_incarnation_deletes_nothing() -> None:
    """The DELETED event of a former object must not hit its successor (Sieve: rabbitmq #648)."""
    store = store_of()
    store.feed().put(item("one", 5, uid="new"))
    store.feed().drop(("a", "one"), "old", "6")

    assert "new" == store.items()[0].meta.uid
    assert 6 == store.seen("a")


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ((State.SYNCED, State.SYNCED), State.SYNCED),
        ((State.SYNCED, State.SYNCING), State.SYNCING),
        ((State.SYNCED, State.FORBIDDEN), State.FORBIDDEN),
        ((State.NOT_INSTALLED, State.SYNCING), State.NOT_INSTALLED),
        ((State.NOT_INSTALLED, State.FORBIDDEN), State.FORBIDDEN),
    ],
)
def test_a_store_is_in_the_worst_state_of_its_namespaces(states: tuple[State, ...], expected: State) -> None:
    """Absence means something only when every namespace is known."""
    store = store_of("a", "b")
    for namespace, state in zip(("a", "b"), states, strict=True):
        store.feed(namespace).mark(state, f"{state.value} in {namespace}")

    assert expected is store.state
    assert f"{states[0].value} in a; {states[1].value} in b" == store.problem


def test_callers_are_told_of_states_once() -> None:
    """A state that stays the same is no news; progress is told after each thing seen."""
    store = store_of("a", "b")
    states: list[State] = []
    progress: list[int] = []
    store.on_state(states.append)
    store.on_progress(lambda: progress.append(store.seen("a")))

    store.feed("a").replace([], 5)
    store.feed("b").replace([], 6)
    store.feed("a").bookmark("9")
    store.feed("a").mark(State.SYNCED)

    assert [State.SYNCED] == states
    assert 9 == progress[-1]


def test_seen_goes_down_only_when_the_server_went_back() -> None:
    """Who waits for a revision learns by the epoch that it will never come (facts 1.4)."""
    store = store_of()
    feed = store.feed()
    feed.replace([item("one", 80)], 90)
    feed.bookmark("70")
    assert (90, 0) == (store.seen("a"), store.epoch("a"))

    changes: list[Change] = []
    store.subscribe(lambda event: changes.append(event.change))
    feed.replace([item("one", 80)], 85)

    assert (85, 1) == (store.seen("a"), store.epoch("a"))
    assert [Change.MODIFIED] == changes  # revision 80 of another history may be another content


def test_withdrawing_a_type_deletes_what_was_known() -> None:
    """A type that is gone took its objects along; then comes a first list again (rules I15, I16)."""
    store = store_of()
    store.feed().replace([item("one")], 5)
    events: list[tuple[Change, bool, bool]] = []
    store.subscribe(lambda event: events.append((event.change, event.initial, event.final_state_unknown)))

    store.feed().withdraw("no CRD")
    assert (State.NOT_INSTALLED, "no CRD", ()) == (store.state, store.problem, store.items())
    assert () == store.by_owner("u1")

    store.feed().replace([item("one", 7)], 8)
    assert [(Change.DELETED, False, True), (Change.ADDED, True, False)] == events
    assert (State.SYNCED, "") == (store.state, store.problem)


def test_a_cluster_scoped_type_has_one_feed() -> None:
    """Namespaces mean nothing to a Node."""
    store = Store(Resource(api=NODE, view=lambda _: NOTHING), ("a", "b"))

    assert [""] == [feed.namespace for feed in store.feeds]


# --- rule A13a: what the server made of an apply ---------------------------------------------------


def answer(version: int, cpu: str, *, name: str = "web", status: str = "") -> dict[str, Any]:
    """The server's answer to an apply of ours."""
    fields: dict[str, Any] = {"manager": "us", "operation": "Apply", "fieldsType": "FieldsV1"}
    managed = [{**fields, "fieldsV1": {"f:spec": {"f:cpu": {}}}}]
    obj: dict[str, Any] = {
        "metadata": {"namespace": "a", "name": name, "uid": f"uid-{name}", "resourceVersion": str(version)},
        "spec": {"cpu": cpu},
    }
    if status:
        managed.append({**fields, "fieldsV1": {"f:status": {"f:x": {}}}, "subresource": "status"})
        obj["status"] = {"x": status}
    obj["metadata"]["managedFields"] = managed
    return obj


def desired(cpu: str) -> Manifest:
    """What we applied."""
    return Manifest.of(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "spec": {"cpu": cpu}}
    )


def settled_store() -> Store[str]:
    """A store that projects for the manager `us`."""
    return store_of(manager="us")


def feed_with(store: Store[str], obj: Mapping[str, Any]) -> None:
    """The watch delivers an object."""
    store.feed().put(store.resource.decode(obj))


@pytest.mark.parametrize("event_first", [True, False])
def test_a13_what_the_server_stores_instead_counts_as_what_was_applied(*, event_first: bool) -> None:
    """1000m comes back as 1: applying again would change nothing, so it reads as applied (rule A13a)."""
    store, live = settled_store(), answer(7, "1")
    if event_first:
        feed_with(store, live)
    store.settle(live, desired("1000m"))
    if not event_first:
        feed_with(store, live)

    assert desired("1000m").digest == store.items()[0].digest


def test_a13_a_settled_object_still_drifts() -> None:
    """Only the form the server gave it counts as equal; an edit is an edit (rule A13a)."""
    store = settled_store()
    store.settle(answer(7, "1"), desired("1000m"))
    feed_with(store, answer(8, "2"))
    assert desired("2").digest == store.items()[0].digest

    feed_with(store, answer(9, "1"))
    assert desired("1000m").digest == store.items()[0].digest

    store.settle(answer(10, "500m"), desired("500m"))
    feed_with(store, answer(11, "1"))
    assert desired("1").digest == store.items()[0].digest


def test_a13_the_status_settles_apart_from_the_rest() -> None:
    """A status the server prunes or defaults must not be written on every pass (facts 1.5)."""
    store = settled_store()
    wanted = Manifest.of({"status": {"x": "1", "pruned": True}})
    store.settle(answer(7, "1", status="1"), wanted, "status")
    feed_with(store, answer(7, "1", status="1"))

    (found,) = store.items()
    assert (desired("1").digest, wanted.digest) == (found.digest, found.status_digest)


def test_a13_an_object_that_is_gone_is_forgotten() -> None:
    """A settlement lasts as long as its object, also when the answer came after the end (rule Q6's like)."""
    store = settled_store()
    feed = store.feed()
    for name in ("deleted", "replaced", "vanished", "late", "stays", "unborn"):
        live = answer(7, "1", name=name)
        feed_with(store, live)
        store.settle(live, desired("1000m"))
    assert 6 == len(feed._settlements)

    feed.drop(("a", "deleted"), "uid-deleted", "8")
    other = answer(9, "1", name="replaced")
    other["metadata"]["uid"] = "another"
    feed_with(store, other)
    feed.drop(("a", "late"), "uid-late", "10")
    store.settle(answer(7, "1", name="late"), desired("1000m"))
    store.settle(answer(30, "1", name="unborn"), desired("1000m"))
    stays = store.resource.decode(answer(7, "1", name="stays"))
    feed.replace([stays], 20)

    assert {"uid-stays", "uid-unborn"} == set(feed._settlements._main)
    assert desired("1000m").digest == store.items()[0].digest

    feed.withdraw("gone")
    assert 0 == len(feed._settlements)


# --- decoding --------------------------------------------------------------------------------------


def test_meta_keeps_what_planners_read_and_drops_kubectls_copy_of_the_manifest() -> None:
    """The last-applied annotation is as large as the body that is not kept."""
    decoded = meta_of(
        {
            "metadata": {
                "namespace": "a",
                "name": "one",
                "uid": "u",
                "resourceVersion": "7",
                "generation": 3,
                "deletionTimestamp": "2026-01-01T00:00:00Z",
                "creationTimestamp": "2025-01-01T00:00:00Z",
                "labels": {"l": "1"},
                "annotations": {LAST_APPLIED: "{}", "kept": "yes"},
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "K", "name": "n", "uid": "o"},
                    {"apiVersion": "v1", "kind": "K", "name": "m", "uid": "p", "controller": True},
                ],
            }
        }
    )

    assert decoded == Meta(
        "a",
        "one",
        "u",
        "7",
        generation=3,
        deleting=True,
        created="2025-01-01T00:00:00Z",
        labels={"l": "1"},
        annotations={"kept": "yes"},
        owners=(Owner("v1", "K", "n", "o"), Owner("v1", "K", "m", "p", controller=True)),
    )
    assert "p" == (decoded.controller.uid if decoded.controller else "")


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        ({}, "object /? has no metadata"),
        ({"kind": "Status", "metadata": {}}, "Status /? has no metadata.name"),
        ({"metadata": {"name": "x"}}, "object /x has no metadata.uid"),
        ({"metadata": {"name": "x", "uid": "", "resourceVersion": "1"}}, "object /x has uid ''"),
        ({"metadata": {"name": "x", "uid": "u", "resourceVersion": ""}}, "resourceVersion ''"),
        ({"metadata": {"name": "x", "uid": "u", "resourceVersion": "٣"}}, "resourceVersion '٣'"),
    ],
)
def test_what_can_not_be_told_apart_is_no_object(obj: Mapping[str, Any], message: str) -> None:
    """Identity and revision are what a cache can't do without; the error says which is missing."""
    with pytest.raises(MalformedObjectError) as raised:
        meta_of(obj)

    assert message in str(raised.value)
