"""Rules I1-I16 of the reflector on an ordinary day: what it asks, what it keeps, what it tells."""

import asyncio
import contextlib
import logging

import pytest

from modelfleet.kube.changes import Change, State
from modelfleet.kube.errors import TransportError
from modelfleet.kube.objects import Meta
from modelfleet.kube.store import Event
from test.support.fake_answers import GONE, NO_WATCH_LIST, Answer, FakeStream, Script, bookmark
from test.support.fake_watch_server import FakeWatchServer
from test.unit.kube.reflector_rig import SETTLE, Rig, of_watch_lists, passing

pytestmark = pytest.mark.looptime


@pytest.mark.parametrize("watch_list", [True, False])
async def test_i1_the_first_list_reads_the_quorum(*, watch_list: bool) -> None:
    """A stale cache at start could show deleted objects as live (rule I1)."""
    server = FakeWatchServer(watch_list=watch_list)
    server.put("one")
    async with Rig(server) as rig:
        verb = "watch" if watch_list else "list"

        assert "" == server.asked(verb)[0].query.get("resourceVersion", "")
        assert server.versions() == rig.known()


@pytest.mark.parametrize("watch_list", [True, False])
async def test_i1_a_relist_never_goes_back_in_time(*, watch_list: bool) -> None:
    """A relist says "not older than what I have seen" (rule I1)."""
    server = FakeWatchServer(watch_list=watch_list)
    server.put("one")
    async with Rig(server) as rig:
        server.put("two")
        await passing(SETTLE)
        seen = rig.store.seen("a")
        server.compact()
        server.meet("watch", GONE, where=lambda request: "sendInitialEvents" not in request.query)
        server.cut()
        await passing(10)

        relist = (of_watch_lists(server.requests) if watch_list else server.asked("list"))[-1]
        expected = {"resourceVersion": str(seen), "resourceVersionMatch": "NotOlderThan"}
        assert expected == {key: relist.query[key] for key in expected}
        assert ["initial", "expired"] == rig.metrics.lists


async def test_i2_a_relist_has_no_limit_and_the_first_list_is_paged() -> None:
    """A limit would send a relist past the watch cache; a quorum read comes in pages (rule I2)."""
    server = FakeWatchServer(watch_list=False)
    for number in range(1200):
        server.put(f"o{number:04}")
    async with Rig(server) as rig:
        assert ["500", "500", "500"] == [request.query["limit"] for request in server.asked("list")]

        server.meet("watch", GONE)
        server.cut()
        await passing(10)

        assert "limit" not in server.asked("list")[-1].query
        assert server.versions() == rig.known()


async def test_i2_every_page_is_of_the_same_selection() -> None:
    """A continue token holds no selector: it is sent with each page (rule I2)."""
    server = FakeWatchServer(watch_list=False)
    for number in range(1200):
        server.put(f"o{number:04}", labels={"app": "x" if number % 2 else "y"})
    async with Rig(server, selector="app=x") as rig:
        assert 2 == len(server.asked("list"))
        assert {f"o{number:04}" for number in range(1, 1200, 2)} == {name for _, name in rig.known()}


async def test_i2_a_list_that_expires_in_the_middle_starts_over() -> None:
    """Pages of two snapshots must not be mixed: 410 on a continue token restarts the list (rule I2)."""
    server = FakeWatchServer(watch_list=False)
    for number in range(1200):
        server.put(f"o{number:04}")
    server.meet("list", GONE, where=lambda request: "continue" in request.query)
    async with Rig(server) as rig:
        assert {} == rig.known()

        server.delete("o0007")
        await passing(10)

        assert server.versions() == rig.known()


async def test_i3_a_watch_asks_for_bookmarks_and_a_bounded_time() -> None:
    """Streams are renewed after 5 to 10 minutes, not all at once (rule I3)."""
    asked = []
    for jitter in (0.0, 0.5, 0.999):
        server = FakeWatchServer()
        async with Rig(server, jitter=jitter):
            query = server.asked("watch")[0].query
            assert "true" == query["allowWatchBookmarks"]
            asked.append(int(query["timeoutSeconds"]))

    assert [300, 450, 599] == asked


