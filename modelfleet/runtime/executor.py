"""The one place that changes the cluster: carries out plans and says what became of each action.

- Actions start in the order of the plan and run side by side unless one depends on another; a failed action
  skips its dependants only (architecture.md section 2).
- A birth that meets an object of its name looks at the live one: our own child, lost to the label selector
  or to a dropped answer, gets the intent; anything else is a NameConflict and stays untouched (A8, I14).
- What the server refused for good is not sent again (rule A9, `Refusals`).
- A write without an answer is read back: either it is there, or the key waits until the stores show what is
  (rule A14). The preconditions make the repetition safe in any case.
- What was written is noted for read-your-writes, and told to the store where the server keeps our fields in
  another form than we sent them (rule A13a).
"""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Any

from modelfleet.kube.client import BIRTH, Client
from modelfleet.kube.errors import KubeError, StatusError
from modelfleet.kube.objects import Meta, meta_of
from modelfleet.kube.ownership import duplicates, with_foreign_items
from modelfleet.kube.projection import owned, owned_digest
from modelfleet.kube.resource import UnreadableObjectError
from modelfleet.kube.store import Store
from modelfleet.plan import (
    Action,
    Api,
    Apply,
    Cause,
    Create,
    Delete,
    Key,
    Outcome,
    Outcomes,
    Patch,
    Plan,
    Precondition,
    Problem,
    Ref,
    Result,
    digest_of,
)
from modelfleet.runtime.problems import may_have_happened, name_conflict, to_problem
from modelfleet.runtime.refusals import Fingerprint, Refusals
from modelfleet.runtime.uninterrupted import uninterrupted
from modelfleet.runtime.written import Written

READ_BACK_SECONDS = 10.0
"""Deadline of the read after a write without an answer: with the write's own 30 s it fits a pass of 60 s."""


