"""What a request to an API server means, read off its URL as the server's own RequestInfo resolver does.

https://kubernetes.io/docs/reference/access-authn-authz/authorization/#determine-the-request-verb
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

_PATH = re.compile(
    r"/(?:api/(?P<core>v\w+)|apis/(?P<group>[^/]+)/(?P<version>[^/]+))"
    r"(?:/namespaces/(?P<namespace>[^/]+)(?=/[^/]))?"
    r"/(?P<resource>[^/]+)(?:/(?P<name>[^/]+)(?:/(?P<subresource>.+))?)?$"
)
_APPLY = "application/apply-patch"
_VERBS = {
    "GET": ("get", "list"),
    "POST": ("create", "create"),
    "PUT": ("update", "update"),
    "PATCH": ("patch", "patch"),
    "DELETE": ("delete", "deletecollection"),
}
"""Verb for one object and for a collection."""


@dataclass(frozen=True)
class RequestInfo:
    """One request in the terms of RBAC; `verb` is `apply` for server-side apply, empty off the API tree."""

    method: str
    path: str
    query: Mapping[str, str]
    verb: str = ""
    resource: str = ""
    """`plural.group`, with `/subresource` when there is one; the plural alone for core."""
    namespace: str = ""
    name: str = ""

    @property
    def writes(self) -> bool:
        """Whether it may change the cluster."""
        return self.verb in {"create", "update", "patch", "apply", "delete", "deletecollection"}


def parse(method: str, path: str, query: Mapping[str, str], content_type: str = "") -> RequestInfo:
    """Name verb, resource and object of a request; discovery and health requests have none."""
    match = _PATH.fullmatch(path)
    if not match:
        return RequestInfo(method, path, query)
    part = {key: value or "" for key, value in match.groupdict().items()}
    namespace, name, resource = part["namespace"], part["name"], part["resource"]
    if resource == "namespaces" and name:  # a namespace is in itself, as in the server's resolver
        namespace = name
    qualified = f"{resource}.{part['group']}" if part["group"] else resource
    if part["subresource"]:
        qualified += f"/{part['subresource']}"
    return RequestInfo(
        method, path, query, _verb(method, name, query, content_type), qualified, namespace, name
    )


def _verb(method: str, name: str, query: Mapping[str, str], content_type: str) -> str:
    if method == "GET" and query.get("watch") in {"true", "1"}:
        return "watch"
    if method == "PATCH" and content_type.startswith(_APPLY):
        return "apply"
    one, many = _VERBS.get(method, ("", ""))
    return one if name else many
