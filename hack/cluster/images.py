"""The images of the local cluster: pause (sandboxes), busybox, and agnhost (the echo server of the samples).

They stand under the public names that manifests use; there is no registry to pull from. busybox is Debian's
1.35, agnhost is built from the pinned Kubernetes sources (2.63): their tags are what manifests ask for.
"""

import subprocess
from pathlib import Path

from hack.cluster.cache import Cache, digest
from hack.cluster.ociarchive import File, Folder, Layer, Link, write

PAUSE = "modelfleet.local/pause:1"
"""A name of our own: it stands in for registry.k8s.io/pause and is another program."""
BUSYBOX = "docker.io/library/busybox:1.36"
AGNHOST = "registry.k8s.io/e2e-test-images/agnhost:2.53"
SECONDS = 3
_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_NOBODY = "65535:65535"


def archives(cache: Cache, *, pause: Path, busybox: Path, agnhost: Path) -> tuple[Path, ...]:
    """The archives, written when one of the programs has changed."""
    sources = (pause, busybox, agnhost)
    entry = f"images-{digest(*(str(source) for source in sources), Path(__file__).read_bytes())}"

    def make(folder: Path) -> None:
        base = _busybox_layer(busybox)
        write(
            folder / "pause.tar", PAUSE, {"Entrypoint": ["/pause"], "User": _NOBODY}, [{"pause": File(pause)}]
        )
        write(folder / "busybox.tar", BUSYBOX, {"Cmd": ["sh"], "Env": [_PATH]}, [base])
        config = {"Entrypoint": ["/agnhost"], "Cmd": ["pause"], "Env": [_PATH]}
        write(folder / "agnhost.tar", AGNHOST, config, [base, {"agnhost": File(agnhost)}])

    return tuple(sorted(cache.obtain("images", entry, make).glob("*.tar")))


def _busybox_layer(busybox: Path) -> Layer:
    applets = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split()
    links = {f"bin/{applet}": Link("busybox") for applet in applets if applet != "busybox"}
    folders = {
        name: Folder() for name in ("bin", "dev", "etc", "proc", "root", "sys", "usr", "usr/bin", "var")
    }
    return {
        **folders,
        **links,
        "tmp": Folder(0o1777),
        "bin/busybox": File(busybox),
        "usr/bin/env": Link("/bin/env"),
        "etc/passwd": File(
            b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n", 0o644
        ),
        "etc/group": File(b"root:x:0:\nnobody:x:65534:\n", 0o644),
    }
