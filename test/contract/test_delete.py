"""Deletion is the garbage collector's work, done by the real one; a name used again is a new object."""

import pytest

from test.support.cluster import Cluster
from test.support.eventually import Eventually
from test.support.fleet import Fleet
from test.support.kinds import CHILDREN, DEPLOYMENT, INFERENCE_SERVICE
from test.support.samples import everything, service
from test.support.waiting import holds_for, wait_for
from test.support.world import World

pytestmark = [pytest.mark.contract, pytest.mark.timeout(180)]


@pytest.fixture
def cluster(control_plane_full: Cluster) -> Cluster:
    """With the controller-manager, whose garbage collector does the work."""
    return control_plane_full


async def owners(api: World, namespace: str) -> dict[str, str]:
    """Kind of each child there is -> UID of its owner, "" for an orphan."""
    return {
        kind.kind: next((ref["uid"] for ref in it["metadata"].get("ownerReferences", ())), "")
        for kind in CHILDREN
        for it in await api.list(kind, namespace)
    }


async def owners_become(api: World, namespace: str, expected: dict[str, str]) -> None:
    """Wait until exactly these children exist and belong to these incarnations."""

    async def are() -> bool:
        assert expected == await owners(api, namespace)
        return True

    await wait_for(are, 60)


def all_of(uid: str) -> dict[str, str]:
    """All five children, owned by one incarnation."""
    return {kind.kind: uid for kind in CHILDREN}


async def test_children_are_garbage_collected(api: World, fleet: Fleet, namespace: str) -> None:
    """Deleting the object is enough: all children go, and the controller brings none back."""
    await fleet.start()
    created = await api.create(INFERENCE_SERVICE, everything(namespace, "m"))
    await owners_become(api, namespace, all_of(created["metadata"]["uid"]))
    await fleet.until_quiet(1.0)
    await api.delete(INFERENCE_SERVICE, namespace, "m")
    await owners_become(api, namespace, {})

    async def none() -> bool:
        return await owners(api, namespace) == {}

    await holds_for(none, 2.0, "no child comes back")


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
async def test_recreated_under_the_same_name(
    api: World, fleet: Fleet, eventually: Eventually, namespace: str, propagation: str
) -> None:
    """Delete and create at once, three times: the new incarnation gets children of its own in the end."""
    await fleet.start()
    created = await api.create(INFERENCE_SERVICE, everything(namespace, "m"))
    await owners_become(api, namespace, all_of(created["metadata"]["uid"]))
    for _ in range(3):
        await api.delete(INFERENCE_SERVICE, namespace, "m", propagation=propagation)
        await eventually.gone(INFERENCE_SERVICE, "m")
        created = await api.create(INFERENCE_SERVICE, everything(namespace, "m"))
    await owners_become(api, namespace, all_of(created["metadata"]["uid"]))
    await eventually.silent("m", "Stalled")


async def test_orphans_are_not_adopted(
    api: World, fleet: Fleet, eventually: Eventually, namespace: str
) -> None:
    """`kubectl delete --cascade=orphan` gives children away; the next object of that name can't take them."""
    await fleet.start()
    created = await api.create(INFERENCE_SERVICE, service(namespace, "m"))
    uid = created["metadata"]["uid"]
    await owners_become(api, namespace, {"Deployment": uid, "Service": uid})
    await api.delete(INFERENCE_SERVICE, namespace, "m", propagation="Orphan")
    await owners_become(api, namespace, {"Deployment": "", "Service": ""})
    await eventually.gone(INFERENCE_SERVICE, "m")

    before = await api.get(DEPLOYMENT, namespace, "m")
    await api.create(INFERENCE_SERVICE, service(namespace, "m", container={"image": "example.com/new:1"}))
    await eventually.says("m", "WorkloadReady", "False", "NameConflict")
    assert before["spec"] == (await api.get(DEPLOYMENT, namespace, "m"))["spec"]
