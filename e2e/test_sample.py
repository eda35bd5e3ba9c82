"""The sample's whole life on a full cluster: children by ours, verdicts by the real KEDA, gateway and nodes.

Nothing here knows how the cluster was made. On KWOK's fake nodes pods answer no requests; the test that
sends one is skipped there, and says so.
"""

from collections.abc import AsyncIterator

import aiohttp
import pytest

from e2e.objects import Object, Objects
from e2e.sample import FILE, HOST, LABEL, NAME, NAMESPACE
from test.support.cluster import Kubectl
from test.support.waiting import wait_for

CHILDREN = ("deployments", "services", "scaledobjects", "httproutes")
READY_SECONDS = 120.0
"""Image import, pod start and KEDA's first look take seconds; a cold cluster more."""


@pytest.fixture
async def sample(kubectl: Kubectl, objects: Objects) -> AsyncIterator[None]:
    """The sample, applied and Ready; applied again afterwards, for whoever looks at the cluster next."""
    await apply(kubectl, objects)
    yield
    await apply(kubectl, objects)


async def apply(kubectl: Kubectl, objects: Objects) -> None:
    """Apply and wait until the object says that it is what its spec says."""
    await kubectl.run("apply", "-f", str(FILE))

    async def ready() -> bool:
        it = await objects.get("inferenceservices", NAME)
        status = it.get("status", {})
        assert ("True", it["metadata"]["generation"]) == (
            status_of(it, "Ready"),
            status.get("observedGeneration"),
        )
        return True

    await wait_for(ready, READY_SECONDS)


def status_of(it: Object, kind: str) -> str:
    """Status of a condition, "" while there is none."""
    conditions = it.get("status", {}).get("conditions", ())
    return next((str(c["status"]) for c in conditions if c["type"] == kind), "")


async def ask(url: str) -> tuple[int, str]:
    """One request under the sample's host name; status 0 when nobody listens."""
    timeout = aiohttp.ClientTimeout(total=5)
    try:
        async with (
            aiohttp.ClientSession(headers={"Host": HOST}, timeout=timeout) as session,
            session.get(url) as answer,
        ):
            return answer.status, (await answer.text()).strip()
    except (aiohttp.ClientError, TimeoutError) as error:
        return 0, str(error)


@pytest.mark.usefixtures("sample")
async def test_children_belong_to_the_sample(objects: Objects) -> None:
    """All four children exist under the sample's name and are owned by it."""
    uid = (await objects.get("inferenceservices", NAME))["metadata"]["uid"]
    for kind in CHILDREN:
        (owner,) = (await objects.get(kind, NAME))["metadata"]["ownerReferences"]
        assert (uid, True) == (owner["uid"], owner["controller"]), kind


@pytest.mark.usefixtures("sample")
async def test_real_controllers_agree(objects: Objects) -> None:
    """KEDA calls the ScaledObject ready, and the gateway accepts the route."""
    assert "True" == status_of(await objects.get("scaledobjects", NAME), "Ready")
    (parent,) = (await objects.get("httproutes", NAME))["status"]["parents"]
    verdicts = {c["type"]: c["status"] for c in parent["conditions"]}
    assert ("True", "True") == (verdicts.get("Accepted"), verdicts.get("ResolvedRefs"))


@pytest.mark.usefixtures("sample")
async def test_kubectl_tells_the_user(kubectl: Kubectl) -> None:
    """`kubectl wait` comes back, and the printed columns say Ready."""
    await kubectl.run(
        "wait", "--for=condition=Ready", f"isvc/{NAME}", f"--namespace={NAMESPACE}", "--timeout=30s"
    )
    row = (await kubectl.run("get", "isvc", NAME, f"--namespace={NAMESPACE}", "--no-headers")).split()
    assert [NAME, "True", "Ready"] == row[:3]


@pytest.mark.usefixtures("sample")
async def test_gateway_answers(objects: Objects, gateway: str) -> None:
    """A request with the sample's host name is answered by a pod of the sample, through the gateway."""
    if await objects.has_fake_nodes():
        pytest.skip("KWOK's pods serve nothing: run this on a real node (make up as root on Linux)")
    pods = [pod["metadata"]["name"] for pod in await objects.labelled("pods", LABEL)]

    async def answered_by_a_pod() -> bool:
        status, text = await ask(f"{gateway}/hostname")
        assert 200 == status, f"{status} {text}"
        assert text in pods
        return True

    await wait_for(answered_by_a_pod, 30)


@pytest.mark.usefixtures("sample")
async def test_deletion_takes_the_children(kubectl: Kubectl, objects: Objects) -> None:
    """Deleting the sample is enough: the cluster's garbage collector removes all children."""
    kinds = (*CHILDREN, "replicasets", "pods")

    async def left() -> dict[str, list[str]]:
        return {
            kind: [it["metadata"]["name"] for it in await objects.labelled(kind, LABEL)] for kind in kinds
        }

    assert all((await left()).values())
    await kubectl.run("delete", "isvc", NAME, f"--namespace={NAMESPACE}", "--wait=true", "--timeout=60s")

    async def none_left() -> bool:
        assert {kind: [] for kind in kinds} == await left()
        return True

    await wait_for(none_left, 90)
