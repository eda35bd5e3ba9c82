"""How many pods: a fixed number, or what KEDA triggers ask for.

Triggers are passed to KEDA unchanged, unknown fields included (the one place where the CRD keeps them), so
that a newer KEDA needs no new release of ours. The rules on them are KEDA's own admission rules: its
webhook is optional and fails open (facts, platform.md 1.4).
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from modelfleet.api.base import (
    ApiObject,
    CoreObject,
    Count,
    DNSSubdomain,
    Entries,
    Items,
    Open,
    Quantity,
    Range,
    Text,
)

Replicas = Annotated[int, Range(0, 10_000)]
"""More pods than one Deployment has been seen to need; a bound against slips of the keyboard."""


class AuthenticationRef(CoreObject):
    """Refers to KEDA's credentials for the trigger's source."""

    name: DNSSubdomain
    """Name of the TriggerAuthentication."""
    kind: Literal["TriggerAuthentication", "ClusterTriggerAuthentication"] | None = None
    """TriggerAuthentication (this namespace) or ClusterTriggerAuthentication. Default
    TriggerAuthentication."""


class Trigger(Open):
    """A KEDA trigger, passed through unchanged; fields not listed here are kept too."""

    type: Annotated[str, Text(max=64, min=1)]
    """KEDA scaler, such as kafka, aws-sqs-queue, gcp-pubsub, prometheus or cron. With minReplicas 0 it must
    be a signal that exists while no pod runs: a metric of the model's own pods can't wake it."""
    name: Annotated[str, Text(max=128)] = ""
    """Name of the trigger, unique in the list; scalingModifiers.formula refers to it."""
    metadata: Annotated[Mapping[str, Annotated[str, Text(max=8192)]], Entries(max=64)]
    """Settings of the scaler. All values are strings: write "5", not 5."""
    metric_type: Literal["AverageValue", "Value", "Utilization"] | None = None
    """AverageValue: divided by the number of pods; Value: as it is; Utilization: cpu and memory only.
    Default AverageValue."""
    use_cached_metrics: bool = False
    """true: the value read in a polling interval is used for all requests in it. Not for cpu, memory and
    cron."""
    authentication_ref: AuthenticationRef | None = None
    """Credentials for the source."""


class Fallback(CoreObject):
    """How many pods while a trigger's source does not answer."""

    failure_threshold: Count
    """Failures in a row before the fallback holds."""
    replicas: Replicas
    """Pods to run then."""
    behavior: (
        Literal[
            "static",
            "currentReplicas",
            "currentReplicasIfHigher",
            "currentReplicasIfLower",
            "scalingModifiers",
        ]
        | None
    ) = None
    """static: `replicas`; currentReplicas: as many as now; currentReplicasIfHigher and -IfLower: the larger
    or smaller of both; scalingModifiers: the formula decides. Default static."""


class ScalingPolicy(CoreObject):
    """One limit on the speed of scaling."""

    type: Literal["Pods", "Percent"]
    """Unit of `value`: pods, or percent of the current number."""
    value: Annotated[int, Range(min=1)]
    """Largest change within periodSeconds."""
    period_seconds: Annotated[int, Range(1, 1800)]
    """Length of the period in seconds, 1 to 1800."""


class ScalingRules(CoreObject):
    """Speed of scaling in one direction."""

    stabilization_window_seconds: Annotated[int, Range(0, 3600)] | None = None
    """Seconds of past recommendations considered, 0 to 3600. Default 0 up and 300 down."""
    select_policy: Literal["Max", "Min", "Disabled"] | None = None
    """Which policy counts: the one that allows most (Max) or least (Min) change, or none (Disabled: no
    scaling in this direction). Default Max."""
    policies: Annotated[tuple[ScalingPolicy, ...], Items(max=16)] = ()
    """Limits on the speed. Default up: the larger of 4 pods and 100 % per 15 s; down: 100 % per 15 s."""
    tolerance: Quantity | None = None
    """Deviation from the target that is ignored, such as 0.1 for 10 %. Default 0.1."""


class Behavior(CoreObject):
    """Speed of scaling between 1 and maxReplicas, in both directions (autoscaling/v2 behavior)."""

    scale_up: ScalingRules | None = None
    """Scaling up. A pod that takes minutes to load is a reason for a slow policy."""
    scale_down: ScalingRules | None = None
    """Scaling down. The step to zero is KEDA's and follows cooldownPeriod only."""


class ScalingModifiers(CoreObject):
    """One metric computed from all triggers."""

    formula: Annotated[str, Text(max=4096, min=1)]
    """Expression over the triggers' names, such as "(queue + backlog) / 2"."""
    target: Annotated[str, Text(max=64, min=1)]
    """Target value of the formula: a number above 0 in quotes, such as "5"."""
    activation_target: Annotated[str, Text(max=64)] = ""
    """The model wakes above this value. Default 0."""
    metric_type: Literal["AverageValue", "Value"] | None = None
    """AverageValue: divided by the number of pods; Value: as it is. Default AverageValue."""


class Scaling(ApiObject):
    """How many pods.

    Without triggers: exactly minReplicas. With triggers: KEDA decides within the bounds, and the
    Deployment's replicas are not written again.
    """

    min_replicas: Replicas = 1
    """Fewest pods. Default 1. 0 needs triggers (scale to zero); to stop a model use suspend: true."""
    max_replicas: Annotated[int, Range(1, 10_000)] | None = None
    """Most pods; required with triggers, without effect else."""
    triggers: Annotated[tuple[Trigger, ...], Items(max=32)] = ()
    """KEDA triggers; the one that asks for most pods wins. Needs KEDA in the cluster."""
    polling_interval: Annotated[int, Range(min=1)] | None = None
    """Seconds between two looks at the triggers while no pod runs. Default 30."""
    cooldown_period: Count | None = None
    """Seconds from the last activity of a trigger until the model goes to zero. Default 300."""
    initial_cooldown_period: Count | None = None
    """Seconds after creation before the model may go to zero; should cover its load time. Default 0."""
    idle_replica_count: Replicas | None = None
    """0: no pods while no trigger is active, and at least minReplicas as soon as one is. Only 0 works, and
    only with minReplicas above 0."""
    fallback: Fallback | None = None
    """Pods while a trigger's source does not answer. Default: the number stays as it is."""
    behavior: Behavior | None = None
    """Speed of scaling between 1 and maxReplicas."""
    scaling_modifiers: ScalingModifiers | None = None
    """One metric computed from all triggers."""
