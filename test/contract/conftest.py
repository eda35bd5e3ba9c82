"""Fixtures of the tests that run the controller as a process."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from test.support.cluster import Cluster
from test.support.eventually import Eventually
from test.support.fleet import Fleet, install_shipped, release_lease
from test.support.world import World

_prepared: set[Path] = set()


@pytest.fixture
def shipped(cluster: Cluster) -> None:
    """What ships around the controller is installed, once for each control plane."""
    if cluster.kubeconfig not in _prepared:
        install_shipped(cluster)
        _prepared.add(cluster.kubeconfig)


@pytest.fixture
async def fleet(shipped: None, cluster: Cluster, namespace: str, tmp_path: Path) -> AsyncIterator[Fleet]:  # noqa: ARG001  # order
    """Starts controllers that watch the test's namespace under the shipped ServiceAccount."""
    release_lease(cluster)
    it = Fleet(cluster, namespace, tmp_path)
    yield it
    await it.stop()


@pytest.fixture
def eventually(api: World, namespace: str, fleet: Fleet) -> Eventually:
    """Waits for states of the test's namespace."""
    return Eventually(api, namespace, fleet.tail)
