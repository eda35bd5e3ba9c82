"""Container images as OCI archives, for `ctr images import`.

The same content gives the same bytes and digests everywhere: times are fixed, names sorted, owners root.
"""

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_EPOCH = 1_700_000_000
_CREATED = "2023-11-14T22:13:20Z"  # the same moment
_MEDIA = "application/vnd.oci.image"
_ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class File:
    """A regular file; `source` is read when the archive is written."""

    source: Path | bytes
    mode: int = 0o755


@dataclass(frozen=True)
class Link:
    """A symbolic link."""

    target: str


@dataclass(frozen=True)
class Folder:
    """A directory."""

    mode: int = 0o755


Layer = Mapping[str, File | Link | Folder]
"""Content by path without a leading slash."""


def write(archive: Path, name: str, config: Mapping[str, Any], layers: Sequence[Layer]) -> None:
    """Write an image under its full name (`registry/repository:tag`)."""
    tars = [_tar(layer) for layer in layers]
    blobs = {_sha256(tar): tar for tar in tars}
    architecture = _ARCHITECTURE.get(platform.machine(), platform.machine())

    def blob(content: Mapping[str, Any], media: str) -> dict[str, Any]:
        data = _json(content)
        blobs[_sha256(data)] = data
        return {"mediaType": f"{_MEDIA}.{media}", "digest": f"sha256:{_sha256(data)}", "size": len(data)}

    diff_ids = [f"sha256:{_sha256(tar)}" for tar in tars]
    image = blob(
        {
            "architecture": architecture,
            "os": "linux",
            "created": _CREATED,
            "config": dict(config),
            "rootfs": {"type": "layers", "diff_ids": diff_ids},
            "history": [{"created": _CREATED}] * len(tars),
        },
        "config.v1+json",
    )
    layer_refs = [
        {"mediaType": f"{_MEDIA}.layer.v1.tar", "digest": diff_id, "size": len(tar)}
        for diff_id, tar in zip(diff_ids, tars, strict=True)
    ]
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{_MEDIA}.manifest.v1+json",
        "config": image,
        "layers": layer_refs,
    }
    reference = blob(manifest, "manifest.v1+json") | {
        "platform": {"architecture": architecture, "os": "linux"},
        "annotations": {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name},
    }
    content = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}'}
    content["index.json"] = _json({"schemaVersion": 2, "manifests": [reference]})
    content |= {f"blobs/sha256/{digest}": data for digest, data in sorted(blobs.items())}
    with tarfile.open(archive, "w") as tar:
        for path, data in content.items():
            tar.addfile(_info(path, tarfile.REGTYPE, 0o644, len(data)), io.BytesIO(data))


def _tar(layer: Layer) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, entry in sorted(layer.items()):
            match entry:
                case Folder(mode):
                    tar.addfile(_info(path, tarfile.DIRTYPE, mode))
                case Link(target):
                    info = _info(path, tarfile.SYMTYPE, 0o777)
                    info.linkname = target
                    tar.addfile(info)
                case File(source, mode):
                    data = source if isinstance(source, bytes) else source.read_bytes()
                    tar.addfile(_info(path, tarfile.REGTYPE, mode, len(data)), io.BytesIO(data))
    return buffer.getvalue()


def _info(path: str, kind: bytes, mode: int, size: int = 0) -> tarfile.TarInfo:
    info = tarfile.TarInfo(path)
    info.type, info.mode, info.size, info.mtime = kind, mode, size, _EPOCH
    return info


def _json(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
