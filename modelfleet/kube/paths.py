"""Paths of resources on the API server, URL-escaped.

Core resources live under /api/v1, all others under /apis/<group>/<version>.
"""

from urllib.parse import quote

from modelfleet.plan import Api, Ref


def collection_path(api: Api, namespace: str = "") -> str:
    """Path of all objects of a type, in one namespace or (namespace "") in all of them."""
    root = f"/apis/{_escape(api.group)}" if api.group else "/api"
    where = f"/namespaces/{_escape(namespace)}" if namespace and api.namespaced else ""
    return f"{root}/{_escape(api.version)}{where}/{_escape(api.plural)}"


def object_path(ref: Ref, subresource: str = "") -> str:
    """Path of one object, or of its subresource."""
    if ref.api.namespaced and not ref.namespace:
        raise ValueError(f"{ref} needs a namespace")
    if ref.name in ("", ".", ".."):
        raise ValueError(f"{ref.api.kind} in namespace {ref.namespace!r} needs a name, not {ref.name!r}")
    path = f"{collection_path(ref.api, ref.namespace)}/{_escape(ref.name)}"
    return f"{path}/{_escape(subresource)}" if subresource else path


def _escape(segment: str) -> str:
    return quote(segment, safe="")
