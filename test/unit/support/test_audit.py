"""The audit log is read as the witness it is: whole lines, answered requests, from a mark on."""

import json
from pathlib import Path
from typing import Any

from test.support.audit import AuditLog, lists, writes

USER = "system:serviceaccount:modelfleet-system:modelfleet-controller"


def event(verb: str, resource: str, **more: Any) -> str:
    """One line, as kube-apiserver 1.36 writes it at level Metadata."""
    reference = {"resource": resource, "namespace": "a", "name": "x", "apiVersion": "v1"}
    line = {
        "stage": "ResponseComplete",
        "requestURI": f"/api/v1/namespaces/a/{resource}",
        "verb": verb,
        "user": {"username": USER, "extra": {"authentication.kubernetes.io/credential-id": ["JTI=1"]}},
        "userAgent": "modelfleet",
        "objectRef": reference,
        "responseStatus": {"code": 200},
        "requestReceivedTimestamp": "2026-01-01T00:00:00.000001Z",
        "stageTimestamp": "2026-01-01T00:00:00.000002Z",
    }
    return json.dumps(line | more) + "\n"


def test_reads_whole_lines_after_a_mark(tmp_path: Path) -> None:
    """What came before the mark is left out, and so is a line that is being written."""
    log = AuditLog(tmp_path / "audit.log")
    file = tmp_path / "audit.log"
    empty = log.mark()
    file.write_text(event("create", "pods"))
    mark = log.mark()
    with file.open("a") as stream:
        stream.write(event("delete", "pods") + event("list", "pods")[:40])

    assert mark.offset + len(event("delete", "pods")) == log.mark().offset
    assert ["delete"] == [entry.verb for entry in log.since(mark)]
    assert ["create", "delete"] == [entry.verb for entry in log.since(empty)]


def test_tells_apart_users_and_tokens(tmp_path: Path) -> None:
    """Two processes of one account differ by the id of their token."""
    extra = {"authentication.kubernetes.io/credential-id": ["JTI=2"]}
    other = event("patch", "pods", user={"username": USER, "extra": extra})
    (tmp_path / "audit.log").write_text(
        event("create", "pods") + other + event("get", "pods", user={"username": "admin"})
    )
    log = AuditLog(tmp_path / "audit.log")
    everything = AuditLog(tmp_path / "none").mark()

    assert ["create", "patch"] == [e.verb for e in log.since(everything, user=USER)]
    assert ["patch"] == [e.verb for e in log.since(everything, credential="JTI=2")]


def test_counts_answered_changes_and_lists(tmp_path: Path) -> None:
    """Our Lease is no change; a WatchList is a list; a watch that has only begun is neither."""
    uri = "/api/v1/namespaces/a/pods?watch=true&sendInitialEvents=true"
    lease = {"resource": "leases", "apiGroup": "coordination.k8s.io", "namespace": "a", "name": "l"}
    status = {"resource": "pods", "namespace": "a", "name": "x", "subresource": "status"}
    lines = [
        event("update", "leases", objectRef=lease),
        event("patch", "pods", objectRef=status),
        event("watch", "pods", requestURI=uri),
        event("watch", "pods", stage="ResponseStarted"),
        event("watch", "pods"),
        event("list", "pods"),
    ]
    (tmp_path / "audit.log").write_text("".join(lines))
    entries = AuditLog(tmp_path / "audit.log").since(AuditLog(tmp_path / "none").mark())

    assert ["pods/status"] == [entry.resource for entry in writes(entries)]
    assert ["watch", "list"] == [entry.verb for entry in lists(entries)]
