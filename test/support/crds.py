"""CustomResourceDefinitions: ours as committed, those of KEDA and the Gateway API as published.

The versions are those of `make up`. Of foreign CRDs only what the controller uses: each one more costs the
API server about a second of its start.
"""

import time
from functools import cache
from pathlib import Path

import yaml

from hack.cluster.cache import Cache, default_root
from hack.cluster.sources import GATEWAY_CRDS, KEDA_MANIFESTS
from test.support.cluster import Cluster
from test.support.kinds import CRD, path_of
from test.support.waiting import POLL_SECONDS
from test.support.world import Object

COMMITTED = Path(__file__).parents[2] / "manifests" / "crd"
SERVED_SECONDS = 30.0
"""A second on an idle machine: names are checked, then the handler is built."""
_KINDS = {"InferenceService", "ScaledObject", "HTTPRoute", "Gateway"}


def our_crds() -> tuple[Object, ...]:
    """Ours, as committed."""
    return _crds(COMMITTED)


@cache
def keda_crds() -> tuple[Object, ...]:
    """KEDA's ScaledObject."""
    return _crds(KEDA_MANIFESTS.folder(Cache(default_root())) / "config" / "crd" / "bases")


@cache
def gateway_crds() -> tuple[Object, ...]:
    """HTTPRoute and Gateway, from the standard channel."""
    return _crds(GATEWAY_CRDS.folder(Cache(default_root())) / "config" / "crd" / "standard")


def install(cluster: Cluster, crds: tuple[Object, ...]) -> None:
    """Create or update CRDs and wait until the API server serves them."""
    text = yaml.safe_dump_all(crds)
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=text)
    end = time.monotonic() + SERVED_SECONDS
    while missing := [crd["metadata"]["name"] for crd in crds if not _served(cluster, crd)]:
        assert time.monotonic() < end, f"not served after {SERVED_SECONDS:g} s: {missing}"
        time.sleep(POLL_SECONDS)


def remove(cluster: Cluster, crds: tuple[Object, ...]) -> None:
    """Delete CRDs, and with them every object of theirs."""
    for crd in crds:
        cluster.request("DELETE", path_of(CRD, name=crd["metadata"]["name"]))


def _served(cluster: Cluster, crd: Object) -> bool:
    live = cluster.request("GET", path_of(CRD, name=crd["metadata"]["name"]))
    conditions = {c["type"]: c["status"] for c in live.get("status", {}).get("conditions") or ()}
    return conditions.get("Established") == "True"


def _crds(folder: Path) -> tuple[Object, ...]:
    documents = (
        doc for file in sorted(folder.glob("*.yaml")) for doc in yaml.safe_load_all(file.read_text())
    )
    found = (doc for doc in documents if doc and doc["kind"] == "CustomResourceDefinition")
    return tuple(crd for crd in found if crd["spec"]["names"]["kind"] in _KINDS)
