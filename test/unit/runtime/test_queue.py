"""Rules Q1-Q8 and Q11 of the work queue, case by case; test_queue_model.py compares it with a model."""

import asyncio
import random

import pytest

from modelfleet.runtime.backoff import Backoff
from modelfleet.runtime.queue import EDGE, HEARTBEAT_SECONDS, LOW, QueueShutDown, WorkQueue

pytestmark = pytest.mark.looptime


def now() -> float:
    """The loop's time."""
    return asyncio.get_running_loop().time()


class Meter:
    """Keeps what a queue reports."""

    def __init__(self) -> None:
        self.adds = 0
        self.retries = 0
        self.depths: dict[int, int] = {}
        self.waited: list[float] = []
        self.worked: list[float] = []

    def added(self) -> None:
        """Count."""
        self.adds += 1

    def depth(self, priority: int, keys: int) -> None:
        """Keep the last one."""
        self.depths[priority] = keys

    def started(self, waited: float) -> None:
        """Keep it."""
        self.waited.append(waited)

    def finished(self, worked: float) -> None:
        """Keep it."""
        self.worked.append(worked)

    def retried(self) -> None:
        """Count."""
        self.retries += 1


async def take(queue: WorkQueue[str]) -> str:
    """Get and give back at once."""
    key = await queue.get()
    queue.done(key)
    return key


async def test_adds_collapse() -> None:
    """Any number of adds before a worker comes are one run."""
    queue: WorkQueue[str] = WorkQueue()
    for _ in range(5):
        queue.add("a")

    assert "a" == await take(queue)
    assert 0 == len(queue)


async def test_one_worker_per_key_and_no_lost_edge() -> None:
    """A key in work is not handed out again; adds meanwhile cause exactly one run after `done`."""
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    await queue.get()
    queue.add("a")
    queue.add("a")
    held_back = len(queue)
    queue.done("a")

    assert (0, 1) == (held_back, len(queue))
    assert "a" == await take(queue)
    assert 0 == len(queue)


async def test_first_come_first_served() -> None:
    """Within one priority the order is the order of arrival."""
    queue: WorkQueue[str] = WorkQueue()
    for key in "cab":
        queue.add(key)
    queue.add("c")

    assert ["c", "a", "b"] == [await take(queue) for _ in range(3)]


async def test_higher_priority_first() -> None:
    """Rule Q7: edges overtake the initial list."""
    queue: WorkQueue[str] = WorkQueue()
    queue.add("initial", priority=LOW)
    queue.add("edge", priority=EDGE)

    assert ["edge", "initial"] == [await take(queue), await take(queue)]


async def test_raising_a_priority_moves_to_the_end_of_its_class() -> None:
    """Rule Q7: the priority is the highest asked for; a raised key queues behind those already there."""
    queue: WorkQueue[str] = WorkQueue()
    for key in ("x", "y"):
        queue.add(key, priority=LOW)
    queue.add("edge")
    queue.add("y", priority=EDGE)
    queue.add("y", priority=LOW)

    assert ["edge", "y", "x"] == [await take(queue) for _ in range(3)]


async def test_priority_of_an_add_during_work_is_kept() -> None:
    """A key that became urgent while a worker held it is urgent when it comes back."""
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a", priority=LOW)
    await queue.get()
    queue.add("b", priority=LOW)
    queue.add("a", priority=EDGE)
    queue.done("a")

    assert ["a", "b"] == [await take(queue), await take(queue)]


async def test_earliest_delay_wins() -> None:
    """Rule Q2: three delayed requests are one run, at the earliest time."""
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("a", 10)
    queue.add_after("a", 1)
    queue.add_after("a", 30)
    await take(queue)
    first = now()
    waiting = asyncio.create_task(take(queue))
    await asyncio.sleep(60)

    assert 1 == first
    assert not waiting.done()
    waiting.cancel()


async def test_delays_keep_the_highest_priority() -> None:
    """Rule Q7: ready time is the minimum, priority the maximum of the requests, in either order."""
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("late but urgent", 1, priority=LOW)
    queue.add_after("late but urgent", 5, priority=EDGE)
    queue.add_after("plain", 1, priority=LOW)
    await asyncio.sleep(2)

    assert ["late but urgent", "plain"] == [await take(queue), await take(queue)]


async def test_many_delays_one_timer() -> None:
    """Rule Q2: whatever is delayed, one timer runs (k/k#83895), and it beats at least every 10 s."""
    queue: WorkQueue[int] = WorkQueue()
    for key in range(1000):
        queue.add_after(key, 3600 - key)
    loop = asyncio.get_running_loop()
    timers = [handle for handle in loop._scheduled if not handle.cancelled()]  # type: ignore[attr-defined]

    assert 1 == len(timers)
    assert now() + HEARTBEAT_SECONDS == timers[0].when()
    queue.shut_down(drain=False)


