import hashlib
import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from hack.cluster.ociarchive import File, Folder, Layer, Link, write

NAME = "registry.example/tool:1"
CONFIG = {"Entrypoint": ["/tool"]}


def layer(source: Path) -> Layer:
    """One of each kind of entry, not in order."""
    return {"tool": File(source), "bin": Folder(), "bin/tool": Link("/tool"), "etc/motd": File(b"hi", 0o644)}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An image of two layers."""
    (tmp_path / "tool").write_bytes(b"program")
    write(tmp_path / "image.tar", NAME, CONFIG, [layer(tmp_path / "tool"), {"extra": File(b"more")}])
    return tmp_path / "image.tar"


def content(archive: Path) -> dict[str, bytes]:
    """Files of a tar by name."""
    with tarfile.open(archive) as tar:
        members = {member.name: tar.extractfile(member) for member in tar.getmembers()}
        return {name: file.read() for name, file in members.items() if file}


def test_the_same_content_gives_the_same_bytes(archive: Path, tmp_path: Path) -> None:
    """Times, order and place of the sources leave no trace."""
    (tmp_path / "elsewhere").mkdir()
    copy = tmp_path / "elsewhere" / "renamed"
    copy.write_bytes(b"program")
    os.utime(copy, (1, 1))
    shuffled = dict(reversed(list(layer(copy).items())))
    write(tmp_path / "again.tar", NAME, CONFIG, [shuffled, {"extra": File(b"more")}])
    assert archive.read_bytes() == (tmp_path / "again.tar").read_bytes()


def test_every_blob_is_named_by_its_digest(archive: Path) -> None:
    """A reader that checks digests, as containerd does, accepts every blob."""
    blobs = {
        name.rpartition("/")[2]: data for name, data in content(archive).items() if name.startswith("blobs/")
    }
    assert 4 == len(blobs)  # two layers, configuration, manifest
    for digest, data in blobs.items():
        assert digest == hashlib.sha256(data).hexdigest()


def test_the_index_leads_to_the_layers(archive: Path) -> None:
    """Index, manifest, configuration and layers hang together, sizes included."""
    files = content(archive)

    def follow(reference: dict[str, Any]) -> bytes:
        data = files[f"blobs/sha256/{reference['digest'].removeprefix('sha256:')}"]
        assert reference["size"] == len(data)
        return data

    entry = json.loads(files["index.json"])["manifests"][0]
    assert NAME == entry["annotations"]["io.containerd.image.name"]
    manifest = json.loads(follow(entry))
    config = json.loads(follow(manifest["config"]))
    assert CONFIG == config["config"]
    assert config["rootfs"]["diff_ids"] == [reference["digest"] for reference in manifest["layers"]]
    with tarfile.open(fileobj=io.BytesIO(follow(manifest["layers"][0]))) as tar:
        assert ["bin", "bin/tool", "etc/motd", "tool"] == tar.getnames()
        assert (0o755, "/tool") == (tar.getmember("tool").mode, tar.getmember("bin/tool").linkname)
