"""Who owns what: our fields are put back, everybody else's are left alone (rules A1, A4, A13)."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from modelfleet.plan import Api
from test.support.cluster import Cluster, Kubectl
from test.support.eventually import Eventually
from test.support.fleet import Fleet
from test.support.kinds import (
    CHILDREN,
    DEPLOYMENT,
    HTTP_ROUTE,
    INFERENCE_SERVICE,
    SCALED_OBJECT,
    SERVICE,
    path_of,
)
from test.support.samples import IMAGE, SCALED, everything, service
from test.support.waiting import holds_for, wait_for
from test.support.world import Object, World

pytestmark = [pytest.mark.contract, pytest.mark.timeout(240)]

OWNER_LABEL = "modelfleet.dev/inferenceservice"
NEXT = f"{IMAGE}-next"


@pytest.fixture
def cluster(control_plane_full: Cluster) -> Cluster:
    """KEDA's and the Gateway API's kinds are installed."""
    return control_plane_full


@pytest.fixture
async def create(api: World, fleet: Fleet, eventually: Eventually) -> Callable[[Object], Any]:
    """Create an object and wait until the running controller has nothing left to do about it."""
    await fleet.start()

    async def create(body: Object) -> None:
        await api.create(INFERENCE_SERVICE, body)
        await eventually.settled(body["metadata"]["name"])
        await fleet.until_quiet(1.0)

    return create


def image(deployment: Object) -> str:
    """Image of the container that we own, whatever else is in the pod."""
    containers = deployment["spec"]["template"]["spec"]["containers"]
    return next(str(c["image"]) for c in containers if c["name"] == "model")


def replicas(deployment: Object) -> int:
    """The wanted number of pods."""
    return int(deployment["spec"]["replicas"])


def patch(value: object) -> str:
    """Argument of `kubectl patch`."""
    return f"--patch={json.dumps(value)}"


EDITS: dict[str, tuple[Api, tuple[str, ...], Callable[[Object], Any]]] = {
    "image": (DEPLOYMENT, ("set", "image", "deploy/m", "*=example.com/other:1"), image),
    "target port": (
        SERVICE,
        (
            "patch",
            "svc/m",
            "--type=json",
            patch([{"op": "replace", "path": "/spec/ports/0/targetPort", "value": 81}]),
        ),
        lambda it: it["spec"]["ports"],
    ),
    "label": (
        DEPLOYMENT,
        ("label", "deploy/m", "--overwrite", f"{OWNER_LABEL}=another"),
        lambda it: it["metadata"]["labels"].get(OWNER_LABEL),
    ),
    "removed label that the cache selects by": (
        SERVICE,
        ("label", "svc/m", "app.kubernetes.io/managed-by-"),
        lambda it: it["metadata"]["labels"].get("app.kubernetes.io/managed-by"),
    ),
    "owner reference": (
        DEPLOYMENT,
        (
            "patch",
            "deploy/m",
            "--type=json",
            patch(
                [{"op": "replace", "path": "/metadata/ownerReferences/0/blockOwnerDeletion", "value": False}]
            ),
        ),
        lambda it: it["metadata"]["ownerReferences"],
    ),
    "maximum of the scaler": (
        SCALED_OBJECT,
        ("patch", "scaledobject/m", "--type=merge", patch({"spec": {"maxReplicaCount": 9}})),
        lambda it: it["spec"]["maxReplicaCount"],
    ),
    "host name of the route": (
        HTTP_ROUTE,
        ("patch", "httproute/m", "--type=merge", patch({"spec": {"hostnames": ["other.example.com"]}})),
        lambda it: it["spec"]["hostnames"],
    ),
}


PORTS: list[tuple[Api, str, Callable[[Object], Any]]] = [
    (SERVICE, "/spec/ports/0/port", lambda it: it["spec"]["ports"]),
    (
        DEPLOYMENT,
        "/spec/template/spec/containers/0/ports/0/containerPort",
        lambda it: it["spec"]["template"]["spec"]["containers"][0]["ports"],
    ),
]


async def test_owned_fields_are_put_back(
    api: World, create: Callable[[Object], Any], eventually: Eventually, kubectl: Kubectl, namespace: str
) -> None:
    """A field we own that somebody edits gets our value again, whatever the kind and the way of the edit."""
    await create(everything(namespace, "m"))
    for what, (kind, command, value) in EDITS.items():
        before = await api.get(kind, namespace, "m")
        kubectl(*command, f"--namespace={namespace}")
        now = await api.get(kind, namespace, "m")
        assert before["metadata"]["resourceVersion"] != now["metadata"]["resourceVersion"], f"{what}: no edit"
        await eventually.holds(kind, "m", value(before), value)
        assert before["metadata"]["uid"] == (await api.get(kind, namespace, "m"))["metadata"]["uid"], what


async def test_edited_ports_are_put_back(
    api: World, create: Callable[[Object], Any], eventually: Eventually, kubectl: Kubectl, namespace: str
) -> None:
    """A port is the key of its list entry: an edited one is a foreign entry beside ours (rule A5)."""
    await create(service(namespace, "m"))
    for kind, pointer, ports in PORTS:
        before = ports(await api.get(kind, namespace, "m"))
        edit = [{"op": "replace", "path": pointer, "value": 81}]
        kubectl("patch", kind.plural, "m", "--type=json", patch(edit), f"--namespace={namespace}")
        await eventually.holds(kind, "m", before, ports)
    await eventually.silent("m", "Stalled")


async def test_deleted_children_come_back(
    api: World, create: Callable[[Object], Any], eventually: Eventually, kubectl: Kubectl, namespace: str
) -> None:
    """A child that somebody deletes is born again under the same name with another UID."""
    await create(everything(namespace, "m"))
    before = {kind: (await api.get(kind, namespace, "m"))["metadata"]["uid"] for kind in CHILDREN}
    for kind in CHILDREN:
        kubectl("delete", kind.qualified, "m", f"--namespace={namespace}", "--wait=false")
    for kind, uid in before.items():
        await eventually.becomes(kind, "m", another_than(uid))


def another_than(uid: str) -> Callable[[Object], bool]:
    """Whether an object is another incarnation."""
    return lambda it: bool(it["metadata"]["uid"] != uid)


async def test_foreign_fields_stay(
    api: World, create: Callable[[Object], Any], eventually: Eventually, kubectl: Kubectl, namespace: str
) -> None:
    """What others added survives our next apply: label, annotation, sidecar, `kubectl rollout restart`."""
    await create(service(namespace, "m"))
    where = f"--namespace={namespace}"
    kubectl("label", "deploy/m", "team=blue", where)
    kubectl("annotate", "svc/m", "example.com/note=käse", where)
    kubectl("rollout", "restart", "deploy/m", where)
    sidecar = {"containers": [{"name": "sidecar", "image": IMAGE}]}
    kubectl("patch", "deploy/m", where, patch({"spec": {"template": {"spec": sidecar}}}))

    async def foreign() -> tuple[object, ...]:
        deployment, svc = await api.get(DEPLOYMENT, namespace, "m"), await api.get(SERVICE, namespace, "m")
        template = deployment["spec"]["template"]
        return (
            deployment["metadata"]["labels"].get("team"),
            svc["metadata"].get("annotations", {}).get("example.com/note"),
            "kubectl.kubernetes.io/restartedAt" in template["metadata"].get("annotations", {}),
            sorted(c["name"] for c in template["spec"]["containers"]),
        )

    expected = ("blue", "käse", True, ["model", "sidecar"])
    assert expected == await foreign()
    edit = {"spec": {"service": {"port": 8000}, "container": {"image": NEXT}}}
    await api.merge(INFERENCE_SERVICE, namespace, "m", edit)
    await eventually.holds(SERVICE, "m", 8000, lambda it: it["spec"]["ports"][0]["port"])
    await eventually.holds(DEPLOYMENT, "m", NEXT, image)
    assert expected == await foreign()


async def test_replicas_belong_to_the_scaler(
    api: World, create: Callable[[Object], Any], eventually: Eventually, kubectl: Kubectl, namespace: str
) -> None:
    """While triggers exist the replica count is the scaler's; without them it is ours."""
    await create(everything(namespace, "scaled"))
    await create(service(namespace, "fixed", scaling={"minReplicas": 2}))
    await eventually.holds(DEPLOYMENT, "scaled", 1, replicas)
    await eventually.holds(DEPLOYMENT, "fixed", 2, replicas)
    where = f"--namespace={namespace}"
    kubectl("scale", "deploy/scaled", "--replicas=3", where)
    kubectl("scale", "deploy/fixed", "--replicas=5", where)
    await eventually.holds(DEPLOYMENT, "fixed", 2, replicas)
    await api.merge(INFERENCE_SERVICE, namespace, "scaled", {"spec": {"container": {"image": NEXT}}})
    await eventually.holds(DEPLOYMENT, "scaled", NEXT, image)

    async def still_the_scalers() -> bool:
        return replicas(await api.get(DEPLOYMENT, namespace, "scaled")) == 3

    await holds_for(still_the_scalers, 2.0, "the scaler's count survives drift checks and our own applies")


