"""From the API server's answers to problems a status can explain.

One ordered table decides the cause; the first test that fits wins, since one HTTP code means many things
(403 alone: RBAC, quota, a terminating namespace, an admission plugin). The message keeps the server's words,
which name verb, kind, service account and field, and adds the object and the next step.
"""

from collections.abc import Callable
from http import HTTPStatus

from modelfleet.kube.errors import FencedError, KubeError, StatusError
from modelfleet.kube.objects import Meta
from modelfleet.plan import Cause, Problem, Ref

MAX_SERVER_TEXT = 1024
"""Characters of the server's words kept: an invalid value is quoted whole by the server, and a condition's
message may hold 32768 bytes at most (metav1.Condition)."""

_IMMUTABLE_WORDS = ("immutable", "may not change once set", "updates to")
"""How API servers put it: apimachinery's FieldImmutableErrorMsg, Service cluster IPs, and the workloads whose
validation names the fields that may change ("updates to statefulset spec for fields other than ...")."""
_TOO_LARGE_WORDS = ("etcdserver: request is too large", "trying to send message larger than max")
"""etcd's ErrRequestTooLarge and its gRPC client's limit; both arrive as 500."""
_MALFORMED_APPLY = ("failed to create typed patch object", "failed to create typed live object")
"""An apply with a field of the wrong type, an unknown field or a duplicate list key is answered with 500 and
no reason (tried on 1.36.3), although it will never succeed. So is any apply to an object that was stored with
such a field under a former CRD, its status included: nobody can write it until the field is corrected."""
_TYPE_LEAVES = "not allowed while custom resource definition is terminating"
"""Begins with the verb; apiextensions answers so, not with 404, until a deleted CRD's last object is gone."""


def to_problem(error: KubeError, ref: Ref) -> Problem:
    """Explain why a request about `ref` failed."""
    cause = cause_of(error)
    return Problem(cause, f"{ref}: {_clip(_words(error))}. {_NEXT[cause].format(ref=ref)}", error.retry_after)


def cause_of(error: KubeError) -> Cause:
    """The cause alone, for metrics and decisions."""
    if isinstance(error, FencedError):
        return Cause.NOT_LEADING
    if not isinstance(error, StatusError):
        return Cause.UNREACHABLE
    return next((cause for fits, cause in _TABLE if fits(error)), Cause.INVALID)


def may_have_happened(error: KubeError) -> bool:
    """Whether a write must be read back before it is decided again (rule A14); a refusal in a 500 is none."""
    return error.unknown_outcome and cause_of(error) is Cause.UNREACHABLE


def name_conflict(ref: Ref, live: Meta) -> Problem:
    """The wanted name is held by an object that isn't ours (rule A8)."""
    holder = live.controller
    who = f"{holder.kind} {holder.name}" if holder else "nobody"
    return Problem(
        Cause.NAME_CONFLICT,
        f"{ref} exists and is controlled by {who}; it is left untouched. Delete it or rename one of the two.",
    )


def _words(error: KubeError) -> str:
    if isinstance(error, StatusError) and error.code == HTTPStatus.UNPROCESSABLE_ENTITY and error.causes:
        causes = (f"{cause.get('field', '')}: {cause.get('message', '')}" for cause in error.causes)
        return "; ".join(dict.fromkeys(cause.removeprefix("<nil>").removeprefix(": ") for cause in causes))
    return (error.message if isinstance(error, StatusError) else str(error)) or type(error).__name__


def _clip(text: str) -> str:
    text = text.strip().rstrip(".")
    return text if len(text) <= MAX_SERVER_TEXT else f"{text[:MAX_SERVER_TEXT]}..."


def _says(*words: str) -> Callable[[StatusError], bool]:
    return lambda error: any(word in error.message for word in words)


def _code(*codes: int) -> Callable[[StatusError], bool]:
    return lambda error: error.code in codes


def _namespace_terminating(error: StatusError) -> bool:
    return any(cause.get("reason") == "NamespaceTerminating" for cause in error.causes)


def _quota(error: StatusError) -> bool:
    return error.code == HTTPStatus.FORBIDDEN and "exceeded quota" in error.message


def _denied(error: StatusError) -> bool:
    """A webhook chooses its own code, a policy answers 422 unless it says otherwise: only words tell."""
    return "denied the request" in error.message or (
        "ValidatingAdmissionPolicy" in error.message and "denied request" in error.message
    )


