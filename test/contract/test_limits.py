"""Values at their limits pass through the controller unharmed, and those beyond are refused in words."""

import json

import pytest

from test.support.cluster import Cluster
from test.support.eventually import Eventually
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
from test.support.samples import IMAGE, ROUTED, everything, service
from test.support.waiting import wait_for
from test.support.world import Object, World, WorldError

pytestmark = [pytest.mark.contract, pytest.mark.timeout(180)]

LONGEST = "m" + "x" * 53
HOSTNAME = ".".join(("a" * 63, "b" * 63, "c" * 63, "d" * 61))
MEBIBYTE = 1024 * 1024
NEXT = f"{IMAGE}-next"
WRITES_PER_OBJECT = 30
"""Each of the five children that vanish wakes its object, which then tries all that are missing (15 tries),
and says so in its status and an Event where that is news."""
QUICK_RETRIES = 12
"""5 ms doubled each time: so many fit into the first ten seconds of the backoff (rule Q4)."""
UNICODE = 'Käse 模型 🚀 \t"quoted" \\n'


@pytest.fixture
def cluster(control_plane_full: Cluster) -> Cluster:
    """All child kinds are installed."""
    return control_plane_full


async def test_names_and_values_at_their_limits(
    api: World, fleet: Fleet, eventually: Eventually, namespace: str
) -> None:
    """54 characters of name, 253 of host name, slashes and unicode reach the children as they are."""
    assert (54, 253) == (len(LONGEST), len(HOSTNAME))
    await fleet.start()
    annotations = {"example.com/text": UNICODE}
    body = everything(
        namespace,
        LONGEST,
        model={"name": "Qwen/Qwen3-8B", "revision": "refs/pr/1"},
        container={"env": [{"name": "TEXT", "value": UNICODE}]},
        pod={"annotations": annotations},
        service={"annotations": annotations},
        route={**ROUTED, "hostnames": [HOSTNAME]},
    )
    await api.create(INFERENCE_SERVICE, body)
    for kind in CHILDREN:
        await eventually.exists(kind, LONGEST)
    await eventually.silent(LONGEST, "Stalled")
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
        ("1st", {}, "letter"),
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


async def test_object_of_a_mebibyte(api: World, fleet: Fleet, eventually: Eventually, namespace: str) -> None:
    """An object near the limit of etcd is reconciled, watched and edited like any other."""
    await fleet.start()
    env = [{"name": f"VALUE_{number}", "value": "x" * 32_000} for number in range(32)]
    created = await api.create(
        INFERENCE_SERVICE, service(namespace, "big", container={"env": env}, suspend=True)
    )
    assert MEBIBYTE * 0.95 < len(json.dumps(created)) < MEBIBYTE * 1.05

    def container(it: Object) -> tuple[str, int]:
        first = it["spec"]["template"]["spec"]["containers"][0]
        return first["image"], len(first["env"])

    await eventually.holds(DEPLOYMENT, "big", (IMAGE, len(env)), container)
    await api.merge(INFERENCE_SERVICE, namespace, "big", {"spec": {"container": {"image": NEXT}}})
    await eventually.holds(DEPLOYMENT, "big", (NEXT, len(env)), container)
    await eventually.settled("big")
    await fleet.until_quiet(2.0)


async def test_namespace_being_deleted(
    api: World, fleet: Fleet, eventually: Eventually, namespace: str
) -> None:
    """A namespace goes away under the controller: no storm of refused writes, and nothing holds it up."""
    names = ["model-1", "model-2", "model-3"]
    controller = await fleet.start()
    for name in names:
        await api.create(INFERENCE_SERVICE, everything(namespace, name))
    for name in names:
        for kind in CHILDREN:
            await eventually.exists(kind, name)
    await fleet.until_quiet(1.0)
    mark = fleet.audit.mark()
    await api.delete(NAMESPACE, "", namespace)

    async def gone() -> bool:
        return await api.find(NAMESPACE, "", namespace) is None

    await wait_for(gone, 60, controller.tail)
    tried = fleet.writes(mark)
    assert len(tried) <= len(names) * WRITES_PER_OBJECT, "\n".join(map(str, tried))
    assert controller.exit_code is None


async def test_quota_is_told(api: World, fleet: Fleet, eventually: Eventually, namespace: str) -> None:
    """A quota that forbids a child is told without a retry storm; an edit is tried at once."""
    quota = {"metadata": {"name": "none", "namespace": namespace}, "spec": {"hard": {"count/services": "0"}}}
    await api.create(RESOURCE_QUOTA, quota)
    await eventually.becomes(RESOURCE_QUOTA, "none", lambda it: "hard" in it.get("status", {}))
    await fleet.start()
    mark = fleet.audit.mark()
    await api.create(INFERENCE_SERVICE, service(namespace, "m"))
    assert "count/services" in await eventually.says("m", "Ready", "False", "QuotaExceeded")
    await fleet.until_quiet(1.0)
    refused = [e for e in fleet.writes(mark) if e.code == 403]
    assert len(refused) < QUICK_RETRIES, "\n".join(map(str, refused))
    await api.delete(RESOURCE_QUOTA, namespace, "none")
    await api.merge(INFERENCE_SERVICE, namespace, "m", {"spec": {"service": {"port": 8000}}})
    await eventually.exists(SERVICE, "m")
