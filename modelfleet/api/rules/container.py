"""Rules on the container: what core/v1 would refuse in the Deployment, said earlier and with a remedy."""

from fractions import Fraction
from typing import Any

from modelfleet.api.core.container import Resources, VolumeMount
from modelfleet.api.core.env import EnvFromSource, EnvVar, EnvVarSource, ResourceFieldReference
from modelfleet.api.core.probes import LifecycleHandler, Probe, ReadinessProbe, RestartingProbe
from modelfleet.api.core.security import ConfinementProfile, PodSecurityContext, SecurityContext
from modelfleet.api.quantity import parse
from modelfleet.api.rules.rule import Rule, at_most_one, exactly_one

_CPU_DIVISORS = ("1", "1m")
_BYTE_DIVISORS = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")


def _amount(quantity: Any) -> Fraction:
    """An unreadable quantity has its own rule; here it is as good as any."""
    try:
        return parse(str(quantity))
    except ValueError:
        return Fraction(0)


def _requests_fit(self: dict[str, Any]) -> bool:
    requests, limits = self.get("requests", {}), self.get("limits", {})
    return all(_amount(requests[k]) <= _amount(limits[k]) for k in requests if k in limits)


def _whole(name: str) -> bool:
    return "/" in name or name.startswith("hugepages-")


def _devices_equal(self: dict[str, Any]) -> bool:
    requests, limits = self.get("requests", {}), self.get("limits", {})
    return all(k in limits and _amount(requests[k]) == _amount(limits[k]) for k in requests if _whole(k))


def _huge_pages_accompanied(self: dict[str, Any]) -> bool:
    names = {*self.get("requests", {}), *self.get("limits", {})}
    return not any(k.startswith("hugepages-") for k in names) or bool(names & {"cpu", "memory"})


def _divisor(self: dict[str, Any]) -> bool:
    allowed = _CPU_DIVISORS if self["resource"].endswith(".cpu") else _BYTE_DIVISORS
    return str(self.get("divisor", "1")) in allowed


def _localhost(self: dict[str, Any]) -> bool:
    local: bool = self["type"] == "Localhost"
    return local == ("localhostProfile" in self)


def _not_root(self: dict[str, Any]) -> bool:
    return not (self.get("runAsNonRoot") and self.get("runAsUser") == 0)


def _listed(values: tuple[str, ...]) -> str:
    return ", ".join(f"'{value}'" for value in values)


_READABLE = (
    "(!(k in self.limits) || !isQuantity(string(self.requests[k])) || !isQuantity(string(self.limits[k])) || "
)
_NOT_ROOT_CEL = "!(has(self.runAsNonRoot) && self.runAsNonRoot && has(self.runAsUser) && self.runAsUser == 0)"
_NOT_ROOT = "must not be 0 together with runAsNonRoot: true: choose another UID, or remove runAsNonRoot"

CONTAINER_RULES = (
    Rule(
        Resources,
        "!has(self.requests) || !has(self.limits) || self.requests.all(k, "
        f"{_READABLE}quantity(string(self.requests[k])).compareTo(quantity(string(self.limits[k]))) <= 0))",
        _requests_fit,
        "must not be above limits: lower the request or raise the limit of the same resource",
        "requests",
    ),
    Rule(
        Resources,
        "!has(self.requests) || self.requests.all(k, !(k.contains('/') || k.startsWith('hugepages-')) || "
        "(has(self.limits) && k in self.limits && (!isQuantity(string(self.requests[k])) || "
        "!isQuantity(string(self.limits[k])) || "
        "quantity(string(self.requests[k])).compareTo(quantity(string(self.limits[k]))) == 0)))",
        _devices_equal,
        "must equal limits for devices and hugepages, which can't be shared: set them in limits only",
        "requests",
    ),
    Rule(
        Resources,
        "!((has(self.limits) && self.limits.exists(k, k.startsWith('hugepages-'))) || "
        "(has(self.requests) && self.requests.exists(k, k.startsWith('hugepages-')))) || "
        "(has(self.limits) && ('cpu' in self.limits || 'memory' in self.limits)) || (has(self.requests) "
        "&& ('cpu' in self.requests || 'memory' in self.requests))",
        _huge_pages_accompanied,
        "must also name cpu or memory when it names hugepages",
        "limits",
    ),
    at_most_one(
        VolumeMount, "subPath", "subPathExpr", "must have subPath or subPathExpr, not both: remove one"
    ),
    at_most_one(EnvVar, "value", "valueFrom", "must have value or valueFrom, not both: remove one"),
    exactly_one(
        EnvVarSource,
        ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef"),
        "must have exactly one of fieldRef, resourceFieldRef, configMapKeyRef and secretKeyRef",
    ),
    Rule(
        EnvVarSource,
        "!has(self.fieldRef) || !(self.fieldRef.fieldPath in ['metadata.labels', 'metadata.annotations'])",
        lambda self: (
            self.get("fieldRef", {}).get("fieldPath") not in ("metadata.labels", "metadata.annotations")
        ),
        "must name one label or annotation, such as metadata.labels['app']; all of them need a "
        "downwardAPI volume",
        "fieldRef.fieldPath",
    ),
    Rule(
        ResourceFieldReference,
        "!has(self.divisor) || string(self.divisor) in (self.resource.endsWith('.cpu') ? "
        f"[{_listed(_CPU_DIVISORS)}] : [{_listed(_BYTE_DIVISORS)}])",
        _divisor,
        "must be 1 or 1m for cpu, and one unit such as 1, 1M or 1Mi for everything else",
        "divisor",
    ),
    exactly_one(
        EnvFromSource, ("configMapRef", "secretRef"), "must have exactly one of configMapRef and secretRef"
    ),
    exactly_one(
        Probe,
        ("httpGet", "tcpSocket", "grpc", "exec"),
        "must have exactly one of httpGet, tcpSocket, grpc and exec",
    ),
    exactly_one(
        LifecycleHandler, ("exec", "httpGet", "sleep"), "must have exactly one of exec, httpGet and sleep"
    ),
    Rule(
        RestartingProbe,
        "!has(self.successThreshold) || self.successThreshold <= 1",
        lambda self: self.get("successThreshold", 1) <= 1,
        "must be 1 for startup and liveness probes: remove it; only readinessProbe may ask for more",
        "successThreshold",
    ),
    Rule(
        ReadinessProbe,
        "!has(self.terminationGracePeriodSeconds)",
        lambda self: "terminationGracePeriodSeconds" not in self,
        "must not be set for a readiness probe, which ends no container: use "
        "pod.terminationGracePeriodSeconds",
        "terminationGracePeriodSeconds",
    ),
    Rule(
        ConfinementProfile,
        "(self.type == 'Localhost') == has(self.localhostProfile)",
        _localhost,
        "must be set with type Localhost, and only then",
        "localhostProfile",
    ),
    Rule(SecurityContext, _NOT_ROOT_CEL, _not_root, _NOT_ROOT, "runAsUser"),
    Rule(PodSecurityContext, _NOT_ROOT_CEL, _not_root, _NOT_ROOT, "runAsUser"),
)
