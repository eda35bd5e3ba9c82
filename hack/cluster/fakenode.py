"""KWOK: nodes and pods that exist in the API only. It needs no rights on the host."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hack.cluster.controlplane import ControlPlane
from hack.cluster.layout import Layout
from hack.cluster.process import Process, wait_until

NAME = "fake"
READY_SECONDS = 60.0
MANIFEST = Path(__file__).parent / "manifests" / "fake-node.yaml"
# Without stages KWOK exits; these make pods Ready at once and keep the node's lease fresh.
_STAGES = ("pod/fast", "node/fast", "node/heartbeat-with-lease")
POD_CIDR = "198.18.0.0/15"
"""RFC 2544, section C.2.2: for benchmarks, routed nowhere. KWOK's default 10.0.0.0/24 is a real network in
many places, and the gateway would send a model's requests to whoever has those addresses there."""
_LEASE_SECONDS = 40
"""The controller-manager's own grace period: with a longer lease pods turn NotReady."""


@dataclass(frozen=True)
class FakeNode:
    """One fake node of an instance."""

    layout: Layout
    control: ControlPlane
    programs: Mapping[str, Path]
    """kwok."""
    sources: Path
    """Folder of `sources.KWOK_STAGES`."""

    def start(self) -> None:
        """Start KWOK unless it runs, and wait until the node is Ready."""
        folders = [self.sources / "kustomize" / "stage" / stage for stage in _STAGES]
        stages = [
            path
            for folder in folders
            for path in sorted(folder.glob("*.yaml"))
            if path.stem != "kustomization"
        ]
        command = [
            str(self.programs["kwok"]),
            f"--kubeconfig={self.control.kubeconfig}",
            "--manage-all-nodes=true",
            f"--cidr={POD_CIDR}",
            f"--node-lease-duration-seconds={_LEASE_SECONDS}",
            *(f"--config={stage}" for stage in stages),
        ]
        self.control.apply(MANIFEST)
        process = Process("kwok", command, self.layout.run, self.layout.log("kwok"))
        process.start()
        wait_until(f"node {NAME}", self._ready, seconds=READY_SECONDS, processes=[process])

    def _ready(self) -> bool:
        jsonpath = 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'
        return self.control.kubectl("get", "node", NAME, "-o", jsonpath) == "True"
