"""Requests in terms of objects: one method for each thing this project asks an API server.

Promises:
- every write carries what pins the incarnation it was decided from: uid and resourceVersion in the body of
  an apply, an update or a merge patch, preconditions in a delete (rules A6, A7); what is stale gets 409;
- server-side apply always forces, always under a constant field manager (rules A1, A11), as JSON, and is
  validated field by field (rule A12);
- at most `max_writes` writes are in flight; a write that waited for its turn asks the fence again, and the
  transport asks it once more right before the first byte leaves (facts 1.7);
- a failure is raised, never repeated: only the caller knows whether the decision still stands (rule A14);
- neither bodies nor credentials are logged (facts 1.9).
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, Literal

import msgspec

from modelfleet.kube.errors import StatusError, TransportError
from modelfleet.kube.paths import collection_path, object_path
from modelfleet.kube.transport import Guard, Response, Stream, Transport
from modelfleet.kube.warning_header import WarningLog
from modelfleet.plan import Api, Propagation, Ref

BIRTH = "1"
"""resourceVersion of an apply without uid that must create: 201 when the name is free, 409 when it is held.

No object ever has it: etcd's first write gets 2 (tried on 1.36.3, architecture.md section 2).
"""

REQUEST_TIMEOUT = 30.0
"""Seconds for a request about one object; half of the server's own limit (--request-timeout, 60 s)."""

LIST_TIMEOUT = 60.0
"""Seconds for one page of a list: the server's own limit."""

APPLY_TYPE = "application/apply-patch+yaml"
"""JSON is YAML; `apply-patch+cbor` needs an alpha feature gate (rule A1)."""

