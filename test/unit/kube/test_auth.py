"""Which configuration counts, and what a request goes out with (facts 1.10)."""

from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.cluster.certificates import Authority
from modelfleet.kube.auth import Access, Grant, load_access
from modelfleet.kube.errors import ConfigError


def kubeconfig(
    path: Path, server: str, user: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None
) -> Path:
    """A kubeconfig with one context "x"."""
    config = {
        "clusters": [{"name": "c", "cluster": {"server": server, **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(config))
    return path


@pytest.fixture
def mount(tmp_path: Path) -> Path:
    """A pod's service account volume."""
    folder = tmp_path / "serviceaccount"
    folder.mkdir()
    (folder / "token").write_text("pod-token")
    (folder / "ca.crt").write_bytes(Authority(tmp_path / "pki", "ca").pair.certificate.read_bytes())
    return folder


POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443"}


@pytest.mark.parametrize(
    ("flag", "variable", "pod", "context", "expected"),
    [
        (True, True, True, None, "https://flag"),
        (False, True, True, None, "https://variable"),
        (False, False, True, None, "https://10.96.0.1:443"),
        (False, False, True, "x", "https://home"),
        (False, False, False, None, "https://home"),
    ],
)
async def test_the_most_explicit_configuration_wins(
    tmp_path: Path,
    mount: Path,
    *,
    flag: bool,
    variable: bool,
    pod: bool,
    context: str | None,
    expected: str,
) -> None:
    """--kubeconfig > $KUBECONFIG > service account > ~/.kube/config; a context is a kubeconfig's."""
    kubeconfig(tmp_path / ".kube" / "config", "https://home")
    environ = {"HOME": str(tmp_path)} | (POD if pod else {})
    if variable:
        environ["KUBECONFIG"] = f"{tmp_path}/missing:{kubeconfig(tmp_path / 'variable', 'https://variable')}"
    path = str(kubeconfig(tmp_path / "flag", "https://flag")) if flag else None
    access = await load_access(path, context, environ=environ, service_account=mount)
    assert expected == access.server


async def test_a_pod_uses_its_token_and_authority(mount: Path) -> None:
    """The token file is read when it is needed."""
    access = await load_access(environ=POD | {"HTTPS_PROXY": "http://p:1"}, service_account=mount)
    grant = await access.grant()
    assert (("Authorization", "Bearer pod-token"),) == grant.headers
    assert grant.tls is not None
    assert ("the pod's service account", "http://p:1") == (access.source, access.proxy)


async def test_an_ipv6_service_address_gets_brackets(mount: Path) -> None:
    """Single-stack IPv6 clusters put the bare address in the environment."""
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT_HTTPS": "6443"}
    assert "https://[fd00::1]:6443" == (await load_access(environ=environ, service_account=mount)).server


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({}, "neither --kubeconfig nor KUBECONFIG is set, this is no pod and"),
        (POD, "serviceaccount/token does not exist and"),
    ],
)
async def test_without_any_configuration_all_that_was_tried_is_named(
    tmp_path: Path, environ: dict[str, str], message: str
) -> None:
    """And the next step is named too."""
    with pytest.raises(ConfigError, match=message) as caught:
        await load_access(
            environ={"HOME": str(tmp_path), **environ}, service_account=tmp_path / "serviceaccount"
        )
    assert f"{tmp_path}/.kube/config does not exist; pass --kubeconfig PATH" in str(caught.value)


@pytest.mark.parametrize("server", ["k8s.example:6443", "ftp://x", "https://"])
async def test_an_address_that_is_none_is_refused(tmp_path: Path, server: str) -> None:
    """Kubectl would take a bare name for http; a token must not go over that by accident."""
    with pytest.raises(ConfigError, match="is no address of an API server; use https://host:port"):
        await load_access(str(kubeconfig(tmp_path / "config", server)), environ={})


async def grant_for(tmp_path: Path, user: dict[str, Any]) -> Grant:
    """What a request by this user of a kubeconfig goes out with."""
    path = kubeconfig(tmp_path / "config", "https://s", user)
    return await (await load_access(str(path), environ={"PATH": "/bin:/usr/bin"})).grant()


PRINTED = '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"exec"}}'


@pytest.mark.parametrize(
    ("user", "headers"),
    [
        ({}, {}),
        ({"token": "fixed"}, {"Authorization": "Bearer fixed"}),
        ({"token": "fixed", "tokenFile": "token"}, {"Authorization": "Bearer from-file"}),
        ({"username": "a", "password": "b"}, {"Authorization": "Basic " + b64encode(b"a:b").decode()}),
        (
            {
                "exec": {
                    "apiVersion": "client.authentication.k8s.io/v1",
                    "command": "sh",
                    "args": ["-c", f"echo '{PRINTED}'"],
                    "env": None,
                    "interactiveMode": "Never",
                }
            },
            {"Authorization": "Bearer exec"},
        ),
        (
            {"token": "t", "as": "jane", "as-uid": "7", "as-user-extra": {"a/b": ["c"]}},
            {
                "Authorization": "Bearer t",
                "Impersonate-User": "jane",
                "Impersonate-Uid": "7",
                "Impersonate-Extra-a%2Fb": "c",
            },
        ),
    ],
)
async def test_each_kind_of_credential_becomes_headers(
    tmp_path: Path, user: dict[str, Any], headers: dict[str, str]
) -> None:
    """Token files win over tokens; impersonation is never dropped."""
    (tmp_path / "token").write_text("from-file")
    assert headers == dict((await grant_for(tmp_path, user)).headers)


async def test_every_impersonated_group_has_its_header(tmp_path: Path) -> None:
    """The server reads repeated headers."""
    grant = await grant_for(tmp_path, {"as": "jane", "as-groups": ["a", "b"]})
    assert ["a", "b"] == [value for name, value in grant.headers if name == "Impersonate-Group"]


@pytest.mark.parametrize(
    ("user", "message"),
    [
        ({"auth-provider": {"name": "oidc"}}, "uses an auth-provider, .* use one of those"),
        ({"token": "a\nb"}, "the token of context 'x' can't be sent"),
        ({"client-certificate": "only.crt"}, "go together"),
    ],
)
async def test_credentials_that_can_never_work_are_refused(
    tmp_path: Path, user: dict[str, Any], message: str
) -> None:
    """Ignoring them would act as nobody, or as somebody else."""
    with pytest.raises(ConfigError, match=message):
        await grant_for(tmp_path, user)


async def test_cluster_settings_are_honoured(tmp_path: Path) -> None:
    """tls-server-name and proxy-url reach the transport."""
    path = kubeconfig(
        tmp_path / "config",
        "https://s/prefix/",
        cluster={"tls-server-name": "name", "proxy-url": "http://p:1", "insecure-skip-tls-verify": True},
    )
    access = await load_access(str(path), environ={})
    assert ("https://s/prefix", "name", "http://p:1") == (access.server, access.server_name, access.proxy)


async def test_no_repr_shows_a_secret(tmp_path: Path) -> None:
    """Access and grants are passed around; none may land in a log."""
    path = kubeconfig(tmp_path / "config", "https://s", {"token": "s3cret"})
    access = await load_access(str(path), environ={})
    assert "s3cret" not in repr((access, await access.grant()))


async def test_the_host_of_an_address_has_no_password() -> None:
    """It labels metrics and messages."""
    assert "h:1" == Access("https://user:s3cret@h:1").host
