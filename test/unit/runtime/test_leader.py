"""Rules of facts 1.7, case by case; test_leader_chaos.py throws everything at three candidates at once."""

import asyncio

import pytest
from structlog.testing import capture_logs

from modelfleet.kube.errors import FencedError, TransportError
from modelfleet.runtime.leader import LeaderElector, LeaderLost
from modelfleet.runtime.lease import LeaseRecord, LeaseTimes, Observation
from test.unit.runtime.fake_lease_server import (
    OTHER,
    Counted,
    FakeLeaseServer,
    LoopClock,
    candidate,
    held,
    now,
    running,
)

pytestmark = pytest.mark.looptime


@pytest.fixture
def server() -> FakeLeaseServer:
    """An API server without a Lease."""
    return FakeLeaseServer()


@pytest.fixture
def clock() -> LoopClock:
    """The elector's clock."""
    return LoopClock()


@pytest.fixture
def counted() -> Counted:
    """The elector's metrics."""
    return Counted()


@pytest.fixture
def elector(server: FakeLeaseServer, clock: LoopClock, counted: Counted) -> LeaderElector:
    """The elector under test."""
    return candidate(server, "me_1", clock=clock, metrics=counted)


async def hang(_: str) -> bool:
    """The fault of an API server that takes requests and answers none."""
    await asyncio.Event().wait()
    return False


# --- acquiring -----------------------------------------------------------------------------------------


async def test_creates_the_lease(server: FakeLeaseServer, elector: LeaderElector) -> None:
    """The first candidate creates the record, with MicroTime in UTC and six digits at a whole second."""
    async with running(elector):
        await elector.acquired.wait()

    assert (
        LeaseRecord("me_1", 15, "2026-01-02T03:04:05.000000Z", "2026-01-02T03:04:05.000000Z", 0)
        == server.record
    )


@pytest.mark.parametrize("duration", [15, 60])
async def test_waits_for_the_duration_in_the_record(
    server: FakeLeaseServer, elector: LeaderElector, duration: int
) -> None:
    """A candidate counts leaseDurationSeconds of the record from when it first saw it, renewTime ignored."""
    server.edit(held(OTHER, duration=duration))

    async with running(elector):
        await elector.acquired.wait()

        assert duration <= now() <= duration + 2.2 * 2
        assert ("me_1", 4) == (server.holder, server.record.transitions)


async def test_a_renewal_starts_the_count_anew(server: FakeLeaseServer, elector: LeaderElector) -> None:
    """What keeps a candidate out is change, however old the written renewTime is."""
    server.edit(held(OTHER))

    async with running(elector):
        await asyncio.sleep(14)
        server.edit(held(OTHER, renewed="1999-01-01T00:00:00.000000Z"))
        await asyncio.sleep(14)
        assert not elector.acquired.is_set()
        await elector.acquired.wait()

        assert now() >= 29


async def test_an_edit_that_changes_no_record_does_not_count(
    server: FakeLeaseServer, elector: LeaderElector
) -> None:
    """An annotation moves the resourceVersion, not the lease: a dead leader is replaced in time."""
    server.edit(held(OTHER))

    async with running(elector):
        await asyncio.sleep(10)
        server.edit(held(OTHER), annotation="looked at it")
        await elector.acquired.wait()

        assert now() <= 15 + 2.2 * 2


async def test_takes_a_released_lease_at_once(server: FakeLeaseServer, elector: LeaderElector) -> None:
    """An empty holder lets the next one in without waiting."""
    server.edit(held("", duration=1))

    async with running(elector):
        await elector.acquired.wait()

    assert (0.0, "me_1", 4) == (now(), server.holder, server.record.transitions)


async def test_a_candidate_outlives_an_outage(server: FakeLeaseServer, elector: LeaderElector) -> None:
    """An API server that hangs for an hour ends no candidate and is not asked in a hot loop."""
    server.fault = hang

    async with running(elector) as task:
        await asyncio.sleep(3600)
        assert not task.done()
        assert len(server.requests) < 3600 / 2
        server.fault = None
        await elector.acquired.wait()


@pytest.mark.parametrize(
    "error", [RuntimeError("odd"), KeyError("x"), OSError("reset"), TransportError("cut")]
)
async def test_any_failure_is_a_failed_try(
    server: FakeLeaseServer, elector: LeaderElector, error: Exception
) -> None:
    """An exception of whatever class ends a try and never the elector: no zombie leader."""

    async def fail(_: str) -> bool:
        raise error

    server.fault = fail
    async with running(elector) as task:
        await asyncio.sleep(10)
        assert not task.done()
        server.fault = None
        await elector.acquired.wait()