async def test_replaced_delays_leave_no_garbage() -> None:
    """A key that asks for the next look on each run does not grow the heap for hours."""
    queue: WorkQueue[str] = WorkQueue()
    for _ in range(10_000):
        queue.add_after("a", 36_000)
        queue.add("a")
        await take(queue)

    assert len(queue._delays._heap) < 100
    queue.shut_down(drain=False)


async def test_immediate_add_absorbs_the_delay() -> None:
    """Rule Q3 as decided: an edit runs now, and the timer does not survive it."""
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("a", 600)
    queue.add("a")
    await take(queue)
    first = now()
    waiting = asyncio.create_task(take(queue))
    await asyncio.sleep(3600)

    assert 0 == first
    assert not waiting.done()
    waiting.cancel()


async def test_absorbed_delay_lends_its_priority() -> None:
    """A low-priority add does not push back what somebody urgently wanted later."""
    queue: WorkQueue[str] = WorkQueue()
    queue.add("first", priority=LOW)
    queue.add_after("a", 600, priority=EDGE)
    queue.add("a", priority=LOW)

    assert "a" == await take(queue)
    await take(queue)


async def test_due_keys_ignore_delays() -> None:
    """A key that is due, or due again after its worker, decides anew: a delayed request adds nothing."""
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    queue.add_after("a", 600)
    await queue.get()
    queue.add("a")
    queue.add_after("a", 600)
    queue.done("a")
    await take(queue)
    waiting = asyncio.create_task(take(queue))
    await asyncio.sleep(3600)

    assert not waiting.done()
    waiting.cancel()


async def test_delay_over_while_in_work() -> None:
    """A delay that ends while a worker holds the key is a run after it, not beside it."""
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    await queue.get()
    queue.add_after("a", 1)
    await asyncio.sleep(5)
    held_back = len(queue)
    queue.done("a")

    assert (0, 1) == (held_back, len(queue))


async def test_rate_limited_curve() -> None:
    """Rule Q4 through the queue: each failure doubles the wait; a floor is waited for on top of it."""
    queue: WorkQueue[str] = WorkQueue(backoff=Backoff(base=1.0, uniform=lambda _, high: high))
    times = []
    for floor in (0.0, 0.0, 0.0, 30.0):
        queue.add_rate_limited("a", floor=floor)
        await take(queue)
        times.append(now())

    assert [1.0, 3.0, 7.0, 45.0] == times
    assert 4 == queue.failures("a")


async def test_forget_resets_the_curve() -> None:
    """Rule Q6: after a success the next failure is the first."""
    queue: WorkQueue[str] = WorkQueue(backoff=Backoff(base=1.0, uniform=lambda _, high: high))
    for _ in range(5):
        queue.add_rate_limited("a")
    queue.forget("a")
    queue.add("a")
    await take(queue)
    queue.add_rate_limited("a")
    await take(queue)

    assert 1.0 == now()
    assert 1 == queue.failures("a")


async def test_cancelled_waiter_passes_its_wake_up_on() -> None:
    """Rule Q1: a waiter cancelled after it was woken leaves the key to another."""
    queue: WorkQueue[str] = WorkQueue()
    waiters = [asyncio.create_task(queue.get()) for _ in range(2)]
    await asyncio.sleep(0)
    queue.add("a")
    waiters[0].cancel()
    await asyncio.sleep(0.1)

    assert waiters[0].cancelled()
    assert "a" == waiters[1].result()


async def test_workers_cancelled_anywhere_lose_nothing() -> None:
    """Rule Q1: workers die at random awaits; whoever comes after finds every key, each with one holder."""
    rng = random.Random(1)
    queue: WorkQueue[int] = WorkQueue()
    held: set[int] = set()
    served: set[int] = set()

    async def work() -> None:
        while True:
            key = await queue.get()
            try:
                assert key not in held
                held.add(key)
                await asyncio.sleep(rng.random())
                served.add(key)
            finally:
                held.discard(key)
                queue.done(key)
                if key not in served:
                    queue.add(key)

    for key in range(200):
        queue.add_after(key, rng.random() * 20)
    for _ in range(300):
        worker = asyncio.create_task(work())
        await asyncio.sleep(rng.random() * 2)
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
    last = [asyncio.create_task(work()) for _ in range(4)]
    await asyncio.sleep(600)
    for worker in last:
        worker.cancel()
    await asyncio.gather(*last, return_exceptions=True)

    assert set(range(200)) == served
    assert 0 == len(queue)


