"""Rules I6-I8 and I15 on a bad day: nothing ends a reflector or makes it hurry, and nothing is lost."""

import asyncio
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest

from modelfleet.kube.changes import Change, State
from modelfleet.kube.resource import Resource
from test.support.fake_answers import (
    GONE,
    TOO_LARGE,
    Answer,
    Fault,
    Refused,
    Script,
    bookmark,
    error_event,
    event,
)
from test.support.fake_watch_server import FakeWatchServer, Request
from test.support.kinds import CONFIG_MAP
from test.unit.kube.reflector_rig import SETTLE, Rig, of_watch_lists, passing

pytestmark = pytest.mark.looptime

FOREVER = float("inf")
SERVER_ERROR = Answer(500, "InternalError", "etcd is having a bad day")
THROTTLED = Answer(429, "TooManyRequests", "later", {"retryAfterSeconds": 1})
FORBIDDEN = Answer(
    403,
    "Forbidden",
    'configmaps is forbidden: User "system:serviceaccount:models:fleet" cannot watch resource "configmaps" '
    'in API group "" at the cluster scope',
)


def resumes(request: Request) -> bool:
    """A plain watch, not one that asks for initial events."""
    return request.verb == "watch" and "sendInitialEvents" not in request.query


@pytest.mark.parametrize("second", [GONE, TOO_LARGE])
@pytest.mark.parametrize("as_event", [False, True])
@pytest.mark.parametrize("first", [GONE, TOO_LARGE])
@pytest.mark.parametrize("watch_list", [True, False])
async def test_i6_lost_history_leads_to_a_relist(
    *, watch_list: bool, first: Answer, as_event: bool, second: Answer
) -> None:
    """410 comes as an answer or as an event; a list that meets it too reads the quorum at last (rule I6)."""
    server = FakeWatchServer(watch_list=watch_list)
    server.put("one")
    async with Rig(server) as rig:
        seen = str(rig.store.seen("a"))
        server.meet("watch", Script((error_event(first),)) if as_event else first, where=resumes)
        server.meet("", second, where=lambda request: request.query.get("resourceVersion") == seen)
        server.cut()
        server.put("two")
        await passing(10)

        lists = of_watch_lists(server.requests) if watch_list else server.asked("list")
        assert ["", seen, ""] == [request.query.get("resourceVersion", "") for request in lists]
        assert server.versions() == rig.known()


async def test_i7_endless_server_errors_are_asked_ever_more_rarely() -> None:
    """ERROR 500 as the first event of each watch: never fatal, never a hot loop (rule I7)."""
    server = FakeWatchServer()
    server.put("one")
    async with Rig(server) as rig:
        server.meet("watch", Script((error_event(SERVER_ERROR),)), times=FOREVER, where=resumes)
        server.cut()
        start = len(server.requests)
        await passing(60)

        assert len(server.requests) - start < 20
        assert server.versions() == rig.known()

        server.heal()
        server.put("two")
        await passing(60)

        assert server.versions() == rig.known()


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(Refused(), id="refused"),
        pytest.param(THROTTLED, id="429"),
        pytest.param(Script((error_event(THROTTLED),)), id="429-event"),
    ],
)
async def test_i8_a_server_that_is_away_or_busy_is_not_listed(trouble: Fault) -> None:
    """Connection refused and 429 say nothing about the resume point: the watch goes on (rules I7, I8)."""
    server = FakeWatchServer()
    async with Rig(server) as rig:
        server.meet("watch", trouble, times=FOREVER)
        server.cut()
        await passing(300)
        server.heal()
        server.put("one")
        await passing(40)

        assert server.versions() == rig.known()
        assert ["initial"] == rig.metrics.lists


