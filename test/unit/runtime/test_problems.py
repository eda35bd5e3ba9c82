"""The table from answers to problems; the messages are those of kube-apiserver 1.36.3 and KEDA 2.21."""

from collections.abc import Mapping
from typing import Any

import pytest

from modelfleet.kube.errors import (
    ConfigError,
    CredentialsError,
    FencedError,
    KubeError,
    StatusError,
    TransportError,
)
from modelfleet.kube.objects import Meta, Owner
from modelfleet.plan import Api, Cause, Ref
from modelfleet.runtime.problems import MAX_SERVER_TEXT, may_have_happened, name_conflict, to_problem

DEPLOYMENT = Api("apps", "v1", "Deployment", "deployments")
SCALED_OBJECT = Api("keda.sh", "v1alpha1", "ScaledObject", "scaledobjects")
REF = Ref(DEPLOYMENT, "models", "echo")
NAMED = {"name": "echo", "group": "apps", "kind": "deployments"}


def answer(
    code: int, message: str, details: Mapping[str, Any] | None = None, reason: str = ""
) -> StatusError:
    """The error for a metav1.Status."""
    return StatusError(code, {"message": message, "reason": reason, "details": details or {}})


def invalid(message: str, field: str = "spec.selector", reason: str = "FieldValueInvalid") -> StatusError:
    """422 with one cause."""
    causes = [{"reason": reason, "message": message, "field": field}]
    text = f'Deployment.apps "echo" is invalid: {field}: {message}'
    return answer(422, text, {**NAMED, "causes": causes}, "Invalid")


RBAC = (
    'deployments.apps "echo" is forbidden: User "system:serviceaccount:modelfleet-system:controller" '
    'cannot patch resource "deployments" in API group "apps" in the namespace "models"'
)
TERMINATING = answer(
    403,
    'services "echo" is forbidden: unable to create new content in namespace models because it is being '
    "terminated",
    {**NAMED, "causes": [{"reason": "NamespaceTerminating", "field": "metadata.namespace"}]},
    "Forbidden",
)
LEAVING = "create not allowed while custom resource definition is terminating"
POLICY = (
    "services \"echo\" is forbidden: ValidatingAdmissionPolicy 'never-adopt' with binding 'never-adopt' "
    "denied request: NameConflict: object exists and is not owned by this Model Fleet resource"
)

