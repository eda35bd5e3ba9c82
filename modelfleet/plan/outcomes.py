"""What became of each action.

A `Problem` is the server's answer in terms a status can explain: a cause from a closed list, whether
waiting can help, and a sentence for people. Causes are metric labels and never carry object names.
"""

from dataclasses import dataclass
from enum import StrEnum


class Cause(StrEnum):
    """Why an action failed."""

    STALE = "Stale"
    """409 on a precondition: the object moved on; decide again from the newer one."""
    NAME_CONFLICT = "NameConflict"
    """The name is held by an object that another owner, or nobody, controls."""
    IMMUTABLE = "Immutable"
    """422 for a field that can't change once set (rule A9)."""
    INVALID = "Invalid"
    """Any other 400 or 422: the server will refuse the same manifest again."""
    DENIED = "Denied"
    """An admission policy or webhook said no; it may say yes later."""
    FORBIDDEN = "Forbidden"
    """403: our service account lacks a permission, named in the message."""
    QUOTA_EXCEEDED = "QuotaExceeded"
    NAMESPACE_TERMINATING = "NamespaceTerminating"
    NOT_INSTALLED = "NotInstalled"
    """404 for the resource type itself: its CRD is absent."""
    NOT_FOUND = "NotFound"
    """The object, or its namespace, is gone."""
    TOO_LARGE = "TooLarge"
    """413, or etcd's request limit."""
    THROTTLED = "Throttled"
    """429 or 503 with Retry-After."""
    UNREACHABLE = "Unreachable"
    """No answer: connection refused, reset or 5xx. A write may have happened (rule A14)."""
    NOT_LEADING = "NotLeading"
    """The write fence is down: this process no longer leads and must not write."""


_TERMINAL = frozenset({Cause.IMMUTABLE, Cause.INVALID, Cause.TOO_LARGE})


@dataclass(frozen=True, slots=True)
class Problem:
    """One failure, ready to be explained."""

    cause: Cause
    message: str
    """Names the object, the field where one is known, and the next step."""
    retry_after: float | None = None
    """Seconds the server asked us to wait, or None."""

    @property
    def terminal(self) -> bool:
        """Repeating the same action can't help; only a changed spec or a changed live object can."""
        return self.cause in _TERMINAL


class Result(StrEnum):
    """How far an action got."""

    DONE = "Done"
    FAILED = "Failed"
    SKIPPED = "Skipped"
    """Something it depends on did not get done."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one action of a plan."""

    action: str
    result: Result
    problem: Problem | None = None


Outcomes = dict[str, Outcome]
"""By action name; one for each action of the plan, in its order."""
