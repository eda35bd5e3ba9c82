"""What the server refused for good, so that it isn't asked again (rule A9).

A refusal holds for one fingerprint: what we sent, and the live object it was sent against. Any of the two
changing makes it a new question. It also lapses after an hour, because the rules of a cluster (a CRD's
schema, an API server's version) change without an event that reaches us; one request an hour is no storm.
"""

import asyncio
from collections.abc import Collection

from modelfleet.plan import Key, Problem

HOLDS_SECONDS = 3600.0
"""How long a refusal is taken for granted."""

Fingerprint = tuple[str, ...]


class Refusals:
    """Terminal problems by key and by what was attempted."""

    def __init__(self) -> None:
        self._known: dict[Key, dict[str, tuple[Fingerprint, float, Problem]]] = {}

    def recall(self, key: Key, attempt: str, fingerprint: Fingerprint) -> Problem | None:
        """The problem this very attempt met before, while that is still to be believed."""
        known = self._known.get(key, {}).get(attempt)
        if known is None or known[0] != fingerprint or known[1] <= asyncio.get_running_loop().time():
            return None
        return known[2]

    def remember(self, key: Key, attempt: str, fingerprint: Fingerprint, problem: Problem) -> None:
        """Don't try this again."""
        until = asyncio.get_running_loop().time() + HOLDS_SECONDS
        self._known.setdefault(key, {})[attempt] = (fingerprint, until, problem)

    def keep(self, key: Key, attempts: Collection[str]) -> None:
        """Forget what is no longer attempted."""
        if key in self._known:
            kept = {name: known for name, known in self._known[key].items() if name in attempts}
            if kept:
                self._known[key] = kept
            else:
                del self._known[key]

    def forget(self, key: Key) -> None:
        """The object of the key is gone."""
        self._known.pop(key, None)
