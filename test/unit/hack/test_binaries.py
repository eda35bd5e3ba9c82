from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hack.cluster import binaries
from hack.cluster.binaries import Binaries, entry_of, is_wanted
from hack.cluster.cache import Cache
from hack.cluster.programs import BY_NAME

ETCD, APISERVER, AGNHOST = BY_NAME["etcd"], BY_NAME["kube-apiserver"], BY_NAME["agnhost"]


@pytest.mark.parametrize(
    ("name", "printed", "expected"),
    [
        ("kube-apiserver", "Kubernetes v1.36.3", True),
        ("kube-apiserver", "Kubernetes v1.36.0", True),
        ("kube-apiserver", "Kubernetes v1.35.9", False),
        ("kube-apiserver", "Kubernetes v1.360.0", False),
        ("kube-apiserver", "Kubernetes v0.0.0-master+$Format:%H$", False),
        ("kubectl", "Client Version: v1.36.1\nKustomize Version: v5.8.1", True),
        ("kubectl", "Client Version: v1.32.4-dispatcher\nKustomize Version: v5.5.0", False),
        ("etcd", "etcd Version: 3.6.16\nGit SHA: x", True),
        ("etcd", "etcd Version: 3.5.21\nGo Version: go1.26.8", False),
        ("etcd", "", False),
    ],
)
def test_versions(name: str, printed: str, *, expected: bool) -> None:
    """Any patch release of the pinned minor version will do, with or without its `v`, and nothing else."""
    assert expected is is_wanted(BY_NAME[name], printed)


@pytest.fixture
def program_in(tmp_path: Path) -> Callable[[str, str, str], Path]:
    """Makes a script that prints a version."""

    def make(folder: str, name: str, prints: str) -> Path:
        path = tmp_path / folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\necho '{prints}'\n")
        path.chmod(0o755)
        return path

    return make


@pytest.fixture
def notes() -> list[str]:
    """What the search says about binaries it passes over."""
    return []


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, notes: list[str]) -> Binaries:
    """A search with an empty cache, over the folders `assets` and `path`."""
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    return Binaries(Cache(tmp_path / "cache"), note=notes.append)


Maker = Callable[[str, str, str], Path]


def test_assets_win_over_path(found: Binaries, program_in: Maker) -> None:
    """KUBEBUILDER_ASSETS is honoured when its version is right."""
    program_in("path", "etcd", "etcd Version: 3.6.1")
    expected = program_in("assets", "etcd", "etcd Version: 3.6.2")
    assert expected == found.find(ETCD)


def test_a_wrong_version_in_assets_is_passed_over_with_a_note(
    found: Binaries, program_in: Maker, notes: list[str]
) -> None:
    """A binary of another version is not used, and the note names it, its version and the wanted one."""
    wrong = program_in("assets", "kube-apiserver", "Kubernetes v1.30.0")
    expected = program_in("path", "kube-apiserver", "Kubernetes v1.36.9")
    assert expected == found.find(APISERVER)
    assert [f"{wrong} is not v1.36.x (it says 'Kubernetes v1.30.0'): passed over"] == notes


def test_a_binary_that_can_not_say_its_version_is_never_taken(found: Binaries, program_in: Maker) -> None:
    """Programs without a version probe come from the cache alone."""
    program_in("path", "agnhost", "v1.36.3")
    assert found.find(AGNHOST) is None


def test_a_built_program_is_found_again(found: Binaries, tmp_path: Path) -> None:
    """What was built once lies in the cache under name, version and digest."""
    made = Cache(tmp_path / "cache").obtain(
        "bin", entry_of(AGNHOST), lambda folder: (folder / "agnhost").touch()
    )
    assert made / "agnhost" == found.get(AGNHOST)


def test_an_entry_changes_with_everything_that_goes_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other flags, another package, another go.sum or main.go: another entry, so nothing stale is used."""
    monkeypatch.setattr(binaries, "MODS", tmp_path)
    (tmp_path / "m").mkdir()
    program = replace(AGNHOST, module="m")
    entries = [
        entry_of(program),
        entry_of(replace(program, ldflags="-s")),
        entry_of(replace(program, package="p")),
    ]
    for file in ("go.mod", "go.sum", "main.go"):
        (tmp_path / "m" / file).write_text(file)
        entries.append(entry_of(program))
    (tmp_path / "m" / "notes.txt").write_text("not an input")
    assert len(entries) == len(set(entries))
    assert entries[-1] == entry_of(program)
