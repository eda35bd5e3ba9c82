"""Sentences for people about a type that can't be watched (rule I15): what, why, and what to do."""

import re

from modelfleet.kube.errors import StatusError
from modelfleet.plan import Api

_REFUSAL = re.compile(r'User "(?P<user>[^"]+)" cannot (?P<verb>\w+)')
"""apiserver, responsewriters/errors.go: forbiddenMessage."""
_SERVICE_ACCOUNT = "system:serviceaccount:"


def forbidden(api: Api, namespace: str, error: StatusError) -> str:
    """A 403 to a list or watch: names verb, kind, namespace and, where the server does, who was refused."""
    refusal = _REFUSAL.search(error.message)
    who = _subject(refusal["user"]) if refusal else "this client"
    verb = refusal["verb"] if refusal else "list or watch"
    scope = f"in namespace {namespace}" if namespace else "in the whole cluster"
    remedy = f"allow it get, list and watch on {api.qualified} {scope}"
    return f"{who} may not {verb} {api.kind} {scope}: {remedy} (server: {error.message})"


def not_installed(api: Api) -> str:
    """A 404 to a list: the type itself is unknown."""
    return f"the server does not serve {api.kind} ({api.api_version}): install the CRD {api.qualified}"


def unavailable(api: Api, namespace: str, error: Exception) -> str:
    """Anything else that keeps the first list from coming in."""
    scope = f" in namespace {namespace}" if namespace else ""
    return f"no list of {api.kind}{scope} yet: {error}"


def _subject(user: str) -> str:
    if not user.startswith(_SERVICE_ACCOUNT):
        return f"user {user}"
    return f"service account {user.removeprefix(_SERVICE_ACCOUNT).replace(':', '/')}"
