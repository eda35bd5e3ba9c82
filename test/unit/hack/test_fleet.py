from pathlib import Path

import yaml

from hack.cluster.fleet import BASE, NAMESPACE, SERVICE_ACCOUNT, needed_outside, sources_digest


def test_the_shipped_rbac_is_what_the_controller_gets() -> None:
    """All of manifests/base is applied but what only a controller in a pod needs."""
    files = yaml.safe_load((BASE / "kustomization.yaml").read_text())["resources"]
    objects = [found for file in files for found in yaml.safe_load_all((BASE / file).read_text())]
    needed = needed_outside(objects)
    kinds = {found["kind"] for found in needed}
    assert {"Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding"} <= kinds
    assert not {"Deployment", "Service"} & kinds
    account = next(found["metadata"] for found in needed if found["kind"] == "ServiceAccount")
    assert (SERVICE_ACCOUNT, NAMESPACE) == (account["name"], account["namespace"])


def test_the_controller_is_replaced_when_its_sources_change(tmp_path: Path) -> None:
    """Content and names of Python files count; other files do not."""
    (tmp_path / "a.py").write_text("1")
    digests = [sources_digest(tmp_path)]
    (tmp_path / "notes.md").write_text("x")
    assert digests == [sources_digest(tmp_path)]
    (tmp_path / "a.py").write_text("2")
    digests.append(sources_digest(tmp_path))
    (tmp_path / "a.py").rename(tmp_path / "b.py")
    digests.append(sources_digest(tmp_path))
    assert 3 == len(set(digests))
