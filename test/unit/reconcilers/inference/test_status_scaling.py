"""ScalingReady says whether KEDA does what the triggers ask for, and if not, why not."""

from typing import Any

import pytest

from modelfleet.kube.store import State
from modelfleet.plan import Cause, Problem, Ref
from modelfleet.reconcilers.inference.apis import SCALED_OBJECT
from test.unit.reconcilers.inference.scenes import (
    SCALED,
    condition,
    deployment,
    failed,
    found,
    healthy,
    judge,
    scaler,
    spec,
    verdicts,
)
from test.unit.reconcilers.inference.world import KEY, NAME, NAMESPACE, NOW, World

SPEC = spec(scaling=SCALED)
TAKEN = "the workload 'echo' of type 'apps/v1.Deployment' is already managed by the ScaledObject 'other'"


def scaled_world() -> World:
    """Everything works."""
    world = World(SPEC)
    healthy(world)
    return world


def test_absent_without_triggers() -> None:
    """A condition that does not apply is not there."""
    world = World(spec())
    healthy(world)
    assert "ScalingReady" not in verdicts(judge(world))


@pytest.mark.parametrize(
    ("expected", "changes"),
    [
        ("True/Active", []),
        ("True/Idle", [condition("Active", "False", "ScalerNotActive")]),
        ("True/Active", [condition("HPAActive", "True", "ScalingDisabled")]),
        ("Unknown/KEDANotAnswering", [condition("Active", "Unknown")]),
        ("Unknown/KEDANotAnswering", [{"type": "Ready", "status": "Unknown"}]),
        ("False/TriggerError", [condition("Ready", "False", "TriggerError", "not working")]),
        ("False/TriggerError", [condition("Ready", "Unknown", "PartialTriggerError", "some")]),
        (
            "False/ScaledObjectCheckFailed",
            [condition("Ready", "False", "ScaledObjectCheckFailed", "bad name")],
        ),
        ("False/ConflictingScaler", [condition("Ready", "False", "ScaledObjectCheckFailed", TAKEN)]),
        ("False/Fallback", [condition("Fallback", "True", "FallbackExists")]),
        ("False/HPAMetricsUnavailable", [condition("HPAActive", "False", "FailedGetExternalMetric", "no")]),
        ("Unknown/KEDANotAnswering", [condition("Paused", "True", "ScaledObjectPaused")]),
    ],
)
def test_kedas_conditions(expected: str, changes: list[dict[str, Any]]) -> None:
    """`Ready` alone does not mean that the model can scale (keda#7914)."""
    world = scaled_world()
    scaler(world, *changes)
    assert expected == verdicts(judge(world))["ScalingReady"]


def test_no_operator_watches() -> None:
    """A ScaledObject without conditions: nobody has looked at it."""
    world = scaled_world()
    world.set_status(SCALED_OBJECT, {})
    assert "Unknown/KEDANotAnswering" == verdicts(judge(world))["ScalingReady"]


def test_an_edit_that_keda_has_not_seen() -> None:
    """KEDA has no observedGeneration; that it acts on former triggers shows in the types it lists."""
    world = scaled_world()
    scaler(world, triggersTypes="prometheus")
    assert "Unknown/KEDANotAnswering" == verdicts(judge(world))["ScalingReady"]
    world.edit(spec(scaling={**SCALED, "maxReplicas": 9}))
    assert "Unknown/KEDANotAnswering" == verdicts(judge(world))["ScalingReady"]


def test_paused_by_somebody_else() -> None:
    """A pause that the spec does not ask for is a fault, and the message says how to end it."""
    world = scaled_world()
    annotation = "autoscaling.keda.sh/paused"
    world.set_field(SCALED_OBJECT, ("metadata", "annotations", annotation), "true", "kubectl")
    scaler(world, condition("Paused", "True", "ScaledObjectPaused"))
    scaling = found(judge(world), "ScalingReady")
    assert ("False", "Paused") == (scaling.status, scaling.reason)
    assert annotation in scaling.message


