"""Keeps one feed equal to the server: list (or WatchList), then watch, for ever (rules I1-I16).

`course` decides what comes after what; this module carries it out. Promises: the process never ends for
what a server says; no failure is repeated without a pause; the feed holds a complete set or an older
complete set, never a part of one; every stream has an idle and a total deadline.
"""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from typing import Any, Generic

from modelfleet.kube import explain
from modelfleet.kube.backoff import Backoff
from modelfleet.kube.changes import State
from modelfleet.kube.client import Client
from modelfleet.kube.course import FAILURES, Course, EarlyEndError, Ending, Phase, WentBackError, ending_of
from modelfleet.kube.errors import StatusError
from modelfleet.kube.feed import Feed
from modelfleet.kube.initial import InitialEvents
from modelfleet.kube.listing import Listing
from modelfleet.kube.objects import Item, MalformedObjectError, Meta, V, meta_of
from modelfleet.kube.reflector_metrics import NoMetrics, ReflectorMetrics
from modelfleet.kube.resource import Resource, UnreadableObjectError
from modelfleet.kube.watching import (
    IDLE_SECONDS,
    PROMPT_TIMEOUT_SECONDS,
    TIMEOUT_MARGIN_SECONDS,
    WatchEvent,
    bookmark_version,
    decode_event,
    ends_initial_events,
    initial_query,
    random_timeout,
    watch_query,
)

SHORT_SECONDS = 1.0
"""A watch that ends earlier and without an event is a failure (client-go: VeryShortWatchError); with one it
is followed by the next watch not before this time has passed, or a server could make us hurry."""

_log = logging.getLogger(__name__)


