"""Values at their limits pass through the controller unharmed, and those beyond are refused in words."""

import pytest

from test.support.cluster import Cluster
from test.support.fleet import Fleet
from test.support.kinds import (
    CHILDREN,
    DEPLOYMENT,
    HTTP_ROUTE,
    INFERENCE_SERVICE,
    NAMESPACE,
    RESOURCE_QUOTA,
    SERVICE,
)
from test.support.samples import IMAGE, ROUTED, condition, everything, service, settled
from test.support.waiting import wait_for
from test.support.world import World, WorldError

pytestmark = [pytest.mark.contract, pytest.mark.timeout(180)]

LONGEST = "m" + "x" * 53
HOSTNAME = ".".join(("a" * 63, "b" * 63, "c" * 63, "d" * 61))
MEBIBYTE = 1024 * 1024
UNICODE = 'Käse 模型 🚀 \t"quoted" \\n'


@pytest.fixture
def cluster(control_plane_full: Cluster) -> Cluster:
    """All child kinds are installed."""
    return control_plane_full


async def children_there(api: World, fleet: Fleet, namespace: str, name: str) -> None:
    """Wait until an object is settled with all five children."""

    async def there() -> bool:
        it = await api.get(INFERENCE_SERVICE, namespace, name)
        missing = [str(kind) for kind in CHILDREN if await api.find(kind, namespace, name) is None]
        assert not missing, f"{missing}: {it.get('status')}"
        assert {} == condition(it, "Stalled")
        return settled(it)

    await wait_for(there, 45, fleet.replicas[-1].controller.tail)


async def test_names_and_values_at_their_limits(api: World, fleet: Fleet, namespace: str) -> None:
    """54 characters of name, 253 of host name, slashes and unicode reach the children as they are."""
    assert (54, 253) == (len(LONGEST), len(HOSTNAME))
    await fleet.start()
    body = everything(
        namespace,
        LONGEST,
        model={"name": "Qwen/Qwen3-8B", "revision": "refs/pr/1"},
        container={"env": [{"name": "TEXT", "value": UNICODE}]},
        pod={"annotations": {"example.com/text": UNICODE}},
        service={"annotations": {"example.com/text": UNICODE}},
        route={**ROUTED, "hostnames": [HOSTNAME]},
    )
    await api.create(INFERENCE_SERVICE, body)
    await children_there(api, fleet, namespace, LONGEST)
    template = (await api.get(DEPLOYMENT, namespace, LONGEST))["spec"]["template"]
    assert UNICODE in [e.get("value") for e in template["spec"]["containers"][0]["env"]]
    assert UNICODE == template["metadata"]["annotations"]["example.com/text"]
    assert "Qwen/Qwen3-8B" == template["metadata"]["annotations"]["modelfleet.dev/model-name"]
    assert (
        UNICODE == (await api.get(SERVICE, namespace, LONGEST))["metadata"]["annotations"]["example.com/text"]
    )
    assert [HOSTNAME] == (await api.get(HTTP_ROUTE, namespace, LONGEST))["spec"]["hostnames"]


@pytest.mark.parametrize(
    ("name", "spec", "word"),
    [
        (f"{LONGEST}x", {}, "54"),
        ("1st", {}, "DNS-1035"),
        ("m", {"route": {**ROUTED, "hostnames": [f"{HOSTNAME}d"]}}, "253"),
    ],
    ids=["55 characters", "leading digit", "host name of 254"],
)
async def test_beyond_the_limit_is_refused(
    api: World, namespace: str, name: str, spec: dict[str, object], word: str
) -> None:
    """The API server refuses what no child could carry, in words that say the limit."""
    with pytest.raises(WorldError) as refused:
        await api.create(INFERENCE_SERVICE, service(namespace, name, **spec))
    assert 422 == refused.value.code
    assert word in str(refused.value)


async def test_object_of_a_mebibyte(api: World, fleet: Fleet, namespace: str) -> None:
    """An object near the limit of etcd is reconciled, watched and edited like any other."""
    await fleet.start()
    env = [{"name": f"VALUE_{number}", "value": f"{number}" * 1 + "x" * 30_000} for number in range(32)]
    body = service(namespace, "big", container={"env": env})
    created = await api.create(INFERENCE_SERVICE, body)
    assert 0.9 * MEBIBYTE < len(str(created)) < 1.1 * MEBIBYTE

    async def deployed(image: str) -> bool:
        it = await api.find(DEPLOYMENT, namespace, "big")
        containers = it["spec"]["template"]["spec"]["containers"] if it else [{"image": "none", "env": ()}]
        assert (image, len(env)) == (containers[0]["image"], len(containers[0]["env"]))
        return settled(await api.find(INFERENCE_SERVICE, namespace, "big"))

    await wait_for(lambda: deployed(IMAGE), 45, fleet.replicas[-1].controller.tail)
    await api.merge(INFERENCE_SERVICE, namespace, "big", {"spec": {"container": {"image": f"{IMAGE}-next"}}})
    await wait_for(lambda: deployed(f"{IMAGE}-next"), 45, fleet.replicas[-1].controller.tail)
    await fleet.until_quiet(2.0)


async def test_namespace_being_deleted(api: World, fleet: Fleet, namespace: str) -> None:
    """A namespace goes away under the controller: no storm of refused writes, and nothing holds it up."""
    names = [f"model-{number}" for number in range(5)]
    controller = await fleet.start()
    for name in names:
        await api.create(INFERENCE_SERVICE, everything(namespace, name))
    for name in names:
        await children_there(api, fleet, namespace, name)
    mark = fleet.audit.mark()
    await api.delete(NAMESPACE, "", namespace)

    async def gone() -> bool:
        return await api.find(NAMESPACE, "", namespace) is None

    await wait_for(gone, 60, controller.tail)
    tried = fleet.writes(mark)
    assert len(tried) <= len(names) * 3 * len(CHILDREN), "\n".join(map(str, tried))
    assert controller.exit_code is None


async def test_quota_is_told_and_healed(api: World, fleet: Fleet, namespace: str) -> None:
    """A quota that forbids a child is named in the condition, without a retry storm; a raised one heals it."""
    quota = {"metadata": {"name": "none", "namespace": namespace}, "spec": {"hard": {"count/services": "0"}}}
    await api.create(RESOURCE_QUOTA, quota)

    async def enforced() -> bool:
        it = await api.get(RESOURCE_QUOTA, namespace, "none")
        return "hard" in it.get("status", {})

    await wait_for(enforced, 30)
    controller = await fleet.start()
    mark = fleet.audit.mark()
    await api.create(INFERENCE_SERVICE, service(namespace, "m"))

    async def told() -> bool:
        ready = condition(await api.find(INFERENCE_SERVICE, namespace, "m"), "Ready")
        assert ("False", "QuotaExceeded") == (ready.get("status"), ready.get("reason")), ready
        assert "count/services" in ready["message"]
        return True

    await wait_for(told, 30, controller.tail)
    refused = [e for e in fleet.writes(mark) if e.code == 403]
    assert len(refused) < 20, "\n".join(map(str, refused))
    await api.delete(RESOURCE_QUOTA, namespace, "none")

    async def healed() -> bool:
        return await api.find(SERVICE, namespace, "m") is not None

    await wait_for(healed, 60, controller.tail)
