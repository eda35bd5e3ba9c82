from pathlib import Path

import pytest
from click.testing import CliRunner

from hack.cluster import layout
from hack.cluster.cli import main


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout where nothing was ever started."""
    monkeypatch.setattr(layout, "REPOSITORY", tmp_path)
    return tmp_path


@pytest.mark.usefixtures("repository")
def test_kubeconfig_of_an_instance_that_never_was() -> None:
    """The error names the instance and the command that makes it; it is no traceback."""
    result = CliRunner().invoke(main, ["kubeconfig", "--name", "ghost"])
    assert 1 == result.exit_code
    assert "instance ghost was never up: run `python -m hack.cluster up --name ghost`" in result.output


@pytest.mark.parametrize("command", ["down", "clean"])
def test_nothing_to_stop_is_no_error(repository: Path, command: str) -> None:
    """Stopping what never ran succeeds and makes no folder."""
    result = CliRunner().invoke(main, [command, "--name", "ghost"])
    assert (0, "") == (result.exit_code, result.output)
    assert [] == list(repository.iterdir())


@pytest.mark.usefixtures("repository")
def test_status_fails_when_nothing_runs() -> None:
    """Scripts can ask whether the cluster is up."""
    assert 1 == CliRunner().invoke(main, ["status"]).exit_code


@pytest.mark.usefixtures("repository")
def test_a_bad_name_is_refused() -> None:
    """A name can't lead out of the folder of instances."""
    result = CliRunner().invoke(main, ["down", "--name", "../x"])
    assert 1 == result.exit_code
    assert "name '../x'" in result.output
