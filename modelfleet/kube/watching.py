"""Lines of a watch stream as values, and the requests that open one (rules I3, I4, I11)."""

import random
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from modelfleet.kube.errors import StatusError
from modelfleet.kube.objects import MalformedObjectError

TIMEOUT_SECONDS = 300
"""Shortest time after which the server ends a watch; the longest is twice that (client-go 1.37)."""
PROMPT_TIMEOUT_SECONDS = 3
"""For a watch that shall tell soon how far the server is: the bookmark comes 2 s before its end, not after a
minute (apiserver, cacher/cache_watcher.go: nextBookmarkTime)."""
TIMEOUT_MARGIN_SECONDS = 5.0
"""How long after the agreed time a stream that is still open counts as dead (kube-rs)."""
IDLE_SECONDS = 70.0
"""Silence that means a dead connection: a bookmark comes every 60 s (apiserver, defaultBookmarkFrequency;
kopf waits as long)."""

INITIAL_EVENTS_END = "k8s.io/initial-events-end"
"""Annotation of the bookmark after the last initial event of a WatchList (KEP-3157)."""


class WatchEvent(msgspec.Struct, gc=False):
    """One line of a watch."""

    type: str
    object: dict[str, Any]


_decoder = msgspec.json.Decoder(WatchEvent)


def decode_event(line: bytes) -> WatchEvent:
    """Decode a line.

    Raises:
        StatusError: An ERROR event, as if the request had been answered with it (rules I6, I7).
        MalformedObjectError: Anything that is no event of a known type.
    """
    try:
        event = _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedObjectError(f"a line of {len(line)} bytes is no watch event: {error}") from None
    if event.type == "ERROR":
        code = event.object.get("code")
        raise StatusError(code if isinstance(code, int) else 500, event.object)
    if event.type not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
        raise MalformedObjectError(f"a watch event of unknown type {event.type!r}")
    return event


def bookmark_version(event: WatchEvent) -> str:
    """The resourceVersion of a BOOKMARK."""
    metadata = event.object.get("metadata")
    version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
    if not isinstance(version, str) or not version.isdigit():
        raise MalformedObjectError(f"a bookmark has resourceVersion {version!r}")
    return version


def ends_initial_events(event: WatchEvent) -> bool:
    """Whether this BOOKMARK says that the initial set is complete."""
    annotations = event.object["metadata"].get("annotations")
    return isinstance(annotations, dict) and annotations.get(INITIAL_EVENTS_END) == "true"


def random_timeout(jitter: Callable[[], float] = random.random) -> int:
    """Whole seconds for `timeoutSeconds`; spread, so that reflectors don't all reconnect together."""
    return int(TIMEOUT_SECONDS * (1.0 + jitter()))


def watch_query(resource_version: str, timeout_seconds: int, label_selector: str) -> dict[str, str]:
    """Follow changes after `resource_version`."""
    query = {
        "resourceVersion": resource_version,
        "allowWatchBookmarks": "true",
        "timeoutSeconds": str(timeout_seconds),
    }
    return query | ({"labelSelector": label_selector} if label_selector else {})


def initial_query(not_older_than: str, timeout_seconds: int, label_selector: str) -> Mapping[str, str]:
    """WatchList: the whole set as ADDED events, a marked bookmark, then changes."""
    return {
        **watch_query(not_older_than, timeout_seconds, label_selector),
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
    }
