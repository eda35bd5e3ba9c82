"""The CRDs of KEDA and the Gateway API as their projects publish them, in the versions of `make up`.

Only the kinds that the controller or a test's object uses: each CRD more costs the API server about a
second of its start.
"""

from functools import cache
from pathlib import Path

import yaml

from hack.cluster.cache import Cache, default_root
from hack.cluster.sources import GATEWAY_CRDS, KEDA_MANIFESTS
from test.support.cluster import Cluster
from test.support.kinds import CRD, path_of
from test.support.world import Object

_KINDS = {"ScaledObject", "HTTPRoute", "Gateway"}


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
    names = [f"crd/{crd['metadata']['name']}" for crd in crds]
    text = yaml.safe_dump_all(crds)
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=text)
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=30s", *names)


def remove(cluster: Cluster, crds: tuple[Object, ...]) -> None:
    """Delete CRDs, and with them every object of theirs."""
    for crd in crds:
        cluster.request("DELETE", path_of(CRD, name=crd["metadata"]["name"]))


def _crds(folder: Path) -> tuple[Object, ...]:
    documents = (
        doc for file in sorted(folder.glob("*.yaml")) for doc in yaml.safe_load_all(file.read_text())
    )
    found = (doc for doc in documents if doc and doc["kind"] == "CustomResourceDefinition")
    return tuple(crd for crd in found if crd["spec"]["names"]["kind"] in _KINDS)
