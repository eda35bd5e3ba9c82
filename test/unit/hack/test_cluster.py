import ipaddress
import json
import shutil
import sys
from pathlib import Path

import pytest

from hack.cluster import cluster as clusters
from hack.cluster.binaries import Binaries
from hack.cluster.cache import Cache
from hack.cluster.cluster import Choice, Cluster, real_node_obstacle
from hack.cluster.errors import HostError
from hack.cluster.fakenode import POD_CIDR
from hack.cluster.layout import Layout
from hack.cluster.works import Works


@pytest.mark.parametrize(
    ("platform", "user", "tools", "expected"),
    [
        ("linux", 0, {"apt-get", "dpkg", "ip"}, ""),
        ("darwin", 0, {"apt-get", "dpkg", "ip"}, "this is not Linux"),
        ("linux", 1000, {"apt-get", "dpkg", "ip"}, "this is not root"),
        ("linux", 0, {"ip"}, "PATH has no apt-get and no dpkg"),
    ],
)
def test_why_there_is_no_real_node(
    monkeypatch: pytest.MonkeyPatch, platform: str, user: int, tools: set[str], expected: str
) -> None:
    """Whoever gets a fake node without having asked for it is told what was missing."""
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr("os.geteuid", lambda: user)
    monkeypatch.setattr(shutil, "which", lambda tool: tool if tool in tools else None)
    assert expected == real_node_obstacle()
    assert Choice(full=True, fake_because=expected).real_node is not bool(expected)


def test_a_real_node_is_not_turned_into_a_fake_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`up` refuses, untouched, and says why it would have been a fake node this time."""
    monkeypatch.setattr(clusters, "runtime_root", lambda: tmp_path)
    layout, cache = Layout(tmp_path / "state", tmp_path / "runtime"), Cache(tmp_path / "cache")
    (tmp_path / "node.json").write_text(
        json.dumps({"owner": str(layout.state), "sysctls": {}, "missing": []})
    )
    instance = Cluster(layout, Works(cache, Binaries(cache)), pytest.fail)
    with pytest.raises(HostError, match=r"a fake one now, since PATH has no dpkg: .*run `down` before `up`"):
        instance.up(Choice(full=True, fake_because="PATH has no dpkg"), pytest.fail)
    assert not layout.state.exists()


def test_fake_pods_have_addresses_of_nobody() -> None:
    """The gateway really connects to a fake pod's address, so it must be one set aside for benchmarks."""
    assert ipaddress.IPv4Network(POD_CIDR).subnet_of(ipaddress.IPv4Network("198.18.0.0/15"))
