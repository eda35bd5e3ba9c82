"""CustomResourceDefinitions from the API types.

A further kind is one more `Kind` in `KINDS`: its types and its rules say the rest.
"""

from dataclasses import dataclass
from typing import Any

from modelfleet.api.base import ApiObject
from modelfleet.api.inference import KIND as INFERENCE_SERVICE
from modelfleet.api.inference import InferenceService
from modelfleet.api.meta import CATEGORY, GROUP, VERSION, ConditionType
from modelfleet.api.schema import Schema, object_schema, published

SIZE_LIMIT = 256 * 1024
"""Bytes of one CRD: client-side `kubectl apply` keeps a copy in an annotation, which may have 256 KiB."""


@dataclass(frozen=True, slots=True)
class Column:
    """A printer column; `wide` ones need `-o wide`."""

    name: str
    json_path: str
    description: str
    type: str = "string"
    wide: bool = False

    def wire(self) -> dict[str, Any]:
        """The entry in additionalPrinterColumns."""
        entry = {
            "name": self.name,
            "type": self.type,
            "description": self.description,
            "jsonPath": self.json_path,
        }
        return entry | ({"priority": 1} if self.wide else {})


@dataclass(frozen=True, slots=True)
class Kind:
    """One custom resource."""

    name: str
    plural: str
    short_name: str
    model: type[ApiObject]
    columns: tuple[Column, ...]
    """What `kubectl get` prints after NAME, in this order."""

    @property
    def crd_name(self) -> str:
        """Name of the CustomResourceDefinition."""
        return f"{self.plural}.{GROUP}"


def condition_column(
    name: str, condition: str, field: str, description: str, *, wide: bool = False
) -> Column:
    """A column that shows one field of one condition."""
    return Column(name, f'.status.conditions[?(@.type=="{condition}")].{field}', description, wide=wide)


AGE = Column("AGE", ".metadata.creationTimestamp", "Time since creation.", type="date")

INFERENCE = Kind(
    name=INFERENCE_SERVICE,
    plural="inferenceservices",
    short_name="isvc",
    model=InferenceService,
    columns=(
        condition_column("READY", ConditionType.READY, "status", "Whether the object is what its spec says."),
        condition_column("REASON", ConditionType.READY, "reason", "Why it is, or is not, ready."),
        Column("REPLICAS", ".status.summary.replicas", "Ready and desired pods."),
        Column("URL", ".status.url", "URL through the gateway."),
        AGE,
        condition_column(
            "SERVING", ConditionType.SERVING, "status", "Whether requests are answered now.", wide=True
        ),
        Column("MIN", ".spec.scaling.minReplicas", "Fewest pods.", type="integer", wide=True),
        Column("MAX", ".spec.scaling.maxReplicas", "Most pods.", type="integer", wide=True),
        condition_column("MESSAGE", ConditionType.READY, "message", "What is going on, in words.", wide=True),
    ),
)

KINDS: tuple[Kind, ...] = (INFERENCE,)


def crds() -> dict[str, dict[str, Any]]:
    """Every CustomResourceDefinition, by its name."""
    return {kind.crd_name: crd(kind) for kind in KINDS}


def crd(kind: Kind) -> dict[str, Any]:
    """The CustomResourceDefinition of one kind."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.crd_name},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.name.lower(),
                "shortNames": [kind.short_name],
                "categories": [CATEGORY],
            },
            "scope": "Namespaced",
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "additionalPrinterColumns": [column.wire() for column in kind.columns],
                    "schema": {"openAPIV3Schema": published(root_schema(kind))},
                    "subresources": {"status": {}},
                }
            ],
        },
    }


def root_schema(kind: Kind) -> Schema:
    """The schema of the whole object; type and metadata are the API server's own business."""
    schema = object_schema(kind.model)
    properties = dict(schema["properties"])
    for name in ("apiVersion", "kind"):
        properties[name] = {"type": "string", "description": properties[name]["description"]}
    properties["metadata"] = {
        "type": "object",
        "properties": {"name": {"type": "string"}},
    }  # a rule points at it
    description = " ".join((kind.model.__doc__ or "").split())
    return schema | {"description": description, "properties": properties, "required": ["spec"]}