async def test_i3_a_thousand_short_watches_lose_nothing() -> None:
    """Each watch goes on where the last one ended, without a list (rule I3)."""
    server = FakeWatchServer()
    async with Rig(server) as rig:
        for number in range(1000):
            server.put(f"o{number % 7}", labels={"n": str(number)})
            if number % 11 == 3:
                server.delete(f"o{number % 7}")
            server.end()
            await passing(1.5)

        assert server.versions() == rig.known() == rig.replayed()
        assert ["initial"] == rig.metrics.lists
        assert [] == rig.metrics.failures


async def test_i4_a_silent_stream_is_given_up_and_resumed() -> None:
    """Without a byte for 70 s the connection is dead, whatever TCP says (rule I4)."""
    server = FakeWatchServer()
    async with Rig(server) as rig:
        server.silence()
        server.put("late")
        await passing(69)
        assert {} == rig.known()

        await passing(3)

        assert server.versions() == rig.known()
        assert ["cut"] == rig.metrics.failures
        assert ["initial"] == rig.metrics.lists


async def test_i4_bookmarks_keep_a_quiet_stream_alive() -> None:
    """Nothing happening is not silence: the server sends a bookmark each minute (rule I4)."""
    server = FakeWatchServer()
    async with Rig(server) as rig:
        await passing(299)

        assert 1 == len(server.asked("watch"))
        assert [] == rig.metrics.failures


async def test_i4_a_stream_the_server_forgot_to_end_is_left() -> None:
    """A stream that outlives the agreed time by 5 s is dead, even if bytes come (rule I4)."""
    server = FakeWatchServer()
    server.ends_watches = False
    async with Rig(server):
        await passing(310)

        first, second = server.asked("watch")
        assert 305 <= second.at - first.at <= 307


async def test_i5_a_bookmark_moves_the_resume_point() -> None:
    """On a quiet type only bookmarks keep the resume point from expiring (rule I5)."""
    server = FakeWatchServer()
    async with Rig(server) as rig:
        server.revision = 5000
        await passing(61)
        assert 5000 == rig.store.seen("a") == rig.metrics.resource_version

        server.cut()
        await passing(1)

        assert "5000" == server.asked("watch")[-1].query["resourceVersion"]


async def test_i5_a_stream_cut_among_initial_events_leaves_no_gap() -> None:
    """Initial events are in no order, so none of them moves the resume point (rules I5, I10)."""
    server = FakeWatchServer()
    for number in range(20):
        server.put(f"o{number}")

    def cut(stream: FakeStream) -> None:
        server.before_initial_end = None
        stream.push(TransportError("reset"))

    server.before_initial_end = cut
    async with Rig(server) as rig:
        assert ({}, 0, State.SYNCING) == (rig.known(), rig.store.seen("a"), rig.store.state)

        server.delete("o3")
        await passing(2)

        assert ["", ""] == [request.query["resourceVersion"] for request in of_watch_lists(server.requests)]
        assert server.versions() == rig.known()


async def test_i9_an_object_deleted_in_a_gap_is_told_with_its_last_state() -> None:
    """Whoever maps an object to its owner needs the last known state of what vanished (rule I9)."""
    server = FakeWatchServer()
    server.put("stays")
    last = server.put("goes", labels={"owner": "x"})
    async with Rig(server) as rig:
        del rig.events[:]
        server.silence()
        server.delete("goes")
        server.compact()
        server.cut()
        await passing(10)

        (event,) = rig.events
        assert (Change.DELETED, True) == (event.change, event.final_state_unknown)
        assert (last["metadata"]["uid"], {"owner": "x"}) == (event.item.meta.uid, event.item.view)