class Executor:
    """Carries out plans against one API server."""

    def __init__(self, client: Client, stores: Mapping[Api, Store[Any]], written: Written) -> None:
        self._client = client
        self._stores = stores
        self._written = written
        self._refusals = Refusals()

    async def run(self, plan: Plan, key: Key) -> Outcomes:
        """Try every action whose dependencies got done. Raises nothing but cancellation and bugs."""
        self._refusals.keep(key, [action.name for action in plan.actions])
        if not plan.actions:
            return {}
        tasks: dict[str, asyncio.Task[Outcome]] = {}
        async with asyncio.TaskGroup() as group:
            for action in plan.actions:
                needed = [tasks[name] for name in action.after]
                tasks[action.name] = group.create_task(self._in_turn(action, needed, key))
        return {name: task.result() for name, task in tasks.items()}

    def forget(self, key: Key) -> None:
        """The object of the key is gone."""
        self._refusals.forget(key)

    async def _in_turn(self, action: Action, needed: Sequence[asyncio.Task[Outcome]], key: Key) -> Outcome:
        for task in needed:
            if (await task).result is not Result.DONE:
                return Outcome(action.name, Result.SKIPPED)
        problem = self._refusals.recall(key, action.name, fingerprint(action))
        if problem is None:
            problem = await self._attempt(action, key)
            if problem is not None and problem.terminal:
                self._refusals.remember(key, action.name, fingerprint(action), problem)
        return Outcome(action.name, Result.DONE if problem is None else Result.FAILED, problem)

    async def _attempt(self, action: Action, key: Key) -> Problem | None:
        try:
            return await self._perform(action, key)
        except KubeError as error:
            if may_have_happened(error) and await self._happened(action, key):
                return None
            return to_problem(error, action.ref)

    async def _perform(self, action: Action, key: Key) -> Problem | None:
        match action:
            case Apply(live=None):
                return await self._give_birth(action, key)
            case Apply(live=Precondition() as live):
                await self._apply(action, live, key)
            case Create():
                return await self._create(action, key)
            case Patch(ref=ref, live=live):
                pins = {"uid": live.uid, "resourceVersion": live.resource_version}
                body = {**action.body, "metadata": {**action.body.get("metadata", {}), **pins}}
                await self._write(self._client.patch(ref, body, manager=action.manager), ref, key)
            case Delete():
                await self._delete(action, key)
        return None

    async def _give_birth(self, action: Apply, key: Key) -> Problem | None:
        try:
            await self._apply(action, None, key)
        except StatusError as conflict:
            if conflict.code != HTTPStatus.CONFLICT:
                raise
            live = await self._live(action.ref, conflict)
            meta = meta_of(live)
            if not _controls(action.owner_uid, meta):
                return name_conflict(action.ref, meta)
            if meta.deleting:
                return Problem(Cause.STALE, f"{action.ref} is being deleted and is created again after that.")
            if owned_digest(live, action.manager) != action.manifest.digest:
                return await self._show(action, live, key)
            self._written.note(key, action.ref, meta.resource_version)
        return None

    async def _show(self, action: Apply, live: Mapping[str, Any], key: Key) -> Problem:
        """Bring our own child, which the stores don't show, back into their sight, and change nothing else.

        The plan took it for absent, so the rest of its intent (the replica count of a newborn, above all) is
        not for an object that lives. With its labels back the next pass sees it and decides.
        """
        meta, labels = meta_of(live), action.manifest.body.get("metadata", {}).get("labels", {})
        if not labels.items() <= meta.labels.items():
            kept = owned(live, action.manager)
            metadata = kept.get("metadata", {})
            body = {**kept, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), **labels}}}
            pins = Precondition(meta.uid, meta.resource_version)
            await self._write(self._applying(action, body, pins), action.ref, key)
        return Problem(Cause.STALE, f"{action.ref} is there, but was out of sight.")

    async def _create(self, action: Create, key: Key) -> Problem | None:
        ref = action.ref
        try:
            await self._write(
                self._client.create(ref, action.manifest.body, manager=action.manager), ref, key
            )
        except StatusError as conflict:
            if conflict.code != HTTPStatus.CONFLICT:
                raise
            meta = meta_of(await self._live(ref, conflict))
            if not _controls(action.owner_uid, meta):
                return name_conflict(ref, meta)
            self._written.note(key, ref, meta.resource_version)
        return None

    async def _apply(self, action: Apply, live: Precondition | None, key: Key) -> None:
        body = action.manifest.body
        try:
            answer = await self._write(self._applying(action, body, live), action.ref, key)
        except StatusError as refusal:
            live = await self._displace(action, live, duplicates(refusal), key)
            if live is None:
                raise
            answer = await self._write(self._applying(action, body, live), action.ref, key)
        store = self._stores.get(action.ref.api)
        if store is not None and store.resource.manager == action.manager:
            with suppress(UnreadableObjectError):  # the reflector meets the same object and reports it
                store.settle(answer, action.manifest)

    async def _applying(
        self, action: Apply, body: Mapping[str, Any], live: Precondition | None
    ) -> dict[str, Any]:
        return await self._client.apply(
            action.ref,
            body,
            manager=action.manager,
            uid=live.uid if live else None,
            resource_version=live.resource_version if live else BIRTH,
        )

    async def _displace(
        self, action: Apply, live: Precondition | None, fields: Sequence[str], key: Key
    ) -> Precondition | None:
        """Take over the foreign list items that stand beside ours; None when there are none (rule A5)."""
        if live is None or not fields:
            return None
        ref = action.ref
        obj = await self._client.get(ref)
        meta = meta_of(obj)
        entries = with_foreign_items(obj, action.manager, fields[0])
        if entries is None or meta.uid != live.uid:
            return None
        pins = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        body = {"metadata": {**pins, "managedFields": entries}}
        answer = await self._write(self._client.patch(ref, body, manager=action.manager), ref, key)
        return Precondition(meta.uid, meta_of(answer).resource_version)

    async def _delete(self, action: Delete, key: Key) -> None:
        async def noted() -> None:
            try:
                await self._client.delete(
                    action.ref,
                    uid=action.live.uid,
                    resource_version=action.live.resource_version,
                    propagation=action.propagation,
                )
            except StatusError as error:
                if error.code != HTTPStatus.NOT_FOUND:
                    raise
            self._written.note_deleted(key, action.ref, action.live.uid)

        await uninterrupted(noted())

    async def _write(self, call: Coroutine[Any, Any, dict[str, Any]], ref: Ref, key: Key) -> dict[str, Any]:
        async def noted() -> dict[str, Any]:
            answer = await call
            self._written.note(key, ref, meta_of(answer).resource_version)
            return answer

        return await uninterrupted(noted())

    async def _live(self, ref: Ref, conflict: StatusError) -> dict[str, Any]:
        """Whoever holds the name; the conflict again when nobody does (any more)."""
        try:
            return await self._client.get(ref)
        except StatusError as error:
            raise conflict if error.code == HTTPStatus.NOT_FOUND else error from None

    async def _happened(self, action: Action, key: Key) -> bool:
        """Read back a write that got no answer; the key then waits for what was read."""
        try:
            live = await self._client.get(action.ref, timeout=READ_BACK_SECONDS)
        except StatusError as error:
            return error.code == HTTPStatus.NOT_FOUND and isinstance(action, Delete)
        except KubeError:
            return False
        meta = meta_of(live)
        self._written.note(key, action.ref, meta.resource_version)
        match action:
            case Apply():
                same = action.live is None or action.live.uid == meta.uid
                same = same and _controls(action.owner_uid, meta)
                return same and owned_digest(live, action.manager) == action.manifest.digest
            case Create():
                return _controls(action.owner_uid, meta)
            case Delete():
                return meta.deleting or meta.uid != action.live.uid
            case Patch():
                return False  # a merge patch leaves no trace that tells it from another's; decide again


def fingerprint(action: Action) -> Fingerprint:
    """What a refusal of this action depends on; see `Refusals`."""
    match action:
        case Apply():
            uid = action.live.uid if action.live else ""
            return (str(action.ref), action.manifest.digest, uid, action.live_digest)
        case Create():
            return (str(action.ref), action.manifest.digest)
        case Patch():
            return (str(action.ref), digest_of(action.body), action.live.uid, action.live.resource_version)
        case Delete():
            return (str(action.ref), action.live.uid, action.live.resource_version)


def _controls(owner_uid: str, meta: Meta) -> bool:
    return meta.controller is not None and meta.controller.uid == owner_uid