async def test_replicas_never_dip_when_scaling_is_switched(
    api: World, create: Callable[[Object], Any], fleet: Fleet, namespace: str
) -> None:
    """Triggers come and go: the replica count never falls below what both sides want (rule A4)."""
    await create(service(namespace, "m", scaling={"minReplicas": 3}))
    lowest = 3

    async def has_scaler() -> bool:
        nonlocal lowest
        lowest = min(lowest, replicas(await api.get(DEPLOYMENT, namespace, "m")))
        return await api.find(SCALED_OBJECT, namespace, "m") is not None

    async def has_none() -> bool:
        return not await has_scaler()

    for scaling, reached in (({**SCALED, "minReplicas": 3}, has_scaler), ({"minReplicas": 3}, has_none)):
        now = await api.get(INFERENCE_SERVICE, namespace, "m")
        now["spec"]["scaling"] = scaling
        await api.request("PUT", path_of(INFERENCE_SERVICE, namespace, "m"), now)
        await wait_for(reached, 20)
        await fleet.until_quiet(1.0)
        assert await reached()
    assert 3 == lowest


async def test_a_lost_label_costs_no_replicas(
    api: World, create: Callable[[Object], Any], eventually: Eventually, kubectl: Kubectl, namespace: str
) -> None:
    """A child that somebody relabels leaves our sight: it is shown again, not born at its first count."""
    await create(everything(namespace, "m"))
    await eventually.holds(DEPLOYMENT, "m", 1, replicas)
    where = f"--namespace={namespace}"
    kubectl("scale", "deploy/m", "--replicas=3", where)
    before = (await api.get(DEPLOYMENT, namespace, "m"))["metadata"]
    for label in ("app.kubernetes.io/managed-by", "modelfleet.dev/inferenceservice"):
        kubectl("label", "deploy/m", f"{label}=somebody", "--overwrite", where)
        await eventually.holds(DEPLOYMENT, "m", before["labels"], lambda it: it["metadata"]["labels"])

    async def the_same_three() -> bool:
        live = await api.get(DEPLOYMENT, namespace, "m")
        return (before["uid"], 3) == (live["metadata"]["uid"], replicas(live))

    await holds_for(the_same_three, 2.0, "a relabelled Deployment keeps the scaler's count")
