"""Why pods are not ready: the most telling reason among the pods of the newest template.

Judged from container states alone, so that it does not flicker while the kubelet goes round in its back-off:
a container that ended badly and runs again counts as crashing until it is ready.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from modelfleet.api.meta import WorkloadReason
from modelfleet.kube.objects import Item
from modelfleet.reconcilers.inference.status.wording import steady
from modelfleet.reconcilers.inference.views import ContainerState, PodView

_CRASHES = 2
"""Restarts from which a running but unready container counts as crash-looping; one may be bad luck."""
_WAITING = {
    **dict.fromkeys(
        (
            "ErrImagePull",
            "ImagePullBackOff",
            "InvalidImageName",
            "ErrImageNeverPull",
            "ImageInspectError",
            "RegistryUnavailable",
            "SignatureValidationFailed",
        ),
        (WorkloadReason.IMAGE_PULL_BACK_OFF, "has an image that can't be pulled"),
    ),
    **dict.fromkeys(
        ("CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CreatePodSandboxError"),
        (WorkloadReason.CREATE_CONTAINER_ERROR, "can't be created"),
    ),
}
"""Waiting reasons of the kubelet (pkg/kubelet/images, kuberuntime), and what they mean."""
_SEVERITY = (
    WorkloadReason.OOM_KILLED,
    WorkloadReason.CRASH_LOOP_BACK_OFF,
    WorkloadReason.CREATE_CONTAINER_ERROR,
    WorkloadReason.IMAGE_PULL_BACK_OFF,
    WorkloadReason.UNSCHEDULABLE,
)
"""The reason told when pods differ: what the user can act on first."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why one pod is not ready."""

    reason: WorkloadReason
    message: str


def diagnose(pods: Iterable[Item[PodView]]) -> Diagnosis | None:
    """The most telling reason; None when nothing is wrong but time."""
    found = [
        (diagnosis, pod.meta.name)
        for pod in _newest_template(pods)
        if not pod.view.ready and (diagnosis := _of_pod(pod)) is not None
    ]
    if not found:
        return None
    return min(found, key=lambda entry: (_SEVERITY.index(entry[0].reason), entry[1]))[0]


def _newest_template(pods: Iterable[Item[PodView]]) -> list[Item[PodView]]:
    """Pods of the template that was used last; finished and leaving ones are no news."""
    alive = [pod for pod in pods if not pod.meta.deleting and pod.view.phase not in ("Failed", "Succeeded")]
    if not alive:
        return []
    newest = max(alive, key=lambda pod: (pod.meta.created, pod.meta.name)).view.template_hash
    return [pod for pod in alive if pod.view.template_hash == newest]


def _of_pod(pod: Item[PodView]) -> Diagnosis | None:
    if pod.view.unschedulable:
        message = f"no node fits pod {pod.meta.name}: {pod.view.unschedulable}"
        return Diagnosis(WorkloadReason.UNSCHEDULABLE, message)
    return next(
        (found for state in pod.view.containers if (found := _of_container(pod, state)) is not None), None
    )


def _of_container(pod: Item[PodView], state: ContainerState) -> Diagnosis | None:
    if state.ready:
        return None
    what = f'{"init container" if state.init else "container"} "{state.name}" of pod {pod.meta.name}'
    if state.waiting in _WAITING:
        reason, meaning = _WAITING[state.waiting]
        return Diagnosis(reason, f"{what} {meaning}: {steady(state.waiting_message) or state.waiting}")
    if state.ended == "OOMKilled":
        remedy = "raise its memory limit or make it use less"
        return Diagnosis(
            WorkloadReason.OOM_KILLED, f"{what} was killed for exceeding its memory limit: {remedy}"
        )
    backing_off = state.waiting == "CrashLoopBackOff"
    if backing_off or (state.exit_code and state.restarts >= _CRASHES):
        code = f"exit code {state.exit_code or 0} ({state.ended or 'unknown'})"
        logs = f"kubectl logs -n {pod.meta.namespace} {pod.meta.name} -c {state.name} --previous"
        return Diagnosis(WorkloadReason.CRASH_LOOP_BACK_OFF, f"{what} keeps ending with {code}: see {logs}")
    return None
