"""A control plane as processes: etcd and kube-apiserver, on request the controller-manager and scheduler.

Any number run side by side: each has its own folder with ports, certificates, logs and data, and writes
nowhere else. `start` and `stop` may be called at any time and in any state; a control plane that was stopped
goes on with its data when started again, on the same port while that is free.
"""

import functools
import http.client
import ssl
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from hack.cluster import apiserver, kubeconfig, ports
from hack.cluster.binaries import Binaries, Source
from hack.cluster.cache import Cache, default_root
from hack.cluster.certificates import Authority, Pair, signing_key
from hack.cluster.errors import ClusterError
from hack.cluster.files import put
from hack.cluster.process import Process, wait_until
from hack.cluster.programs import BY_NAME

LOOPBACK = "127.0.0.1"
READY_SECONDS = 90.0
"""5 s were measured on two idle cores; a machine busy with Go builds takes several times that."""
GRACE_SECONDS = 3.0
"""kube-apiserver ends in about 1 s; with clients that keep idle connections open it would wait for them, and
nothing is lost by KILL, since etcd holds the data."""
ADMIN = "admin"
IN_CLUSTER_NAMES = (
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
_PORTS = ("etcd", "etcd-peer", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


class ControlPlane:
    """etcd + kube-apiserver in one folder; a context manager that starts and stops them."""

    def __init__(
        self,
        directory: Path,
        *,
        audit: bool = True,
        feature_gates: Mapping[str, bool] | None = None,
        controller_manager: bool = False,
        scheduler: bool = False,
        address: str = LOOPBACK,
        binaries: Source | None = None,
    ) -> None:
        """Describe it; nothing is touched before `start`.

        Args:
            directory: holds everything; made when missing.
            audit: write `audit_log`, one JSON object a line at level Metadata.
            feature_gates: of kube-apiserver, such as `{"WatchList": False}` for clients' fallbacks.
            controller_manager: also run kube-controller-manager (service accounts, garbage collection).
            scheduler: also run kube-scheduler.
            address: where the API server listens; another than loopback is needed for pods to reach it.
            binaries: where programs come from; the default builds missing ones into the user's cache.
        """
        self.directory = directory.resolve()
        self.address = address
        self.binaries: Source = binaries or Binaries(Cache(default_root()))
        self._audit = audit
        self._gates = dict(feature_gates or {})
        self._extra = [
            name
            for name, wanted in (
                ("kube-controller-manager", controller_manager),
                ("kube-scheduler", scheduler),
            )
            if wanted
        ]
        self._ports: dict[str, int] = {}

    @property
    def server(self) -> str:
        """URL of the API server."""
        return f"https://{self.address}:{self._port('kube-apiserver')}"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig (group system:masters)."""
        return self.directory / "conf" / f"{ADMIN}.kubeconfig"

    @property
    def audit_log(self) -> Path:
        """Audit events in the order of the answers."""
        return self.directory / "log" / "audit.log"

    @property
    def pki(self) -> Path:
        """Folder of keys and certificates."""
        return self.directory / "pki"

    @property
    def authority(self) -> Authority:
        """Signs for servers and clients of this cluster."""
        return Authority(self.pki, "ca")

    @property
    def kubectl_binary(self) -> Path:
        """A kubectl of the server's version."""
        return self.binaries.get(BY_NAME["kubectl"])

    def kubectl(self, *args: str, stdin: str = "") -> str:
        """Run kubectl as administrator; raises `ClusterError` with its message when it fails."""
        own = (
            f"--kubeconfig={self.kubeconfig}",
            # ~/.kube/cache would keep an entry for each port there ever was.
            f"--cache-dir={self.directory / 'kubectl-cache'}",
        )
        command = [str(self.kubectl_binary), *own, *args]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ClusterError(f"kubectl {' '.join(args)}: {done.stderr.strip()}")
        return done.stdout

    def apply(self, *files: Path, stdin: str = "") -> str:
        """Server-side apply files, folders and text; gives back kubectl's lines. Raises `ClusterError`."""
        names = [*map(str, files), *(["-"] if stdin else [])]
        options = (f"--filename={name}" for name in names)
        return self.kubectl("apply", "--server-side", "--force-conflicts", *options, stdin=stdin)

    def kubeconfig_for_user(self, user: str, groups: tuple[str, ...] = ()) -> Path:
        """A kubeconfig for any user name and groups, by a client certificate; grants come from RBAC alone."""
        stem = user.replace("/", "_").replace(":", "_")
        pair = self.authority.client(f"user-{stem}", user, groups)
        path = self.directory / "conf" / f"user-{stem}.kubeconfig"
        return kubeconfig.for_certificate(path, self.server, self.authority.pair.certificate, pair)

    def kubeconfig_for_service_account(self, namespace: str, name: str, *, duration: str = "8760h") -> Path:
        """A kubeconfig with a bound token of an existing ServiceAccount, fresh on each call."""
        token = self.kubectl(
            "create", "token", name, f"--namespace={namespace}", f"--duration={duration}"
        ).strip()
        path = self.directory / "conf" / f"sa-{namespace}-{name}.kubeconfig"
        return kubeconfig.for_token(path, self.server, self.authority.pair.certificate, token)

    def start(self) -> Self:
        """Start what does not run and wait for the API server. Raises `StartError`, `BuildError`."""
        try:
            self._start_etcd()
            self.start_apiserver()
            for name in self._extra:
                self.start_component(name)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop everything that runs; data, logs and certificates stay."""
        for name in ("kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd"):
            self._process(name, []).stop(GRACE_SECONDS)

    def start_apiserver(self) -> None:
        """Start kube-apiserver on its port, unless it runs, and wait until /readyz is 200."""
        process = self._process("kube-apiserver", self._apiserver_command())
        process.start()
        pair = self.authority.client(ADMIN, ADMIN, ("system:masters",))
        kubeconfig.for_certificate(self.kubeconfig, self.server, self.authority.pair.certificate, pair)
        wait_until("the API server", lambda: self._ready(pair), seconds=READY_SECONDS, processes=[process])

    def stop_apiserver(self, grace: float = GRACE_SECONDS) -> None:
        """Take kube-apiserver away and leave the rest; `grace` 0 is a crash."""
        self._process("kube-apiserver", []).stop(grace)

    def restart_apiserver(self) -> None:
        """Stop and start kube-apiserver: same port, same data."""
        self.stop_apiserver()
        self.start_apiserver()

    def start_component(self, name: str) -> None:
        """Start kube-controller-manager or kube-scheduler, unless it runs."""
        user = f"system:{name}"
        file = self.directory / "conf" / f"{name}.kubeconfig"
        pair = self.authority.client(name, user)
        kubeconfig.for_certificate(file, self.server, self.authority.pair.certificate, pair)
        binary = self.binaries.get(BY_NAME[name])
        port = self._port(name)
        if name == "kube-scheduler":
            command = apiserver.kube_scheduler(binary, file, address=LOOPBACK, port=port)
        else:
            command = apiserver.kube_controller_manager(
                binary, file, self._credentials, address=LOOPBACK, port=port
            )
        self._process(name, command).start()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @functools.cached_property
    def _credentials(self) -> apiserver.Credentials:
        authority = self.authority
        front = Authority(self.pki, "front-proxy-ca")
        names = (*IN_CLUSTER_NAMES, "localhost", LOOPBACK, apiserver.SERVICE_ADDRESS, self.address)
        return apiserver.Credentials(
            authority=authority.pair.certificate,
            authority_key=authority.pair.key,
            front_proxy_authority=front.pair.certificate,
            serving=authority.server("apiserver", "kube-apiserver", tuple(dict.fromkeys(names))),
            kubelet_client=authority.client(
                "apiserver-kubelet-client", "kube-apiserver", ("system:masters",)
            ),
            front_proxy_client=front.client("front-proxy-client", "front-proxy-client"),
            service_account=signing_key(self.pki, "sa"),
        )

    def _start_etcd(self) -> None:
        running = any(self._process(name, []).alive for name in ("etcd", "kube-apiserver"))
        self._ports = ports.reserve(self._ports_file, _PORTS, running=running)
        client, peer = self._etcd_url("etcd"), self._etcd_url("etcd-peer")
        command = apiserver.etcd(self.binaries.get(BY_NAME["etcd"]), self.directory / "etcd", client, peer)
        self._process("etcd", command).start()

    def _apiserver_command(self) -> list[str]:
        audit = None
        if self._audit:
            policy = put(self.directory / "conf" / "audit-policy.yaml", apiserver.AUDIT_POLICY)
            self.audit_log.parent.mkdir(parents=True, exist_ok=True)
            audit = (policy, self.audit_log)
        return apiserver.kube_apiserver(
            self.binaries.get(BY_NAME["kube-apiserver"]),
            self._credentials,
            etcd_url=self._etcd_url("etcd"),
            address=self.address,
            port=self._port("kube-apiserver"),
            audit=audit,
            feature_gates=self._gates,
        )

    def _process(self, name: str, argv: list[str]) -> Process:
        return Process(name, argv, self.directory / "run", self.directory / "log" / f"{name}.log")

    @property
    def _ports_file(self) -> Path:
        return self.directory / "conf" / "ports.json"

    def _port(self, name: str) -> int:
        if not self._ports:
            self._ports = ports.recorded(self._ports_file)
        return self._ports[name]

    def _etcd_url(self, name: str) -> str:
        return f"http://{LOOPBACK}:{self._port(name)}"

    def _ready(self, admin: Pair) -> bool:
        context = ssl.create_default_context(cafile=str(self.authority.pair.certificate))
        context.load_cert_chain(admin.certificate, admin.key)
        port = self._port("kube-apiserver")
        connection = http.client.HTTPSConnection(self.address, port, context=context, timeout=5)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
