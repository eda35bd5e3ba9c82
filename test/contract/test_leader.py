"""The election against a real API server, between real processes that are killed, frozen and cut off.

Every candidate writes without preconditions while it leads (test/support/candidate.py), so that the audit log
shows whether the fence alone keeps a former leader from writing.
"""

import asyncio
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from modelfleet.kube.auth import load_access
from modelfleet.kube.client import Client
from modelfleet.kube.transport import AiohttpTransport
from modelfleet.runtime.leader import LeaderElector
from modelfleet.runtime.process import Exit
from test.support.audit import AuditLog, Entry, Mark
from test.support.candidate import LEASE_NAME, TIMES, WITNESS, elector_of
from test.support.cluster import Cluster
from test.support.kinds import CONFIG_MAP, LEASE
from test.support.proxy import FaultProxy
from test.support.waiting import holds_for, wait_for
from test.support.world import World

pytestmark = [pytest.mark.contract, pytest.mark.timeout(120)]

MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
TAKEOVER_SECONDS = 30.0
"""The lease takes 3 s; the rest is for a busy machine."""


class Candidates:
    """Processes that stand for election in one namespace."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        assert cluster.audit_log is not None
        self.audit = AuditLog(cluster.audit_log)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self._kubeconfig = cluster.kubeconfig
        self._namespace = namespace
        self._mark = self.audit.mark()

    def start(self, name: str, kubeconfig: Path | None = None) -> str:
        """Start one; its identity is unlike that of any other test."""
        identity = f"{name}-{self._namespace}"
        arguments = [str(kubeconfig or self._kubeconfig), self._namespace, identity]
        self.processes[identity] = subprocess.Popen(
            [sys.executable, "-m", "test.support.candidate", *arguments],
            cwd=Path(__file__).parents[2],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        return identity

    def signal(self, identity: str, number: signal.Signals) -> None:
        """Send one of them a signal."""
        self.processes[identity].send_signal(number)

    async def exit_code(self, identity: str) -> int:
        """Wait for the end of one."""
        process = self.processes[identity]
        await wait_for(lambda: process.poll() is not None, TAKEOVER_SECONDS, f"{identity} ends")
        assert process.returncode is not None
        return process.returncode

    def writes(self, identity: str, mark: Mark | None = None) -> list[Entry]:
        """Writes to the witness that took effect."""
        entries = self.audit.since(mark or self._mark)
        return [e for e in entries if e.agent == identity and e.name == WITNESS and e.writes and e.succeeded]

    async def leads(self, identity: str) -> None:
        """Wait until one of them writes."""
        await wait_for(lambda: self.writes(identity), TAKEOVER_SECONDS, f"{identity} writes")

    def end(self) -> None:
        """Leave nothing behind."""
        for process in self.processes.values():
            process.kill()
            process.wait()


@pytest.fixture
async def candidates(cluster: Cluster, api: World, namespace: str) -> AsyncIterator[Candidates]:
    """Candidates of this test's namespace, with the object they write to."""
    await api.create(CONFIG_MAP, {"metadata": {"name": WITNESS, "namespace": namespace}})
    running = Candidates(cluster, namespace)
    yield running
    running.end()


@asynccontextmanager
async def in_this_process(cluster: Cluster, namespace: str) -> AsyncIterator[LeaderElector]:
    """A candidate whose record the test looks at; cancelled at the end, not released."""
    transport = AiohttpTransport(await load_access(str(cluster.kubeconfig)))
    elector = elector_of(Client(transport), namespace, "here_1")
    task = asyncio.create_task(elector.run())
    try:
        yield elector
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await transport.close()


async def spec_of(api: World, namespace: str) -> dict[str, Any]:
    """The record as the server stores it."""
    found = await api.find(LEASE, namespace, LEASE_NAME)
    return dict(found["spec"]) if found else {}


async def test_the_record(cluster: Cluster, api: World, namespace: str) -> None:
    """The server stores what client-go's electors read: five fields, MicroTimes, renewals in place."""
    async with in_this_process(cluster, namespace) as elector:
        await elector.acquired.wait()
        first = await spec_of(api, namespace)

        assert {"holderIdentity": "here_1", "leaseDurationSeconds": 3, "leaseTransitions": 0} == {
            key: value for key, value in first.items() if not key.endswith("Time")
        }
        assert MICRO_TIME.fullmatch(first["acquireTime"])
        assert MICRO_TIME.fullmatch(first["renewTime"])

        async def renewed() -> bool:
            now = await spec_of(api, namespace)
            assert first["acquireTime"] == now["acquireTime"]
            return bool(now["renewTime"] > first["renewTime"])

        await wait_for(renewed)


