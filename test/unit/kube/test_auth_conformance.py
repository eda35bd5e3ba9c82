"""Kubeconfigs mean the same to us and to kubernetes_asyncio, except where kubectl differs (facts 1.10).

Both send one request to the same server, which answers with what it saw: no side is taken at its word. The
other side runs in `reference_client.py`.
"""

import asyncio
import json
import os
import ssl
import subprocess
import sys
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from hack.cluster.certificates import Authority
from modelfleet.kube.auth import load_access
from modelfleet.kube.errors import ConfigError, CredentialsError, TransportError
from modelfleet.kube.transport import AiohttpTransport
from test.unit.kube.fake_apiserver import serving

Object = dict[str, Any]

UNTRUSTED: Object = {"failed": "ClientConnectorCertificateError"}
REFUSED: Object = {"failed": "ConfigException"}
V1 = "client.authentication.k8s.io/v1"


def seen(
    authorization: str = "", *, certificate: str = "", path: str = "/version/", user: str = ""
) -> Object:
    """The answer to one request: what it carried."""
    return {"path": path, "authorization": authorization, "certificate": certificate, "as": user}


async def mirror(request: web.Request) -> web.Response:
    """Answer with what arrived."""
    peer = request.get_extra_info("peercert") or {"subject": ()}
    names = dict(part[0] for part in peer["subject"])
    user = request.headers.get("Impersonate-User", "")
    authorization = request.headers.get("Authorization", "")
    return web.json_response(
        seen(authorization, certificate=names.get("commonName", ""), path=request.raw_path, user=user)
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the kubeconfigs of this module name, and they themselves."""
    folder = tmp_path_factory.mktemp("conformance")
    authority = Authority(folder, "ca")
    authority.client("me", "jane")
    authority.server("server", "server", ("127.0.0.1", "mirror.example"))
    assert Authority(folder, "foreign").pair.certificate.exists()
    (folder / "token").write_text("from-file")
    (folder / "token-line").write_text("from-file\n")
    (folder / "plugin").write_text(f"#!/bin/sh\necho '{credential(token='relative')}'\n")
    (folder / "plugin").chmod(0o755)
    return folder


@dataclass(frozen=True)
class Both:
    """The two loaders, and a server for each scheme."""

    folder: Path
    reference: "subprocess.Popen[str]"
    https: str
    http: str

    def write(self, config: Object, name: str = "config") -> Path:
        """A kubeconfig; HTTPS and HTTP in it stand for the servers, @FILE for that file in base64."""
        path = self.folder / name
        path.write_text(yaml.safe_dump(self._filled(config)))
        return path

    def _filled(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self._filled(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._filled(item) for item in value]
        if isinstance(value, str) and value.startswith("@"):
            return b64encode((self.folder / value[1:]).read_bytes()).decode()
        return (
            value.replace("HTTPS", self.https).replace("HTTP", self.http) if isinstance(value, str) else value
        )

    async def ours(self, *kubeconfigs: Path, context: str | None = None) -> Object:
        """What the server sees of us; failures by the names the other one has for them."""
        listed = {"KUBECONFIG": os.pathsep.join(map(str, kubeconfigs))}
        try:
            access = await load_access(context=context, environ=environ(self.folder) | listed)
            async with closing(AiohttpTransport(access)) as transport:
                return dict(json.loads((await transport.request("GET", "/version/", timeout=10)).body))
        except (ConfigError, CredentialsError):
            return REFUSED
        except TransportError as error:
            return UNTRUSTED if "its certificate is not trusted" in str(error) else {"failed": str(error)}

    async def theirs(self, *kubeconfigs: Path, context: str | None = None) -> Object:
        """What the server sees of kubernetes_asyncio."""
        question = {"kubeconfig": os.pathsep.join(map(str, kubeconfigs)), "context": context}
        return await asyncio.to_thread(self._ask, json.dumps(question))

    def _ask(self, question: str) -> Object:
        assert self.reference.stdin is not None
        assert self.reference.stdout is not None
        self.reference.stdin.write(question + "\n")
        self.reference.stdin.flush()
        return dict(json.loads(self.reference.stdout.readline()))


@asynccontextmanager
async def closing(transport: AiohttpTransport) -> AsyncIterator[AiohttpTransport]:
    """Close it afterwards."""
    try:
        yield transport
    finally:
        await transport.close()


def environ(home: Path) -> dict[str, str]:
    """No proxy, no KUBECONFIG, no ~/.kube and no ~/.netrc of whoever runs the tests."""
    return {"HOME": str(home), "PATH": "/usr/bin:/bin"}


@pytest.fixture(scope="module")
def reference(folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """kubernetes_asyncio, waiting for questions."""
    program = Path(__file__).with_name("reference_client.py")
    with subprocess.Popen(
        [sys.executable, "-I", "-W", "error", str(program)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environ(folder),
    ) as process:
        yield process
    assert 0 == process.returncode


@pytest.fixture
async def both(folder: Path, reference: "subprocess.Popen[str]") -> AsyncIterator[Both]:
    """The two, and servers that look at them."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(folder / "ca.crt"))
    tls.load_cert_chain(folder / "server.crt", folder / "server.key")
    tls.verify_mode = ssl.CERT_OPTIONAL
    async with serving(mirror, tls=tls) as https, serving(mirror) as http:
        yield Both(folder, reference, https.url, http.url)


def credential(**status: str) -> str:
    """What an exec plugin prints."""
    return json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": status})


def plugin(**more: Any) -> Object:
    """A user whose plugin prints the variable ANSWER."""
    command = {"command": "sh", "args": ["-c", 'printf %s "$ANSWER"'], "interactiveMode": "Never"}
    return {"exec": {"apiVersion": V1, **command, **more}}


def printing(answer: str) -> Object:
    """A user whose plugin prints this."""
    return plugin(env=[{"name": "ANSWER", "value": answer}])


def config(
    cluster: Object | None = None, user: Object | None = None, *, of: str = "u", **context: str
) -> Object:
    """A kubeconfig of one context; by default it trusts the server and has no credentials."""
    trusted = {"server": "HTTPS", "certificate-authority": "ca.crt"}
    return {
        "clusters": [{"name": "c", "cluster": trusted if cluster is None else cluster}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": of} | context}],
        "current-context": "x",
    }


TRUST = {"certificate-authority": "ca.crt"}
BASIC = "Basic " + b64encode(b"jane:pass").decode()
TOKEN = {"token": "fixed"}
BEARER = seen("Bearer fixed")

AGREED: dict[str, tuple[Object, Object]] = {
    "nobody": (config(), seen()),
    "token": (config(user=TOKEN), BEARER),
    "token file": (config(user={"tokenFile": "token"}), seen("Bearer from-file")),
    "password": (config(user={"username": "jane", "password": "pass"}), seen(BASIC)),
    "certificate files": (
        config(user={"client-certificate": "me.crt", "client-key": "me.key"}),
        seen(certificate="jane"),
    ),
    "certificate data": (
        config(user={"client-certificate-data": "@me.crt", "client-key-data": "@me.key"}),
        seen(certificate="jane"),
    ),
    "certificate data wins over files": (
        config(
            user={
                "client-certificate": "missing.crt",
                "client-certificate-data": "@me.crt",
                "client-key": "missing.key",
                "client-key-data": "@me.key",
            }
        ),
        seen(certificate="jane"),
    ),
    "certificate and token": (
        config(user={"client-certificate": "me.crt", "client-key": "me.key", **TOKEN}),
        seen("Bearer fixed", certificate="jane"),
    ),
    "plugin with a token": (config(user=printing(credential(token="t"))), seen("Bearer t")),
    "plugin without credentials": (config(user=printing("{}")), REFUSED),
    "plugin that answers in another version": (
        config(
            user=plugin(apiVersion=f"{V1}beta1", env=[{"name": "ANSWER", "value": credential(token="t")}])
        ),
        REFUSED,
    ),
    "authority data": (config({"server": "HTTPS", "certificate-authority-data": "@ca.crt"}, TOKEN), BEARER),
    "authority data wins over a file": (
        config(
            {"server": "HTTPS", "certificate-authority-data": "@ca.crt", "certificate-authority": "no"}, TOKEN
        ),
        BEARER,
    ),
    "authority of the system": (config({"server": "HTTPS"}, TOKEN), UNTRUSTED),
    "foreign authority": (
        config({"server": "HTTPS", "certificate-authority": "foreign.crt"}, TOKEN),
        UNTRUSTED,
    ),
    "no verification": (config({"server": "HTTPS", "insecure-skip-tls-verify": True}, TOKEN), BEARER),
    "verification said to be on": (
        config({"server": "HTTPS", "insecure-skip-tls-verify": False}, TOKEN),
        UNTRUSTED,
    ),
    "another name of the server": (
        config({"server": "HTTPS", "tls-server-name": "mirror.example", **TRUST}, TOKEN),
        BEARER,
    ),
    "a name it does not have": (
        config({"server": "HTTPS", "tls-server-name": "other.example", **TRUST}, TOKEN),
        UNTRUSTED,
    ),
    "server below a path": (
        config({"server": "HTTPS/k8s/clusters/c/", **TRUST}, TOKEN),
        seen("Bearer fixed", path="/k8s/clusters/c/version/"),
    ),
    "plain http": (config({"server": "HTTP"}, TOKEN), BEARER),
    "proxy": (
        config({"server": "http://k8s.example", "proxy-url": "HTTP"}, TOKEN),
        seen("Bearer fixed", path="http://k8s.example/version/"),
    ),
    "namespace": (config(user=TOKEN, namespace="models"), BEARER),
    "missing authority file": (config({"server": "HTTPS", "certificate-authority": "none.crt"}), REFUSED),
}


@pytest.mark.parametrize(("kubeconfig", "expected"), AGREED.values(), ids=AGREED)
async def test_one_context_means_the_same(both: Both, kubeconfig: Object, expected: Object) -> None:
    """Server, trust, client certificate and Authorization header of a request are the same."""
    path = both.write(kubeconfig)
    assert (expected, expected) == (await both.ours(path), await both.theirs(path))


async def test_a_plugins_certificate_is_presented(both: Both, folder: Path) -> None:
    """client-certificate-data of an ExecCredential is PEM text, not base64."""
    certificate, key = (folder / "me.crt").read_text(), (folder / "me.key").read_text()
    answer = credential(clientCertificateData=certificate, clientKeyData=key)
    path = both.write(config(user=printing(answer)))
    expected = seen(certificate="jane")
    assert (expected, expected) == (await both.ours(path), await both.theirs(path))


def several(current: str | None, *names: str) -> Object:
    """A kubeconfig of contexts "one" and so on, each with its own path and token."""
    entries = [(name, {"server": f"HTTPS/{name}", **TRUST}, {"token": name}) for name in names]
    return {
        "clusters": [{"name": name, "cluster": cluster} for name, cluster, _ in entries],
        "users": [{"name": name, "user": user} for name, _, user in entries],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}} for name in names],
    } | ({} if current is None else {"current-context": current})


