"""KEDA's operator and metrics adapter as host processes, under KEDA's own RBAC.

The operator takes a Deployment 0 -> 1, the adapter serves the external metrics by which the HPA takes it
1 -> N. The operator exits without certificates, so it gets one of the cluster's authority.
"""

import base64
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hack.cluster import ports
from hack.cluster.controlplane import LOOPBACK, ControlPlane
from hack.cluster.crds import install
from hack.cluster.errors import ClusterError
from hack.cluster.layout import Layout
from hack.cluster.process import PidFile, Process, wait_until

NAMESPACE = "keda"
SERVICE = "keda-metrics-apiserver"
METRICS_API = "v1beta1.external.metrics.k8s.io"
READY_SECONDS = 90.0
MANIFEST = Path(__file__).parent / "manifests" / "keda.yaml"
_RBAC = (
    "rbac/role.yaml",
    "rbac/role_binding.yaml",
    "rbac/aggregate_cluster_roles.yaml",
    "metrics-server/role.yaml",
    "metrics-server/role_binding.yaml",
)
_PORTS = ("operator-metrics", "operator-health", "operator-grpc", "adapter", "adapter-metrics")


@dataclass(frozen=True)
class Keda:
    """KEDA of one instance."""

    layout: Layout
    control: ControlPlane
    programs: Mapping[str, Path]
    """keda-operator, keda-adapter."""
    sources: Path
    """Folder of `sources.KEDA_MANIFESTS`."""

    def start(self) -> None:
        """Install the CRDs, start both processes unless they run, and wait for the metrics API."""
        config = self.sources / "config"
        install(self.control, "keda", config / "crd" / "bases")
        self.control.apply(MANIFEST, *(config / part for part in _RBAC))
        running = any(
            PidFile(self.layout.run / f"{name}.pid").alive for name in ("keda-operator", "keda-adapter")
        )
        file = self.layout.conf / "keda-ports.json"
        port = ports.reserve(file, _PORTS, running=running)
        certificates = self._certificates()
        kubeconfig = self.control.directory / "conf" / f"sa-{NAMESPACE}-keda-operator.kubeconfig"
        if not running:
            kubeconfig = self.control.kubeconfig_for_service_account(NAMESPACE, "keda-operator")
        operator = self._operator(port, certificates, kubeconfig)
        adapter = self._adapter(port, certificates, kubeconfig)
        operator.start()
        adapter.start()
        self.control.apply(stdin=json.dumps(self._api_service(port["adapter"])))
        wait_until(
            "the external metrics API", self._served, seconds=READY_SECONDS, processes=[operator, adapter]
        )

    def _operator(self, port: Mapping[str, int], certificates: Path, kubeconfig: Path) -> Process:
        command = [
            str(self.programs["keda-operator"]),
            f"--cert-dir={certificates}",
            f"--metrics-bind-address={LOOPBACK}:{port['operator-metrics']}",
            f"--health-probe-bind-address={LOOPBACK}:{port['operator-health']}",
            f"--metrics-service-bind-address={LOOPBACK}:{port['operator-grpc']}",
            "--zap-log-level=info",
        ]
        return self._process("keda-operator", command, kubeconfig)

    def _adapter(self, port: Mapping[str, int], certificates: Path, kubeconfig: Path) -> Process:
        command = [
            str(self.programs["keda-adapter"]),
            f"--secure-port={port['adapter']}",
            f"--bind-address={LOOPBACK}",
            f"--tls-cert-file={certificates / 'tls.crt'}",
            f"--tls-private-key-file={certificates / 'tls.key'}",
            f"--client-ca-file={certificates / 'ca.crt'}",
            f"--cert-dir={certificates}",
            f"--metrics-service-address=localhost:{port['operator-grpc']}",
            f"--port={port['adapter-metrics']}",
            f"--lister-kubeconfig={kubeconfig}",
            f"--authentication-kubeconfig={kubeconfig}",
            f"--authorization-kubeconfig={kubeconfig}",
        ]
        return self._process("keda-adapter", command, kubeconfig)

    def _process(self, name: str, command: list[str], kubeconfig: Path) -> Process:
        environment = {
            "KUBECONFIG": str(kubeconfig),
            "WATCH_NAMESPACE": "",
            "KEDA_CLUSTER_OBJECT_NAMESPACE": NAMESPACE,
            "POD_NAMESPACE": NAMESPACE,
        }
        return Process(name, command, self.layout.run, self.layout.log(name), environment)

    def _certificates(self) -> Path:
        """A folder with the three file names KEDA looks for."""
        folder = self.layout.conf / "keda"
        folder.mkdir(parents=True, exist_ok=True)
        names = ("localhost", LOOPBACK, f"{SERVICE}.{NAMESPACE}.svc", f"keda-operator.{NAMESPACE}.svc")
        pair = self.control.authority.peer("keda", "keda-operator", names)
        for source, target in (
            (pair.certificate, "tls.crt"),
            (pair.key, "tls.key"),
            (self.control.authority.pair.certificate, "ca.crt"),
        ):
            if not (folder / target).exists():  # the operator watches them and reloads
                shutil.copy(source, folder / target)
        return folder

    def _api_service(self, port: int) -> dict[str, object]:
        authority = self.control.authority.pair.certificate.read_bytes()
        group, version = METRICS_API.partition(".")[2], METRICS_API.partition(".")[0]
        return {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": METRICS_API},
            "spec": {
                "service": {"name": SERVICE, "namespace": NAMESPACE, "port": port},
                "group": group,
                "version": version,
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "caBundle": base64.b64encode(authority).decode(),
            },
        }

    def _served(self) -> bool:
        try:
            self.control.kubectl("get", "--raw", "/apis/external.metrics.k8s.io/v1beta1")
        except ClusterError:
            return False
        return True
