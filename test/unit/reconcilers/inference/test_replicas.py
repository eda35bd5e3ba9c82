"""Replicas change hands without a dip (rule A4): each transition is carried out step by step in memory."""

from typing import Any

import pytest

from modelfleet.api.meta import MANAGER, REPLICAS_MANAGER
from modelfleet.plan import Ref
from modelfleet.reconcilers.inference.apis import DEPLOYMENT, SCALED_OBJECT
from modelfleet.reconcilers.inference.replicas import Replicas, next_step
from modelfleet.reconcilers.inference.views import DeploymentView
from test.unit.reconcilers.inference.world import NAME, NAMESPACE, World

REPLICAS = ("spec", "replicas")
KEDA = "keda"
CRON = {"type": "cron", "metadata": {"timezone": "UTC", "start": "0 8 * * *", "end": "0 9 * * *"}}


def spec(minimum: int = 1, *, triggers: bool = False, suspend: bool = False) -> dict[str, Any]:
    """A spec that differs only in what decides about replicas."""
    scaling: dict[str, Any] = {"minReplicas": minimum}
    if triggers:
        scaling |= {"maxReplicas": 9, "triggers": [CRON]}
    return {"container": {"image": "example.com/server:1"}, "scaling": scaling, "suspend": suspend}


@pytest.mark.parametrize(
    ("expected", "case"),
    [
        (Replicas(own=2), {"live": None}),
        (Replicas(own=0), {"suspended": True, "live": None}),
        (Replicas(own=0), {"suspended": True, "live": DeploymentView(5, frozenset({KEDA}))}),
        (Replicas(own=2), {"live": DeploymentView(5, frozenset({MANAGER}))}),
        (
            Replicas(own=2, withdraw=True),
            {"live": DeploymentView(2, frozenset({MANAGER, REPLICAS_MANAGER}))},
        ),
        (
            Replicas(own=0, withdraw=True),
            {"suspended": True, "live": DeploymentView(0, frozenset({MANAGER, REPLICAS_MANAGER}))},
        ),
        (Replicas(own=2), {"live": DeploymentView(5, frozenset({KEDA}))}),
        (Replicas(own=None), {"live": DeploymentView(5, frozenset({KEDA})), "scaler_exists": True}),
        (Replicas(own=2), {"live": DeploymentView(0, frozenset({KEDA})), "scaler_exists": True}),
        (Replicas(own=2), {"live": DeploymentView(5, frozenset({MANAGER})), "scaler_exists": True}),
        (Replicas(own=2), {"scaled": True, "live": None}),
        (Replicas(own=5, hand_over=5), {"scaled": True, "live": DeploymentView(5, frozenset({MANAGER}))}),
        (Replicas(own=2), {"scaled": True, "live": DeploymentView(1, frozenset({MANAGER}))}),
        (
            Replicas(own=None),
            {"scaled": True, "live": DeploymentView(2, frozenset({MANAGER, REPLICAS_MANAGER}))},
        ),
        (Replicas(own=None), {"scaled": True, "live": DeploymentView(0, frozenset({KEDA}))}),
    ],
)
def test_next_step(expected: Replicas, case: dict[str, Any]) -> None:
    """One row for each line of the ownership table and each stage of a hand-over."""
    given = {"scaled": False, "suspended": False, "minimum": 2, "scaler_exists": False} | case
    assert expected == next_step(**given)


def test_a_fixed_count_stays_with_the_controller() -> None:
    """Without triggers the controller owns the count and puts a foreign change back."""
    world = World(spec(3))
    world.converge()
    world.set_field(DEPLOYMENT, REPLICAS, 7, "kubectl")
    world.converge()
    assert (3, {MANAGER}) == (world.replicas(), world.managers_of_replicas())


@pytest.mark.parametrize("minimum", [0, 1, 2])
def test_birth_with_triggers_ends_in_other_hands(minimum: int) -> None:
    """Born with minReplicas, handed over, let go: and never another value in between."""
    world = World(spec(minimum, triggers=True))
    history = world.converge()
    assert [["deployment", "service", "scaledobject"], ["replicas"], ["deployment"]] == history
    assert {REPLICAS_MANAGER} == world.managers_of_replicas()
    assert {minimum} == set(world.replicas_seen)


def test_a_count_that_keda_sets_is_never_written_again() -> None:
    """Neither a rollout nor a resync touches a count that an autoscaler has decided (kserve#3768)."""
    world = World(spec(1, triggers=True))
    world.converge()
    world.set_field(DEPLOYMENT, REPLICAS, 6, KEDA)
    world.edit({**spec(1, triggers=True), "model": {"name": "m", "revision": "2"}})
    world.converge()
    assert (6, {KEDA}) == (world.replicas(), world.managers_of_replicas())


