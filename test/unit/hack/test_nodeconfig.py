import json
import tomllib
from pathlib import Path

import pytest
import yaml

from hack.cluster import nodeconfig
from hack.cluster.debian import Packages
from hack.cluster.files import put
from hack.cluster.host import NODE_ADDRESS, POD_BRIDGE, POD_CIDR
from hack.cluster.images import PAUSE
from hack.cluster.layout import Layout


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """An instance in a folder of the test."""
    return Layout(tmp_path / "state", tmp_path / "runtime")


@pytest.fixture
def packages(tmp_path: Path) -> Packages:
    """Unpacked packages of which only runc exists."""
    (tmp_path / "packages" / "usr" / "bin").mkdir(parents=True)
    (tmp_path / "packages" / "usr" / "bin" / "runc").touch()
    return Packages(tmp_path / "packages")


def test_containerd_stays_inside_the_runtime_folder(layout: Layout, packages: Packages) -> None:
    """Root, state and socket vanish with the runtime folder; the sandbox image is ours."""
    config = tomllib.loads(nodeconfig.containerd(layout, packages))
    assert str(layout.containerd_socket) == config["grpc"]["address"]
    for key in ("root", "state"):
        assert Path(config[key]).is_relative_to(layout.runtime)
    assert PAUSE == config["plugins"]["io.containerd.cri.v1.images"]["pinned_images"]["sandbox"]


def test_containerd_runs_where_rights_are_few(layout: Layout, packages: Packages) -> None:
    """Without CAP_SYS_RESOURCE no sandbox starts unless OOM scores are left alone; runc is ours."""
    cri = tomllib.loads(nodeconfig.containerd(layout, packages))["plugins"]["io.containerd.cri.v1.runtime"]
    assert cri["restrict_oom_score_adj"]
    runc = cri["containerd"]["runtimes"]["runc"]["options"]
    assert {"BinaryName": str(packages.runc), "SystemdCgroup": False} == runc


def test_pods_get_addresses_of_the_pod_network(layout: Layout) -> None:
    """The bridge that `down` removes is the one that pods hang on."""
    plugin = json.loads(nodeconfig.cni(layout))["plugins"][0]
    assert (POD_BRIDGE, POD_CIDR) == (plugin["bridge"], plugin["ipam"]["ranges"][0][0]["subnet"])
    assert not plugin["ipMasq"]


def test_kubelet_accepts_only_the_clusters_clients(layout: Layout) -> None:
    """The kubelet listens on the node's own bridge, takes no anonymous request, and bears cgroup v1."""
    text = nodeconfig.kubelet(layout, authority=Path("/ca"), certificate=Path("/crt"), key=Path("/key"))
    config = yaml.safe_load(text)
    assert NODE_ADDRESS == config["address"] == config["healthzBindAddress"]
    assert {"enabled": False} == config["authentication"]["anonymous"]
    assert "Webhook" == config["authorization"]["mode"]
    assert config["failCgroupV1"] is False


def test_kube_proxy_leaves_host_limits_alone() -> None:
    """Conntrack settings of 0 mean: do not touch the host's sysctls."""
    config = yaml.safe_load(nodeconfig.kube_proxy(Path("/kubeconfig"), "node"))
    assert {0, "0s"} == set(config["conntrack"].values())
    assert [f"{NODE_ADDRESS}/32"] == config["nodePortAddresses"]


def test_an_unchanged_file_is_not_written_again(tmp_path: Path) -> None:
    """kube-proxy exits when its file is rewritten, even with the same content."""
    path = put(tmp_path / "conf" / "file", "text")
    before = path.stat()
    put(path, "text")
    assert (before.st_ino, before.st_mtime_ns) == (path.stat().st_ino, path.stat().st_mtime_ns)
    put(path, "other")
    assert "other" == path.read_text()
    assert [path] == list(path.parent.iterdir())


def test_secrets_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    """A file with a mode has it from its first byte."""
    assert 0o600 == put(tmp_path / "secret", "x", mode=0o600).stat().st_mode & 0o777
