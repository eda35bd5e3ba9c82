"""Writes the status of the reconciled object, only when its meaning changed (facts 1.5).

Server-side apply of the whole status by one manager, on the /status subresource alone, pinned to the object
that was observed: a status computed from the past never lands on a newer object. Written, the write is noted
for read-your-writes and recognised when the watch brings it back, so that it does not cause another pass.
Each condition that changed becomes an Event.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from modelfleet.kube.client import Client
from modelfleet.kube.errors import KubeError
from modelfleet.kube.objects import Item, meta_of
from modelfleet.kube.projection import owned_digest
from modelfleet.kube.resource import UnreadableObjectError
from modelfleet.kube.store import Store
from modelfleet.plan import Api, Cause, DesiredStatus, Key, Manifest, Problem, Ref, digest_of
from modelfleet.runtime.clock import Clock, rfc3339
from modelfleet.runtime.conditions import LiveConditions, merged, transitions
from modelfleet.runtime.events import EventRecorder
from modelfleet.runtime.problems import may_have_happened, to_problem
from modelfleet.runtime.refusals import Refusals
from modelfleet.runtime.uninterrupted import uninterrupted
from modelfleet.runtime.written import Written

_ATTEMPT = "status"
_SUBRESOURCE = "status"
_UNANSWERED = ""


@dataclass(frozen=True, slots=True)
class _Sent:
    """The status last sent for a key."""

    uid: str
    digest: str
    version: str = _UNANSWERED
    """The resourceVersion it got."""


class StatusWriter:
    """Writes statuses of one kind."""

    def __init__(
        self,
        client: Client,
        store: Store[Any],
        *,
        manager: str,
        written: Written,
        events: EventRecorder,
        clock: Clock,
    ) -> None:
        """`store` holds the kind; it must watch what `manager` owns, or every pass would write."""
        if store.resource.manager != manager:
            raise ValueError(
                f"the store of {store.api} follows the fields of {store.resource.manager or 'nobody'!r}, "
                f"its status is written by {manager!r}: give the Resource that manager"
            )
        self._client = client
        self._store = store
        self._manager = manager
        self._written = written
        self._events = events
        self._clock = clock
        self._refusals = Refusals()
        self._sent: dict[Key, _Sent] = {}

    async def write(
        self, item: Item[Any], api: Api, desired: DesiredStatus, key: Key, live: LiveConditions = ()
    ) -> Problem | None:
        """Make the object's status say `desired`; `live` are its conditions as observed with `item`."""
        manifest = Manifest.of({"status": merged(desired, live, rfc3339(self._clock.now()))})
        if manifest.digest == item.status_digest:
            return None
        meaning = (item.meta.uid, digest_of({"status": merged(desired, (), "")}))
        if (refused := self._refusals.recall(key, _ATTEMPT, meaning)) is not None:
            return refused
        ref = Ref(api, item.meta.namespace, item.meta.name)
        try:
            problem = await uninterrupted(self._send(item, ref, manifest, key))
        except KubeError as error:
            self._sent.pop(key, None)
            problem = to_problem(error, ref)
            if problem.terminal:
                self._refusals.remember(key, _ATTEMPT, meaning, problem)
            return problem
        for transition in transitions(desired, live):
            condition = transition.condition
            self._events.record(
                ref,
                item.meta.uid,
                event_type=transition.event_type,
                reason=condition.reason,
                action=condition.type,
                note=condition.message or f"{condition.type} is {condition.status}",
            )
        return problem

    def shows_own_write(self, item: Item[Any]) -> bool:
        """Whether this state of the object is the one our last status write made."""
        sent = self._sent.get(Key(item.meta.namespace, item.meta.name))
        return (
            sent is not None
            and (sent.uid, sent.digest) == (item.meta.uid, item.status_digest)
            and sent.version in (_UNANSWERED, item.meta.resource_version)
        )

    def forget(self, key: Key) -> None:
        """The object is gone."""
        self._refusals.forget(key)
        self._sent.pop(key, None)

    async def _send(self, item: Item[Any], ref: Ref, manifest: Manifest, key: Key) -> Problem | None:
        uid = item.meta.uid
        self._sent[key] = _Sent(uid, manifest.digest)
        try:
            answer = await self._client.apply(
                ref,
                manifest.body,
                manager=self._manager,
                uid=uid,
                resource_version=item.meta.resource_version,
                subresource=_SUBRESOURCE,
            )
        except KubeError as error:
            answer = await self._read_back(ref, manifest, error)
        version = meta_of(answer).resource_version
        self._sent[key] = _Sent(uid, manifest.digest, version)
        self._written.note(key, ref, version)
        self._settle(answer, manifest)
        cached = self._store.get(ref.namespace, ref.name)
        if cached is not None and int(cached.meta.resource_version) > int(version):
            # While unanswered, a list that held our write and a later one was taken for our write alone.
            return Problem(Cause.STALE, f"{ref} changed while its status was written.")
        return None

    async def _read_back(self, ref: Ref, manifest: Manifest, error: KubeError) -> dict[str, Any]:
        """The object, if a write without an answer took effect after all; else the error again (rule A14)."""
        if may_have_happened(error):
            try:
                live = await self._client.get(ref)
            except KubeError:
                raise error from None
            if owned_digest(live, self._manager, _SUBRESOURCE) == manifest.digest:
                return live
        raise error

    def _settle(self, answer: Mapping[str, Any], manifest: Manifest) -> None:
        with suppress(UnreadableObjectError):  # the reflector meets the same object and reports it
            self._store.settle(answer, manifest, _SUBRESOURCE)
