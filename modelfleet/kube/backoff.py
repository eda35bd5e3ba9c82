"""How long a reflector waits between two failures (rule I8).

client-go's numbers: 0.8 s, doubled up to 30 s, each stretched by up to its own length so that the reflectors
of many processes don't come back together, and back to the start after two minutes without a failure.
"""

import asyncio
import random
from collections.abc import Callable

FIRST_SECONDS = 0.8
CAP_SECONDS = 30.0
HEALTHY_SECONDS = 120.0
"""client-go, tools/cache/reflector.go: NewReflectorWithOptions."""


class Backoff:
    """Consecutive failures of one reflector, on the event loop's clock."""

    def __init__(self, jitter: Callable[[], float] = random.random) -> None:
        """`jitter` draws from [0, 1)."""
        self._jitter = jitter
        self._step = FIRST_SECONDS
        self._failed_at: float | None = None

    def next(self, at_least: float = 0.0) -> float:
        """Count a failure; seconds to wait, never less than what the server asked for."""
        now = asyncio.get_running_loop().time()
        if self._failed_at is not None and now - self._failed_at >= HEALTHY_SECONDS:
            self._step = FIRST_SECONDS
        seconds = max(at_least, self._step * (1.0 + self._jitter()))
        self._failed_at = now + seconds
        self._step = min(CAP_SECONDS, self._step * 2)
        return seconds
