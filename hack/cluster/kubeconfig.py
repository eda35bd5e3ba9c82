"""Kubeconfig files: self-contained, readable by their owner only."""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from hack.cluster.certificates import Pair
from hack.cluster.files import put


def for_certificate(path: Path, server: str, authority: Path, pair: Pair) -> Path:
    """A kubeconfig that presents a client certificate."""
    user = {"client-certificate-data": _data(pair.certificate), "client-key-data": _data(pair.key)}
    return _write(path, server, authority, user)


def for_token(path: Path, server: str, authority: Path, token: str) -> Path:
    """A kubeconfig that presents a bearer token."""
    return _write(path, server, authority, {"token": token})


def _write(path: Path, server: str, authority: Path, user: Mapping[str, str]) -> Path:
    cluster = {"server": server, "certificate-authority-data": _data(authority)}
    config: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "modelfleet", "cluster": cluster}],
        "users": [{"name": path.stem, "user": dict(user)}],
        "contexts": [{"name": "modelfleet", "context": {"cluster": "modelfleet", "user": path.stem}}],
        "current-context": "modelfleet",
    }
    text = yaml.safe_dump(config, sort_keys=False)
    return put(path, text, mode=0o600)


def _data(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