def _unauthorized(error: StatusError) -> bool:
    """401, or the authorizer's 403 (`User "..." cannot create resource ...`)."""
    rbac = 'User "' in error.message and " cannot " in error.message
    return error.code == HTTPStatus.UNAUTHORIZED or (error.code == HTTPStatus.FORBIDDEN and rbac)


def _unknown_type(error: StatusError) -> bool:
    """A 404 about an object names it; one about a type can't."""
    return error.code == HTTPStatus.NOT_FOUND and not error.details.get("name")


def _type_leaves(error: StatusError) -> bool:
    """The type is being deleted: nothing a policy or the spec could change about it."""
    refused = error.code in (HTTPStatus.FORBIDDEN, HTTPStatus.METHOD_NOT_ALLOWED)
    return refused and _TYPE_LEAVES in error.message


def _other_incarnation(error: StatusError) -> bool:
    """Another object of the name: 409 when the resourceVersion is looked at first, else a 422 on the uid."""
    return any(cause.get("field") == "metadata.uid" for cause in error.causes)


def _immutable(error: StatusError) -> bool:
    words = [error.message, *(str(cause.get("message", "")) for cause in error.causes)]
    return error.code == HTTPStatus.UNPROCESSABLE_ENTITY and any(
        known in word for word in words for known in _IMMUTABLE_WORDS
    )


def _asks_to_wait(error: StatusError) -> bool:
    return error.code == HTTPStatus.TOO_MANY_REQUESTS or (
        error.code == HTTPStatus.SERVICE_UNAVAILABLE and error.retry_after is not None
    )


def _no_answer(error: StatusError) -> bool:
    """5xx, a server that gave up waiting for our body, and a redirect, which we don't follow."""
    return (
        error.code >= HTTPStatus.INTERNAL_SERVER_ERROR
        or error.code == HTTPStatus.REQUEST_TIMEOUT
        or error.code < HTTPStatus.BAD_REQUEST
    )


_TABLE: tuple[tuple[Callable[[StatusError], bool], Cause], ...] = (
    (_code(HTTPStatus.REQUEST_ENTITY_TOO_LARGE), Cause.TOO_LARGE),
    (_says(*_TOO_LARGE_WORDS), Cause.TOO_LARGE),
    (_says(*_MALFORMED_APPLY), Cause.INVALID),
    (_namespace_terminating, Cause.NAMESPACE_TERMINATING),
    (_quota, Cause.QUOTA_EXCEEDED),
    (_denied, Cause.DENIED),
    (_unauthorized, Cause.FORBIDDEN),
    (_type_leaves, Cause.NOT_INSTALLED),
    (_code(HTTPStatus.FORBIDDEN), Cause.DENIED),  # admission plugins: PodSecurity, LimitRanger, ...
    (_unknown_type, Cause.NOT_INSTALLED),
    (_code(HTTPStatus.NOT_FOUND), Cause.NOT_FOUND),
    (_code(HTTPStatus.CONFLICT), Cause.STALE),
    (_other_incarnation, Cause.STALE),
    (_immutable, Cause.IMMUTABLE),
    (_asks_to_wait, Cause.THROTTLED),
    (_no_answer, Cause.UNREACHABLE),
)
"""Everything else is INVALID: the server understood the request and will refuse it again."""

_NEXT = {
    Cause.STALE: "It changed meanwhile and is looked at again.",
    Cause.NAME_CONFLICT: "Delete it or rename one of the two.",
    Cause.IMMUTABLE: "This field can't change once set: restore its value, or delete the {ref.api.kind} "
    "and it is created again.",
    Cause.INVALID: "Correct the field in the spec.",
    Cause.DENIED: "Satisfy the policy that refused it; it is tried again from time to time.",
    Cause.FORBIDDEN: "Grant this to the controller's service account by RBAC.",
    Cause.QUOTA_EXCEEDED: "Free some of the quota or raise it.",
    Cause.NAMESPACE_TERMINATING: "Nothing can be created in a namespace that is being deleted.",
    Cause.NOT_INSTALLED: "Install the CustomResourceDefinition {ref.api.qualified} with version "
    "{ref.api.version}.",
    Cause.NOT_FOUND: "It, or its namespace, was deleted.",
    Cause.TOO_LARGE: "Make the spec smaller; etcd's limit is 1.5 MiB for an object.",
    Cause.THROTTLED: "The API server asked to wait.",
    Cause.UNREACHABLE: "It is tried again.",
    Cause.NOT_LEADING: "The leader goes on.",
}
