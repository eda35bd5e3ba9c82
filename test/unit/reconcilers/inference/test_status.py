"""The whole status: Ready and Serving, Reconciling and Stalled, and the numbers."""

import pytest

from modelfleet.api.meta import API_VERSION
from modelfleet.plan import Cause, Outcome, Problem, Ref, Result, canonical
from modelfleet.reconcilers.inference.apis import DEPLOYMENT, INFERENCE_SERVICE, SERVICE
from modelfleet.reconcilers.inference.status.wording import MESSAGE_MAX
from test.unit.reconcilers.inference.scenes import (
    ROUTED,
    SCALED,
    condition,
    deployment,
    endpoints,
    failed,
    found,
    healthy,
    judge,
    route,
    scaler,
    spec,
    verdicts,
)
from test.unit.reconcilers.inference.world import NAME, NAMESPACE, World

EVERYTHING = spec(
    scaling=SCALED, route=ROUTED, rollout={"podDisruptionBudget": {"minAvailable": 1}}, model={"name": "m/x"}
)


def test_all_is_well() -> None:
    """Every part that applies is True, nothing is reconciling or stalled, every number is there."""
    world = World(EVERYTHING)
    healthy(world)
    status = judge(world)
    expected = {
        "Ready": "True/Ready",
        "Serving": "True/Serving",
        "WorkloadReady": "True/Available",
        "ScalingReady": "True/Active",
        "RouteReady": "True/Accepted",
    }
    assert expected == verdicts(status)
    assert 1 == status.observed_generation
    fields = {
        "url": "http://echo.example.com/v1",
        "address": {"url": "http://echo.models.svc.cluster.local:80"},
        "scaling": {"mode": "Triggers", "active": True},
        "replicas": {"desired": 1, "updated": 1, "ready": 1},
        "summary": {"replicas": "1/1"},
    }
    assert fields == status.fields


def test_before_anything_exists() -> None:
    """The first status of all: in progress, with the generation that was read."""
    status = judge(World(EVERYTHING))
    expected = {
        "Ready": "False/Progressing",
        "Reconciling": "True/Progressing",
        "Serving": "False/NoReadyEndpoints",
        "WorkloadReady": "False/Progressing",
        "ScalingReady": "Unknown/KEDANotAnswering",
        "RouteReady": "Unknown/NoControllerAnswered",
    }
    assert expected == verdicts(status)
    assert {"scaling": {"mode": "Triggers"}} == status.fields


def test_a_rollout_serves_but_is_not_ready() -> None:
    """During a rollout Ready is False and Reconciling is there; Serving stays True."""
    world = World(EVERYTHING)
    healthy(world)
    deployment(world, 1, replicas=2, updatedReplicas=1)
    kinds = verdicts(judge(world))
    assert ("False/Progressing", "True/Progressing", "True/Serving") == (
        kinds["Ready"],
        kinds["Reconciling"],
        kinds["Serving"],
    )


def test_a_refusal_comes_before_a_silence() -> None:
    """Ready takes the reason of the first part that says no; only without one is it Unknown."""
    world = World(EVERYTHING)
    healthy(world)
    route(world)
    assert "Unknown/NoControllerAnswered" == verdicts(judge(world))["Ready"]
    deployment(world, 1, availableReplicas=0)
    assert "False/Progressing" == verdicts(judge(world))["Ready"]


@pytest.mark.parametrize(
    ("expected", "ready_endpoints", "accepted"),
    [("True/Serving", 2, True), ("False/RouteNotReady", 2, False), ("False/NoReadyEndpoints", 0, True)],
)
def test_serving(expected: str, ready_endpoints: int, accepted: bool) -> None:  # noqa: FBT001  # a table column
    """Requests are answered when an endpoint takes traffic and the route in front of it is accepted."""
    world = World(EVERYTHING)
    healthy(world)
    endpoints(world, ready_endpoints)
    if not accepted:
        route(world)
    assert expected == verdicts(judge(world))["Serving"]


def test_nobody_is_alerted_for_a_model_that_sleeps() -> None:
    """At zero and suspended, Serving and Ready carry the reason an alert leaves out."""
    world = World(spec(scaling={**SCALED, "minReplicas": 0}))
    healthy(world)
    kinds = verdicts(judge(world))
    assert ("True/ScaledToZero", "False/ScaledToZero") == (kinds["Ready"], kinds["Serving"])
    world.edit(spec(scaling={**SCALED, "minReplicas": 0}, suspend=True))
    healthy(world)
    scaler(world, condition("Paused", "True", "ScaledObjectPaused"))
    kinds = verdicts(judge(world))
    assert ("True/Suspended", "False/Suspended") == (kinds["Ready"], kinds["Serving"])


def test_scaled_to_zero_is_ready_only_with_a_working_scaler() -> None:
    """A model that sleeps and can't be woken is not ready."""
    world = World(spec(scaling={**SCALED, "minReplicas": 0}))
    healthy(world)
    scaler(world, condition("Ready", "False", "TriggerError", "no answer"))
    kinds = verdicts(judge(world))
    assert ("False/TriggerError", "False/NoReadyEndpoints") == (kinds["Ready"], kinds["Serving"])


@pytest.mark.parametrize(("action", "kind"), [("scaledobject", "ScalingReady"), ("httproute", "RouteReady")])
def test_a_part_that_waits_for_another_blames_nobody(action: str, kind: str) -> None:
    """A child that was not even tried, since what it needs was refused, is no fault of KEDA or a gateway."""
    world = World(EVERYTHING)
    healthy(world)
    told = verdicts(judge(world, {action: Outcome(action, Result.SKIPPED)}))
    assert "False/Progressing" == told[kind]


