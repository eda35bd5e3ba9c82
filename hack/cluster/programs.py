"""The table of programs: which pinned Go module each is built from, and how its version is recognised.

Versions are pinned by the go.mod and go.sum beside this file (`mods/`); the numbers here must agree with
them, which a test checks.
"""

from dataclasses import dataclass
from pathlib import Path

MODS = Path(__file__).parent / "mods"

KUBERNETES = "v1.36.3"
ETCD = "v3.6.16"
CONTAINERD = "v2.3.7"
COREDNS = "v1.14.7"
KWOK = "v0.8.0"
CONTOUR = "v1.33.8"
KEDA = "v2.21.0"
GATEWAY_API = "v1.6.1"

_STRIP = "-s -w"
# Without these the API server reports v0.0.0-master and clients refuse or misread it.
_KUBERNETES_FLAGS = (
    f"{_STRIP} -X k8s.io/component-base/version.gitVersion={KUBERNETES}"
    " -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36"
    f" -X k8s.io/client-go/pkg/version.gitVersion={KUBERNETES}"
)
_CONTAINERD_FLAGS = f"{_STRIP} -X github.com/containerd/containerd/v2/version.Version={CONTAINERD}"


@dataclass(frozen=True)
class Program:
    """One executable."""

    name: str
    module: str
    """Folder below `mods`."""
    package: str
    version: str
    seconds: int
    """Cold build on two busy cores, in the order of `ALL` (a later program finds shared packages built)."""
    ldflags: str = _STRIP
    probe: tuple[str, ...] = ()
    """Arguments that print the version; empty: such a binary is never taken from PATH."""

    @property
    def minor(self) -> str:
        """What the printed version must start with: any patch release of the same minor will do."""
        return self.version.rpartition(".")[0] + "."


def _kubernetes(name: str, seconds: int, *probe: str) -> Program:
    package = f"k8s.io/kubernetes/cmd/{name}"
    return Program(name, "k8s", package, KUBERNETES, seconds, _KUBERNETES_FLAGS, probe or ("--version",))


def _containerd(name: str, seconds: int) -> Program:
    package = f"github.com/containerd/containerd/v2/cmd/{name}"
    return Program(name, "containerd", package, CONTAINERD, seconds, _CONTAINERD_FLAGS)


def _keda(name: str, command: str, seconds: int) -> Program:
    return Program(name, "keda", f"github.com/kedacore/keda/v2/cmd/{command}", KEDA, seconds)


ALL = (
    Program("etcd", "etcd", "go.etcd.io/etcd/server/v3", ETCD, 105, probe=("--version",)),
    _kubernetes("kube-apiserver", 325),
    _kubernetes("kubectl", 35, "version", "--client"),
    _kubernetes("kube-controller-manager", 70),
    _kubernetes("kube-scheduler", 15),
    Program("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok", KWOK, 135, probe=("--version",)),
    _containerd("containerd", 75),
    _containerd("containerd-shim-runc-v2", 10),
    _containerd("ctr", 10),
    _kubernetes("kubelet", 25),
    _kubernetes("kube-proxy", 15),
    Program("agnhost", "k8s", "k8s.io/kubernetes/test/images/agnhost", KUBERNETES, 15, _KUBERNETES_FLAGS),
    Program("pause", "pause", ".", "v1.0.0", 2),
    Program("coredns", "coredns", ".", COREDNS, 35),
    Program("contour", "contour", "github.com/projectcontour/contour/cmd/contour", CONTOUR, 150),
    _keda("keda-operator", "operator", 500),
    _keda("keda-adapter", "adapter", 90),
)
BY_NAME = {program.name: program for program in ALL}
