"""Files and links that others read: put there whole or not at all, and only when they change."""

import os
from pathlib import Path


def put(path: Path, text: str, *, mode: int = 0o644) -> Path:
    """Write `text` unless the file holds it already: kube-proxy exits when its file is rewritten."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        new = path.with_name(path.name + ".new")
        new.touch(mode=mode)
        new.write_text(text)
        new.replace(path)
    return path


def link(path: Path, target: Path) -> None:
    """A symbolic link to `target`, put in the place of whatever file or link was there."""
    if path.is_symlink() and path.readlink() == target:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.{os.getpid()}")  # instances of one checkout may be started together
    new.symlink_to(target)
    new.replace(path)