CASES: list[tuple[str, KubeError, Cause]] = [
    (
        "stale revision",
        answer(
            409,
            'Operation cannot be fulfilled on deployments.apps "echo": the object has been modified',
            NAMED,
        ),
        Cause.STALE,
    ),
    (
        "gone, with a uid",
        answer(
            409, "uid mismatch: the provided object specified uid 1, and no existing object was found", NAMED
        ),
        Cause.STALE,
    ),
    ("other incarnation", invalid('Invalid value: "1": field is immutable', "metadata.uid"), Cause.STALE),
    ("immutable selector", invalid("Invalid value: {}: field is immutable"), Cause.IMMUTABLE),
    (
        "cluster IP",
        invalid('Invalid value: ["None"]: may not change once set', "spec.clusterIPs[0]"),
        Cause.IMMUTABLE,
    ),
    (
        "stateful set",
        invalid(
            "Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden", "spec"
        ),
        Cause.IMMUTABLE,
    ),
    (
        "bad label",
        invalid('Invalid value: "-": name part must consist of alphanumeric characters'),
        Cause.INVALID,
    ),
    ("bad request", answer(400, 'strict decoding error: unknown field "spec.nope"'), Cause.INVALID),
    (
        "wrong type in the live object",
        answer(
            500, "failed to create typed live object (models/echo; modelfleet.dev/v1alpha1): .spec.suspend"
        ),
        Cause.INVALID,
    ),
    (
        "wrong type in an apply",
        answer(
            500, "failed to create typed patch object (models/echo; apps/v1, Kind=Deployment): .spec.replicas"
        ),
        Cause.INVALID,
    ),
    ("method not allowed", answer(405, "the server does not allow this method", NAMED), Cause.INVALID),
    ("RBAC", answer(403, RBAC, NAMED, "Forbidden"), Cause.FORBIDDEN),
    ("credentials", answer(401, "Unauthorized", reason="Unauthorized"), Cause.FORBIDDEN),
    (
        "quota",
        answer(403, 'services "echo" is forbidden: exceeded quota: q, requested: count/services=1', NAMED),
        Cause.QUOTA_EXCEEDED,
    ),
    ("namespace terminating", TERMINATING, Cause.NAMESPACE_TERMINATING),
    ("policy", answer(422, POLICY, NAMED, "Invalid"), Cause.DENIED),
    (
        "webhook",
        answer(
            403, 'admission webhook "vscaledobject.kb.io" denied the request: the workload is managed twice'
        ),
        Cause.DENIED,
    ),
    (
        "webhook with a code of its own",
        answer(500, 'admission webhook "x.y.z" denied the request: no'),
        Cause.DENIED,
    ),
    (
        "admission plugin",
        answer(403, 'pods "p" is forbidden: violates PodSecurity "restricted:latest"', NAMED),
        Cause.DENIED,
    ),
    ("no such object", answer(404, 'deployments.apps "echo" not found', NAMED, "NotFound"), Cause.NOT_FOUND),
    (
        "no such namespace",
        answer(404, 'namespaces "models" not found', {"name": "models", "kind": "namespaces"}, "NotFound"),
        Cause.NOT_FOUND,
    ),
    ("no such group", answer(404, "404 page not found"), Cause.NOT_INSTALLED),
    (
        "no such version",
        answer(404, "the server could not find the requested resource", reason="NotFound"),
        Cause.NOT_INSTALLED,
    ),
    (
        "type is being deleted",
        answer(405, LEAVING, {"group": "keda.sh", "kind": "scaledobjects"}, "MethodNotAllowed"),
        Cause.NOT_INSTALLED,
    ),
    (
        "type is being deleted, forbidden",
        answer(403, f'scaledobjects.keda.sh "echo" is forbidden: {LEAVING}', NAMED, "Forbidden"),
        Cause.NOT_INSTALLED,
    ),
    (
        "policy that speaks of it",
        answer(403, f'admission webhook "x.y.z" denied the request: {LEAVING}'),
        Cause.DENIED,
    ),
    ("3.5 MB", answer(413, "Request entity too large: limit is 3145728"), Cause.TOO_LARGE),
    ("1.6 MB", answer(500, "etcdserver: request is too large"), Cause.TOO_LARGE),
    (
        "2.5 MB",
        answer(
            500, "rpc error: code = ResourceExhausted desc = trying to send message larger than max (1 vs. 2)"
        ),
        Cause.TOO_LARGE,
    ),
    ("throttled", StatusError(429, {"message": "too many requests"}, retry_after=1), Cause.THROTTLED),
    ("draining", StatusError(503, {"message": "shutting down"}, retry_after=5), Cause.THROTTLED),
    ("unavailable", answer(503, "the server is currently unable to handle the request"), Cause.UNREACHABLE),
    (
        "webhook down",
        answer(
            500, 'Internal error occurred: failed calling webhook "vscaledobject.kb.io": connection refused'
        ),
        Cause.UNREACHABLE,
    ),
    ("timeout", answer(504, "Timeout: request did not complete within requested timeout"), Cause.UNREACHABLE),
    ("redirect", answer(302, "redirected to https://login"), Cause.UNREACHABLE),
    ("no connection", TransportError("connection refused", sent=False), Cause.UNREACHABLE),
    ("no credentials", CredentialsError("token file is gone"), Cause.UNREACHABLE),
    ("no config", ConfigError("no kubeconfig"), Cause.UNREACHABLE),
    ("fenced", FencedError("not the leader"), Cause.NOT_LEADING),
]


