"""Golden renderings: specs/NAME.yaml compiled into golden/NAME.yaml.

    .venv/bin/python -m test.unit.compiler.golden

writes them anew. Look at the difference before you commit it: a pod template that changes here restarts every
model of every user at their next upgrade of the controller (architecture.md section 5, point 3).
"""

from pathlib import Path
from typing import Any

import yaml

from modelfleet.api.validate import parse
from modelfleet.compiler import Children, compile_inference

_HERE = Path(__file__).parent
SPECS = sorted((_HERE / "specs").glob("*.yaml"))
OWNER_UID = "8c7b5d1e-0000-4000-8000-000000000000"


def load(path: Path) -> dict[str, Any]:
    """The InferenceService in a file."""
    body: dict[str, Any] = yaml.safe_load(path.read_text())
    return body


def compiled(body: dict[str, Any]) -> Children:
    """The children of an InferenceService."""
    return compile_inference(parse(body), owner_uid=OWNER_UID)


def rendered(body: dict[str, Any]) -> str:
    """All manifests as they are first applied, in that order."""
    manifests = [manifest.body for manifest in compiled(body).at_birth]
    return yaml.safe_dump_all(manifests)


def golden(spec: Path) -> Path:
    """Where the rendering of a spec is kept."""
    return _HERE / "golden" / spec.name


def main() -> None:
    """Write all renderings."""
    for spec in SPECS:
        golden(spec).write_text(rendered(load(spec)))


if __name__ == "__main__":
    main()
