"""Gateway API with a real controller (Contour) and a real data plane (Envoy), both unmodified.

Contour 1.33 speaks Gateway API 1.3; on the 1.6 CRDs the kinds it does not know are switched off. It serves
one Gateway, named in its configuration, and leaves GatewayClass at Accepted=Unknown in that mode.
"""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from hack.cluster import ports
from hack.cluster.controlplane import LOOPBACK, ControlPlane
from hack.cluster.crds import install
from hack.cluster.errors import HostError, StartError
from hack.cluster.files import put
from hack.cluster.layout import Layout, check_socket
from hack.cluster.probe import answers
from hack.cluster.process import PidFile, Process, wait_until

PORT = 8080
"""Where Contour serves listener port 80."""
READY_SECONDS = 60.0
MANIFEST = Path(__file__).parent / "manifests" / "gateway.yaml"
_UNKNOWN_KINDS = ("tlsroutes", "tcproutes", "backendtlspolicies", "extensionservices")
_PORTS = ("contour-xds", "contour-http", "contour-health", "contour-debug", "envoy-stats", "envoy-admin")


@dataclass(frozen=True)
class Gateway:
    """The gateway of one instance."""

    layout: Layout
    control: ControlPlane
    programs: Mapping[str, Path]
    """contour, envoy."""
    contour_sources: Path
    api_sources: Path
    """Folders of manifests: `sources.CONTOUR_CRDS` and `sources.GATEWAY_CRDS`."""

    def install_api(self) -> None:
        """Apply the CustomResourceDefinitions, of the standard channel."""
        crds = self.api_sources / "config" / "crd" / "standard"
        install(self.control, "gateway", crds, self.contour_sources / "examples" / "contour" / "01-crds.yaml")

    def start(self) -> None:
        """Start Contour and Envoy unless they run, and wait until the Gateway is Programmed."""
        self.control.apply(MANIFEST)
        if not PidFile(self.layout.run / "envoy.pid").alive and not ports.is_free(PORT):
            raise HostError(
                f"port {PORT}, where the gateway answers, is taken by another process: stop that first"
            )
        contour = self._contour()
        envoy = self._envoy()
        running = [contour, envoy]
        wait_until(
            "Gateway shared to be Programmed", self._programmed, seconds=READY_SECONDS, processes=running
        )
        stats = ports.recorded(self._ports_file)["envoy-stats"]  # a listener that Envoy has from Contour
        wait_until("Envoy", lambda: answers(stats, "/ready"), seconds=READY_SECONDS, processes=running)

    def _contour(self) -> Process:
        running = PidFile(self.layout.run / "contour.pid").alive
        port = ports.reserve(self._ports_file, _PORTS, running=running)
        configuration = put(self.layout.conf / "contour.yaml", contour_configuration(port["envoy-admin"]))
        command = [
            str(self.programs["contour"]),
            "serve",
            f"--kubeconfig={self.control.kubeconfig}",
            f"--config-path={configuration}",
            "--insecure",  # xDS over loopback without certificates
            "--disable-leader-election",
            *(f"--disable-feature={kind}" for kind in _UNKNOWN_KINDS),
            f"--xds-address={LOOPBACK}",
            f"--xds-port={port['contour-xds']}",
            f"--http-address={LOOPBACK}",
            f"--http-port={port['contour-http']}",
            f"--health-address={LOOPBACK}",
            f"--health-port={port['contour-health']}",
            f"--debug-http-port={port['contour-debug']}",
            f"--envoy-service-http-address={LOOPBACK}",
            f"--envoy-service-https-address={LOOPBACK}",
            f"--stats-address={LOOPBACK}",
            f"--stats-port={port['envoy-stats']}",
        ]
        process = Process("contour", command, self.layout.run, self.layout.log("contour"))
        process.start()
        return process

    def _envoy(self) -> Process:
        bootstrap = self.layout.conf / "envoy.json"
        command = [
            str(self.programs["envoy"]),
            "--use-dynamic-base-id",
            *("--config-path", str(bootstrap)),  # its parser takes no `=`
            *("--service-cluster", "gateway"),
            *("--service-node", "envoy"),
            *("--log-level", "error"),
        ]
        process = Process("envoy", command, self.layout.run, self.layout.log("envoy"))
        if not process.alive:
            self._write_bootstrap(bootstrap)
            process.start()
        return process

    def _write_bootstrap(self, path: Path) -> None:
        socket = self.layout.runtime / "envoy.sock"
        check_socket(socket)
        socket.parent.mkdir(parents=True, exist_ok=True)
        command = [
            str(self.programs["contour"]),
            *("bootstrap", str(path)),
            f"--xds-address={LOOPBACK}",
            f"--xds-port={ports.recorded(self._ports_file)['contour-xds']}",
            "--namespace=gateway",
            f"--admin-address={socket}",
            "--resources-dir=",
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise StartError(f"contour bootstrap: {done.stderr.strip()}")

    def _programmed(self) -> bool:
        jsonpath = 'jsonpath={.status.conditions[?(@.type=="Programmed")].status}'
        return self.control.kubectl("-n", "gateway", "get", "gateway", "shared", "-o", jsonpath) == "True"

    @property
    def _ports_file(self) -> Path:
        return self.layout.conf / "gateway-ports.json"


def contour_configuration(admin_port: int) -> str:
    """Contour's configuration: the one Gateway it serves, and where Envoy shows its state to people."""
    gateway = {"gatewayRef": {"namespace": "gateway", "name": "shared"}}
    return yaml.safe_dump({"gateway": gateway, "network": {"admin-port": admin_port}})
