"""Debian packages the node needs, unpacked into the cache: nothing is installed on the host.

apt keeps its lists and downloads in folders of ours, so the host's package state is not touched either; it
checks signatures as always. Versions are those of the host's release.
"""

import os
import platform
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hack.cluster.cache import Cache, digest
from hack.cluster.errors import BuildError

PACKAGES = (
    *("runc", "libseccomp2"),
    "containernetworking-plugins",
    "busybox-static",
    *("nftables", "libnftables1", "libnftnl11", "libmnl0", "libjansson4"),
    *("libedit2", "libbsd0", "libmd0", "libxtables12"),
    *("conntrack", "libnetfilter-conntrack3", "libnfnetlink0"),
)
"""Tools and the libraries they load that a minimal Debian 12 lacks."""
SECONDS = 20
_FOLDERS = ("usr/sbin", "usr/bin", "sbin", "bin")  # where a release keeps a tool differs


@dataclass(frozen=True)
class Packages:
    """The unpacked packages."""

    root: Path

    @property
    def runc(self) -> Path:
        """The OCI runtime."""
        return self._tool("runc")

    @property
    def cni(self) -> Path:
        """Folder of the CNI plugins."""
        return self.root / "usr/lib/cni"

    @property
    def busybox(self) -> Path:
        """Static busybox."""
        return self._tool("busybox")

    @property
    def nft(self) -> Path:
        """Lists and deletes packet filter tables."""
        return self._tool("nft")

    @property
    def environment(self) -> dict[str, str]:
        """PATH and library path under which the tools run."""
        folders = [self.root / part for part in _FOLDERS]
        libraries = [
            str(path)
            for base in ("usr/lib", "lib")
            for path in sorted((self.root / base).glob("*-linux-gnu"))
        ]
        path = [*map(str, folders), os.environ.get("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")]
        return {"PATH": ":".join(path), "LD_LIBRARY_PATH": ":".join(libraries)}

    def _tool(self, name: str) -> Path:
        for folder in _FOLDERS:
            if (path := self.root / folder / name).exists():
                return path
        raise BuildError(f"{name} is not among the packages in {self.root}: delete that folder and try again")


def entry() -> str:
    """Cache entry: it changes with the release, the machine type and the list of packages."""
    release = platform.freedesktop_os_release().get("VERSION_CODENAME", "unknown")
    return f"debian-{release}-{platform.machine()}-{digest(*PACKAGES)}"


def unpack(cache: Cache) -> Packages:
    """The packages, fetched when they are not in the cache. Raises `BuildError`."""
    for tool in ("apt-get", "dpkg"):
        if not shutil.which(tool):
            raise BuildError(
                f"{tool} is missing: a real node needs Debian's packages; use `--fake-node` elsewhere"
            )
    return Packages(cache.obtain("packages", entry(), _fetch))


def _fetch(folder: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="modelfleet-apt-") as scratch:
        work = Path(scratch)
        for needed in ("state/lists/partial", "cache/archives/partial", "debs"):
            (work / needed).mkdir(parents=True)
        apt = ["apt-get", "-qq", "-o", f"Dir::State={work}/state", "-o", f"Dir::Cache={work}/cache",
               "-o", "Dir::State::status=/var/lib/dpkg/status", "-o", "APT::Sandbox::User=root"]  # fmt: skip
        _run([*apt, "update"], work)
        _run([*apt, "download", *PACKAGES], work / "debs")
        for package in sorted((work / "debs").glob("*.deb")):
            _run(["dpkg", "-x", str(package), str(folder)], work)


def _run(command: list[str], directory: Path) -> None:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"`{' '.join(command)}` failed:\n{done.stderr.strip()[-2000:]}")
