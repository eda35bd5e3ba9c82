"""Tolerations and topology spread."""

from typing import Annotated, Literal

from modelfleet.api.base import EXACT_MAX, CoreObject, Format, Items, LabelValue, QualifiedName, Range
from modelfleet.api.core.affinity import LabelKeys
from modelfleet.api.core.selectors import LabelSelector

SPREAD = Format("topology spread constraints")


class Toleration(CoreObject):
    """Lets the pods run on nodes with a matching taint."""

    key: QualifiedName | None = None
    """Key of the taint, such as nvidia.com/gpu. Without it the operator must be Exists: every taint."""
    operator: Literal["Exists", "Equal"] | None = None
    """Exists: any value; Equal: exactly `value`. Default Equal."""
    value: LabelValue = ""
    """Value of the taint; not allowed with Exists."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """Effect of the taint. Default: every effect."""
    toleration_seconds: Annotated[int, Range(-EXACT_MAX, EXACT_MAX)] | None = None
    """Seconds the pod stays after a NoExecute taint appeared. Default: for ever."""


class TopologySpreadConstraint(CoreObject):
    """Spreads pods evenly over zones, nodes or other domains."""

    max_skew: Annotated[int, Range(min=1)]
    """Largest allowed difference between the number of pods in two domains."""
    topology_key: QualifiedName
    """Node label that names the domain, such as topology.kubernetes.io/zone."""
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    """DoNotSchedule: the pod waits; ScheduleAnyway: the constraint is a preference."""
    label_selector: LabelSelector | None = None
    """Which pods are counted. Default: the pods of this InferenceService."""
    min_domains: Annotated[int, Range(min=1)] | None = None
    """Domains there must at least be; only with DoNotSchedule."""
    node_affinity_policy: Literal["Honor", "Ignore"] | None = None
    """Whether nodes excluded by affinity count. Default Honor: they do not."""
    node_taints_policy: Literal["Honor", "Ignore"] | None = None
    """Whether nodes with taints the pod does not tolerate are left out. Default Ignore: they count."""
    match_label_keys: LabelKeys = ()
    """Label keys whose values are taken from the pod, such as pod-template-hash: each revision is spread
    alone."""


SpreadConstraints = Annotated[tuple[TopologySpreadConstraint, ...], Items(max=8), SPREAD]
