"""Rule Q4: how long failing keys wait."""

import pytest

from modelfleet.runtime.backoff import BASE_SECONDS, CAP_SECONDS, Backoff


def longest(_: float, high: float) -> float:
    """Draws the upper end, which makes the curve visible."""
    return high


@pytest.mark.parametrize(
    ("failures", "seconds"),
    [(1, 0.005), (2, 0.010), (3, 0.020), (11, 5.12), (16, 163.84), (17, 300.0), (5000, 300.0)],
)
def test_doubles_up_to_the_cap(failures: int, seconds: float) -> None:
    """Each failure in a row doubles the step, from 5 ms to 5 minutes, and counting on never overflows."""
    backoff: Backoff[str] = Backoff(uniform=longest)
    waits = [backoff.failed("key") for _ in range(failures)]

    assert pytest.approx(seconds) == waits[-1]
    assert failures == backoff.failures("key")


def test_full_jitter() -> None:
    """The wait is drawn from 0 to the step, so that keys that failed together spread out."""
    bounds: list[tuple[float, float]] = []

    def draw(low: float, high: float) -> float:
        bounds.append((low, high))
        return low

    backoff: Backoff[str] = Backoff(uniform=draw)

    assert [0.0, 0.0] == [backoff.failed("key"), backoff.failed("key")]
    assert [(0.0, BASE_SECONDS), (0.0, 2 * BASE_SECONDS)] == bounds


def test_default_draws_stay_in_range() -> None:
    """The random source really is between 0 and the step."""
    backoff: Backoff[int] = Backoff()

    assert all(0 <= backoff.failed(key) <= BASE_SECONDS for key in range(100))
    assert all(0 <= backoff.failed(0) <= CAP_SECONDS for _ in range(100))


def test_keys_fail_alone() -> None:
    """One broken object does not slow down the others."""
    backoff: Backoff[str] = Backoff(uniform=longest)
    for _ in range(20):
        backoff.failed("broken")

    assert BASE_SECONDS == backoff.failed("good")


def test_forget_frees_what_failed_once() -> None:
    """Rule Q6: names that failed and went leave nothing behind (k/k#138743)."""
    backoff: Backoff[int] = Backoff()
    for key in range(10_000):
        backoff.failed(key)
        backoff.forget(key)
    backoff.forget(10_001)

    assert 0 == len(backoff)
    assert 0 == backoff.failures(1)
