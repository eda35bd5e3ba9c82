from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from hack.cluster import kubeconfig
from hack.cluster.certificates import Authority, Pair


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """A new authority."""
    return Authority(tmp_path, "ca")


def load(pair: Pair) -> x509.Certificate:
    """The certificate of a pair."""
    return x509.load_pem_x509_certificate(pair.certificate.read_bytes())


def test_user_and_groups_are_where_kubernetes_reads_them(authority: Authority) -> None:
    """The common name is the user, each organization a group; the authority's signature verifies."""
    certificate = load(authority.client("alice", "alice", ("devs", "system:masters")))
    names = certificate.subject.get_attributes_for_oid
    assert ["alice"] == [name.value for name in names(NameOID.COMMON_NAME)]
    assert {"devs", "system:masters"} == {name.value for name in names(NameOID.ORGANIZATION_NAME)}
    certificate.verify_directly_issued_by(load(authority.pair))


def test_a_server_is_known_by_names_and_addresses(authority: Authority) -> None:
    """IP addresses become IP entries: Go refuses an address written as DNS name."""
    certificate = load(authority.server("server", "server", ("localhost", "127.0.0.1")))
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert ["localhost"] == names.get_values_for_type(x509.DNSName)
    assert ["127.0.0.1"] == [str(address) for address in names.get_values_for_type(x509.IPAddress)]


def test_usages_are_apart(authority: Authority) -> None:
    """A client certificate can't serve and a server's is no client; a peer is both."""
    client, server = ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH
    pairs = {
        (client,): authority.client("c", "c"),
        (server,): authority.server("s", "s", ("localhost",)),
        (client, server): authority.peer("p", "p", ("localhost",)),
    }
    for expected, pair in pairs.items():
        assert expected == tuple(load(pair).extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)


def test_pairs_are_made_once_and_keys_are_private(authority: Authority) -> None:
    """A second request gives the same pair, so that running clients stay valid."""
    first = authority.client("alice", "alice").certificate.read_bytes()
    pair = Authority(authority.directory, "ca").client("alice", "alice")
    assert first == pair.certificate.read_bytes()
    assert 0o600 == pair.key.stat().st_mode & 0o777


def test_kubeconfigs_are_self_contained(authority: Authority, tmp_path: Path) -> None:
    """A kubeconfig works wherever it is copied to, and is its owner's only."""
    pair = authority.client("alice", "alice")
    path = kubeconfig.for_certificate(
        tmp_path / "alice.kubeconfig", "https://s:1", authority.pair.certificate, pair
    )
    assert 0o600 == path.stat().st_mode & 0o777
    config = yaml.safe_load(path.read_text())
    assert {"client-certificate-data", "client-key-data"} == set(config["users"][0]["user"])
    assert {"server", "certificate-authority-data"} == set(config["clusters"][0]["cluster"])
