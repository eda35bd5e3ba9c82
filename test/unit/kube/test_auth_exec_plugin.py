"""Exec plugins: run when needed and only then, without a terminal, without leaking (facts 1.10)."""

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from modelfleet.kube import exec_plugin
from modelfleet.kube.credentials import Credential
from modelfleet.kube.errors import ConfigError, CredentialsError
from modelfleet.kube.exec_plugin import EXPIRY_MARGIN, MIN_AGE_SECONDS, ExecPlugin
from modelfleet.kube.kubeconfig import Cluster, EnvVar, Exec, Extension

V1 = "client.authentication.k8s.io/v1"
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


class FakePlugin:
    """A shell script that counts its runs, keeps what it was told, and prints what it is asked to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "plugin"
        self.now = NOON
        self.says({"token": "t1"})

    def script(self, text: str) -> None:
        """Replace the program."""
        self.path.write_text(f"#!/bin/sh\necho run >> {self.folder}/runs\n{text}\n")
        self.path.chmod(0o755)

    def says(self, status: dict[str, Any], *, version: str = V1) -> None:
        """Let it print this status from now on."""
        answer = json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})
        (self.folder / "answer").write_text(answer)
        self.script(f'printf %s "$KUBERNETES_EXEC_INFO" > {self.folder}/info\ncat {self.folder}/answer')

    @property
    def runs(self) -> int:
        """How often it ran."""
        log = self.folder / "runs"
        return len(log.read_text().splitlines()) if log.exists() else 0

    def build(self, **settings: Any) -> ExecPlugin:
        """The plugin as a kubeconfig names it."""
        cluster = settings.pop("cluster", Cluster(server="https://s"))
        config = Exec(**({"command": "./plugin", "api_version": V1} | settings))
        return ExecPlugin(
            config,
            base=self.folder,
            cluster=cluster,
            cluster_dir=self.folder,
            environ={"PATH": "/usr/bin:/bin"},
            now=lambda: self.now,
        )


@pytest.fixture
def plugin(tmp_path: Path) -> FakePlugin:
    """A plugin that prints the token "t1"."""
    return FakePlugin(tmp_path)


@pytest.fixture
def age(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Makes the last run count as long ago."""
    return lambda: monkeypatch.setattr(exec_plugin, "MIN_AGE_SECONDS", -1.0)


def token(credential: Credential) -> str:
    """The token in a credential."""
    return dict(credential.headers)["Authorization"].removeprefix("Bearer ")


def at(moment: datetime) -> str:
    """A timestamp as a plugin prints it."""
    return moment.isoformat().replace("+00:00", "Z")


async def test_credentials_without_an_expiry_are_kept(plugin: FakePlugin) -> None:
    """One run serves all requests until the server refuses them."""
    source = plugin.build()
    credentials = await asyncio.gather(*(source.current() for _ in range(5)))
    assert {"t1"} == {token(credential) for credential in credentials}
    assert 1 == plugin.runs


async def test_credentials_are_replaced_before_they_expire(
    plugin: FakePlugin, age: Callable[[], None]
) -> None:
    """The margin is the time a request may take."""
    expiry = NOON + timedelta(minutes=15)
    plugin.says({"token": "t1", "expirationTimestamp": at(expiry)})
    source = plugin.build()
    await source.current()
    plugin.says({"token": "t2"})
    age()
    plugin.now = expiry - EXPIRY_MARGIN - timedelta(seconds=1)
    assert "t1" == token(await source.current())
    plugin.now = expiry - EXPIRY_MARGIN + timedelta(seconds=1)
    assert "t2" == token(await source.current())
    assert 2 == plugin.runs


async def test_credentials_that_are_born_old_do_not_run_the_plugin_each_time(plugin: FakePlugin) -> None:
    """Plugins have caches of their own and hand out what is left of it."""
    plugin.says({"token": "t1", "expirationTimestamp": at(NOON + timedelta(seconds=5))})
    source = plugin.build()
    assert ["t1", "t1"] == [token(await source.current()), token(await source.current())]
    assert 1 == plugin.runs


async def test_a_refusal_runs_the_plugin_once_for_all(plugin: FakePlugin, age: Callable[[], None]) -> None:
    """Many requests in flight are refused together; the first one's refresh serves the others."""
    source = plugin.build()
    refused = await source.current()
    plugin.says({"token": "t2"})
    age()
    renewed = await asyncio.gather(*(source.renew(refused) for _ in range(5)))
    assert ({"t2"}, 2) == ({token(credential) for credential in renewed}, plugin.runs)


async def test_credentials_refused_when_just_made_are_not_made_again(plugin: FakePlugin) -> None:
    """An account the server doesn't know must not run the plugin for each request."""
    source = plugin.build()
    refused = await source.current()
    assert refused is await source.renew(refused)
    assert 1 == plugin.runs
    assert MIN_AGE_SECONDS > 0


async def test_a_failing_plugin_leaves_valid_credentials_in_use(
    plugin: FakePlugin, age: Callable[[], None]
) -> None:
    """Until they expire; then the plugin's complaint is the error."""
    expiry = NOON + timedelta(minutes=15)
    plugin.says({"token": "t1", "expirationTimestamp": at(expiry)})
    source = plugin.build()
    await source.current()
    plugin.script("echo 'log in first' >&2; exit 3")
    age()
    plugin.now = expiry - timedelta(seconds=1)
    assert "t1" == token(await source.current())
    plugin.now = expiry
    with pytest.raises(CredentialsError, match="exited with 3: log in first; run it by hand"):
        await source.current()


