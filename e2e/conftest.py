"""The cluster under test, whichever it is: one kubeconfig, and two clients that are not ours.

kubectl does what a user does; kubernetes_asyncio looks at what came of it.

Environment:
    KUBECONFIG: the cluster; its current context must be allowed to edit the sample's namespace.
    MODELFLEET_GATEWAY_URL: where the sample's Gateway answers; default http://127.0.0.1:8080 (`make up`).
"""

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from kubernetes_asyncio.config import new_client_from_config

from e2e.objects import Objects
from e2e.sample import NAMESPACE
from hack.cluster.binaries import Binaries
from hack.cluster.cache import Cache, default_root
from hack.cluster.programs import BY_NAME
from test.support.cluster import Kubectl


@pytest.fixture(scope="session")
def kubeconfig() -> Path:
    """How to reach the cluster under test."""
    path = os.environ.get("KUBECONFIG")
    if not path:
        pytest.fail("set KUBECONFIG to the cluster under test, or run `make up` and then `make e2e`")
    return Path(path)


@pytest.fixture(scope="session")
def kubectl(kubeconfig: Path) -> Kubectl:
    """Kubectl for the cluster under test."""
    found = shutil.which("kubectl")
    binary = Path(found) if found else Binaries(Cache(default_root())).get(BY_NAME["kubectl"])
    return Kubectl(binary, kubeconfig)


@pytest.fixture
async def objects(kubeconfig: Path) -> AsyncIterator[Objects]:
    """The sample's namespace, through kubernetes_asyncio."""
    async with await new_client_from_config(str(kubeconfig), persist_config=False) as client:
        yield Objects(client, NAMESPACE)


@pytest.fixture(scope="session")
def gateway() -> str:
    """Base URL of the Gateway."""
    return os.environ.get("MODELFLEET_GATEWAY_URL", "http://127.0.0.1:8080").rstrip("/")
