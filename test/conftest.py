"""Fixtures of the contract tests.

`cluster` is what a test talks to; a module that needs more than etcd and an API server overrides that one
fixture, and `namespace`, `kubectl` and `api` follow.
"""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Iterator

import pytest

from test.support.cluster import Cluster, Kubectl
from test.support.controlplanes import Running, full_control_plane, plain_control_plane
from test.support.kinds import NAMESPACE, SERVICE_ACCOUNT, path_of
from test.support.world import World


def pytest_configure() -> None:
    """Keep looptime from making an event loop, closed by nobody, for each synchronous test (Python 3.11)."""
    asyncio.set_event_loop(None)


@pytest.fixture(scope="session")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Etcd and kube-apiserver with our CRDs; shared by the whole session."""
    with plain_control_plane(tmp_path_factory.mktemp("plain")) as running:
        yield running.cluster


@pytest.fixture(scope="session")
def control_plane_full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The same with controller-manager, scheduler, KWOK's nodes and the CRDs of KEDA and the Gateway API."""
    with full_control_plane(tmp_path_factory.mktemp("full")) as running:
        yield running.cluster


@pytest.fixture(scope="session")
def control_plane_private(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Like `control_plane`, for tests that restart the API server or change what all namespaces share.

    Each of them leaves it as it found it.
    """
    with plain_control_plane(tmp_path_factory.mktemp("private")) as running:
        yield running


@pytest.fixture
def cluster(control_plane: Cluster) -> Cluster:
    """The control plane of this test."""
    return control_plane


@pytest.fixture
def kubectl(cluster: Cluster) -> Kubectl:
    """Kubectl as administrator: `kubectl("get", "pods", input=...)` returns its standard output."""
    return cluster.kubectl


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A fresh namespace with the service account `default`, deleted after the test."""
    name = new_namespace(cluster)
    yield name
    with contextlib.suppress(AssertionError):  # the test may have deleted it
        cluster.request("DELETE", path_of(NAMESPACE, name=name))


@pytest.fixture
async def api(cluster: Cluster) -> AsyncIterator[World]:
    """The world as administrator."""
    async with World(cluster) as world:
        yield world


def new_namespace(cluster: Cluster, prefix: str = "t") -> str:
    """Create a namespace with its default service account (there may be no controller-manager to do it)."""
    name = f"{prefix}-{uuid.uuid4().hex[:8]}"
    cluster.request("POST", path_of(NAMESPACE), {"metadata": {"name": name}})
    with contextlib.suppress(AssertionError):  # the controller-manager was first
        cluster.request("POST", path_of(SERVICE_ACCOUNT, name), {"metadata": {"name": "default"}})
    return name
