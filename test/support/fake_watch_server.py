"""An API server in memory, for what a real one does rarely, slowly or never.

It implements `Transport`, so everything above the wire is real. It keeps objects of one namespaced type with
their history, and answers lists, watches and WatchLists as kube-apiserver does: one resourceVersion for all,
`NotOlderThan`, continue tokens bound to a snapshot, 410 below the compaction, 504 beyond the present,
bookmarks each minute and 2 s before the end. Faults are answers put in the way (`meet`) or done to the open
streams (`cut`, `silence`, `say`). Time is the event loop's, so looptime makes all of it instant.
"""

import asyncio
import contextlib
import copy
import json
import math
import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from modelfleet.kube.errors import TransportError
from modelfleet.kube.transport import Guard, Response, Stream
from test.support.fake_answers import (
    GONE,
    JSON,
    NO_WATCH_LIST,
    TOO_LARGE,
    Answer,
    FakeStream,
    Fault,
    Object,
    Refused,
    RefusedStream,
    Script,
    bookmark,
    event,
)

LATENCY = 0.002
"""Seconds per request, so that a loop without a pause shows as requests per second and not as a hang."""


@dataclass(frozen=True)
class Request:
    """One list or watch that reached the server."""

    at: float
    verb: str
    namespace: str
    query: Mapping[str, str]
    accept: str


@dataclass
class _Planned:
    verb: str
    fault: Fault
    left: float
    where: Callable[[Request], bool]


