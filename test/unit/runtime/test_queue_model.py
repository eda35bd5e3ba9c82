"""The work queue against a model of it, driven by hypothesis in virtual time (rules Q1-Q3, Q7)."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

import looptime
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from modelfleet.runtime.queue import EDGE, LOW, WorkQueue

T = TypeVar("T")

KEYS = st.sampled_from("abcde")
PRIORITIES = st.sampled_from((LOW, EDGE, 10))
DELAYS = st.integers(1, 40)


@dataclass
class Waiting:
    """A key that is due, or will be."""

    priority: int
    order: int
    when: float = 0.0


@dataclass
class Model:
    """What the module promises, in the plainest form."""

    now: float = 0.0
    counter: int = 0
    due: dict[str, Waiting] = field(default_factory=dict)
    delayed: dict[str, Waiting] = field(default_factory=dict)
    held: set[str] = field(default_factory=set)

    def _next(self) -> int:
        self.counter += 1
        return self.counter

    def add(self, key: str, priority: int) -> None:
        """Due now; a delay is absorbed, a higher priority moves to the end of its class."""
        if (delay := self.delayed.pop(key, None)) is not None:
            priority = max(priority, delay.priority)
        known = self.due.get(key)
        if known is None or priority > known.priority:
            self.due[key] = Waiting(priority, self._next())

    def add_after(self, key: str, seconds: float, priority: int) -> None:
        """Due later; earliest time, highest priority."""
        if key in self.due:
            return
        known = self.delayed.setdefault(key, Waiting(priority, self._next(), self.now + seconds))
        known.priority = max(known.priority, priority)
        if self.now + seconds < known.when:
            known.when, known.order = self.now + seconds, self._next()

    def advance(self, seconds: float) -> None:
        """Delays end in the order of their times."""
        self.now += seconds
        for key, delay in sorted(self.delayed.items(), key=lambda entry: (entry[1].when, entry[1].order)):
            if delay.when <= self.now:
                del self.delayed[key]
                self.add(key, delay.priority)

    def takeable(self) -> list[str]:
        """Keys a worker may take, best first."""
        free = [key for key in self.due if key not in self.held]
        return sorted(free, key=lambda key: (-self.due[key].priority, self.due[key].order))

    def done(self, key: str) -> None:
        """A key that is due again queues up when its worker lets go."""
        self.held.remove(key)
        if key in self.due:
            self.due[key].order = self._next()


class QueueMachine(RuleBasedStateMachine):
    """Runs queue and model side by side."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = looptime.new_event_loop()
        self.model = Model()
        self.queue: WorkQueue[str] = WorkQueue()

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something in the loop."""
        return self.loop.run_until_complete(work)

    @rule(key=KEYS, priority=PRIORITIES)
    def add(self, key: str, priority: int) -> None:
        """An edge."""

        async def step() -> None:
            self.queue.add(key, priority=priority)

        self.do(step())
        self.model.add(key, priority)

    @rule(key=KEYS, seconds=DELAYS, priority=PRIORITIES)
    def add_after(self, key: str, seconds: int, priority: int) -> None:
        """A later look."""

        async def step() -> None:
            self.queue.add_after(key, seconds, priority=priority)

        self.do(step())
        self.model.add_after(key, seconds, priority)

    @rule(seconds=DELAYS)
    def advance(self, seconds: int) -> None:
        """Time passes."""

        async def step() -> None:
            await asyncio.sleep(seconds)
            await asyncio.sleep(0)

        self.do(step())
        self.model.advance(seconds)

    @precondition(lambda self: self.model.takeable())
    @rule()
    def get(self) -> None:
        """A worker takes exactly the key the model names."""
        expected = self.model.takeable()[0]

        assert expected == self.do(self.queue.get())
        del self.model.due[expected]
        self.model.held.add(expected)

    @precondition(lambda self: not self.model.takeable())
    @rule()
    def get_nothing(self) -> None:
        """With nothing to take a worker waits; cancelled, it takes nothing with it."""

        async def step() -> bool:
            waiter = asyncio.create_task(self.queue.get())
            await asyncio.sleep(0)
            waiter.cancel()
            await asyncio.wait([waiter])
            return waiter.cancelled()

        assert self.do(step())

    @precondition(lambda self: self.model.held)
    @rule(data=st.data())
    def done(self, data: st.DataObject) -> None:
        """A worker gives a key back."""
        key = data.draw(st.sampled_from(sorted(self.model.held)))

        async def step() -> None:
            self.queue.done(key)

        self.do(step())
        self.model.done(key)

    @invariant()
    def same_content(self) -> None:
        """The same keys are due, delayed and held; none is due and delayed."""
        assert len(self.model.takeable()) == len(self.queue)
        assert {key: due.priority for key, due in self.model.due.items()} == self.queue._dirty
        assert set(self.model.delayed) == set(self.queue._delays._entries)
        assert self.model.held == set(self.queue._processing)
        assert not set(self.queue._dirty) & set(self.queue._delays._entries)

    def teardown(self) -> None:
        """Leave no timer and no loop behind."""

        async def step() -> None:
            self.queue.shut_down(drain=False)

        self.do(step())
        self.loop.close()


QueueMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestQueueModel = QueueMachine.TestCase
