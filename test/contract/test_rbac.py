"""The shipped permissions are enough, and no more than that (architecture.md section 5, promise 6)."""

import pytest

from test.support.cluster import Cluster, Kubectl, KubectlError
from test.support.fleet import ELECTED, SYSTEM, USER, Fleet
from test.support.kinds import CHILDREN, INFERENCE_SERVICE
from test.support.samples import IMAGE, everything, settled
from test.support.waiting import wait_for
from test.support.world import World

pytestmark = [pytest.mark.contract, pytest.mark.timeout(120)]

GROUPS = ["system:serviceaccounts", f"system:serviceaccounts:{SYSTEM}", "system:authenticated"]
ALL_VERBS = ("get", "list", "watch", "create", "update", "patch", "delete")
FORBIDDEN = {
    "secrets": ALL_VERBS,
    "configmaps": ALL_VERBS,
    "serviceaccounts/token": ("create",),
    "pods/exec": ("get", "create"),
    "pods": ("create", "update", "patch", "delete"),
    "nodes": ALL_VERBS,
    "namespaces": ALL_VERBS,
    "clusterroles.rbac.authorization.k8s.io": ALL_VERBS,
    "clusterrolebindings.rbac.authorization.k8s.io": ALL_VERBS,
    "customresourcedefinitions.apiextensions.k8s.io": ("create", "update", "patch", "delete"),
    "inferenceservices.modelfleet.dev": ("create", "update", "patch", "delete"),
}
"""What would let the controller read secrets, become more than it is, or change what users write."""


@pytest.fixture
def cluster(control_plane_full: Cluster) -> Cluster:
    """All optional kinds are installed."""
    return control_plane_full


async def allowed(api: World, verb: str, resource: str) -> bool:
    """What the API server's authorizer says about the controller's account, in every namespace."""
    path, _, subresource = resource.partition("/")
    plural, _, group = path.partition(".")
    attributes = {"verb": verb, "resource": plural, "group": group, "subresource": subresource}
    review = {"spec": {"user": USER, "groups": GROUPS, "resourceAttributes": attributes}}
    answer = await api.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return bool(answer["status"]["allowed"])


async def test_shipped_permissions_are_enough(api: World, fleet: Fleet, namespace: str) -> None:
    """A whole life under the shipped ServiceAccount: not one request is refused."""
    mark = fleet.audit.mark()
    await fleet.start(settings=ELECTED)
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


@pytest.mark.usefixtures("fleet")
async def test_shipped_permissions_are_not_more(api: World, kubectl: Kubectl) -> None:
    """The account can't read a Secret, nor anything else that would let it become more than it is."""
    assert await allowed(api, "watch", "inferenceservices.modelfleet.dev"), "the question itself works"
    asked = [(verb, resource) for resource, verbs in FORBIDDEN.items() for verb in verbs]
    assert [] == [(verb, resource) for verb, resource in asked if await allowed(api, verb, resource)]
    with pytest.raises(KubectlError, match="no"):
        kubectl("auth", "can-i", "get", "secrets", f"--as={USER}", "--all-namespaces")