@pytest.mark.parametrize(("error", "cause"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_cause(error: KubeError, cause: Cause) -> None:
    """Each answer has one cause, and its message begins with the object and ends with a next step."""
    problem = to_problem(error, REF)

    assert cause == problem.cause
    assert problem.message.startswith("Deployment models/echo: ")
    assert problem.message.endswith(".")
    assert "{" not in problem.message.rpartition(". ")[2]


def test_every_cause_of_a_request_is_covered() -> None:
    """No cause is without a case; NameConflict comes from a look at the live object."""
    assert set(Cause) - {Cause.NAME_CONFLICT} == {case[2] for case in CASES}


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            answer(403, RBAC, NAMED),
            ["patch", '"deployments"', "system:serviceaccount:modelfleet-system:controller", "RBAC"],
        ),
        (
            invalid("Invalid value: {}: field is immutable"),
            ["spec.selector: Invalid value: {}", "delete the Deployment"],
        ),
        (answer(404, "404 page not found"), ["deployments.apps", "v1"]),
        (TERMINATING, ["namespace models", "being deleted"]),
    ],
)
def test_messages_name_what_matters(error: KubeError, words: list[str]) -> None:
    """The server's words are kept: verb, kind, service account, field; the next step is added."""
    message = to_problem(error, REF).message

    assert [] == [word for word in words if word not in message]


def test_causes_are_listed_once() -> None:
    """A field the server complains about twice is told once, each complaint with its field."""
    causes = [
        {"message": "Required value", "field": "spec.b"},
        {"message": "Required value", "field": "spec.a"},
        {"message": "Required value", "field": "spec.b"},
    ]
    error = answer(422, "Deployment is invalid", {"causes": causes})

    expected = "Deployment models/echo: spec.b: Required value; spec.a: Required value. Correct the field"
    assert f"{expected} in the spec." == to_problem(error, REF).message


def test_long_answers_are_cut() -> None:
    """A refusal that quotes a megabyte still fits a condition."""
    message = to_problem(answer(400, "x" * 1_000_000), REF).message

    assert len(message) < MAX_SERVER_TEXT + 200


def test_retry_after_is_kept() -> None:
    """What the server asked for reaches the queue."""
    assert 7.0 == to_problem(StatusError(429, {}, retry_after=7.0), REF).retry_after
    assert to_problem(TransportError("reset"), REF).retry_after is None


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (TransportError("reset"), True),
        (TransportError("refused", sent=False), False),
        (answer(504, "Timeout"), True),
        (answer(500, "Internal error"), True),
        (answer(503, "unavailable"), False),
        (answer(409, "Conflict"), False),
        (answer(500, "failed to create typed patch object (a)"), False),
        (answer(500, "etcdserver: request is too large"), False),
        (FencedError("no"), False),
    ],
)
def test_may_have_happened(error: KubeError, *, expected: bool) -> None:
    """Rule A14 applies to writes nobody answered for, not to refusals that come as 500."""
    assert expected == may_have_happened(error)


@pytest.mark.parametrize(
    ("owners", "who"),
    [
        ((), "nobody"),
        ((Owner("v1", "Thing", "watcher", "u"),), "nobody"),
        ((Owner("apps/v1", "ReplicaSet", "rs", "u", controller=True),), "ReplicaSet rs"),
    ],
)
def test_name_conflict_names_the_holder(owners: tuple[Owner, ...], who: str) -> None:
    """Rule A8: the user learns who holds the name and that nothing was done to it."""
    problem = name_conflict(REF, Meta("models", "echo", "u1", "5", owners=owners))

    assert Cause.NAME_CONFLICT == problem.cause
    assert f"Deployment models/echo exists and is controlled by {who}" in problem.message
    assert "left untouched" in problem.message
