"""Conditions as other controllers write them: metav1.Condition, and KEDA's form of it without times."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec


class LiveCondition(msgspec.Struct, frozen=True, gc=False):
    """One condition of a live object; its transition time is left out, since nothing may depend on it."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    observed_generation: int = 0
    """0 when the writer does not say, as Deployments and KEDA do."""

    @property
    def true(self) -> bool:
        """Whether the status is "True"."""
        return self.status == "True"

    @property
    def false(self) -> bool:
        """Whether the status is "False"; "Unknown" is neither."""
        return self.status == "False"


def read_conditions(conditions: Iterable[Mapping[str, Any]] | None) -> tuple[LiveCondition, ...]:
    """Decode `status.conditions` of any object."""
    return tuple(
        LiveCondition(
            type=condition.get("type") or "",
            status=condition.get("status") or "Unknown",
            reason=condition.get("reason") or "",
            message=condition.get("message") or "",
            observed_generation=condition.get("observedGeneration") or 0,
        )
        for condition in conditions or ()
    )


def find(conditions: Iterable[LiveCondition], kind: str) -> LiveCondition | None:
    """The condition of that type, if the object has one."""
    return next((condition for condition in conditions if condition.type == kind), None)
