"""What the real node changes on the host, written down before it is changed and put back afterwards.

Changed: two bridges, kube-proxy's nft tables, two sysctls (kubelet and kube-proxy set some more), the cgroup
`kubepods`, and fixed folders of containerd, CNI and kubelet. The record lies outside any checkout, since
there is one node per machine: it names the owner, the sysctls as they were and the folders that were missing.
"""

import contextlib
import ipaddress
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from hack.cluster.apiserver import SERVICE_CIDR
from hack.cluster.debian import Packages
from hack.cluster.errors import HostError
from hack.cluster.process import wait_until

NODE_ADDRESS = "10.250.0.1"
"""On a bridge of its own, so that nothing listens on the host's real interfaces."""
NODE_BRIDGE = "mfnode0"
POD_BRIDGE = "mfcni0"
POD_CIDR = "10.244.0.0/24"
PROXY_TABLES = (("ip", "kube-proxy"), ("ip6", "kube-proxy"))
ENABLED_SYSCTLS = ("net/ipv4/ip_forward", "net/bridge/bridge-nf-call-iptables")
KUBELET_SYSCTLS = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops")
FIXED_FOLDERS = (
    "/run/containerd",
    "/run/mount",
    "/var/lib/cni",
    "/var/lib/kubelet",
    "/var/log/containers",
    "/var/log/pods",
    "/usr/libexec/kubernetes",
)
"""Compiled into containerd, mount, the host-local CNI plugin and the kubelet."""
CGROUPS = Path("/sys/fs/cgroup")
CGROUP_SECONDS = 10.0
_SYSCTLS = Path("/proc/sys")

ANNOUNCEMENT = f"""\
This starts a real node and changes host networking until `down`:
  bridges {NODE_BRIDGE} ({NODE_ADDRESS}) and {POD_BRIDGE} ({POD_CIDR}), nft tables ip/ip6 kube-proxy,
  sysctls {", ".join(name.replace("/", ".") for name in ENABLED_SYSCTLS)} = 1 (and those the kubelet sets)."""


@dataclass(frozen=True)
class Record:
    """The host before the node."""

    owner: str
    """State folder of the instance that holds the node."""
    sysctls: dict[str, str]
    missing: list[str]
    """Fixed folders that did not exist."""


