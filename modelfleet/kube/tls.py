"""TLS towards the API server: one context, built once, replaced when a file behind it changes.

Promises:
- connections that are open keep the context they were made with; whoever connects next gets the new one
  (kopf#980: swapping it under running streams loses events);
- files that are half written, or a certificate whose key has not come yet, leave the old context in use;
- private keys touch no disk where the system has memory files.
"""

import asyncio
import hashlib
import os
import ssl
import tempfile
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import structlog

from modelfleet.kube.errors import ConfigError

RECHECK_SECONDS = 60.0
"""How long a changed file may go unnoticed: kubelet syncs projected volumes about once a minute.

client-go looks every 5 minutes; a new authority that is noticed late is an outage, and a look is cheap.
"""

_log = structlog.get_logger(__name__)


class Pem(msgspec.Struct, frozen=True):
    """PEM text, in a file that may change or as data that can't."""

    path: Path | None = None
    data: bytes = b""

    @classmethod
    def of(cls, path: str, data: str, base: Path, field: str) -> "Pem | None":
        """From a kubeconfig's pair of fields; data wins, as in kubectl. None when both are empty."""
        if data:
            try:
                return cls(data=b64decode("".join(data.split()), validate=True))
            except ValueError:
                raise ConfigError(f"{field}-data is not base64; copy it again from the cluster") from None
        return cls(path=base / path) if path else None

    def __repr__(self) -> str:
        return f"Pem({self.path or 'data'})"

    def read(self) -> bytes:
        """The text as it is now."""
        return self.data if self.path is None else self.path.read_bytes()


class Identity(msgspec.Struct, frozen=True):
    """Certificate and key we present, as PEM text."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "<Identity>"


class TlsSource:
    """Makes contexts from what a kubeconfig or a service account names."""

    def __init__(
        self,
        *,
        ca: Pem | None = None,
        certificate: Pem | None = None,
        key: Pem | None = None,
        insecure: bool = False,
        server_name: str = "",
    ) -> None:
        """Without `ca` the system's authorities count; `server_name` replaces the host in the check."""
        if (certificate is None) != (key is None):
            raise ConfigError("a client certificate and its key go together; set both or neither")
        self.server_name = server_name
        self._ca = ca
        self._pair = (certificate, key) if certificate is not None and key is not None else None
        self._insecure = insecure
        self._context: ssl.SSLContext | None = None
        self._issued: Identity | None = None
        self._fingerprint = b""
        self._check_at = 0.0
        self._lock = asyncio.Lock()

    async def context(self, issued: Identity | None = None) -> ssl.SSLContext:
        """The context to connect with now; `issued` is an exec plugin's certificate, if it gave one.

        Raises ConfigError when there has never been a usable one.
        """
        async with self._lock:
            now = asyncio.get_running_loop().time()
            if self._context is None or issued is not self._issued or now >= self._check_at:
                self._check_at = now + RECHECK_SECONDS
                self._context = await self._reload(issued)
                self._issued = issued
            return self._context

    def distrust(self) -> None:
        """A handshake failed: look at the files before the next connection."""
        self._check_at = 0.0

    async def _reload(self, issued: Identity | None) -> ssl.SSLContext:
        try:
            return await asyncio.to_thread(self._load, issued)
        except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
            if self._context is None:
                raise ConfigError(f"can't set up TLS from {self}: {error}; check these files") from error
            _log.warning(
                "kept the TLS settings in use: the new ones are broken", source=str(self), error=str(error)
            )
            return self._context

    def _load(self, issued: Identity | None) -> ssl.SSLContext:
        """Blocking: reads the files and, if they changed, builds a context."""
        ca = None if self._ca is None or self._insecure else self._ca.read()
        identity = issued
        if identity is None and self._pair is not None:
            identity = Identity(self._pair[0].read(), self._pair[1].read())
        material = (ca or b"", identity.certificate if identity else b"", identity.key if identity else b"")
        fingerprint = hashlib.blake2b(b"\0".join(material)).digest()
        if self._context is not None and fingerprint == self._fingerprint:
            return self._context
        context = _build(ca, identity, insecure=self._insecure)
        self._fingerprint = fingerprint
        return context

    def __str__(self) -> str:
        parts = [f"authority {self._ca}" if self._ca else "the system's authorities"]
        if self._pair is not None:
            parts.append(f"certificate {self._pair[0]} and key {self._pair[1]}")
        return ", ".join(parts)


def _build(ca: bytes | None, identity: Identity | None, *, insecure: bool) -> ssl.SSLContext:
    if ca is not None and not ca.strip():
        raise ValueError("the authority is empty")  # to ssl that means: trust the system's
    context = ssl.create_default_context(cadata=None if ca is None else ca.decode())
    context.set_alpn_protocols(["http/1.1"])
    # Python 3.13 checks extensions (authority key identifier) that many clusters' own CAs lack; Go does not.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if identity is not None:
        with _as_file(identity.certificate + b"\n" + identity.key) as path:
            # An encrypted key fails here instead of asking on the terminal.
            context.load_cert_chain(path, password=lambda: "")
    return context


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """A path OpenSSL can read: it takes no bytes."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("identity", os.MFD_CLOEXEC)
        try:
            with open(descriptor, "wb", closefd=False) as memory:
                memory.write(content)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
    else:
        with tempfile.NamedTemporaryFile() as file:  # readable by its owner only
            file.write(content)
            file.flush()
            yield file.name
