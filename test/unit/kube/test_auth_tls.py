"""TLS contexts: rebuilt when their files change, kept when the new ones are broken (facts 1.10)."""

import asyncio
import os
import ssl
import tempfile
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from hack.cluster.certificates import Authority, Pair
from modelfleet.kube.errors import ConfigError
from modelfleet.kube.tls import RECHECK_SECONDS, Identity, Pem, TlsSource


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """One authority and, below, a second one to change to."""
    return Authority(tmp_path_factory.mktemp("authority"), "first")


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The authority that comes next."""
    return Authority(tmp_path_factory.mktemp("other"), "second")


@pytest.fixture
def ca(tmp_path: Path, authority: Authority) -> Path:
    """The file a service account or kubeconfig names."""
    path = tmp_path / "ca.crt"
    path.write_bytes(authority.pair.certificate.read_bytes())
    return path


def names(context: ssl.SSLContext) -> list[str]:
    """Common names of the authorities a context trusts."""
    return [dict(part[0] for part in cert["subject"])["commonName"] for cert in context.get_ca_certs()]  # type: ignore[misc]  # the stubs allow any nesting


async def test_the_context_is_built_once(ca: Path) -> None:
    """Building one costs milliseconds; connections are pooled by it."""
    source = TlsSource(ca=Pem(ca))
    contexts = await asyncio.gather(*(source.context() for _ in range(3)))
    assert 1 == len({id(context) for context in contexts})
    assert ["first"] == names(contexts[0])


@pytest.mark.looptime
async def test_a_changed_authority_is_used_within_a_minute(ca: Path, other: Authority) -> None:
    """A cluster's authority may be replaced while we run."""
    source = TlsSource(ca=Pem(ca))
    before = await source.context()
    ca.write_bytes(other.pair.certificate.read_bytes())
    await asyncio.sleep(RECHECK_SECONDS - 1)
    assert before is await source.context()
    await asyncio.sleep(2)
    assert ["second"] == names(await source.context())
    assert RECHECK_SECONDS <= 60


async def test_after_a_failed_handshake_files_are_read_at_once(ca: Path, other: Authority) -> None:
    """Waiting for the next look would be an outage."""
    source = TlsSource(ca=Pem(ca))
    await source.context()
    ca.write_bytes(other.pair.certificate.read_bytes())
    source.distrust()
    assert ["second"] == names(await source.context())


async def test_unchanged_files_give_the_same_context(ca: Path) -> None:
    """Connections survive a look at files that did not change."""
    source = TlsSource(ca=Pem(ca))
    before = await source.context()
    ca.touch()
    source.distrust()
    assert before is await source.context()


@pytest.mark.parametrize("content", [None, b"", b"-----BEGIN CERTIFICATE-----\nhalf"])
async def test_a_broken_new_file_leaves_the_context_in_use(ca: Path, content: bytes | None) -> None:
    """Files are written in pieces; the next look finds the rest."""
    source = TlsSource(ca=Pem(ca))
    before = await source.context()
    ca.unlink() if content is None else ca.write_bytes(content)
    source.distrust()
    with capture_logs() as logs:
        assert before is await source.context()
    assert ["kept the TLS settings in use: the new ones are broken"] == [entry["event"] for entry in logs]


async def test_a_certificate_is_taken_only_with_its_key(
    tmp_path: Path, ca: Path, authority: Authority
) -> None:
    """Between the two writes of a rotation they don't match."""
    one, two = authority.client("one", "one"), authority.client("two", "two")
    mine = Pair(tmp_path / "me.crt", tmp_path / "me.key")
    mine.certificate.write_bytes(one.certificate.read_bytes())
    mine.key.write_bytes(one.key.read_bytes())
    source = TlsSource(ca=Pem(ca), certificate=Pem(mine.certificate), key=Pem(mine.key))
    before = await source.context()

    mine.certificate.write_bytes(two.certificate.read_bytes())
    source.distrust()
    assert before is await source.context()
    mine.key.write_bytes(two.key.read_bytes())
    source.distrust()
    assert before is not await source.context()


