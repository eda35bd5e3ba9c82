"""A manifest and the digest of what it decides.

Invariant: two manifests with the same digest make the API server store the same owned fields. The digest
leaves out what addresses the object (apiVersion, kind, name, namespace) and what pins an incarnation
(uid, resourceVersion), so that it can be compared with the digest of a live object's owned projection
(rule A13, `modelfleet.kube.projection`). Rule A2: a manifest holds no null, no empty map or list made by
accident and no value the server would rewrite, because each of those would differ on every pass.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

DIGEST_BYTES = 16
"""128 bits: collisions are out of reach and a digest still fits an annotation or a log line."""

_ADDRESS = ("apiVersion", "kind")
_METADATA_ADDRESS = ("name", "namespace", "uid", "resourceVersion")
_encoder = msgspec.json.Encoder(order="sorted")


def canonical(value: object) -> bytes:
    """JSON with sorted keys and no white space: the same value always gives the same bytes."""
    return _encoder.encode(value)


def digest_of(value: object) -> str:
    """Hex blake2b of the canonical JSON of a value."""
    return hashlib.blake2b(canonical(value), digest_size=DIGEST_BYTES).hexdigest()


def intent(body: Mapping[str, Any]) -> dict[str, Any]:
    """What a manifest decides: the body without its address and incarnation.

    An empty `metadata` is left out, as a projection of a live object leaves out maps we own nothing in.
    """
    decided = {key: value for key, value in body.items() if key not in _ADDRESS and key != "metadata"}
    metadata = {k: v for k, v in body.get("metadata", {}).items() if k not in _METADATA_ADDRESS}
    if metadata:
        decided["metadata"] = metadata
    return decided


@dataclass(frozen=True, slots=True)
class Manifest:
    """The full intent for one child, ready for server-side apply; treat `body` as read-only."""

    body: Mapping[str, Any]
    digest: str

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> "Manifest":
        """Wrap a complete manifest and take its digest."""
        return cls(body, digest_of(intent(body)))
