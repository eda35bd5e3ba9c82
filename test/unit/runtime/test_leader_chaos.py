"""The promise of the election under everything at once: at most one process may write at any moment."""

import asyncio
import random

import pytest

from modelfleet.kube.errors import TransportError
from modelfleet.runtime.leader import LeaderElector, LeaderLost
from test.unit.runtime.fake_lease_server import FakeLeaseServer, LoopClock, candidate, now

pytestmark = pytest.mark.looptime(noop_cycles=0)

SECONDS = 600.0
REPLICAS = 3


class FakeOutages:
    """Spells of bad weather: answers late, refused, or lost after the server acted."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._until = 0.0

    async def __call__(self, _: str) -> bool:
        """A `Fault`."""
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


class Replica:
    """A process that is started anew each time it ends."""

    def __init__(self, name: str, server: FakeLeaseServer, dice: random.Random) -> None:
        self.clock = LoopClock()
        self.elector: LeaderElector | None = None
        self._name = name
        self._server = server
        self._dice = dice

    async def run(self) -> None:
        """Live for ever."""
        for life in range(1_000_000):
            self.elector = candidate(
                self._server, f"{self._name}_{life}", clock=self.clock, jitter=self._dice.random
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
    """Whatever is late, refused, lost or put to sleep, no two of three replicas may write at once."""
    dice = random.Random(seed)
    server = FakeLeaseServer()
    server.fault = FakeOutages(dice)
    replicas = [Replica(f"replica-{number}", server, dice) for number in range(REPLICAS)]
    tasks = [asyncio.create_task(replica.run()) for replica in replicas]
    terms: list[str] = []
    while now() < SECONDS:
        await asyncio.sleep(dice.uniform(0.05, 0.5))
        if dice.random() < 0.005:
            dice.choice(replicas).clock.slept += dice.uniform(1, 40)
        leading = [replica.elector.identity for replica in replicas if replica.elector and replica.leads]

        assert len(leading) <= 1, f"{leading} at {now():.2f}s"
        if leading and leading != terms[-1:]:
            terms += leading
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

    assert len(terms) > 1, "the lease never changed hands: this run proved nothing"
