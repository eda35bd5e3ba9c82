"""Token files: fresh enough, renewed once, kept when a refresh fails (facts 1.10)."""

import asyncio
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from modelfleet.kube.credentials import TOKEN_FILE_SECONDS, Credential, TokenFile, fits_header
from modelfleet.kube.errors import CredentialsError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A token file that holds "one"."""
    path = tmp_path / "token"
    path.write_text("one\n")
    return path


def token(credential: Credential) -> str:
    """The token in a credential."""
    return dict(credential.headers)["Authorization"].removeprefix("Bearer ")


@pytest.mark.looptime
async def test_a_token_is_read_again_within_a_minute(file: Path) -> None:
    """Kubelet replaces the token well before it expires; so must we."""
    source = TokenFile(file)
    assert "one" == token(await source.current())
    file.write_text("two")
    await asyncio.sleep(TOKEN_FILE_SECONDS - 1)
    assert "one" == token(await source.current())
    await asyncio.sleep(2)
    assert "two" == token(await source.current())
    assert TOKEN_FILE_SECONDS <= 60


async def test_a_refused_token_is_replaced_at_once(file: Path) -> None:
    """After a 401 the age of the token in hand doesn't matter."""
    source = TokenFile(file)
    refused = await source.current()
    file.write_text("two")
    assert "two" == token(await source.renew(refused))


async def test_an_unchanged_file_has_nothing_else_to_offer(file: Path) -> None:
    """The same object tells the caller that a repetition is pointless."""
    source = TokenFile(file)
    refused = await source.current()
    assert refused is await source.renew(refused)


async def test_one_refresh_serves_all_that_were_refused(file: Path) -> None:
    """Whoever was refused with an older token gets the newer one without another read."""
    source = TokenFile(file)
    refused = await source.current()
    file.write_text("two")
    renewed = await source.renew(refused)
    file.write_text("three")
    assert renewed is await source.renew(refused)


@pytest.mark.looptime
@pytest.mark.parametrize("content", [None, "", " \n", "bad\ntoken", "b\u00e4d"])
async def test_a_broken_file_leaves_the_last_token_in_use(file: Path, content: str | None) -> None:
    """A volume that is being replaced must not cost a request."""
    source = TokenFile(file)
    held = await source.current()
    file.unlink() if content is None else file.write_text(content)
    await asyncio.sleep(TOKEN_FILE_SECONDS + 1)
    with capture_logs() as logs:
        assert held is await source.current()
    assert ["kept the token in use"] == [entry["event"] for entry in logs]


async def test_without_any_token_nothing_is_sent(tmp_path: Path) -> None:
    """The error names the file and says that no request went out."""
    with pytest.raises(CredentialsError, match=r"can't read the token file .*/token: No such file") as caught:
        await TokenFile(tmp_path / "token").current()
    assert not caught.value.unknown_outcome


async def test_no_repr_shows_a_token(file: Path) -> None:
    """Credentials are passed around; none may land in a log by accident."""
    assert "one" not in repr(await TokenFile(file).current())


@pytest.mark.parametrize(
    ("text", "fits"), [("abc.DEF-1_2", True), ("", False), ("a\nb", False), ("\u00e4", False)]
)
def test_what_can_be_a_header(text: str, *, fits: bool) -> None:
    """A newline in a token would let it write headers of its own."""
    assert fits == fits_header(text)
