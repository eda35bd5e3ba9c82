import pytest
from hypothesis import given
from hypothesis import strategies as st

from hack.cluster.progress import MAX_FACTOR, PRIOR_SECONDS, Progress, clock


def test_before_anything_ran_the_recorded_times_count() -> None:
    """The first estimate is the sum of the recorded seconds."""
    progress = Progress()
    progress.add("etcd", 100)
    progress.add("kubectl", 50)
    assert 150 == progress.remaining(now=0)
    assert "" == progress.line(now=0)


def test_a_finished_part_scales_the_rest() -> None:
    """A machine that is slow on a part as heavy as the prior is expected to be so on the others, by half."""
    progress = Progress()
    etcd, _ = progress.add("etcd", PRIOR_SECONDS), progress.add("kubectl", 50)
    etcd.started, etcd.finished = 0, 3 * PRIOR_SECONDS
    assert 100 == progress.remaining(now=3 * PRIOR_SECONDS)


@pytest.mark.parametrize(
    ("quick", "lane", "expected"),
    [(20, "build", (1200, 1400)), (60, "build", (900, 1000)), (15, "fetch", (1400, 1400))],
)
def test_one_quick_part_does_not_promise_that_all_are(
    quick: float, lane: str, expected: tuple[float, float]
) -> None:
    """A part done at once shortens the rest by its weight alone; a fetched one says nothing about builds."""
    progress = Progress()
    first, _ = progress.add("quick", quick, lane=lane), progress.add("the others", 1400, lane="build")
    first.started, first.finished = 0, 0.5
    least, most = expected
    assert least <= progress.remaining(now=0.5) <= most


def test_many_quick_parts_outweigh_the_prior() -> None:
    """A machine with a warm compiler cache is believed in the end: 24 minutes turn into 2."""
    progress = Progress()
    for index in range(24):
        part = progress.add(str(index), 60, lane="build")
        part.started, part.finished = index, index + 1
    progress.add("last", 1440, lane="build")
    assert 130 < progress.remaining(now=24) < 140


def test_the_line_names_the_part_what_is_left_and_how_long() -> None:
    """The line of a running build answers: what, how far, what next, how long."""
    progress = Progress()
    etcd, _ = progress.add("etcd", 100), progress.add("kubectl", 50)
    etcd.started = 10
    expected = "building etcd (1/2, 30 s of about 1:40 min), about 2:00 min left; then kubectl"
    assert expected == progress.line(now=40)


def test_an_overdue_part_counts_as_nearly_done() -> None:
    """A part that takes longer than expected adds nothing, instead of shortening the others."""
    progress = Progress()
    etcd, _ = progress.add("etcd", 100), progress.add("kubectl", 50)
    etcd.started = 0
    assert 50 == progress.remaining(now=400)


def test_nothing_is_said_when_all_is_made() -> None:
    """No part in the making, no line."""
    progress = Progress()
    etcd = progress.add("etcd", 100)
    etcd.started, etcd.finished = 0, 1
    assert "" == progress.line(now=2)
    assert 0 == progress.remaining(now=2)


@given(
    st.lists(st.tuples(st.floats(1, 1000), st.floats(0, 10000)), min_size=1),
    st.floats(0, 1e5),
    st.integers(0),
)
def test_the_estimate_is_bounded(parts: list[tuple[float, float]], now: float, done: int) -> None:
    """Whatever was measured, what remains is neither negative nor more than the slowest accepted pace."""
    progress = Progress()
    for index, (expected, actual) in enumerate(parts):
        part = progress.add(str(index), expected)
        if index < done % (len(parts) + 1):
            part.started, part.finished = 0, actual
    unfinished = sum(part.expected for part in progress.parts if part.finished is None)
    assert 0 <= progress.remaining(now) <= unfinished * MAX_FACTOR * 1.001


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0, "0 s"), (59.4, "59 s"), (60, "1:00 min"), (754, "12:34 min")]
)
def test_durations_are_readable(seconds: float, expected: str) -> None:
    """Seconds below a minute, minutes and seconds above."""
    assert expected == clock(seconds)


def test_an_overdue_last_part_is_not_promised_in_0_seconds() -> None:
    """When the estimate is used up, the line says so."""
    progress = Progress()
    progress.add("etcd", 100).started = 0
    assert "building etcd (1/1, 2:10 min of about 1:40 min), longer than usual" == progress.line(now=130)