async def test_i9_an_object_replaced_in_a_gap_is_two_objects() -> None:
    """Another uid under the same name is a deletion and a birth, never a modification (rule I9)."""
    server = FakeWatchServer()
    old = server.put("same")
    async with Rig(server) as rig:
        del rig.events[:]
        server.silence()
        server.delete("same")
        new = server.put("same")
        server.compact()
        server.cut()
        await passing(10)

        told = [(event.change, event.item.meta.uid, event.final_state_unknown) for event in rig.events]
        assert [
            (Change.DELETED, old["metadata"]["uid"], True),
            (Change.ADDED, new["metadata"]["uid"], False),
        ] == told


async def test_i9_a_relist_that_changes_nothing_tells_nothing() -> None:
    """Needless news are needless reconciles (kube-rs #1247)."""
    server = FakeWatchServer()
    server.put("one")
    async with Rig(server) as rig:
        del rig.events[:]
        server.meet("watch", GONE)
        server.cut()
        await passing(10)

        assert ["initial", "expired"] == rig.metrics.lists
        assert [] == rig.events


@pytest.mark.parametrize("watch_list", [True, False])
async def test_i10_readers_never_see_half_a_list(*, watch_list: bool) -> None:
    """The set is swapped at once: a reader at any moment of a relist sees all of it (rule I10)."""
    server = FakeWatchServer(watch_list=watch_list)
    for number in range(1000):
        server.put(f"o{number:04}")
    async with Rig(server) as rig:
        counts: set[int] = set()

        async def read() -> None:
            while True:
                counts.add(len(rig.store))
                await asyncio.sleep(0.001)

        server.silence()
        server.put("o0001")
        server.compact()
        server.cut()
        reader = asyncio.create_task(read())
        await passing(3)
        reader.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await reader

        assert "expired" in rig.metrics.lists
        assert {1000} == counts


async def test_i10_handlers_see_the_whole_new_set() -> None:
    """Events are told after the swap: a handler that reads the store finds what it is told of (rule I10)."""
    server = FakeWatchServer()
    for name in ("a", "b", "c"):
        server.put(name)
    rig = Rig(server)
    sizes: list[int] = []
    rig.store.subscribe(lambda _: sizes.append(len(rig.store)))
    async with rig:
        assert [3, 3, 3] == sizes


@pytest.mark.parametrize("refusal", [NO_WATCH_LIST, Answer(400, "BadRequest", "unknown parameter")])
async def test_i11_a_server_without_watch_list_is_listed(refusal: Answer) -> None:
    """What the server refuses to stream is listed instead, now and in future (rule I11)."""
    server = FakeWatchServer()
    server.put("one")
    server.meet("watch", refusal, times=float("inf"), where=lambda r: "sendInitialEvents" in r.query)
    async with Rig(server) as rig:
        assert server.versions() == rig.known()

        server.compact()
        server.meet("watch", GONE)
        server.cut()
        await passing(10)

        assert 1 == len(of_watch_lists(server.requests))
        assert ["initial", "expired"] == rig.metrics.lists


@pytest.mark.parametrize(
    "fault",
    [
        Answer(500, "InternalError", "no bookmark today"),
        Script((bookmark(100),)),
        Script((b"nonsense",)),
        Script(),
    ],
)
async def test_i11_a_watch_list_that_keeps_failing_is_not_insisted_on(fault: Answer | Script) -> None:
    """Making progress is better than waiting for a better protocol (rule I11)."""
    server = FakeWatchServer()
    server.put("one")
    server.meet("watch", fault, times=float("inf"), where=lambda r: "sendInitialEvents" in r.query)
    async with Rig(server) as rig:
        await passing(10)

        assert server.versions() == rig.known()
        assert 3 == len(of_watch_lists(server.requests))


