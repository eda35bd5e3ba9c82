"""One instance from nothing to the sample Ready, in the order of need, and back to nothing.

Each step starts what is missing and leaves alone what runs, so `up` repairs and `up` twice is quick. The
first useful state (API server, controller, the sample's workload) does not wait for gateway and KEDA.
"""

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from hack.cluster import host as hosts
from hack.cluster import images, sources
from hack.cluster.controlplane import LOOPBACK, ControlPlane
from hack.cluster.errors import ClusterError, HostError
from hack.cluster.fakenode import FakeNode
from hack.cluster.files import link
from hack.cluster.fleet import CHILDREN, CORE_KINDS, GRACE_SECONDS, Fleet
from hack.cluster.gateway import PORT, Gateway
from hack.cluster.keda import Keda
from hack.cluster.layout import KUBECTL, Layout, runtime_root
from hack.cluster.node import Node
from hack.cluster.process import PidFile
from hack.cluster.works import Works

CORE = ("etcd", "kube-apiserver", "kubectl", "kube-controller-manager", "kube-scheduler")
REAL_NODE = ("containerd", "containerd-shim-runc-v2", "ctr", "kubelet", "kube-proxy", "coredns")
IMAGE_PROGRAMS = ("agnhost", "pause")
FAKE_NODE = ("kwok",)
GATEWAY = ("contour",)
KEDA = ("keda-operator", "keda-adapter")
PROCESSES = ("controller", "keda-adapter", "keda-operator", "envoy", "contour", "kwok")
"""Everything beside node and control plane, in the order of stopping."""
WORKLOAD_SECONDS = 180.0
READY_SECONDS = 180.0
"""KEDA polls every 30 s by default, and HPA and gateway status follow."""
FAKE_NOTE = """\
Not real without a node: pods are KWOK's, they turn Ready and serve nothing (the gateway answers 503
after 2 s, logs and exec do not exist). API server, controllers, garbage collection, scheduler, KEDA and
Contour are real."""


@dataclass(frozen=True)
class Choice:
    """What kind of cluster."""

    full: bool
    """With gateway and KEDA."""
    fake_because: str = ""
    """Why the node is KWOK's; empty for a real node."""
    fleet: bool = True
    """With Model Fleet's CRDs, controller and sample."""

    @property
    def real_node(self) -> bool:
        """With containerd and kubelet."""
        return not self.fake_because


def real_node_obstacle() -> str:
    """Why there can be no real node, which takes root and Debian's package tools; empty when there can."""
    if sys.platform != "linux":
        return "this is not Linux"
    if os.geteuid() != 0:
        return "this is not root"
    missing = [tool for tool in ("apt-get", "dpkg", "ip") if not shutil.which(tool)]
    return f"PATH has no {' and no '.join(missing)}" if missing else ""


def order(works: Works, choice: Choice) -> None:
    """Ask for all parts of a choice, in the order of need."""
    works.order(*CORE)
    if choice.real_node:
        works.order_packages()
        works.order(*REAL_NODE, *IMAGE_PROGRAMS)
    else:
        works.order(*FAKE_NODE)
        works.order_sources(sources.KWOK_STAGES)
    if choice.full:
        works.order(*GATEWAY)
        works.order_envoy()
        works.order_sources(sources.CONTOUR_CRDS, sources.GATEWAY_CRDS, sources.KEDA_MANIFESTS)
        works.order(*KEDA)


