"""How to reach an API server and as whom: kubeconfig or service account, re-read while we run.

Promises (facts 1.10): a token file is never older than a minute when it is used; a 401 leads to one
refresh; a changed authority or client certificate is used by whoever connects next; nothing here blocks
the event loop or shows a secret. Configuration that can't work raises `ConfigError` with what was tried
and the next step.
"""

import asyncio
import os
import ssl
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote, urlsplit

import msgspec

from modelfleet.kube import kubeconfig as kubeconfig_files
from modelfleet.kube.credentials import Credential, Credentials, Fixed, TokenFile, bearer, fits_header
from modelfleet.kube.errors import ConfigError
from modelfleet.kube.exec_plugin import ExecPlugin
from modelfleet.kube.kubeconfig import Selected, User
from modelfleet.kube.proxy import proxy_for
from modelfleet.kube.tls import Pem, TlsSource

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where kubelet mounts a pod's token and authority."""


class Grant(msgspec.Struct, frozen=True):
    """What one request goes out with."""

    headers: tuple[tuple[str, str], ...]
    tls: ssl.SSLContext | None
    """None for a server without TLS."""
    credential: Credential

    def __repr__(self) -> str:
        return "<Grant>"


class Access:
    """One API server, the way to it, and our credentials there."""

    def __init__(
        self,
        server: str,
        *,
        tls: TlsSource | None = None,
        credentials: Credentials | None = None,
        headers: tuple[tuple[str, str], ...] = (),
        proxy: str | None = None,
        source: str = "given",
    ) -> None:
        """`server` is an http(s) URL, `headers` (impersonation) go with every request."""
        url = urlsplit(server)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ConfigError(f"{server!r} of {source} is no address of an API server; use https://host:port")
        self.server = server.rstrip("/")
        self.host = url.netloc.rpartition("@")[2]
        """Host and port, as metrics and messages show them."""
        self.proxy = proxy
        self.source = source
        """Where this came from, for people."""
        self._tls = (tls or TlsSource()) if url.scheme == "https" else None
        self._credentials = credentials or Fixed(Credential())
        self._headers = headers

    @property
    def server_name(self) -> str | None:
        """The name the server's certificate must have, when it is not the host's."""
        return self._tls.server_name or None if self._tls else None

    async def grant(self) -> Grant:
        """Credentials and TLS for the next request. Raises CredentialsError or ConfigError."""
        return await self._granted(await self._credentials.current())

    async def renew(self, refused: Grant) -> Grant | None:
        """After a 401: other credentials than the refused ones, or None when there are none."""
        credential = await self._credentials.renew(refused.credential)
        return None if credential is refused.credential else await self._granted(credential)

    def distrust(self) -> None:
        """A TLS handshake failed: read authority and certificate again before the next connection."""
        if self._tls is not None:
            self._tls.distrust()

    async def _granted(self, credential: Credential) -> Grant:
        tls = await self._tls.context(credential.identity) if self._tls is not None else None
        return Grant((*credential.headers, *self._headers), tls, credential)

    def __repr__(self) -> str:
        return f"Access({self.server}, {self.source})"


async def load_access(
    kubeconfig: str | None = None,
    context: str | None = None,
    *,
    environ: Mapping[str, str] = os.environ,
    service_account: Path = SERVICE_ACCOUNT,
) -> Access:
    """The `kubeconfig` given, else $KUBECONFIG, else a pod's service account, else ~/.kube/config.

    A `context` is one of a kubeconfig, so it leaves the service account out. Raises ConfigError.
    """
    return await asyncio.to_thread(_load, kubeconfig, context, environ, service_account)