async def test_i8_pauses_double_up_to_half_a_minute_and_start_over_when_healthy() -> None:
    """0.8 s, doubled, at most 30 s; two healthy minutes forget the past (rule I8)."""
    server = FakeWatchServer()
    async with Rig(server):
        server.meet("watch", Refused(), times=7)
        server.cut()
        await passing(200)
        server.cut()
        await passing(200)

        pauses = [round(b.at - a.at, 1) for a, b in pairwise(server.asked("watch")[1:])]
        assert [0.8 * 2, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0] == pauses[:7]
        await passing(200)
        server.meet("watch", Refused())
        server.cut()
        await passing(5)

        *_, refused, resumed = server.asked("watch")
        assert 1.6 == round(resumed.at - refused.at, 1)


async def test_i8_jitter_stretches_a_pause_by_up_to_its_own_length() -> None:
    """The reflectors of many processes must not come back together (rule I8)."""
    server = FakeWatchServer()
    server.meet("watch", Refused(), times=2)
    async with Rig(server, jitter=0.5):
        await passing(10)

        first, second, third = server.asked("watch")
        assert (1.2, 2.4) == (round(second.at - first.at, 1), round(third.at - second.at, 1))


async def test_i8_the_server_may_ask_for_a_longer_pause() -> None:
    """Retry-After is a floor (facts 0.9)."""
    server = FakeWatchServer()
    server.meet("watch", Answer(429, "TooManyRequests", headers={"retry-after": "17"}))
    async with Rig(server):
        await passing(20)

        first, second = server.asked("watch")
        assert 17.0 == round(second.at - first.at, 1)


async def test_i8_streams_that_end_at_once_are_failures() -> None:
    """200 and nothing, again and again: fewer than 6 requests in 3 s (rule I8, kubernetes_asyncio: 4,588)."""
    server = FakeWatchServer()
    async with Rig(server) as rig:
        server.meet("watch", Script(), times=FOREVER, where=resumes)
        server.cut()
        start = len(server.requests)
        await passing(3)

        assert len(server.requests) - start < 6
        assert "ended_early" in rig.metrics.failures


async def test_i8_streams_that_say_a_word_and_end_are_not_hurried_after() -> None:
    """A bookmark and the end, again and again: at most one watch a second (rule I8)."""
    server = FakeWatchServer()
    async with Rig(server) as rig:
        server.meet("watch", Script((bookmark(server.revision),)), times=FOREVER, where=resumes)
        server.cut()
        start = len(server.requests)
        await passing(20)

        assert len(server.requests) - start <= 20
        assert ["initial"] == rig.metrics.lists


MALFORMED = {
    "no JSON": b"<html>proxy error</html>",
    "no object": b"[1, 2]",
    "half an event": b'{"type": "ADDED"}',
    "unknown type": event("RENAMED", {}),
    "a Status as object": event("ADDED", GONE.status),
    "no metadata": event("MODIFIED", {"kind": "ConfigMap"}),
    "no uid": event("ADDED", {"metadata": {"name": "x", "namespace": "a", "resourceVersion": "500"}}),
    "no resourceVersion": event("ADDED", {"metadata": {"name": "x", "namespace": "a", "uid": "u"}}),
    "odd resourceVersion": event(
        "ADDED", {"metadata": {"name": "x", "namespace": "a", "uid": "u", "resourceVersion": "-5"}}
    ),
    "odd uid": event(
        "ADDED", {"metadata": {"name": "x", "namespace": "a", "uid": 7, "resourceVersion": "5"}}
    ),
    "empty bookmark": event("BOOKMARK", {}),
    "error without code": event("ERROR", {"kind": "Status"}),
    "invalid UTF-8": b'{"type":"ADDED","object":{"metadata":{"name":"\xff\xfe"}}}',
}


@pytest.mark.parametrize("line", MALFORMED.values(), ids=MALFORMED.keys())
async def test_i7_a_malformed_event_ends_the_stream_and_nothing_else(line: bytes) -> None:
    """What is no event is logged, the stream is left, a list repairs what was missed (rule I7)."""
    server = FakeWatchServer()
    server.put("one")
    async with Rig(server) as rig:
        server.meet("watch", Script((line,)), times=3, where=resumes)
        server.say(line)
        start = len(server.requests)
        await passing(3)

        assert len(server.requests) - start < 8
        assert server.versions() == rig.known()

        server.put("two")
        await passing(60)

        assert server.versions() == rig.known()
        assert rig.task is not None
        assert not rig.task.done()


