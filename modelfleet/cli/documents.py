"""Manifests from files, directories and stdin, read as kubectl reads them.

YAML here is what the API server's YAML library makes of it, not what Python's does: dates stay strings,
1:30 is no number, 1e3 is one, keys are strings. A key that occurs twice is an error, since one of the two
would silently win. Every problem is reported with its file and line, and the rest is still read.
"""

import re
import sys
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import yaml

from modelfleet.api.meta import GROUP

STDIN = "-"
_SUFFIXES = (".yaml", ".yml", ".json")
"""What kubectl reads in a directory."""
_MOST_VALUES = 1_000_000
"""Of one document with its aliases written out; the API server takes 3 MiB, which is far less."""
_EXACT = 2**53
"""Largest whole number a JSON float holds exactly."""

filenames = click.option(
    "-f",
    "--filename",
    "sources",
    multiple=True,
    required=True,
    metavar="FILE|DIR|-",
    help="Manifest, directory (with its subdirectories) or - for stdin. May be repeated.",
)
"""The option whose values `read` takes."""

Identity = tuple[str, str, str]
"""Kind, namespace and name."""


@dataclass(frozen=True, slots=True)
class Document:
    """One object, and where it was written."""

    source: str
    line: int
    """First line of the document; items of a List share it."""
    body: dict[str, Any]

    @property
    def group(self) -> str:
        """API group; the version for the core group, which has none."""
        return str(self.body.get("apiVersion", "")).split("/")[0]

    @property
    def identity(self) -> Identity:
        """What tells objects of one group apart."""
        metadata = self.body.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        name = metadata.get("name") or metadata.get("generateName") or ""
        return str(self.body.get("kind") or "object"), str(metadata.get("namespace") or ""), str(name)

    @property
    def title(self) -> str:
        """How messages name the object."""
        kind, namespace, name = self.identity
        return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name or '(no name)'}"

    def __str__(self) -> str:
        return f"{self.source}: {self.title}"


class UnreadableError(Exception):
    """A file can't be read, or is no YAML; the message begins with FILE or FILE:LINE."""


def read(sources: tuple[str, ...]) -> Iterator[Document | UnreadableError]:
    """All objects in the order given; a source that can't be read gives an error in its place."""
    for source in sources:
        try:
            files = _files(source)
        except UnreadableError as error:
            yield error
            continue
        for name, text in files:
            if isinstance(text, UnreadableError):
                yield text
            else:
                yield from parse(name, text)


def _files(source: str) -> list[tuple[str, str | UnreadableError]]:
    if source == STDIN:
        return [("stdin", _piped())]
    path = Path(source)
    if not path.is_dir():
        return [(source, _content(path))]
    found = sorted(each for each in path.rglob("*") if each.suffix in _SUFFIXES and each.is_file())
    if not found:
        raise UnreadableError(f"{source}: no {', '.join(_SUFFIXES)} file in this directory")
    return [(str(each), _content(each)) for each in found]


def _piped() -> str | UnreadableError:
    if sys.stdin is None:
        return UnreadableError("stdin: closed: pipe manifests into the command or name a file")
    try:
        return _decoded("stdin", sys.stdin.buffer.read())
    except OSError as error:
        return UnreadableError(f"stdin: {error.strerror or error}")


def _content(path: Path) -> str | UnreadableError:
    try:
        return _decoded(str(path), path.read_bytes())
    except OSError as error:
        return UnreadableError(f"{path}: {error.strerror or error}")


def _decoded(name: str, content: bytes) -> str | UnreadableError:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return UnreadableError(f"{name}: not UTF-8 text (byte {error.start})")


def parse(source: str, text: str) -> Iterator[Document | UnreadableError]:
    """The objects of one YAML or JSON text."""
    try:
        loader = _Loader(text)
        while loader.check_node() and (node := loader.get_node()) is not None:
            _expanded(node, {}, set())
            yield from _objects(source, node.start_mark.line + 1, loader.construct_document(node))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f"{source}:{mark.line + 1}" if mark else source
        yield UnreadableError(f"{at}: {error.problem or error.context or 'not YAML'}")
    except (yaml.YAMLError, RecursionError) as error:
        yield UnreadableError(f"{source}: not YAML: {' '.join(str(error).split())}")


def _expanded(node: yaml.Node, known: dict[yaml.Node, int], around: set[yaml.Node]) -> int:
    """How many values a node stands for, aliases written out; go-yaml refuses the same two things."""
    if node in around:
        raise yaml.composer.ComposerError(None, None, "an anchor contains itself", node.start_mark)
    if node not in known:
        children = (
            [each for pair in node.value for each in pair]
            if isinstance(node, yaml.MappingNode)
            else node.value
        )
        inner = children if isinstance(node, yaml.CollectionNode) else ()
        known[node] = 1 + sum(_expanded(child, known, around | {node}) for child in inner)
        if known[node] > _MOST_VALUES:
            problem = f"aliases make this more than {_MOST_VALUES} values: write out what is meant"
            raise yaml.composer.ComposerError(None, None, problem, node.start_mark)
    return known[node]


