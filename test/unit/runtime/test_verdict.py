"""Rule Q5: what follows from the problems of a pass."""

import pytest

from modelfleet.plan import Cause, Problem
from modelfleet.runtime.verdict import HUMAN_SECONDS, Verdict, judge

CAUSES = {
    Cause.STALE: Verdict("requeue", backoff=True, after=0.0),
    Cause.UNREACHABLE: Verdict("error", backoff=True, after=0.0),
    Cause.THROTTLED: Verdict("error", backoff=True, after=0.0),
    Cause.NOT_FOUND: Verdict("error", backoff=True, after=0.0),
    Cause.NAME_CONFLICT: Verdict("error", after=HUMAN_SECONDS, jitter=True),
    Cause.DENIED: Verdict("error", after=HUMAN_SECONDS, jitter=True),
    Cause.FORBIDDEN: Verdict("error", after=HUMAN_SECONDS, jitter=True),
    Cause.QUOTA_EXCEEDED: Verdict("error", after=HUMAN_SECONDS, jitter=True),
    Cause.NAMESPACE_TERMINATING: Verdict("error", after=HUMAN_SECONDS, jitter=True),
    Cause.NOT_INSTALLED: Verdict("error", after=HUMAN_SECONDS, jitter=True),
    Cause.IMMUTABLE: Verdict("error"),
    Cause.INVALID: Verdict("error"),
    Cause.TOO_LARGE: Verdict("error"),
    Cause.NOT_LEADING: Verdict("error"),
}


@pytest.mark.parametrize("cause", list(Cause))
def test_one_problem(cause: Cause) -> None:
    """Each cause alone: backoff, a flat minute, or nothing at all."""
    assert CAUSES[cause] == judge([Problem(cause, "")], None)


@pytest.mark.parametrize(
    ("requeue_after", "verdict"), [(None, Verdict("success")), (30.0, Verdict("requeue_after", after=30.0))]
)
def test_no_problem(requeue_after: float | None, verdict: Verdict) -> None:
    """Success looks again only when the plan asks for it."""
    assert verdict == judge([], requeue_after)


@pytest.mark.parametrize(
    ("cause", "requeue_after", "after"),
    [
        (Cause.UNREACHABLE, 30.0, 0.0),
        (Cause.NAME_CONFLICT, 30.0, 30.0),
        (Cause.NAME_CONFLICT, 3600.0, HUMAN_SECONDS),
        (Cause.INVALID, 30.0, 30.0),
        (Cause.NOT_LEADING, 30.0, None),
    ],
)
def test_requeue_after_beside_a_problem(cause: Cause, requeue_after: float, after: float | None) -> None:
    """A plan's wish gives way to backoff, is honoured where nothing sooner brings the key back."""
    assert after == judge([Problem(cause, "")], requeue_after).after


def test_the_most_hopeful_problem_decides() -> None:
    """One child refused for good does not keep the others from being retried."""
    terminal, human, soon = (Problem(c, "") for c in (Cause.INVALID, Cause.FORBIDDEN, Cause.UNREACHABLE))

    assert judge([soon], None) == judge([terminal, human, soon], None)
    assert judge([human], None) == judge([terminal, human], None)


def test_the_longest_wish_of_the_server_counts() -> None:
    """Rule A14: Retry-After is honoured, the longest of several."""
    problems = [Problem(Cause.THROTTLED, "", after) for after in (3.0, None, 7.0)]

    assert Verdict("error", backoff=True, after=7.0) == judge(problems, None)


def test_stale_beside_a_failure_is_an_error() -> None:
    """Only a pass that merely lost a race is counted as a requeue."""
    problems = [Problem(Cause.STALE, ""), Problem(Cause.INVALID, "")]

    assert Verdict("error", backoff=True, after=0.0) == judge(problems, None)


def test_a_former_leader_does_nothing_more() -> None:
    """One fenced write ends the key, whatever else went wrong."""
    problems = [Problem(Cause.UNREACHABLE, ""), Problem(Cause.NOT_LEADING, "")]

    assert Verdict("error") == judge(problems, 5.0)