def test_an_autoscaler_that_acts_during_the_hand_over_wins() -> None:
    """A value set between birth and hand-over is neither undone nor lost."""
    world = World(spec(1, triggers=True))
    world.step()
    world.set_field(DEPLOYMENT, REPLICAS, 4, KEDA)
    world.converge()
    assert (4, {KEDA}) == (world.replicas(), world.managers_of_replicas())


def test_from_fixed_to_triggers() -> None:
    """The count goes on from what runs and never drops below the smaller of both specs."""
    world = World(spec(3))
    world.converge()
    world.replicas_seen.clear()
    world.edit(spec(1, triggers=True))
    world.converge()
    assert {REPLICAS_MANAGER} == world.managers_of_replicas()
    assert {3} == set(world.replicas_seen)


def test_from_fixed_to_triggers_with_a_larger_minimum() -> None:
    """The minimum of the new spec is reached before the count is let go."""
    world = World(spec(1))
    world.converge()
    world.edit(spec(2, triggers=True))
    world.converge()
    assert (2, {REPLICAS_MANAGER}) == (world.replicas(), world.managers_of_replicas())


@pytest.mark.parametrize("running", [0, 1, 6])
def test_from_triggers_to_fixed(running: int) -> None:
    """The scaler goes first, then the controller takes the count back; never below what the spec asks for."""
    world = World(spec(1, triggers=True))
    world.converge()
    world.set_field(DEPLOYMENT, REPLICAS, running, KEDA)
    world.replicas_seen.clear()
    world.edit(spec(2))
    history = world.converge()
    assert "remove-scaledobject-echo" == history[0][0]
    assert (2, {MANAGER}) == (world.replicas(), world.managers_of_replicas())
    assert min(running, 2) <= min(world.replicas_seen)


def test_a_count_that_comes_back_has_one_owner() -> None:
    """Where the count stays the same both managers would hold it for ever (path independence)."""
    world = World(spec(1, triggers=True))
    world.converge()
    world.edit(spec(1))
    world.converge()
    assert (1, {MANAGER}) == (world.replicas(), world.managers_of_replicas())


def test_the_count_waits_while_a_scaler_is_being_deleted() -> None:
    """While KEDA's finalizer holds the ScaledObject its autoscaler still acts: no fight over the count."""
    world = World(spec(1, triggers=True))
    world.converge()
    world.set_field(DEPLOYMENT, REPLICAS, 6, KEDA)
    world.edit(spec(2))
    world.terminate(Ref(SCALED_OBJECT, NAMESPACE, NAME))
    assert [] == world.converge()
    world.remove(Ref(SCALED_OBJECT, NAMESPACE, NAME))
    world.converge()
    assert (2, {MANAGER}) == (world.replicas(), world.managers_of_replicas())


@pytest.mark.parametrize("minimum", [0, 1, 2])
def test_suspend_and_resume_with_triggers(minimum: int) -> None:
    """Suspended: 0 and ours. Resumed: minReplicas at once, then in other hands again."""
    world = World(spec(minimum, triggers=True))
    world.converge()
    world.set_field(DEPLOYMENT, REPLICAS, 5, KEDA)
    world.edit(spec(minimum, triggers=True, suspend=True))
    assert [["scaledobject", "deployment"]] == world.converge()
    assert (0, {MANAGER}) == (world.replicas(), world.managers_of_replicas())
    world.replicas_seen.clear()
    world.edit(spec(minimum, triggers=True))
    world.converge()
    assert {REPLICAS_MANAGER} == world.managers_of_replicas()
    assert {minimum} == set(world.replicas_seen)


def test_resume_after_keda_has_scaled_to_zero_itself() -> None:
    """KEDA's pause sets 0 as well; the count KEDA then co-owns does not keep the model at zero."""
    world = World(spec(2, triggers=True))
    world.converge()
    world.edit(spec(2, triggers=True, suspend=True))
    world.set_field(DEPLOYMENT, REPLICAS, 0, KEDA)
    world.converge()
    world.edit(spec(2, triggers=True))
    world.converge()
    assert (2, {REPLICAS_MANAGER}) == (world.replicas(), world.managers_of_replicas())


def test_suspend_and_resume_with_a_fixed_count() -> None:
    """Without triggers the controller owns the count throughout."""
    world = World(spec(2))
    world.converge()
    world.edit(spec(2, suspend=True))
    world.converge()
    assert 0 == world.replicas()
    world.edit(spec(2))
    world.converge()
    assert (2, {MANAGER}) == (world.replicas(), world.managers_of_replicas())


def test_every_stage_survives_a_crash() -> None:
    """The next step is decided from the live object alone: a new process ends in the same state."""
    ends = []
    for stages in range(5):
        world = World(spec(2, triggers=True))
        for _ in range(stages):
            world.step()
        survivor = World(spec(2, triggers=True))
        survivor.values, survivor.owners, survivor.extra = world.values, world.owners, world.extra
        survivor.converge()
        ends.append((survivor.replicas(), survivor.managers_of_replicas()))
    assert [(2, {REPLICAS_MANAGER})] * 5 == ends
