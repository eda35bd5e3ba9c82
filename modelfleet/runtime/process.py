"""How the process ends: exit codes, the two ways out, and what signals do.

The first SIGTERM or SIGINT asks for an ordered stop. The second ends the process at once: its handler runs
between two bytecodes of whatever the event loop is stuck in. It is a handler of ours and not the default
action, because the kernel ignores default actions of signals sent to process 1 of a container.
"""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from enum import IntEnum

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

SIGNALLED = 128
"""A second signal ends the process with this plus its number, as shells report a death by signal."""


class Exit(IntEnum):
    """Exit codes of the controller."""

    CLEAN = 0
    """Stopped in order, every reconcile finished."""
    FAILURE = 1
    """It could not start, a part failed, or reconciles were cut off; the log says which."""
    USAGE = 2
    """A flag or environment variable has an unusable value; click's code too."""
    LEADER_LOST = 3
    """The Lease was lost: restart and stand by."""


def exit_now(code: int) -> None:
    """End without unwinding: no handler, no `finally` and no late write can run any more."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


@contextlib.contextmanager
def stop_signals(stop: Callable[[], None], exit_process: Callable[[int], None]) -> Iterator[None]:
    """While inside, the first signal calls `stop` on the event loop and the second `exit_process`."""
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}

    def first() -> None:
        for number in STOP_SIGNALS:
            loop.remove_signal_handler(number)
            signal.signal(number, lambda received, _frame: exit_process(SIGNALLED + received))
        stop()

    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, first)
    try:
        yield
    finally:
        for number in STOP_SIGNALS:
            loop.remove_signal_handler(number)
            signal.signal(number, before[number])
