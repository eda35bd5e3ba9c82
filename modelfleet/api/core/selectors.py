"""metav1.LabelSelector and the references by name that core/v1 uses throughout."""

from typing import Annotated, Literal

from pydantic import Field

from modelfleet.api.base import CoreObject, DNSSubdomain, Items, Labels, LabelValue, QualifiedName


class LabelSelectorRequirement(CoreObject):
    """One condition on the labels of an object."""

    key: QualifiedName
    """Label key, such as app.kubernetes.io/name."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """How the label's value relates to `values`."""
    values: Annotated[tuple[LabelValue, ...], Items(max=32)] = ()
    """Label values; required by In and NotIn, not allowed with Exists and DoesNotExist."""


class LabelSelector(CoreObject):
    """Selects objects by label; all conditions must hold. An empty selector selects every object."""

    match_labels: Labels = Field(default_factory=dict)
    """Labels that must be present with exactly these values."""
    match_expressions: Annotated[tuple[LabelSelectorRequirement, ...], Items(max=8)] = ()
    """Further conditions; all must hold."""


class LocalReference(CoreObject):
    """Refers to an object in the same namespace by name."""

    name: DNSSubdomain
    """Name of the object."""
