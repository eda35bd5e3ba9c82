"""KEDA and the Gateway API may come and go while the controller runs (rule I15, architecture.md 3)."""

from collections.abc import Iterator

import pytest

from test.support.audit import lists
from test.support.cluster import Cluster
from test.support.controlplanes import Running
from test.support.crds import gateway_crds, install, keda_crds, remove
from test.support.eventually import Eventually
from test.support.fleet import Fleet
from test.support.kinds import DEPLOYMENT, HTTP_ROUTE, INFERENCE_SERVICE, SCALED_OBJECT, SERVICE
from test.support.samples import ROUTED, SCALED, accept_route, scaler_ready, service
from test.support.world import World

pytestmark = [pytest.mark.contract, pytest.mark.timeout(240)]


@pytest.fixture
def cluster(control_plane_private: Running) -> Iterator[Cluster]:
    """A control plane without optional APIs, before and after."""
    it = control_plane_private.cluster
    yield it
    names = [crd["metadata"]["name"] for crd in keda_crds() + gateway_crds()]
    it.kubectl("delete", "crd", "--ignore-not-found", *names)


async def test_gateway_api_comes_and_goes(
    api: World, cluster: Cluster, fleet: Fleet, eventually: Eventually, namespace: str
) -> None:
    """Without the Gateway API only the route is missing; it comes and goes without a restart."""
    controller = await fleet.start()
    pid = controller.pid
    await api.create(INFERENCE_SERVICE, service(namespace, "m", route=ROUTED))
    await eventually.exists(DEPLOYMENT, "m")
    await eventually.exists(SERVICE, "m")
    await eventually.says("m", "RouteReady", "False", "GatewayAPINotInstalled")
    for _ in range(2):
        install(cluster, gateway_crds())
        await eventually.exists(HTTP_ROUTE, "m")
        await eventually.says("m", "RouteReady", "Unknown", "NoControllerAnswered")
        await accept_route(api, namespace, "m")
        await eventually.says("m", "RouteReady", "True", "Accepted")
        remove(cluster, gateway_crds())
        await eventually.says("m", "RouteReady", "False", "GatewayAPINotInstalled")
        assert await api.find(DEPLOYMENT, namespace, "m"), (
            "the loss of a route is no reason to touch the workload"
        )
    assert (pid, None) == (controller.pid, controller.exit_code)
    assert await controller.ready(), "an optional kind is no reason to be unready"


async def test_keda_comes_and_goes(
    api: World, cluster: Cluster, fleet: Fleet, eventually: Eventually, namespace: str
) -> None:
    """Without KEDA the model runs at minReplicas; with it it is scaled, again without a restart."""
    controller = await fleet.start()
    await api.create(INFERENCE_SERVICE, service(namespace, "m", scaling={**SCALED, "minReplicas": 2}))
    await eventually.says("m", "ScalingReady", "False", "KEDANotInstalled")
    await eventually.holds(DEPLOYMENT, "m", 2, lambda it: it["spec"]["replicas"])
    install(cluster, keda_crds())
    await eventually.exists(SCALED_OBJECT, "m")
    await scaler_ready(api, namespace, "m")
    await eventually.says("m", "ScalingReady", "True", "Active")
    remove(cluster, keda_crds())
    await eventually.says("m", "ScalingReady", "False", "KEDANotInstalled")
    assert 2 == (await api.get(DEPLOYMENT, namespace, "m"))["spec"]["replicas"]
    assert controller.exit_code is None
    assert await controller.ready()


async def test_absent_apis_cost_nothing(
    api: World, fleet: Fleet, eventually: Eventually, namespace: str
) -> None:
    """A missing optional kind is neither polled nor written about again and again."""
    await fleet.start()
    await api.create(INFERENCE_SERVICE, service(namespace, "m", route=ROUTED, scaling=SCALED))
    await eventually.says("m", "RouteReady", "False", "GatewayAPINotInstalled")
    await fleet.until_quiet()
    mark = fleet.audit.mark()
    await fleet.until_quiet(5.0)
    asked = fleet.seen(mark)
    assert [] == fleet.writes(mark)
    assert [] == lists(asked)
    assert [] == [e for e in asked if e.resource in {HTTP_ROUTE.qualified, SCALED_OBJECT.qualified}]
