"""manifests/base as the API server sees it; what it promises on paper is in test/unit/manifests."""

import json

import pytest
import yaml

from test.support.cluster import Cluster, Kubectl
from test.support.fleet import BASE, SYSTEM, install_shipped

pytestmark = pytest.mark.contract


@pytest.fixture
def cluster(control_plane_full: Cluster) -> Cluster:
    """What ships includes a policy for the whole cluster, which the plain one's tests don't expect."""
    return control_plane_full


@pytest.fixture(autouse=True)
def installed(cluster: Cluster) -> None:
    """The namespace and the service account are there."""
    install_shipped(cluster)


def test_everything_is_accepted(kubectl: Kubectl) -> None:
    """One `kubectl apply -k` installs the controller: no unknown field, no object the server refuses."""
    output = kubectl("apply", "--server-side", "--dry-run=server", "--validate=strict", "-k", str(BASE))

    listed = yaml.safe_load((BASE / "kustomization.yaml").read_text())["resources"]
    documents = [doc for name in listed for doc in yaml.safe_load_all((BASE / name).read_text())]
    assert len(documents) == len(output.splitlines())


def test_pods_are_admitted(kubectl: Kubectl) -> None:
    """A pod of the Deployment meets the `restricted` standard that the namespace enforces."""
    deployment = yaml.safe_load((BASE / "deployment.yaml").read_text())
    template = deployment["spec"]["template"]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "controller", "namespace": SYSTEM, **template["metadata"]},
        "spec": template["spec"],
    }

    assert "created" in kubectl("create", "--dry-run=server", "-f", "-", input=json.dumps(pod))
