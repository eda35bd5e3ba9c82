"""Rules on placement and volumes: what core/v1 would refuse in the pod template."""

from typing import Any

from modelfleet.api.core.affinity import NodeSelectorRequirement, PodAffinityTerm
from modelfleet.api.core.scheduling import SPREAD, Toleration, TopologySpreadConstraint
from modelfleet.api.core.selectors import LabelSelectorRequirement
from modelfleet.api.core.volumes import DownwardAPIFile, Volume, VolumeProjection
from modelfleet.api.meta import RESERVED_VOLUME_PREFIX
from modelfleet.api.rules.rule import Rule, exactly_one

VOLUME_SOURCES = (
    "emptyDir",
    "persistentVolumeClaim",
    "configMap",
    "secret",
    "projected",
    "ephemeral",
    "csi",
    "downwardAPI",
    "image",
)
_PROJECTIONS = ("configMap", "secret", "downwardAPI", "serviceAccountToken")
_SETS = ("In", "NotIn")
_COMPARISONS = ("Gt", "Lt")


def _values_fit(self: dict[str, Any]) -> bool:
    return bool(self.get("values")) == (self["operator"] in (*_SETS, *_COMPARISONS))


def _is_integer(text: str) -> bool:
    return text.removeprefix("-").isascii() and text.removeprefix("-").isdigit()


def _compares_one_integer(self: dict[str, Any]) -> bool:
    values = self.get("values", ())
    return self["operator"] not in _COMPARISONS or (len(values) == 1 and _is_integer(values[0]))


def _tolerates(self: dict[str, Any]) -> bool:
    return "key" in self or self.get("operator") == "Exists"


def _exists_has_no_value(self: dict[str, Any]) -> bool:
    return self.get("operator") != "Exists" or not self.get("value")


def _seconds_only_for_no_execute(self: dict[str, Any]) -> bool:
    return "tolerationSeconds" not in self or self.get("effect") == "NoExecute"


def _spread_once(self: list[dict[str, Any]]) -> bool:
    pairs = [(each["topologyKey"], each["whenUnsatisfiable"]) for each in self]
    return len(pairs) == len(set(pairs))


def _keys_need_selector(self: dict[str, Any]) -> bool:
    return "labelSelector" in self or not (self.get("matchLabelKeys") or self.get("mismatchLabelKeys"))


_SET_VALUES_CEL = "(has(self.values) && size(self.values) > 0) == (self.operator in ['In', 'NotIn'])"

POD_RULES = (
    Rule(
        LabelSelectorRequirement,
        _SET_VALUES_CEL,
        _values_fit,
        "must have values with In and NotIn, and none with Exists and DoesNotExist",
        "values",
    ),
    Rule(
        NodeSelectorRequirement,
        "(has(self.values) && size(self.values) > 0) == (self.operator in ['In', 'NotIn', 'Gt', 'Lt'])",
        _values_fit,
        "must have values with In, NotIn, Gt and Lt, and none with Exists and DoesNotExist",
        "values",
    ),
    Rule(
        NodeSelectorRequirement,
        "!(self.operator in ['Gt', 'Lt']) || (has(self.values) && size(self.values) == 1 && "
        "self.values[0].matches('^-?[0-9]+$'))",
        _compares_one_integer,
        'must be one integer in quotes with Gt and Lt, such as ["40000"]',
        "values",
    ),
    Rule(
        PodAffinityTerm,
        "has(self.labelSelector) || !((has(self.matchLabelKeys) && size(self.matchLabelKeys) > 0) || "
        "(has(self.mismatchLabelKeys) && size(self.mismatchLabelKeys) > 0))",
        _keys_need_selector,
        "must be set with matchLabelKeys and mismatchLabelKeys, which only narrow it down",
        "labelSelector",
    ),
    Rule(
        Toleration,
        "has(self.key) || (has(self.operator) && self.operator == 'Exists')",
        _tolerates,
        "must be Exists when key is not set, which means every taint; else set key",
        "operator",
    ),
    Rule(
        Toleration,
        "!has(self.operator) || self.operator != 'Exists' || !has(self.value) || self.value == ''",
        _exists_has_no_value,
        "must not be set with operator Exists: remove it, or use operator Equal",
        "value",
    ),
    Rule(
        Toleration,
        "!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",
        _seconds_only_for_no_execute,
        "must be NoExecute when tolerationSeconds is set, since other effects evict nobody",
        "effect",
    ),
    Rule(
        TopologySpreadConstraint,
        "!has(self.minDomains) || self.whenUnsatisfiable == 'DoNotSchedule'",
        lambda self: "minDomains" not in self or self["whenUnsatisfiable"] == "DoNotSchedule",
        "must not be set with ScheduleAnyway: remove it, or use whenUnsatisfiable: DoNotSchedule",
        "minDomains",
    ),
    Rule(
        SPREAD,
        "self.all(a, self.exists_one(b, a.topologyKey == b.topologyKey && a.whenUnsatisfiable == "
        "b.whenUnsatisfiable))",
        _spread_once,
        "must have each pair of topologyKey and whenUnsatisfiable once: remove the other, or merge them",
    ),
    exactly_one(Volume, VOLUME_SOURCES, f"must have exactly one source: {', '.join(VOLUME_SOURCES)}"),
    Rule(
        Volume,
        f"!self.name.startsWith('{RESERVED_VOLUME_PREFIX}')",
        lambda self: not self["name"].startswith(RESERVED_VOLUME_PREFIX),
        f"must not start with {RESERVED_VOLUME_PREFIX}, which is kept for volumes the controller adds: "
        "choose another name",
        "name",
    ),
    exactly_one(VolumeProjection, _PROJECTIONS, f"must have exactly one of {', '.join(_PROJECTIONS)}"),
    Rule(
        DownwardAPIFile,
        "self.fieldRef.fieldPath.startsWith('metadata.')",
        lambda self: self["fieldRef"]["fieldPath"].startswith("metadata."),
        "must start with metadata. in a volume; spec and status are available as environment variables only",
        "fieldRef.fieldPath",
    ),
)