async def test_a_release_is_accepted(cluster: Cluster, api: World, namespace: str) -> None:
    """The server takes the released record, and whoever stands next leads at once, one transition later."""
    async with in_this_process(cluster, namespace) as elector:
        await elector.acquired.wait()
    await release(cluster, namespace)
    released = await spec_of(api, namespace)
    async with in_this_process(cluster, namespace) as elector:
        await asyncio.wait_for(elector.acquired.wait(), TAKEOVER_SECONDS)
        taken = await spec_of(api, namespace)

    assert ("", 1, 0) == (
        released.get("holderIdentity", ""),
        released["leaseDurationSeconds"],
        released["leaseTransitions"],
    )
    assert ("here_1", 1) == (taken["holderIdentity"], taken["leaseTransitions"])


async def release(cluster: Cluster, namespace: str) -> None:
    """Release as a process that ends does."""
    transport = AiohttpTransport(await load_access(str(cluster.kubeconfig)))
    await elector_of(Client(transport), namespace, "here_1").release()
    await transport.close()


async def test_a_killed_leader_is_replaced(api: World, candidates: Candidates, namespace: str) -> None:
    """Without a release the record keeps its holder until it has not changed for its duration."""
    first = candidates.start("first")
    await candidates.leads(first)
    second = candidates.start("second")
    await holds_for(lambda: not candidates.writes(second), TIMES.duration + 1.0, "a standby does not write")
    candidates.signal(first, signal.SIGKILL)
    await candidates.leads(second)

    record = await spec_of(api, namespace)
    assert (second, 1) == (record["holderIdentity"], record["leaseTransitions"])
    assert [] == late(candidates, first, second)


async def test_a_leader_that_is_told_to_stop_releases(candidates: Candidates) -> None:
    """SIGTERM: exit code 0, and not one write of the former leader after the successor's first."""
    first = candidates.start("first")
    await candidates.leads(first)
    second = candidates.start("second")
    candidates.signal(first, signal.SIGTERM)
    await candidates.leads(second)

    assert Exit.CLEAN == await candidates.exit_code(first)
    assert [] == late(candidates, first, second)


async def test_a_frozen_leader_wakes_up_fenced(candidates: Candidates) -> None:
    """Frozen past its term and thawed, a leader exits with 3 and does not get one more write out."""
    first = candidates.start("first")
    await candidates.leads(first)
    second = candidates.start("second")
    candidates.signal(first, signal.SIGSTOP)
    await candidates.leads(second)
    thawed = candidates.audit.mark()
    candidates.signal(first, signal.SIGCONT)

    assert Exit.LEADER_LOST == await candidates.exit_code(first)
    assert [] == candidates.writes(first, thawed)
    assert [] == late(candidates, first, second)


async def test_a_short_freeze_costs_nothing(candidates: Candidates) -> None:
    """Frozen for less than its term, a leader goes on as if nothing had happened."""
    first = candidates.start("first")
    await candidates.leads(first)
    candidates.signal(first, signal.SIGSTOP)
    await asyncio.get_running_loop().run_in_executor(None, stopped, candidates.processes[first].pid)
    candidates.signal(first, signal.SIGCONT)
    mark = candidates.audit.mark()
    await wait_for(lambda: candidates.writes(first, mark), TAKEOVER_SECONDS)

    assert candidates.processes[first].poll() is None


async def test_a_leader_that_is_cut_off_exits(
    cluster: Cluster, candidates: Candidates, namespace: str
) -> None:
    """Only the leader loses the API server: it exits with 3 at its deadline, the other takes over."""
    account = f"--serviceaccount={namespace}:default"
    cluster.kubectl(
        "create", "rolebinding", "candidate", "--clusterrole=cluster-admin", account, "-n", namespace
    )
    async with FaultProxy(cluster.server, cluster.ca) as proxy:
        token = cluster.token(namespace, "default")
        way = cluster.kubeconfig_for(token, server=proxy.url, ca=proxy.ca, name=f"{namespace}-cut")
        first = candidates.start("first", way)
        await candidates.leads(first)
        second = candidates.start("second")
        proxy.pause()

        assert Exit.LEADER_LOST == await candidates.exit_code(first)
        await candidates.leads(second)
        proxy.resume()
    assert [] == late(candidates, first, second)


def stopped(pid: int) -> None:
    """Return when the kernel says that the process is stopped."""
    while ") T " not in Path(f"/proc/{pid}/stat").read_text():
        pass


def late(candidates: Candidates, former: str, successor: str) -> list[Entry]:
    """Writes of the former leader that took effect after the successor's first one."""
    first = min(entry.received for entry in candidates.writes(successor))
    return [entry for entry in candidates.writes(former) if entry.finished > first]


async def test_a_missing_namespace_ends_nobody(cluster: Cluster, api: World) -> None:
    """A candidate for a Lease in a namespace that does not exist waits until somebody creates it."""
    namespace = "not-there-yet"
    async with in_this_process(cluster, namespace) as elector:
        await holds_for(lambda: not elector.acquired.is_set(), 2.0)
        cluster.kubectl("create", "namespace", namespace)
        try:
            await asyncio.wait_for(elector.acquired.wait(), TAKEOVER_SECONDS)
            assert "here_1" == (await spec_of(api, namespace))["holderIdentity"]
        finally:
            cluster.kubectl("delete", "namespace", namespace, "--wait=false")