async def test_i11_an_overdue_bookmark_is_complained_about(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever waits for a cache to fill is told every 10 s what for (rule I11)."""
    server = FakeWatchServer()
    server.meet("watch", Script(then="hang"))
    with caplog.at_level(logging.WARNING):
        async with Rig(server) as rig:
            await passing(35)
            complaints = [record.message for record in caplog.records]

            assert ["after 10 s", "after 20 s", "after 30 s"] == [
                text[text.index("after") :].partition(";")[0] for text in complaints
            ]
            assert all(text.startswith("configmaps in all namespaces") for text in complaints)
            assert State.SYNCING is rig.store.state


async def test_i12_synced_comes_after_the_handlers_have_seen_the_first_list() -> None:
    """Workers that start on "synced" must find every initial key queued (rule I12)."""
    server = FakeWatchServer()
    server.put("one")
    server.put("two")
    rig = Rig(server)
    order: list[str] = []

    def handle(event: Event[object]) -> None:
        order.append(f"{event.item.meta.name} while {rig.store.state.value}")

    rig.store.subscribe(handle)
    rig.store.on_state(lambda state: order.append(state.value))
    async with rig:
        assert ["one while Syncing", "two while Syncing", "Synced"] == order


async def test_i13_stored_objects_can_not_be_changed() -> None:
    """A planner that edits what it reads would edit what everybody reads (rule I13)."""
    server = FakeWatchServer()
    server.put("one")
    async with Rig(server) as rig:
        (item,) = rig.store.items()

        with pytest.raises(AttributeError):
            item.view = {}  # type: ignore[misc]  # the point of the test
        with pytest.raises(AttributeError):
            item.meta.name = "x"  # type: ignore[misc]  # as above
        assert isinstance(item.meta, Meta)


async def test_i14_an_object_that_loses_our_label_is_unknown_not_gone() -> None:
    """A filtered cache can't tell a lost label from a deletion, and says so (rule I14)."""
    server = FakeWatchServer()
    server.put("one", labels={"app": "x", "n": "1"})
    server.put("other", labels={"app": "y"})
    async with Rig(server, selector="app=x") as rig:
        assert [("Added", "one")] == rig.told()
        assert "app=x" == server.asked("watch")[0].query["labelSelector"]

        server.put("one", labels={"app": "y", "n": "2"})
        await passing(SETTLE)

        event = rig.events[-1]
        assert (Change.DELETED, True) == (event.change, event.final_state_unknown)
        assert {"app": "x", "n": "1"} == event.item.view
        assert server.revision == rig.store.seen("a")


async def test_i14_without_a_selector_a_deletion_is_certain() -> None:
    """A DELETED event of an unfiltered watch is the truth (rule I14)."""
    server = FakeWatchServer()
    server.put("one")
    async with Rig(server) as rig:
        server.delete("one")
        await passing(SETTLE)

        event = rig.events[-1]
        assert (Change.DELETED, False) == (event.change, event.final_state_unknown)


async def test_i16_only_the_first_list_is_initial() -> None:
    """What was there before we came is no news (rule I16)."""
    server = FakeWatchServer()
    server.put("old")
    async with Rig(server) as rig:
        server.put("new")
        await passing(SETTLE)
        server.silence()
        server.put("in-the-gap")
        server.compact()
        server.cut()
        await passing(10)

        flags = {event.item.meta.name: event.initial for event in rig.events}
        assert {"old": True, "new": False, "in-the-gap": False} == flags


async def test_a_metadata_only_reflector_asks_for_no_bodies() -> None:
    """PartialObjectMetadata spares the wire what nobody reads (facts 4.3)."""
    server = FakeWatchServer(watch_list=False)
    resource = Rig(server).resource
    async with Rig(server, resource=type(resource)(api=resource.api, view=resource.view, metadata_only=True)):
        assert "as=PartialObjectMetadataList;" in server.asked("list")[0].accept
        assert "as=PartialObjectMetadata;" in server.asked("watch")[-1].accept


async def test_cancelling_leaves_nothing_behind() -> None:
    """No task and no stream outlives the reflector (architecture.md section 3)."""
    server = FakeWatchServer()
    before = asyncio.all_tasks()
    async with Rig(server):
        assert 1 == len(server.streams)

    assert [] == server.streams
    assert before == asyncio.all_tasks()
