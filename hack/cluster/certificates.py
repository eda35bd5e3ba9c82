"""Certificates of one cluster: two authorities, and what they sign.

Every instance has authorities of its own, so a client of one cluster is a stranger to every other.
"""

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALIDITY = dt.timedelta(days=3650)
_BACKDATE = dt.timedelta(hours=1)  # clocks of virtual machines step back after a resume
_CLIENT, _SERVER = ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH
_USAGE_FIELDS = (
    "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
    "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
)  # fmt: skip


@dataclass(frozen=True)
class Pair:
    """A certificate and its private key as PEM files."""

    certificate: Path
    key: Path


@dataclass(frozen=True)
class Authority:
    """Signs client and server certificates; its own pair lies in `directory` and is made on first use."""

    directory: Path
    name: str
    """Common name, and the stem of the two files."""

    @property
    def pair(self) -> Pair:
        """The authority's own certificate and key."""
        pair = _pair(self.directory, self.name)
        if not pair.certificate.exists():
            key = ec.generate_private_key(ec.SECP256R1())
            usage = _usage("digital_signature", "key_cert_sign", "crl_sign")
            builder = _builder(self.name, (), key, _name(self.name, ()))
            builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            _write(pair, builder.add_extension(usage, critical=True).sign(key, hashes.SHA256()), key)
        return pair

    def client(self, stem: str, user: str, groups: tuple[str, ...] = ()) -> Pair:
        """A client certificate: Kubernetes reads the common name as user, organizations as groups."""
        return self._issue(stem, user, groups, (_CLIENT,), ())

    def server(self, stem: str, user: str, names: tuple[str, ...], groups: tuple[str, ...] = ()) -> Pair:
        """A server certificate for DNS names and IP addresses."""
        return self._issue(stem, user, groups, (_SERVER,), names)

    def peer(self, stem: str, user: str, names: tuple[str, ...]) -> Pair:
        """A certificate for both sides of a connection, where a program presents one pair as both."""
        return self._issue(stem, user, (), (_CLIENT, _SERVER), names)

    def _issue(
        self,
        stem: str,
        user: str,
        groups: tuple[str, ...],
        usages: tuple[x509.ObjectIdentifier, ...],
        names: tuple[str, ...],
    ) -> Pair:
        pair = _pair(self.directory, stem)
        if pair.certificate.exists():
            return pair
        own = self.pair
        issuer = x509.load_pem_x509_certificate(own.certificate.read_bytes())
        issuer_key = serialization.load_pem_private_key(own.key.read_bytes(), password=None)
        if not isinstance(issuer_key, ec.EllipticCurvePrivateKey):
            raise TypeError(
                f"{own.key}: not an EC key; delete the folder {self.directory} to have new ones made"
            )
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(user, groups, key, issuer.subject)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_usage("digital_signature"), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        if names:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_alternative(n) for n in names]), critical=False
            )
        _write(pair, builder.sign(issuer_key, hashes.SHA256()), key)
        return pair


def signing_key(directory: Path, stem: str) -> Pair:
    """The key pair that signs ServiceAccount tokens; `certificate` is the bare public key here."""
    pair = Pair(directory / f"{stem}.pub", directory / f"{stem}.key")
    if not pair.certificate.exists():
        key = ec.generate_private_key(ec.SECP256R1())
        _write_key(pair.key, key)
        public = serialization.PublicFormat.SubjectPublicKeyInfo
        pair.certificate.write_bytes(key.public_key().public_bytes(serialization.Encoding.PEM, public))
    return pair


def _pair(directory: Path, stem: str) -> Pair:
    return Pair(directory / f"{stem}.crt", directory / f"{stem}.key")


def _name(user: str, groups: tuple[str, ...]) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, user)])


def _builder(
    user: str, groups: tuple[str, ...], key: ec.EllipticCurvePrivateKey, issuer: x509.Name
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    builder = x509.CertificateBuilder().subject_name(_name(user, groups)).issuer_name(issuer)
    builder = builder.public_key(key.public_key()).serial_number(x509.random_serial_number())
    return builder.not_valid_before(now - _BACKDATE).not_valid_after(now + VALIDITY)


def _usage(*granted: str) -> x509.KeyUsage:
    return x509.KeyUsage(**{name: name in granted for name in _USAGE_FIELDS})


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _write(pair: Pair, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> None:
    _write_key(pair.key, key)  # first: a certificate on disk means that its key is there too
    pair.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
