"""Who decides a Deployment's replica count, and how it changes hands without a dip (rule A4).

| spec | owner of spec.replicas | value |
|---|---|---|
| no triggers | modelfleet-controller | minReplicas |
| triggers | modelfleet-replicas at first, then whoever scales | minReplicas at first, then never written |
| suspend | modelfleet-controller | 0 |

A field that loses its last owner is reset to its default, 1 pod. So nobody lets go before another one holds
on: to pass the count on, the controller keeps it in its intent, `modelfleet-replicas` applies the live value
next to it, and only then does the controller leave it out. Each step is decided from what the live object
says about its owners, never from memory, so a crash between any two steps costs nothing.
"""

from dataclasses import dataclass

from modelfleet.api.meta import MANAGER, REPLICAS_MANAGER
from modelfleet.reconcilers.inference.views import DeploymentView


@dataclass(frozen=True, slots=True)
class Replicas:
    """One step: what the two field managers apply next."""

    own: int | None
    """The count in the controller's full intent; None leaves the field out."""
    hand_over: int | None = None
    """The count that modelfleet-replicas is to hold as well; None: nothing to do."""
    withdraw: bool = False
    """modelfleet-replicas is to let go of a count that is the controller's again."""


def next_step(
    *, scaled: bool, suspended: bool, minimum: int, live: DeploymentView | None, scaler_exists: bool
) -> Replicas:
    """Decide the next step.

    Args:
        scaled: The spec has triggers.
        suspended: The spec says `suspend: true`.
        minimum: spec.scaling.minReplicas.
        live: The Deployment, None before its birth.
        scaler_exists: Our ScaledObject is there, perhaps on its way out: its autoscaler still acts.
    """
    if live is None:
        return Replicas(own=0 if suspended else minimum)
    ours = MANAGER in live.replica_owners
    left_over = ours and REPLICAS_MANAGER in live.replica_owners
    if suspended:
        return Replicas(own=0, withdraw=left_over)
    if not scaled:
        # Taking the count back while an autoscaler acts would only start a fight; a count below the minimum
        # can't wait, and at zero an autoscaler rests.
        waits = scaler_exists and not ours and live.replicas >= minimum
        return Replicas(own=None if waits else minimum, withdraw=left_over)
    if ours and live.replicas < minimum:
        return Replicas(own=minimum)
    if not ours or left_over:
        return Replicas(own=None)
    return Replicas(own=live.replicas, hand_over=live.replicas)
