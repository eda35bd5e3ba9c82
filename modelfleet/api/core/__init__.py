"""The part of core/v1 that our kinds accept, typed field by field; nothing is passed through unseen.

Left out on purpose, because the controller creates pods on a user's behalf: hostPath, privileged, host
namespaces and host ports, probe hosts, sysctls.
"""

from modelfleet.api.core.affinity import Affinity, NodeAffinity, NodeSelector, NodeSelectorTerm, PodAffinity
from modelfleet.api.core.container import Container, Resources, VolumeMount
from modelfleet.api.core.env import EnvFromSource, EnvVar, EnvVarSource
from modelfleet.api.core.pod import Pod
from modelfleet.api.core.probes import Lifecycle, Probe
from modelfleet.api.core.scheduling import Toleration, TopologySpreadConstraint
from modelfleet.api.core.security import PodSecurityContext, SecurityContext
from modelfleet.api.core.selectors import LabelSelector, LocalReference
from modelfleet.api.core.volumes import Volume

__all__ = [
    "Affinity",
    "Container",
    "EnvFromSource",
    "EnvVar",
    "EnvVarSource",
    "LabelSelector",
    "Lifecycle",
    "LocalReference",
    "NodeAffinity",
    "NodeSelector",
    "NodeSelectorTerm",
    "Pod",
    "PodAffinity",
    "PodSecurityContext",
    "Probe",
    "Resources",
    "SecurityContext",
    "Toleration",
    "TopologySpreadConstraint",
    "Volume",
    "VolumeMount",
]
