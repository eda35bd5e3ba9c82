"""Conditions merged with what is there, and what people should hear about it; pure.

lastTransitionTime moves only when a condition's status does (metav1.Condition), so the same meaning gives the
same bytes on every pass and an idle object is never written (facts 1.5).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from modelfleet.plan import Condition, DesiredStatus

RECONCILING = "Reconciling"
STALLED = "Stalled"
"""The two conditions whose True is not good news (kstatus); they are left out while not True (api.md)."""
TOP_LEVEL = ("Ready", "Succeeded")
"""The condition that sums up an object: of something long-running, or of something that ends."""

EventType = Literal["Normal", "Warning"]
LiveConditions = Sequence[Mapping[str, Any]]
"""`status.conditions` as the server returned them."""


@dataclass(frozen=True, slots=True)
class Transition:
    """A condition that reads differently from before."""

    event_type: EventType
    condition: Condition


def merged(desired: DesiredStatus, live: LiveConditions, now: str) -> dict[str, Any]:
    """The wire form of a status; `now` (metav1.Time) is used for conditions whose status changed."""
    known = _by_type(live)
    return {
        **desired.fields,
        "observedGeneration": desired.observed_generation,
        "conditions": [
            {
                "type": condition.type,
                "status": condition.status,
                "observedGeneration": desired.observed_generation,
                "lastTransitionTime": _since(condition, known.get(condition.type), now),
                "reason": condition.reason,
                "message": condition.message,
            }
            for condition in desired.conditions
        ],
    }


def transitions(desired: DesiredStatus, live: LiveConditions) -> list[Transition]:
    """What changed in status or reason, each (reason, message) once.

    Of an object that never had conditions only the one that sums it up is told: everything is new, nothing is
    news. A condition that is gone is told by those that remain.
    """
    known = _by_type(live)
    told: dict[tuple[str, str], Transition] = {}
    for condition in desired.conditions:
        before = known.get(condition.type)
        if before is None and not known and condition.type not in TOP_LEVEL:
            continue
        if before is None or (before.get("status"), before.get("reason")) != (
            condition.status,
            condition.reason,
        ):
            told.setdefault(
                (condition.reason, condition.message), Transition(_event_type(condition, desired), condition)
            )
    return list(told.values())


def _event_type(condition: Condition, desired: DesiredStatus) -> EventType:
    """Warning for bad news.

    No news is bad while the object as a whole is as wanted: a suspended one serves nothing, by intent. False
    for the very reason of `Reconciling` is progress, not a fault (kstatus).
    """
    if condition.type in (STALLED, RECONCILING):
        return "Warning" if condition.type == STALLED and condition.true else "Normal"
    if any(other.type in TOP_LEVEL and other.true for other in desired.conditions):
        return "Normal"
    progress = {other.reason for other in desired.conditions if other.type == RECONCILING and other.true}
    return "Warning" if condition.status == "False" and condition.reason not in progress else "Normal"


def _since(condition: Condition, before: Mapping[str, Any] | None, now: str) -> str:
    if before is None or before.get("status") != condition.status:
        return now
    return str(before.get("lastTransitionTime") or now)


def _by_type(live: LiveConditions) -> dict[str, Mapping[str, Any]]:
    return {str(condition.get("type")): condition for condition in live}
