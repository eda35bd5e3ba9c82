"""Controllers of one test: under the shipped ServiceAccount, confined to one namespace, gone afterwards.

Each process gets a token of its own, so that the audit log tells two replicas of one account apart.
"""

import base64
import contextlib
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from test.support.audit import AuditLog, Entry, Mark, writes
from test.support.cluster import Cluster
from test.support.controller import Controller
from test.support.kinds import LEASE, path_of
from test.support.proxy import FaultProxy
from test.support.waiting import wait_for

BASE = Path(__file__).parents[2] / "manifests" / "base"
RBAC = BASE / "rbac.yaml"
SYSTEM = "modelfleet-system"
ACCOUNT = "modelfleet-controller"
LEASE_NAME = "modelfleet-controller"
"""The one name the shipped Role lets the controller use."""
USER = f"system:serviceaccount:{SYSTEM}:{ACCOUNT}"
SINGLE: Mapping[str, str | bool] = {"leader_elect": False}
"""One controller for one namespace needs no Lease, and starts 2 s sooner without."""
ELECTED: Mapping[str, str | bool] = {"lease_duration": "3s", "renew_deadline": "2s", "retry_period": "500ms"}
"""Lease times that keep the rule lease > renew > 1.2 x retry and let a failover take seconds."""


def install_shipped(cluster: Cluster) -> None:
    """Apply what ships around the controller: its account, its permissions and the never-adopt policy."""
    for name in ("namespace", "serviceaccount", "rbac", "never-adopt"):
        apply = ("apply", "--server-side", "--force-conflicts", "-f", str(BASE / f"{name}.yaml"))
        cluster.kubectl(*apply)


@dataclass(frozen=True)
class Replica:
    """A controller and the name the audit log knows it by."""

    controller: Controller
    credential: str


class Fleet:
    """Starts controllers and sees to their end."""

    def __init__(self, cluster: Cluster, namespace: str, folder: Path) -> None:
        assert cluster.audit_log is not None
        self.audit = AuditLog(cluster.audit_log)
        self._cluster = cluster
        self._namespace = namespace
        self._folder = folder
        self.replicas: list[Replica] = []

    async def start(
        self,
        name: str = "controller",
        *,
        ready: bool = True,
        proxy: FaultProxy | None = None,
        settings: Mapping[str, str | bool] = SINGLE,
    ) -> Controller:
        """Start one replica, through a proxy where given; `settings` are its flags (see `Controller`)."""
        token = self._cluster.token(SYSTEM, ACCOUNT)
        at = {"server": proxy.url, "ca": proxy.ca} if proxy else {}
        kubeconfig = self._cluster.kubeconfig_for(token, name=f"{self._namespace}-{name}", **at)
        flags = {"namespaces": self._namespace, **settings}
        controller = Controller(kubeconfig, self._folder, flags, name=name)
        self.replicas.append(Replica(controller, credential_of(token)))
        await controller.start(ready=ready)
        return controller

    async def stop(self) -> None:
        """End what runs; a clean end and a log without tracebacks are part of every test's promise."""
        running = [r.controller for r in self.replicas if r.controller.exit_code is None]
        try:
            codes = {controller.name: await controller.stop() for controller in running}
        finally:
            for controller in running:
                if controller.exit_code is None:
                    controller.kill()
        assert dict.fromkeys(codes, 0) == codes, "\n".join(c.tail() for c in running)
        for replica in self.replicas:
            controller = replica.controller
            assert [] == controller.unexpected(), f"traceback in the log of {controller.name}"

    def tail(self) -> str:
        """The end of every replica's log, for failure texts."""
        return "\n".join(f"--- {r.controller.name}\n{r.controller.tail()}" for r in self.replicas)

    def credential(self, controller: Controller) -> str:
        """What the audit log calls this process."""
        return next(r.credential for r in self.replicas if r.controller is controller)

    def seen(self, mark: Mark, controller: Controller | None = None) -> list[Entry]:
        """What the replicas, or one of them, asked of the API server since a mark."""
        wanted = {self.credential(controller)} if controller else {r.credential for r in self.replicas}
        return [entry for entry in self.audit.since(mark) if entry.credential in wanted]

    def writes(self, mark: Mark, controller: Controller | None = None) -> list[Entry]:
        """Changes they asked for, but for the Lease."""
        return writes(self.seen(mark, controller))

    async def until_quiet(self, seconds: float = 2.0, deadline: float = 60.0) -> None:
        """Wait until the replicas have asked for no change for a while."""
        mark, since = self.audit.mark(), time.monotonic()

        def quiet() -> bool:
            nonlocal mark, since
            if self.writes(mark):
                mark, since = self.audit.mark(), time.monotonic()
            return time.monotonic() - since > seconds

        await wait_for(quiet, deadline, lambda: "still writing:\n" + "\n".join(map(str, self.writes(mark))))


def release_lease(cluster: Cluster) -> None:
    """Remove the Lease that a killed controller of an earlier test may still hold."""
    with contextlib.suppress(AssertionError):  # there is none
        cluster.request("DELETE", path_of(LEASE, SYSTEM, LEASE_NAME))


def credential_of(token: str) -> str:
    """The id the audit log gives a service account token: its JWT id."""
    payload = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return f"JTI={claims['jti']}"
