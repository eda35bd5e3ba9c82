"""A running control plane as tests see it: one kubeconfig, one kubectl, one audit log.

Everything is derived from the kubeconfig, so that the same code serves a control plane of
`hack.cluster`, the fault proxy in front of it and a cluster somebody else made.
"""

import asyncio
import base64
import http.client
import json
import ssl
import subprocess
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml


class KubectlError(AssertionError):
    """kubectl exited non-zero; the text is what it wrote to stderr."""


@dataclass(frozen=True)
class Kubectl:
    """Runs kubectl with one kubeconfig and gives back its standard output."""

    binary: Path
    kubeconfig: Path

    def __call__(self, *args: str, input: str | Mapping[str, Any] | None = None) -> str:  # noqa: A002  # as subprocess.run
        """Run to the end; `input` goes to stdin (mappings as JSON). Raises `KubectlError`."""
        done = subprocess.run(
            self._command(args), input=_text(input), capture_output=True, text=True, timeout=60, check=False
        )
        return self._result(args, done.returncode, done.stdout, done.stderr)

    async def run(self, *args: str, input: str | Mapping[str, Any] | None = None) -> str:  # noqa: A002  # as above
        """The same without blocking the event loop, which may serve the proxy kubectl talks to."""
        process = await asyncio.create_subprocess_exec(
            *self._command(args),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            out, err = await asyncio.wait_for(process.communicate(_text(input).encode()), timeout=60)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return self._result(args, process.returncode or 0, out.decode(), err.decode())

    def _command(self, args: tuple[str, ...]) -> list[str]:
        cache = self.kubeconfig.parent / "kubectl-cache"  # ~/.kube/cache would keep an entry for each port
        return [str(self.binary), f"--kubeconfig={self.kubeconfig}", f"--cache-dir={cache}", *args]

    @staticmethod
    def _result(args: tuple[str, ...], code: int, out: str, err: str) -> str:
        if code:
            raise KubectlError(f"kubectl {' '.join(args)}: exit {code}: {err.strip()} {out.strip()}")
        return out


@dataclass(frozen=True)
class Cluster:
    """One API server, reached as its administrator."""

    kubeconfig: Path
    kubectl_binary: Path
    audit_log: Path | None = None

    @property
    def kubectl(self) -> Kubectl:
        """Kubectl as administrator."""
        return Kubectl(self.kubectl_binary, self.kubeconfig)

    @cached_property
    def _config(self) -> tuple[dict[str, Any], dict[str, Any]]:
        config = yaml.safe_load(self.kubeconfig.read_text())
        context = next(c["context"] for c in config["contexts"] if c["name"] == config["current-context"])
        cluster = next(c["cluster"] for c in config["clusters"] if c["name"] == context["cluster"])
        user = next(u["user"] for u in config["users"] if u["name"] == context["user"])
        return cluster, user

    @property
    def _scratch(self) -> Path:
        """For tokens and keys: beside the kubeconfig, so that they go when the control plane does."""
        folder = self.kubeconfig.parent / "test"
        folder.mkdir(exist_ok=True)
        return folder

    @property
    def server(self) -> str:
        """Base URL of the API server."""
        return str(self._config[0]["server"])

    @cached_property
    def ca(self) -> str:
        """PEM of the authority that signed the server's certificate."""
        return self._pem(self._config[0], "certificate-authority").read_text()

    @cached_property
    def ssl(self) -> ssl.SSLContext:
        """Trusts the server and presents the administrator's certificate."""
        context = ssl.create_default_context(cadata=self.ca)
        user = self._config[1]
        context.load_cert_chain(self._pem(user, "client-certificate"), self._pem(user, "client-key"))
        return context

    def _pem(self, section: Mapping[str, Any], key: str) -> Path:
        if path := section.get(key):
            return (self.kubeconfig.parent / str(path)).resolve()
        file = self._scratch / f"{key}.pem"
        file.write_bytes(base64.b64decode(section[f"{key}-data"]))
        return file

    def request(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        """One blocking request as administrator, for fixtures; raises AssertionError unless it is a 2xx."""
        url = urllib.parse.urlsplit(self.server)
        connection = http.client.HTTPSConnection(url.hostname or "", url.port, context=self.ssl, timeout=30)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        assert answer.status < 300, f"{method} {path}: {answer.status} {content.decode()}"
        return dict(json.loads(content))

    def token(self, namespace: str, service_account: str) -> str:
        """A fresh bearer token; each one has its own credential id in the audit log."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{service_account}/token"
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        return str(self.request("POST", path, request)["status"]["token"])

    def kubeconfig_for(self, token: str, *, server: str = "", ca: str = "", name: str = "user") -> Path:
        """Write a kubeconfig that presents a bearer token, here or at another address (the fault proxy's)."""
        return write_kubeconfig(
            self._scratch / f"{name}.kubeconfig", server or self.server, ca or self.ca, token
        )


def write_kubeconfig(path: Path, server: str, ca: str, token: str) -> Path:
    """A kubeconfig of one cluster and one bearer token; `ca` empty for plain http."""
    cluster: dict[str, Any] = {"server": server}
    if server.startswith("https:"):
        cluster["certificate-authority-data"] = base64.b64encode(ca.encode()).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": cluster}],
        "users": [{"name": "test", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "current-context": "test",
    }
    path.write_text(yaml.safe_dump(config))
    path.chmod(0o600)
    return path


def _text(value: str | Mapping[str, Any] | None) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value)
