"""kubeconfig files as kubectl reads them: several merged, the first to set a value wins.

Promises: relative paths are resolved against the file that holds them; no error and no repr shows a value
of a user entry, since most of those are secrets; a credential this project can't use is refused with its
remedy instead of ignored, because acting as someone else is worse than not acting.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from modelfleet.kube.errors import ConfigError


class _Entry(msgspec.Struct, frozen=True, rename="kebab"):
    """A part of a kubeconfig that may hold secrets and therefore never shows its values."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return []


class Extension(_Entry, frozen=True):
    """Free-form data somebody attached to an entry."""

    name: str
    extension: Any = None


class Cluster(_Entry, frozen=True, rename="kebab"):
    """Where an API server is and how it proves who it is."""

    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    extensions: list[Extension] | None = None


class EnvVar(_Entry, frozen=True):
    """One variable added to the environment of an exec plugin."""

    name: str
    value: str


class Exec(_Entry, frozen=True, rename="camel"):
    """A program that prints credentials (client.authentication.k8s.io ExecCredential)."""

    command: str
    api_version: str
    args: list[str] | None = None
    env: list[EnvVar] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = "IfAvailable"


class User(_Entry, frozen=True, rename="kebab"):
    """How to prove who we are."""

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    username: str = ""
    password: str = ""
    exec: Exec | None = None
    auth_provider: Any = None
    impersonate: str = msgspec.field(name="as", default="")
    impersonate_uid: str = msgspec.field(name="as-uid", default="")
    impersonate_groups: list[str] | None = msgspec.field(name="as-groups", default=None)
    impersonate_extra: dict[str, list[str]] | None = msgspec.field(name="as-user-extra", default=None)


class Context(_Entry, frozen=True):
    """A pair of cluster and user under one name."""

    cluster: str = ""
    user: str = ""


class _NamedCluster(_Entry, frozen=True):
    name: str
    cluster: Cluster = Cluster()


class _NamedUser(_Entry, frozen=True):
    name: str
    user: User | None = None


class _NamedContext(_Entry, frozen=True):
    name: str
    context: Context = Context()


class _File(_Entry, frozen=True, rename="kebab"):
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None
    current_context: str = ""


class Selected(msgspec.Struct, frozen=True):
    """One context, resolved."""

    context: str
    cluster: Cluster
    cluster_dir: Path
    """Directory of the file the cluster entry came from; its relative paths start there."""
    user: User
    user_dir: Path
    """The same for the user entry."""


def load(paths: Sequence[Path], context: str | None = None) -> Selected:
    """Merge the files that exist and pick a context. Blocking: reads files."""
    files = [(path.absolute().parent, _parse(path)) for path in paths if path.exists()]
    where = ", ".join(str(path) for path in paths)
    if not files:
        raise ConfigError(f"no kubeconfig at {where}; point --kubeconfig or KUBECONFIG to a file that exists")
    contexts = [entry for _, file in files for entry in file.contexts or ()]
    wanted = context or next((file.current_context for _, file in files if file.current_context), "")
    if not wanted:
        raise ConfigError(f"{where} sets no current-context; pass --context {_choices(contexts)}")
    chosen = next((entry.context for entry in contexts if entry.name == wanted), None)
    if chosen is None:
        raise ConfigError(f"{where} has no context {wanted!r}; pass --context {_choices(contexts)}")

    clusters = [(entry.name, entry.cluster, base) for base, file in files for entry in file.clusters or ()]
    users = [(entry.name, entry.user or User(), base) for base, file in files for entry in file.users or ()]
    cluster, cluster_dir = _named(clusters, chosen.cluster, f"cluster of context {wanted!r}", where)
    user, user_dir = (
        _named(users, chosen.user, f"user of context {wanted!r}", where)
        if chosen.user
        else (User(), cluster_dir)
    )
    if not cluster.server:
        raise ConfigError(f"cluster {chosen.cluster!r} in {where} has no server; add its https address")
    return Selected(wanted, cluster, cluster_dir, user, user_dir)


def _parse(path: Path) -> _File:
    try:
        decoded = yaml.load(path.read_bytes(), Loader=_LOADER)  # noqa: S506 -- a safe loader, in C where there is one
    except OSError as error:
        raise ConfigError(f"can't read kubeconfig {path}: {error.strerror}; check its permissions") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark is not None else ""
        raise ConfigError(f"kubeconfig {path}{line} is not valid YAML; fix or recreate it") from None
    if decoded is None:
        return _File()
    try:
        return msgspec.convert(decoded, _File)
    except msgspec.ValidationError as error:
        raise ConfigError(f"kubeconfig {path}: {error}; fix that field") from None


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

T = TypeVar("T")


def _named(entries: list[tuple[str, T, Path]], name: str, role: str, where: str) -> tuple[T, Path]:
    for candidate, entry, base in entries:
        if candidate == name:
            return entry, base
    raise ConfigError(f"the {role} is {name!r}, not defined in {where}; add it or pick another context")


def _choices(contexts: list[_NamedContext]) -> str:
    names = sorted({entry.name for entry in contexts})
    return f"(one of {', '.join(names)})" if names else "(none is defined yet)"
