"""The promise of the election under everything at once: at most one process may write at any moment."""

import asyncio
import random
from typing import Any

import pytest

from modelfleet.kube.errors import TransportError
from modelfleet.kube.transport import Response
from modelfleet.runtime.leader import LeaderElector, LeaderLost
from test.unit.runtime.fake_lease_server import FakeLeaseServer, LoopClock, candidate, now

pytestmark = pytest.mark.looptime(noop_cycles=0)

SECONDS = 600.0
REPLICAS = 3


class FakePath(FakeLeaseServer):
    """One replica's way to the API server, with weather of its own: late, refused or lost for a while."""

    def __init__(self, server: FakeLeaseServer, dice: random.Random) -> None:
        super().__init__()
        self.fault = self._weather
        self._server = server
        self._dice = dice
        self._until = 0.0

    async def _weather(self, _: str) -> bool:
        if now() > self._until and self._dice.random() < 0.03:
            self._until = now() + self._dice.uniform(1, 30)
        if now() < self._until:
            match self._dice.randrange(4):
                case 0:
                    await asyncio.sleep(self._dice.uniform(0, 12))
                case 1:
                    raise TransportError("refused", sent=False)
                case 2:
                    return True
        return False

    def act(self, method: str, body: dict[str, Any]) -> Response:
        """Let the one server act."""
        return self._server.act(method, body)


class Replica:
    """A process that is started anew each time it ends."""

    def __init__(self, name: str, server: FakeLeaseServer, dice: random.Random) -> None:
        self.clock = LoopClock(rate=dice.uniform(0.9, 1.1))
        self.elector: LeaderElector | None = None
        self._name = name
        self._path = FakePath(server, dice)
        self._dice = dice

    async def run(self) -> None:
        """Live for ever."""
        for life in range(1_000_000):
            self.elector = candidate(
                self._path, f"{self._name}_{life}", clock=self.clock, jitter=self._dice.random
            )
            try:
                await self.elector.run()
            except LeaderLost:
                await asyncio.sleep(self._dice.uniform(0, 5))

    @property
    def leads(self) -> bool:
        """Whether it may write."""
        return self.elector is not None and self.elector.is_leader


@pytest.mark.parametrize("seed", range(10))
async def test_never_two_leaders(seed: int) -> None:
    """Whatever is late, refused or lost, and with clocks 10 % off, no two replicas may write at once."""
    dice = random.Random(seed)
    server = FakeLeaseServer()
    replicas = [Replica(f"replica-{number}", server, dice) for number in range(REPLICAS)]
    tasks = [asyncio.create_task(replica.run()) for replica in replicas]
    terms: list[str] = []
    while now() < SECONDS:
        await asyncio.sleep(dice.uniform(0.05, 0.5))
        leading = [replica.elector.identity for replica in replicas if replica.elector and replica.leads]

        assert len(leading) <= 1, f"{leading} at {now():.2f}s"
        if leading and leading != terms[-1:]:
            terms += leading
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

    assert len(terms) > 1, "the lease never changed hands: this run proved nothing"
