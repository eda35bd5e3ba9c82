import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hack.cluster.cache import Cache, default_root, digest
from hack.cluster.errors import BuildError


def test_an_entry_is_made_once(tmp_path: Path) -> None:
    """Two makers of the same entry: one makes it, the other waits and finds it."""
    cache, together, made = Cache(tmp_path), threading.Barrier(2), []

    def make(folder: Path) -> None:
        made.append(folder)
        (folder / "file").write_text("x")

    def obtain() -> Path:
        together.wait()
        return cache.obtain("bin", "tool-v1", make)

    with ThreadPoolExecutor(2) as pool:
        found = {job.result() for job in [pool.submit(obtain), pool.submit(obtain)]}
    assert {tmp_path / "bin" / "tool-v1"} == found
    assert 1 == len(made)


def test_a_failed_entry_leaves_nothing(tmp_path: Path) -> None:
    """A maker that fails leaves no entry, complete or not, and the next one tries again."""
    cache = Cache(tmp_path)

    def fail(folder: Path) -> None:
        (folder / "half").write_text("x")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        cache.obtain("bin", "tool-v1", fail)
    assert cache.find("bin", "tool-v1") is None
    assert [] == list((tmp_path / "bin").iterdir())
    assert cache.obtain("bin", "tool-v1", Path.touch).is_dir()


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"MODELFLEET_CACHE": "/c", "XDG_CACHE_HOME": "/x"}, "/c"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/modelfleet"),
        ({}, "/h/.cache/modelfleet"),
    ],
)
def test_where_the_cache_lies(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], expected: str
) -> None:
    """Our own variable wins over XDG's, and XDG's over its default."""
    for name in ("MODELFLEET_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in ({"HOME": "/h"} | environment).items():
        monkeypatch.setenv(name, value)
    assert Path(expected) == default_root()


@pytest.mark.parametrize(("below", "why"), [("/proc/nope", "No such file"), ("file", "Not a directory")])
def test_an_unusable_cache_is_one_line(tmp_path: Path, below: str, why: str) -> None:
    """A cache that can't be made names itself, the reason, the variable and the remedy, in one line."""
    (tmp_path / "file").touch()
    cache = Cache(tmp_path / below)
    assert cache.find("bin", "tool-v1") is None
    with pytest.raises(BuildError) as caught:
        cache.obtain("bin", "tool-v1", Path.touch)
    text = str(caught.value)
    assert text.startswith(f"the cache {cache.root} can't be used ({why}")
    assert text.endswith("): set MODELFLEET_CACHE to a folder that you may write to")
    assert 1 == len(text.splitlines())


def test_a_chosen_cache_may_be_relative(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Builds run in other folders, so a relative path means the caller's folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MODELFLEET_CACHE", "cache")
    assert tmp_path / "cache" == default_root()


def test_a_digest_tells_parts_apart() -> None:
    """Parts are delimited: moving a character from one to the next gives another digest."""
    assert digest("ab", "c") != digest("a", "bc")
    assert digest("ab", b"c") == digest(b"ab", "c")