async def test_names_the_missing_namespace(server: FakeLeaseServer, elector: LeaderElector) -> None:
    """The message for a namespace that does not exist is the command that makes it, said once."""
    server.namespace_exists = False

    with capture_logs() as logs:
        async with running(elector):
            await asyncio.sleep(60)

    said = [entry["error"] for entry in logs if "error" in entry]
    assert 1 == len(said)
    assert said[0].endswith("create it with: kubectl create namespace modelfleet-system")


# --- leading -------------------------------------------------------------------------------------------


async def test_renews_every_retry_period(server: FakeLeaseServer, elector: LeaderElector) -> None:
    """A healthy leader sends one PUT each 2 s and keeps acquireTime and transitions."""
    async with running(elector):
        await asyncio.sleep(21)

    assert ["GET", "POST", *["PUT"] * 10] == [method for _, method in server.requests]
    assert "2026-01-02T03:04:05.000000Z" == server.record.acquired
    assert "2026-01-02T03:04:25.000000Z" == server.record.renewed
    assert 0 == server.record.transitions


async def test_keeps_what_others_wrote(server: FakeLeaseServer, elector: LeaderElector) -> None:
    """Labels, annotations and fields of coordinated election survive our writes."""
    server.edit({**held("", duration=1), "strategy": "OldestEmulationVersion"}, annotation="keep me")

    async with running(elector):
        await asyncio.sleep(5)

    assert server.lease is not None
    assert "OldestEmulationVersion" == server.lease["spec"]["strategy"]
    assert {"note": "keep me"} == server.lease["metadata"]["annotations"]


async def test_is_lost_at_the_renew_deadline(
    server: FakeLeaseServer, elector: LeaderElector, counted: Counted
) -> None:
    """With an API server that hangs, `run` raises 10 s after the last renewal was sent, not later."""
    async with running(elector) as task:
        await elector.acquired.wait()
        server.fault = hang
        with pytest.raises(LeaderLost, match="could not be renewed within 10s"):
            await task

    assert 10.0 == now()
    assert 0 == counted.status
    assert not elector.is_leader


async def test_the_fence_counts_from_when_a_renewal_was_sent(
    server: FakeLeaseServer, elector: LeaderElector
) -> None:
    """An answer that takes its time does not lengthen the term: others count from the write, not from it."""

    async def slow(method: str) -> bool:
        await asyncio.sleep(1.5 if method == "POST" else 0)
        return False

    server.fault = slow
    async with running(elector):
        await elector.acquired.wait()
        server.fault = hang
        assert 1.5 == now()
        await asyncio.sleep(8.4)
        elector.fence()
        await asyncio.sleep(0.2)

        with pytest.raises(FencedError, match="not renewed in time"):
            elector.fence()


async def test_the_fence_is_down_before_and_after(elector: LeaderElector) -> None:
    """A candidate and a former leader are refused alike."""
    with pytest.raises(FencedError):
        elector.fence()
    async with running(elector):
        await elector.acquired.wait()
        elector.fence()
        await elector.release()

        with pytest.raises(FencedError):
            elector.fence()


async def test_a_stopped_process_wakes_up_fenced(
    server: FakeLeaseServer, elector: LeaderElector, clock: LoopClock
) -> None:
    """After a sleep longer than the deadline the very next check fails, and nothing more is sent."""
    async with running(elector) as task:
        await elector.acquired.wait()
        await asyncio.sleep(3)
        sent = len(server.requests)
        clock.slept += 20

        with pytest.raises(FencedError):
            elector.fence()
        with pytest.raises(LeaderLost):
            await task
    assert sent == len(server.requests)


async def test_a_renewal_answered_after_a_stop_does_not_count(
    server: FakeLeaseServer, elector: LeaderElector, clock: LoopClock
) -> None:
    """A process stopped while its PUT was on the way must not trust the success it wakes up to."""
    async with running(elector) as task:
        await elector.acquired.wait()

        async def stopped(_: str) -> bool:
            clock.slept += 20
            return False

        server.fault = stopped
        with pytest.raises(LeaderLost):
            await task

        with pytest.raises(FencedError):
            elector.fence()


async def test_a_lost_answer_costs_a_read(
    server: FakeLeaseServer, elector: LeaderElector, counted: Counted
) -> None:
    """A renewal that was committed but not answered leads to GET and PUT, counted as slow path."""
    async with running(elector) as task:
        await elector.acquired.wait()
        lose = iter([True])

        async def lossy(_: str) -> bool:
            return next(lose, False)

        server.fault = lossy
        await asyncio.sleep(11)

        assert not task.done()
        assert elector.is_leader
        assert 1 == counted.slow_paths


