"""What manifests/base promises, read from the YAML; that it is enough is shown by the contract tests."""

import itertools
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from modelfleet.api.meta import MANAGER, REPLICAS_MANAGER
from modelfleet.plan import Api
from modelfleet.reconcilers.inference import resources
from modelfleet.reconcilers.inference.apis import CHILDREN, INFERENCE_SERVICE
from modelfleet.runtime.lease import LEASE
from modelfleet.runtime.manager import STOP_MARGIN_SECONDS
from modelfleet.runtime.settings import ControllerSettings, flag_of

BASE = Path(__file__).parents[3] / "manifests" / "base"
ROLES = ("ClusterRole", "Role")


def documents() -> list[dict[str, Any]]:
    """Every object of the base."""
    names = yaml.safe_load((BASE / "kustomization.yaml").read_text())["resources"]
    return [doc for name in names for doc in yaml.safe_load_all((BASE / name).read_text())]


def one(kind: str, name: str = "modelfleet-controller") -> dict[str, Any]:
    """The object of that kind and name."""
    (found,) = [doc for doc in documents() if (doc["kind"], doc["metadata"]["name"]) == (kind, name)]
    return found


def granted(role: dict[str, Any]) -> set[tuple[str, str, str]]:
    """(group, resource, verb) of a role."""
    rules = role["rules"]
    return {
        item
        for rule in rules
        for item in itertools.product(rule["apiGroups"], rule["resources"], rule["verbs"])
    }


def verbs(api: Api, subresource: str = "") -> set[str]:
    """What the controller may do with a type."""
    resource = f"{api.plural}/{subresource}" if subresource else api.plural
    return {
        verb for group, name, verb in granted(one("ClusterRole")) if (group, name) == (api.group, resource)
    }


def test_nothing_is_left_out() -> None:
    """Every file of the folder is part of the kustomization."""
    listed = yaml.safe_load((BASE / "kustomization.yaml").read_text())["resources"]

    assert sorted(path.name for path in BASE.glob("*.yaml") if path.name != "kustomization.yaml") == sorted(
        listed
    )


@pytest.mark.parametrize(
    "role", [doc for doc in documents() if doc["kind"] in ROLES], ids=lambda doc: doc["metadata"]["name"]
)
def test_no_role_can_read_secrets_or_grow(role: dict[str, Any]) -> None:
    """No Secrets, no wildcards, no way to become more than one is (architecture.md section 5, promise 6)."""
    for group, resource, verb in granted(role):
        assert "*" not in (group, resource, verb)
        assert resource not in {"secrets", "configmaps", "pods/exec", "pods/attach", "serviceaccounts/token"}
        assert verb not in {"escalate", "bind", "impersonate", "approve", "sign"}
        assert group not in {
            "rbac.authorization.k8s.io",
            "authentication.k8s.io",
            "admissionregistration.k8s.io",
        }


@pytest.mark.parametrize("api", [resource.api for resource in resources()], ids=str)
def test_what_is_watched_may_be_read(api: Api) -> None:
    """Each kind the reconciler asks the cache for."""
    assert {"get", "list", "watch"} <= verbs(api)


def test_writes_are_for_children_only() -> None:
    """Children are applied and deleted, of our own kind only the status is written."""
    written = {
        (group, resource)
        for group, resource, verb in granted(one("ClusterRole"))
        if verb not in {"get", "list", "watch"}
    }
    children = {(api.group, api.plural) for api in CHILDREN}
    own = {(INFERENCE_SERVICE.group, f"inferenceservices/{part}") for part in ("status", "finalizers")}

    assert children | own | {("events.k8s.io", "events")} == written
    assert [{"get", "list", "watch", "create", "patch", "delete"}] * len(CHILDREN) == [
        verbs(a) for a in CHILDREN
    ]
    assert {"patch"} == verbs(INFERENCE_SERVICE, "status")
    assert {"update"} == verbs(INFERENCE_SERVICE, "finalizers")


