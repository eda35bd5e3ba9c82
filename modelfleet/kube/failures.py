"""What aiohttp's exceptions mean to somebody who runs a controller.

Each text names the server, what happened to the request and, where there is one, the next step. Nothing of
the request but its method and path is shown.
"""

import os
import ssl

import aiohttp

from modelfleet.kube.auth import Access
from modelfleet.kube.errors import TransportError

_MEANINGS: tuple[tuple[type[Exception], str], ...] = (
    (
        aiohttp.ClientConnectorCertificateError,
        "its certificate is not trusted ({detail}); check the authority in {source}",
    ),
    (aiohttp.ClientHttpProxyError, "the proxy refuses to connect ({detail}); check it and NO_PROXY"),
    (aiohttp.ClientProxyConnectionError, "can't connect to the proxy ({detail}); check it and NO_PROXY"),
    (
        aiohttp.ClientConnectorError,
        "can't connect ({detail}); is it running, and its address in {source} right?",
    ),
    (
        aiohttp.ConnectionTimeoutError,
        "can't connect (no reply); is it running, and its address in {source} right?",
    ),
    (aiohttp.SocketTimeoutError, "the connection went silent"),
    (TimeoutError, "no complete answer in time"),
    (aiohttp.ServerDisconnectedError, "it closed the connection without an answer"),
    (aiohttp.ClientPayloadError, "the answer was cut off"),
    (OSError, "the connection broke ({detail})"),
    (Exception, "the answer was not understood ({detail})"),
)
"""The first that fits counts."""


def explain(error: Exception, what: str, access: Access, *, sent: bool) -> TransportError:
    """The error to raise for a request that got no complete answer."""
    meaning = next(text for kind, text in _MEANINGS if isinstance(error, kind))
    explained = meaning.format(detail=_detail(error), source=access.source)
    return TransportError(f"{what} at {access.host}: {explained}", sent=sent)


def is_tls(error: Exception) -> bool:
    """Whether TLS failed, so that authority or client certificate may be outdated."""
    parts = (
        error,
        error.__cause__,
        getattr(error, "os_error", None),
        getattr(error, "certificate_error", None),
    )
    return any(isinstance(part, ssl.SSLError) for part in parts)


def _detail(error: Exception) -> str:
    match error:
        case aiohttp.ClientConnectorCertificateError(certificate_error=cause):
            return str(getattr(cause, "verify_message", "")) or "it is for another name"
        case aiohttp.ClientHttpProxyError(status=status):
            return f"HTTP {status}"
        case aiohttp.ClientConnectorError(os_error=cause):
            return _text(cause)
        case OSError():
            return _text(error)
        case _:
            return type(error).__name__


def _text(error: OSError) -> str:
    if isinstance(error, ConnectionError) and error.errno:
        return os.strerror(error.errno)  # asyncio puts "Connect call failed" and the address there
    return error.strerror or type(error).__name__