@dataclass(frozen=True)
class Host:
    """The machine as the node's owner changes it."""

    record_file: Path
    packages: Packages

    def claim(self, owner: Path, *, in_use: Callable[[Path], bool], announce: Callable[[str], None]) -> None:
        """Take the node for an instance and bring up its bridge; calls `announce` before the first change.

        Raises:
            HostError: another instance holds a running node, another kubelet or kube-proxy runs here, or the
                node's addresses are in use.
        """
        record = read_record(self.record_file)
        if record is None:
            self._refuse_strangers()
            refuse_overlap(_ip("-json", "address"))
        elif Path(record.owner) != owner and in_use(Path(record.owner)):
            name = Path(record.owner).name
            raise HostError(
                f"the one real node of this machine belongs to {record.owner}: "
                f"stop it there (`python -m hack.cluster down --name {name}`) or use `--fake-node`"
            )
        if record is None or Path(record.owner) != owner:
            announce(ANNOUNCEMENT)
        before = record.sysctls if record else self._read_sysctls()
        missing = record.missing if record else [path for path in FIXED_FOLDERS if not Path(path).exists()]
        self.record_file.parent.mkdir(parents=True, exist_ok=True)
        self.record_file.write_text(json.dumps(asdict(Record(str(owner), before, missing))))
        if not _link_exists(NODE_BRIDGE):
            _ip("link", "add", NODE_BRIDGE, "type", "bridge")
        _ip("address", "replace", f"{NODE_ADDRESS}/32", "dev", NODE_BRIDGE)
        _ip("link", "set", NODE_BRIDGE, "up")
        for name in ENABLED_SYSCTLS:
            with contextlib.suppress(FileNotFoundError):  # br_netfilter may not be loaded
                (_SYSCTLS / name).write_text("1")

    def restore(self, owner: Path) -> None:
        """Put everything back, if this instance holds the node. Its processes have ended."""
        record = read_record(self.record_file)
        if record is None or Path(record.owner) != owner:
            return
        for bridge in (POD_BRIDGE, NODE_BRIDGE):
            if _link_exists(bridge):
                _ip("link", "delete", bridge)
        tables = self._tables()
        for family, table in PROXY_TABLES:
            if (family, table) in tables:
                self._nft("delete", "table", family, table)
        _empty_cgroups()
        for name, value in record.sysctls.items():
            with contextlib.suppress(FileNotFoundError):
                (_SYSCTLS / name).write_text(value)
        for path in record.missing:
            shutil.rmtree(path, ignore_errors=True)
        self.record_file.unlink()
        with contextlib.suppress(OSError):  # other instances may keep something there
            self.record_file.parent.rmdir()

    def _refuse_strangers(self) -> None:
        if any(table in self._tables() for table in PROXY_TABLES):
            raise HostError(
                "nft already has kube-proxy's tables: another node runs on this machine; use `--fake-node`"
            )
        if any(CGROUPS.glob("*/kubepods")) or any(CGROUPS.glob("kubepods*")):
            raise HostError(
                "a cgroup kubepods exists: another kubelet runs on this machine; use `--fake-node`"
            )

    def _read_sysctls(self) -> dict[str, str]:
        found = {}
        for name in (*ENABLED_SYSCTLS, *KUBELET_SYSCTLS):
            with contextlib.suppress(FileNotFoundError):
                found[name] = (_SYSCTLS / name).read_text().strip()
        return found

    def _tables(self) -> set[tuple[str, str]]:
        lines = self._nft("list", "tables").splitlines()  # each is `table FAMILY NAME`
        return {(family, name) for _, family, name in (line.split() for line in lines)}

    def _nft(self, *args: str) -> str:
        return _run([str(self.packages.nft), *args], self.packages.environment)


def read_record(file: Path) -> Record | None:
    """Who holds the node, and how the host was before; None when nobody does."""
    try:
        return Record(**json.loads(file.read_text()))
    except FileNotFoundError:
        return None


def refuse_overlap(interfaces: str) -> None:
    """Raise `HostError` when an interface, given as `ip -json address` prints it, has an address of ours."""
    networks = [ipaddress.ip_network(network) for network in (f"{NODE_ADDRESS}/32", POD_CIDR, SERVICE_CIDR)]
    for interface in json.loads(interfaces):
        for entry in interface.get("addr_info", []):
            taken = ipaddress.ip_interface(f"{entry['local']}/{entry['prefixlen']}").network
            for network in networks:
                if taken.version == network.version and taken.overlaps(network):
                    raise HostError(
                        f"{interface['ifname']} has {taken}, which overlaps {network} of the real node: "
                        "use `--fake-node` on this machine"
                    )


def _link_exists(name: str) -> bool:
    return (Path("/sys/class/net") / name).exists()


def _ip(*args: str) -> str:
    return _run(["ip", *args], {})


def _run(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise HostError(f"`{' '.join(command)}`: {done.stderr.strip()}")
    return done.stdout


def _empty_cgroups() -> None:
    """Remove the pods' cgroups; what still runs in them lost its shim and belongs to no one else."""
    tops = [*CGROUPS.glob("*/kubepods"), *CGROUPS.glob("kubepods")]
    for file in (procs for top in tops for procs in top.rglob("cgroup.procs")):
        for pid in file.read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
    wait_until("the pods' cgroups to be empty", lambda: _removed(tops), seconds=CGROUP_SECONDS)


def _removed(tops: list[Path]) -> bool:
    for top in tops:
        for folder, _, _ in os.walk(top, topdown=False):
            with contextlib.suppress(OSError):  # a process that is ending keeps its group for a moment
                Path(folder).rmdir()
    return not any(top.exists() for top in tops)
