"""The API server keeps what the compiler sends: no default, notation or dropped value looks like drift."""

from pathlib import Path

import pytest

from modelfleet.api.meta import MANAGER
from modelfleet.kube.projection import owned_digest
from modelfleet.plan import Api
from modelfleet.reconcilers.inference.apis import CHILDREN
from test.support.cluster import Cluster
from test.support.world import World
from test.unit.compiler.golden import SPECS, compiled, load

pytestmark = pytest.mark.contract
KINDS: dict[str, Api] = {api.kind: api for api in CHILDREN}
UNKNOWN_FIELD = "futureField"
"""A field of a trigger that today's KEDA does not have; its CRD refuses it, which is KEDA's right."""


@pytest.fixture
def cluster(control_plane_full: Cluster) -> Cluster:
    """The CRDs of KEDA and the Gateway API are needed."""
    return control_plane_full


@pytest.mark.parametrize("spec", SPECS, ids=lambda path: path.stem)
async def test_applying_twice_changes_nothing(api: World, namespace: str, spec: Path) -> None:
    """What we own of the stored object is the manifest, and a second apply changes nothing (A2, A13)."""
    body = load(spec)
    body["metadata"]["namespace"] = namespace
    for trigger in body["spec"].get("scaling", {}).get("triggers", ()):
        trigger.pop(UNKNOWN_FIELD, None)
    for manifest in compiled(body).at_birth:
        kind = KINDS[manifest.body["kind"]]
        first = await api.apply(kind, dict(manifest.body), manager=MANAGER)
        again = await api.apply(kind, dict(manifest.body), manager=MANAGER)
        assert manifest.digest == owned_digest(again, MANAGER), kind
        assert first["metadata"].get("generation") == again["metadata"].get("generation"), kind
