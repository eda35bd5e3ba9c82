"""The sample that `make up` applies, and the names in it."""

from pathlib import Path
from typing import Any

import yaml

FILE = Path(__file__).parents[1] / "samples" / "inference-kind.yaml"


def _inference_service() -> dict[str, Any]:
    documents = yaml.safe_load_all(FILE.read_text())
    return next(dict(doc) for doc in documents if doc["kind"] == "InferenceService")


_IT = _inference_service()
NAME: str = _IT["metadata"]["name"]
NAMESPACE: str = _IT["metadata"]["namespace"]
HOST: str = _IT["spec"]["route"]["hostnames"][0]
LABEL = f"modelfleet.dev/inferenceservice={NAME}"
"""Selects whatever belongs to it."""