def test_suspended() -> None:
    """Our own pause counts once KEDA says so."""
    world = World(spec(scaling=SCALED, suspend=True))
    healthy(world)
    assert "Unknown/KEDANotAnswering" == verdicts(judge(world))["ScalingReady"]
    scaler(world, condition("Paused", "True", "ScaledObjectPaused"))
    assert "True/Suspended" == verdicts(judge(world))["ScalingReady"]


def test_keda_is_not_installed() -> None:
    """The missing part is named with its remedy, the Deployment runs, and the absent type gets no request."""
    world = World(SPEC, absent=(SCALED_OBJECT,))
    healthy(world)
    status = judge(world)
    assert "False/KEDANotInstalled" == verdicts(status)["ScalingReady"]
    assert "False/KEDANotInstalled" == verdicts(status)["Ready"]
    assert "True/Available" == verdicts(status)["WorkloadReady"]
    assert "install KEDA" in found(status, "ScalingReady").message
    assert () == world.step()[0].actions


def test_keda_appears_later() -> None:
    """Installed while we run: the next pass makes the ScaledObject, nothing else."""
    world = World(SPEC, absent=(SCALED_OBJECT,))
    healthy(world)
    world.absent.clear()
    assert [["scaledobject"]] == world.converge()


def test_a_suspended_model_needs_no_keda() -> None:
    """Without KEDA nobody can bring the pods back, so the object is what its spec says."""
    world = World(spec(scaling=SCALED, suspend=True), absent=(SCALED_OBJECT,))
    healthy(world)
    deployment(world, 0)
    assert "True/Suspended" == verdicts(judge(world))["Ready"]


@pytest.mark.parametrize(
    ("expected", "problem"),
    [
        ("False/NameConflict", Problem(Cause.NAME_CONFLICT, "held by nobody")),
        ("False/Forbidden", Problem(Cause.FORBIDDEN, "User x cannot patch scaledobjects")),
        ("False/ApplyFailed", Problem(Cause.DENIED, "webhook denied the request: no")),
        ("False/ConflictingScaler", Problem(Cause.DENIED, f"webhook denied the request: {TAKEN}")),
        ("False/ApplyFailed", Problem(Cause.INVALID, "spec.triggers: required")),
        ("False/KEDANotInstalled", Problem(Cause.NOT_INSTALLED, "no such type")),
        ("True/Active", Problem(Cause.STALE, "it moved")),
    ],
)
def test_a_refused_scaled_object(expected: str, problem: Problem) -> None:
    """What the server refuses becomes the condition of the part; a conflict is no news."""
    world = scaled_world()
    assert expected == verdicts(judge(world, failed("scaledobject", problem)))["ScalingReady"]


def test_a_store_that_may_not_be_read() -> None:
    """403 on the kind is told with the words that name verb, kind and service account."""
    world = scaled_world()
    world.look()
    problem = 'User "sa" cannot watch scaledobjects'
    world.stores[SCALED_OBJECT].feed().mark(State.FORBIDDEN, problem)
    observed = world.reconciler.observe(KEY, NOW)
    assert observed is not None
    scaling = found(world.reconciler.status(observed, {}), "ScalingReady")
    assert ("False", "Forbidden", problem) == (scaling.status, scaling.reason, scaling.message)


def test_a_scaled_object_on_its_way_out() -> None:
    """Deleted by hand and held by KEDA's finalizer: no scaler until a new one is born."""
    world = scaled_world()
    world.terminate(Ref(SCALED_OBJECT, NAMESPACE, NAME))
    assert "Unknown/KEDANotAnswering" == verdicts(judge(world))["ScalingReady"]
    assert () == world.step()[0].actions


def test_trigger_activity_is_listed_in_order() -> None:
    """status.scaling lists KEDA's metrics by name, with what is active and what fails."""
    world = scaled_world()
    scaler(
        world,
        triggersActivity={"s1-cron": {"isActive": True}, "s0-prometheus": {"isActive": False}},
        health={"s0-prometheus": {"status": "Failing", "numberOfFailures": 7}},
    )
    expected = {
        "mode": "Triggers",
        "active": True,
        "triggers": [
            {"name": "s0-prometheus", "active": False, "failing": True},
            {"name": "s1-cron", "active": True},
        ],
    }
    assert expected == judge(world).fields["scaling"]
