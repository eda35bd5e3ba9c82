"""Credentials against a real API server: rotation, refusal, what a 403 says (facts 1.10)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from hack.cluster.certificates import Authority
from modelfleet.kube.auth import Access, load_access
from modelfleet.kube.client import Client
from modelfleet.kube.errors import StatusError, TransportError
from modelfleet.kube.transport import AiohttpTransport
from modelfleet.plan import Ref
from test.support.cluster import Cluster
from test.support.kinds import CONFIG_MAP, DEPLOYMENT

pytestmark = pytest.mark.contract

WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
QUESTION = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


@asynccontextmanager
async def client_for(access: Access) -> AsyncIterator[Client]:
    """A client with these credentials."""
    transport = AiohttpTransport(access)
    try:
        yield Client(transport)
    finally:
        await transport.close()


async def name_of(client: Client) -> str:
    """As whom the server knows us."""
    return str((await client.raw("POST", WHO, body=QUESTION))["status"]["userInfo"]["username"])


@pytest.fixture
def mount(cluster: Cluster, namespace: str, tmp_path: Path) -> Path:
    """A service account volume as kubelet makes it."""
    (tmp_path / "token").write_text(cluster.token(namespace, "default"))
    (tmp_path / "ca.crt").write_text(cluster.ca)
    return tmp_path


@pytest.fixture
def pod_environment(cluster: Cluster) -> dict[str, str]:
    """What kubelet puts into a pod's environment."""
    url = urlsplit(cluster.server)
    return {"KUBERNETES_SERVICE_HOST": str(url.hostname), "KUBERNETES_SERVICE_PORT": str(url.port)}


async def test_a_pod_is_its_service_account(
    mount: Path, pod_environment: dict[str, str], namespace: str
) -> None:
    """In-cluster configuration, end to end."""
    access = await load_access(environ=pod_environment, service_account=mount)
    async with client_for(access) as client:
        assert f"system:serviceaccount:{namespace}:default" == await name_of(client)


async def test_a_token_that_expired_is_read_again_and_the_request_repeated(
    mount: Path, pod_environment: dict[str, str], namespace: str
) -> None:
    """The server answers 401, the file has a new token, the caller notices nothing."""
    good = (mount / "token").read_text()
    (mount / "token").write_text("expired")
    access = await load_access(environ=pod_environment, service_account=mount)
    async with client_for(access) as client:
        await access.grant()
        (mount / "token").write_text(good)
        assert f"system:serviceaccount:{namespace}:default" == await name_of(client)


async def test_a_watch_is_opened_with_the_token_that_came_after_a_401(
    cluster: Cluster, mount: Path, pod_environment: dict[str, str], namespace: str
) -> None:
    """The 403 shows that the new token was recognised: this account may not watch."""
    (mount / "token").write_text("expired")
    access = await load_access(environ=pod_environment, service_account=mount)
    async with client_for(access) as client:
        await access.grant()
        (mount / "token").write_text(cluster.token(namespace, "default"))
        with pytest.raises(StatusError) as caught:
            async with client.watch(CONFIG_MAP, namespace, idle_timeout=10, total_timeout=10):
                raise AssertionError
    assert (403, "Forbidden") == (caught.value.code, caught.value.reason)


async def test_a_403_names_verb_kind_and_service_account(
    mount: Path, pod_environment: dict[str, str], namespace: str
) -> None:
    """The server's own text has all an administrator needs; it is passed on whole."""
    access = await load_access(environ=pod_environment, service_account=mount)
    user = f'User "system:serviceaccount:{namespace}:default"'
    async with client_for(access) as client:
        with pytest.raises(StatusError) as listing:
            await client.list_page(DEPLOYMENT, namespace)
        with pytest.raises(StatusError) as writing:
            await client.create(Ref(CONFIG_MAP, namespace, "c"), {}, manager="m")
    assert [403, 403] == [listing.value.code, writing.value.code]
    assert f'{user} cannot list resource "deployments" in API group "apps"' in listing.value.message
    assert f'{user} cannot create resource "configmaps" in API group ""' in writing.value.message


async def test_a_token_file_of_a_kubeconfig_is_used(cluster: Cluster, mount: Path, namespace: str) -> None:
    """With the authority as data, the way `kubectl config view --raw` prints it."""
    kubeconfig = cluster.kubeconfig_for("unused", name=f"token-file-{namespace}")
    config = yaml.safe_load(kubeconfig.read_text())
    config["users"][0]["user"] = {"tokenFile": str(mount / "token")}
    path = mount / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    async with client_for(await load_access(str(path))) as client:
        assert f"system:serviceaccount:{namespace}:default" == await name_of(client)


async def test_impersonation_is_acted_upon(cluster: Cluster, tmp_path: Path) -> None:
    """`as` and `as-groups` of a kubeconfig, which kubectl honours too."""
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    for user in config["users"]:
        user["user"] |= {"as": "jane", "as-groups": ["a", "b"]}
    path = cluster.kubeconfig.parent / f"{tmp_path.name}.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    async with client_for(await load_access(str(path))) as client:
        answer = await client.raw("POST", WHO, body=QUESTION)
    path.unlink()
    assert ("jane", ["a", "b", "system:authenticated"]) == (
        answer["status"]["userInfo"]["username"],
        answer["status"]["userInfo"]["groups"],
    )


async def test_an_exec_plugins_token_is_accepted(cluster: Cluster, mount: Path, namespace: str) -> None:
    """As cloud providers do it."""
    plugin = mount / "plugin"
    plugin.write_text(
        "#!/bin/sh\n"
        'printf \'{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",'
        f'"status":{{"token":"%s"}}}}\' "$(cat {mount}/token)"\n'
    )
    plugin.chmod(0o755)
    config = yaml.safe_load(cluster.kubeconfig_for("unused", name=f"exec-{namespace}").read_text())
    config["users"][0]["user"] = {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "./plugin",
            "interactiveMode": "IfAvailable",
        }
    }
    path = mount / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    async with client_for(await load_access(str(path))) as client:
        assert f"system:serviceaccount:{namespace}:default" == await name_of(client)


async def test_a_client_certificate_given_as_data_is_accepted(cluster: Cluster, tmp_path: Path) -> None:
    """The key never lies in a file of ours."""
    flat = cluster.kubectl("config", "view", "--raw", "--flatten")
    path = tmp_path / "flat"
    path.write_text(flat)
    assert "client-key-data" in flat
    async with client_for(await load_access(str(path))) as client:
        assert await name_of(client)


async def test_a_foreign_authority_is_refused_before_the_token_is_sent(
    mount: Path, pod_environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A server we can't trust must not get our token."""
    other = Authority(tmp_path_factory.mktemp("pki"), "other")
    (mount / "ca.crt").write_bytes(other.pair.certificate.read_bytes())
    access = await load_access(environ=pod_environment, service_account=mount)
    async with client_for(access) as client:
        with pytest.raises(TransportError, match=r"not trusted .* the pod's service account") as caught:
            await client.raw("GET", "/version")
    assert not caught.value.unknown_outcome
