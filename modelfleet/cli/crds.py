"""`modelfleet crds`: the CustomResourceDefinitions this version serves, from its types."""

import sys
from pathlib import Path
from typing import Any

import click
import yaml

from modelfleet.api.crd import crds as definitions
from modelfleet.api.meta import GROUP

_HEADER = "# Written by `modelfleet crds --output`; change modelfleet/api instead.\n"
_WIDTH = 110
"""Columns; long CEL rules are folded."""
_EXAMPLES = """\b
Install them:
  modelfleet crds | kubectl apply --server-side -f -
Keep a copy in a repository, and check that it is current:
  modelfleet crds --output manifests/crd
  modelfleet crds --output manifests/crd --check
"""


class _Dumper(yaml.SafeDumper):
    """Plain YAML: no anchors, which reviewers and some tools stumble over."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  # PyYAML's signature
        return True


def _list(dumper: _Dumper, data: list[Any]) -> yaml.SequenceNode:
    """Lists of words on one line, as people write enums."""
    words = all(isinstance(item, str) and " " not in item for item in data)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=words)


_Dumper.add_representer(list, _list)


@click.command(epilog=_EXAMPLES)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write one file for each kind into DIR, and remove those of kinds that are gone.",
)
@click.option(
    "--check", is_flag=True, help="Write nothing; exit 1 if the files in DIR are not what would be written."
)
def crds(output: Path | None, *, check: bool) -> None:
    """Print the CustomResourceDefinitions, or write them into a directory."""
    files = {f"{name}.yaml": _HEADER + _text(crd) for name, crd in definitions().items()}
    if output is None:
        if check:
            raise click.UsageError("--check needs --output DIR: the directory whose files it compares")
        click.echo("---\n".join(files.values()), nl=False)
    elif check:
        _compare(output, files)
    else:
        _write(output, files)


def _text(crd: dict[str, Any]) -> str:
    return yaml.dump(crd, Dumper=_Dumper, sort_keys=False, width=_WIDTH, allow_unicode=True)


def _stale(folder: Path, files: dict[str, str]) -> list[Path]:
    """Files of kinds that no longer exist."""
    return [path for path in sorted(folder.glob(f"*.{GROUP}.yaml")) if path.name not in files]


def _compare(folder: Path, files: dict[str, str]) -> None:
    wrong = [folder / name for name, text in files.items() if _read(folder / name) != text]
    wrong += _stale(folder, files)
    for path in wrong:
        click.echo(
            f"{path}: not what `modelfleet crds` writes: run modelfleet crds --output {folder}", err=True
        )
    if wrong:
        sys.exit(1)


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None


def _write(folder: Path, files: dict[str, str]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        for path in _stale(folder, files):
            path.unlink()
    except OSError as error:
        raise click.UsageError(f"can't write to {folder}: {error.strerror}") from error
