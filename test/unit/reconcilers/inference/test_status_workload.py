"""WorkloadReady tells the truth about pods, with the words of whoever knows best."""

from typing import Any

import pytest

from modelfleet.kube.store import State
from modelfleet.plan import Cause, Problem, Ref
from modelfleet.reconcilers.inference.apis import DEPLOYMENT
from test.unit.reconcilers.inference.scenes import (
    SCALED,
    condition,
    container,
    deployment,
    failed,
    found,
    healthy,
    judge,
    pod,
    spec,
)
from test.unit.reconcilers.inference.world import KEY, NAME, NAMESPACE, NOW, World

TWO = spec(scaling={"minReplicas": 2})


def ready_pod(world: World, name: str, *, template: str = "old") -> None:
    """A pod that serves."""
    conditions = [condition("Ready", "True")]
    pod(
        world,
        name,
        {"phase": "Running", "conditions": conditions},
        template=template,
        created="2025-01-01T00:00:00Z",
    )


def verdict(world: World) -> str:
    """WorkloadReady as `status/reason`."""
    workload = found(judge(world), "WorkloadReady")
    return f"{workload.status}/{workload.reason}"


def test_available_needs_every_number_to_agree() -> None:
    """Available means updated == desired == available, and no pod of a former template left (kserve#4626)."""
    world = World(TWO)
    healthy(world)
    assert "True/Available" == verdict(world)


@pytest.mark.parametrize(
    "numbers",
    [
        {"updatedReplicas": 1},
        {"availableReplicas": 1},
        {"replicas": 3},
        {"updatedReplicas": 0, "availableReplicas": 2},
        {"observedGeneration": 0},
    ],
    ids=str,
)
def test_any_other_number_is_progress(numbers: dict[str, Any]) -> None:
    """One number that lags, or a generation nobody has acted on, and the workload is not ready."""
    world = World(TWO)
    healthy(world)
    deployment(world, 2, **numbers)
    assert "False/Progressing" == verdict(world)


def test_a_changed_spec_is_not_ready_before_it_is_applied() -> None:
    """In the pass that applies a new spec the old numbers say nothing about it (ai-runway/airunway#422)."""
    world = World(TWO)
    healthy(world)
    world.edit({**TWO, "container": {"image": "registry.example.com/server:2"}})
    assert "False/Progressing" == verdict(world)


def test_no_deployment_yet() -> None:
    """Before its birth the workload is in progress, with the reason why the birth is late."""
    world = World(TWO)
    problem = Problem(Cause.UNREACHABLE, "Deployment models/echo: failed calling webhook.")
    workload = found(judge(world, failed("deployment", problem)), "WorkloadReady")
    assert ("False", "Progressing") == (workload.status, workload.reason)
    assert "the spec is newer than the Deployment: Unreachable: " + problem.message == workload.message


def test_a_deployment_on_its_way_out() -> None:
    """A deleted Deployment that a finalizer holds is no workload."""
    world = World(TWO)
    healthy(world)
    world.terminate(Ref(DEPLOYMENT, NAMESPACE, NAME))
    assert "False/Progressing" == verdict(world)


def test_scaled_to_zero_is_no_outage() -> None:
    """No pods, because no trigger asks for any."""
    world = World(spec(scaling={**SCALED, "minReplicas": 0}))
    healthy(world)
    assert "True/ScaledToZero" == verdict(world)


