"""Manifests that the pinned Go modules carry: CRDs, RBAC, KWOK's stages.

Copied into the cache once, so that a warm start needs neither Go nor its module cache.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

from hack.cluster import golang
from hack.cluster.cache import Cache, digest
from hack.cluster.programs import CONTOUR, GATEWAY_API, KEDA, KWOK, MODS


@dataclass(frozen=True)
class Sources:
    """Some folders and files of one Go module."""

    module: str
    """Folder below `mods`."""
    package: str
    """Path of the Go module."""
    version: str
    paths: tuple[str, ...]

    @property
    def name(self) -> str:
        """As progress shows it."""
        return f"manifests of {self.module}"

    def find(self, cache: Cache) -> Path | None:
        """The copy, or None when it has to be made."""
        return cache.find("sources", self._entry)

    def folder(self, cache: Cache) -> Path:
        """The copy, laid out as in the module; made when it is missing. Raises `BuildError`."""
        return cache.obtain("sources", self._entry, lambda target: self._copy(cache, target))

    @property
    def _entry(self) -> str:
        pins = (MODS / self.module / "go.sum").read_bytes()
        return f"{self.module}-{self.version}-{digest(self.package, *self.paths, pins)}"

    def _copy(self, cache: Cache, target: Path) -> None:
        origin = golang.find(cache).module_folder(MODS / self.module, self.package)
        for path in self.paths:
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            if (origin / path).is_dir():
                # Files of Go's module cache are read-only; plain copies can be deleted again.
                shutil.copytree(origin / path, target / path, copy_function=shutil.copyfile)
            else:
                shutil.copyfile(origin / path, target / path)
        for folder in (folder for folder in target.rglob("*") if folder.is_dir()):
            folder.chmod(0o755)


GATEWAY_CRDS = Sources("gateway-api", "sigs.k8s.io/gateway-api", GATEWAY_API, ("config/crd/standard",))
CONTOUR_CRDS = Sources(
    "contour", "github.com/projectcontour/contour", CONTOUR, ("examples/contour/01-crds.yaml",)
)
KEDA_MANIFESTS = Sources(
    "keda", "github.com/kedacore/keda/v2", KEDA, ("config/crd/bases", "config/rbac", "config/metrics-server")
)
KWOK_STAGES = Sources(
    "kwok",
    "sigs.k8s.io/kwok",
    KWOK,
    (
        "kustomize/stage/pod/fast",
        "kustomize/stage/node/fast",
        "kustomize/stage/node/heartbeat-with-lease",
    ),
)
