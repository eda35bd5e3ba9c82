"""The status a planner wants, before the runtime merges it with what is there.

Conditions follow metav1.Condition. Planners never set lastTransitionTime: the status writer keeps the
live one while the status value stays, so that an unchanged meaning gives unchanged bytes (facts 1.5).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

ConditionStatus = Literal["True", "False", "Unknown"]


@dataclass(frozen=True, slots=True)
class Condition:
    """One metav1.Condition without its transition time."""

    type: str
    status: ConditionStatus
    reason: str
    """CamelCase, never empty; part of the API."""
    message: str = ""

    @property
    def true(self) -> bool:
        """Whether the status is "True"."""
        return self.status == "True"


@dataclass(frozen=True, slots=True)
class DesiredStatus:
    """The whole status one field manager wants; what it leaves out is removed."""

    observed_generation: int
    conditions: tuple[Condition, ...]
    """One for each type that applies; a type that does not apply is left out (api.md)."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """The rest of status in wire form (camelCase), without nulls and empty maps."""
