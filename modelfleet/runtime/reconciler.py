"""What the runtime asks of a kind: three pure functions and a list of what to read.

observe -> plan -> (executor) -> status. None of them may do I/O, read a clock or raise for a user's
mistake: a broken object is a condition. The runtime calls them in that order for each key and is the only
caller (architecture.md section 2).
"""

from datetime import datetime
from typing import Protocol, TypeVar

from modelfleet.kube.objects import Item
from modelfleet.plan import Api, DesiredStatus, Key, Outcomes, Plan

O = TypeVar("O")


class Reconciler(Protocol[O]):
    """One kind's logic. `O` is its observed value: frozen, everything a decision needs."""

    name: str
    """Controller name: metric label, log field, event reportingController suffix."""
    api: Api
    """The kind it reconciles."""

    def observe(self, key: Key, now: datetime) -> O | None:
        """Read the stores; None when the object is gone."""

    def item(self, observed: O) -> Item[object]:
        """The reconciled object itself, for status writes and events."""

    def plan(self, observed: O) -> Plan:
        """What must change, and nothing when nothing must."""

    def status(self, observed: O, outcomes: Outcomes) -> DesiredStatus:
        """The truth about the object, also after failures."""
