"""The cases of test/contract/schema as objects, for tests that need many good and bad ones."""

import copy
from pathlib import Path
from typing import Any

import yaml

from modelfleet.api.meta import API_VERSION

Object = dict[str, Any]

FOLDER = Path(__file__).parents[2] / "contract" / "schema"


def isvc(spec: Object | None = None, **metadata: Any) -> Object:
    """An InferenceService; the container's image is filled in."""
    filled = copy.deepcopy(spec or {})
    container = filled.setdefault("container", {})
    if container is not None:
        container.setdefault("image", "registry.example.com/server:1.0")
    return {
        "apiVersion": API_VERSION,
        "kind": "InferenceService",
        "metadata": {"name": "case", "namespace": "models"} | metadata,
        "spec": filled,
    }


def load() -> list[Object]:
    """Every case as it is written."""
    return [case for path in sorted(FOLDER.glob("*.yaml")) for case in yaml.safe_load(path.read_text())]


CASES = load()
ACCEPTED = [
    isvc(case.get("spec"), **case.get("metadata", {}))
    for case in CASES
    if "refused" not in case and not case.get("lax")
]
"""Objects that nothing is wrong with."""
