"""Configuration files of the real node, as text.

Each unusual setting is one a restricted machine (no CAP_SYS_RESOURCE, cgroup v1) was found to need:
`restrict_oom_score_adj`, or no sandbox starts; `failCgroupV1: false`, or the kubelet exits.
"""

import json
from pathlib import Path

import yaml

from hack.cluster.debian import Packages
from hack.cluster.host import NODE_ADDRESS, POD_BRIDGE, POD_CIDR
from hack.cluster.images import PAUSE
from hack.cluster.layout import Layout

CLUSTER_DOMAIN = "cluster.local"
UNREACHABLE = 'server = "http://127.0.0.1:1"\n'
"""Where every image pull goes: it fails at once, on this machine. Images come by import only."""
_DISABLED = (
    "io.containerd.internal.v1.opt",  # makes /opt/containerd
    "io.containerd.internal.v1.tracing",
    "io.containerd.tracing.processor.v1.otlp",
    "io.containerd.nri.v1.nri",
    "io.containerd.snapshotter.v1.blockfile",
    "io.containerd.snapshotter.v1.btrfs",
    "io.containerd.snapshotter.v1.devmapper",
    "io.containerd.snapshotter.v1.erofs",
    "io.containerd.snapshotter.v1.zfs",
)


def containerd(layout: Layout, packages: Packages) -> str:
    """TOML of containerd, its version 3."""
    return f"""\
version = 3
root = "{layout.runtime}/containerd-root"
state = "{layout.runtime}/containerd-state"
disabled_plugins = {json.dumps(_DISABLED)}
[grpc]
  address = "{layout.containerd_socket}"
[plugins.'io.containerd.cri.v1.images']
  snapshotter = "overlayfs"
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = "{PAUSE}"
  [plugins.'io.containerd.cri.v1.images'.registry]
    config_path = "{layout.conf}/certs.d"
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  disable_apparmor = true
  netns_mounts_under_state_dir = true
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ["{packages.cni}"]
    conf_dir = "{layout.conf}/cni"
  [plugins.'io.containerd.cri.v1.runtime'.containerd]
    default_runtime_name = "runc"
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
        BinaryName = "{packages.runc}"
        SystemdCgroup = false
"""


def cni(layout: Layout) -> str:
    """Pods hang on one bridge; no masquerade, so they have no way out."""
    ipam = {
        "type": "host-local",
        "dataDir": f"{layout.runtime}/cni-ipam",
        "ranges": [[{"subnet": POD_CIDR}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {
        "type": "bridge",
        "bridge": POD_BRIDGE,
        "isGateway": True,
        "ipMasq": False,
        "hairpinMode": True,
        "ipam": ipam,
    }
    return json.dumps({"cniVersion": "1.0.0", "name": "modelfleet", "plugins": [bridge]}, indent=1)


def kubelet(layout: Layout, *, authority: Path, certificate: Path, key: Path) -> str:
    """KubeletConfiguration; image garbage collection is off, since nothing could be pulled again."""
    return yaml.safe_dump(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": NODE_ADDRESS,
            "healthzBindAddress": NODE_ADDRESS,
            "containerRuntimeEndpoint": f"unix://{layout.containerd_socket}",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(authority)},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": str(certificate),
            "tlsPrivateKeyFile": str(key),
            "cgroupDriver": "cgroupfs",
            "failCgroupV1": False,
            "failSwapOn": False,
            "oomScoreAdj": 0,
            "clusterDomain": CLUSTER_DOMAIN,
            "clusterDNS": [NODE_ADDRESS],
            "podLogsDir": f"{layout.runtime}/pod-logs",
            "imageGCHighThresholdPercent": 100,
            "imageMinimumGCAge": "24h",
            "evictionHard": {
                "memory.available": "100Mi",
                "nodefs.available": "1%",
                "imagefs.available": "1%",
                "nodefs.inodesFree": "1%",
            },
            "nodeStatusUpdateFrequency": "5s",
        },
        sort_keys=False,
    )


def kube_proxy(kubeconfig: Path, node: str) -> str:
    """KubeProxyConfiguration; the zeros leave the host's conntrack limits alone."""
    return yaml.safe_dump(
        {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "nftables",
            "clusterCIDR": POD_CIDR,
            "hostnameOverride": node,
            "bindAddress": NODE_ADDRESS,
            "clientConnection": {"kubeconfig": str(kubeconfig)},
            "healthzBindAddress": f"{NODE_ADDRESS}:10256",
            "metricsBindAddress": f"{NODE_ADDRESS}:10249",
            "oomScoreAdj": 0,
            "nodePortAddresses": [f"{NODE_ADDRESS}/32"],
            "nftables": {"minSyncPeriod": "100ms"},
            "conntrack": {
                "maxPerCore": 0,
                "min": 0,
                "tcpEstablishedTimeout": "0s",
                "tcpCloseWaitTimeout": "0s",
            },
        },
        sort_keys=False,
    )


def corefile(kubeconfig: Path) -> str:
    """CoreDNS answers for the cluster's own names only."""
    return f"""\
.:53 {{
  bind {NODE_ADDRESS}
  errors
  kubernetes {CLUSTER_DOMAIN} in-addr.arpa ip6.arpa {{
    kubeconfig {kubeconfig}
    pods insecure
    ttl 5
  }}
  cache 5
}}
"""
