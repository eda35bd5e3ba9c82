"""Where credentials come from, and when they are fetched anew.

Promises: nobody waits for the event loop while a file or a program is read; many requests that find the
same credentials refused cause one refresh, not many; a refresh that fails leaves credentials that may
still be good in use. Secrets are in no repr, log or exception.
"""

import asyncio
from pathlib import Path
from typing import Protocol

import msgspec
import structlog

from modelfleet.kube.errors import CredentialsError
from modelfleet.kube.tls import Identity

TOKEN_FILE_SECONDS = 50.0
"""Age at which a token file is read again; client-go: a minute less 10 s of leeway (facts 1.10: <= 60 s)."""

_log = structlog.get_logger(__name__)


class Credential(msgspec.Struct, frozen=True):
    """What to present; compared by identity to tell a refreshed one from the one that was refused."""

    headers: tuple[tuple[str, str], ...] = ()
    identity: Identity | None = None

    def __repr__(self) -> str:
        return "<Credential>"


class Credentials(Protocol):
    """A source of credentials."""

    async def current(self) -> Credential:
        """What to present now. Raises CredentialsError when there is nothing."""

    async def renew(self, refused: Credential) -> Credential:
        """What to present after a 401 to `refused`; the same object if there is nothing else."""


class Fixed:
    """A token or password written in the kubeconfig, or nothing but the client certificate."""

    def __init__(self, credential: Credential) -> None:
        self._credential = credential

    async def current(self) -> Credential:
        """Always the same."""
        return self._credential

    async def renew(self, refused: Credential) -> Credential:
        """There is no other."""
        return refused


class TokenFile:
    """A bearer token in a file that its owner (kubelet, a sidecar) replaces."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._token = ""
        self._credential: Credential | None = None
        self._read_at = 0.0
        self._lock = asyncio.Lock()

    async def current(self) -> Credential:
        """The token, at most TOKEN_FILE_SECONDS old."""
        async with self._lock:
            now = asyncio.get_running_loop().time()
            if self._credential is None or now >= self._read_at + TOKEN_FILE_SECONDS:
                return await self._read(now)
            return self._credential

    async def renew(self, refused: Credential) -> Credential:
        """Read the file now, unless somebody has since the refusal."""
        async with self._lock:
            if self._credential is not None and self._credential is not refused:
                return self._credential
            return await self._read(asyncio.get_running_loop().time())

    async def _read(self, now: float) -> Credential:
        self._read_at = now
        try:
            token = (await asyncio.to_thread(self._path.read_bytes)).decode(errors="replace").strip()
        except OSError as error:
            return self._keep(f"can't read the token file {self._path}: {error.strerror}")
        if not fits_header(token):
            return self._keep(f"the token file {self._path} is empty or holds no token")
        if self._credential is None or token != self._token:
            self._token = token
            self._credential = bearer(token)
        return self._credential

    def _keep(self, problem: str) -> Credential:
        if self._credential is None:
            raise CredentialsError(f"{problem}; check that the token is mounted")
        _log.warning("kept the token in use", problem=problem)
        return self._credential


def fits_header(token: str) -> bool:
    """Whether a token can be sent: printable ASCII and not empty (RFC 6750, 2.1)."""
    return bool(token) and token.isascii() and token.isprintable()


def bearer(token: str, identity: Identity | None = None) -> Credential:
    """A bearer token, as a header."""
    return Credential((("Authorization", f"Bearer {token}"),), identity)