async def test_a_failure_is_remembered_for_a_moment(plugin: FakePlugin) -> None:
    """Requests that fail together run the plugin once."""
    plugin.script("exit 1")
    source = plugin.build()
    for _ in range(3):
        with pytest.raises(CredentialsError, match="exited with 1: no message"):
            await source.current()
    assert 1 == plugin.runs


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo hello", "printed no ExecCredential"),
        ('echo \'{"apiVersion":"v1","kind":"ExecCredential"}\'', "printed no ExecCredential"),
        (
            f'echo \'{{"apiVersion":"{V1}beta1","kind":"ExecCredential","status":{{"token":"s3cret"}}}}\'',
            "answered in client.authentication.k8s.io/v1beta1, not client.authentication.k8s.io/v1",
        ),
        ("cat nothing_here_at_all", "exited with 1"),
        ("kill -9 $$", "exited with -9"),
        (f"echo {'s3cret' * 8} >&2; exit 1", r"exited with 1: \[cut\]"),
    ],
)
async def test_what_goes_wrong_is_named_and_nothing_secret_is_shown(
    plugin: FakePlugin, script: str, message: str
) -> None:
    """The text names the plugin and the next step."""
    plugin.script(script)
    with pytest.raises(CredentialsError, match=message) as caught:
        await plugin.build().current()
    assert "exec plugin './plugin'" in str(caught.value)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ({}, "neither a token nor a certificate"),
        ({"clientCertificateData": "pem"}, "neither a token nor a certificate with its key"),
        ({"token": "a\nb"}, "a token that can't be sent"),
        ({"token": "t", "expirationTimestamp": "2030-01-01T00:00:00"}, "printed no ExecCredential"),
    ],
)
async def test_incomplete_credentials_are_refused(
    plugin: FakePlugin, status: dict[str, Any], message: str
) -> None:
    """Half a pair or a time without a zone would fail later and less clearly."""
    plugin.says(status)
    with pytest.raises(CredentialsError, match=message):
        await plugin.build().current()


async def test_a_certificate_comes_as_identity(plugin: FakePlugin) -> None:
    """Plugins may hand out a client certificate, alone or beside a token."""
    plugin.says({"clientCertificateData": "CERT", "clientKeyData": "KEY"})
    credential = await plugin.build().current()
    assert ((), b"CERT", b"KEY") == (
        credential.headers,
        credential.identity and credential.identity.certificate,
        credential.identity and credential.identity.key,
    )


async def test_a_plugin_that_hangs_is_killed_with_its_children(
    plugin: FakePlugin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A child that keeps the pipes open must not keep us."""
    monkeypatch.setattr(exec_plugin, "RUN_SECONDS", 0.2)
    plugin.script("sleep 600")
    with pytest.raises(CredentialsError, match="did not finish"):
        await plugin.build().current()


async def test_the_plugin_is_told_version_cluster_and_that_nobody_types(
    plugin: FakePlugin, tmp_path: Path
) -> None:
    """KUBERNETES_EXEC_INFO as KEP-541 wants it; the authority's file is read for it."""
    (tmp_path / "ca.crt").write_bytes(b"PEM")
    cluster = Cluster(
        server="https://s",
        certificate_authority="ca.crt",
        tls_server_name="name",
        extensions=[Extension("client.authentication.k8s.io/exec", {"audience": "a"}), Extension("other", 1)],
    )
    await plugin.build(cluster=cluster, provide_cluster_info=True).current()
    assert {
        "apiVersion": V1,
        "kind": "ExecCredential",
        "spec": {
            "interactive": False,
            "cluster": {
                "server": "https://s",
                "certificate-authority-data": "UEVN",
                "tls-server-name": "name",
                "config": {"audience": "a"},
            },
        },
    } == json.loads((tmp_path / "info").read_text())


async def test_the_plugin_gets_its_arguments_and_environment(plugin: FakePlugin, tmp_path: Path) -> None:
    """`args` and `env` of the kubeconfig, on top of our own environment."""
    plugin.script(f'echo "$1 $2 $EXTRA" > {tmp_path}/got; exit 1')
    with pytest.raises(CredentialsError):
        await plugin.build(args=["a b", "c"], env=[EnvVar("EXTRA", "x")]).current()
    assert "a b c x\n" == (tmp_path / "got").read_text()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"command": "./missing"}, "is not there: install it or correct its path"),
        ({"command": "missing", "install_hint": "apt install it\n"}, "is not there: apt install it"),
        (
            {"api_version": "client.authentication.k8s.io/v1alpha1"},
            "wants client.authentication.k8s.io/v1alpha1",
        ),
        ({"interactive_mode": "Always"}, "needs a terminal"),
    ],
)
def test_a_plugin_that_can_never_work_is_a_config_error(
    plugin: FakePlugin, settings: dict[str, Any], message: str
) -> None:
    """Found when the configuration is loaded, not at the first request."""
    with pytest.raises(ConfigError, match=message):
        plugin.build(**settings)


def test_a_command_without_a_slash_is_looked_up_in_path(plugin: FakePlugin) -> None:
    """As kubectl does; the kubeconfig's directory doesn't count then."""
    plugin.build(command="sh")
    with pytest.raises(ConfigError, match="'plugin' of the kubeconfig is not there"):
        plugin.build(command="plugin")
