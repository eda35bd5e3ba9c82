from pathlib import Path

from hack.cluster.mounts import below

TABLE = r"""proc /proc proc rw 0 0
/dev/vda /run/mf ext4 rw 0 0
tmpfs /run/mf/pods/a tmpfs rw 0 0
tmpfs /run/mf/pods/a/b tmpfs rw 0 0
tmpfs /run/mf\040two tmpfs rw 0 0
tmpfs /run/mfx tmpfs rw 0 0
tmpfs /run/mf/with\040blank\134 tmpfs rw 0 0
"""


def test_only_mounts_below_the_folder_deepest_first() -> None:
    """A neighbour with a longer name is not below, and a mount goes before what it is mounted on."""
    expected = ["/run/mf/with blank\\", "/run/mf/pods/a/b", "/run/mf/pods/a", "/run/mf"]
    assert expected == below(Path("/run/mf"), TABLE)