def test_endpoints_of_a_foreign_service_do_not_count() -> None:
    """Somebody else's Service of our name may have endpoints with our label: nobody is served by us."""
    world = World(EVERYTHING)
    healthy(world)
    world.remove(Ref(SERVICE, NAMESPACE, NAME))
    assert "False/NoReadyEndpoints" == verdicts(judge(world))["Serving"]


@pytest.mark.parametrize(
    ("stalled", "problem"),
    [
        ("True/NameConflict", Problem(Cause.NAME_CONFLICT, "held")),
        ("True/ApplyFailed", Problem(Cause.IMMUTABLE, "spec.clusterIP: may not change")),
        ("True/ApplyFailed", Problem(Cause.INVALID, "spec.ports: bad")),
        ("True/ApplyFailed", Problem(Cause.TOO_LARGE, "too large")),
        (None, Problem(Cause.DENIED, "a policy said no")),
        (None, Problem(Cause.FORBIDDEN, "cannot patch services")),
        (None, Problem(Cause.NAMESPACE_TERMINATING, "being deleted")),
        (None, Problem(Cause.QUOTA_EXCEEDED, "exceeded quota")),
    ],
)
def test_problems_of_a_child_without_a_condition_of_its_own(stalled: str | None, problem: Problem) -> None:
    """A refused Service keeps the object from being ready; Stalled when only a person can help."""
    world = World(EVERYTHING)
    healthy(world)
    status = judge(world, failed("service", problem))
    assert "False" == found(status, "Ready").status
    assert problem.message in found(status, "Ready").message
    assert stalled == verdicts(status).get("Stalled")
    assert (stalled is None) == ("Reconciling" in verdicts(status))


def test_a_problem_that_passes_is_no_news() -> None:
    """Conflicts and lost leases are retried without a word (facts 1.5)."""
    world = World(EVERYTHING)
    healthy(world)
    for cause in (Cause.STALE, Cause.NOT_LEADING, Cause.THROTTLED, Cause.UNREACHABLE):
        assert judge(world) == judge(world, failed("service", Problem(cause, "passing")))


@pytest.mark.parametrize("broken", [None, {}, {"container": {}}, {"container": {"image": 5}}, [], "text"])
def test_an_unreadable_spec_is_stalled_and_touches_nothing(broken: object) -> None:
    """Broken specs are told with field and remedy; the children, and what they serve, stay (A6)."""
    world = World(EVERYTHING)
    healthy(world)
    world.edit(broken)
    status = judge(world)
    kinds = verdicts(status)
    assert ("False/InvalidSpec", "True/InvalidSpec") == (kinds["Ready"], kinds["Stalled"])
    assert ("True/Serving", "True/Available") == (kinds["Serving"], kinds["WorkloadReady"])
    assert "spec" in found(status, "Ready").message
    assert 2 == status.observed_generation
    assert () == world.step()[0].actions


def test_an_object_on_its_way_out() -> None:
    """Nothing is created or deleted while the object is being deleted: its children go with it."""
    world = World(EVERYTHING)
    world.terminate(Ref(INFERENCE_SERVICE, NAMESPACE, NAME))
    assert () == world.step()[0].actions
    kinds = verdicts(judge(world))
    assert "False/Terminating" == kinds["Ready"]
    assert not {"Reconciling", "Stalled"} & kinds.keys()


def test_messages_are_bounded() -> None:
    """No message of a server or a scheduler makes the status exceed metav1.Condition's limit."""
    world = World(EVERYTHING)
    healthy(world)
    status = judge(world, failed("deployment", Problem(Cause.INVALID, "word " * 10_000)))
    assert {MESSAGE_MAX} >= {len(one.message) for one in status.conditions if len(one.message) >= MESSAGE_MAX}
    assert found(status, "WorkloadReady").message.endswith("…")


def test_the_same_world_gives_the_same_bytes() -> None:
    """Order of listing and repetition change nothing (facts 1.5)."""
    worlds = [World(EVERYTHING), World(EVERYTHING)]
    for world in worlds:
        healthy(world)
    worlds[1].extra = dict(reversed(worlds[1].extra.items()))
    first, second = (judge(world) for world in worlds)
    assert first == second == judge(worlds[0])
    assert canonical(first.fields) == canonical(second.fields)


def test_a_headless_service_is_addressed_at_the_pods_own_port() -> None:
    """Without a cluster IP the DNS name leads to the pods, and no port is translated."""
    world = World(spec(service={"headless": True, "port": 80}, container={"image": "x", "port": 9000}))
    healthy(world)
    assert {"url": "http://echo.models.svc.cluster.local:9000"} == judge(world).fields["address"]


def test_live_conditions_are_those_of_every_writer() -> None:
    """The status writer gets transition times from the object as it is."""
    world = World(EVERYTHING)
    live = [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    world.set_status(INFERENCE_SERVICE, {"conditions": live})
    assert live == list(world.reconciler.live_conditions(world.look()))


def test_generations_of_the_child_are_asked() -> None:
    """A Deployment whose controller lags is in progress, whatever its numbers say."""
    world = World(spec())
    healthy(world)
    world.extra[Ref(DEPLOYMENT, NAMESPACE, NAME)]["generation"] += 1
    assert "False/Progressing" == verdicts(judge(world))["Ready"]


def test_the_kind_is_the_one_of_the_api() -> None:
    """The reconciler and the API types speak of the same kind."""
    assert API_VERSION == INFERENCE_SERVICE.api_version
