import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from hack.cluster.cache import default_root
from hack.cluster.controlplane import ControlPlane
from hack.cluster.errors import ClusterError
from hack.cluster.process import Identity, PidFile

pytestmark = pytest.mark.contract


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Home, temporary and runtime folder of every program that is started."""
    monkeypatch.setenv("MODELFLEET_CACHE", str(default_root()))
    folder = tmp_path / "scratch"
    folder.mkdir()
    for variable in ("HOME", "TMPDIR", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(variable, str(folder))
    return folder


@pytest.fixture
def pair(tmp_path: Path, scratch: Path) -> Iterator[tuple[ControlPlane, ControlPlane]]:
    """Two control planes, side by side."""
    assert scratch.is_dir()  # made before them, so that they see the environment
    with (
        ControlPlane(tmp_path / "one", controller_manager=True) as one,
        ControlPlane(tmp_path / "two", audit=False, feature_gates={"WatchList": False}) as two,
    ):
        yield one, two


def processes(plane: ControlPlane) -> list[Identity]:
    """What a control plane runs, by its pid files."""
    found = [PidFile(file).read() for file in sorted((plane.directory / "run").glob("*.pid"))]
    return [identity for identity in found if identity]


def open_files(folder: Path) -> set[int]:
    """Processes on this machine that have a file below a folder open, or the folder in their arguments."""
    users = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_text().split("\0")
            targets = [str(file.readlink()) for file in (process / "fd").iterdir()]
        except OSError:
            continue  # it ended meanwhile
        if int(process.name) != os.getpid() and any(str(folder) in text for text in [*words, *targets]):
            users.add(int(process.name))
    return users


def test_two_side_by_side_leave_nothing_behind(
    pair: tuple[ControlPlane, ControlPlane], tmp_path: Path, scratch: Path
) -> None:
    """Two instances share no port, authority or object; stopped, no process and no file elsewhere is left."""
    one, two = pair
    one.kubectl("create", "namespace", "only-here")
    assert "namespace/only-here" in one.kubectl("get", "namespaces", "-o", "name")
    assert "namespace/only-here" not in two.kubectl("get", "namespaces", "-o", "name")
    with pytest.raises(ClusterError, match="certificate signed by unknown authority"):
        two.kubectl("get", "namespaces", f"--server={one.server}")

    ran = [*processes(one), *processes(two)]
    assert 5 == len(ran)
    for plane in (one, two):
        plane.stop()
        plane.stop()
    assert [] == [identity for identity in ran if Identity.of(identity.pid) == identity]
    assert set() == open_files(tmp_path)
    assert {"one", "scratch", "two"} == {entry.name for entry in tmp_path.iterdir()}
    assert [] == [path for path in scratch.rglob("*") if ".kube" not in path.parts]  # kubectl's own cache
    assert not list((one.directory / "run").iterdir())


def test_a_stopped_server_goes_on_where_it_was(pair: tuple[ControlPlane, ControlPlane]) -> None:
    """Clients of a server that crashed find the same data and address again; nothing else was stopped."""
    one, _ = pair
    server, config = one.server, one.kubeconfig.read_bytes()
    one.kubectl("create", "namespace", "kept")
    one.stop_apiserver(grace=0)
    with pytest.raises(ClusterError, match="refused"):
        one.kubectl("get", "namespace", "kept")
    assert {"etcd", "kube-controller-manager"} == {Path(found.executable).name for found in processes(one)}
    one.start_apiserver()
    assert (server, config) == (one.server, one.kubeconfig.read_bytes())
    assert "kept" in one.kubectl("get", "namespace", "kept")


def test_users_have_what_rbac_grants_and_the_audit_log_knows_them(
    pair: tuple[ControlPlane, ControlPlane],
) -> None:
    """Certificates and tokens carry identities, not rights; the audit log tells who did what."""
    one, two = pair
    one.kubectl("create", "serviceaccount", "robot", "--namespace=default")
    one.kubectl("create", "clusterrole", "reader", "--verb=list", "--resource=configmaps")
    one.kubectl("create", "clusterrolebinding", "readers", "--clusterrole=reader", "--group=readers",
                "--serviceaccount=default:robot")  # fmt: skip
    alice = one.kubeconfig_for_user("alice", ("readers",))
    robot = one.kubeconfig_for_service_account("default", "robot")
    mallory = one.kubeconfig_for_user("mallory")
    assert (0, 0, 1) == tuple(list_configmaps(one, config) for config in (alice, robot, mallory))
    events = [json.loads(line) for line in one.audit_log.read_text().splitlines()]
    listed = {
        event["user"]["username"]: event["responseStatus"]["code"]
        for event in events
        if event.get("objectRef", {}).get("resource") == "configmaps" and event["verb"] == "list"
    }
    expected = {"alice": 200, "system:serviceaccount:default:robot": 200, "mallory": 403}
    assert expected == {user: code for user, code in listed.items() if user in expected}
    assert not two.audit_log.exists()


def list_configmaps(plane: ControlPlane, config: Path) -> int:
    """Exit code of kubectl with another kubeconfig."""
    assert plane.server == yaml.safe_load(config.read_text())["clusters"][0]["cluster"]["server"]
    command = [str(plane.kubectl_binary), f"--kubeconfig={config}", "get", "configmaps", "-n", "default"]
    return subprocess.run(command, capture_output=True, check=False).returncode
