"""Model Fleet itself on the cluster: CRDs, shipped RBAC, the controller as a host process, the sample.

The controller holds a token of the shipped ServiceAccount and nothing else, so every run also proves that
the shipped RBAC is enough.
"""

import hashlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hack.cluster import ports
from hack.cluster.controlplane import LOOPBACK, ControlPlane
from hack.cluster.crds import install
from hack.cluster.errors import ClusterError
from hack.cluster.files import put
from hack.cluster.layout import REPOSITORY, Layout
from hack.cluster.probe import answers
from hack.cluster.process import PidFile, Process, wait_until

CRDS = REPOSITORY / "manifests" / "crd"
BASE = REPOSITORY / "manifests" / "base"
SAMPLE = REPOSITORY / "samples" / "inference-kind.yaml"
NAMESPACE = "modelfleet-system"
SERVICE_ACCOUNT = "modelfleet-controller"
SAMPLE_NAMESPACE = "models"
CORE_KINDS = "isvc,deploy,service"
CHILDREN = f"{CORE_KINDS},scaledobject,httproute"
READY_SECONDS = 60.0
GRACE_SECONDS = 35.0
"""More than the controller's own `grace_period` of 30 s for running reconciles."""
_RUNS_ELSEWHERE = {"Deployment", "PodDisruptionBudget", "Service"}
"""Kinds of the shipped base that only matter when the controller runs as a pod."""
_CONDITIONS = (
    '{range .items[*].status.conditions[*]}{.type}={.status} {.reason}: {.message}{"\\n"}{end}'  # a line each
)
_PORTS = ("controller-health", "controller-metrics")


@dataclass(frozen=True)
class Fleet:
    """Our part of one instance."""

    layout: Layout
    control: ControlPlane

    def install(self) -> None:
        """Apply the CRDs and what the controller needs: namespace, ServiceAccount, RBAC, policies."""
        install(self.control, "modelfleet", CRDS)
        objects = yaml.safe_load_all(self.control.kubectl("kustomize", str(BASE)))
        self.control.apply(stdin=yaml.safe_dump_all(needed_outside(list(objects))))

    def start_controller(self) -> None:
        """Run the controller of this checkout; one that runs older sources is replaced."""
        digest = sources_digest(REPOSITORY / "modelfleet")
        stamp = self.layout.conf / "controller.digest"
        pid_file = PidFile(self.layout.run / "controller.pid")
        if pid_file.alive and (not stamp.exists() or stamp.read_text() != digest):
            pid_file.stop(GRACE_SECONDS)
        port = ports.reserve(self._ports_file, _PORTS, running=pid_file.alive)
        process = self._process(port)
        if not process.alive:
            self.control.kubeconfig_for_service_account(NAMESPACE, SERVICE_ACCOUNT)
            process.start()
            put(stamp, digest)
        health = port["controller-health"]
        wait_until(
            "the controller", lambda: answers(health, "/readyz"), seconds=READY_SECONDS, processes=[process]
        )

    def apply_sample(self) -> None:
        """Apply the sample that uses every child."""
        self.control.apply(SAMPLE)

    def wait_for(self, condition: str, *, seconds: float) -> None:
        """Wait until the sample has a condition. Raises `ClusterError` with the conditions it has instead."""
        sample = ("isvc", "--all", "-n", SAMPLE_NAMESPACE)
        try:
            self.control.kubectl("wait", f"--for=condition={condition}", f"--timeout={seconds:.0f}s", *sample)
        except ClusterError as error:
            found = self.control.kubectl(
                "get", "isvc", "-n", SAMPLE_NAMESPACE, "-o", f"jsonpath={_CONDITIONS}"
            )
            says = f"see {self.layout.log('controller')}; it says:\n{found or 'nothing'}"
            raise ClusterError(f"the sample is not {condition} after {seconds:.0f} s, {says}") from error

    def wait_ready(self, *, seconds: float) -> None:
        """Wait until the sample is Ready and KEDA has evaluated its trigger. Raises `ClusterError`."""
        self.wait_for("Ready", seconds=seconds)
        scaled = ("scaledobject", "--all", "-n", SAMPLE_NAMESPACE)
        self.control.kubectl("wait", "--for=condition=Active", f"--timeout={seconds:.0f}s", *scaled)
        self.wait_for("Ready", seconds=seconds)  # KEDA takes Active back once after it first set it

    def show(self, kinds: str) -> str:
        """The sample and its children as kubectl prints them."""
        return self.control.kubectl("get", kinds, "-n", SAMPLE_NAMESPACE)

    def _process(self, port: dict[str, int]) -> Process:
        kubeconfig = self.layout.conf / f"sa-{NAMESPACE}-{SERVICE_ACCOUNT}.kubeconfig"
        command = [
            sys.executable,
            *("-m", "modelfleet", "controller"),
            f"--kubeconfig={kubeconfig}",
            f"--health-bind={LOOPBACK}:{port['controller-health']}",
            f"--metrics-bind={LOOPBACK}:{port['controller-metrics']}",
        ]
        environment = {"PYTHONPATH": str(REPOSITORY)}
        return Process("controller", command, self.layout.run, self.layout.log("controller"), environment)

    @property
    def _ports_file(self) -> Path:
        return self.layout.conf / "controller-ports.json"


def needed_outside(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The objects of the shipped base that a controller outside the cluster needs."""
    return [found for found in objects if found["kind"] not in _RUNS_ELSEWHERE]


def sources_digest(package: Path) -> str:
    """Digest of all Python sources below a folder."""
    total = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        total.update(f"{path.relative_to(package)}\0".encode() + path.read_bytes())
    return total.hexdigest()
