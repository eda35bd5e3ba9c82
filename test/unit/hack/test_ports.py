import socket
from pathlib import Path

from hack.cluster import ports


def test_names_get_ports_of_their_own(tmp_path: Path) -> None:
    """Every name gets another port, below the kernel's ephemeral range."""
    found = ports.reserve(tmp_path / "ports.json", ("a", "b", "c"), running=False)
    assert 3 == len(set(found.values()))
    assert all(ports.FIRST <= port < ports.LAST for port in found.values())


def test_a_restart_keeps_its_ports(tmp_path: Path) -> None:
    """Kubeconfigs handed out stay valid, and a name added later gets a port without moving the others."""
    file = tmp_path / "ports.json"
    first = ports.reserve(file, ("a", "b"), running=False)
    assert first == ports.recorded(file)
    again = ports.reserve(file, ("a", "b", "c"), running=False)
    assert first == {name: again[name] for name in ("a", "b")}


def test_a_port_taken_meanwhile_is_replaced_unless_it_is_ours(tmp_path: Path) -> None:
    """A stopped instance gives way to whoever took its port; a running one is that whoever."""
    file = tmp_path / "ports.json"
    first = ports.reserve(file, ("a",), running=False)
    with socket.socket() as other:
        other.bind(("127.0.0.1", first["a"]))
        other.listen()
        assert first == ports.reserve(file, ("a",), running=True)
        assert first != ports.reserve(file, ("a",), running=False)
