"""Requests are named as the API server names them."""

import pytest

from test.support.requestinfo import parse

CASES = [
    ("GET", "/api/v1/pods", {}, "", ("list", "pods", "", "")),
    ("GET", "/api/v1/pods", {"watch": "true"}, "", ("watch", "pods", "", "")),
    ("GET", "/api/v1/namespaces", {}, "", ("list", "namespaces", "", "")),
    ("GET", "/api/v1/namespaces/a", {}, "", ("get", "namespaces", "a", "a")),
    ("GET", "/api/v1/namespaces/a/pods/p/log", {}, "", ("get", "pods/log", "a", "p")),
    ("POST", "/apis/apps/v1/namespaces/a/deployments", {}, "", ("create", "deployments.apps", "a", "")),
    ("PUT", "/apis/apps/v1/namespaces/a/deployments/d", {}, "", ("update", "deployments.apps", "a", "d")),
    (
        "PATCH",
        "/apis/modelfleet.dev/v1alpha1/namespaces/a/inferenceservices/i/status",
        {},
        "application/apply-patch+yaml",
        ("apply", "inferenceservices.modelfleet.dev/status", "a", "i"),
    ),
    (
        "PATCH",
        "/api/v1/namespaces/a/services/s",
        {},
        "application/merge-patch+json",
        ("patch", "services", "a", "s"),
    ),
    ("DELETE", "/api/v1/namespaces/a/pods", {}, "", ("deletecollection", "pods", "a", "")),
    ("GET", "/apis/apps/v1", {}, "", ("", "", "", "")),
    ("GET", "/readyz", {}, "", ("", "", "", "")),
]


@pytest.mark.parametrize(("method", "path", "query", "content_type", "expected"), CASES)
def test_names_requests(
    method: str, path: str, query: dict[str, str], content_type: str, expected: tuple[str, ...]
) -> None:
    """Verb, resource, namespace and name follow the server's own rules; anything else has none."""
    info = parse(method, path, query, content_type)
    assert expected == (info.verb, info.resource, info.namespace, info.name)
