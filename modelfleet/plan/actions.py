"""The vocabulary of change: the only things that may happen to a cluster.

A plan is a tuple of actions, each naming the actions it depends on. Plans are values: `modelfleet diff`
prints them, the fault suite kills the process around each of them, and one executor
(`modelfleet.runtime.executor`) is the only code that carries them out.

Every action that touches an existing object carries a `Precondition`; without one an `Apply` is a birth
and must not meet an object of that name (architecture.md section 2).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from modelfleet.plan.manifest import Manifest
from modelfleet.plan.refs import Ref


@dataclass(frozen=True, slots=True)
class Precondition:
    """Which incarnation and which revision a decision was taken from; the server refuses others with 409."""

    uid: str
    resource_version: str


@dataclass(frozen=True, slots=True)
class Apply:
    """Server-side apply of the full intent of one field manager.

    `live` is the object the decision was taken from; None means birth: the name must be free. When it is
    not, the executor looks at the live object: owned by `owner_uid` the intent is applied to it, else the
    outcome is `NameConflict` and the object stays untouched (rule A8).
    """

    name: str
    """Unique within the plan; what `after` and outcomes refer to."""
    ref: Ref
    manifest: Manifest
    manager: str
    owner_uid: str
    live: Precondition | None = None
    live_digest: str = ""
    """Digest of the live object's owned projection; a refusal by the server holds until it changes."""
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Create:
    """POST of an object that no later apply will touch: Jobs, Events, Leases."""

    name: str
    ref: Ref
    manifest: Manifest
    manager: str
    owner_uid: str
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Patch:
    """JSON merge patch of an object that exists. `body` holds no metadata.uid: the executor adds it."""

    name: str
    ref: Ref
    body: Mapping[str, Any]
    manager: str
    live: Precondition
    after: tuple[str, ...] = ()


class Propagation(StrEnum):
    """What happens to the dependants of a deleted object."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete one incarnation at one revision (rule A6)."""

    name: str
    ref: Ref
    live: Precondition
    propagation: Propagation = Propagation.BACKGROUND
    after: tuple[str, ...] = ()


Action = Apply | Create | Patch | Delete


@dataclass(frozen=True, slots=True)
class Plan:
    """Ordered actions; each one's dependencies come before it."""

    actions: tuple[Action, ...] = ()
    requeue_after: float | None = None
    """Seconds until the key is looked at again although nothing changed; None: only when something does."""

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for action in self.actions:
            if action.name in seen:
                raise ValueError(f"two actions are called {action.name!r}")
            if missing := [name for name in action.after if name not in seen]:
                raise ValueError(f"{action.name!r} depends on {missing}, which do not come before it")
            seen.add(action.name)
