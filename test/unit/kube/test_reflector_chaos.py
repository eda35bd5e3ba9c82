"""Whatever happens in whatever order: when the trouble ends, the store equals the server.

So does the picture of somebody who only heard the events.
"""

import asyncio
from collections.abc import Callable

import looptime
from hypothesis import given, settings
from hypothesis import strategies as st

from modelfleet.kube.changes import Change, Event
from test.support.fake_answers import (
    GONE,
    NO_WATCH_LIST,
    TOO_LARGE,
    Answer,
    Fault,
    Refused,
    Script,
    bookmark,
    error_event,
)
from test.support.fake_watch_server import FakeWatchServer
from test.unit.kube.reflector_rig import Rig, passing

Step = Callable[[FakeWatchServer], object]

NAMES = st.sampled_from(["a", "b", "c", "d"])
FAULTS: list[Fault] = [
    GONE,
    TOO_LARGE,
    NO_WATCH_LIST,
    Refused(),
    Answer(500, "InternalError"),
    Answer(429, "TooManyRequests"),
    Answer(403, "Forbidden"),
    Script(),
    Script(then="cut"),
    Script(then="hang"),
    Script((b"nonsense",)),
    Script((bookmark(3),)),
    Script((error_event(GONE),)),
    Script((error_event(Answer(500, "InternalError")),)),
]


def _write(name: str) -> Step:
    return lambda server: server.put(name, labels={"r": str(server.revision)})


def _remove(name: str) -> Step:
    return lambda server: server.delete(name) if ("a", name) in server.objects else None


def _recreate(name: str) -> Step:
    return lambda server: (_remove(name)(server), _write(name)(server))


def _trouble(fault: Fault) -> Step:
    verb = "watch" if isinstance(fault, Script) else ""
    return lambda server: server.meet(verb, fault)


steps = st.one_of(
    NAMES.map(_write),
    NAMES.map(_remove),
    NAMES.map(_recreate),
    st.sampled_from(FAULTS).map(_trouble),
    st.sampled_from(
        [
            FakeWatchServer.cut,
            FakeWatchServer.end,
            FakeWatchServer.silence,
            FakeWatchServer.compact,
            lambda server: server.restore(server.revision // 2, "a", "b"),
        ]
    ),
)


@settings(max_examples=200, deadline=None)
@given(
    watch_list=st.booleans(),
    script=st.lists(st.tuples(steps, st.sampled_from([0.0, 0.001, 0.3, 2.0, 75.0])), max_size=25),
)
def test_the_store_equals_the_server_after_any_trouble(
    *, watch_list: bool, script: list[tuple[Step, float]]
) -> None:
    """Rules I1-I10 together, in any order and at any moment."""
    with asyncio.Runner(loop_factory=looptime.new_event_loop) as runner:
        runner.run(_survive(FakeWatchServer(watch_list=watch_list), script))


async def _survive(server: FakeWatchServer, script: list[tuple[Step, float]]) -> None:
    server.put("a")
    rig = Rig(server)
    told: dict[tuple[str, str], str] = {}

    def hear(event: Event[object]) -> None:
        """Changes of one object come in order: no birth of what lives, no change of what doesn't."""
        name = (event.item.meta.namespace, event.item.meta.name)
        assert (event.change is Change.ADDED) == (name not in told)
        if event.change is Change.DELETED:
            assert told.pop(name) == event.item.meta.uid
        elif event.change is Change.ADDED:
            told[name] = event.item.meta.uid
        else:
            assert told[name] == event.item.meta.uid

    rig.store.subscribe(hear)
    async with rig:
        for step, seconds in script:
            step(server)
            if seconds:
                await passing(seconds)
        server.heal()
        await passing(900)

        assert server.versions() == rig.known() == rig.replayed()
        assert server.revision == rig.store.seen("a")
