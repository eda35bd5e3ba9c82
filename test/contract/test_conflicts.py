"""Objects in the way: foreign ones stay untouched, refusals are told and not repeated (rules A8, A9)."""

import json
from collections.abc import Iterator

import pytest

from modelfleet.plan import Api
from test.support.cluster import Cluster
from test.support.controlplanes import Running
from test.support.crds import install, our_crds
from test.support.eventually import Eventually
from test.support.fleet import Fleet
from test.support.kinds import (
    CHILDREN,
    CRD,
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    EVENT,
    HTTP_ROUTE,
    INFERENCE_SERVICE,
    SCALED_OBJECT,
    SERVICE,
    path_of,
)
from test.support.samples import CRON, GATEWAY, IMAGE, everything, service
from test.support.waiting import wait_for
from test.support.world import Object, World

pytestmark = [pytest.mark.contract, pytest.mark.timeout(180)]

POD = {"metadata": {"labels": {"app": "foreign"}}, "spec": {"containers": [{"name": "c", "image": IMAGE}]}}
FOREIGN: dict[Api, Object] = {
    DEPLOYMENT: {"selector": {"matchLabels": {"app": "foreign"}}, "replicas": 0, "template": POD},
    SERVICE: {"selector": {"app": "foreign"}, "ports": [{"port": 1234}]},
    SCALED_OBJECT: {"scaleTargetRef": {"name": "foreign"}, "triggers": [CRON]},
    HTTP_ROUTE: {"parentRefs": [GATEWAY], "hostnames": ["foreign.example.com"]},
    DISRUPTION_BUDGET: {"selector": {"matchLabels": {"app": "foreign"}}, "minAvailable": 0},
}


@pytest.fixture
def cluster(control_plane_full: Cluster) -> Cluster:
    """All child kinds are installed."""
    return control_plane_full


async def test_foreign_objects_stay_untouched(
    api: World, fleet: Fleet, eventually: Eventually, namespace: str
) -> None:
    """A foreign object under a child's name, of each kind: told and left as it is; without it an edit heals.

    That it heals without an edit too, within a minute, is part of test_faults.py, where minutes pass anyway.
    """
    names = {kind: f"on-{kind.plural}" for kind in CHILDREN}
    before = {}
    for kind, name in names.items():
        meta = {"name": name, "namespace": namespace}
        before[kind] = await api.create(kind, {"metadata": meta, "spec": FOREIGN[kind]})
    await fleet.start()
    for name in names.values():
        await api.create(INFERENCE_SERVICE, everything(namespace, name))
    for kind, name in names.items():
        message = await eventually.says(name, "Stalled", "True", "NameConflict")
        assert f"{kind.kind} {namespace}/{name}" in message, message
    await fleet.until_quiet(1.0)
    for kind, name in names.items():
        now = await api.get(kind, namespace, name)
        assert fingerprint(before[kind]) == fingerprint(now), kind
        for other in CHILDREN:
            if other not in {kind, *dependents(kind)}:
                assert await api.find(other, namespace, name), f"{other} does not depend on {kind}"

    for kind, name in names.items():
        await api.delete(kind, namespace, name)
        await eventually.gone(kind, name)
        await api.merge(
            INFERENCE_SERVICE, namespace, name, {"spec": {"container": {"image": f"{IMAGE}-next"}}}
        )
    for kind, name in names.items():
        owner = await api.get(INFERENCE_SERVICE, namespace, name)
        await eventually.holds(kind, name, owner["metadata"]["uid"], owner_uid)
        await eventually.silent(name, "Stalled")


def fingerprint(it: Object) -> str:
    """Everything the API server stores, but for what Kubernetes' own controllers write."""
    noise = {"resourceVersion", "generation", "managedFields", "annotations"}
    meta = {key: value for key, value in it["metadata"].items() if key not in noise}
    owned = [m for m in it["metadata"]["managedFields"] if m["manager"] != "kube-controller-manager"]
    return json.dumps([it["spec"], meta, owned], sort_keys=True)


def dependents(kind: Api) -> tuple[Api, ...]:
    """Children that wait for this one."""
    return {DEPLOYMENT: (SCALED_OBJECT,), SERVICE: (HTTP_ROUTE,)}.get(kind, ())


def owner_uid(it: Object) -> str:
    """UID of the owner, "" for nobody's."""
    return next((str(ref["uid"]) for ref in it["metadata"].get("ownerReferences", ())), "")


