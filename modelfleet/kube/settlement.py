"""When the server stores something other than what was applied.

An admission webhook, a quantity in another notation or a default inside a value of ours makes the live
projection differ from the manifest although nothing is wrong; applying again would change nothing and be
tried on every pass. So the executor shows the store the server's answer to each apply: if its projection
differs, that projection is from then on read as the manifest that led to it (rule A13a). Any later change of
an owned field gives a third digest and is drift as before.
"""

import logging
from collections.abc import Iterable

import msgspec

from modelfleet.kube.objects import Item, V
from modelfleet.plan import Api

_log = logging.getLogger(__name__)


class _Reading(msgspec.Struct, frozen=True, gc=False):
    resource_version: int
    projected: str
    desired: str


class Settlements:
    """What projections of known objects mean; the latest one of each object and subresource.

    Nothing is kept across restarts: after one, an unsettled object costs one apply.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._main: dict[str, _Reading] = {}
        self._status: dict[str, _Reading] = {}

    def __len__(self) -> int:
        return len(self._main) + len(self._status)

    def remember(self, item: Item[V], desired: str, *, subresource: str) -> None:
        """The server answered an apply of `desired` with `item`."""
        readings = self._status if subresource else self._main
        projected = item.status_digest if subresource else item.digest
        uid = item.meta.uid
        if projected == desired:
            readings.pop(uid, None)
            return
        if uid not in readings:
            _log.info(
                "%s %s/%s: the server stores what was applied%s in another form; this form counts as equal",
                self._api.kind,
                item.meta.namespace,
                item.meta.name,
                f" to {subresource}" if subresource else "",
            )
        readings[uid] = _Reading(int(item.meta.resource_version), projected, desired)

    def read(self, item: Item[V]) -> Item[V]:
        """The item with its digests in terms of manifests."""
        digest = _meaning(self._main.get(item.meta.uid), item.digest)
        status_digest = _meaning(self._status.get(item.meta.uid), item.status_digest)
        if digest == item.digest and status_digest == item.status_digest:
            return item
        return Item(item.meta, item.view, digest, status_digest)

    def forget(self, uid: str) -> None:
        """The object is gone."""
        self._main.pop(uid, None)
        self._status.pop(uid, None)

    def clear(self) -> None:
        """All objects are gone."""
        self._main.clear()
        self._status.clear()

    def prune(self, live: Iterable[str], seen: int) -> None:
        """Forget all but the live objects in a list taken at `seen`, and those born after it."""
        if not len(self):
            return
        alive = frozenset(live)
        for readings in (self._main, self._status):
            gone = [uid for uid, r in readings.items() if r.resource_version <= seen and uid not in alive]
            for uid in gone:
                del readings[uid]


def _meaning(reading: _Reading | None, digest: str) -> str:
    return reading.desired if reading is not None and reading.projected == digest else digest
