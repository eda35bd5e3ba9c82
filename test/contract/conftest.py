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
async def fleet(cluster: Cluster, namespace: str, tmp_path: Path) -> AsyncIterator[Fleet]:
    """Starts controllers that watch the test's namespace under the shipped ServiceAccount."""
    if cluster.kubeconfig not in _prepared:
        install_shipped(cluster)
        _prepared.add(cluster.kubeconfig)
    release_lease(cluster)
    it = Fleet(cluster, namespace, tmp_path)
    yield it
    await it.stop()


@pytest.fixture
def eventually(api: World, namespace: str, fleet: Fleet) -> Eventually:
    """Waits for states of the test's namespace."""
    return Eventually(api, namespace, fleet.tail)
