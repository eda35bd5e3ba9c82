"""The API server's audit log as a witness: who wrote what, when, as whom (testbed.md section 1).

It is the only source that does not depend on the code under test. Policy level Metadata, one JSON line per
request when its response is complete; a watch appears when it ends.
"""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

_WRITES = {"create", "update", "patch", "delete", "deletecollection"}
_LONGEST_LINE = 64 * 1024
"""Bytes; a line at level Metadata has about 1 KiB."""
_CREDENTIAL = "authentication.kubernetes.io/credential-id"


@dataclass(frozen=True)
class Entry:
    """One answered request."""

    verb: str
    """As RBAC names it; server-side apply is `patch`."""
    user: str
    credential: str
    """Id of the bearer token: tells two processes of one service account apart."""
    agent: str
    resource: str
    """`plural.group`, with `/subresource` when there is one."""
    namespace: str
    name: str
    uri: str
    code: int
    received: datetime
    finished: datetime

    @property
    def writes(self) -> bool:
        """Whether it asked for a change."""
        return self.verb in _WRITES

    @property
    def succeeded(self) -> bool:
        """Whether the server said 2xx."""
        return 200 <= self.code < 300

    def __str__(self) -> str:
        at = self.finished.strftime("%H:%M:%S.%f")
        return f"{at} {self.code} {self.verb} {self.resource} {self.namespace} {self.name}"


@dataclass(frozen=True)
class Mark:
    """A place in the log."""

    offset: int


class AuditLog:
    """Reads the log from a mark on; never the whole of it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def mark(self) -> Mark:
        """Here and now. Requests answered before are behind it, the log being written before the answer.

        At the end of a line: another process may be in the middle of writing one.
        """
        if not self._path.exists():
            return Mark(0)
        with self._path.open("rb") as file:
            start = max(0, file.seek(0, os.SEEK_END) - _LONGEST_LINE)
            file.seek(start)
            return Mark(start + file.read().rfind(b"\n") + 1)

    def since(self, mark: Mark, *, user: str = "", credential: str = "") -> list[Entry]:
        """Entries after a mark, optionally of one user or one token."""
        entries = (_entry(line) for line in self._lines(mark))
        return [
            e for e in entries if e is not None and user in {"", e.user} and credential in {"", e.credential}
        ]

    def _lines(self, mark: Mark) -> Iterable[bytes]:
        with self._path.open("rb") as file:
            file.seek(mark.offset)
            content = file.read()
        return content[: content.rfind(b"\n") + 1].splitlines()


def writes(entries: Iterable[Entry], *, but: str = "leases.coordination.k8s.io") -> list[Entry]:
    """Requests for a change, apart from those to one resource (our own Lease)."""
    return [e for e in entries if e.writes and e.resource != but]


def lists(entries: Iterable[Entry]) -> list[Entry]:
    """LIST requests, and watches that begin with a list (WatchList)."""
    return [
        e for e in entries if e.verb == "list" or (e.verb == "watch" and "sendInitialEvents=true" in e.uri)
    ]


def _entry(line: bytes) -> Entry | None:
    event: dict[str, Any] = json.loads(line)
    if event["stage"] not in {"ResponseComplete", "Panic"}:
        return None
    ref, user = event.get("objectRef", {}), event["user"]
    resource = (
        f"{ref.get('resource', '')}.{ref['apiGroup']}" if ref.get("apiGroup") else ref.get("resource", "")
    )
    if ref.get("subresource"):
        resource += f"/{ref['subresource']}"
    return Entry(
        verb=event["verb"],
        user=user["username"],
        credential=next(iter(user.get("extra", {}).get(_CREDENTIAL, ())), ""),
        agent=event.get("userAgent", ""),
        resource=resource,
        namespace=ref.get("namespace", ""),
        name=ref.get("name", ""),
        uri=event["requestURI"],
        code=event.get("responseStatus", {}).get("code", 0),
        received=datetime.fromisoformat(event["requestReceivedTimestamp"]),
        finished=datetime.fromisoformat(event["stageTimestamp"]),
    )
