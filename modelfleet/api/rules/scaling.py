"""Rules on scaling; most are KEDA's own, whose webhook fails open (keda, scaledobject_webhook.go)."""

from typing import Any

from modelfleet.api.rules.rule import Rule, at, full
from modelfleet.api.scaling import Scaling, ScalingModifiers, Trigger

_RESOURCE = ("cpu", "memory")
_UNCACHED = ("cpu", "memory", "cron")
_NUMBER = "[0-9]+([.][0-9]+)?"
_is_number = full(_NUMBER)


def _triggers(self: dict[str, Any]) -> list[dict[str, Any]]:
    triggers: list[dict[str, Any]] = self.get("triggers", [])
    return triggers


def _external(self: dict[str, Any]) -> bool:
    return any(trigger["type"] not in _RESOURCE for trigger in _triggers(self))


def _names_unique(self: dict[str, Any]) -> bool:
    names = [trigger["name"] for trigger in _triggers(self) if trigger.get("name")]
    return len(names) == len(set(names))


def _named(self: dict[str, Any]) -> bool:
    return any(trigger.get("name") and trigger["type"] not in _RESOURCE for trigger in _triggers(self))


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
        "add a trigger for a queue or the gateway",
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
        f"!has(self.fallback) || has(self.scalingModifiers) || !({_HAS_TRIGGERS}) || {_HAS_EXTERNAL}",
        lambda self: (
            "fallback" not in self or "scalingModifiers" in self or not _triggers(self) or _external(self)
        ),
        "must not be set with cpu and memory triggers only, which have no source that could fail: remove it",
        "fallback",
    ),
    Rule(
        Scaling,
        "has(self.scalingModifiers) || !has(self.fallback) || !has(self.fallback.behavior) || "
        "self.fallback.behavior != 'scalingModifiers'",
        lambda self: "scalingModifiers" in self or at(self, "fallback.behavior") != "scalingModifiers",
        "must not be scalingModifiers without scaling.scalingModifiers: add a formula there, or choose "
        "another behavior",
        "fallback.behavior",
    ),
    Rule(
        Scaling,
        "!has(self.scalingModifiers) || (has(self.triggers) && self.triggers.exists(t, has(t.name) && "
        "t.name != '' && !(t.type in ['cpu', 'memory'])))",
        lambda self: "scalingModifiers" not in self or _named(self),
        "must refer to triggers by name, other than cpu and memory: give the triggers names",
        "scalingModifiers.formula",
    ),
    Rule(
        ScalingModifiers,
        f"self.target.matches('^{_NUMBER}$') && double(self.target) > 0.0",
        lambda self: _is_number(self["target"]) and float(self["target"]) > 0,
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
        "!has(self.metricType) || (self.type in ['cpu', 'memory'] ? self.metricType != 'Value' : "
        "self.metricType != 'Utilization')",
        lambda self: self.get("metricType") != ("Value" if self["type"] in _RESOURCE else "Utilization"),
        "must be Utilization or AverageValue for cpu and memory, and AverageValue or Value for every "
        "other trigger",
        "metricType",
    ),
)