async def test_lost_owner_reference_is_a_conflict(
    api: World, fleet: Fleet, eventually: Eventually, namespace: str
) -> None:
    """A child whose owner reference somebody removed is foreign: told, untouched, welcome back."""
    await fleet.start()
    await api.create(INFERENCE_SERVICE, service(namespace, "m"))
    owner = (await eventually.exists(DEPLOYMENT, "m"))["metadata"]["ownerReferences"]
    await fleet.until_quiet(1.0)
    await api.merge(DEPLOYMENT, namespace, "m", {"metadata": {"ownerReferences": None}})
    await eventually.says("m", "Stalled", "True", "NameConflict")
    assert "" == owner_uid(await api.get(DEPLOYMENT, namespace, "m"))
    await api.merge(DEPLOYMENT, namespace, "m", {"metadata": {"ownerReferences": owner}})
    await eventually.silent("m", "Stalled")


async def test_immutable_refusal_is_final(
    api: World, fleet: Fleet, eventually: Eventually, namespace: str
) -> None:
    """The API server refuses an immutable field: told once, not tried again until something changes."""
    created = await api.create(INFERENCE_SERVICE, service(namespace, "m"))
    labels = {"app.kubernetes.io/managed-by": "modelfleet", "modelfleet.dev/inferenceservice": "m"}
    reference = {
        "apiVersion": INFERENCE_SERVICE.api_version,
        "kind": INFERENCE_SERVICE.kind,
        "name": "m",
        "uid": created["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    meta = {"name": "m", "namespace": namespace, "labels": labels, "ownerReferences": [reference]}
    await api.create(DEPLOYMENT, {"metadata": meta, "spec": FOREIGN[DEPLOYMENT]})
    mark = fleet.audit.mark()
    controller = await fleet.start()
    message = await eventually.says("m", "Stalled", "True", "ApplyFailed")
    assert "Immutable" in message, message
    assert "spec.selector" in message, message
    await fleet.until_quiet(5.0)
    tried = [e for e in fleet.writes(mark, controller) if e.resource == DEPLOYMENT.qualified]
    assert 1 <= len(tried) <= 2, tried  # the second one after the Deployment's own controller has touched it
    assert await api.find(SERVICE, namespace, "m"), "the Service does not depend on it"
    await api.delete(DEPLOYMENT, namespace, "m")
    await eventually.silent("m", "Stalled")


class TestBrokenObject:
    """An object that today's CRD would refuse, stored under an older, laxer one."""

    @pytest.fixture
    def cluster(self, control_plane_private: Running) -> Iterator[Cluster]:
        """A control plane whose CRD may be swapped."""
        it = control_plane_private.cluster
        yield it
        install(it, our_crds())

    @staticmethod
    def loosen(cluster: Cluster) -> None:
        """Let everything pass, as a CRD without a schema would."""
        crd = cluster.request("GET", path_of(CRD, name=INFERENCE_SERVICE.qualified))
        lax = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        for version in crd["spec"]["versions"]:
            version["schema"]["openAPIV3Schema"] = {
                "type": "object",
                "properties": {"spec": lax, "status": lax},
            }
        cluster.request("PUT", path_of(CRD, name=INFERENCE_SERVICE.qualified), crd)

    async def test_only_the_broken_one_is_stalled(
        self, api: World, cluster: Cluster, fleet: Fleet, eventually: Eventually, namespace: str
    ) -> None:
        """Among good objects, broken ones say what is wrong, and nothing else suffers."""
        incomplete: Object = {"scaling": {"minReplicas": 1}}
        impossible = service(namespace, "x", container={"port": 70000})["spec"]
        untyped = {"container": {"image": 7}}
        broken = {"incomplete": incomplete, "impossible": impossible, "untyped": untyped}
        self.loosen(cluster)

        async def stored() -> bool:
            for name, spec in broken.items():
                meta = {"name": name, "namespace": namespace}
                await api.apply(INFERENCE_SERVICE, {"metadata": meta, "spec": spec})
            return True

        await wait_for(stored, 20, "the lax CRD should be served")
        install(cluster, our_crds())
        good = ["good-1", "good-2"]
        for name in good:
            await api.create(INFERENCE_SERVICE, service(namespace, name))
        mark = fleet.audit.mark()
        await fleet.start()
        assert "spec.container" in await eventually.says("incomplete", "Stalled", "True", "InvalidSpec")
        assert "70000" in await eventually.says("impossible", "Stalled", "True", "ApplyFailed")
        for name in good:
            await eventually.exists(DEPLOYMENT, name)
            await eventually.settled(name)
            await eventually.silent(name, "Stalled")
        await fleet.until_quiet(5.0)
        wrote = [e for e in fleet.writes(mark) if e.resource != EVENT.qualified]
        assert set(good) == {e.name for e in wrote if e.resource == DEPLOYMENT.qualified and e.succeeded}
        # The API server lets nobody write the status of an object with a value of another type (500, 422):
        # what is left to promise is that it is not tried for ever.
        assert 1 == len([e for e in wrote if e.name == "untyped"])
