"""Names of things in a cluster, as plain values.

An `Api` is one served resource type, a `Ref` one object of it. Both are hashable and ordered, so that
plans, logs and tests list them the same way each time.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Api:
    """One resource type at one version, as the API server serves it."""

    group: str
    """API group, "" for core."""
    version: str
    kind: str
    plural: str
    """Lower-case plural, the path segment and the name in RBAC rules."""
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """The manifest's `apiVersion`: `apps/v1`, or `v1` for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """`plural.group`, the name of the CustomResourceDefinition; the plural alone for core."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def __str__(self) -> str:
        return self.qualified


@dataclass(frozen=True, slots=True, order=True)
class Ref:
    """One object by name. It says nothing about which incarnation: that is `Precondition.uid`."""

    api: Api
    namespace: str
    """Empty for cluster-scoped objects."""
    name: str

    def __str__(self) -> str:
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.api.kind} {where}"


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """What the work queue holds: the namespace and name of an object of the reconciled kind."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