@pytest.mark.parametrize(
    "body",
    [
        b"<html>welcome</html>",
        b"[]",
        b"{}",
        b'{"kind": "Status", "status": "Failure", "metadata": {}}',
        b'{"kind": "ConfigMapList", "metadata": {}, "items": []}',
        b'{"kind": "ConfigMapList", "metadata": {"resourceVersion": "x"}, "items": []}',
        b'{"kind": "ConfigMapList", "metadata": {"resourceVersion": "5"}, "items": [7]}',
        b'{"kind": "ConfigMapList", "metadata": {"resourceVersion": "5"}, "items": [{"metadata": {}}]}',
    ],
)
async def test_i7_a_malformed_list_is_no_list(body: bytes) -> None:
    """Nothing may be concluded from what is no list; it is asked for again, with pauses (rule I7)."""
    server = FakeWatchServer(watch_list=False)
    server.put("one")
    server.meet("list", Answer(200, body=body), times=3)
    async with Rig(server) as rig:
        assert ({}, State.SYNCING) == (rig.known(), rig.store.state)

        await passing(3)
        assert len(server.asked("list")) < 4

        await passing(10)
        assert server.versions() == rig.known()


async def test_i7_null_items_are_an_empty_list() -> None:
    """Go encodes an empty slice as null."""
    server = FakeWatchServer(watch_list=False)
    body = b'{"kind": "ConfigMapList", "metadata": {"resourceVersion": "100"}, "items": null}'
    server.meet("list", Answer(200, body=body))
    async with Rig(server) as rig:
        assert (State.SYNCED, {}) == (rig.store.state, rig.known())


async def test_one_unreadable_object_hides_only_itself(caplog: pytest.LogCaptureFixture) -> None:
    """A view that chokes on one object of another release must not blind us to the others."""

    def view(obj: Mapping[str, Any]) -> str:
        return str(obj["metadata"]["labels"]["n"])

    server = FakeWatchServer()
    server.put("good", labels={"n": "1"})
    server.put("bad")
    async with Rig(server, resource=Resource(api=CONFIG_MAP, view=view)) as rig:
        assert [("a", "good")] == list(rig.known())
        assert "ConfigMap a/bad at resourceVersion 102 can't be read" in caplog.text

        server.put("bad", labels={"n": "2"})
        await passing(SETTLE)
        assert server.versions() == rig.known()

        server.put("bad", labels={})
        await passing(SETTLE)
        last = rig.events[-1]
        assert (Change.DELETED, "bad", True) == (last.change, last.item.meta.name, last.final_state_unknown)

        server.delete("bad")
        await passing(SETTLE)
        assert server.versions() == rig.known()
        assert [] == rig.metrics.failures


async def test_i15_a_refused_type_says_what_is_missing_and_recovers() -> None:
    """403: not fatal, not hot, and the sentence names verb, kind and service account (rule I15)."""
    server = FakeWatchServer()
    server.put("one")
    server.meet("", FORBIDDEN, times=FOREVER)
    async with Rig(server) as rig:
        assert State.FORBIDDEN is rig.store.state
        assert rig.store.problem.startswith(
            "service account models/fleet may not watch ConfigMap in the whole cluster: "
            "allow it get, list and watch on configmaps"
        )
        await passing(60)
        assert len(server.requests) < 12

        server.heal()
        await passing(60)

        assert (State.SYNCED, "") == (rig.store.state, rig.store.problem)
        assert server.versions() == rig.known()


async def test_i15_a_single_403_after_sync_is_no_news() -> None:
    """An API server that has just started refuses everybody until its RBAC cache is filled (rule I15)."""
    server = FakeWatchServer()
    server.put("one")
    async with Rig(server) as rig:
        states: list[State] = []
        rig.store.on_state(states.append)
        server.meet("watch", FORBIDDEN)
        server.cut()
        await passing(10)
        assert [] == states

        server.meet("watch", FORBIDDEN, times=2)
        server.cut()
        await passing(30)

        assert [State.FORBIDDEN, State.SYNCED] == states
        assert server.versions() == rig.known() == rig.replayed()


