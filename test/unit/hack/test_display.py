import io
import threading
from collections.abc import Callable

import pytest
from rich.console import Console

from hack.cluster import display
from hack.cluster.display import Display


class Line(io.StringIO):
    """A plain stream that tells when something was written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def write(self, text: str) -> int:
        """Write and tell."""
        count = super().write(text)
        self.written.set()
        return count


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(display, "REFRESH_SECONDS", 0.001)


def plain(status: Callable[[float], str]) -> tuple[Display, Line]:
    """A display that writes to a file."""
    stream = Line()
    return Display(status, console=Console(file=stream, width=200, soft_wrap=True)), stream


def test_plain_output_has_no_control_characters() -> None:
    """What goes to a file or a CI log is text: no colour, no cursor movement, one line a step."""
    shown, stream = plain(lambda _: "building etcd (1/2, 5 s of about 10 s); about 20 s left")
    with shown:
        assert stream.written.wait(timeout=10)
        shown.say("API server at https://127.0.0.1:1")
    text = stream.getvalue()
    assert "\x1b" not in text
    assert text.count("building etcd") == 1  # said once, not at every refresh
    assert text.splitlines()[-1].endswith("API server at https://127.0.0.1:1")


def test_markup_in_paths_is_shown_as_it_is() -> None:
    """A path with brackets is no markup."""
    shown, stream = plain(lambda _: "")
    with shown:
        shown.say("log /tmp/[bold]/x")
    assert "/tmp/[bold]/x" in stream.getvalue()