class Reflector(Generic[V]):
    """One type in one namespace ("" is all of them)."""

    def __init__(
        self,
        client: Client,
        resource: Resource[V],
        feed: Feed[V],
        *,
        metrics: ReflectorMetrics | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """`jitter` draws from [0, 1), for backoff and watch timeouts."""
        self.resource = resource
        self.feed = feed
        self._client = client
        self._metrics = metrics or NoMetrics()
        self._jitter = jitter
        self._backoff = Backoff(jitter)
        self._course = Course()
        self._refusals = 0
        self._wanted = 0
        self._watch: asyncio.Timeout | None = None

    def __str__(self) -> str:
        return f"{self.resource.api} in {self.feed.namespace or 'all namespaces'}"

    async def run(self) -> None:
        """Feed until the server says that it does not know the type, or until cancelled."""
        self._course = Course()
        while True:
            try:
                await self._request()
            except FAILURES as error:
                ending = ending_of(error)
                if ending is Ending.NOT_INSTALLED:
                    return
                await asyncio.sleep(self._failed(ending, error))

    def withdraw(self, problem: str) -> None:
        """The type is gone from the server; call while `run` doesn't."""
        self.feed.withdraw(problem)
        self._metrics.held(self.resource.api, self.feed.namespace, 0)

    def want(self, resource_version: int) -> None:
        """Get to `resource_version` soon, although nothing may happen to this type for long."""
        self._wanted = max(self._wanted, resource_version)
        watching = self._watch is not None and self._course.phase is Phase.WATCH
        if self._watch is not None and watching and self._behind and not self._watch.expired():
            self._watch.reschedule(asyncio.get_running_loop().time())

    @property
    def _behind(self) -> bool:
        return self.feed.resource_version < self._wanted

    async def _request(self) -> None:
        """Make the request that the present state asks for; returns when it ended as agreed."""
        if self._course.phase is Phase.LIST and not self._course.streaming:
            await self._list()
            return
        self._watch = asyncio.timeout(None)
        try:
            async with self._watch:
                await self._stream()
        except TimeoutError:
            if not self._watch.expired():  # by `want`; deadlines of the transport are TransportErrors
                raise
        finally:
            self._watch = None

    async def _list(self) -> None:
        resource = self.resource
        listing = Listing(
            self._client,
            resource.api,
            self.feed.namespace,
            label_selector=resource.label_selector,
            metadata_only=resource.metadata_only,
            not_older_than=self._resume_point(),
        )
        items = [item async for obj in listing.objects() if (item := self._decode(obj)[1]) is not None]
        self._replace(items, listing.resource_version)

    async def _stream(self) -> None:
        """A watch from the resume point, or a WatchList that turns into one."""
        seconds = PROMPT_TIMEOUT_SECONDS if self._behind else random_timeout(self._jitter)
        opened = asyncio.get_running_loop().time()
        watch = self._client.watch(
            self.resource.api,
            self.feed.namespace,
            query=self._query(seconds),
            idle_timeout=IDLE_SECONDS,
            total_timeout=seconds + TIMEOUT_MARGIN_SECONDS,
            metadata_only=self.resource.metadata_only,
        )
        events = 0
        async with watch as stream:
            lines = aiter(stream)
            if self._course.phase is Phase.LIST:
                await self._collect(lines)
                events += 1
            async for line in lines:
                self._take(decode_event(line))
                events += 1
        lasted = asyncio.get_running_loop().time() - opened
        if not events and lasted < SHORT_SECONDS:
            raise EarlyEndError(f"the watch ended after {lasted:.3f} s without an event")
        await asyncio.sleep(SHORT_SECONDS - lasted)

    async def _collect(self, lines: AsyncIterator[bytes]) -> None:
        """Take the initial events of a WatchList."""
        with InitialEvents[V](str(self)) as initial:
            async for line in lines:
                event = decode_event(line)
                if event.type == "BOOKMARK":
                    version = bookmark_version(event)
                    if not ends_initial_events(event):
                        raise MalformedObjectError("a bookmark among the initial events")
                    self._replace(initial.items, int(version))
                    return
                meta, item = self._decode(event.object, deleted=event.type == "DELETED")
                if item is None:
                    initial.drop(meta)
                else:
                    initial.put(item)
        raise EarlyEndError("the stream ended among the initial events")

    def _take(self, event: WatchEvent) -> None:
        """One event of a watch: into the feed, and the resume point moves (rule I5)."""
        if event.type == "BOOKMARK":
            version = bookmark_version(event)
            self._check_order(version)
            self.feed.bookmark(version)
        else:
            deleted = event.type == "DELETED"
            meta, item = self._decode(event.object, deleted=deleted)
            self._check_order(meta.resource_version)
            if item is None:
                self.feed.drop((meta.namespace, meta.name), meta.uid, meta.resource_version, certain=deleted)
            else:
                self.feed.put(item)
        self._moved()

    def _check_order(self, version: str) -> None:
        if int(version) < self.feed.resource_version:
            raise WentBackError(f"resourceVersion {version} after {self.feed.resource_version}")

    def _decode(self, obj: Mapping[str, Any], *, deleted: bool = False) -> tuple[Meta, Item[V] | None]:
        """The item of a wire object; None for one that is deleted or that the view can't read."""
        if deleted:
            return meta_of(obj), None
        try:
            item = self.resource.decode(obj)
        except UnreadableObjectError as error:
            _log.error("%s", error)
            return error.meta, None
        return item.meta, item

    def _replace(self, items: Collection[Item[V]], resource_version: int) -> None:
        if resource_version < self.feed.resource_version:
            _log.warning(
                "%s: the server went back from resourceVersion %d to %d; was etcd restored from a backup?",
                self,
                self.feed.resource_version,
                resource_version,
            )
        cause = self._course.cause
        self._course.listed()
        self.feed.replace(items, resource_version)
        self._metrics.listed(self.resource.api, self.feed.namespace, cause)
        self._moved()

    def _moved(self) -> None:
        self._course.progressed()
        self._refusals = 0
        api, namespace = self.resource.api, self.feed.namespace
        self._metrics.progressed(api, namespace, self.feed.resource_version)
        self._metrics.held(api, namespace, len(self.feed.items))

    def _failed(self, ending: Ending, error: Exception) -> float:
        """Say what went wrong where it matters; seconds to wait."""
        doing = self._course.phase.value
        wait = self._course.after(ending)
        pause = self._backoff.next(getattr(error, "retry_after", None) or 0.0) if wait else 0.0
        self._metrics.failed(self.resource.api, self.feed.namespace, ending.value)
        _log.warning("%s of %s: %s; next: %s in %.1f s", doing, self, error, self._course.phase.value, pause)
        self._refusals = self._refusals + 1 if ending is Ending.FORBIDDEN else 0
        if isinstance(error, StatusError) and ending is Ending.FORBIDDEN:
            if self._refusals > 1 or not self.feed.listed:
                problem = explain.forbidden(self.resource.api, self.feed.namespace, error)
                self.feed.mark(State.FORBIDDEN, problem)
        elif self.feed.state is State.SYNCING:
            problem = explain.unavailable(self.resource.api, self.feed.namespace, error)
            self.feed.mark(State.SYNCING, problem)
        return pause

    def _query(self, seconds: int) -> Mapping[str, str]:
        selector = self.resource.label_selector
        if self._course.phase is Phase.LIST:
            return initial_query(self._resume_point(), seconds, selector)
        return watch_query(str(self.feed.resource_version), seconds, selector)

    def _resume_point(self) -> str:
        """What a list must not be older than; "" for whatever the quorum holds (rules I1, I6)."""
        latest = self._course.latest or not self.feed.resource_version
        return "" if latest else str(self.feed.resource_version)
