"""CustomResourceDefinitions are large: applied once per content, and again when one has vanished.

Applying all of Gateway API's and KEDA's takes the API server several seconds; asking whether they are there
takes 0.1 s, which is what a second `up` pays.
"""

import json
from pathlib import Path

from hack.cluster.cache import digest
from hack.cluster.controlplane import ControlPlane
from hack.cluster.errors import ClusterError
from hack.cluster.files import put
from hack.cluster.process import wait_until

ESTABLISH_SECONDS = 60.0
"""Under a second on an idle machine."""
_ESTABLISHED = 'ESTABLISHED:.status.conditions[?(@.type=="Established")].status'


def install(control: ControlPlane, name: str, *files: Path) -> None:
    """Apply cluster-scoped manifests unless the same ones were applied and are still there."""
    stamp = control.directory / "conf" / f"applied-{name}.json"
    wanted = digest(*(part.read_bytes() for file in files for part in _parts(file)))
    if stamp.exists():
        applied = json.loads(stamp.read_text())
        if applied["digest"] == wanted and _exist(control, applied["objects"]):
            return
    lines = control.apply(*files).splitlines()  # each is `KIND.GROUP/NAME serverside-applied`
    objects = [line.split()[0] for line in lines]
    definitions = [name for name in objects if name.startswith("customresourcedefinition.")]
    wait_until(f"the CRDs of {name}", lambda: _established(control, definitions), seconds=ESTABLISH_SECONDS)
    put(stamp, json.dumps({"digest": wanted, "objects": objects}))


def _established(control: ControlPlane, definitions: list[str]) -> bool:
    columns = f"custom-columns={_ESTABLISHED}"
    try:
        printed = control.kubectl("get", "--no-headers", "-o", columns, *definitions)
    except (
        ClusterError
    ):  # its JSONPath fails while a status has no conditions, as that of `kubectl wait` does
        return False
    return set(printed.split()) == {"True"}


def _parts(file: Path) -> list[Path]:
    return sorted(file.iterdir()) if file.is_dir() else [file]


def _exist(control: ControlPlane, objects: list[str]) -> bool:
    try:
        control.kubectl("get", "-o", "name", *objects)
    except ClusterError:
        return False
    return True