ONE, TWO = (seen(f"Bearer {name}", path=f"/{name}/version/") for name in ("one", "two"))


@pytest.mark.parametrize(
    ("current", "wanted", "expected"),
    [
        ("one", None, ONE),
        ("two", None, TWO),
        ("one", "two", TWO),
        (None, "one", ONE),
        (None, None, REFUSED),
        ("gone", None, REFUSED),
        ("one", "gone", REFUSED),
        ("gone", "two", TWO),
    ],
)
async def test_the_same_context_is_chosen(
    both: Both, current: str | None, wanted: str | None, expected: Object
) -> None:
    """--context, else current-context, else none at all."""
    path = both.write(several(current, "one", "two"))
    assert (expected, expected) == (
        await both.ours(path, context=wanted),
        await both.theirs(path, context=wanted),
    )


async def test_the_first_file_to_define_a_name_wins(both: Both) -> None:
    """Of two clusters with one name that of the first file counts; a missing file is no error."""
    first = both.write(several("one", "one"), "first")
    again = several("one", "one", "two")
    again["clusters"][0]["cluster"]["server"] = "https://not.used"
    second = both.write(again, "second")
    files = (both.folder / "missing", first, second)
    assert (ONE, ONE) == (await both.ours(*files), await both.theirs(*files))
    assert (TWO, TWO) == (await both.ours(*files, context="two"), await both.theirs(*files, context="two"))


