import json
from pathlib import Path

import pytest

from hack.cluster.debian import Packages
from hack.cluster.errors import HostError
from hack.cluster.host import Host, Record, read_record, refuse_overlap


def announced(text: str) -> None:
    """The host must not be touched in these tests, so nothing may be announced."""
    pytest.fail(f"about to change the host: {text}")


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A machine whose node belongs to another checkout."""
    record = {"owner": "/other/build/cluster/blue", "sysctls": {"net/ipv4/ip_forward": "0"}, "missing": []}
    (tmp_path / "node.json").write_text(json.dumps(record))
    return Host(tmp_path / "node.json", Packages(tmp_path))


def test_one_real_node_per_machine(host: Host, tmp_path: Path) -> None:
    """A node that runs for another instance is refused, untouched, with its owner and both ways out."""
    with pytest.raises(
        HostError, match=r"belongs to /other/.*`python -m hack.cluster down --name blue`.*--fake-node"
    ):
        host.claim(tmp_path / "mine", in_use=lambda state: state.name == "blue", announce=announced)


def test_only_the_owner_restores(host: Host, tmp_path: Path) -> None:
    """`down` of an instance without the node leaves the host and the record alone."""
    before = host.record_file.read_text()
    host.restore(tmp_path / "mine")
    assert before == host.record_file.read_text()


def test_the_record_survives(host: Host, tmp_path: Path) -> None:
    """What was before the node is read back as it was written, and is None when there is no node."""
    expected = Record("/other/build/cluster/blue", {"net/ipv4/ip_forward": "0"}, [])
    assert expected == read_record(host.record_file)
    assert read_record(tmp_path / "none.json") is None


@pytest.mark.parametrize(
    ("address", "prefix", "overlap"),
    [
        ("192.168.1.7", 24, ""),
        ("fe80::1", 64, ""),
        ("10.244.0.1", 24, "10.244.0.0/24"),
        ("10.250.7.7", 16, "10.250.0.1/32"),
        ("10.0.0.1", 8, "10.250.0.1/32"),
        ("10.96.5.1", 30, "10.96.0.0/16"),
    ],
)
def test_addresses_in_use_are_refused(address: str, prefix: int, overlap: str) -> None:
    """A network of the host that overlaps the node's would lose its routes: it is named and refused."""
    text = json.dumps([{"ifname": "eth7", "addr_info": [{"local": address, "prefixlen": prefix}]}])
    if overlap:
        with pytest.raises(HostError, match=rf"eth7 has .*, which overlaps {overlap} .*--fake-node"):
            refuse_overlap(text)
    else:
        refuse_overlap(text)