class Cluster:
    """One instance."""

    def __init__(self, layout: Layout, works: Works, say: Callable[[str], None]) -> None:
        self._layout = layout
        self._works = works
        self._say = say
        self._record_file = runtime_root() / "node.json"

    def up(self, choice: Choice, show: Callable[[str], None]) -> None:
        """Start everything; `show` gets tables for people. Raises `ClusterError`."""
        layout, works, say = self._layout, self._works, self._say
        if choice.real_node:
            self._host().claim(layout.state, in_use=_is_running, announce=say)
        elif self._holds_node():
            raise HostError(
                f"this instance has a real node and would get a fake one now, since {choice.fake_because}: "
                "change that, or run `down` before `up`"
            )
        control = self._control(real_node=choice.real_node)
        control.start()
        link(KUBECTL, control.kubectl_binary)
        say(f"API server at {control.server}")
        fleet = Fleet(layout, control)
        if choice.fleet:
            fleet.install()
            fleet.start_controller()
            say(f"controller (log {layout.log('controller')})")
        for name in ("kube-controller-manager", "kube-scheduler"):
            control.start_component(name)
        if choice.fleet:
            fleet.apply_sample()
        self._start_node(choice, control)
        if choice.fleet:
            fleet.wait_for("WorkloadReady", seconds=WORKLOAD_SECONDS)
            say("sample: WorkloadReady")
            if not choice.full or works.progress.current:  # usable now; the rest may take a while
                show(fleet.show(CORE_KINDS))
        if choice.full:
            self._start_gateway(control)
            say(f"gateway at http://{LOOPBACK}:{PORT}")
            programs = works.programs(*KEDA)
            Keda(layout, control, programs, works.sources(sources.KEDA_MANIFESTS)).start()
            say("KEDA: operator and metrics API")
        if choice.fleet and choice.full:
            fleet.wait_ready(seconds=READY_SECONDS)
            say("sample: Ready")
            show(fleet.show(CHILDREN))

    def down(self) -> None:
        """Stop everything this instance started and put the host back; state stays. Raises `ClusterError`."""
        failures: list[Exception] = []

        def attempt(step: Callable[[], None]) -> None:
            try:
                step()
            except (ClusterError, OSError) as error:
                failures.append(error)  # the rest must be stopped all the same

        for name in PROCESSES:
            attempt(partial(PidFile(self._layout.run / f"{name}.pid").stop, GRACE_SECONDS))
        real_node = self._holds_node()
        if real_node:
            attempt(lambda: self._node(self._control(real_node=True)).stop())
        attempt(self._control(real_node=real_node).stop)
        if real_node and not failures:
            attempt(lambda: self._host().restore(self._layout.state))
        if failures:
            raise ClusterError(
                "not everything could be stopped: " + "; ".join(str(failure) for failure in failures)
            )
        shutil.rmtree(self._layout.runtime, ignore_errors=True)
        _remove_if_empty(self._layout.runtime.parent)

    def clean(self) -> None:
        """`down`, and forget all state."""
        self.down()
        shutil.rmtree(self._layout.state, ignore_errors=True)

    def status(self) -> list[tuple[str, bool]]:
        """Every process that was ever started, and whether it runs."""
        files = sorted(self._layout.run.glob("*.pid"))
        return [(file.stem, PidFile(file).alive) for file in files]

    def _start_node(self, choice: Choice, control: ControlPlane) -> None:
        works = self._works
        if choice.real_node:
            own = works.programs(*IMAGE_PROGRAMS)
            busybox = works.packages().busybox
            archives = images.archives(
                works.cache, pause=own["pause"], agnhost=own["agnhost"], busybox=busybox
            )
            self._node(control).start(archives)
            self._say("node modelfleet (containerd, kubelet, kube-proxy, CoreDNS)")
        else:
            stages = works.sources(sources.KWOK_STAGES)
            FakeNode(self._layout, control, works.programs(*FAKE_NODE), stages).start()
            self._say(f"node fake (KWOK, since {choice.fake_because})")

    def _start_gateway(self, control: ControlPlane) -> None:
        works = self._works
        programs = works.programs(*GATEWAY) | {"envoy": works.envoy()}
        contour, api = works.sources(sources.CONTOUR_CRDS), works.sources(sources.GATEWAY_CRDS)
        gateway = Gateway(self._layout, control, programs, contour, api)
        gateway.install_api()
        gateway.start()

    def _control(self, *, real_node: bool) -> ControlPlane:
        address = hosts.NODE_ADDRESS if real_node else LOOPBACK
        return ControlPlane(self._layout.state, address=address, binaries=self._works)

    def _node(self, control: ControlPlane) -> Node:
        return Node(self._layout, control, self._works.packages(), self._works.programs(*REAL_NODE))

    def _host(self) -> hosts.Host:
        return hosts.Host(self._record_file, self._works.packages())

    def _holds_node(self) -> bool:
        record = hosts.read_record(self._record_file)
        return record is not None and Path(record.owner) == self._layout.state


def _is_running(state: Path) -> bool:
    return any(PidFile(file).alive for file in (state / "run").glob("*.pid"))


def _remove_if_empty(folder: Path) -> None:
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
