from pathlib import Path

import pytest
from click.testing import CliRunner

from hack.cluster import cli, layout
from hack.cluster.binaries import Binaries
from hack.cluster.cache import Cache
from hack.cluster.cli import main
from hack.cluster.works import Works


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
    assert "instance ghost was never up: run `make up NAME=ghost`" in result.output


@pytest.mark.parametrize("command", ["down", "clean"])
def test_nothing_to_stop_is_no_error(repository: Path, command: str) -> None:
    """Stopping what never ran succeeds and makes no folder."""
    result = CliRunner().invoke(main, [command, "--name", "ghost"])
    assert (0, "") == (result.exit_code, result.output)
    assert [] == list(repository.iterdir())


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "nothing of instance dev runs: start it with `make up`"),
        (["--name", "ghost"], "nothing of instance ghost runs: start it with `make up NAME=ghost`"),
    ],
)
def test_status_fails_when_nothing_runs(arguments: list[str], expected: str) -> None:
    """Scripts can ask whether the cluster is up, and people are told how to get it up."""
    result = CliRunner().invoke(main, ["status", *arguments])
    assert (1, f"Error: {expected}\n") == (result.exit_code, result.output)


@pytest.mark.usefixtures("repository")
def test_an_interrupted_up_says_how_things_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C leaves running what was started: the user is told, with both ways on, and gets a shell's 130."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "order", interrupt)
    result = CliRunner().invoke(main, ["up", "--fake-node", "--name", "ghost"])
    assert 130 == result.exit_code
    expected = "keeps running; `make up NAME=ghost` goes on, `make down NAME=ghost` stops it"
    assert expected in result.output


@pytest.mark.parametrize(("names", "expected"), [([], "0 parts"), (["a"], "1 part"), (["a", "b"], "2 parts")])
def test_parts_are_counted_in_english(tmp_path: Path, names: list[str], expected: str) -> None:
    """One part is no parts."""
    cache = Cache(tmp_path)
    works = Works(cache, Binaries(cache))
    for name in names:
        works.progress.add(name, 1)
    assert expected == cli.count_parts(works)


@pytest.mark.usefixtures("repository")
def test_a_bad_name_is_refused() -> None:
    """A name can't lead out of the folder of instances."""
    result = CliRunner().invoke(main, ["down", "--name", "../x"])
    assert 1 == result.exit_code
    assert "name '../x'" in result.output
