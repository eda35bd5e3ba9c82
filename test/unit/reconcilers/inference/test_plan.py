"""The plan: nothing when nothing must change, in the right order when something must, and never blindly."""

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modelfleet.api.meta import MANAGER
from modelfleet.kube.store import State
from modelfleet.plan import Action, Api, Apply, Cause, Delete, Patch, Plan, Precondition, Problem, Ref, Result
from modelfleet.reconcilers.inference.apis import (
    CHILDREN,
    DEPLOYMENT,
    HTTP_ROUTE,
    POD_DISRUPTION_BUDGET,
    SCALED_OBJECT,
    SERVICE,
)
from test.unit.reconcilers.inference.scenes import ROUTED, SCALED, healthy, spec
from test.unit.reconcilers.inference.world import KEY, NAME, NAMESPACE, NOW, UID, World

BUDGET = {"podDisruptionBudget": {"maxUnavailable": 1}}
EVERYTHING = spec(scaling=SCALED, route=ROUTED, rollout=BUDGET)


def names(plan: Plan) -> list[str]:
    """The actions, in order."""
    return [action.name for action in plan.actions]


def action(plan: Plan, name: str) -> Action:
    """The action of that name; it must be there."""
    return next(action for action in plan.actions if action.name == name)


def test_birth() -> None:
    """All children are born in one pass, each after what it depends on, with owner and labels."""
    plan = World(EVERYTHING).step()[0]
    assert ["deployment", "service", "scaledobject", "httproute", "poddisruptionbudget"] == names(plan)
    after = {one.name: one.after for one in plan.actions if one.after}
    assert {"scaledobject": ("deployment",), "httproute": ("service",)} == after
    for one in plan.actions:
        assert isinstance(one, Apply)
        assert (None, MANAGER, UID) == (one.live, one.manager, one.owner_uid)
        owner = one.manifest.body["metadata"]["ownerReferences"][0]
        assert (UID, True, True) == (owner["uid"], owner["controller"], owner["blockOwnerDeletion"])


@pytest.mark.parametrize(
    "wanted",
    [spec(), spec(suspend=True), spec(scaling=SCALED), EVERYTHING, {**EVERYTHING, "suspend": True}],
)
def test_converged_means_no_action(wanted: dict[str, Any]) -> None:
    """A reconcile of a converged object asks the server for nothing (rule A13)."""
    world = World(wanted)
    healthy(world)
    assert Plan() == world.step()[0]


def test_drift_of_an_owned_field_is_put_back() -> None:
    """Only the drifted child is written, pinned to the revision the decision was taken from (A7, A13)."""
    world = World(EVERYTHING)
    healthy(world)
    world.set_field(SERVICE, ("spec", "type"), "LoadBalancer", "kubectl")
    version = world.version(Ref(SERVICE, NAMESPACE, NAME))
    plan = world.step()[0]
    assert ["service"] == names(plan)
    repair = action(plan, "service")
    assert isinstance(repair, Apply)
    assert Precondition(*version) == repair.live
    assert "ClusterIP" == world.values[Ref(SERVICE, NAMESPACE, NAME)][("spec", "type")]


@pytest.mark.parametrize(
    ("api", "leaf"),
    [
        (DEPLOYMENT, ("spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt")),
        (DEPLOYMENT, ("spec", "paused")),
        (DEPLOYMENT, ("spec", "replicas")),
        (SERVICE, ("metadata", "labels", "team")),
        (SCALED_OBJECT, ("metadata", "annotations", "autoscaling.keda.sh/paused")),
        (SCALED_OBJECT, ("metadata", "labels", "scaledobject.keda.sh/name")),
    ],
)
def test_foreign_fields_are_left_alone(api: Api, leaf: tuple[str, ...]) -> None:
    """What others add, and the replicas of a scaled Deployment, is theirs."""
    world = World(EVERYTHING)
    healthy(world)
    world.set_field(api, leaf, 3 if leaf[-1] == "replicas" else "theirs", "kubectl")
    assert [] == names(world.step()[0])


