"""The fault proxy in front of a real API server, with a client that is not ours."""

import pytest

from test.support.audit import AuditLog
from test.support.cluster import Cluster, Kubectl, KubectlError
from test.support.faults import DropResponse, forbidden
from test.support.kinds import CONFIG_MAP
from test.support.proxy import FaultProxy
from test.support.world import World

pytestmark = pytest.mark.contract


@pytest.fixture
def editor(cluster: Cluster, namespace: str) -> str:
    """Token of a service account that may edit the ConfigMaps of its namespace."""
    kubectl, where = cluster.kubectl, f"--namespace={namespace}"
    kubectl("create", "role", "editor", "--verb=*", "--resource=configmaps", where)
    kubectl(
        "create", "rolebinding", "editor", "--role=editor", f"--serviceaccount={namespace}:default", where
    )
    return cluster.token(namespace, "default")


async def test_kubectl_through_the_proxy(cluster: Cluster, api: World, namespace: str, editor: str) -> None:
    """Kubectl works through the proxy as itself: RBAC and audit log see its user, faults reach it."""
    assert cluster.audit_log is not None
    audit = AuditLog(cluster.audit_log)
    mark = audit.mark()
    async with FaultProxy(cluster.server, cluster.ca) as proxy:
        config = cluster.kubeconfig_for(editor, server=proxy.url, ca=proxy.ca, name=f"proxy-{namespace}")
        kubectl = Kubectl(cluster.kubectl_binary, config)

        await kubectl.run("create", "configmap", "one", f"-n={namespace}")
        with pytest.raises(KubectlError, match="cannot list resource"):
            await kubectl.run("get", "nodes")

        dropped = proxy.on(DropResponse(), verb="create", resource="configmaps")
        with pytest.raises(KubectlError):
            await kubectl.run("create", "configmap", "two", f"-n={namespace}")
        assert 1 == dropped.hits
        assert await api.find(CONFIG_MAP, namespace, "two"), "a dropped response is one of a committed write"

        proxy.on(forbidden("me", "list", "configmaps"), verb="list", resource="configmaps")
        with pytest.raises(KubectlError, match="Forbidden"):
            await kubectl.run("get", "configmaps", f"-n={namespace}")

    user = f"system:serviceaccount:{namespace}:default"
    creates = [e for e in audit.since(mark, user=user) if e.verb == "create" and e.resource == "configmaps"]
    assert [("one", 201), ("two", 201)] == [(e.name, e.code) for e in creates]
    assert [creates[0].credential] * 2 == [e.credential for e in creates]
