"""An API server that holds one Lease, and what a test of the election needs around it.

The faults put in front of it (an answer lost after the commit, a request that hangs for ever, a machine that
sleeps) are those a real API server can't be told to show at a given moment.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from modelfleet.kube.client import Client
from modelfleet.kube.errors import TransportError
from modelfleet.kube.transport import Guard, Response, Stream
from modelfleet.plan import Ref
from modelfleet.runtime.leader import LeaderElector
from modelfleet.runtime.lease import LEASE, LeaseRecord

REF = Ref(LEASE, "modelfleet-system", "modelfleet-controller")
EPOCH = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
OTHER = "other_1"


class LoopClock:
    """Loop time as an inexact clock shows it, shifted by as much as the machine slept."""

    def __init__(self, rate: float = 1.0) -> None:
        self.slept = 0.0
        self._rate = rate

    def monotonic(self) -> float:
        """Loop time and the time slept."""
        return self._rate * asyncio.get_running_loop().time() + self.slept

    def now(self) -> datetime:
        """A date that moves with `monotonic`."""
        return EPOCH + timedelta(seconds=self.monotonic())


class Counted:
    """What the metrics were told."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.slow_paths = 0

    def leading(self, status: Literal[0, 1], /) -> None:
        """Keep it."""
        self.status = status

    def slow_path(self) -> None:
        """Count."""
        self.slow_paths += 1


Fault = Callable[[str], Awaitable[bool]]
"""Gets the method; may wait or raise; returns whether the answer gets lost after the server acted."""


class FakeLeaseServer:
    """One Lease with optimistic locking behind the transport interface, with faults put in front of it."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.requests: list[tuple[float, str]] = []
        self.fault: Fault | None = None
        self.namespace_exists = True
        self._version = 10

    async def request(
        self,
        method: str,
        path: str,  # noqa: ARG002  # the interface, as below
        *,
        query: Mapping[str, str] | None = None,  # noqa: ARG002
        headers: Mapping[str, str] | None = None,  # noqa: ARG002
        body: bytes | None = None,
        timeout: float,  # noqa: ARG002, ASYNC109
        guard: Guard | None = None,
    ) -> Response:
        """Put the fault in front, then act as the API server does."""
        assert guard is None, "lease writes are not fenced by the lease"
        self.requests.append((asyncio.get_running_loop().time(), method))
        lost = await self.fault(method) if self.fault else False
        answer = self.act(method, json.loads(body) if body else {})
        if lost:
            raise TransportError("the answer was lost")
        return answer

    def stream(self, path: str, **_: Any) -> AbstractAsyncContextManager[Stream]:
        """Nothing to watch."""
        raise AssertionError(f"nobody watches {path}")

    async def close(self) -> None:
        """Nothing to close."""

    def edit(self, spec: Mapping[str, Any], *, annotation: str = "") -> None:
        """What another client writes."""
        self._version += 1
        metadata = {"name": REF.name, "namespace": REF.namespace, "resourceVersion": str(self._version)}
        if annotation:
            metadata["annotations"] = {"note": annotation}  # type: ignore[assignment]  # one value of another type
        self.lease = {
            "apiVersion": LEASE.api_version,
            "kind": "Lease",
            "metadata": metadata,
            "spec": dict(spec),
        }

    @property
    def record(self) -> LeaseRecord:
        """The record in the Lease."""
        assert self.lease is not None
        return LeaseRecord.of(self.lease)

    @property
    def holder(self) -> str:
        """Who holds the Lease; "" when nobody does or there is none."""
        return self.record.holder if self.lease is not None else ""

    def act(self, method: str, body: dict[str, Any]) -> Response:
        """What the API server does with a request."""
        refusal = self._refusal(method, body)
        if refusal is not None:
            return refusal
        if method != "GET":
            self._version += 1
            self.lease = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self._version)}}
        return Response(200, {"content-type": "application/json"}, json.dumps(self.lease).encode())

    def _refusal(self, method: str, body: dict[str, Any]) -> Response | None:
        if method == "POST":
            if not self.namespace_exists:
                return _status(404, "NotFound", f'namespaces "{REF.namespace}" not found')
            return _status(409, "AlreadyExists", "it is there") if self.lease is not None else None
        if self.lease is None:
            return _status(404, "NotFound", f'leases "{REF.name}" not found')
        stale = method == "PUT" and _version(body) != _version(self.lease)
        return _status(409, "Conflict", "the object has been modified") if stale else None


def _version(lease: Mapping[str, Any]) -> str:
    return str(lease["metadata"]["resourceVersion"])


def _status(code: int, reason: str, message: str) -> Response:
    body = {"kind": "Status", "code": code, "reason": reason, "message": message}
    return Response(code, {"content-type": "application/json"}, json.dumps(body).encode())


def candidate(
    server: FakeLeaseServer,
    identity: str,
    *,
    clock: LoopClock | None = None,
    metrics: Counted | None = None,
    jitter: Callable[[], float] = lambda: 0.5,
) -> LeaderElector:
    """One more candidate for the same Lease."""
    return LeaderElector(
        Client(server),
        lease=REF,
        identity=identity,
        manager="test",
        metrics=metrics or Counted(),
        clock=clock or LoopClock(),
        jitter=jitter,
    )


@asynccontextmanager
async def running(elector: LeaderElector) -> AsyncIterator[asyncio.Task[None]]:
    """Run an elector in a task that is cancelled at the end."""
    task = asyncio.create_task(elector.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def held(holder: str, *, duration: int = 15, renewed: str = "2020-01-01T00:00:00.000000Z") -> dict[str, Any]:
    """The spec of a Lease that somebody holds; renewTime long ago, for nobody may look at it."""
    return LeaseRecord(holder, duration, renewed, renewed, transitions=3).spec()


def now() -> float:
    """The loop's time."""
    return asyncio.get_running_loop().time()
