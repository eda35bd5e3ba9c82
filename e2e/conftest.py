"""The cluster under test, whichever it is: everything goes through kubectl and one kubeconfig.

Environment:
    KUBECONFIG: the cluster; its current context must be allowed to edit the sample's namespace.
    MODELFLEET_GATEWAY_URL: where the sample's Gateway answers; default http://127.0.0.1:8080 (`make up`).
"""

import os
import shutil
from pathlib import Path

import pytest

from hack.cluster.binaries import Binaries
from hack.cluster.cache import Cache, default_root
from hack.cluster.programs import BY_NAME
from test.support.cluster import Kubectl


@pytest.fixture(scope="session")
def kubectl() -> Kubectl:
    """Kubectl for the cluster under test."""
    kubeconfig = os.environ.get("KUBECONFIG")
    if not kubeconfig:
        pytest.fail("set KUBECONFIG to the cluster under test, or run `make up` and then `make e2e`")
    found = shutil.which("kubectl")
    binary = Path(found) if found else Binaries(Cache(default_root())).get(BY_NAME["kubectl"])
    return Kubectl(binary, Path(kubeconfig))


@pytest.fixture(scope="session")
def gateway() -> str:
    """Base URL of the Gateway."""
    return os.environ.get("MODELFLEET_GATEWAY_URL", "http://127.0.0.1:8080").rstrip("/")
