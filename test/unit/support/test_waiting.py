"""Waiting ends when the world is as wanted, and a failure says what was seen."""

import pytest

from test.support.waiting import holds_for, wait_for


async def test_waits_for_truth() -> None:
    """Polls until the predicate is true, asynchronous or not; an assertion in it counts as not yet."""
    seen: list[int] = []

    async def third_look() -> bool:
        seen.append(len(seen))
        assert len(seen) > 1, "not at the first look"
        return len(seen) > 2

    await wait_for(third_look, 5)

    assert [0, 1, 2] == seen


async def test_failure_says_what_was_seen() -> None:
    """The text holds the deadline, the description and the last assertion."""

    def never() -> bool:
        raise AssertionError("still red")

    with pytest.raises(AssertionError, match=r"not within 0\.01 s: the light\nlast seen: still red"):
        await wait_for(never, 0.01, "the light")


async def test_other_errors_end_the_wait() -> None:
    """Only an assertion means not yet: a mistake in the predicate must not look like a slow world."""
    with pytest.raises(ZeroDivisionError):
        await wait_for(lambda: 1 / 0, 5)


async def test_something_that_stops_holding_fails() -> None:
    """The first false look is enough."""
    looks = iter([True, True, False])

    with pytest.raises(AssertionError, match="did not hold for 5 s: it"):
        await holds_for(lambda: next(looks), 5, "it")
