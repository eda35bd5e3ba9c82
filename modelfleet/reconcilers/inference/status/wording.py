"""How a condition is worded: bounded, and the same bytes for the same meaning.

Other controllers put things into their messages that change on every retry (a back-off that doubles, the name
of a pod that was never made, a local port). Copied as they are, each retry would be a status write, each
status write an event, and a broken model would keep the whole fleet busy (facts 1.5, "Self-trigger").
"""

import re

from modelfleet.api.meta import ConditionType
from modelfleet.plan import Condition
from modelfleet.plan.status import ConditionStatus

MESSAGE_MAX = 1024
"""Characters. metav1.Condition allows 32768; nobody reads more than this in a terminal."""

_CHANGING = (
    # ReplicaSet: pods "echo-6c4f8d7b5-x2kqv" is forbidden; the name is drawn anew on each try.
    (re.compile(r'^pods "[^"]*" (?=is forbidden)'), "pod "),
    # kubelet: the same pull failure is told with this prefix while it backs off and without while it pulls.
    (re.compile(r'^Back-off pulling image "[^"]*"(?:: (?:ErrImagePull: )?|$)'), ""),
    # Dial errors: the local end has a new port each time.
    (re.compile(r"(?<=\d):\d+->"), "->"),
)


def steady(text: str) -> str:
    """A message of another controller without what changes from try to try."""
    for pattern, replacement in _CHANGING:
        text = pattern.sub(replacement, text)
    return text


def condition(kind: ConditionType, status: ConditionStatus, reason: str, message: str = "") -> Condition:
    """A condition with plain strings and a bounded message."""
    text = " ".join(message.split())
    if len(text) > MESSAGE_MAX:
        text = text[: MESSAGE_MAX - 1] + "…"
    return Condition(str(kind), status, str(reason), text)
