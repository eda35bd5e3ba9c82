"""Where a reflector stands and what follows from how its last request ended: a pure state machine.

Two phases. LIST obtains a consistent set, by WatchList or by a plain list; WATCH follows changes from there.
What keeps us from going back in time (rule I1): every list but the first says "not older than what I have
seen", until the server itself says that this can't be had (rule I6); then it is read from the quorum.
What keeps us from a hot loop (rules I7, I8): everything but a watch that ended as agreed waits for the
backoff, and what a watch can't get over is left to a list.
"""

from enum import StrEnum
from http import HTTPStatus

from modelfleet.kube.errors import KubeError, StatusError, TransportError
from modelfleet.kube.objects import MalformedObjectError

WATCH_STRIKES = 3
"""Fruitless watches in a row before we list again.

A broken resume point shows as endless 500s, as streams that end at once, or as silence (a watch from beyond
the end of a restored etcd): all of these look like trouble that passes, so they get more than one try.
"""


class Phase(StrEnum):
    """What the next request is for."""

    LIST = "list"
    WATCH = "watch"


class Ending(StrEnum):
    """How a request failed; the cause of a relist and a metric label."""

    EARLY = "ended_early"
    """The stream ended at once and without an event, or before the initial set was complete."""
    CUT = "cut"
    """The stream broke or fell silent, or no answer came."""
    REFUSED = "refused"
    """The request did not reach the server."""
    THROTTLED = "throttled"
    SERVER_ERROR = "server_error"
    EXPIRED = "expired"
    """410, as an answer or as an event: the history we want to resume from is gone."""
    TOO_LARGE = "too_large_resource_version"
    """The server has not got as far as we have."""
    WENT_BACK = "went_back"
    """The server's history is older than ours: restored from a backup."""
    MALFORMED = "malformed"
    REJECTED = "rejected"
    """The request itself is refused, as by a server that knows no WatchList."""
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    NOT_INSTALLED = "not_installed"


class EarlyEndError(Exception):
    """A stream ended in good order but too soon."""


class WentBackError(Exception):
    """A watch delivered a resourceVersion below one it had delivered before."""


_BY_CODE: dict[int, Ending] = {
    HTTPStatus.UNAUTHORIZED: Ending.UNAUTHORIZED,
    HTTPStatus.FORBIDDEN: Ending.FORBIDDEN,
    HTTPStatus.NOT_FOUND: Ending.NOT_INSTALLED,
    HTTPStatus.TOO_MANY_REQUESTS: Ending.THROTTLED,
}

FAILURES = (KubeError, MalformedObjectError, EarlyEndError, WentBackError)
"""Everything a list or watch may raise."""

_PASSING = frozenset({Ending.REFUSED, Ending.THROTTLED})
"""Endings that say nothing about our resume point (rule I8: they never relist)."""
_STRIKES = frozenset({Ending.EARLY, Ending.CUT, Ending.SERVER_ERROR, Ending.UNAUTHORIZED})
_BEHIND = frozenset({Ending.EXPIRED, Ending.TOO_LARGE, Ending.WENT_BACK})


def ending_of(error: Exception) -> Ending:
    """Classify what a list or watch raised; an ERROR event counts like the answer it carries (rule I6)."""
    if isinstance(error, StatusError):
        return _ending_of_status(error)
    if isinstance(error, TransportError):
        return Ending.CUT if error.unknown_outcome else Ending.REFUSED
    if isinstance(error, EarlyEndError):
        return Ending.EARLY
    if isinstance(error, WentBackError):
        return Ending.WENT_BACK
    return Ending.MALFORMED if isinstance(error, MalformedObjectError) else Ending.REFUSED


def _ending_of_status(error: StatusError) -> Ending:
    if error.gone:
        return Ending.EXPIRED
    if error.too_large_resource_version:
        return Ending.TOO_LARGE
    if error.code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Ending.SERVER_ERROR
    return _BY_CODE.get(error.code, Ending.REJECTED)


class Course:
    """The state of one reflector, moved by endings only."""

    def __init__(self) -> None:
        self.phase = Phase.LIST
        self.latest = True
        """The next list reads what the quorum holds, whatever we have seen before."""
        self.cause = "initial"
        """Why the next list is taken; a metric label."""
        self._watch_list = True
        self._strikes = 0

    @property
    def streaming(self) -> bool:
        """Whether the next list is a WatchList (rule I11); a plain list when that keeps failing."""
        return self._watch_list and self._strikes < WATCH_STRIKES

    def listed(self) -> None:
        """A consistent set is in."""
        self.phase, self.latest, self._strikes = Phase.WATCH, False, 0

    def progressed(self) -> None:
        """A watch delivered something: its resume point is good."""
        self._strikes = 0

    def after(self, ending: Ending) -> bool:
        """Take the next state after a failure; True when the backoff must pass first."""
        return self._after_watch(ending) if self.phase is Phase.WATCH else self._after_list(ending)

    def _after_watch(self, ending: Ending) -> bool:
        if ending in _PASSING:
            return True
        if ending in _STRIKES:
            self._strikes += 1
            if self._strikes < WATCH_STRIKES:
                return True
        self.phase, self.cause, self._strikes = Phase.LIST, ending.value, 0
        self.latest = ending is Ending.WENT_BACK
        return True

    def _after_list(self, ending: Ending) -> bool:
        if ending in _BEHIND and not self.latest:
            self.latest = True
            return False
        if ending is Ending.REJECTED and self.streaming:
            self._watch_list = False
            return False
        if ending not in _PASSING:
            self._strikes += 1
        return True
