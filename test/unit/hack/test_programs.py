import re

import pytest

from hack.cluster.programs import ALL, GATEWAY_API, MODS, Program

GATEWAY_API_MODULE = Program("gateway-api", "gateway-api", "sigs.k8s.io/gateway-api", GATEWAY_API, 0)
PINNED = [program for program in (*ALL, GATEWAY_API_MODULE) if program.name != "pause"]


@pytest.mark.parametrize("program", PINNED, ids=[program.name for program in PINNED])
def test_versions_agree_with_go_mod(program: Program) -> None:
    """The version that names cache entries is the version that go.mod requires."""
    required = dict(
        re.findall(
            r"^\s*(?:require )?(\S+) (v\S+)", (MODS / program.module / "go.mod").read_text(), re.MULTILINE
        )
    )
    package = program.package if program.package != "." else "github.com/coredns/coredns"
    owners = [module for module in required if f"{package}/".startswith(f"{module}/")]
    assert program.version == required[max(owners, key=len)]


def test_every_module_is_named_after_its_folder() -> None:
    """A module's path says where it lies."""
    for folder in sorted(MODS.iterdir()):
        assert f"module modelfleet.dev/hack/{folder.name}" == (folder / "go.mod").read_text().splitlines()[0]


def test_kubernetes_flags_carry_the_version() -> None:
    """Without the version in its flags the API server calls itself v0.0.0 and clients misread it."""
    for program in ALL:
        if program.module == "k8s":
            assert f"gitVersion={program.version} " in f"{program.ldflags} "