async def test_every_key_runs_after_its_last_trigger() -> None:
    """Rule Q11: with 2 workers and 10,000 triggers no trigger is skipped (kube-rs#1322)."""
    rng = random.Random(2)
    queue: WorkQueue[int] = WorkQueue()
    triggered: dict[int, int] = {}
    seen: dict[int, int] = {}

    async def work() -> None:
        while True:
            try:
                key = await queue.get()
            except QueueShutDown:
                return
            try:
                seen[key] = triggered[key]
                await asyncio.sleep(rng.choice((0, 0, 0.001)))
            finally:
                queue.done(key)

    workers = [asyncio.create_task(work()) for _ in range(2)]
    for number in range(10_000):
        key = rng.randrange(300)
        triggered[key] = number
        queue.add(key, priority=rng.choice((LOW, EDGE)))
        if number % 7 == 0:
            await asyncio.sleep(0)
    queue.shut_down(drain=True)
    await asyncio.gather(*workers)

    assert triggered == seen


async def test_shutdown_drops() -> None:
    """Rule Q8: dropping leaves nothing to hand out, delayed keys included, and wakes those who wait."""
    queue: WorkQueue[str] = WorkQueue()
    waiters = [asyncio.create_task(queue.get()) for _ in range(3)]
    await asyncio.sleep(0)
    queue.add("a")
    queue.add_after("b", 1)
    queue.shut_down(drain=False)
    queue.add("c")
    queue.add_after("d", 1)
    ended = await asyncio.gather(*waiters, return_exceptions=True)
    await asyncio.sleep(5)

    assert [QueueShutDown] * 3 == [type(end) for end in ended]
    assert 0 == len(queue)


async def test_shutdown_drains() -> None:
    """Rule Q8: draining hands out what is due, what becomes due again by `done` too, then ends."""
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    queue.add("b")
    await queue.get()
    queue.add("a")
    queue.add_after("later", 1)
    queue.shut_down(drain=True)
    queue.add("c")
    first = await take(queue)
    queue.done("a")

    assert ["b", "a"] == [first, await take(queue)]
    with pytest.raises(QueueShutDown):
        await queue.get()


async def test_shutdown_at_any_moment() -> None:
    """Rule Q8: 1,000 shutdowns at random moments end every worker (c-r#3538)."""
    rng = random.Random(3)

    async def work(queue: WorkQueue[int]) -> None:
        while True:
            try:
                key = await queue.get()
            except QueueShutDown:
                return
            try:
                await asyncio.sleep(rng.choice((0, 0.01)))
            finally:
                queue.done(key)

    for _ in range(1000):
        queue: WorkQueue[int] = WorkQueue()
        workers = [asyncio.create_task(work(queue)) for _ in range(3)]
        for key in range(rng.randrange(6)):
            queue.add_after(key, rng.choice((0, 0.005, 1)))
        await asyncio.sleep(rng.choice((0, 0.004, 0.02)))
        queue.shut_down(drain=rng.random() < 0.5)
        _, stuck = await asyncio.wait(workers, timeout=10)

        assert set() == stuck


async def test_metrics() -> None:
    """What is reported: adds, depth by priority, waiting and working time, retries, work in progress."""
    meter = Meter()
    queue: WorkQueue[str] = WorkQueue(metrics=meter, backoff=Backoff(uniform=lambda _, high: high))
    queue.add("a", priority=LOW)
    queue.add("a", priority=LOW)
    await asyncio.sleep(2)
    queue.add("a", priority=EDGE)
    await queue.get()
    await asyncio.sleep(3)

    assert (3.0, 3.0) == (queue.unfinished_seconds(), queue.longest_running_seconds())
    queue.done("a")
    queue.add_rate_limited("a")
    assert 1 == meter.adds
    await take(queue)

    assert (2, 1) == (meter.adds, meter.retries)
    assert {LOW: 0, EDGE: 0} == meter.depths
    assert [2.0, 0.0] == meter.waited
    assert [3.0, 0.0] == meter.worked
    assert (0.0, 0.0) == (queue.unfinished_seconds(), queue.longest_running_seconds())


async def test_shutdown_reports_empty_depths() -> None:
    """Dropped keys do not linger in workqueue_depth."""
    meter = Meter()
    queue: WorkQueue[str] = WorkQueue(metrics=meter)
    queue.add("a")
    queue.add("b", priority=LOW)
    queue.shut_down(drain=False)

    assert {EDGE: 0, LOW: 0} == meter.depths
