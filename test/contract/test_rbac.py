"""The shipped permissions are enough, and no more than that (architecture.md section 5, promise 6)."""

import pytest

from test.support.cluster import Cluster, Kubectl, KubectlError
from test.support.fleet import USER, Fleet
from test.support.kinds import CHILDREN, INFERENCE_SERVICE
from test.support.samples import IMAGE, everything, settled
from test.support.waiting import wait_for
from test.support.world import World

pytestmark = [pytest.mark.contract, pytest.mark.timeout(120)]

NEVER = [
    (verb, resource)
    for resource in (
        "secrets",
        "configmaps",
        "serviceaccounts/token",
        "pods/exec",
        "roles",
        "clusterrolebindings",
    )
    for verb in ("get", "list", "watch", "create", "update", "patch", "delete")
] + [
    ("delete", "inferenceservices.modelfleet.dev"),
    ("delete", "namespaces"),
    ("create", "pods"),
    ("patch", "nodes"),
]


@pytest.fixture
def cluster(control_plane_full: Cluster) -> Cluster:
    """All optional kinds are installed."""
    return control_plane_full


def allowed(kubectl: Kubectl, verb: str, resource: str) -> bool:
    """What `kubectl auth can-i` says about the controller's account."""
    try:
        return kubectl("auth", "can-i", verb, resource, f"--as={USER}", "--all-namespaces").strip() == "yes"
    except KubectlError:
        return False


async def test_shipped_permissions_are_enough(api: World, fleet: Fleet, namespace: str) -> None:
    """A whole life under the shipped ServiceAccount: not one request is refused."""
    mark = fleet.audit.mark()
    await fleet.start()
    await api.create(INFERENCE_SERVICE, everything(namespace, "m"))

    async def complete() -> bool:
        children = [await api.find(kind, namespace, "m") for kind in CHILDREN]
        return all(children) and settled(await api.find(INFERENCE_SERVICE, namespace, "m"))

    await wait_for(complete, 30)
    bare = {"scaling": None, "route": None, "rollout": None, "container": {"image": f"{IMAGE}-next"}}
    await api.merge(INFERENCE_SERVICE, namespace, "m", {"spec": bare})

    async def reduced() -> bool:
        return [] == [kind for kind in CHILDREN[2:] if await api.find(kind, namespace, "m")]

    await wait_for(reduced, 30, "children that are no longer wanted are deleted")
    await fleet.until_quiet(1.0)
    asked = fleet.seen(mark)
    assert [] == [str(e) for e in asked if e.code in {401, 403}]
    assert [] == [str(e) for e in asked if e.resource in {"secrets", "configmaps"}]
    assert {"create", "patch", "delete", "watch"} <= {e.verb for e in asked}, "the witness saw too little"


async def test_shipped_permissions_are_not_more(kubectl: Kubectl, fleet: Fleet) -> None:
    """The account can't read a Secret, and nothing else that would let it become more than it is."""
    assert allowed(kubectl, "watch", "inferenceservices.modelfleet.dev"), "the question itself works"
    assert [] == [(verb, resource) for verb, resource in NEVER if allowed(kubectl, verb, resource)]
