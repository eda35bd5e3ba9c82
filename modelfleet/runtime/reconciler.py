"""What the runtime asks of a kind: pure functions and nothing else.

observe -> plan -> (executor) -> status. None of them may do I/O, read a clock or raise for a user's
mistake: a broken object is a condition. The runtime calls them in that order for each key and is the only
caller (architecture.md section 2).
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar

from modelfleet.kube.objects import Item
from modelfleet.plan import Api, DesiredStatus, Key, Outcomes, Plan

Observed = TypeVar("Observed")


class Reconciler(Protocol[Observed]):
    """One kind's logic. `Observed` is frozen and holds everything a decision needs."""

    name: str
    """Controller name: metric label, log field, event reportingController suffix."""
    api: Api
    """The kind it reconciles."""

    def keys_of(self, api: Api, item: Item[Any], /) -> Iterable[Key]:
        """The objects to look at when an object of any watched kind changed.

        Their own key for objects of `self.api`; the owner's for children, by owner reference. Asked for the
        last known state of deleted objects too.
        """

    def observe(self, key: Key, now: datetime, /) -> Observed | None:
        """Read the stores; None when the object is gone."""

    def item(self, observed: Observed, /) -> Item[Any]:
        """The reconciled object itself, for status writes and events."""

    def live_conditions(self, observed: Observed, /) -> Sequence[Mapping[str, Any]]:
        """`status.conditions` of the reconciled object as the server returned them, all writers' included.

        The status writer takes lastTransitionTime from them and derives events from what is different.
        """

    def plan(self, observed: Observed, /) -> Plan:
        """What must change, and nothing when nothing must."""

    def status(self, observed: Observed, outcomes: Outcomes, /) -> DesiredStatus:
        """The truth about the object, also after failures.

        A `Stale` problem is no news: the pass is repeated from the newer object at once.
        """
