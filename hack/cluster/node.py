"""A real node: containerd, kubelet, kube-proxy and CoreDNS as root on this Linux host.

`start` may be repeated: it starts what is missing. `stop` ends pods, processes and mounts; what the node
changed on the host is put back by `hack.cluster.host`.
"""

import datetime as dt
import functools
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hack.cluster import kubeconfig, mounts, nodeconfig, shims
from hack.cluster.controlplane import ControlPlane
from hack.cluster.debian import Packages
from hack.cluster.errors import ClusterError
from hack.cluster.files import put
from hack.cluster.host import NODE_ADDRESS
from hack.cluster.layout import Layout
from hack.cluster.process import PidFile, Process, wait_until

NAME = "modelfleet"
NAMESPACE = "k8s.io"
"""containerd's namespace of everything the kubelet runs."""
READY_SECONDS = 120.0
"""8-15 s were measured from nothing to Ready; builds in the background stretch that."""
KUBELET_GRACE = 5.0
CONTAINERD_GRACE = 10.0
PODS_END_SECONDS = 20.0
"""After SIGKILL; containerd cleans up one pod in about 0.1 s."""
DAEMONS = ("kubelet", "kube-proxy", "coredns")


@dataclass(frozen=True)
class Node:
    """The node of one instance."""

    layout: Layout
    control: ControlPlane
    packages: Packages
    programs: Mapping[str, Path]
    """containerd, containerd-shim-runc-v2, ctr, kubelet, kube-proxy, coredns."""

    def start(self, images: tuple[Path, ...]) -> None:
        """Start what does not run, import images, wait until the node is Ready and its daemons answer."""
        started = dt.datetime.now(dt.UTC).replace(microsecond=0)
        self._write_cni()
        containerd = self._containerd()
        containerd.start()
        wait_until(
            "containerd", lambda: self._answers("version"), seconds=READY_SECONDS, processes=[containerd]
        )
        for archive in images:
            self._import(archive)
        daemons = [self._kubelet(), self._kube_proxy(), self._coredns()]
        fresh = sum(daemon.start() for daemon in daemons) > 0
        since = started if fresh else dt.datetime.fromtimestamp(0, dt.UTC)
        wait_until(f"node {NAME}", lambda: self._ready(since), seconds=READY_SECONDS, processes=daemons)

    def stop(self) -> None:
        """End the node: daemons first, so that nothing starts pods again, then pods and containerd."""
        for name in DAEMONS:
            PidFile(self.layout.run / f"{name}.pid").stop(KUBELET_GRACE)
        if not self.layout.runtime.exists():
            return
        containerd = self._containerd()
        containerd.start()  # pods outlive a containerd that crashed; only it knows how to end them
        self._await(containerd)
        for task in self._tasks():
            self._answers("tasks", "kill", "--signal", "SIGKILL", "--all", task)  # an ended one is no failure
        wait_until("the end of all pods", lambda: not self._delete_tasks(), seconds=PODS_END_SECONDS)
        containerd.stop(CONTAINERD_GRACE)
        for shim in shims.of(self.layout.containerd_socket):
            shim.stop(grace=0)
        mounts.unmount_below(self.layout.runtime)
        shutil.rmtree(self.layout.runtime)

    def ctr(self, *args: str) -> str:
        """Run containerd's own client. Raises `ClusterError`."""
        command = [
            str(self.programs["ctr"]),
            "-a",
            str(self.layout.containerd_socket),
            "-n",
            NAMESPACE,
            *args,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ClusterError(f"ctr {' '.join(args)}: {done.stderr.strip()}")
        return done.stdout

    def _await(self, containerd: Process) -> None:
        wait_until(
            "containerd", lambda: self._answers("version"), seconds=READY_SECONDS, processes=[containerd]
        )

    def _tasks(self) -> list[str]:
        return self.ctr("tasks", "ls", "-q").split()

    def _delete_tasks(self) -> list[str]:
        """Delete what has ended, racing containerd's own cleaning; gives back what is left."""
        for task in self._tasks():
            self._answers("tasks", "delete", "--force", task)
        return self._tasks()

    def _import(self, archive: Path) -> None:
        stamp = self.layout.runtime / "imported" / archive.parent.name / archive.name
        if not stamp.exists():
            self.ctr("images", "import", "--snapshotter", "overlayfs", str(archive))
            stamp.parent.mkdir(parents=True, exist_ok=True)
            stamp.touch()

    def _answers(self, *args: str) -> bool:
        try:
            self.ctr(*args)
        except ClusterError:
            return False
        return True

    def _ready(self, since: dt.datetime) -> bool:
        """True once the kubelet itself said so after `since`: an old Node may still read Ready."""
        try:
            node = json.loads(self.control.kubectl("get", "node", NAME, "-o", "json"))
        except ClusterError:
            return False
        return any(
            condition["type"] == "Ready"
            and condition["status"] == "True"
            and dt.datetime.fromisoformat(condition["lastHeartbeatTime"]) >= since
            for condition in node["status"].get("conditions", [])
        )

    def _write_cni(self) -> None:
        put(self.layout.conf / "cni" / "10-modelfleet.conflist", nodeconfig.cni(self.layout))
        put(self.layout.conf / "certs.d" / "_default" / "hosts.toml", nodeconfig.UNREACHABLE)

    def _containerd(self) -> Process:
        text = nodeconfig.containerd(self.layout, self.packages)
        return self._process("containerd", "--config", str(put(self.layout.conf / "containerd.toml", text)))

    def _kubelet(self) -> Process:
        authority, user = self.control.authority, f"system:node:{NAME}"
        serving = authority.server("kubelet-serving", user, (NAME, NODE_ADDRESS), ("system:nodes",))
        text = nodeconfig.kubelet(
            self.layout,
            authority=authority.pair.certificate,
            certificate=serving.certificate,
            key=serving.key,
        )
        root = self.layout.runtime / "kubelet"
        return self._process(
            "kubelet",
            f"--config={put(self.layout.conf / 'kubelet.yaml', text)}",
            f"--kubeconfig={self._kubeconfig('kubelet', user, 'system:nodes')}",
            f"--hostname-override={NAME}",
            f"--node-ip={NODE_ADDRESS}",
            f"--root-dir={root}",
            f"--cert-dir={root}/pki",
        )

    def _kube_proxy(self) -> Process:
        text = nodeconfig.kube_proxy(self._kubeconfig("kube-proxy", "system:kube-proxy"), NAME)
        return self._process("kube-proxy", f"--config={put(self.layout.conf / 'kube-proxy.yaml', text)}")

    def _coredns(self) -> Process:
        text = nodeconfig.corefile(self._kubeconfig("coredns", "coredns", "system:masters"))
        return self._process("coredns", "-conf", str(put(self.layout.conf / "Corefile", text)))

    def _kubeconfig(self, stem: str, user: str, *groups: str) -> Path:
        pair = self.control.authority.client(stem, user, groups)
        authority = self.control.authority.pair.certificate
        return kubeconfig.for_certificate(
            self.layout.conf / f"{stem}.kubeconfig", self.control.server, authority, pair
        )

    def _process(self, name: str, *args: str) -> Process:
        return Process(
            name, [str(self.programs[name]), *args], self.layout.run, self.layout.log(name), self._environment
        )

    @functools.cached_property
    def _environment(self) -> dict[str, str]:
        """Where containerd finds its shim kube-proxy nft, runc its libraries."""
        own = self.packages.environment
        return own | {"PATH": f"{self.programs['containerd-shim-runc-v2'].parent}{os.pathsep}{own['PATH']}"}
