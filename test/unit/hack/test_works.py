import threading
from pathlib import Path

import pytest

from hack.cluster.binaries import Binaries, entry_of
from hack.cluster.cache import Cache
from hack.cluster.errors import BuildError
from hack.cluster.programs import BY_NAME, Program
from hack.cluster.works import Works

AGNHOST, PAUSE = BY_NAME["agnhost"], BY_NAME["pause"]


class FakeBinaries(Binaries):
    """Builds take as long as the test wants, and fail when it says so: no compiler can be told to."""

    def __init__(self, cache: Cache, folder: Path) -> None:
        super().__init__(cache)
        self.folder = folder
        self.go_on = threading.Event()
        self.broken: set[str] = set()

    def get(self, program: Program) -> Path:
        """Wait for the test, then succeed or fail."""
        assert self.go_on.wait(timeout=10)
        if program.name in self.broken:
            raise BuildError(f"{program.name} is broken")
        return self.folder / program.name


@pytest.fixture
def made(tmp_path: Path) -> Works:
    """Works with an empty cache and builds under the test's control."""
    cache = Cache(tmp_path / "cache")
    return Works(cache, FakeBinaries(cache, tmp_path))


def builder(made: Works) -> FakeBinaries:
    """The fake behind the works."""
    assert isinstance(made.binaries, FakeBinaries)
    return made.binaries


def test_what_is_there_is_not_ordered(made: Works, tmp_path: Path) -> None:
    """A part in the cache is given at once and does not show up in the progress."""
    Cache(tmp_path / "cache").obtain("bin", entry_of(AGNHOST), lambda folder: (folder / "agnhost").touch())
    with made:
        made.order("agnhost")
        assert made.get(AGNHOST).name == "agnhost"
    assert [] == made.progress.parts


def test_parts_are_built_in_the_order_of_need(made: Works, tmp_path: Path) -> None:
    """One build at a time, first ordered first; progress knows what is being made and what waits."""
    with made:
        made.order("agnhost", "pause")
        assert "pause" in made.progress.waiting
        builder(made).go_on.set()
        assert [tmp_path / "agnhost", tmp_path / "pause"] == [made.get(AGNHOST), made.get(PAUSE)]
    assert 2 == made.progress.done
    first, second = made.progress.parts
    assert first.finished is not None
    assert second.started is not None
    assert first.finished <= second.started


def test_a_broken_part_fails_whoever_needs_it_alone(made: Works, tmp_path: Path) -> None:
    """A part that can't be built leaves the others usable."""
    builder(made).broken.add("agnhost")
    builder(made).go_on.set()
    with made:
        made.order("agnhost", "pause")
        assert tmp_path / "pause" == made.get(PAUSE)
        with pytest.raises(BuildError, match="agnhost is broken"):
            made.get(AGNHOST)
        with pytest.raises(BuildError, match="agnhost is broken"):
            made.finish()