def _objects(source: str, line: int, body: Any) -> Iterator[Document | UnreadableError]:
    if body is None:
        return
    if not isinstance(body, dict):
        yield _no_object(f"{source}:{line}")
    elif _is_list(body):
        yield from _items(source, line, body)
    else:
        yield Document(source, line, body)


def _no_object(place: str) -> UnreadableError:
    return UnreadableError(f"{place}: not a Kubernetes object: expected apiVersion, kind and metadata")


def _is_list(body: dict[str, Any]) -> bool:
    """Ours and v1 List by their names; of foreign kinds those that look like one, as kubectl tells them."""
    api_version, kind = str(body.get("apiVersion", "")), str(body.get("kind", ""))
    ours = api_version.startswith(f"{GROUP}/") or (api_version, kind) == ("v1", "List")
    return kind.endswith("List") and (ours or isinstance(body.get("items"), list))


def _items(source: str, line: int, body: dict[str, Any]) -> Iterator[Document | UnreadableError]:
    """An item may leave out what its list says already: InferenceServiceList holds InferenceServices."""
    items = [] if body.get("items") is None else body["items"]  # Go writes an empty list as null
    if not isinstance(items, list):
        yield UnreadableError(f"{source}:{line}: items of {body['kind']} must be a list")
        return
    kind = str(body["kind"]).removesuffix("List")
    said = {"apiVersion": body.get("apiVersion"), "kind": kind} if kind else {}
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            yield _no_object(f"{source}:{line}: items[{index}]")
        else:
            missing = {key: value for key, value in said.items() if value and not item.get(key)}
            yield from _objects(source, line, item | missing)


class _Loader(yaml.SafeLoader):
    """YAML 1.1 as go-yaml v2 resolves it (sigs.k8s.io/yaml)."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012  # PyYAML's class attribute


def _resolve(tag: str, pattern: str, first: str) -> None:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(f"^(?:{pattern})$"), list(first))


_resolve(
    "bool", "y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF", "yYnNtTfFoO"
)
_resolve("int", "[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)", "-+0123456789")
_resolve(
    "float",
    r"[-+]?(?:[.][0-9]+|[0-9]+(?:[.][0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?[.](?:inf|Inf|INF)|[.](?:nan|NaN|NAN)",
    "-+.0123456789",
)
_resolve("null", "~|null|Null|NULL|", "~nN")
_resolve("merge", "<<", "<")
_Loader.yaml_implicit_resolvers.setdefault("", []).append(("tag:yaml.org,2002:null", re.compile("^$")))


def _bool(loader: _Loader, node: yaml.ScalarNode) -> bool:
    return str(loader.construct_scalar(node)).lower() in ("y", "yes", "true", "on")


def _int(loader: _Loader, node: yaml.ScalarNode) -> int:
    text = str(loader.construct_scalar(node)).replace("_", "")
    octal = re.fullmatch("([-+]?)0([0-7]+)", text)
    return int(f"{octal[1]}0o{octal[2]}" if octal else text, 0)


def _float(loader: _Loader, node: yaml.ScalarNode) -> float:
    text = str(loader.construct_scalar(node))
    if text.lower().lstrip("+-") in (".inf", ".nan"):
        raise yaml.constructor.ConstructorError(None, None, f"{text} is no JSON number", node.start_mark)
    value = float(text)
    return int(value) if value.is_integer() and abs(value) <= _EXACT else value


def _mapping(loader: _Loader, node: yaml.MappingNode) -> Iterator[dict[str, Any]]:
    filled: dict[str, Any] = {}
    yield filled
    _refuse_duplicates(loader, node)
    loader.flatten_mapping(node)
    for key_node, value_node in node.value:
        filled[_key(loader, key_node)] = loader.construct_object(value_node, deep=True)


def _refuse_duplicates(loader: _Loader, node: yaml.MappingNode) -> None:
    lines: dict[str, int] = {}
    for key_node, _ in node.value:
        if key_node.tag == "tag:yaml.org,2002:merge":
            continue
        key = _key(loader, key_node)
        if key in lines:
            problem = f"key {key!r} was given already on line {lines[key]}: remove one of them"
            raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
        lines[key] = key_node.start_mark.line + 1


def _key(loader: _Loader, node: yaml.Node) -> str:
    """Keys are strings in JSON, whatever YAML takes them for."""
    key = loader.construct_object(node, deep=True)
    if not isinstance(key, Hashable):
        raise yaml.constructor.ConstructorError(None, None, "a key must be a string", node.start_mark)
    return str(key).lower() if isinstance(key, bool) else "null" if key is None else str(key)


_Loader.add_constructor("tag:yaml.org,2002:bool", _bool)
_Loader.add_constructor("tag:yaml.org,2002:int", _int)
_Loader.add_constructor("tag:yaml.org,2002:float", _float)
_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
