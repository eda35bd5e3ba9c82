"""`modelfleet render`: the objects a spec turns into, from the very compiler the controller runs.

Keys are in alphabetical order, as kubectl prints them: the same spec gives the same bytes, in whatever order
it was written. All or nothing: stdout is meant for `kubectl diff` and `kubectl apply`, so one bad document
leaves it empty. Exit codes are those of `modelfleet validate`: 0 everything is right, 1 something is wrong,
2 something could not be read or written, or the command line is wrong. What is wrong goes to stderr.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import click
import yaml

from modelfleet.api.meta import GROUP
from modelfleet.api.validate import InvalidObject, parse
from modelfleet.cli.documents import Document, UnreadableError, filenames, read
from modelfleet.compiler import compile_inference

_EXAMPLES = """\b
What will be created:
  modelfleet render -f samples/inference-kind.yaml
What a change of the spec changes:
  diff <(git show HEAD:service.yaml | modelfleet render -f -) <(modelfleet render -f service.yaml)
Whether the cluster would accept it, quotas and policies included:
  modelfleet render -f service.yaml -n models | kubectl apply --server-side --dry-run=server -f -

\b
Owner references are missing, since they need the UID of a stored object. A Deployment with triggers is shown
as it is born; afterwards its replicas belong to the scaler.
"""
_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./:=@%+ -]*")
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})
"""What YAML 1.1 as kubectl reads it takes for something else than text."""


@dataclass
class _Rendered:
    """What came of all files."""

    manifests: list[Mapping[str, Any]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    unusable: list[str] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """See the module."""
        return 2 if self.unusable else 1 if self.wrong else 0


@click.command(epilog=_EXAMPLES)
@filenames
@click.option("-n", "--namespace", default="", metavar="NAME", help="Namespace of objects that name none.")
@click.option("-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True)
def render(sources: tuple[str, ...], namespace: str, output: str) -> None:
    """Print the objects a spec turns into.

    The spec is validated first. Objects of other groups are skipped.
    """
    rendered = _Rendered()
    for found in read(sources):
        if isinstance(found, UnreadableError):
            rendered.unusable.append(str(found))
        else:
            _add(rendered, found, namespace)
    for line in (*rendered.unusable, *rendered.wrong):
        click.echo(f"error: {line}", err=True)
    if rendered.exit_code == 0:
        click.echo(_json(rendered.manifests) if output == "json" else _yaml(rendered.manifests), nl=False)
    sys.exit(rendered.exit_code)


def _add(rendered: _Rendered, document: Document, namespace: str) -> None:
    if document.group != GROUP:
        click.echo(f"{document}: skipped, not a kind of {GROUP}", err=True)
        return
    metadata = document.body.get("metadata")
    if isinstance(metadata, dict) and namespace:
        own = metadata.setdefault("namespace", namespace)
        if own != namespace:
            conflict = f"metadata.namespace: is {own!r}, --namespace is {namespace!r}: leave out one of them"
            rendered.unusable.append(f"{document}: {conflict}")
            return
    try:
        children = compile_inference(parse(document.body), owner_uid=None)
    except InvalidObject as invalid:
        rendered.wrong += [f"{document}: {violation}" for violation in invalid.violations]
    else:
        rendered.manifests += [manifest.body for manifest in children.at_birth]


def _json(manifests: list[Mapping[str, Any]]) -> str:
    """A List, which kubectl takes like its parts."""
    return (
        json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests}, indent=2, sort_keys=True) + "\n"
    )


def _yaml(manifests: list[Mapping[str, Any]]) -> str:
    return "---\n".join(_documents(manifests))


def _documents(manifests: list[Mapping[str, Any]]) -> Iterator[str]:
    for manifest in manifests:
        yield yaml.dump(manifest, Dumper=_Dumper, sort_keys=True, allow_unicode=True, width=sys.maxsize)


class _Dumper(yaml.SafeDumper):
    """Quotes every text that some YAML reader might take for a number, a date or a truth value."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002  # PyYAML's signature
        """Write every value out: an alias saves a line and costs a reader."""
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    plain = _PLAIN.fullmatch(text) is not None and text.lower() not in _WORDS
    style = None if plain else "|" if "\n" in text else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
