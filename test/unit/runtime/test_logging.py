"""One stream, structured, in UTC, without secrets."""

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from modelfleet.runtime.logging import REDACTED, Format, configure_logging


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Say so."""
        return True


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Logging is one for the process: give it back as it was."""
    root, ours = logging.getLogger(), logging.getLogger("modelfleet")
    before = root.handlers, root.level, ours.level
    yield
    logging.captureWarnings(capture=False)
    root.handlers = before[0]
    root.setLevel(before[1])
    ours.setLevel(before[2])
    structlog.reset_defaults()


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    """What was logged as JSON."""
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_json_off_a_terminal() -> None:
    """Keys as klog and zap name them, time in UTC, fields as they are."""
    stream = io.StringIO()
    configure_logging(stream=stream)
    structlog.get_logger("modelfleet.test").info("reconciled", key="ns/name", seconds=0.5)

    (line,) = lines(stream)
    assert line.pop("timestamp").endswith("Z")
    assert {
        "msg": "reconciled",
        "level": "info",
        "logger": "modelfleet.test",
        "key": "ns/name",
        "seconds": 0.5,
    } == line


@pytest.mark.parametrize(
    ("style", "stream", "no_color", "starts"),
    [
        ("auto", io.StringIO, "", "{"),
        ("auto", Terminal, "", "\x1b["),
        ("auto", Terminal, "1", "20"),
        ("console", io.StringIO, "", "20"),
        ("json", Terminal, "", "{"),
    ],
)
def test_chooses_its_form(
    monkeypatch: pytest.MonkeyPatch, style: Format, stream: type[io.StringIO], no_color: str, starts: str
) -> None:
    """JSON for machines, lines that start with a date for people; colours on terminals unless NO_COLOR."""
    monkeypatch.setenv("NO_COLOR", no_color)
    out = stream()
    configure_logging(style=style, stream=out)
    structlog.get_logger("modelfleet.test").info("hello")

    assert out.getvalue().startswith(starts)


def test_foreign_loggers_speak_from_warning_on() -> None:
    """At our debug level kubernetes_asyncio, which logs bodies at DEBUG, stays quiet."""
    stream = io.StringIO()
    configure_logging(level="debug", stream=stream)
    logging.getLogger("kubernetes_asyncio.client.rest").debug("response body: %s", "c2VjcmV0")
    logging.getLogger("aiohttp.access").info("GET /healthz")
    logging.getLogger("asyncio").warning("Executing %s took too long", "x")
    structlog.get_logger("modelfleet.test").debug("ours")

    assert ["Executing x took too long", "ours"] == [line["msg"] for line in lines(stream)]
    assert "asyncio" == lines(stream)[0]["logger"]


def test_our_stdlib_loggers_follow_our_level() -> None:
    """A module of ours that uses the standard library is ours all the same."""
    stream = io.StringIO()
    configure_logging(level="info", stream=stream)
    logging.getLogger("modelfleet.kube.reflector").info("listed %s", "pods")
    logging.getLogger("modelfleet.kube.reflector").debug("hidden")

    assert ["listed pods"] == [line["msg"] for line in lines(stream)]


@pytest.mark.parametrize("key", ["token", "Authorization", "password", "body", "data"])
def test_hides_values_under_telling_keys(key: str) -> None:
    """Whoever logs a secret by mistake logs its place instead."""
    stream = io.StringIO()
    configure_logging(stream=stream)
    structlog.get_logger("modelfleet.test").warning("oops", **{key: "hunter2hunter2"})

    assert REDACTED == lines(stream)[0][key]
    assert "hunter2" not in stream.getvalue()


def test_hides_credentials_inside_texts() -> None:
    """A header quoted in an error text loses its credential."""
    stream = io.StringIO()
    configure_logging(stream=stream)
    structlog.get_logger("modelfleet.test").error("failed", error="sent Bearer eyJhbGciOi.J9-_x got 401")
    logging.getLogger("aiohttp").error("header was: Basic dXNlcjpwYXNz")

    assert "eyJ" not in stream.getvalue()
    assert "dXNl" not in stream.getvalue()
    assert f"sent Bearer {REDACTED} got 401" == lines(stream)[0]["error"]


@pytest.mark.parametrize("style", ["json", "console"])
def test_tracebacks_show_no_locals(style: Format) -> None:
    """A traceback names the line and the error, never the values around them."""
    stream = io.StringIO()
    configure_logging(style=style, stream=stream)

    def fail() -> None:
        secret = "hunter2".upper()
        raise ValueError(f"{len(secret)} characters")

    try:
        fail()
    except ValueError:
        structlog.get_logger("modelfleet.test").exception("failed")

    assert "ValueError: 7 characters" in stream.getvalue()
    assert "HUNTER2" not in stream.getvalue()


async def test_a_lost_task_is_heard_of() -> None:
    """An exception that nobody retrieved reaches the stream with its traceback."""
    stream = io.StringIO()
    configure_logging(stream=stream)
    context = {"message": "Task exception was never retrieved", "exception": RuntimeError("lost")}
    asyncio.get_running_loop().call_exception_handler(context)

    (line,) = lines(stream)
    assert "Task exception was never retrieved" == line["msg"]
    assert "RuntimeError: lost" in line["exception"]
