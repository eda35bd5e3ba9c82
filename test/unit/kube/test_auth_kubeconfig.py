"""kubeconfig files as kubectl reads them."""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from modelfleet.kube import kubeconfig
from modelfleet.kube.errors import ConfigError


def write(path: Path, **sections: Any) -> Path:
    """A kubeconfig; `users={"u": {...}}` and so on."""
    singular = {"clusters": "cluster", "users": "user", "contexts": "context"}
    config: dict[str, Any] = {"apiVersion": "v1", "kind": "Config"}
    for section, content in sections.items():
        name = section.replace("_", "-")
        if section in singular:
            config[name] = [{"name": key, singular[section]: value} for key, value in content.items()]
        else:
            config[name] = content
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(config))
    return path


def test_the_first_file_to_set_a_value_wins(tmp_path: Path) -> None:
    """Of two files with the same names the first counts; current-context as well."""
    first = write(
        tmp_path / "one",
        clusters={"c": {"server": "https://one"}},
        current_context="main",
    )
    second = write(
        tmp_path / "two",
        clusters={"c": {"server": "https://two"}},
        users={"u": {"token": "t"}},
        contexts={"main": {"cluster": "c", "user": "u"}},
        current_context="other",
    )
    selected = kubeconfig.load([first, tmp_path / "missing", second])
    assert ("main", "https://one", "t") == (selected.context, selected.cluster.server, selected.user.token)


def test_relative_paths_start_at_the_file_that_holds_them(tmp_path: Path) -> None:
    """Cluster and user may come from files in different directories."""
    clusters = write(tmp_path / "a" / "config", clusters={"c": {"server": "https://s"}})
    rest = write(
        tmp_path / "b" / "config",
        users={"u": {"client-certificate": "me.crt"}},
        contexts={"x": {"cluster": "c", "user": "u"}},
        current_context="x",
    )
    selected = kubeconfig.load([clusters, rest])
    assert (tmp_path / "a", tmp_path / "b") == (selected.cluster_dir, selected.user_dir)


def test_a_named_context_wins_over_the_current_one(tmp_path: Path) -> None:
    """--context is what the user asks for now."""
    path = write(
        tmp_path / "config",
        clusters={"c": {"server": "https://c"}, "d": {"server": "https://d"}},
        contexts={"c": {"cluster": "c"}, "d": {"cluster": "d"}},
        current_context="c",
    )
    assert "https://d" == kubeconfig.load([path], "d").cluster.server


COMPLETE: dict[str, Any] = {
    "clusters": {"c": {"server": "https://c"}},
    "users": {"u": {"token": "s3cret"}},
    "contexts": {"x": {"cluster": "c", "user": "u"}},
    "current_context": "x",
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"current_context": ""}, "sets no current-context; pass --context (one of x)"),
        ({"current_context": "y"}, "has no context 'y'; pass --context (one of x)"),
        ({"contexts": {}, "current_context": ""}, "pass --context (none is defined yet)"),
        ({"clusters": {}}, "the cluster of context 'x' is 'c', not defined in"),
        ({"users": {}}, "the user of context 'x' is 'u', not defined in"),
        ({"clusters": {"c": {}}}, "has no server; add its https address"),
        ({"users": {"u": {"token": ["s3cret"]}}}, "Expected `str`, got `array` - at `$.users[0].user.token`"),
        ({"users": {"u": {"exec": {"args": ["s3cret"]}}}}, "missing required field `command`"),
    ],
)
def test_a_wrong_kubeconfig_names_file_field_and_remedy(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    """Each mistake is named with where it is; values of users never are."""
    path = write(tmp_path / "config", **(COMPLETE | change))
    with pytest.raises(ConfigError) as caught:
        kubeconfig.load([path])
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_no_file_at_all(tmp_path: Path) -> None:
    """All paths that were tried are named."""
    with pytest.raises(ConfigError, match=r"no kubeconfig at .*/a, .*/b; point --kubeconfig or KUBECONFIG"):
        kubeconfig.load([tmp_path / "a", tmp_path / "b"])


def test_broken_yaml_is_named_by_line_and_not_quoted(tmp_path: Path) -> None:
    """PyYAML's own message quotes the text around the mistake, which may be a token."""
    path = tmp_path / "config"
    path.write_text("users:\n- name: u\n  user: {token: s3cret\nclusters: [")
    with pytest.raises(ConfigError, match=r"config, line \d is not valid YAML") as caught:
        kubeconfig.load([path])
    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    """A directory stands for everything that can't be read, as root too."""
    (tmp_path / "config").mkdir()
    with pytest.raises(ConfigError, match=f"can't read kubeconfig .*config: {os.strerror(21)}"):
        kubeconfig.load([tmp_path / "config"])


@pytest.mark.parametrize("text", ["", "clusters: null\nusers:\ncontexts: []\n", "# nothing\n"])
def test_an_empty_file_counts_for_nothing(tmp_path: Path, text: str) -> None:
    """Kubectl makes such files; they must not hide the next one."""
    empty = tmp_path / "empty"
    empty.write_text(text)
    assert "x" == kubeconfig.load([empty, write(tmp_path / "config", **COMPLETE)]).context


def test_no_repr_shows_a_secret(tmp_path: Path) -> None:
    """Tracebacks with local variables end up in logs."""
    user = {
        "token": "s3cret",
        "password": "s3cret",
        "client-key-data": "s3cret",
        "exec": {"command": "x", "apiVersion": "v1", "env": [{"name": "A", "value": "s3cret"}]},
    }
    selected = kubeconfig.load([write(tmp_path / "config", **(COMPLETE | {"users": {"u": user}}))])
    assert "s3cret" == selected.user.token
    assert "s3cret" not in repr(selected)
    assert "s3cret" not in repr(list(selected.user.__rich_repr__()))
