"""Warnings the API server attaches to an answer: deprecated versions, unknown fields (rule A12).

Each distinct text is logged once, so that a warning on an object that is applied often stays readable.
"""

import re
from collections.abc import Mapping

import structlog

REMEMBERED = 1024
"""Texts; the oldest is forgotten first, since a text may name an object and there is no end of those."""

_WARNING = re.compile(r'299 [^\s,]+ "((?:[^"\\]|\\.)*)"')
"""warn-code, warn-agent, quoted warn-text (RFC 7234, 5.5); Kubernetes only sends 299."""

_ESCAPE = re.compile(r"\\(.)")
_log = structlog.get_logger(__name__)


def parse_warnings(header: str) -> list[str]:
    """The texts in a `Warning` header, or in several joined by commas."""
    return [_ESCAPE.sub(r"\1", text) for text in _WARNING.findall(header)]


class WarningLog:
    """Logs what is new."""

    def __init__(self) -> None:
        self._seen: dict[str, None] = {}

    def note(self, headers: Mapping[str, str], resource: str) -> None:
        """Log the warnings in these response headers that weren't logged before."""
        for text in parse_warnings(headers.get("warning", "")):
            if text in self._seen:
                continue
            if len(self._seen) >= REMEMBERED:
                del self._seen[next(iter(self._seen))]
            self._seen[text] = None
            _log.warning("warning from the API server", warning=text, resource=resource)
