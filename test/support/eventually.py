"""States of the world that tests wait for, each in one call; failures say what was there instead."""

from collections.abc import Callable

from modelfleet.plan import Api
from test.support.kinds import INFERENCE_SERVICE
from test.support.samples import condition, settled, verdict
from test.support.waiting import wait_for
from test.support.world import Object, World

SECONDS = 90.0
"""Only a failing test waits so long. A controller acts within a second; where it must wait for a person's
help that makes no event (a quota, a role), it looks once a minute."""


class Eventually:
    """Waits for objects of one namespace."""

    def __init__(self, api: World, namespace: str, explain: Callable[[], str] = str) -> None:
        """`explain` adds to failure texts, such as the end of a controller's log."""
        self._api = api
        self._namespace = namespace
        self._explain = explain

    async def exists(self, kind: Api, name: str) -> Object:
        """Wait until an object is there."""

        async def there() -> bool:
            return await self._api.find(kind, self._namespace, name) is not None

        await wait_for(there, SECONDS, lambda: f"{kind} {name} should exist\n{self._explain()}")
        return await self._api.get(kind, self._namespace, name)

    async def gone(self, kind: Api, name: str) -> None:
        """Wait until an object is no more."""

        async def away() -> bool:
            return await self._api.find(kind, self._namespace, name) is None

        await wait_for(away, SECONDS, lambda: f"{kind} {name} should be gone\n{self._explain()}")

    async def holds(self, kind: Api, name: str, expected: object, view: Callable[[Object], object]) -> None:
        """Wait until what `view` sees in an object equals the expected value."""

        async def equal() -> bool:
            it = await self._api.find(kind, self._namespace, name)
            assert it is not None, f"there is no {kind} {name}"
            seen = view(it)
            assert expected == seen, f"it shows {seen}: {it.get('status')}"
            return True

        await wait_for(equal, SECONDS, lambda: f"{kind} {name} should show {expected}\n{self._explain()}")

    async def becomes(self, kind: Api, name: str, view: Callable[[Object], bool]) -> None:
        """Wait until an object is what `view` asks for."""
        await self.holds(kind, name, expected=True, view=view)

    async def settled(self, *names: str) -> None:
        """Wait until the controller has reported on the latest spec of each of these objects."""
        for name in names:
            await self.becomes(INFERENCE_SERVICE, name, settled)

    async def says(self, name: str, kind: str, status: str, reason: str) -> str:
        """Wait for a condition and return its message."""
        await self.holds(INFERENCE_SERVICE, name, (status, reason), lambda it: verdict(it, kind))
        it = await self._api.get(INFERENCE_SERVICE, self._namespace, name)
        return str(condition(it, kind).get("message", ""))

    async def silent(self, name: str, kind: str) -> None:
        """Wait until a condition is absent."""
        await self.holds(INFERENCE_SERVICE, name, {}, lambda it: condition(it, kind))
