"""What can go wrong between us and the API server.

Each error knows whether repeating the request can help (`retriable`), whether a write may have happened
although no answer came (`unknown_outcome`, rule A14), and how long the server asked us to wait.
"""

import contextlib
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Any, Self

import msgspec

MAX_FOREIGN_TEXT = 256
"""Characters quoted of an answer that is no metav1.Status (a proxy's page): enough to recognise it."""

_UNKNOWN_OUTCOME = frozenset(
    {HTTPStatus.INTERNAL_SERVER_ERROR, HTTPStatus.BAD_GATEWAY, HTTPStatus.GATEWAY_TIMEOUT}
)


class KubeError(Exception):
    """Base of everything this package raises for a failed request."""

    retriable = False
    unknown_outcome = False
    retry_after: float | None = None


class ConfigError(KubeError):
    """No usable kubeconfig, in-cluster credentials or certificate; the message says what to do."""


class FencedError(KubeError):
    """A write was refused on our side: this process does not lead, or may no longer."""


class TransportError(KubeError):
    """No complete answer came: refused, reset, timed out, cut or undecodable."""

    retriable = True

    def __init__(self, message: str, *, sent: bool = True) -> None:
        """`sent` False: the request surely never reached the server (connection refused)."""
        super().__init__(message)
        self.unknown_outcome = sent


class CredentialsError(TransportError):
    """No credentials can be had right now (token file unreadable, exec plugin failed): nothing was sent."""

    def __init__(self, message: str) -> None:
        super().__init__(message, sent=False)


class StatusError(KubeError):
    """The server answered with a metav1.Status, or another non-2xx."""

    def __init__(self, code: int, status: Mapping[str, Any], *, retry_after: float | None = None) -> None:
        self.code = code
        self.reason = str(status.get("reason") or "")
        self.message = str(status.get("message") or f"HTTP {code}")
        self.details: Mapping[str, Any] = status.get("details") or {}
        asked = self.details.get("retryAfterSeconds")
        self.retry_after = float(asked) if retry_after is None and asked else retry_after
        super().__init__(f"{code} {self.reason}".rstrip() + f": {self.message}")

    @classmethod
    def of(cls, code: int, headers: Mapping[str, str], body: bytes) -> Self:
        """The error for a non-2xx answer, whatever its body is; `headers` have lower-case names."""
        status: Any = None
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
            status = msgspec.json.decode(body)
        if not isinstance(status, dict) or status.get("kind") != "Status":
            status = {"message": _foreign_text(code, headers, body)}
        return cls(code, status, retry_after=parse_retry_after(headers.get("retry-after", "")))

    @property
    def causes(self) -> list[Mapping[str, Any]]:
        """metav1.StatusCause entries: {reason, message, field}."""
        return list(self.details.get("causes") or ())

    @property
    def retriable(self) -> bool:  # type: ignore[override]  # a constant for every other error, computed here
        """Whether the same request may succeed later: 409, 429 and 5xx."""
        return (
            self.code in (HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS)
            or self.code >= HTTPStatus.INTERNAL_SERVER_ERROR
        )

    @property
    def unknown_outcome(self) -> bool:  # type: ignore[override]  # as above
        """A 5xx other than a deliberate 503 may have been answered after the write."""
        return self.code in _UNKNOWN_OUTCOME

    @property
    def gone(self) -> bool:
        """410 in either form (`Expired`, `Gone`): the resourceVersion is too old, list again (rule I6)."""
        return self.code == HTTPStatus.GONE or self.reason in ("Expired", "Gone")

    @property
    def too_large_resource_version(self) -> bool:
        """504 with cause ResourceVersionTooLarge: the server is behind what we have seen (rule I6)."""
        return any(cause.get("reason") == "ResourceVersionTooLarge" for cause in self.causes) or (
            self.code == HTTPStatus.GATEWAY_TIMEOUT and "Too large resource version" in self.message
        )


def parse_retry_after(value: str) -> float | None:
    """Seconds from a Retry-After header, which holds seconds or an HTTP date (RFC 9110, 10.2.3)."""
    with contextlib.suppress(ValueError):
        seconds = float(value)
        return max(0.0, seconds) if math.isfinite(seconds) else None
    with contextlib.suppress(ValueError):
        date = parsedate_to_datetime(value)
        if date.tzinfo is not None:
            return max(0.0, (date - datetime.now(UTC)).total_seconds())
    return None


def _foreign_text(code: int, headers: Mapping[str, str], body: bytes) -> str:
    """Describe an answer that didn't come from an API server, or not in its usual form."""
    if "location" in headers:
        return f"redirected to {headers['location']}; redirects aren't followed, configure the final address"
    content_type = headers.get("content-type", "")
    if not content_type.startswith("text/plain"):
        return f"HTTP {code} with a body of type {content_type or 'unknown'} instead of a Kubernetes Status"
    text = " ".join(body.decode(errors="replace").split())
    return text if len(text) <= MAX_FOREIGN_TEXT else f"{text[:MAX_FOREIGN_TEXT]}..."
