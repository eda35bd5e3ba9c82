"""Control planes for tests, made by the same code as `make up` (hack.cluster)."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hack.cluster.cache import Cache, default_root
from hack.cluster.controlplane import ControlPlane
from hack.cluster.fakenode import FakeNode
from hack.cluster.layout import Layout
from hack.cluster.process import PidFile
from hack.cluster.programs import BY_NAME
from hack.cluster.sources import KWOK_STAGES
from test.support.cluster import Cluster
from test.support.crds import gateway_crds, install, keda_crds, our_crds


@dataclass(frozen=True)
class Running:
    """A control plane and the way tests see it."""

    processes: ControlPlane
    cluster: Cluster


@contextlib.contextmanager
def plain_control_plane(folder: Path) -> Iterator[Running]:
    """Etcd and kube-apiserver with our CRDs."""
    with ControlPlane(folder) as processes:
        running = Running(processes, _cluster(processes))
        install(running.cluster, our_crds())
        yield running


@contextlib.contextmanager
def full_control_plane(folder: Path) -> Iterator[Running]:
    """The same with everything that makes pods "run", on KWOK's node, and the CRDs of the optional APIs."""
    with ControlPlane(folder, controller_manager=True, scheduler=True) as processes, _fake_node(processes):
        running = Running(processes, _cluster(processes))
        install(running.cluster, our_crds() + keda_crds() + gateway_crds())
        yield running


@contextlib.contextmanager
def _fake_node(processes: ControlPlane) -> Iterator[None]:
    layout = Layout(processes.directory, processes.directory)
    kwok = {"kwok": processes.binaries.get(BY_NAME["kwok"])}
    FakeNode(layout, processes, kwok, KWOK_STAGES.folder(Cache(default_root()))).start()
    try:
        yield
    finally:
        PidFile(layout.run / "kwok.pid").stop(grace=5.0)


def _cluster(processes: ControlPlane) -> Cluster:
    return Cluster(processes.kubeconfig, processes.kubectl_binary, processes.audit_log)
