"""Credentials from a program named in the kubeconfig (client.authentication.k8s.io, KEP-541).

Promises: the program runs once until its credentials are about to expire or are refused, never once per
request; it runs beside the event loop, with a deadline and without a terminal; what it prints is shown
nowhere, but for its own complaint on stderr with anything like a token cut out.
"""

import asyncio
import math
import os
import re
import shutil
import signal
from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import msgspec
import structlog

from modelfleet.kube.credentials import Credential, bearer, fits_header
from modelfleet.kube.errors import ConfigError, CredentialsError
from modelfleet.kube.kubeconfig import Cluster, Exec
from modelfleet.kube.tls import Identity, Pem

RUN_SECONDS = 60.0
"""A plugin that is still running then is stuck: `aws eks get-token` and kubelogin take a few seconds."""

EXPIRY_MARGIN = timedelta(seconds=60)
"""Refresh this long before expirationTimestamp: a request's own deadline, and room for clock skew."""

MIN_AGE_SECONDS = 10.0
"""Not run again sooner, even when it hands out credentials that are within the margin already."""

_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
EXEC_EXTENSION = "client.authentication.k8s.io/exec"
"""The cluster extension that is handed to the plugin as `spec.cluster.config`."""

MAX_COMPLAINT = 300
"""Characters of a plugin's last words that end up in an error."""

_SECRETLIKE = re.compile(r"[A-Za-z0-9+/_=.~-]{32,}")
_log = structlog.get_logger(__name__)


class _Status(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: Annotated[datetime, msgspec.Meta(tz=True)] | None = None

    def __repr__(self) -> str:
        return "<ExecCredentialStatus>"


class _Answer(msgspec.Struct, rename="camel"):
    api_version: str
    kind: str
    status: _Status

    def __repr__(self) -> str:
        return "<ExecCredential>"


def utc_now() -> datetime:
    """The wall clock: expirationTimestamp is absolute."""
    return datetime.now(UTC)


class ExecPlugin:
    """One plugin, its last credentials and when they have to be replaced."""

    def __init__(
        self,
        config: Exec,
        *,
        base: Path,
        cluster: Cluster,
        cluster_dir: Path,
        environ: Mapping[str, str] = os.environ,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        """`base` is the kubeconfig's directory, against which a command with a slash is resolved."""
        if config.api_version not in _VERSIONS:
            raise ConfigError(
                f"exec plugin {config.command!r} wants {config.api_version}; update it to one of {_VERSIONS}"
            )
        if config.interactive_mode == "Always":
            raise ConfigError(f"exec plugin {config.command!r} needs a terminal; log in with it another way")
        self._environ = {**environ, **{var.name: var.value for var in config.env or ()}}
        self._command = _resolve(config, base, self._environ.get("PATH"))
        self._config = config
        self._cluster = cluster
        self._cluster_dir = cluster_dir
        self._now = now
        self._credential: Credential | None = None
        self._expires: datetime | None = None
        self._ran_at = -math.inf
        self._complaint = ""
        self._lock = asyncio.Lock()

    async def current(self) -> Credential:
        """The credentials in hand, or new ones when these are about to expire."""
        async with self._lock:
            held = self._credential
            left = self._expires - self._now() if self._expires is not None else timedelta.max
            if held is not None and (left > EXPIRY_MARGIN or self._ran_just_now()):
                return held
            if self._ran_just_now():
                raise CredentialsError(self._complaint)
            try:
                return await self._replace()
            except CredentialsError:
                if held is None or left <= timedelta(0):
                    raise
                _log.warning("kept the credentials in use", problem=self._complaint)
                return held

    async def renew(self, refused: Credential) -> Credential:
        """Run the plugin, unless somebody has since the refusal."""
        async with self._lock:
            if self._credential is not None and self._credential is not refused:
                return self._credential
            if not self._ran_just_now():
                return await self._replace()
            if self._complaint:
                raise CredentialsError(self._complaint)
            return refused

    def _ran_just_now(self) -> bool:
        return asyncio.get_running_loop().time() < self._ran_at + MIN_AGE_SECONDS

    async def _replace(self) -> Credential:
        self._ran_at = asyncio.get_running_loop().time()
        try:
            self._credential, self._expires = await self._run()
        except CredentialsError as error:
            self._complaint = str(error)
            raise
        self._complaint = ""
        return self._credential

    async def _run(self) -> tuple[Credential, datetime | None]:
        try:
            process = await asyncio.create_subprocess_exec(
                self._command,
                *(self._config.args or ()),
                env={**self._environ, "KUBERNETES_EXEC_INFO": await asyncio.to_thread(self._info)},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise self._failure(f"can't be started: {error.strerror}") from error
        try:
            async with asyncio.timeout(RUN_SECONDS):
                output, complaint = await process.communicate()
        except TimeoutError:
            raise self._failure(f"did not finish within {RUN_SECONDS:.0f} s") from None
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        if process.returncode:
            said = _SECRETLIKE.sub("[cut]", " ".join(complaint.decode(errors="replace").split()))
            raise self._failure(f"exited with {process.returncode}: {said[-MAX_COMPLAINT:] or 'no message'}")
        return self._read(output)

    def _read(self, output: bytes) -> tuple[Credential, datetime | None]:
        try:
            answer = msgspec.json.decode(output, type=_Answer)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise self._failure(f"printed no ExecCredential: {error}") from None
        if answer.api_version != self._config.api_version:
            raise self._failure(f"answered in {answer.api_version}, not {self._config.api_version}")
        status = answer.status
        certificate, key = status.client_certificate_data, status.client_key_data
        if bool(certificate) != bool(key) or not (status.token or certificate):
            raise self._failure("printed neither a token nor a certificate with its key")
        if status.token and not fits_header(status.token):
            raise self._failure("printed a token that can't be sent")
        identity = Identity(certificate.encode(), key.encode()) if certificate else None
        credential = bearer(status.token, identity) if status.token else Credential(identity=identity)
        return credential, status.expiration_timestamp

    def _info(self) -> str:
        """KUBERNETES_EXEC_INFO. Blocking: reads the authority file."""
        spec: dict[str, Any] = {"interactive": False}
        if self._config.provide_cluster_info:
            spec["cluster"] = _cluster_info(self._cluster, self._cluster_dir)
        info = {"apiVersion": self._config.api_version, "kind": "ExecCredential", "spec": spec}
        return msgspec.json.encode(info).decode()

    def _failure(self, what: str) -> CredentialsError:
        return CredentialsError(f"exec plugin {self._config.command!r} {what}; run it by hand to see why")


def _resolve(config: Exec, base: Path, search: str | None) -> str:
    """The program's path: with a slash relative to the kubeconfig, else from PATH."""
    wanted = str(base / config.command) if "/" in config.command else config.command
    found = shutil.which(wanted, path=search)
    if found is None:
        hint = config.install_hint or "install it or correct its path"
        raise ConfigError(f"exec plugin {config.command!r} of the kubeconfig is not there: {hint.strip()}")
    return found


def _cluster_info(cluster: Cluster, base: Path) -> dict[str, Any]:
    """`spec.cluster` of an ExecCredential, without what is not set."""
    authority = Pem.of(
        cluster.certificate_authority, cluster.certificate_authority_data, base, "certificate-authority"
    )
    info = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": b64encode(authority.read()).decode() if authority else "",
        "proxy-url": cluster.proxy_url,
        "config": next((e.extension for e in cluster.extensions or () if e.name == EXEC_EXTENSION), None),
    }
    return {name: value for name, value in info.items() if value}