def test_suspended_once_the_pods_are_gone() -> None:
    """`suspend` is carried out when no pod is left."""
    world = World(spec(suspend=True))
    healthy(world)
    deployment(world, 0, replicas=1)
    assert "False/Progressing" == verdict(world)
    deployment(world, 0)
    assert "True/Suspended" == verdict(world)


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        (
            "QuotaExceeded",
            'pods "echo-5d4-abcde" is forbidden: exceeded quota: gpus, requested: pods=1, used: pods=1',
        ),
        ("ReplicaFailure", 'pods "echo-5d4-abcde" is forbidden: violates PodSecurity "restricted:latest"'),
    ],
)
def test_pods_that_cannot_be_created(reason: str, message: str) -> None:
    """The API server's words, without the name of a pod that is drawn anew on each try."""
    world = World(TWO)
    healthy(world)
    failure = condition("ReplicaFailure", "True", "FailedCreate", message)
    deployment(world, 2, conditions=(failure,), availableReplicas=0)
    workload = found(judge(world), "WorkloadReady")
    assert ("False", reason) == (workload.status, workload.reason)
    assert "pods can't be created: pod is forbidden:" in workload.message
    assert "abcde" not in workload.message


UNSCHEDULABLE = {
    "conditions": [
        condition(
            "PodScheduled",
            "False",
            "Unschedulable",
            "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
        )
    ]
}
CRASHED = {"terminated": {"exitCode": 3, "reason": "Error"}}


