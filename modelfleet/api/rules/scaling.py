"""Rules on scaling; most are KEDA's own, whose webhook fails open (keda, scaledobject_webhook.go)."""

from typing import Any

from modelfleet.api.rules.rule import Rule
from modelfleet.api.scaling import Scaling, ScalingModifiers, Trigger

_RESOURCE = ("cpu", "memory")
_UNCACHED = ("cpu", "memory", "cron")


def _triggers(self: dict[str, Any]) -> list[dict[str, Any]]:
    triggers: list[dict[str, Any]] = self.get("triggers", [])
    return triggers


def _external(self: dict[str, Any]) -> bool:
    return any(trigger["type"] not in _RESOURCE for trigger in _triggers(self))


def _names_unique(self: dict[str, Any]) -> bool:
    names = [trigger["name"] for trigger in _triggers(self) if trigger.get("name")]
    return len(names) == len(set(names))


def _number_above_zero(text: str) -> bool:
    whole, _, rest = text.partition(".")
    return f"{whole}{rest}".isascii() and whole.isdigit() and (not rest or rest.isdigit()) and float(text) > 0


def _modifiers(self: dict[str, Any]) -> dict[str, Any]:
    modifiers: dict[str, Any] = self.get("scalingModifiers", {})
    return modifiers


_HAS_TRIGGERS = "has(self.triggers) && size(self.triggers) > 0"
_HAS_EXTERNAL = "(has(self.triggers) && self.triggers.exists(t, !(t.type in ['cpu', 'memory'])))"

SCALING_RULES = (
    Rule(
        Scaling,
        f"has(self.maxReplicas) || !({_HAS_TRIGGERS})",
        lambda self: "maxReplicas" in self or not _triggers(self),
        "must be set with triggers: write the most pods the model may have",
        "maxReplicas",
    ),
    Rule(
        Scaling,
        "!has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",
        lambda self: "maxReplicas" not in self or self["minReplicas"] <= self["maxReplicas"],
        "must not be above maxReplicas: lower it, or raise maxReplicas",
        "minReplicas",
    ),
    Rule(
        Scaling,
        f"self.minReplicas > 0 || ({_HAS_TRIGGERS})",
        lambda self: self["minReplicas"] > 0 or bool(_triggers(self)),
        "must not be 0 without triggers, since nothing could wake the model: add a trigger, or set "
        "suspend: true to stop it",
        "minReplicas",
    ),
    Rule(
        Scaling,
        f"self.minReplicas > 0 || !({_HAS_TRIGGERS}) || {_HAS_EXTERNAL}",
        lambda self: self["minReplicas"] > 0 or not _triggers(self) or _external(self),
        "must not be 0 with cpu and memory triggers only, which exist only while a pod runs: set 1, or "
        "add a trigger "
        "for a queue or the gateway",
        "minReplicas",
    ),
    Rule(
        Scaling,
        "!has(self.idleReplicaCount) || self.idleReplicaCount == 0",
        lambda self: self.get("idleReplicaCount", 0) == 0,
        "must be 0, the only number KEDA can idle at: write 0, or remove it",
        "idleReplicaCount",
    ),
    Rule(
        Scaling,
        "!has(self.idleReplicaCount) || self.minReplicas > 0",
        lambda self: "idleReplicaCount" not in self or self["minReplicas"] > 0,
        "must not be set with minReplicas 0, which idles at 0 already: remove it, or raise minReplicas",
        "idleReplicaCount",
    ),
    Rule(
        Scaling,
        "!has(self.triggers) || self.triggers.all(a, !has(a.name) || a.name == '' || "
        "self.triggers.exists_one(b, has(b.name) && b.name == a.name))",
        _names_unique,
        "must have different names: rename one of the triggers",
        "triggers",
    ),
    Rule(
        Scaling,
        f"!has(self.fallback) || !({_HAS_TRIGGERS}) || {_HAS_EXTERNAL}",
        lambda self: "fallback" not in self or not _triggers(self) or _external(self),
        "must not be set with cpu and memory triggers only, which have no source that could fail: remove it",
        "fallback",
    ),
    Rule(
        Scaling,
        "!has(self.fallback) || !has(self.fallback.behavior) || self.fallback.behavior != "
        "'scalingModifiers' || "
        "(has(self.scalingModifiers) && has(self.scalingModifiers.formula) && "
        "self.scalingModifiers.formula != '')",
        lambda self: (
            self.get("fallback", {}).get("behavior") != "scalingModifiers"
            or bool(_modifiers(self).get("formula"))
        ),
        "must not be scalingModifiers without scalingModifiers.formula: add a formula, or choose "
        "another behavior",
        "fallback.behavior",
    ),
    Rule(
        Scaling,
        "!has(self.scalingModifiers) || !has(self.scalingModifiers.formula) || "
        "(has(self.triggers) && self.triggers.exists(t, has(t.name) && t.name != ''))",
        lambda self: "formula" not in _modifiers(self) or any(t.get("name") for t in _triggers(self)),
        "must refer to triggers by name: give the triggers names",
        "scalingModifiers.formula",
    ),
    Rule(
        ScalingModifiers,
        "(has(self.formula) && self.formula != '') == (has(self.target) && self.target != '')",
        lambda self: bool(self.get("formula")) == bool(self.get("target")),
        "must have formula and target together: add the missing one",
        "formula",
    ),
    Rule(
        ScalingModifiers,
        "!has(self.target) || self.target == '' || "
        "(self.target.matches('^[0-9]+([.][0-9]+)?$') && double(self.target) > 0.0)",
        lambda self: not self.get("target") or _number_above_zero(self["target"]),
        'must be a number above 0 in quotes, such as "5" or "0.5"',
        "target",
    ),
    Rule(
        Trigger,
        "!has(self.useCachedMetrics) || !self.useCachedMetrics || !(self.type in ['cpu', 'memory', 'cron'])",
        lambda self: not self.get("useCachedMetrics") or self["type"] not in _UNCACHED,
        "must not be true for cpu, memory and cron triggers, which have nothing to cache: remove it",
        "useCachedMetrics",
    ),
    Rule(
        Trigger,
        "!has(self.metricType) || "
        "(self.type in ['cpu', 'memory'] ? self.metricType != 'Value' : self.metricType != 'Utilization')",
        lambda self: self.get("metricType") != ("Value" if self["type"] in _RESOURCE else "Utilization"),
        "must be Utilization or AverageValue for cpu and memory, and AverageValue or Value for every "
        "other trigger",
        "metricType",
    ),
)