def _load(kubeconfig: str | None, context: str | None, environ: Mapping[str, str], mount: Path) -> Access:
    if kubeconfig:
        return _from_files([Path(kubeconfig).expanduser()], context, environ)
    if listed := environ.get("KUBECONFIG"):
        paths = [Path(path).expanduser() for path in listed.split(os.pathsep) if path]
        return _from_files(paths, context, environ)
    token = mount / "token"
    host = environ.get("KUBERNETES_SERVICE_HOST")
    if host and not context and token.is_file():
        return _in_cluster(host, environ, mount)
    default = Path(environ.get("HOME", "~")).expanduser() / ".kube" / "config"
    if not default.exists():
        raise ConfigError(
            "no cluster to talk to: neither --kubeconfig nor KUBECONFIG is set, "
            f"{f'{token} does not exist' if host else 'this is no pod'} "
            f"and {default} does not exist; pass --kubeconfig PATH"
        )
    return _from_files([default], context, environ)


def _in_cluster(host: str, environ: Mapping[str, str], mount: Path) -> Access:
    port = environ.get("KUBERNETES_SERVICE_PORT_HTTPS") or environ.get("KUBERNETES_SERVICE_PORT") or "443"
    server = f"https://{f'[{host}]' if ':' in host else host}:{port}"
    return Access(
        server,
        tls=TlsSource(ca=Pem(path=mount / "ca.crt")),
        credentials=TokenFile(mount / "token"),
        proxy=proxy_for(server, "", environ),
        source="the pod's service account",
    )


def _from_files(paths: list[Path], context: str | None, environ: Mapping[str, str]) -> Access:
    selected = kubeconfig_files.load(paths, context)
    return Access(
        selected.cluster.server,
        tls=_tls(selected),
        credentials=_credentials(selected, environ),
        headers=_impersonation(selected.user),
        proxy=proxy_for(selected.cluster.server, selected.cluster.proxy_url, environ),
        source=f"context {selected.context!r} of {', '.join(str(path) for path in paths)}",
    )


def _tls(selected: Selected) -> TlsSource:
    cluster, user = selected.cluster, selected.user
    return TlsSource(
        ca=Pem.of(
            cluster.certificate_authority,
            cluster.certificate_authority_data,
            selected.cluster_dir,
            "certificate-authority",
        ),
        certificate=Pem.of(
            user.client_certificate, user.client_certificate_data, selected.user_dir, "client-certificate"
        ),
        key=Pem.of(user.client_key, user.client_key_data, selected.user_dir, "client-key"),
        insecure=cluster.insecure_skip_tls_verify,
        server_name=cluster.tls_server_name,
    )


def _credentials(selected: Selected, environ: Mapping[str, str]) -> Credentials:
    """In kubectl's order: token file, token, password, exec plugin."""
    user = selected.user
    if user.auth_provider is not None:
        raise ConfigError(
            f"context {selected.context!r} uses an auth-provider, which Kubernetes replaced by exec plugins; "
            "use one of those (for OpenID Connect: kubelogin)"
        )
    if user.token_file:
        return TokenFile(selected.user_dir / user.token_file)
    if user.token:
        if not fits_header(user.token):
            raise ConfigError(f"the token of context {selected.context!r} can't be sent; copy it again")
        return Fixed(bearer(user.token))
    if user.username:
        pair = b64encode(f"{user.username}:{user.password}".encode()).decode()
        return Fixed(Credential((("Authorization", f"Basic {pair}"),)))
    if user.exec is not None:
        return ExecPlugin(
            user.exec,
            base=selected.user_dir,
            cluster=selected.cluster,
            cluster_dir=selected.cluster_dir,
            environ=environ,
        )
    return Fixed(Credential())


def _impersonation(user: User) -> tuple[tuple[str, str], ...]:
    """Headers that make the server act as somebody else; dropping them would act with too many rights."""
    headers = [("Impersonate-User", user.impersonate), ("Impersonate-Uid", user.impersonate_uid)]
    headers += [("Impersonate-Group", group) for group in user.impersonate_groups or ()]
    for key, values in (user.impersonate_extra or {}).items():
        headers += [(f"Impersonate-Extra-{quote(key, safe='')}", value) for value in values]
    return tuple((name, value) for name, value in headers if value)
