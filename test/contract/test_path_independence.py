"""Only the last spec counts: apply a, b, c in turn == apply c to a fresh namespace (architecture.md 5.4)."""

import asyncio
import json
from typing import Any

import pytest

from test.conftest import new_namespace
from test.support.cluster import Cluster
from test.support.fleet import SINGLE, Fleet
from test.support.kinds import CHILDREN, INFERENCE_SERVICE
from test.support.samples import CRON, ROUTED, SCALED, service, settled
from test.support.waiting import wait_for
from test.support.world import Object, World

pytestmark = [pytest.mark.contract, pytest.mark.timeout(240)]

Spec = dict[str, Any]

ENV = {"image": "example.com/m:1", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]}
PLAIN: Spec = {}
FULL: Spec = {"scaling": SCALED, "route": ROUTED, "rollout": {"podDisruptionBudget": {"minAvailable": 1}}}
PATHS: dict[str, list[Spec]] = {
    "shrinks": [FULL, {"scaling": {"minReplicas": 2}}, PLAIN],
    "grows": [PLAIN, {"route": ROUTED}, FULL],
    "scaler": [
        {"scaling": SCALED},
        {"scaling": {"minReplicas": 4}},
        {"scaling": {**SCALED, "maxReplicas": 7, "cooldownPeriod": 60, "triggers": [CRON]}},
    ],
    "route": [
        {"route": {**ROUTED, "hostnames": ["a.example.com", "b.example.com"], "paths": ["/a", "/b"]}},
        {"route": {**ROUTED, "timeouts": {"request": "30s"}}},
        {"route": {**ROUTED, "hostnames": [], "paths": ["/b"]}},
    ],
    "budget": [
        {"rollout": {"podDisruptionBudget": {"minAvailable": 1}}},
        {"rollout": {"maxSurge": 0, "maxUnavailable": 1}},
        {"rollout": {"podDisruptionBudget": {"maxUnavailable": "50%"}}},
    ],
    "container": [
        {
            "container": {
                **ENV,
                "command": ["a"],
                "args": ["b"],
                "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
            }
        },
        {"container": {"image": "example.com/m:2", "env": [{"name": "B", "value": "3"}], "port": 9000}},
        {"container": {**ENV, "resources": {"requests": {"cpu": "1000m", "memory": "1024Mi"}}}},
    ],
    "identity": [
        {"model": {"name": "a/b", "revision": "1", "format": "gguf"}, "pod": {"labels": {"x": "y"}}},
        {
            "pod": {
                "annotations": {"n": "ü"},
                "nodeSelector": {"disk": "ssd"},
                "tolerations": [{"operator": "Exists"}],
            }
        },
        {"model": {"name": "a/c"}, "service": {"annotations": {"k": "v"}, "port": 8000}},
    ],
    "suspended": [{"scaling": SCALED}, {"scaling": SCALED, "suspend": True}, {"scaling": SCALED}],
}
MASKED_METADATA = ("uid", "resourceVersion", "creationTimestamp", "generation", "selfLink")
MASKED_ANNOTATIONS = ("deployment.kubernetes.io/revision",)
"""Counts the revisions on the way, by design."""


@pytest.fixture
def cluster(control_plane_full: Cluster) -> Cluster:
    """All child kinds are installed."""
    return control_plane_full


def masked(it: Object) -> Object:
    """What a user can see of a child, without identity, history and the work of other controllers."""
    meta = {k: v for k, v in it["metadata"].items() if k not in MASKED_METADATA}
    meta["annotations"] = {
        k: v for k, v in meta.get("annotations", {}).items() if k not in MASKED_ANNOTATIONS
    }
    meta["ownerReferences"] = [{**ref, "uid": ""} for ref in meta.get("ownerReferences", ())]
    meta["managedFields"] = sorted(
        json.dumps(
            [entry["manager"], entry["operation"], entry.get("subresource"), entry["fieldsV1"]],
            sort_keys=True,
        )
        for entry in meta.get("managedFields", ())
        if entry["manager"].startswith("modelfleet")
    )
    spec = {k: v for k, v in it["spec"].items() if k not in {"clusterIP", "clusterIPs"}}
    return {"metadata": meta, "spec": spec}


async def children(api: World, namespace: str, name: str) -> str:
    """All children of an object as text, the namespace's own name masked."""
    found = {kind.kind: await api.find(kind, namespace, name) for kind in CHILDREN}
    if found["ScaledObject"] and found["Deployment"]:
        del found["Deployment"]["spec"]["replicas"]  # the scaler's, who starts from what is there (rule A4)
    text = json.dumps(
        {kind: masked(it) if it else None for kind, it in found.items()}, indent=1, sort_keys=True
    )
    uid = (await api.get(INFERENCE_SERVICE, namespace, name))["metadata"]["uid"]
    return text.replace(namespace, "NAMESPACE").replace(uid, "UID")


async def put(api: World, fleet: Fleet, namespace: str, name: str, spec: Spec) -> None:
    """Replace the spec (create the object first) and wait until it has been acted upon."""
    body = service(namespace, name, **spec)
    live = await api.find(INFERENCE_SERVICE, namespace, name)
    if live is None:
        await api.create(INFERENCE_SERVICE, body)
    else:
        path = f"/apis/modelfleet.dev/v1alpha1/namespaces/{namespace}/inferenceservices/{name}"
        body["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
        await api.request("PUT", path, body)

    async def seen() -> bool:
        return settled(await api.find(INFERENCE_SERVICE, namespace, name))

    await wait_for(seen, 60, fleet.replicas[-1].controller.tail)


async def test_only_the_last_spec_counts(api: World, cluster: Cluster, fleet: Fleet, namespace: str) -> None:
    """Children after a walk through other specs equal those of the last spec alone, owned fields included."""
    fresh = new_namespace(cluster)
    await fleet.start(settings={**SINGLE, "namespaces": f"{namespace},{fresh}"})
    steps = max(len(path) for path in PATHS.values())
    for step in range(steps):
        await asyncio.gather(*(put(api, fleet, namespace, n, path[step]) for n, path in PATHS.items()))
        await fleet.until_quiet(1.0)
    await asyncio.gather(*(put(api, fleet, fresh, n, path[-1]) for n, path in PATHS.items()))
    await fleet.until_quiet(1.0)
    for name in PATHS:
        assert await children(api, fresh, name) == await children(api, namespace, name), name