def test_an_edited_port_is_replaced_not_joined() -> None:
    """An apply would put our port next to the edited one of the same name: the server refuses that (A5)."""
    world = World(spec())
    healthy(world)
    ref = Ref(SERVICE, NAMESPACE, NAME)
    edited = {"name": "http", "port": 81, "protocol": "TCP", "targetPort": "http"}
    added = {"name": "metrics", "port": 9090, "protocol": "TCP", "targetPort": 9090}
    world.set_field(SERVICE, ("spec", "ports"), [edited, added], "kubectl")
    held: dict[str, Any] = {'k:{"port":81,"protocol":"TCP"}': {}, 'k:{"port":9090,"protocol":"TCP"}': {}}
    fields = {"f:spec": {"f:ports": held}}
    world.extra[ref]["managedFields"] = [
        {"manager": "kubectl-edit", "operation": "Update", "fieldsV1": fields}
    ]
    version = world.version(ref)
    repair = action(world.step()[0], "service")
    assert isinstance(repair, Patch)
    assert Precondition(*version) == repair.live
    ours = {**edited, "port": 80}
    assert {"spec": {"ports": [ours, added]}} == repair.body
    assert ["service"] == names(world.step()[0]), "then the full intent is applied"


def test_a_port_that_somebody_added_stays() -> None:
    """Only a port under our name is in the way."""
    world = World(spec())
    healthy(world)
    ref = Ref(SERVICE, NAMESPACE, NAME)
    fields: dict[str, Any] = {"f:spec": {"f:ports": {'k:{"port":9090,"protocol":"TCP"}': {}}}}
    world.extra[ref]["managedFields"] = [
        {"manager": "kubectl-edit", "operation": "Update", "fieldsV1": fields}
    ]
    world.edit(spec(service={"port": 8080}))
    assert isinstance(action(world.step()[0], "service"), Apply)


def test_children_that_are_no_longer_wanted_are_deleted() -> None:
    """Each with uid and resourceVersion, the scaler before the Deployment (A6)."""
    world = World(EVERYTHING)
    healthy(world)
    versions = {api: world.version(Ref(api, NAMESPACE, NAME)) for api in CHILDREN}
    world.edit(spec())
    plan = world.step()[0]
    removals = {one.ref.api: one.live for one in plan.actions if isinstance(one, Delete)}
    expected = {
        api: Precondition(*versions[api]) for api in (SCALED_OBJECT, HTTP_ROUTE, POD_DISRUPTION_BUDGET)
    }
    assert expected == removals
    world.converge()
    assert {DEPLOYMENT, SERVICE} == {ref.api for ref in world.values}


def test_children_are_known_by_owner_not_by_name() -> None:
    """An object of ours under another name is removed; one of somebody else's is not even looked at (A6)."""
    world = World(spec())
    healthy(world)
    ours = [{"apiVersion": "v", "kind": "InferenceService", "name": NAME, "uid": UID, "controller": True}]
    world.put(HTTP_ROUTE, "stray", {"metadata": {"ownerReferences": ours}})
    world.put(HTTP_ROUTE, "friend", {"metadata": {"ownerReferences": [{**ours[0], "controller": False}]}})
    world.put(HTTP_ROUTE, "foreign", {"metadata": {"ownerReferences": [{**ours[0], "uid": "other"}]}})
    world.put(HTTP_ROUTE, NAME, {})
    assert ["remove-httproute-stray"] == names(world.step()[0])


@pytest.mark.parametrize("state", [State.SYNCING, State.FORBIDDEN])
def test_a_kind_that_cannot_be_read_is_not_touched(state: State) -> None:
    """An empty store that has not synced says nothing: no birth, no deletion, no hand-over (A6)."""
    world = World(EVERYTHING)
    healthy(world)
    world.edit(spec(rollout={"maxSurge": 0}))
    world.look()
    for api in CHILDREN:
        world.stores[api].feed().mark(state, "why")
    observed = world.reconciler.observe(KEY, NOW)
    assert observed is not None
    assert Plan() == world.reconciler.plan(observed)


def test_an_unreadable_scaler_is_taken_for_an_acting_one() -> None:
    """While ScaledObjects can't be seen, a count that somebody else set is not taken back."""
    world = World(spec(scaling=SCALED))
    world.converge()
    world.set_field(DEPLOYMENT, ("spec", "replicas"), 4, "keda")
    world.edit(spec())
    world.look()
    world.stores[SCALED_OBJECT].feed().mark(State.SYNCING)
    observed = world.reconciler.observe(KEY, NOW)
    assert observed is not None
    assert Plan() == world.reconciler.plan(observed)


