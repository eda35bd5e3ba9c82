"""Rules on the InferenceService itself: name, Service, route, rollout, and those that join several parts."""

import re
from fractions import Fraction
from typing import Any

from modelfleet.api.base import ApiObject
from modelfleet.api.inference import (
    InferenceService,
    InferenceServiceSpec,
    PodDisruptionBudget,
    Rollout,
    Service,
)
from modelfleet.api.meta import NAME_MAX
from modelfleet.api.route import Route, Timeouts
from modelfleet.api.rules.rule import Across, Rule, at, exactly_one, full, unchanged

_AT_MOST_ALL = "(100|[0-9]{1,2})%"
_DURATION = "([0-9]{1,5}(h|m|s|ms)){1,4}"
_DNS_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_is_dns_1035 = full(_DNS_1035)
_is_at_most_all = full(_AT_MOST_ALL)
_UNITS = {"h": Fraction(3600), "m": Fraction(60), "s": Fraction(1), "ms": Fraction(1, 1000)}
_PERIOD, _FAILURES = 10, 3
"""periodSeconds and failureThreshold of a probe that leaves them out (core/v1)."""
_GRACE = 30
"""terminationGracePeriodSeconds of a pod that leaves it out (core/v1)."""


def _seconds(duration: str) -> Fraction:
    """Length of a GEP-2257 duration; 0 for anything else, which has its own rule."""
    parts = re.findall(r"([0-9]+)(h|ms|m|s)", duration)
    return sum((int(number) * _UNITS[unit] for number, unit in parts), Fraction(0))


def _backend_within_request(self: dict[str, Any]) -> bool:
    limit = _seconds(self["request"])
    return not limit or _seconds(self.get("backendRequest", "0s")) <= limit


def _parents_once(self: dict[str, Any]) -> bool:
    parents = [(ref["name"], ref.get("namespace", ""), ref["sectionName"]) for ref in self["parentRefs"]]
    return len(parents) == len(set(parents))


def _is_zero(amount: Any) -> bool:
    return amount in (0, "0%")


def _at_most_all(amount: Any) -> bool:
    return not isinstance(amount, str) or _is_at_most_all(amount)


def _is_name(name: str) -> bool:
    return len(name) <= NAME_MAX and _is_dns_1035(name)


def _mounts_exist(self: dict[str, Any]) -> bool:
    volumes = {volume["name"] for volume in at(self, "pod.volumes") or ()}
    return all(mount["name"] in volumes for mount in at(self, "container.volumeMounts") or ())


def _deadline_after_startup(self: dict[str, Any]) -> bool:
    deadline, probe = at(self, "rollout.progressDeadlineSeconds"), at(self, "container.startupProbe")
    if deadline is None or probe is None:
        return True
    checks = (probe.get("periodSeconds") or _PERIOD) * (probe.get("failureThreshold") or _FAILURES)
    return bool(deadline > probe.get("initialDelaySeconds", 0) + checks)


def _sleeps_within_grace(self: dict[str, Any]) -> bool:
    grace = at(self, "pod.terminationGracePeriodSeconds")
    seconds = at(self, "container.lifecycle.preStop.sleep.seconds")
    return bool((seconds or 0) <= (_GRACE if grace is None else grace))


def _at_most_100_percent(on: type[ApiObject], field: str) -> Rule:
    return Rule(
        on,
        f"!has(self.{field}) || type(self.{field}) == int || self.{field}.matches('^{_AT_MOST_ALL}$')",
        lambda self: _at_most_all(self.get(field, 0)),
        "must not be above 100%",
        field,
    )


def _amount_or(field: str, default: int) -> str:
    probe = "self.container.startupProbe"
    return f"(has({probe}.{field}) && {probe}.{field} > 0 ? {probe}.{field} : {default})"


_ZERO = "[dyn(0), dyn('0%')]"

