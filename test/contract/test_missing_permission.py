"""A 403 on a kind is told in words an administrator can act on, and stays the trouble of that kind."""

from collections.abc import Iterator

import pytest

from test.support.cluster import Cluster
from test.support.controlplanes import Running
from test.support.crds import gateway_crds, install, remove
from test.support.eventually import Eventually
from test.support.fleet import RBAC, USER, Fleet
from test.support.kinds import CLUSTER_ROLE, DEPLOYMENT, HTTP_ROUTE, INFERENCE_SERVICE, SERVICE, path_of
from test.support.samples import ROUTED, condition, service
from test.support.world import World

pytestmark = [pytest.mark.contract, pytest.mark.timeout(180)]


@pytest.fixture
def cluster(control_plane_private: Running) -> Iterator[Cluster]:
    """With the Gateway API installed."""
    it = control_plane_private.cluster
    install(it, gateway_crds())
    yield it
    remove(it, gateway_crds())


def without_routes(rules: list[dict[str, list[str]]]) -> list[dict[str, list[str]]]:
    """The same rules but for HTTPRoutes."""
    return [rule for rule in rules if "httproutes" not in rule.get("resources", ())]


@pytest.fixture
def no_route_permission(cluster: Cluster, fleet: Fleet) -> Iterator[None]:  # noqa: ARG001  # it applies what ships
    """The shipped ClusterRole without its rule for HTTPRoutes."""
    roles = [
        r
        for r in cluster.request("GET", path_of(CLUSTER_ROLE))["items"]
        if "modelfleet" in r["metadata"]["name"]
    ]
    changed = [role for role in roles if without_routes(role["rules"]) != role["rules"]]
    assert changed, "no shipped role mentions HTTPRoutes"
    for role in changed:
        name = role["metadata"]["name"]
        cluster.request(
            "PUT", path_of(CLUSTER_ROLE, name=name), {**role, "rules": without_routes(role["rules"])}
        )
    yield
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(RBAC))


@pytest.mark.usefixtures("no_route_permission")
async def test_forbidden_kind_is_named(
    api: World, cluster: Cluster, fleet: Fleet, eventually: Eventually, namespace: str
) -> None:
    """The condition names verb, kind and ServiceAccount; all the rest goes on; the grant heals."""
    controller = await fleet.start()
    await api.create(INFERENCE_SERVICE, service(namespace, "routed", route=ROUTED))
    await api.create(INFERENCE_SERVICE, service(namespace, "plain"))
    message = await eventually.says("routed", "RouteReady", "False", "Forbidden")
    for part in (HTTP_ROUTE.plural, HTTP_ROUTE.group, USER):
        assert part in message, message
    assert any(f"{verb} " in message for verb in ("list", "watch", "patch", "create")), message
    for name in ("routed", "plain"):
        await eventually.exists(DEPLOYMENT, name)
        await eventually.exists(SERVICE, name)
    await eventually.settled("plain")
    assert {} == condition(await api.get(INFERENCE_SERVICE, namespace, "plain"), "RouteReady")
    assert await controller.ready(), "an optional kind that is refused is no reason to be unready"

    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(RBAC))
    await eventually.exists(HTTP_ROUTE, "routed")