@pytest.mark.parametrize(
    ("reason", "words", "status"),
    [
        ("Unschedulable", "3 Insufficient nvidia.com/gpu", UNSCHEDULABLE),
        (
            "ImagePullBackOff",
            "not found",
            container(waiting={"reason": "ErrImagePull", "message": "x: not found"}),
        ),
        (
            "ImagePullBackOff",
            "can't be pulled: x: not found",
            container(
                waiting={
                    "reason": "ImagePullBackOff",
                    "message": 'Back-off pulling image "x": ErrImagePull: x: not found',
                }
            ),
        ),
        (
            "ImagePullBackOff",
            "InvalidImageName",
            container(waiting={"reason": "InvalidImageName"}),
        ),
        (
            "CreateContainerError",
            'secret "hub" not found',
            container(waiting={"reason": "CreateContainerConfigError", "message": 'secret "hub" not found'}),
        ),
        (
            "CrashLoopBackOff",
            "exit code 3 (Error)",
            container(
                waiting={"reason": "CrashLoopBackOff", "message": "back-off 20s restarting failed container"},
                lastState=CRASHED,
                restartCount=1,
            ),
        ),
        ("CrashLoopBackOff", "--previous", container(running={}, lastState=CRASHED, restartCount=2)),
        (
            "CrashLoopBackOff",
            "exit code 0 (Completed)",
            container(
                waiting={"reason": "CrashLoopBackOff"},
                lastState={"terminated": {"exitCode": 0, "reason": "Completed"}},
            ),
        ),
        (
            "OOMKilled",
            "memory limit",
            container(
                waiting={"reason": "CrashLoopBackOff"},
                lastState={"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
            ),
        ),
        ("OOMKilled", "memory limit", container(terminated={"exitCode": 137, "reason": "OOMKilled"})),
        (
            "Progressing",
            "0 of 2 replicas are up to date",
            container(running={}, lastState=CRASHED, restartCount=1),
        ),
        ("Progressing", "0 of 2 replicas are up to date", container(waiting={"reason": "ContainerCreating"})),
    ],
)
def test_why_pods_are_not_ready(reason: str, words: str, status: dict[str, Any]) -> None:
    """The reason is the pod's, and the message names the pod and what to do or who said what."""
    world = World(TWO)
    healthy(world)
    deployment(world, 2, updatedReplicas=0, availableReplicas=0, readyReplicas=0)
    pod(world, "echo-1", status)
    workload = found(judge(world), "WorkloadReady")
    assert ("False", reason) == (workload.status, workload.reason)
    assert words in workload.message


def test_the_message_does_not_move_while_a_pull_is_retried() -> None:
    """The kubelet goes back and forth between two wordings; the status has one (facts 1.5)."""
    world = World(TWO)
    healthy(world)
    deployment(world, 2, updatedReplicas=0, availableReplicas=0)
    wordings = [
        {"reason": "ErrImagePull", "message": "dial tcp 10.0.0.1:41532->10.0.0.9:443: i/o timeout"},
        {
            "reason": "ImagePullBackOff",
            "message": 'Back-off pulling image "x": ErrImagePull: dial tcp 10.0.0.1:50124->10.0.0.9:443: '
            "i/o timeout",
        },
    ]
    statuses = []
    for waiting in wordings:
        pod(world, "echo-1", container(waiting=waiting))
        statuses.append(judge(world))
    assert statuses[0] == statuses[1]


def test_a_rollout_that_finds_no_node_is_blocked_by_the_pods_it_replaces() -> None:
    """The former pods hold what the new ones need; the scheduler's words tell what (LLMKube#192)."""
    world = World(TWO)
    healthy(world)
    deployment(world, 2, replicas=3, updatedReplicas=1)
    ready_pod(world, "echo-old")
    pod(world, "echo-new", UNSCHEDULABLE)
    workload = found(judge(world), "WorkloadReady")
    assert ("False", "RolloutBlocked") == (workload.status, workload.reason)
    assert "3 Insufficient nvidia.com/gpu" in workload.message


def test_troubles_of_former_pods_are_no_news() -> None:
    """Only the newest template, and only pods that are neither finished nor leaving, are diagnosed."""
    world = World(TWO)
    healthy(world)
    deployment(world, 2, updatedReplicas=1, availableReplicas=0)
    crash = container(waiting={"reason": "CrashLoopBackOff"}, lastState=CRASHED)
    pod(world, "echo-old", crash, template="old", created="2025-01-01T00:00:00Z")
    pod(world, "echo-evicted", {"phase": "Failed", "reason": "Evicted"}, created="2027-01-01T00:00:00Z")
    pod(world, "echo-new", container(waiting={"reason": "ContainerCreating"}))
    assert "False/Progressing" == verdict(world)


def test_the_worst_pod_speaks_and_among_equals_the_first() -> None:
    """Which pod is quoted does not depend on the order in which pods are listed."""
    world = World(TWO)
    healthy(world)
    deployment(world, 2, updatedReplicas=2, availableReplicas=0)
    crash = container(waiting={"reason": "CrashLoopBackOff"}, lastState=CRASHED)
    pod(world, "echo-a", UNSCHEDULABLE)
    pod(world, "echo-c", crash)
    pod(world, "echo-b", crash)
    workload = found(judge(world), "WorkloadReady")
    assert "CrashLoopBackOff" == workload.reason
    assert "of pod echo-b keeps ending" in workload.message


def test_a_rollout_out_of_time_is_stalled() -> None:
    """Past its deadline the rollout counts as failed, as kubectl rollout status and kstatus say."""
    world = World(TWO)
    healthy(world)
    late = condition("Progressing", "False", "ProgressDeadlineExceeded", 'ReplicaSet "echo-1" has timed out.')
    deployment(world, 2, conditions=(late,), availableReplicas=1)
    status = judge(world)
    assert "ProgressDeadlineExceeded" == found(status, "WorkloadReady").reason
    assert "ProgressDeadlineExceeded" == found(status, "Stalled").reason


@pytest.mark.parametrize(
    ("expected", "state"),
    [("False/Forbidden", State.FORBIDDEN), ("Unknown/Unknown", State.SYNCING)],
)
def test_a_store_that_cannot_be_read(expected: str, state: State) -> None:
    """An unreadable kind is told with the store's words; nothing is concluded from its emptiness."""
    world = World(TWO)
    healthy(world)
    world.look()
    world.stores[DEPLOYMENT].feed().mark(state, 'User "sa" cannot list deployments')
    observed = world.reconciler.observe(KEY, NOW)
    assert observed is not None
    workload = found(world.reconciler.status(observed, {}), "WorkloadReady")
    assert expected == f"{workload.status}/{workload.reason}"
    assert 'User "sa" cannot list deployments' == workload.message
    assert () == world.reconciler.plan(observed).actions
