from pathlib import Path

import pytest

from hack.cluster import layout
from hack.cluster.errors import HostError
from hack.cluster.layout import SOCKET_PATH_BYTES, Layout, check_socket


@pytest.mark.parametrize("name", ["dev", "a", "test-1", "x" * 40])
def test_good_names(name: str) -> None:
    """A name is a folder below build/cluster."""
    assert layout.REPOSITORY / "build" / "cluster" / name == Layout.named(name).state


@pytest.mark.parametrize("name", ["", "..", "a/b", "Dev", "-a", "a-", "x" * 41, "a b", "ä"])
def test_bad_names(name: str) -> None:
    """A name that could leave the folder or break a path is refused with the rule."""
    with pytest.raises(HostError, match="use at most 40 lower-case letters, digits and inner dashes"):
        Layout.named(name)


def test_a_deep_checkout_has_short_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sockets lie in a short folder, another for each instance, however deep the checkout lies."""
    monkeypatch.setattr(layout, "REPOSITORY", Path("/" + "deep/" * 60))
    monkeypatch.setenv("MODELFLEET_RUNTIME_DIR", "/run/mf")
    one, two = Layout.named("one"), Layout.named("two")
    assert len(str(one.containerd_socket)) < SOCKET_PATH_BYTES < len(str(one.state))
    assert one.runtime != two.runtime


def test_a_runtime_folder_too_deep_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's limit is named with the path, its length and the way out."""
    monkeypatch.setenv("MODELFLEET_RUNTIME_DIR", "/" + "x" * 80)
    with pytest.raises(
        HostError, match=r"is 1\d\d bytes long .* 107: set MODELFLEET_RUNTIME_DIR to a shorter folder"
    ):
        Layout.named("dev")


def test_the_limit_counts_bytes() -> None:
    """107 bytes are allowed, 108 are not; letters of two bytes count twice."""
    check_socket(Path("/" + "x" * 106))
    for path in ("/" + "x" * 107, "/" + "ä" * 54):
        with pytest.raises(HostError, match="bytes long"):
            check_socket(Path(path))
