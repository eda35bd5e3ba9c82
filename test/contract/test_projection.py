"""What our managedFields entry gives back, against the server that writes it (rule A13).

A manifest applied and left alone projects to itself, whatever the server defaults around it; what others
change shows exactly when it is ours.
"""

from collections.abc import Awaitable, Callable, Iterator

import pytest

from hack.cluster.controlplane import ControlPlane
from modelfleet.kube.projection import owned, owned_digest, owners_of
from modelfleet.kube.resource import Resource
from modelfleet.kube.store import Store
from modelfleet.plan import Api, Manifest, intent
from test.support.cluster import Cluster
from test.support.crds import gateway_crds, install, keda_crds
from test.support.kinds import DEPLOYMENT, DISRUPTION_BUDGET, HTTP_ROUTE, SCALED_OBJECT, SERVICE, path_of
from test.support.projection_manifests import manifests
from test.support.world import Object, World

pytestmark = pytest.mark.contract

US = "modelfleet-controller"
STRATEGIC = "application/strategic-merge-patch+json"


@pytest.fixture(scope="module")
def addons(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """An API server that knows KEDA's and the Gateway API's types."""
    with ControlPlane(tmp_path_factory.mktemp("addons"), audit=False) as plane:
        cluster = Cluster(plane.kubeconfig, plane.kubectl_binary)
        install(cluster, keda_crds() + gateway_crds())
        yield cluster


@pytest.fixture
def cluster(addons: Cluster) -> Cluster:
    """What `namespace` and `api` of this module work with."""
    return addons


KINDS = (DEPLOYMENT, SERVICE, DISRUPTION_BUDGET, HTTP_ROUTE, SCALED_OBJECT)


async def applied(world: World, namespace: str, api: Api) -> Object:
    """Our manifest, applied by us."""
    return await world.apply(api, manifests(namespace)[api], manager=US)


@pytest.mark.parametrize("kind", KINDS, ids=str)
async def test_a13_what_was_applied_and_left_alone_projects_to_the_manifest(
    kind: Api, api: World, namespace: str
) -> None:
    """Probes, variables, volumes, affinity, ports, routes, triggers: all of it comes back (rule A13)."""
    manifest = manifests(namespace)[kind]
    live = await applied(api, namespace, kind)

    assert intent(manifest) == owned(live, US)
    assert Manifest.of(manifest).digest == owned_digest(live, US)
    assert "" == owned_digest(live, US, "status") == owned_digest(live, "somebody-else")


@pytest.mark.parametrize("kind", KINDS, ids=str)
async def test_a13_applying_again_changes_nothing(kind: Api, api: World, namespace: str) -> None:
    """The manifests of this module hold no value that the server rewrites (rule A2)."""
    first = await applied(api, namespace, kind)
    second = await applied(api, namespace, kind)

    assert first["metadata"]["resourceVersion"] == second["metadata"]["resourceVersion"]


Edit = Callable[[World, str], Awaitable[object]]


def merge(api: Api, patch: Object, subresource: str = "") -> Edit:
    """A JSON merge patch by somebody (operation Update)."""
    return lambda world, namespace: world.merge(api, namespace, "web", patch, subresource)


def strategic(patch: Object) -> Edit:
    """What kubectl edit and kubectl patch send for a Deployment."""
    return lambda world, namespace: world.request(
        "PATCH", path_of(DEPLOYMENT, namespace, "web"), patch, content_type=STRATEGIC
    )


def forced(api: Api, body: Object) -> Edit:
    """A forced apply by another manager."""

    def edit(world: World, namespace: str) -> Awaitable[object]:
        full = {**body, "metadata": {**body.get("metadata", {}), "name": "web", "namespace": namespace}}
        return world.apply(api, full, manager="rival")

    return edit


def pod(**spec: object) -> Object:
    """A patch of the pod template."""
    return {"spec": {"template": {"spec": spec}}}


def server(**fields: object) -> Object:
    """A patch of our container."""
    return pod(containers=[{"name": "server", **fields}])


OWNED: dict[str, tuple[Api, Edit]] = {
    "an edited image": (DEPLOYMENT, strategic(server(image="evil:1"))),
    "an image applied by another manager": (DEPLOYMENT, forced(DEPLOYMENT, server(image="evil:1"))),
    "an edited variable": (DEPLOYMENT, strategic(server(env=[{"name": "ZED", "value": "2"}]))),
    "a deleted variable": (DEPLOYMENT, strategic(server(env=[{"name": "ZED", "$patch": "delete"}]))),
    "a deleted sidecar": (DEPLOYMENT, strategic(pod(containers=[{"name": "sidecar", "$patch": "delete"}]))),
    "a deleted label": (
        DEPLOYMENT,
        merge(DEPLOYMENT, {"metadata": {"labels": {"modelfleet.dev/part": None}}}),
    ),
    "an edited annotation": (
        SERVICE,
        merge(SERVICE, {"metadata": {"annotations": {"example.com/slash": "a/c"}}}),
    ),
    "a deleted owner": (DEPLOYMENT, merge(DEPLOYMENT, {"metadata": {"ownerReferences": None}})),
    "a node selector with one more label": (
        DEPLOYMENT,
        strategic(pod(nodeSelector={"example.com/zone": "a"})),
    ),
    "one more toleration": (
        DEPLOYMENT,
        merge(DEPLOYMENT, pod(tolerations=[{"key": "x", "operator": "Exists"}])),
    ),
    "an edited limit": (DEPLOYMENT, strategic(server(resources={"limits": {"cpu": "3"}}))),
    "an edited probe": (DEPLOYMENT, strategic(server(startupProbe={"failureThreshold": 61}))),
    "an edited volume": (
        DEPLOYMENT,
        strategic(pod(volumes=[{"name": "shm", "emptyDir": {"sizeLimit": "2Gi"}}])),
    ),
    "an edited target port": (
        SERVICE,
        forced(SERVICE, {"spec": {"ports": [{"port": 80, "protocol": "TCP", "targetPort": 81}]}}),
    ),
    "a deleted port": (
        SERVICE,
        merge(SERVICE, {"spec": {"ports": [{"name": "http", "port": 80, "targetPort": "http"}]}}),
    ),
    "an edited selector": (SERVICE, merge(SERVICE, {"spec": {"selector": {"app": "other"}}})),
    "an edited budget": (DISRUPTION_BUDGET, merge(DISRUPTION_BUDGET, {"spec": {"maxUnavailable": 0}})),
    "another host": (HTTP_ROUTE, merge(HTTP_ROUTE, {"spec": {"hostnames": ["web.example.com"]}})),
    "another parent's section": (
        HTTP_ROUTE,
        merge(HTTP_ROUTE, {"spec": {"parentRefs": [{"name": "public", "namespace": "infra"}]}}),
    ),
    "other triggers": (
        SCALED_OBJECT,
        merge(SCALED_OBJECT, {"spec": {"triggers": [{"type": "cpu", "metadata": {"value": "5"}}]}}),
    ),
    "an edited maximum": (SCALED_OBJECT, merge(SCALED_OBJECT, {"spec": {"maxReplicaCount": 40}})),
    "managedFields reset by hand": (DEPLOYMENT, merge(DEPLOYMENT, {"metadata": {"managedFields": [{}]}})),
}


@pytest.mark.parametrize(("kind", "edit"), OWNED.values(), ids=OWNED.keys())
async def test_a13_a_change_of_what_we_own_shows_and_is_put_back(
    kind: Api, edit: Edit, api: World, namespace: str
) -> None:
    """Whoever makes it and however: the digest differs, and one apply makes it equal again (rule A13)."""
    manifest = Manifest.of(manifests(namespace)[kind])
    await applied(api, namespace, kind)
    await edit(api, namespace)

    assert manifest.digest != owned_digest(await api.get(kind, namespace, "web"), US)

    assert manifest.digest == owned_digest(await applied(api, namespace, kind), US)


FOREIGN: dict[str, tuple[Api, Edit]] = {
    "kubectl rollout restart": (
        DEPLOYMENT,
        strategic(
            {
                "spec": {
                    "template": {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}}
                }
            }
        ),
    ),
    "a foreign label": (DEPLOYMENT, merge(DEPLOYMENT, {"metadata": {"labels": {"team": "x"}}})),
    "a foreign annotation": (SERVICE, merge(SERVICE, {"metadata": {"annotations": {"team": "x"}}})),
    "a finalizer": (DEPLOYMENT, merge(DEPLOYMENT, {"metadata": {"finalizers": ["example.com/x"]}})),
    "a foreign variable": (DEPLOYMENT, strategic(server(env=[{"name": "ADDED", "value": "1"}]))),
    "a variable applied by another manager": (
        DEPLOYMENT,
        forced(DEPLOYMENT, server(env=[{"name": "ADDED", "value": "1"}])),
    ),
    "an injected container": (DEPLOYMENT, strategic(pod(containers=[{"name": "proxy", "image": "envoy:1"}]))),
    "an injected volume": (DEPLOYMENT, strategic(pod(volumes=[{"name": "added", "emptyDir": {}}]))),
    "a limit on an empty directory of ours": (
        DEPLOYMENT,
        strategic(pod(volumes=[{"name": "zz-first", "emptyDir": {"sizeLimit": "1Gi"}}])),
    ),
    "a scheduler": (DEPLOYMENT, strategic(pod(schedulerName="other"))),
    "replicas": (DEPLOYMENT, merge(DEPLOYMENT, {"spec": {"replicas": 3}}, "scale")),
    "a status": (DEPLOYMENT, merge(DEPLOYMENT, {"status": {"replicas": 1, "readyReplicas": 1}}, "status")),
    "a pause": (DEPLOYMENT, merge(DEPLOYMENT, {"spec": {"paused": True}})),
    "the same value from another manager": (
        DEPLOYMENT,
        forced(DEPLOYMENT, server(image="example.com/server:1.2.3")),
    ),
    "a traffic policy": (SERVICE, merge(SERVICE, {"spec": {"internalTrafficPolicy": "Local"}})),
    "a foreign port": (
        SERVICE,
        forced(SERVICE, {"spec": {"ports": [{"name": "added", "port": 9000, "protocol": "TCP"}]}}),
    ),
    "a parent attached by another manager": (
        HTTP_ROUTE,
        merge(HTTP_ROUTE, {"metadata": {"annotations": {"gateway": "seen"}}}),
    ),
    "a paused scaler": (
        SCALED_OBJECT,
        merge(SCALED_OBJECT, {"metadata": {"annotations": {"autoscaling.keda.sh/paused": "true"}}}),
    ),
    "a fallback": (
        SCALED_OBJECT,
        merge(SCALED_OBJECT, {"spec": {"fallback": {"failureThreshold": 3, "replicas": 1}}}),
    ),
}


