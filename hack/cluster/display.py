"""What `up` says while it works: one live line on a terminal, plain lines otherwise.

NO_COLOR and TERM=dumb are honoured. Everything goes to stderr, so that stdout stays for results.
"""

import os
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

PLAIN_SECONDS = 30.0
"""Between two plain lines about the same part: a log shows life without being flooded."""
REFRESH_SECONDS = 0.5


class Display:
    """Prints steps, and keeps the line of `status` current in between."""

    def __init__(self, status: Callable[[float], str], *, console: Console | None = None) -> None:
        self._status = status
        self._console = console or Console(stderr=True, highlight=False, soft_wrap=True)
        self._start = time.monotonic()
        self._live = self._console.is_terminal and os.environ.get("TERM") != "dumb"
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._refresh, name="display", daemon=True)

    @property
    def seconds(self) -> float:
        """Since this display was made."""
        return time.monotonic() - self._start

    def say(self, text: str) -> None:
        """One finished step."""
        self._console.print(Text.assemble((f"{self.seconds:6.1f} s", "dim"), f"  {text}"))

    def show(self, text: str) -> None:
        """A table of its own."""
        self._console.print(Text(text))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _refresh(self) -> None:
        if self._live:
            self._refresh_live()
        else:
            self._refresh_plain()

    def _refresh_live(self) -> None:
        with Live(console=self._console, transient=True, refresh_per_second=1 / REFRESH_SECONDS) as live:
            while not self._stop.wait(REFRESH_SECONDS):
                text = self._status(time.monotonic())
                live.update(Spinner("dots", Text(text)) if text else "")

    def _refresh_plain(self) -> None:
        part, said = "", -PLAIN_SECONDS
        while not self._stop.wait(REFRESH_SECONDS):
            text, now = self._status(time.monotonic()), self.seconds
            name = text.partition("(")[0]  # a new part is said at once, the same one now and then
            if text and (name != part or now - said >= PLAIN_SECONDS):
                self.say(text)
                part, said = name, now
