"""/healthz, /readyz and the server behind them."""

import aiohttp
import pytest

from modelfleet.runtime.endpoint import Bind, Endpoint
from modelfleet.runtime.health import Check, Checks


def well() -> str:
    """A check that passes."""
    return ""


def ill() -> str:
    """A check that fails."""
    return "no list of Pod yet"


def broken() -> str:
    """A check with a bug."""
    raise KeyError("x")


@pytest.mark.parametrize(
    ("checks", "verbose", "status", "text"),
    [
        ({"a": well}, False, 200, "ok\n"),
        ({}, False, 200, "ok\n"),
        ({"a": well, "b": well}, True, 200, "[+]a ok\n[+]b ok\nreadyz check passed\n"),
        (
            {"a": well, "b": ill},
            False,
            503,
            "[+]a ok\n[-]b failed: no list of Pod yet\nreadyz check failed\n",
        ),
        ({"b": broken}, False, 503, "[-]b failed: check raised KeyError: 'x'\nreadyz check failed\n"),
    ],
)
def test_reports_as_kube_apiserver_does(
    checks: dict[str, Check],
    verbose: bool,  # noqa: FBT001  # a table's column
    status: int,
    text: str,
) -> None:
    """Plain ok when well; each check with its reason when asked, or when one fails."""
    assert (status, text) == Checks("readyz", checks).report(verbose=verbose)


async def test_serves_probes() -> None:
    """The answer of a check is the answer to the probe; other paths do not exist."""
    reasons = {"now": ""}
    endpoint = Endpoint(
        Bind("127.0.0.1", 0), {"/readyz": Checks("readyz", {"a": lambda: reasons["now"]}).handle}
    )
    await endpoint.start()
    url = f"http://127.0.0.1:{endpoint.port}"
    try:
        async with aiohttp.ClientSession() as session:
            async with session.get(f"{url}/readyz") as answer:
                assert (200, "ok\n") == (answer.status, await answer.text())
            reasons["now"] = "shutting down"
            async with session.get(f"{url}/readyz?verbose") as answer:
                assert (503, True) == (answer.status, "[-]a failed: shutting down" in await answer.text())
            async with session.get(f"{url}/") as answer:
                assert 404 == answer.status
    finally:
        await endpoint.close()
    await endpoint.close()


@pytest.mark.parametrize(
    ("text", "bind"),
    [
        (":8080", Bind(None, 8080)),
        ("127.0.0.1:0", Bind("127.0.0.1", 0)),
        ("[::1]:8080", Bind("::1", 8080)),
        ("localhost:65535", Bind("localhost", 65535)),
        ("0", None),
    ],
)
def test_reads_addresses(text: str, bind: Bind | None) -> None:
    """The forms controller-runtime takes; 0 disables; printing gives the form back."""
    assert bind == Bind.parse(text)
    assert text == (str(bind) if bind else "0")


@pytest.mark.parametrize(
    "text", ["", "8080", "host", ":", ":x", ":-1", ":65536", "::1:8080", ":\uff18\uff10"]
)
def test_refuses_what_is_no_address(text: str) -> None:
    """The message shows the forms."""
    with pytest.raises(ValueError, match=r"127\.0\.0\.1:8080|\[::1\]:8080"):
        Bind.parse(text)
