"""Status parts that every kind shares."""

from typing import Annotated, Literal

from modelfleet.api.base import DATE_TIME, ApiObject, Generation, Items, Text


class Condition(ApiObject):
    """One observation about the object (metav1.Condition)."""

    type: Annotated[str, Text(max=316, min=1)]
    """What is observed, such as Ready."""
    status: Literal["True", "False", "Unknown"]
    """Whether it holds."""
    reason: Annotated[str, Text(max=1024, min=1)]
    """Why, as one CamelCase word for programs."""
    message: Annotated[str, Text(max=32768)] = ""
    """Why, for people; names the next step where there is one."""
    last_transition_time: Annotated[str, Text(max=64, min=1), DATE_TIME]
    """When `status` last changed."""
    observed_generation: Generation | None = None
    """metadata.generation this was observed for."""


Conditions = Annotated[tuple[Condition, ...], Items(max=32, key="type")]
