"""What can go wrong between us and the API server.

Each error knows whether repeating the request can help (`retriable`), whether a write may have happened
although no answer came (`unknown_outcome`, rule A14), and how long the server asked us to wait.
"""

from collections.abc import Mapping
from typing import Any


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


class StatusError(KubeError):
    """The server answered with a metav1.Status, or another non-2xx."""

    def __init__(self, code: int, status: Mapping[str, Any], *, retry_after: float | None = None) -> None:
        self.code = code
        self.reason = str(status.get("reason") or "")
        self.message = str(status.get("message") or f"HTTP {code}")
        self.details: Mapping[str, Any] = status.get("details") or {}
        details_retry = self.details.get("retryAfterSeconds")
        self.retry_after = retry_after if retry_after is not None else (float(details_retry) if details_retry else None)
        super().__init__(f"{code} {self.reason}: {self.message}")

    @property
    def causes(self) -> list[Mapping[str, Any]]:
        """metav1.StatusCause entries: {reason, message, field}."""
        return list(self.details.get("causes") or ())

    @property
    def retriable(self) -> bool:  # type: ignore[override]  # a constant for every other error, computed here
        """Whether the same request may succeed later: 409, 429 and 5xx."""
        return self.code in (409, 429) or self.code >= 500

    @property
    def unknown_outcome(self) -> bool:  # type: ignore[override]  # as above
        """A 5xx other than a deliberate 503 may have been answered after the write."""
        return self.code in (500, 502, 504)

    @property
    def gone(self) -> bool:
        """410 in either form (`Expired`, `Gone`): the resourceVersion is too old, list again (rule I6)."""
        return self.code == 410 or self.reason in ("Expired", "Gone")

    @property
    def too_large_resource_version(self) -> bool:
        """504 with cause ResourceVersionTooLarge: the server is behind what we have seen (rule I6)."""
        return any(cause.get("reason") == "ResourceVersionTooLarge" for cause in self.causes) or (
            self.code == 504 and "Too large resource version" in self.message
        )
