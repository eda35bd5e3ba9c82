"""The sample's whole life on a full cluster: children by ours, verdicts by the real KEDA, gateway and nodes.

Nothing here knows how the cluster was made. On KWOK's fake nodes pods answer no requests; the test that
sends one is skipped there, and says so.
"""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from test.support.cluster import Kubectl
from test.support.waiting import wait_for

SAMPLE = Path(__file__).parents[1] / "samples" / "inference-kind.yaml"
CHILDREN = ("deployments", "services", "scaledobjects", "httproutes")
READY_SECONDS = 120.0
"""Image import, pod start and KEDA's first look take seconds; a cold cluster more."""

Object = dict[str, Any]


def the_service() -> Object:
    """The InferenceService of the sample."""
    documents = yaml.safe_load_all(SAMPLE.read_text())
    return next(dict(doc) for doc in documents if doc["kind"] == "InferenceService")


NAME: str = the_service()["metadata"]["name"]
NAMESPACE: str = the_service()["metadata"]["namespace"]
HOST: str = the_service()["spec"]["route"]["hostnames"][0]


@pytest.fixture
async def sample(kubectl: Kubectl) -> AsyncIterator[None]:
    """The sample, applied and Ready; applied again afterwards, for whoever looks at the cluster next."""
    await apply(kubectl)
    yield
    await apply(kubectl)


async def apply(kubectl: Kubectl) -> None:
    """Apply and wait until the object says that it is what its spec says."""
    await kubectl.run("apply", "-f", str(SAMPLE))

    async def ready() -> bool:
        it = await get(kubectl, "inferenceservices.modelfleet.dev")
        assert ("True", it["metadata"]["generation"]) == (
            status_of(it, "Ready"),
            it["status"]["observedGeneration"],
        )
        return True

    await wait_for(ready, READY_SECONDS)


async def get(kubectl: Kubectl, kind: str, name: str = NAME) -> Object:
    """One object of the sample's namespace."""
    return dict(json.loads(await kubectl.run("get", kind, name, f"--namespace={NAMESPACE}", "--output=json")))


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


async def has_fake_nodes(kubectl: Kubectl) -> bool:
    """Whether KWOK plays the nodes."""
    return bool((await kubectl.run("get", "nodes", "--selector=type=kwok", "--output=name")).strip())


@pytest.mark.usefixtures("sample")
async def test_children_belong_to_the_sample(kubectl: Kubectl) -> None:
    """All four children exist under the sample's name and are owned by it."""
    uid = (await get(kubectl, "inferenceservices.modelfleet.dev"))["metadata"]["uid"]
    for kind in CHILDREN:
        (owner,) = (await get(kubectl, kind))["metadata"]["ownerReferences"]
        assert (uid, True) == (owner["uid"], owner["controller"]), kind


@pytest.mark.usefixtures("sample")
async def test_real_controllers_agree(kubectl: Kubectl) -> None:
    """KEDA calls the ScaledObject ready, the gateway accepts the route, and the sample's columns say so."""
    scaler = await get(kubectl, "scaledobjects.keda.sh")
    assert "True" == status_of(scaler, "Ready")
    (parent,) = (await get(kubectl, "httproutes.gateway.networking.k8s.io"))["status"]["parents"]
    verdicts = {c["type"]: c["status"] for c in parent["conditions"]}
    assert ("True", "True") == (verdicts.get("Accepted"), verdicts.get("ResolvedRefs"))
    row = (await kubectl.run("get", "isvc", NAME, f"--namespace={NAMESPACE}", "--no-headers")).split()
    assert [NAME, "True", "Ready"] == row[:3]


@pytest.mark.usefixtures("sample")
async def test_gateway_answers(kubectl: Kubectl, gateway: str) -> None:
    """A request with the sample's host name is answered by a pod of the sample, through the gateway."""
    if await has_fake_nodes(kubectl):
        pytest.skip("KWOK's pods serve nothing: run this on a real node (make up as root on Linux)")
    names = await kubectl.run(
        "get",
        "pods",
        f"--namespace={NAMESPACE}",
        f"--selector=modelfleet.dev/inferenceservice={NAME}",
        "--output=name",
    )
    pods = [name.removeprefix("pod/") for name in names.split()]

    async def answered_by_a_pod() -> bool:
        status, text = await ask(f"{gateway}/hostname")
        assert 200 == status, f"{status} {text}"
        assert text in pods
        return True

    await wait_for(answered_by_a_pod, 30)


@pytest.mark.usefixtures("sample")
async def test_deletion_takes_the_children(kubectl: Kubectl) -> None:
    """Deleting the sample is enough: the cluster's garbage collector removes all children."""
    await kubectl.run("delete", "isvc", NAME, f"--namespace={NAMESPACE}", "--wait=true", "--timeout=60s")

    async def none_left() -> bool:
        kinds = ",".join((*CHILDREN, "replicasets", "pods"))
        selector = f"--selector=modelfleet.dev/inferenceservice={NAME}"
        left = await kubectl.run("get", kinds, f"--namespace={NAMESPACE}", selector, "--output=name")
        assert "" == left.strip()
        return True

    await wait_for(none_left, 90)
