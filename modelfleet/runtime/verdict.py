"""From what went wrong in a pass to when the key is looked at again (rule Q5); pure.

- Nothing: `requeue_after`, if the plan wants one.
- Stale, Unreachable, Throttled, NotFound: after the key's backoff, on top of what the server asked for;
  `requeue_after` is ignored, for the repeated pass will ask again.
- What a human must help with (NameConflict, Denied, Forbidden, QuotaExceeded, NamespaceTerminating,
  NotInstalled): a flat minute, or `requeue_after` if that is earlier. What helps makes no event that reaches
  us: a foreign object, a quota, a role or a policy is not among what we watch, and backoff would leave the
  user waiting for five minutes.
- Invalid, Immutable, TooLarge: `requeue_after` alone; the refusal is remembered (rule A9).
- NotLeading: never, this process is on its way out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from modelfleet.plan import Cause, Problem

HUMAN_SECONDS = 60.0
"""How often we look whether somebody has helped; 4 requests a minute for a conflict of two children."""

Result = Literal["success", "error", "requeue", "requeue_after"]
"""Values of the label `result` of controller_runtime_reconcile_total."""

_SOON = frozenset({Cause.STALE, Cause.UNREACHABLE, Cause.THROTTLED, Cause.NOT_FOUND})


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a pass ended."""

    result: Result
    backoff: bool = False
    """Look again after the key's backoff, and `after` on top of it; else the failures are forgotten."""
    after: float | None = None
    """Look again in so many seconds; None without `backoff`: only when something happens."""
    jitter: bool = False
    """Spread `after`, so that keys that failed together don't come back together."""


def judge(problems: Sequence[Problem], requeue_after: float | None) -> Verdict:
    """When to look again after a pass that met these problems."""
    causes = {problem.cause for problem in problems}
    if Cause.NOT_LEADING in causes:
        return Verdict("error")
    if soon := [problem for problem in problems if problem.cause in _SOON]:
        floor = max(problem.retry_after or 0.0 for problem in soon)
        return Verdict("requeue" if causes == {Cause.STALE} else "error", backoff=True, after=floor)
    if any(not problem.terminal for problem in problems):
        asked = HUMAN_SECONDS if requeue_after is None else min(requeue_after, HUMAN_SECONDS)
        return Verdict("error", after=asked, jitter=True)
    if problems:
        return Verdict("error", after=requeue_after)
    return Verdict("success" if requeue_after is None else "requeue_after", after=requeue_after)
