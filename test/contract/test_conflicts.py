"""Objects in the way: foreign ones stay untouched, refusals are told and not repeated (rules A8, A9)."""

import asyncio
import json
from collections.abc import Iterator

import pytest

from modelfleet.plan import Api
from test.support.cluster import Cluster
from test.support.controlplanes import Running, install_ours
from test.support.fleet import Fleet
from test.support.kinds import (
    CHILDREN,
    CRD,
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    HTTP_ROUTE,
    INFERENCE_SERVICE,
    SCALED_OBJECT,
    SERVICE,
    path_of,
)
from test.support.samples import GATEWAY, IMAGE, condition, everything, service, settled, verdict
from test.support.waiting import wait_for
from test.support.world import Object, World

pytestmark = [pytest.mark.contract, pytest.mark.timeout(180)]

POD = {"metadata": {"labels": {"app": "foreign"}}, "spec": {"containers": [{"name": "c", "image": IMAGE}]}}
FOREIGN: dict[Api, Object] = {
    DEPLOYMENT: {"selector": {"matchLabels": {"app": "foreign"}}, "replicas": 0, "template": POD},
    SERVICE: {"selector": {"app": "foreign"}, "ports": [{"port": 1234}]},
    SCALED_OBJECT: {"scaleTargetRef": {"name": "foreign"}, "triggers": []},
    HTTP_ROUTE: {"parentRefs": [GATEWAY], "hostnames": ["foreign.example.com"]},
    DISRUPTION_BUDGET: {"selector": {"matchLabels": {"app": "foreign"}}, "minAvailable": 0},
}


@pytest.fixture
def cluster(control_plane_full: Cluster) -> Cluster:
    """All child kinds are installed."""
    return control_plane_full


async def stalled(api: World, namespace: str, name: str, reason: str) -> Object:
    """Wait until an object says that only a person can help, and why."""

    async def said() -> bool:
        it = await api.find(INFERENCE_SERVICE, namespace, name)
        assert ("True", reason) == verdict(it, "Stalled"), f"{name}: {(it or {}).get('status')}"
        return True

    await wait_for(said, 30)
    return await api.get(INFERENCE_SERVICE, namespace, name)


async def test_foreign_objects_stay_untouched(api: World, fleet: Fleet, namespace: str) -> None:
    """A foreign object under a child's name, of each kind: NameConflict, not a byte changed, healed by its removal."""
    names = {kind: f"on-{kind.plural}" for kind in CHILDREN}
    before = {
        kind: await api.create(
            kind, {"metadata": {"name": name, "namespace": namespace}, "spec": FOREIGN[kind]}
        )
        for kind, name in names.items()
    }
    controller = await fleet.start()
    await asyncio.gather(
        *(api.create(INFERENCE_SERVICE, everything(namespace, name)) for name in names.values())
    )
    for kind, name in names.items():
        message = condition(await stalled(api, namespace, name, "NameConflict"), "Stalled")["message"]
        assert f"{kind.kind} {namespace}/{name}" in message, message
    await fleet.until_quiet(1.0)
    for kind, name in names.items():
        now = await api.get(kind, namespace, name)
        assert fingerprint(before[kind]) == fingerprint(now), kind
        others = [other for other in CHILDREN if other not in {kind, *dependent(kind)}]
        assert [] == [str(o) for o in others if await api.find(o, namespace, name) is None], (
            "others are independent"
        )

    for kind, name in names.items():
        await api.delete(kind, namespace, name)

    async def healed() -> bool:
        for kind, name in names.items():
            owner = await api.get(INFERENCE_SERVICE, namespace, name)
            child = await api.find(kind, namespace, name)
            assert child is not None, f"{kind} {name} is missing"
            assert owner["metadata"]["uid"] == child["metadata"]["ownerReferences"][0]["uid"]
            assert {} == condition(owner, "Stalled")
        return True

    await wait_for(healed, 90, controller.tail)


def fingerprint(it: Object) -> str:
    """Everything the API server stores, but what its own controllers write."""
    own = {k: v for k, v in it.items() if k != "status"}
    meta = {
        k: v
        for k, v in it["metadata"].items()
        if k not in {"resourceVersion", "managedFields", "annotations"}
    }
    managers = [entry for entry in it["metadata"]["managedFields"] if entry.get("subresource") != "status"]
    ours = [m for m in managers if m["manager"] != "kube-controller-manager"]
    return json.dumps({**own, "metadata": {**meta, "managedFields": ours}}, sort_keys=True)


def dependent(kind: Api) -> tuple[Api, ...]:
    """Children that wait for this one."""
    return {DEPLOYMENT: (SCALED_OBJECT,), SERVICE: (HTTP_ROUTE,)}.get(kind, ())


