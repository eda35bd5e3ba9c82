"""An API server in memory behind the transport interface, for faults a real one can't be made to show.

It knows uids, resourceVersions, preconditions and field owners; lists are atomic and nothing is validated.
What a real server does is tested against a real one (test/contract/test_executor.py).
"""

import asyncio
import itertools
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from modelfleet.kube.errors import TransportError
from modelfleet.kube.paths import object_path
from modelfleet.kube.store import Store
from modelfleet.kube.transport import Guard, Response, Stream
from modelfleet.plan import Ref, intent

Object = dict[str, Any]
APPLY = "application/apply-patch+yaml"


@dataclass(frozen=True)
class Request:
    """One request as the server saw it."""

    method: str
    path: str
    query: Mapping[str, str]
    body: Any


@dataclass
class Fault:
    """What happens to requests instead of an answer, or after they took effect."""

    matches: Callable[[Request], bool]
    answer: Response | None = None
    """Answer this and do nothing."""
    commit: bool = False
    """Do what was asked, then lose the answer."""
    sent: bool = True
    """Without `commit`: whether the loss leaves it open what happened."""
    hold: asyncio.Event | None = None
    """Do what was asked, but answer only when this is set."""
    times: int = 1


@dataclass
class FakeApiServer:
    """A `Transport` that keeps objects by path."""

    objects: dict[str, Object] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    version: int = 100

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        timeout: float,  # noqa: ASYNC109 -- as the interface has it
        guard: Guard | None = None,
    ) -> Response:
        """Answer at once, unless a fault says otherwise."""
        await asyncio.sleep(0)
        if guard is not None:
            guard()
        request = Request(method, path, query or {}, msgspec.json.decode(body) if body else None)
        self.requests.append(request)
        fault = next((f for f in self.faults if f.times and f.matches(request)), None)
        if fault is None:
            return self._answer(request, headers or {})
        fault.times -= 1
        if fault.answer is not None:
            return fault.answer
        if fault.hold is not None:
            response = self._answer(request, headers or {})
            try:
                async with asyncio.timeout(timeout):
                    await fault.hold.wait()
            except TimeoutError:
                raise TransportError(f"{method} {path}: no answer within {timeout:g} s") from None
            return response
        if fault.commit:
            self._answer(request, headers or {})
        raise TransportError(f"{method} {path}: connection reset", sent=fault.sent)

    def stream(
        self,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        idle_timeout: float,
        total_timeout: float,
    ) -> AbstractAsyncContextManager[Stream]:
        """Tests feed their stores themselves."""
        raise NotImplementedError

    async def close(self) -> None:
        """Nothing is open."""

    def writes(self) -> list[str]:
        """Method and path of each request for a change."""
        return [f"{r.method} {r.path}" for r in self.requests if r.method != "GET"]

    def live(self, ref: Ref) -> Object | None:
        """The object as it is now."""
        return self.objects.get(object_path(ref))

    def put(self, ref: Ref, body: Object, *, manager: str = "kubectl", owner: str = "") -> Object:
        """Somebody else creates or changes an object."""
        path = object_path(ref)
        known = self.objects.get(path)
        obj = self._fresh(ref.namespace, ref.name, body) if known is None else _merged(known, body)
        if owner:
            obj["metadata"]["ownerReferences"] = [
                {"apiVersion": "v1", "kind": "Owner", "name": "o", "uid": owner, "controller": True}
            ]
        self._own(obj, manager, "Update", "", body)
        return self._store(path, obj)

    def deliver(self, ref: Ref, store: Store[Any]) -> None:
        """Let the watch of a store catch up with one object."""
        feed = store.feed()
        if (obj := self.live(ref)) is not None:
            feed.put(store.resource.decode(obj))
        elif (item := store.get(ref.namespace, ref.name)) is not None:
            feed.drop((ref.namespace, ref.name), item.meta.uid, str(self.version))

    def _answer(self, request: Request, headers: Mapping[str, str]) -> Response:
        if request.method == "POST":
            return self._create(request)
        path, _, subresource = request.path.partition("/status")
        subresource = "status" if request.path != path else subresource
        obj = self.objects.get(path)
        if request.method == "PATCH" and headers["Content-Type"] == APPLY:
            return self._apply(path, obj, request, subresource)
        if obj is None:
            return failure(404, "NotFound", "not found", {"name": path.rpartition("/")[2]})
        if request.method == "GET":
            return _json(200, obj)
        return (
            self._delete(path, obj, request)
            if request.method == "DELETE"
            else self._patch(path, obj, request)
        )

    def _patch(self, path: str, obj: Object, request: Request) -> Response:
        if not _current(obj, request.body.get("metadata", {})):
            return failure(409, "Conflict", "the object has been modified")
        return _json(200, self._store(path, _merged(obj, request.body)))

    def _create(self, request: Request) -> Response:
        metadata = request.body["metadata"]
        path = f"{request.path}/{metadata['name']}"
        if path in self.objects:
            return failure(409, "AlreadyExists", "already exists", {"name": metadata["name"]})
        obj = self._fresh(metadata.get("namespace", ""), metadata["name"], request.body)
        return _json(201, self._store(path, obj))

    def _apply(self, path: str, obj: Object | None, request: Request, subresource: str) -> Response:
        pins, manager = request.body["metadata"], request.query["fieldManager"]
        if obj is None:
            if "uid" in pins or pins.get("resourceVersion") != "1":
                return failure(409, "Conflict", "uid mismatch")
            obj = self._fresh(pins.get("namespace", ""), pins["name"], {})
        elif not _current(obj, pins):
            return failure(409, "Conflict", "the object has been modified")
        before = msgspec.json.encode(obj)
        obj = _merged(obj, {k: v for k, v in request.body.items() if k != "metadata"})
        labels = {k: v for k, v in pins.items() if k not in {"name", "namespace", "uid", "resourceVersion"}}
        obj["metadata"] = {**obj["metadata"], **labels}
        self._own(obj, manager, "Apply", subresource, request.body)
        if msgspec.json.encode(obj) == before:
            return _json(200, obj)
        return _json(200, self._store(path, obj))

    def _delete(self, path: str, obj: Object, request: Request) -> Response:
        if not _current(obj, request.body["preconditions"]):
            return failure(409, "Conflict", "precondition failed")
        self.version += 1
        del self.objects[path]
        return _json(200, {"kind": "Status", "status": "Success", "details": {"uid": obj["metadata"]["uid"]}})

    def _fresh(self, namespace: str, name: str, body: Object) -> Object:
        metadata = {"name": name, "namespace": namespace, "uid": f"uid-{next(_uids)}", "managedFields": []}
        return _merged({"metadata": metadata}, body)

    def _store(self, path: str, obj: Object) -> Object:
        self.version += 1
        obj["metadata"]["resourceVersion"] = str(self.version)
        self.objects[path] = obj
        return obj

    def _own(self, obj: Object, manager: str, operation: str, subresource: str, body: Object) -> None:
        entry = {"manager": manager, "operation": operation, "subresource": subresource}
        others = [e for e in obj["metadata"]["managedFields"] if {k: e[k] for k in entry} != entry]
        obj["metadata"]["managedFields"] = [*others, {**entry, "fieldsV1": _fields(body)}]


_uids = itertools.count(1)


def failure(
    code: int,
    reason: str,
    message: str,
    details: Object | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A metav1.Status that says no."""
    status = {"kind": "Status", "reason": reason, "message": message, "details": details or {}}
    return _json(code, status, headers)


def _json(code: int, body: Object, headers: Mapping[str, str] | None = None) -> Response:
    return Response(code, {"content-type": "application/json", **(headers or {})}, msgspec.json.encode(body))


def _current(obj: Object, pins: Mapping[str, Any]) -> bool:
    metadata = obj["metadata"]
    return all(metadata[name] == pins[name] for name in ("uid", "resourceVersion") if name in pins)


def _merged(base: Object, change: Mapping[str, Any]) -> Object:
    out = {**base}
    for name, value in change.items():
        old = out.get(name)
        out[name] = _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return out


def _fields(body: Mapping[str, Any]) -> Object:
    """FieldsV1 of an applied body, without its address and pins."""
    decided = intent(body)
    return {f"f:{name}": _below(value) for name, value in decided.items()}


def _below(value: Any) -> Object:
    return {f"f:{name}": _below(below) for name, below in value.items()} if isinstance(value, dict) else {}
