from pathlib import Path

from hack.cluster.files import link, put


def test_a_link_takes_the_place_of_what_was_there(tmp_path: Path) -> None:
    """A link is made with its folder, follows its target's new place, and leaves no other file behind."""
    path = tmp_path / "bin" / "kubectl"
    for target in (tmp_path / "v1", tmp_path / "v1", tmp_path / "v2"):
        link(path, target)
        assert target == path.readlink()
    path.unlink()
    path.write_text("a file")
    link(path, tmp_path / "v3")
    assert tmp_path / "v3" == path.readlink()
    assert [path] == list(path.parent.iterdir())


def test_a_file_with_the_same_content_is_left_alone(tmp_path: Path) -> None:
    """Only a change of the content writes: readers that watch the file see nothing else."""
    path = put(tmp_path / "conf" / "a.yaml", "x", mode=0o600)
    first = path.stat().st_ino
    put(path, "x")
    assert first == path.stat().st_ino
    put(path, "y")
    assert "y" == path.read_text()