_PATCH_TYPES = {"merge": "application/merge-patch+json", "json": "application/json-patch+json"}
_JSON = "application/json"
_METADATA_OBJECT = f"{_JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_LIST = f"{_JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


class RequestRecord(msgspec.Struct, frozen=True, gc=False):
    """One request as metrics see it (rest_client_*, facts 1.9)."""

    verb: str
    """get, list, watch, apply, create, update, patch or delete; for raw requests the method."""
    method: str
    host: str
    resource: str
    """`plural.group`, or "" for requests about no resource."""
    code: int
    """HTTP status, 0 when no answer came."""
    seconds: float
    """Until the whole answer was read; for a watch until its headers came."""
    request_bytes: int
    response_bytes: int


class _Call(msgspec.Struct, frozen=True):
    """What one request is, apart from how it fares."""

    verb: str
    method: str
    path: str
    resource: str = ""
    query: Mapping[str, str] = {}
    accept: str = _JSON
    content_type: str = _JSON
    body: bytes | None = None


class Client:
    """All requests to one API server."""

    def __init__(
        self,
        transport: Transport,
        *,
        user_agent: str = "modelfleet",
        field_validation: Literal["Strict", "Warn", "Ignore"] = "Warn",
        max_writes: int = 32,
        observe: Callable[[RequestRecord], None] | None = None,
        host: str = "",
    ) -> None:
        """`max_writes` 32..64 keeps one core busy (facts 4.3); `host` only labels metrics."""
        self.fence: Guard | None = None
        """Asked before each write that is not made with `fenced=False`; raises `FencedError` to refuse it."""
        self._transport = transport
        self._user_agent = user_agent
        self._field_validation = field_validation
        self._observe = observe
        self._host = host
        self._slots = asyncio.Semaphore(max_writes)
        self._warnings = WarningLog()

    async def get(
        self,
        ref: Ref,
        *,
        timeout: float = REQUEST_TIMEOUT,  # noqa: ASYNC109 -- handed to the transport, which enforces it
    ) -> dict[str, Any]:
        """Read one object at the latest revision."""
        return _object(await self._send(_Call("get", "GET", object_path(ref), str(ref.api)), timeout))

    async def list_page(
        self,
        api: Api,
        namespace: str = "",
        *,
        query: Mapping[str, str] | None = None,
        metadata_only: bool = False,
        timeout: float = LIST_TIMEOUT,  # noqa: ASYNC109 -- as above
    ) -> dict[str, Any]:
        """One page of a list, of all namespaces when `namespace` is ""; paging is the caller's query."""
        call = _Call(
            "list",
            "GET",
            collection_path(api, namespace),
            str(api),
            query=query or {},
            accept=_METADATA_LIST if metadata_only else _JSON,
        )
        return _object(await self._send(call, timeout))

    @asynccontextmanager
    async def watch(
        self,
        api: Api,
        namespace: str = "",
        *,
        query: Mapping[str, str] | None = None,
        idle_timeout: float,
        total_timeout: float,
        metadata_only: bool = False,
    ) -> AsyncIterator[Stream]:
        """Open a watch; yields its lines undecoded. An answer other than 200 raises `StatusError`."""
        started, code = time.monotonic(), 0
        call = _Call(
            "watch",
            "GET",
            collection_path(api, namespace),
            str(api),
            query={"watch": "1", **(query or {})},
            accept=_METADATA_OBJECT if metadata_only else _JSON,
        )
        opened = self._transport.stream(
            call.path,
            query=call.query,
            headers=self._headers(call),
            idle_timeout=idle_timeout,
            total_timeout=total_timeout,
        )
        recorded = False
        try:
            async with opened as stream:
                code = stream.status
                self._record(call, code, started, 0)
                recorded = True
                self._warnings.note(stream.headers, call.resource)
                if code != HTTPStatus.OK:
                    raise StatusError.of(code, stream.headers, await stream.read())
                yield stream
        finally:
            if not recorded:
                self._record(call, code, started, 0)

    async def apply(
        self,
        ref: Ref,
        body: Mapping[str, Any],
        *,
        manager: str,
        uid: str | None,
        resource_version: str,
        subresource: str = "",
        fenced: bool = True,
    ) -> dict[str, Any]:
        """Server-side apply of the full intent of `manager`.

        `uid` and `resource_version` name the live object the intent was decided from: if it is gone or
        another one the server answers 409 and creates nothing (rule A7). A birth has no uid and `BIRTH`.
        """
        pins = {"resourceVersion": resource_version} | ({"uid": uid} if uid is not None else {})
        call = _Call(
            "apply",
            "PATCH",
            object_path(ref, subresource),
            str(ref.api),
            query={**self._write_query(manager), "force": "true"},
            content_type=APPLY_TYPE,
            body=_encode(_addressed(ref, body, pins)),
        )
        return _object(await self._write(call, fenced=fenced))

    async def create(
        self, ref: Ref, body: Mapping[str, Any], *, manager: str, fenced: bool = True
    ) -> dict[str, Any]:
        """POST; 409 AlreadyExists when the name is held."""
        call = _Call(
            "create",
            "POST",
            collection_path(ref.api, ref.namespace),
            str(ref.api),
            query=self._write_query(manager),
            body=_encode(_addressed(ref, body, {})),
        )
        return _object(await self._write(call, fenced=fenced))

    async def update(
        self,
        ref: Ref,
        body: Mapping[str, Any],
        *,
        manager: str,
        fenced: bool = True,
        timeout: float = REQUEST_TIMEOUT,  # noqa: ASYNC109 -- as above
    ) -> dict[str, Any]:
        """PUT of a whole object; its metadata must hold the resourceVersion it was read at."""
        if not body.get("metadata", {}).get("resourceVersion"):
            raise ValueError(f"an update of {ref} needs metadata.resourceVersion, or it overwrites others")
        call = _Call(
            "update",
            "PUT",
            object_path(ref),
            str(ref.api),
            query=self._write_query(manager),
            body=_encode(_addressed(ref, body, {})),
        )
        return _object(await self._write(call, fenced=fenced, timeout=timeout))

    async def patch(
        self,
        ref: Ref,
        body: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        manager: str,
        content_type: Literal["merge", "json"] = "merge",
        subresource: str = "",
        fenced: bool = True,
    ) -> dict[str, Any]:
        """JSON merge patch, or JSON patch; the body holds uid and resourceVersion (or tests them)."""
        call = _Call(
            "patch",
            "PATCH",
            object_path(ref, subresource),
            str(ref.api),
            query=self._write_query(manager),
            content_type=_PATCH_TYPES[content_type],
            body=_encode(body),
        )
        return _object(await self._write(call, fenced=fenced))

    async def delete(
        self,
        ref: Ref,
        *,
        uid: str,
        resource_version: str,
        propagation: Propagation = Propagation.BACKGROUND,
        fenced: bool = True,
    ) -> dict[str, Any]:
        """Delete one incarnation at one revision (rule A6); answers the object or a Status."""
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid, "resourceVersion": resource_version},
            "propagationPolicy": propagation,
        }
        call = _Call("delete", "DELETE", object_path(ref), str(ref.api), body=_encode(options))
        return _object(await self._write(call, fenced=fenced))

    async def raw(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        timeout: float = REQUEST_TIMEOUT,  # noqa: ASYNC109 -- as above
    ) -> Any:
        """A request about no object (discovery, version); text is returned as `str`. Non-GETs are fenced."""
        call = _Call(
            method.lower(),
            method,
            path,
            query=query or {},
            body=None if body is None else _encode(body),
        )
        if method == "GET":
            response = await self._send(call, timeout)
        else:
            response = await self._write(call, fenced=True, timeout=timeout)
        is_json = response.headers.get("content-type", "").startswith(_JSON)
        return _decode(response) if is_json else response.body.decode(errors="replace")

    def _write_query(self, manager: str) -> dict[str, str]:
        return {"fieldManager": manager, "fieldValidation": self._field_validation}

    async def _write(
        self,
        call: _Call,
        *,
        fenced: bool,
        timeout: float = REQUEST_TIMEOUT,  # noqa: ASYNC109 -- as above
    ) -> Response:
        if not fenced:
            return await self._send(call, timeout)
        async with self._slots:
            if self.fence is not None:
                self.fence()
            return await self._send(call, timeout, self.fence)

    async def _send(
        self,
        call: _Call,
        timeout: float,  # noqa: ASYNC109 -- as above
        guard: Guard | None = None,
    ) -> Response:
        started, code, received = time.monotonic(), 0, 0
        try:
            response = await self._transport.request(
                call.method,
                call.path,
                query=call.query,
                headers=self._headers(call),
                body=call.body,
                timeout=timeout,
                guard=guard,
            )
            code, received = response.status, len(response.body)
        finally:
            self._record(call, code, started, received)
        self._warnings.note(response.headers, call.resource)
        if code not in range(HTTPStatus.OK, HTTPStatus.MULTIPLE_CHOICES):
            raise StatusError.of(code, response.headers, response.body)
        return response

    def _headers(self, call: _Call) -> dict[str, str]:
        headers = {"Accept": call.accept, "User-Agent": self._user_agent}
        if call.body is not None:
            headers["Content-Type"] = call.content_type
        return headers

    def _record(self, call: _Call, code: int, started: float, received: int) -> None:
        if self._observe is None:
            return
        self._observe(
            RequestRecord(
                verb=call.verb,
                method=call.method,
                host=self._host,
                resource=call.resource,
                code=code,
                seconds=time.monotonic() - started,
                request_bytes=len(call.body or b""),
                response_bytes=received,
            )
        )


_encode = msgspec.json.Encoder().encode


def _addressed(ref: Ref, body: Mapping[str, Any], pins: Mapping[str, str]) -> dict[str, Any]:
    """The body with the address of `ref`, and what pins its incarnation, put in."""
    metadata = {**body.get("metadata", {}), "name": ref.name, **pins}
    if ref.api.namespaced:
        metadata["namespace"] = ref.namespace
    return {**body, "apiVersion": ref.api.api_version, "kind": ref.api.kind, "metadata": metadata}


def _decode(response: Response) -> Any:
    try:
        return msgspec.json.decode(response.body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TransportError(f"the answer ({len(response.body)} bytes) is not JSON: {error}") from None


def _object(response: Response) -> dict[str, Any]:
    decoded = _decode(response)
    if not isinstance(decoded, dict):
        raise TransportError(f"the answer ({len(response.body)} bytes) is not a JSON object")
    return decoded