async def test_a_conflict_with_a_person_costs_a_read(
    server: FakeLeaseServer, elector: LeaderElector, counted: Counted
) -> None:
    """Somebody's annotation makes the optimistic PUT fail; the leader reads, renews and goes on."""
    async with running(elector) as task:
        await elector.acquired.wait()
        server.edit(server.record.spec(), annotation="hello")
        await asyncio.sleep(11)

        assert not task.done()
        assert 1 == counted.slow_paths


async def test_another_holder_ends_the_term(server: FakeLeaseServer, elector: LeaderElector) -> None:
    """A leader that sees somebody else in the record stops at the next look, and does not fight."""
    async with running(elector) as task:
        await elector.acquired.wait()
        server.edit(held(OTHER))
        with pytest.raises(LeaderLost, match="now held by other_1"):
            await task

    assert 2.0 == now()
    assert OTHER == server.holder


async def test_health_fails_for_a_stuck_leader_only(elector: LeaderElector, clock: LoopClock) -> None:
    """The probe passes for candidates and for leaders that renew: an outage restarts nobody."""
    assert "" == elector.check()
    async with running(elector):
        await elector.acquired.wait()
        assert "" == elector.check()
        clock.slept += 15 + 20 + 1

        assert "has not renewed" in elector.check()


async def test_ready_means_that_the_lease_can_be_reached(
    server: FakeLeaseServer, elector: LeaderElector
) -> None:
    """A standby that gets no answer for a renew deadline is not ready; one answer makes it ready again."""
    server.edit(held(OTHER, duration=3600))
    assert "" == elector.check_answers()
    async with running(elector):
        await asyncio.sleep(60)
        assert "" == elector.check_answers()
        server.fault = hang
        await asyncio.sleep(20)
        assert elector.check_answers().endswith(f"no answer about {elector._ref} in time")
        server.fault = None
        await asyncio.sleep(5)

        assert "" == elector.check_answers()


# --- release -------------------------------------------------------------------------------------------


async def test_release_empties_the_record(server: FakeLeaseServer, elector: LeaderElector) -> None:
    """A clean exit leaves no holder, the smallest duration the server accepts, and the transitions."""
    server.edit(held("", duration=1))
    async with running(elector):
        await elector.acquired.wait()
    await elector.release()

    assert ("", 1, 4) == (server.holder, server.record.duration, server.record.transitions)


async def test_release_retries_a_conflict(server: FakeLeaseServer, elector: LeaderElector) -> None:
    """A write of somebody else between our read and our PUT does not cost the successor the lease time."""
    async with running(elector):
        await elector.acquired.wait()
    edits = iter([True])

    async def edit_before_put(method: str) -> bool:
        if method == "PUT" and next(edits, False):
            server.edit(server.record.spec(), annotation="in between")
        return False

    server.fault = edit_before_put
    await elector.release()

    assert "" == server.holder


async def test_release_leaves_a_successor_alone(server: FakeLeaseServer, elector: LeaderElector) -> None:
    """A record that is not ours any more is not touched."""
    async with running(elector):
        await elector.acquired.wait()
    server.edit(held(OTHER))
    await elector.release()

    assert OTHER == server.holder


async def test_release_is_bounded(server: FakeLeaseServer, elector: LeaderElector) -> None:
    """An API server that is away can't keep a process from exiting."""
    async with running(elector):
        await elector.acquired.wait()
    server.fault = hang
    await elector.release()

    assert now() <= 10


# --- the record ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("times", "complaint"),
    [
        ((10, 10.0, 2.0), "must be longer than the renew deadline"),
        ((15, 2.0, 2.0), "must be longer than 1.2 times"),
        ((0, -1.0, 2.0), "at least 1 second"),
        ((15, 10.0, 0.0), "must be positive"),
    ],
)
def test_refuses_times_that_break_the_promise(times: tuple[int, float, float], complaint: str) -> None:
    """Lease > renew > 1.2 * retry, as client-go validates."""
    with pytest.raises(ValueError, match=complaint):
        LeaseTimes(*times)


@pytest.mark.parametrize(
    ("holder", "at", "blocks"),
    [("", 0.0, False), ("me", 0.0, False), (OTHER, 14.9, True), (OTHER, 15.0, False)],
)
def test_who_blocks(holder: str, at: float, blocks: bool) -> None:  # noqa: FBT001  # a table's column
    """Only another holder blocks, and only for the record's duration."""
    seen = Observation(LeaseRecord(holder, 15, "", "", 0), since=0.0)

    assert blocks is seen.blocks("me", at)