async def test_an_issued_identity_replaces_the_context(ca: Path, authority: Authority) -> None:
    """An exec plugin's new certificate is used by the next connection."""
    pair = authority.client("issued", "issued")
    identity = Identity(pair.certificate.read_bytes(), pair.key.read_bytes())
    source = TlsSource(ca=Pem(ca))
    before = await source.context()
    issued = await source.context(identity)
    assert before is not issued
    assert issued is await source.context(identity)


@pytest.mark.parametrize("has_memfd", [True, False])
async def test_keys_given_as_data_leave_no_file_behind(
    tmp_path: Path, ca: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch, *, has_memfd: bool
) -> None:
    """On Linux the key never touches a disk; elsewhere its file is gone at once."""
    if not has_memfd:
        monkeypatch.delattr(os, "memfd_create")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    pair = authority.client("data", "data")
    await TlsSource(
        ca=Pem(ca),
        certificate=Pem(data=pair.certificate.read_bytes()),
        key=Pem(data=pair.key.read_bytes()),
    ).context()
    assert [] == list(scratch.iterdir())


async def test_without_any_usable_authority_there_is_no_context(tmp_path: Path) -> None:
    """The first failure is a configuration error that names the file."""
    with pytest.raises(ConfigError, match=r"can't set up TLS from authority .*missing.crt"):
        await TlsSource(ca=Pem(tmp_path / "missing.crt")).context()


async def test_an_encrypted_key_fails_instead_of_asking(
    ca: Path, authority: Authority, tmp_path: Path
) -> None:
    """OpenSSL would ask on the terminal and hang a controller."""
    key = tmp_path / "encrypted.key"
    pair = authority.client("encrypted", "encrypted")
    for line in _encrypted(pair.key.read_bytes()):
        key.write_bytes(line)
    with pytest.raises(ConfigError, match="can't set up TLS"):
        await TlsSource(ca=Pem(ca), certificate=Pem(pair.certificate), key=Pem(key)).context()


def _encrypted(pem: bytes) -> Iterator[bytes]:
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415  # only this test needs it

    private = serialization.load_pem_private_key(pem, password=None)
    yield private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"password"),
    )


async def test_skipping_verification_trusts_anybody(ca: Path) -> None:
    """insecure-skip-tls-verify, for throw-away clusters."""
    context = await TlsSource(ca=Pem(ca), insecure=True).context()
    assert (ssl.CERT_NONE, False) == (context.verify_mode, context.check_hostname)


async def test_authorities_without_newer_extensions_are_accepted(ca: Path) -> None:
    """Python 3.13's strict mode refuses the authorities of many running clusters; kubectl does not."""
    context = await TlsSource(ca=Pem(ca)).context()
    assert ssl.VerifyFlags(0) == context.verify_flags & ssl.VERIFY_X509_STRICT
    assert context.check_hostname


def test_half_a_client_certificate_is_refused() -> None:
    """Sending none where one was meant would act as somebody else."""
    with pytest.raises(ConfigError, match="go together"):
        TlsSource(certificate=Pem(data=b"x"))


def test_data_wins_over_a_path_and_must_be_base64(tmp_path: Path) -> None:
    """As kubectl has it."""
    encoded = b64encode(b"pem").decode()
    assert Pem(data=b"pem") == Pem.of("path", encoded, tmp_path, "client-key")
    assert Pem(tmp_path / "path") == Pem.of("path", "", tmp_path, "client-key")
    assert Pem.of("", "", tmp_path, "client-key") is None
    with pytest.raises(ConfigError, match="client-key-data is not base64"):
        Pem.of("", "!", tmp_path, "client-key")


def test_no_repr_shows_a_key() -> None:
    """Sources are named, contents are not."""
    assert "s3cret" not in repr((Pem(data=b"s3cret"), Identity(b"s3cret", b"s3cret")))
