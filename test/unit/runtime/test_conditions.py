"""Facts 1.5: merged conditions and the events that follow from them."""

from typing import Any

import pytest

from modelfleet.plan import Condition, ConditionStatus, DesiredStatus
from modelfleet.runtime.conditions import merged, transitions

NOW = "2026-05-01T00:00:00Z"
BEFORE = "2026-01-01T00:00:00Z"


def live(kind: str, status: str, reason: str, since: str = BEFORE) -> dict[str, Any]:
    """A condition as the server returns it."""
    return {"type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": since}


def desired(*conditions: tuple[str, ConditionStatus, str] | Condition, generation: int = 3) -> DesiredStatus:
    """A status of these conditions."""
    made = [c if isinstance(c, Condition) else Condition(*c) for c in conditions]
    return DesiredStatus(generation, tuple(made))


def test_wire_form() -> None:
    """A condition has all six fields of metav1.Condition, an empty message included (crossplane#7692)."""
    status = DesiredStatus(7, (Condition("Ready", "True", "Ready"),), {"url": "http://x"})

    assert {
        "url": "http://x",
        "observedGeneration": 7,
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "observedGeneration": 7,
                "lastTransitionTime": NOW,
                "reason": "Ready",
                "message": "",
            }
        ],
    } == merged(status, (), NOW)


@pytest.mark.parametrize(
    ("before", "since"),
    [
        (live("Ready", "True", "Ready"), BEFORE),
        (live("Ready", "True", "Other"), BEFORE),
        (live("Ready", "False", "Ready"), NOW),
        (live("Ready", "True", "Ready", since=""), NOW),
        (live("Serving", "True", "Ready"), NOW),
        ({"type": "Ready"}, NOW),
    ],
)
def test_transition_time_moves_with_the_status_only(before: dict[str, Any], since: str) -> None:
    """The transition time is kept while the status stays, whatever reason and message do."""
    conditions = merged(desired(("Ready", "True", "Ready")), [before], NOW)["conditions"]

    assert since == conditions[0]["lastTransitionTime"]


def told(status: DesiredStatus, *before: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Transitions in short."""
    return [(t.event_type, t.condition.type, t.condition.reason) for t in transitions(status, before)]


def test_first_visit_tells_the_outcome_only() -> None:
    """A new object makes one event, not one for each condition."""
    status = desired(
        ("Ready", "True", "Ready"), ("Serving", "True", "Serving"), ("RouteReady", "True", "Accepted")
    )

    assert [("Normal", "Ready", "Ready")] == told(status)


def test_nothing_changed_tells_nothing() -> None:
    """A message alone is no news."""
    status = desired(Condition("Ready", "True", "Ready", "2 of 2"))

    assert [] == told(status, live("Ready", "True", "Ready"))


@pytest.mark.parametrize(
    ("condition", "before", "event_type"),
    [
        (("Serving", "True", "Serving"), ("False", "NoReadyEndpoints"), "Normal"),
        (("Serving", "False", "NoReadyEndpoints"), ("True", "Serving"), "Warning"),
        (("Serving", "Unknown", "Unknown"), ("True", "Serving"), "Normal"),
        (("Serving", "False", "RouteNotReady"), ("False", "NoReadyEndpoints"), "Warning"),
        (("Stalled", "True", "InvalidSpec"), ("True", "NameConflict"), "Warning"),
        (("Reconciling", "True", "Progressing"), ("True", "Other"), "Normal"),
    ],
)
def test_event_type_follows_polarity(
    condition: tuple[str, ConditionStatus, str], before: tuple[str, str], event_type: str
) -> None:
    """False is bad news for positive conditions, True is for Stalled; Reconciling never is."""
    assert [(event_type, condition[0], condition[2])] == told(desired(condition), live(condition[0], *before))


def test_progress_is_no_fault() -> None:
    """What is False for the reason of Reconciling is a rollout under way; another reason is a fault in it."""
    status = desired(
        ("Ready", "False", "Progressing"),
        ("Reconciling", "True", "Progressing"),
        Condition("WorkloadReady", "False", "Progressing", "1 of 2"),
        ("RouteReady", "False", "NotAccepted"),
    )
    before = [live(kind, "True", "X") for kind in ("Ready", "WorkloadReady", "RouteReady")]

    assert [
        ("Normal", "Ready", "Progressing"),
        ("Normal", "WorkloadReady", "Progressing"),
        ("Warning", "RouteReady", "NotAccepted"),
    ] == told(status, *before)


@pytest.mark.parametrize("top", ["Ready", "Succeeded"])
def test_nothing_is_bad_news_while_all_is_well(top: str) -> None:
    """A suspended model serves nothing, and that is what was asked for: nobody is warned of it."""
    status = desired((top, "True", "Suspended"), ("Serving", "False", "Asleep"))
    before = [live(kind, "True", "X") for kind in (top, "Serving")]

    assert [("Normal", top, "Suspended"), ("Normal", "Serving", "Asleep")] == told(status, *before)


def test_a_lent_reason_is_told_once() -> None:
    """Ready repeats the reason of the part that fails; the event is one."""
    lent = [Condition(kind, "False", "ImagePullBackOff", "no image") for kind in ("Ready", "WorkloadReady")]
    before = [live(kind, "True", "Fine") for kind in ("Ready", "WorkloadReady")]

    assert [("Warning", "Ready", "ImagePullBackOff")] == told(desired(*lent), *before)


def test_conditions_that_come_later_are_told() -> None:
    """A route added to an old object is news, its removal is told by what remains."""
    status = desired(("Ready", "True", "Ready"), ("RouteReady", "True", "Accepted"))

    assert [("Normal", "RouteReady", "Accepted")] == told(
        status, live("Ready", "True", "Ready"), live("Stalled", "True", "InvalidSpec")
    )
