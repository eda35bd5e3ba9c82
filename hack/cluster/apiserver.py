"""Command lines of etcd, kube-apiserver, kube-controller-manager and kube-scheduler.

Flags that differ from the defaults, each for a reason: etcd skips fsync (a test's data may be lost with the
machine); the controller-manager may ask 500 times a second, or service accounts come seconds late; nothing
elects leaders, since there is one of each.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hack.cluster.certificates import Pair

SERVICE_CIDR = "10.96.0.0/16"
SERVICE_ADDRESS = "10.96.0.1"
"""First address of `SERVICE_CIDR`: `kubernetes.default` inside pods."""
ISSUER = "https://kubernetes.default.svc.cluster.local"
# Metadata only: who, what, when, with which answer. Bodies would make the witness heavier than the act.
AUDIT_POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
"""


@dataclass(frozen=True)
class Credentials:
    """Everything a control plane presents and trusts."""

    authority: Path
    authority_key: Path
    front_proxy_authority: Path
    serving: Pair
    kubelet_client: Pair
    front_proxy_client: Pair
    service_account: Pair


def etcd(binary: Path, data: Path, client: str, peer: str) -> list[str]:
    """One etcd member; `client` and `peer` are its URLs."""
    return [
        str(binary),
        "--name=one",
        f"--data-dir={data}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=one={peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def kube_apiserver(
    binary: Path,
    credentials: Credentials,
    *,
    etcd_url: str,
    address: str,
    port: int,
    audit: tuple[Path, Path] | None,
    feature_gates: Mapping[str, bool],
) -> list[str]:
    """The API server; `audit` is its policy and its log."""
    pki = credentials
    # Loopback can't be an endpoint of the Service `kubernetes`; without a node nobody would use it.
    own_endpoint = (
        ["--endpoint-reconciler-type=none"]
        if address.startswith("127.")
        else [f"--advertise-address={address}"]
    )
    options = {
        "etcd-servers": etcd_url,
        "bind-address": address,
        "secure-port": port,
        "tls-cert-file": pki.serving.certificate,
        "tls-private-key-file": pki.serving.key,
        "client-ca-file": pki.authority,
        "kubelet-client-certificate": pki.kubelet_client.certificate,
        "kubelet-client-key": pki.kubelet_client.key,
        "kubelet-certificate-authority": pki.authority,
        "kubelet-preferred-address-types": "InternalIP",
        "service-account-key-file": pki.service_account.certificate,
        "service-account-signing-key-file": pki.service_account.key,
        "service-account-issuer": ISSUER,
        "service-cluster-ip-range": SERVICE_CIDR,
        "authorization-mode": "Node,RBAC",
        "enable-admission-plugins": "NodeRestriction",
        "allow-privileged": "true",
        "requestheader-client-ca-file": pki.front_proxy_authority,
        "requestheader-allowed-names": "front-proxy-client",
        "requestheader-username-headers": "X-Remote-User",
        "requestheader-group-headers": "X-Remote-Group",
        "requestheader-extra-headers-prefix": "X-Remote-Extra-",
        "proxy-client-cert-file": pki.front_proxy_client.certificate,
        "proxy-client-key-file": pki.front_proxy_client.key,
        "profiling": "false",
    }
    if audit:
        options |= {"audit-policy-file": audit[0], "audit-log-path": audit[1]}
    if feature_gates:
        options["feature-gates"] = ",".join(
            f"{name}={str(on).lower()}" for name, on in sorted(feature_gates.items())
        )
    return [str(binary), *_flags(options), *own_endpoint]


def kube_controller_manager(
    binary: Path, kubeconfig: Path, credentials: Credentials, *, address: str, port: int
) -> list[str]:
    """The controllers of Kubernetes itself: Deployments, garbage collection, HPA, namespaces, tokens."""
    options = _component(kubeconfig, address, port) | {
        "kube-api-qps": 500,
        "kube-api-burst": 1000,
        "use-service-account-credentials": "true",
        "service-account-private-key-file": credentials.service_account.key,
        "root-ca-file": credentials.authority,
        "cluster-signing-cert-file": credentials.authority,
        "cluster-signing-key-file": credentials.authority_key,
    }
    return [str(binary), *_flags(options)]


def kube_scheduler(binary: Path, kubeconfig: Path, *, address: str, port: int) -> list[str]:
    """The scheduler with its default profile."""
    return [str(binary), *_flags(_component(kubeconfig, address, port))]


def _component(kubeconfig: Path, address: str, port: int) -> dict[str, object]:
    return {
        "kubeconfig": kubeconfig,
        "authentication-kubeconfig": kubeconfig,
        "authorization-kubeconfig": kubeconfig,
        "bind-address": address,
        "secure-port": port,
        "leader-elect": "false",
        "cert-dir": kubeconfig.parent,
        "profiling": "false",
    }


def _flags(options: Mapping[str, object]) -> list[str]:
    return [f"--{name}={value}" for name, value in options.items()]