async def test_i15_an_unknown_type_ends_the_reflector() -> None:
    """404 for the collection means that the type is not served; who runs the reflector knows what to do."""
    server = FakeWatchServer()
    server.meet("watch", Answer(404, "NotFound", "the server could not find the requested resource"))
    async with Rig(server) as rig:
        assert rig.task is not None
        assert rig.task.done()
        assert State.SYNCING is rig.store.state


async def test_the_reason_for_not_being_in_sync_can_be_read() -> None:
    """Who waits for the cache learns why it takes so long (controller-runtime #1219)."""
    server = FakeWatchServer()
    server.meet("", Refused(), times=FOREVER)
    async with Rig(server) as rig:
        assert (State.SYNCING, "no list of ConfigMap yet: connection refused") == (
            rig.store.state,
            rig.store.problem,
        )


async def test_a_restarted_server_is_resumed_without_a_list() -> None:
    """An API server that restarts on intact data has lost nothing, so nothing is listed (rule I8)."""
    server = FakeWatchServer()
    server.put("one")
    async with Rig(server) as rig:
        server.end()
        server.meet("", Refused(), times=5)
        server.put("while-away")
        await passing(60)

        assert server.versions() == rig.known()
        assert ["initial"] == rig.metrics.lists


async def test_a_restored_etcd_is_noticed_although_its_watch_is_silent(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A watch from beyond the end of history says nothing at all; silence ends in a list from the quorum."""
    server = FakeWatchServer()
    server.put("kept")
    server.revision = 9000
    server.put("lost")
    async with Rig(server) as rig:
        server.cut()
        server.restore(50, "kept")
        await passing(400)

        assert server.versions() == rig.known() == rig.replayed()
        assert (1, 51) == (rig.store.epoch("a"), rig.store.seen("a"))
        assert "the server went back from resourceVersion 9001 to 51" in caplog.text

        server.put("new")
        await passing(SETTLE)
        assert server.versions() == rig.known()


@pytest.mark.parametrize(
    "line",
    [
        bookmark(7),
        event("MODIFIED", {"metadata": {"name": "x", "namespace": "a", "uid": "u", "resourceVersion": "7"}}),
    ],
)
async def test_a_watch_that_goes_back_in_time_is_left(line: bytes) -> None:
    """Within one watch resourceVersions only rise; anything else means another history (rule I1)."""
    server = FakeWatchServer()
    server.put("one")
    async with Rig(server) as rig:
        server.say(line)
        await passing(5)

        assert ["went_back"] == rig.metrics.failures
        assert ["initial", "went_back"] == rig.metrics.lists
        assert ["", ""] == [r.query["resourceVersion"] for r in of_watch_lists(server.requests)]
        assert server.versions() == rig.known()


async def test_a_wanted_revision_is_reached_without_waiting_a_minute() -> None:
    """A short watch makes the server say at once how far it is (catch-up after winning the Lease)."""
    server = FakeWatchServer()
    server.put("one")
    async with Rig(server) as rig:
        server.revision = 7000
        rig.reflector.want(7000)
        rig.reflector.want(6000)
        await passing(3)

        assert 7000 == rig.store.seen("a")
        assert "3" == server.asked("watch")[1].query["timeoutSeconds"]
        assert [] == rig.metrics.failures
        assert ["initial"] == rig.metrics.lists

        await passing(30)
        assert 300 <= int(server.asked("watch")[2].query["timeoutSeconds"])
        assert 3 == len(server.asked("watch"))


async def test_a_wanted_revision_that_is_reached_already_costs_nothing() -> None:
    """No watch is given up for what the store has seen."""
    server = FakeWatchServer()
    server.put("one")
    async with Rig(server) as rig:
        rig.reflector.want(rig.store.seen("a"))
        await asyncio.sleep(5)

        assert 1 == len(server.asked("watch"))
