"""How long a failing key waits before it is tried again (rule Q4).

Exponential per key, 5 ms * 2^n, with full jitter so that keys that failed together don't come back
together, capped at 5 minutes. There is no bucket shared by all keys: controller-runtime's priority queue
dropped it, because one broken object then delays the good ones. `forget` is called on success and on
deletion, else the table grows with every name that ever failed (rule Q6).
"""

import random
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

BASE_SECONDS = 0.005
"""First step; client-go's DefaultTypedControllerRateLimiter (rule Q4)."""
CAP_SECONDS = 300.0
"""Longest wait. client-go's 1000 s leaves a repaired cluster idle for a quarter of an hour (rule Q4)."""
_LAST_STEP = 16
"""5 ms * 2^16 is past the cap; counting further would only overflow."""


class Backoff(Generic[K]):
    """Counts the failures in a row of each key."""

    def __init__(
        self,
        *,
        base: float = BASE_SECONDS,
        cap: float = CAP_SECONDS,
        uniform: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._base = base
        self._cap = cap
        self._uniform = uniform
        self._failures: dict[K, int] = {}

    def failed(self, key: K) -> float:
        """Count one more failure; the seconds to wait, drawn from 0 to the step reached."""
        step = self._failures.get(key, 0)
        self._failures[key] = step + 1
        return self._uniform(0.0, min(self._cap, self._base * 2 ** min(step, _LAST_STEP)))

    def failures(self, key: K) -> int:
        """Failures in a row so far."""
        return self._failures.get(key, 0)

    def forget(self, key: K) -> None:
        """Start over: the key succeeded or is gone."""
        self._failures.pop(key, None)

    def __len__(self) -> int:
        return len(self._failures)