def test_a_child_on_its_way_out_is_awaited() -> None:
    """A deleted child that a finalizer holds is neither applied to nor born again before it is gone."""
    world = World(spec())
    healthy(world)
    ref = Ref(SERVICE, NAMESPACE, NAME)
    world.terminate(ref)
    assert [] == names(world.step()[0])
    world.remove(ref)
    assert ["service"] == names(world.step()[0])


def test_suspend_pauses_the_scaler_first() -> None:
    """The pods go only when the scaler was told; else it would bring them back."""
    world = World(spec(scaling=SCALED))
    world.converge()
    world.edit(spec(scaling=SCALED, suspend=True))
    denied = Problem(Cause.DENIED, "no")
    plan, outcomes = world.step(lambda name: denied if name == "scaledobject" else None)
    assert ["scaledobject", "deployment"] == names(plan)
    assert Result.SKIPPED == outcomes["deployment"].result
    assert 1 == world.replicas()
    body = world.look().intents[SCALED_OBJECT].body
    assert {"autoscaling.keda.sh/paused-replicas": "0"} == body["metadata"]["annotations"]


def test_resume_takes_the_pause_away() -> None:
    """The annotation is ours and goes with the next full intent."""
    world = World(spec(scaling=SCALED, suspend=True))
    world.converge()
    leaf = ("metadata", "annotations", "autoscaling.keda.sh/paused-replicas")
    assert "0" == world.values[Ref(SCALED_OBJECT, NAMESPACE, NAME)][leaf]
    world.edit(spec(scaling=SCALED))
    world.converge()
    assert leaf not in world.values[Ref(SCALED_OBJECT, NAMESPACE, NAME)]


def test_a_refused_update_does_not_hold_up_the_others() -> None:
    """Only births are waited for: a template the server refuses does not keep the scaler from changing."""
    world = World(EVERYTHING)
    healthy(world)
    world.edit({**EVERYTHING, "container": {"image": "other"}, "scaling": {**SCALED, "maxReplicas": 9}})
    invalid = Problem(Cause.INVALID, "no")
    _, outcomes = world.step(lambda name: invalid if name == "deployment" else None)
    assert {"deployment": Result.FAILED, "scaledobject": Result.DONE} == {
        name: outcome.result for name, outcome in outcomes.items()
    }


def test_a_deployment_that_is_not_born_has_no_scaler() -> None:
    """What depends on a failed birth is skipped, the rest goes on."""
    world = World(EVERYTHING)
    invalid = Problem(Cause.INVALID, "no")
    _, outcomes = world.step(lambda name: invalid if name == "deployment" else None)
    skipped = {name for name, outcome in outcomes.items() if outcome.result is Result.SKIPPED}
    assert {"scaledobject"} == skipped


SPECS = (
    spec(),
    spec(suspend=True),
    spec(scaling={"minReplicas": 3}, rollout=BUDGET),
    spec(scaling=SCALED),
    spec(scaling=SCALED, suspend=True),
    EVERYTHING,
    spec(route=ROUTED, service={"port": 81}, model={"name": "m", "revision": "2"}),
)


def end(world: World) -> dict[Ref, Any]:
    """Everything the controller decides; a count in other hands is not among it."""
    decided = {ref: dict(values) for ref, values in world.values.items()}
    if MANAGER not in world.managers_of_replicas():
        del decided[Ref(DEPLOYMENT, NAMESPACE, NAME)][("spec", "replicas")]
    return decided


@pytest.mark.parametrize(("before", "last"), list(itertools.permutations(range(len(SPECS)), 2)))
def test_path_independence(before: int, last: int) -> None:
    """Applying a spec over another one ends where applying it to a fresh cluster does."""
    walked, fresh = World(SPECS[before]), World(SPECS[last])
    walked.converge()
    walked.edit(SPECS[last])
    walked.converge()
    fresh.converge()
    assert end(fresh) == end(walked)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(SPECS) - 1), st.integers(0, 3)), min_size=1, max_size=6))
def test_path_independence_with_interruptions(path: list[tuple[int, int]]) -> None:
    """Edits that come before the former one has been carried out leave nothing behind either."""
    walked = World(SPECS[path[0][0]])
    for number, passes in path:
        walked.edit(SPECS[number])
        for _ in range(passes):
            walked.step()
    walked.converge()
    fresh = World(SPECS[path[-1][0]])
    fresh.converge()
    assert end(fresh) == end(walked)