async def test_lost_owner_reference_is_a_conflict(api: World, fleet: Fleet, namespace: str) -> None:
    """A child whose owner reference somebody removed is nobody's: told, untouched, and taken back when returned."""
    await fleet.start()
    created = await api.create(INFERENCE_SERVICE, service(namespace, "m"))

    async def born() -> bool:
        return await api.find(DEPLOYMENT, namespace, "m") is not None

    await wait_for(born, 30)
    await fleet.until_quiet(1.0)
    owner = (await api.get(DEPLOYMENT, namespace, "m"))["metadata"]["ownerReferences"]
    await api.merge(DEPLOYMENT, namespace, "m", {"metadata": {"ownerReferences": None}})
    await stalled(api, namespace, "m", "NameConflict")
    assert "ownerReferences" not in (await api.get(DEPLOYMENT, namespace, "m"))["metadata"]

    await api.merge(DEPLOYMENT, namespace, "m", {"metadata": {"ownerReferences": owner}})

    async def healed() -> bool:
        return {} == condition(await api.find(INFERENCE_SERVICE, namespace, "m"), "Stalled")

    await wait_for(healed, 60)
    assert created["metadata"]["uid"] == owner[0]["uid"]


async def test_immutable_refusal_is_final(api: World, fleet: Fleet, namespace: str) -> None:
    """The API server refuses an immutable field: told once, not tried again until something changes."""
    created = await api.create(INFERENCE_SERVICE, service(namespace, "m"))
    labels = {"app.kubernetes.io/managed-by": "modelfleet", "modelfleet.dev/inferenceservice": "m"}
    reference = {
        "apiVersion": "modelfleet.dev/v1alpha1",
        "kind": "InferenceService",
        "name": "m",
        "uid": created["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    meta = {"name": "m", "namespace": namespace, "labels": labels, "ownerReferences": [reference]}
    await api.create(DEPLOYMENT, {"metadata": meta, "spec": FOREIGN[DEPLOYMENT]})
    mark = fleet.audit.mark()
    controller = await fleet.start()
    message = condition(await stalled(api, namespace, "m", "ApplyFailed"), "Stalled")["message"]
    assert "Immutable" in message, message
    assert "spec.selector" in message, message
    await fleet.until_quiet(5.0)
    tried = [e for e in fleet.writes(mark, controller) if e.resource == "deployments.apps"]
    assert 1 <= len(tried) <= 2, tried
    assert await api.find(SERVICE, namespace, "m") is not None, "the Service does not depend on it"

    await api.delete(DEPLOYMENT, namespace, "m")

    async def healed() -> bool:
        return {} == condition(await api.find(INFERENCE_SERVICE, namespace, "m"), "Stalled")

    await wait_for(healed, 30, controller.tail)


class TestBrokenObject:
    """An object that today's CRD would refuse, stored under an older, laxer one."""

    @pytest.fixture
    def cluster(self, control_plane_private: Running) -> Iterator[Cluster]:
        """A control plane whose CRD may be swapped."""
        it = control_plane_private.cluster
        yield it
        install_ours(it)

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
        self, api: World, cluster: Cluster, fleet: Fleet, namespace: str
    ) -> None:
        """Among good objects, broken ones say what is wrong, and nothing else suffers."""
        broken = {
            "typo": {"container": {"image": 7}},
            "empty": {},
            "scaler": service(namespace, "x", scaling={"triggers": [{"type": "cron", "metadata": {}}]})[
                "spec"
            ],
        }
        self.loosen(cluster)

        async def stored() -> bool:
            for name, spec in broken.items():
                body = {"metadata": {"name": name, "namespace": namespace}, "spec": spec}
                await api.apply(INFERENCE_SERVICE, body)
            return True

        await wait_for(stored, 20, "the lax CRD is served")
        install_ours(cluster)
        good = ["good-1", "good-2"]
        for name in good:
            await api.create(INFERENCE_SERVICE, service(namespace, name))
        mark = fleet.audit.mark()
        controller = await fleet.start()
        for name in broken:
            it = await stalled(api, namespace, name, "InvalidSpec")
            assert "spec" in condition(it, "Ready")["message"]

        async def good_ones_work() -> bool:
            for name in good:
                it = await api.get(INFERENCE_SERVICE, namespace, name)
                assert settled(it)
                assert {} == condition(it, "Stalled")
                assert await api.find(DEPLOYMENT, namespace, name)
            return True

        await wait_for(good_ones_work, 30, controller.tail)
        await fleet.until_quiet(2.0)
        touched = {e.name for e in fleet.writes(mark) if e.resource == "deployments.apps"}
        assert set(good) == touched