async def test_the_first_current_context_wins(both: Both) -> None:
    """Unlike in kubernetes_asyncio, where the last one does: kubectl takes the first file to set a value."""
    files = both.write(several("one", "one"), "first"), both.write(several("two", "two"), "second")
    assert (ONE, TWO) == (await both.ours(*files), await both.theirs(*files))


async def test_an_empty_file_is_no_mistake(both: Both) -> None:
    """Unlike in kubernetes_asyncio: kubectl passes over a file that was only touched."""
    (both.folder / "empty").write_text("")
    files = both.folder / "empty", both.write(several("one", "one"), "second")
    assert (ONE, {"failed": "TypeError"}) == (await both.ours(*files), await both.theirs(*files))


BOTH_TOKENS = {"token": "fixed", "tokenFile": "token"}

DIFFERENT: dict[str, tuple[Object, Object, Object]] = {
    # client-go asks the file before each request and falls back to the token
    "token file wins over token": (config(user=BOTH_TOKENS), seen("Bearer from-file"), BEARER),
    # client-go trims it; editors and `kubectl create token > FILE` end the line
    "token file that ends in a newline": (
        config(user={"tokenFile": "token-line"}),
        seen("Bearer from-file"),
        {"failed": "ValueError"},
    ),
    # client-go's plugin leaves a request alone that has an Authorization header already
    "token wins over a plugin": (
        config(user=printing(credential(token="t")) | TOKEN),
        BEARER,
        seen("Bearer t"),
    ),
    # client-go resolves it against the kubeconfig, so that it works from any directory
    "plugin beside the kubeconfig": (
        config(user={"exec": {"apiVersion": V1, "command": "./plugin", "interactiveMode": "Never"}}),
        seen("Bearer relative"),
        {"failed": "FileNotFoundError"},
    ),
    # dropping it would act with more rights than the user asked for
    "impersonation": (config(user=TOKEN | {"as": "john"}), seen("Bearer fixed", user="john"), BEARER),
    # `kubectl config set-context` makes these
    "context of no user": (config(of=""), seen(), {"failed": "TypeError"}),
}


@pytest.mark.parametrize(("kubeconfig", "ours", "theirs"), DIFFERENT.values(), ids=DIFFERENT)
async def test_where_we_follow_kubectl_instead(
    both: Both, kubeconfig: Object, ours: Object, theirs: Object
) -> None:
    """Each difference is on purpose (why: beside it); the day the other side changes, this says so."""
    path = both.write(kubeconfig)
    assert (ours, theirs) == (await both.ours(path), await both.theirs(path))
