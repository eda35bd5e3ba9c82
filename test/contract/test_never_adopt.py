"""The shipped admission policy: an update by our managers can't take over what is not ours.

The controller checks first and never sends such a request; here it is sent on purpose, as a bug or a race
would. manifests/base/never-adopt.yaml says why the lock is not optional.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from modelfleet.api.meta import MANAGER, REPLICAS_MANAGER
from modelfleet.plan import Api
from test.support.cluster import Cluster
from test.support.controlplanes import Running
from test.support.crds import gateway_crds, install, keda_crds, remove
from test.support.fleet import install_shipped
from test.support.kinds import CHILDREN, DEPLOYMENT, HTTP_ROUTE, SCALED_OBJECT, SERVICE
from test.support.waiting import wait_for
from test.support.world import World, WorldError

pytestmark = [pytest.mark.contract, pytest.mark.timeout(120)]

POD = {
    "metadata": {"labels": {"app": "x"}},
    "spec": {"containers": [{"name": "c", "image": "example.com/c:1"}]},
}
SPECS: dict[Api, dict[str, Any]] = {
    DEPLOYMENT: {"selector": {"matchLabels": {"app": "x"}}, "template": POD},
    SERVICE: {"ports": [{"port": 80, "protocol": "TCP"}]},
    SCALED_OBJECT: {
        "scaleTargetRef": {"name": "x"},
        "triggers": [{"type": "cpu", "metadata": {"value": "1"}}],
    },
    HTTP_ROUTE: {"parentRefs": [{"name": "gateway"}]},
}
POLICY = "modelfleet-never-adopt"
OURS = "modelfleet.dev/v1alpha1"


@pytest.fixture(scope="module")
def prepared(control_plane_private: Running) -> Iterator[Cluster]:
    """With every child's kind, the policy as shipped, and nobody who edits or collects what a test makes."""
    it, crds = control_plane_private.cluster, keda_crds() + gateway_crds()
    install(it, crds)
    install_shipped(it)
    yield it
    remove(it, crds)


@pytest.fixture
def cluster(prepared: Cluster) -> Cluster:
    """The control plane of these tests."""
    return prepared


def child(api: Api, namespace: str, *owner_uids: str, version: str = OURS) -> dict[str, Any]:
    """An object of a child's kind with owners of ours, or of others.

    Without `controller`: two of those are refused by the API server itself, policy or not.
    """
    owners = [
        {"apiVersion": version, "kind": "InferenceService", "name": "m", "uid": uid} for uid in owner_uids
    ]
    metadata = {"name": "m", "namespace": namespace, "ownerReferences": owners}
    return {"metadata": metadata, "spec": SPECS.get(api, {"maxUnavailable": 1})}


async def until_enforced(api: World, namespace: str) -> None:
    """A new policy takes a moment to be in force: wait until it denies what it must."""
    await api.apply(SERVICE, named(child(SERVICE, namespace), "probe"))

    async def denied() -> bool:
        try:
            await api.apply(SERVICE, named(child(SERVICE, namespace), "probe"), manager=MANAGER)
        except WorldError as error:
            return POLICY in str(error)
        return False

    await wait_for(denied)


def named(body: dict[str, Any], name: str) -> dict[str, Any]:
    """The same under another name."""
    return {**body, "metadata": {**body["metadata"], "name": name}}


@pytest.mark.parametrize("kind", CHILDREN, ids=str)
@pytest.mark.parametrize(
    ("owners", "version"),
    [
        ((), OURS),
        (("theirs",), OURS),
        (("ours",), "example.com/v1"),
    ],
    ids=["nobody's", "another of ours", "another group's"],
)
async def test_what_is_not_ours_stays_untouched(
    api: World, namespace: str, kind: Api, owners: tuple[str, ...], version: str
) -> None:
    """Our field manager is refused with the reason users read in conditions; the object stays as it was."""
    await until_enforced(api, namespace)
    before = await api.apply(kind, child(kind, namespace, *owners, version=version), manager="somebody")
    with pytest.raises(WorldError, match="NameConflict: m exists and is not owned") as refusal:
        await api.apply(kind, child(kind, namespace, "ours"), manager=MANAGER)

    assert 403 == refusal.value.code
    after = await api.get(kind, namespace, "m")
    assert before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]


@pytest.mark.parametrize("kind", CHILDREN, ids=str)
async def test_births_and_own_updates_pass(api: World, namespace: str, kind: Api) -> None:
    """What the controller really does is not in the way of the policy."""
    await until_enforced(api, namespace)
    await api.apply(kind, child(kind, namespace, "ours"), manager=MANAGER)
    edited = child(kind, namespace, "ours")
    edited["metadata"]["labels"] = {"edited": "yes"}

    assert {"edited": "yes"} == (await api.apply(kind, edited, manager=MANAGER))["metadata"]["labels"]


async def test_the_second_manager_is_bound_too(api: World, namespace: str) -> None:
    """modelfleet-replicas may not set the replicas of a foreign Deployment."""
    await until_enforced(api, namespace)
    await api.apply(DEPLOYMENT, child(DEPLOYMENT, namespace), manager="somebody")
    replicas = {"metadata": {"name": "m", "namespace": namespace}, "spec": {"replicas": 3}}
    with pytest.raises(WorldError, match=POLICY):
        await api.apply(DEPLOYMENT, replicas, manager=REPLICAS_MANAGER)


async def test_others_are_not_concerned(api: World, namespace: str) -> None:
    """Updates by anybody else are none of the policy's business."""
    await until_enforced(api, namespace)
    await api.apply(SERVICE, child(SERVICE, namespace), manager="somebody")

    edited = await api.apply(SERVICE, child(SERVICE, namespace, "theirs"), manager="somebody")
    assert ["theirs"] == [owner["uid"] for owner in edited["metadata"]["ownerReferences"]]


async def test_the_expressions_type_check(control_plane_full: Cluster) -> None:
    """The controller-manager checks the expressions against the schema of every kind and finds nothing."""
    install_shipped(control_plane_full)
    path = f"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/{POLICY}"

    def checked() -> bool:
        policy = control_plane_full.request("GET", path)
        return bool(policy.get("status", {}).get("observedGeneration") == policy["metadata"]["generation"])

    await wait_for(checked)
    assert {} == control_plane_full.request("GET", path)["status"]["typeChecking"]