@pytest.mark.parametrize(("kind", "edit"), FOREIGN.values(), ids=FOREIGN.keys())
async def test_a13_what_others_add_does_not_show(kind: Api, edit: Edit, api: World, namespace: str) -> None:
    """Fields, entries and annotations of others are theirs: same digest, nothing to do (rule A13)."""
    manifest = Manifest.of(manifests(namespace)[kind])
    before = await applied(api, namespace, kind)
    await edit(api, namespace)
    live = await api.get(kind, namespace, "web")

    assert before["metadata"]["resourceVersion"] != live["metadata"]["resourceVersion"]
    assert manifest.digest == owned_digest(live, US)


async def test_a13_a_value_the_server_rewrites_settles(api: World, namespace: str) -> None:
    """1000m is stored as 1: not equal to what was applied until the answer has been shown (rule A13a)."""
    body = manifests(namespace)[DEPLOYMENT]
    body["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]["cpu"] = "1000m"
    body["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1000m"
    manifest = Manifest.of(body)
    store = Store(Resource(api=DEPLOYMENT, view=lambda _: None, manager=US))
    answer = await api.apply(DEPLOYMENT, body, manager=US)
    store.feed().put(store.resource.decode(answer))
    assert manifest.digest != store.items()[0].digest

    store.settle(answer, manifest)
    assert manifest.digest == store.items()[0].digest

    await strategic(server(image="evil:1"))(api, namespace)
    store.feed().put(store.resource.decode(await api.get(DEPLOYMENT, namespace, "web")))
    assert manifest.digest != store.items()[0].digest


async def test_a4_the_owners_of_replicas_can_be_read(api: World, namespace: str) -> None:
    """Replicas may be left to a scaler once it owns them; managedFields say who does (rule A4)."""
    replicas = ("spec", "replicas")
    assert frozenset() == owners_of(await applied(api, namespace, DEPLOYMENT), replicas)

    body = {"metadata": {"name": "web", "namespace": namespace}, "spec": {"replicas": 1}}
    live = await api.apply(DEPLOYMENT, body, manager="modelfleet-replicas")
    assert {"modelfleet-replicas"} == owners_of(live, replicas)

    await api.merge(DEPLOYMENT, namespace, "web", {"spec": {"replicas": 2}}, "scale")
    live = await api.get(DEPLOYMENT, namespace, "web")
    assert {"modelfleet-test"} == owners_of(live, replicas)