SERVING_RULES = (
    Rule(
        InferenceService,
        f"size(self.metadata.name) <= {NAME_MAX} && self.metadata.name.matches('^{_DNS_1035}$')",
        lambda self: _is_name(at(self, "metadata.name") or ""),
        "must start with a lower-case letter and have lower-case letters, digits and -, at most "
        f"{NAME_MAX} characters, since the Service and KEDA's autoscaler are named after it: choose a "
        "shorter or simpler name",
        "metadata.name",
    ),
    unchanged(
        Service,
        "headless",
        "can't be changed, since a Service keeps its cluster IP for life: create a new InferenceService, "
        "or set it back",
    ),
    Rule(
        Route,
        "self.parentRefs.all(a, self.parentRefs.exists_one(b, a.name == b.name && a.sectionName == "
        "b.sectionName && has(a.__namespace__) == has(b.__namespace__) && (!has(a.__namespace__) || "
        "a.__namespace__ == b.__namespace__)))",
        _parents_once,
        "must name each listener once: remove the repeated one",
        "parentRefs",
    ),
    Rule(
        Timeouts,
        f"!has(self.backendRequest) || !self.request.matches('^{_DURATION}$') || "
        f"!self.backendRequest.matches('^{_DURATION}$') || duration(self.request) == duration('0s') || "
        "duration(self.backendRequest) <= duration(self.request)",
        _backend_within_request,
        "must not be longer than request: shorten it, or lengthen request",
        "backendRequest",
    ),
    exactly_one(
        PodDisruptionBudget,
        ("minAvailable", "maxUnavailable"),
        "must have exactly one of minAvailable and maxUnavailable: remove the other",
    ),
    _at_most_100_percent(PodDisruptionBudget, "minAvailable"),
    _at_most_100_percent(PodDisruptionBudget, "maxUnavailable"),
    _at_most_100_percent(Rollout, "maxUnavailable"),
    Rule(
        Rollout,
        f"!(has(self.maxSurge) && has(self.maxUnavailable) && self.maxSurge in {_ZERO} && "
        f"self.maxUnavailable in {_ZERO})",
        lambda self: not (_is_zero(self.get("maxSurge")) and _is_zero(self.get("maxUnavailable"))),
        "must not be 0 while maxSurge is 0, since nothing could be rolled out: set one of them to 1",
        "maxUnavailable",
    ),
    Across(
        InferenceServiceSpec,
        "!has(self.container.volumeMounts) || self.container.volumeMounts.all(m, has(self.pod) && "
        "has(self.pod.volumes) && self.pod.volumes.exists(v, v.name == m.name))",
        _mounts_exist,
        "must name volumes of pod.volumes: add the volume there, or correct the name",
        "container.volumeMounts",
        reads=("container.volumeMounts", "pod.volumes"),
    ),
    Across(
        InferenceServiceSpec,
        "!has(self.rollout) || !has(self.rollout.progressDeadlineSeconds) || "
        "!has(self.container.startupProbe) || self.rollout.progressDeadlineSeconds > "
        "(has(self.container.startupProbe.initialDelaySeconds) ? "
        f"self.container.startupProbe.initialDelaySeconds : 0) + {_amount_or('periodSeconds', _PERIOD)} * "
        f"{_amount_or('failureThreshold', _FAILURES)}",
        _deadline_after_startup,
        "must be longer than the startup probe may take (initialDelaySeconds + periodSeconds x "
        "failureThreshold), else every rollout fails while the model still loads: raise it, or remove it",
        "rollout.progressDeadlineSeconds",
        reads=("rollout.progressDeadlineSeconds", "container.startupProbe"),
    ),
    Across(
        InferenceServiceSpec,
        "!has(self.container.lifecycle) || !has(self.container.lifecycle.preStop) || "
        "!has(self.container.lifecycle.preStop.sleep) || self.container.lifecycle.preStop.sleep.seconds "
        "<= (has(self.pod) && has(self.pod.terminationGracePeriodSeconds) ? "
        f"self.pod.terminationGracePeriodSeconds : {_GRACE})",
        _sleeps_within_grace,
        f"must not be longer than pod.terminationGracePeriodSeconds (default {_GRACE}): shorten it, or "
        "raise the grace period",
        "container.lifecycle.preStop.sleep.seconds",
        reads=("container.lifecycle", "pod.terminationGracePeriodSeconds"),
    ),
)
