"""Affinity: which nodes, and near or far from which pods."""

from typing import Annotated, Literal

from modelfleet.api.base import CoreObject, DNSLabel, Items, LabelValue, QualifiedName, Range, Text
from modelfleet.api.core.selectors import LabelSelector

Weight = Annotated[int, Range(1, 100)]
LabelKeys = Annotated[tuple[QualifiedName, ...], Items(max=8)]


class NodeSelectorRequirement(CoreObject):
    """One condition on the labels of a node."""

    key: QualifiedName
    """Label key, such as nvidia.com/gpu.product."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    """How the node's value relates to `values`."""
    values: Annotated[tuple[LabelValue, ...], Items(max=64)] = ()
    """Label values: at least one for In and NotIn, none for Exists and DoesNotExist, one integer for Gt and
    Lt."""


class NodeFieldRequirement(CoreObject):
    """One condition on a field of a node; only its name is supported."""

    key: Literal["metadata.name"]
    """metadata.name."""
    operator: Literal["In", "NotIn"]
    """Whether the name must, or must not, be the value."""
    values: Annotated[tuple[Annotated[str, Text(max=253, min=1)], ...], Items(min=1, max=1)]
    """Exactly one node name."""


class NodeSelectorTerm(CoreObject):
    """Conditions on a node; all must hold. An empty term selects no node."""

    match_expressions: Annotated[tuple[NodeSelectorRequirement, ...], Items(max=16)] = ()
    """Conditions on labels."""
    match_fields: Annotated[tuple[NodeFieldRequirement, ...], Items(max=4)] = ()
    """Conditions on fields."""


class NodeSelector(CoreObject):
    """Nodes that match at least one of the terms."""

    node_selector_terms: Annotated[tuple[NodeSelectorTerm, ...], Items(min=1, max=16)]
    """Alternatives: one of them must match."""


class PreferredSchedulingTerm(CoreObject):
    """A preference for nodes."""

    weight: Weight
    """1 to 100; the weights of matching terms are added up."""
    preference: NodeSelectorTerm
    """Which nodes are preferred."""


class NodeAffinity(CoreObject):
    """Which nodes the pods may, or should, run on."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    """Pods run only on these nodes."""
    preferred_during_scheduling_ignored_during_execution: Annotated[
        tuple[PreferredSchedulingTerm, ...], Items(max=16)
    ] = ()
    """Pods run on these nodes where possible."""


class PodAffinityTerm(CoreObject):
    """Pods, and the topology domain in which they count as near."""

    topology_key: QualifiedName
    """Node label that names the domain, such as topology.kubernetes.io/zone."""
    label_selector: LabelSelector | None = None
    """Which pods. Default: none."""
    namespaces: Annotated[tuple[DNSLabel, ...], Items(max=32)] = ()
    """Namespaces of those pods. Default: the own namespace."""
    namespace_selector: LabelSelector | None = None
    """Selects namespaces by label, in addition to `namespaces`; {} selects all."""
    match_label_keys: LabelKeys = ()
    """Label keys whose values are taken from the own pod, such as pod-template-hash."""
    mismatch_label_keys: LabelKeys = ()
    """Label keys whose values must differ from the own pod's."""


class WeightedPodAffinityTerm(CoreObject):
    """A preference for being near to, or far from, pods."""

    weight: Weight
    """1 to 100; the weights of matching terms are added up."""
    pod_affinity_term: PodAffinityTerm
    """Which pods."""


class PodAffinity(CoreObject):
    """Pods to be near to (podAffinity) or far from (podAntiAffinity)."""

    required_during_scheduling_ignored_during_execution: Annotated[
        tuple[PodAffinityTerm, ...], Items(max=8)
    ] = ()
    """Must hold; all of them."""
    preferred_during_scheduling_ignored_during_execution: Annotated[
        tuple[WeightedPodAffinityTerm, ...], Items(max=8)
    ] = ()
    """Hold where possible."""


class Affinity(CoreObject):
    """Where the pods run, relative to nodes and to other pods."""

    node_affinity: NodeAffinity | None = None
    """Which nodes."""
    pod_affinity: PodAffinity | None = None
    """Near to which pods."""
    pod_anti_affinity: PodAffinity | None = None
    """Away from which pods."""