def test_one_lease_in_its_own_namespace() -> None:
    """The election's rights end at the Lease of the default settings."""
    role = one("Role", "modelfleet-controller-leader")
    named = [rule for rule in role["rules"] if "resourceNames" in rule]

    assert {(LEASE.group, "leases", verb) for verb in ("create", "get", "update")} == granted(role)
    assert [[ControllerSettings.model_fields["lease_name"].default]] == [
        rule["resourceNames"] for rule in named
    ]
    assert [{"get", "update"}] == [set(rule["verbs"]) for rule in named]
    assert one("ServiceAccount")["metadata"]["namespace"] == role["metadata"]["namespace"]


def test_bindings_name_the_one_account() -> None:
    """Nobody else gets the controller's rights."""
    account = one("ServiceAccount")["metadata"]
    subjects = [
        doc["subjects"] for doc in documents() if doc["kind"] in ("ClusterRoleBinding", "RoleBinding")
    ]

    expected = {"kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"]}
    assert [[expected]] * 2 == subjects
    assert account["name"] == one("Deployment")["spec"]["template"]["spec"]["serviceAccountName"]


def test_pods_meet_the_restricted_standard() -> None:
    """The namespace enforces `restricted`, so the Deployment must meet it or no pod starts."""
    pod = one("Deployment")["spec"]["template"]["spec"]
    (container,) = pod["containers"]

    assert (
        "restricted"
        == one("Namespace", "modelfleet-system")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
    )
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert {"type": "RuntimeDefault"} == pod["securityContext"]["seccompProfile"]
    assert {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    } == container["securityContext"]
    assert "cpu" not in container["resources"]["limits"], "throttling would delay the lease"
    assert pod["enableServiceLinks"] is False


def test_arguments_are_flags_that_exist() -> None:
    """A flag that is renamed must be renamed here; ports, probes and flags agree."""
    (container,) = one("Deployment")["spec"]["template"]["spec"]["containers"]
    command, *flags = container["args"]
    given = dict(shlex.split(flag)[0].split("=", 1) for flag in flags)
    ports = {port["name"]: f":{port['containerPort']}" for port in container["ports"]}

    assert "controller" == command
    assert set(given) <= {flag_of(field) for field in ControllerSettings.model_fields}
    assert {"--health-bind": ports["health"], "--metrics-bind": ports["metrics"]} == given
    assert ["/healthz", "/readyz"] == [
        container[probe]["httpGet"]["path"] for probe in ("livenessProbe", "readinessProbe")
    ]
    assert {"health"} == {
        container[probe]["httpGet"]["port"] for probe in ("livenessProbe", "readinessProbe")
    }


def test_the_kubelet_waits_long_enough() -> None:
    """SIGKILL must not come before the ordered stop has had its whole time."""
    grace = one("Deployment")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]

    assert grace > ControllerSettings.model_fields["grace_period"].default + STOP_MARGIN_SECONDS


def test_selectors_find_the_pods() -> None:
    """The Service, the budget and the Deployment speak of the same labels."""
    deployment = one("Deployment")["spec"]
    labels = deployment["template"]["metadata"]["labels"]

    assert labels == deployment["selector"]["matchLabels"]
    assert labels == one("PodDisruptionBudget")["spec"]["selector"]["matchLabels"]
    assert labels == one("Service", "modelfleet-controller-metrics")["spec"]["selector"]
    assert "app.kubernetes.io/managed-by" not in labels, "the controller would watch itself"


def test_never_adopt_covers_every_child() -> None:
    """The second lock is on every kind we write, for both of our field managers."""
    policy = one("ValidatingAdmissionPolicy", "modelfleet-never-adopt")["spec"]
    rules = policy["matchConstraints"]["resourceRules"]
    covered = {(group, name) for r in rules for group in r["apiGroups"] for name in r["resources"]}
    (condition,) = policy["matchConditions"]
    binding = one("ValidatingAdmissionPolicyBinding", "modelfleet-never-adopt")["spec"]

    assert {(api.group, api.plural) for api in CHILDREN} == covered
    assert all(f"'{manager}'" in condition["expression"] for manager in (MANAGER, REPLICAS_MANAGER))
    assert ("Fail", ["Deny"]) == (policy["failurePolicy"], binding["validationActions"])
