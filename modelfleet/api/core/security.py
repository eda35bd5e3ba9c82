"""Security contexts, without the fields that reach the node: privileged, procMount, sysctls."""

from typing import Annotated, Literal

from modelfleet.api.base import CoreObject, Count, Format, Items, RelativePath, Text

CAPABILITY = Format("capability")

Capability = Annotated[str, Text(max=64, min=1), CAPABILITY]
CapabilityList = Annotated[tuple[Capability, ...], Items(max=64)]


class Capabilities(CoreObject):
    """Linux capabilities added to and dropped from the runtime's default set."""

    add: CapabilityList = ()
    """Capabilities to add, such as IPC_LOCK for RDMA."""
    drop: CapabilityList = ()
    """Capabilities to drop; ALL drops all of them."""


class SELinuxOptions(CoreObject):
    """SELinux label of the processes."""

    user: Annotated[str, Text(max=253)] = ""
    """SELinux user."""
    role: Annotated[str, Text(max=253)] = ""
    """SELinux role."""
    type: Annotated[str, Text(max=253)] = ""
    """SELinux type."""
    level: Annotated[str, Text(max=253)] = ""
    """SELinux level."""


class ConfinementProfile(CoreObject):
    """A seccomp or AppArmor profile."""

    type: Literal["RuntimeDefault", "Unconfined", "Localhost"]
    """RuntimeDefault (the container runtime's profile), Unconfined (none) or Localhost (a file on the
    node)."""
    localhost_profile: RelativePath | None = None
    """Profile on the node; required with type Localhost, not allowed with others."""


class SecurityContext(CoreObject):
    """Privileges of the container; overrides pod.securityContext."""

    run_as_user: Count | None = None
    """UID of the process. Default: the image's."""
    run_as_group: Count | None = None
    """GID of the process. Default: the image's."""
    run_as_non_root: bool | None = None
    """true: refuse to start as UID 0."""
    read_only_root_filesystem: bool | None = None
    """true: the image's file system can't be written to; mount an emptyDir where the server writes."""
    allow_privilege_escalation: bool | None = None
    """false: no setuid binaries or file capabilities (no_new_privs)."""
    capabilities: Capabilities | None = None
    """Linux capabilities."""
    seccomp_profile: ConfinementProfile | None = None
    """Seccomp profile."""
    app_armor_profile: ConfinementProfile | None = None
    """AppArmor profile."""
    se_linux_options: SELinuxOptions | None = None
    """SELinux label."""


class PodSecurityContext(CoreObject):
    """Privileges of the pod and ownership of its volumes."""

    run_as_user: Count | None = None
    """UID of the processes. Default: the image's."""
    run_as_group: Count | None = None
    """GID of the processes. Default: the image's."""
    run_as_non_root: bool | None = None
    """true: refuse to start as UID 0."""
    fs_group: Count | None = None
    """GID that owns volumes that support it."""
    fs_group_change_policy: Literal["OnRootMismatch", "Always"] | None = None
    """When ownership of volumes is changed to fsGroup; OnRootMismatch avoids minutes on large model volumes.
    Default Always."""
    supplemental_groups: Annotated[tuple[Count, ...], Items(max=64)] = ()
    """Further GIDs of the processes."""
    supplemental_groups_policy: Literal["Merge", "Strict"] | None = None
    """Whether groups of the image's /etc/group count. Default Merge."""
    seccomp_profile: ConfinementProfile | None = None
    """Seccomp profile."""
    app_armor_profile: ConfinementProfile | None = None
    """AppArmor profile."""
    se_linux_options: SELinuxOptions | None = None
    """SELinux label."""