class FakeWatchServer:
    """See the module; `watch_list` False is a server with the feature gate off."""

    def __init__(self, *, kind: str = "ConfigMap", watch_list: bool = True) -> None:
        self.kind = kind
        self.watch_list = watch_list
        self.revision = 100
        self.compacted = 0
        self.objects: dict[tuple[str, str], Object] = {}
        self.requests: list[Request] = []
        self.streams: list[FakeStream] = []
        self.ends_watches = True
        self.before_initial_end: Callable[[FakeStream], None] | None = None
        """Called when all initial events of a WatchList are said and its bookmark isn't; for faults there."""
        self._history: list[tuple[int, str, Object, Object | None]] = []
        self._snapshots: dict[str, tuple[list[Object], int]] = {}
        self._planned: list[_Planned] = []

    # --- the world ----------------------------------------------------------------------------------

    def put(self, name: str, namespace: str = "a", **metadata: Any) -> Object:
        """Create or change an object; keyword arguments become metadata."""
        self.revision += 1
        known = self.objects.get((namespace, name))
        uid = known["metadata"]["uid"] if known else f"uid-{name}-{self.revision}"
        meta = {"namespace": namespace, "name": name, "uid": uid, **metadata}
        obj = {
            "apiVersion": "v1",
            "kind": self.kind,
            "metadata": {**meta, "resourceVersion": str(self.revision)},
        }
        self.objects[namespace, name] = obj
        self._record("MODIFIED" if known else "ADDED", obj, known)
        return obj

    def delete(self, name: str, namespace: str = "a") -> None:
        """Remove an object."""
        self.revision += 1
        known = self.objects.pop((namespace, name))
        last = copy.deepcopy(known)
        last["metadata"]["resourceVersion"] = str(self.revision)
        self._record("DELETED", last, known)

    def compact(self) -> None:
        """Forget all history: whoever resumes from before gets 410."""
        self.compacted = self.revision
        self._snapshots.clear()

    def restore(self, revision: int, *names: str) -> None:
        """Etcd comes back from a backup that held only these objects of namespace `a`."""
        self.revision, self.compacted = revision, 0
        self._history.clear()
        self.objects = {}
        for name in names:
            self.put(name)

    def versions(self) -> dict[tuple[str, str], str]:
        """Everything there is, by namespace and name, with its resourceVersion."""
        return {name: obj["metadata"]["resourceVersion"] for name, obj in self.objects.items()}

    # --- faults -------------------------------------------------------------------------------------

    def meet(
        self,
        verb: str,
        fault: Fault,
        *,
        times: float = 1,
        where: Callable[[Request], bool] = lambda _: True,
    ) -> None:
        """The next `times` lists or watches (`verb`; "" is either) that fit meet a fault."""
        self._planned.append(_Planned(verb, fault, times, where))

    def heal(self) -> None:
        """No planned fault happens any more."""
        self._planned.clear()

    def cut(self) -> None:
        """Break all open streams."""
        self._all(TransportError("connection reset"))

    def end(self) -> None:
        """End all open streams as a server does that stops."""
        self._all(None)

    def silence(self) -> None:
        """Open streams stay open and say nothing any more."""
        for stream in self.streams:
            stream.silent = True

    def say(self, line: bytes) -> None:
        """Say a line on all open streams."""
        self._all(line)

    def asked(self, verb: str) -> list[Request]:
        """The requests of one verb so far."""
        return [request for request in self.requests if request.verb == verb]

    # --- Transport ----------------------------------------------------------------------------------

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        timeout: float,  # noqa: ASYNC109 -- the interface's
        guard: Guard | None = None,
    ) -> Response:
        """A list."""
        assert (method, body, guard) == ("GET", None, None), "reflectors only read"
        assert timeout > 0
        request = await self._arrive("list", path, query or {}, headers or {})
        fault = self._fault(request)
        if isinstance(fault, Refused):
            raise TransportError("connection refused", sent=False)
        if isinstance(fault, Answer):
            return fault.response()
        assert fault is None, "a script is a watch"
        return self._list(request)

    @contextlib.asynccontextmanager
    async def stream(
        self,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        idle_timeout: float,
        total_timeout: float,
    ) -> AsyncIterator[Stream]:
        """A watch."""
        request = await self._arrive("watch", path, query or {}, headers or {})
        fault = self._fault(request)
        if isinstance(fault, Refused):
            raise TransportError("connection refused", sent=False)
        answer = fault if isinstance(fault, Answer) else self._refusal(request)
        if answer is not None:
            yield RefusedStream(answer)
            return
        stream = FakeStream(
            request.namespace,
            request.query.get("labelSelector", ""),
            idle=idle_timeout,
            total=total_timeout,
            asked=float(request.query["timeoutSeconds"]) if self.ends_watches else math.inf,
            since=int(request.query.get("resourceVersion") or 0),
            latest=lambda: self.revision,
        )
        self._open(stream, request, fault)
        try:
            yield stream
        finally:
            self.streams.remove(stream)

    async def close(self) -> None:
        """Nothing to close."""

    async def _arrive(
        self, verb: str, path: str, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> Request:
        await asyncio.sleep(LATENCY)
        found = re.search(r"/namespaces/([^/]+)/", path)
        accept = {k.lower(): v for k, v in headers.items()}.get("accept", "")
        now = asyncio.get_running_loop().time()
        request = Request(now, verb, found[1] if found else "", dict(query), accept)
        self.requests.append(request)
        return request

    def _fault(self, request: Request) -> Fault | None:
        for planned in self._planned:
            if planned.left > 0 and planned.verb in ("", request.verb) and planned.where(request):
                planned.left -= 1
                return planned.fault
        return None

    def _list(self, request: Request) -> Response:
        query = request.query
        if token := query.get("continue"):
            if token not in self._snapshots:
                return GONE.response()
            snapshot, revision = self._snapshots.pop(token)
        else:
            if (refusal := self._refusal(request)) is not None:
                return refusal.response()
            snapshot, revision = self._matching(request.namespace, ""), self.revision
        items = [obj for obj in snapshot if matches(obj, query.get("labelSelector", ""))]
        metadata: Object = {"resourceVersion": str(revision)}
        limit = int(query.get("limit", "0"))
        if limit and len(items) > limit:
            items = items[:limit]
            metadata["continue"] = token = f"token-{len(self.requests)}"
            self._snapshots[token] = (snapshot[snapshot.index(items[-1]) + 1 :], revision)
        page = {"kind": f"{self.kind}List", "apiVersion": "v1", "metadata": metadata, "items": items}
        return Response(200, JSON, json.dumps(page).encode())

    def _refusal(self, request: Request) -> Answer | None:
        """What the real server says to a resourceVersion that it can't serve."""
        wanted = int(request.query.get("resourceVersion") or 0)
        initial = request.query.get("sendInitialEvents") == "true"
        if initial and not self.watch_list:
            return NO_WATCH_LIST
        if wanted > self.revision and (initial or request.verb == "list"):
            return TOO_LARGE
        if request.verb == "watch" and not initial and wanted < self.compacted:
            return GONE
        return None

    def _open(self, stream: FakeStream, request: Request, fault: Fault | None) -> None:
        self.streams.append(stream)
        if isinstance(fault, Script):
            for line in fault.lines:
                stream.push(line)
            if fault.then == "hang":
                stream.silent = True
            else:
                stream.push(None if fault.then == "end" else TransportError("connection reset"))
                stream.silent = True
            return
        if request.query.get("sendInitialEvents") == "true":
            for obj in self._matching(stream.namespace, stream.selector):
                stream.push(event("ADDED", obj))
            if self.before_initial_end is not None:
                self.before_initial_end(stream)
            stream.push(bookmark(self.revision, initial_end=True))
            return
        wanted = int(request.query.get("resourceVersion") or 0)
        for revision, kind, obj, before in self._history:
            if revision > wanted:
                self._tell(stream, kind, obj, before)

    def _matching(self, namespace: str, selector: str) -> list[Object]:
        """Not in order of resourceVersion, as etcd doesn't do that either."""
        return [
            obj
            for (where, _), obj in sorted(self.objects.items())
            if namespace in ("", where) and matches(obj, selector)
        ]

    def _record(self, kind: str, obj: Object, before: Object | None) -> None:
        self._history.append((self.revision, kind, obj, before))
        for stream in self.streams:
            self._tell(stream, kind, obj, before)

    def _tell(self, stream: FakeStream, kind: str, obj: Object, before: Object | None) -> None:
        """Translate a change as the server does for a watch with a selector."""
        if stream.namespace not in ("", obj["metadata"]["namespace"]):
            return
        was = before is not None and matches(before, stream.selector)
        now = kind != "DELETED" and matches(obj, stream.selector)
        if now:
            stream.push(event("MODIFIED" if was else "ADDED", obj))
        elif was:
            assert before is not None
            last = copy.deepcopy(before)
            last["metadata"]["resourceVersion"] = obj["metadata"]["resourceVersion"]
            stream.push(event("DELETED", last))

    def _all(self, line: bytes | TransportError | None) -> None:
        for stream in self.streams:
            stream.push(line)


def matches(obj: Object, selector: str) -> bool:
    """Whether an object has the labels of an equality selector."""
    labels = obj["metadata"].get("labels", {})
    wanted = (term.partition("=") for term in selector.split(",") if term)
    return all(labels.get(key) == value for key, _, value in wanted)
