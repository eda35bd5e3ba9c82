"""Plans against a server that fails in every way: what was written, what came out, what is remembered."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from modelfleet.kube.client import Client
from modelfleet.kube.errors import FencedError
from modelfleet.kube.resource import Resource
from modelfleet.kube.store import Store
from modelfleet.plan import (
    Action,
    Api,
    Apply,
    Cause,
    Create,
    Delete,
    Key,
    Manifest,
    Outcomes,
    Patch,
    Plan,
    Precondition,
    Ref,
    Result,
)
from modelfleet.runtime.executor import Executor
from modelfleet.runtime.refusals import HOLDS_SECONDS
from modelfleet.runtime.written import Written
from test.unit.runtime.fake_api import FakeApiServer, Fault, Object, Request, failure

pytestmark = pytest.mark.looptime

THING = Api("example.dev", "v1", "Thing", "things")
JOB = Api("batch", "v1", "Job", "jobs")
KEY = Key("a", "parent")
OWNER = "owner-uid"
MANAGER = "modelfleet-controller"
IMMUTABLE = failure(
    422, "Invalid", "is invalid", {"causes": [{"field": "spec.x", "message": "field is immutable"}]}
)


def ref(name: str, api: Api = THING) -> Ref:
    """An object in the namespace of the key."""
    return Ref(api, "a", name)


def manifest(size: int = 1, owner: str = OWNER) -> Manifest:
    """A child of ours."""
    owners = [{"apiVersion": "v1", "kind": "Owner", "name": "o", "uid": owner, "controller": True}]
    return Manifest.of({"metadata": {"ownerReferences": owners}, "spec": {"size": size}})


def birth(name: str, *after: str, size: int = 1) -> Apply:
    """An apply that must create."""
    return Apply(name, ref(name), manifest(size), MANAGER, OWNER, after=after)


def spec_of(obj: Object | None) -> Any:
    """The spec of a live object."""
    return obj["spec"] if obj is not None else None


class World:
    """An executor, its server and its one store."""

    def __init__(self) -> None:
        self.server = FakeApiServer()
        self.client = Client(self.server)
        self.store: Store[Object] = Store(
            Resource(api=THING, view=lambda obj: dict(obj.get("spec", {})), manager=MANAGER)
        )
        self.store.feed().replace([], 100)
        self.ready: list[Key] = []
        self.written = Written({THING: self.store}, self.ready.append)
        self.executor = Executor(self.client, {THING: self.store}, self.written)

    async def run(self, *actions: Action) -> Outcomes:
        """Carry out one plan."""
        return await self.executor.run(Plan(actions), KEY)

    def update(self, name: str, size: int = 2) -> Apply:
        """An apply decided from what the server has now."""
        live = self.server.live(ref(name))
        assert live is not None
        item = self.store.resource.decode(live)
        at = Precondition(item.meta.uid, item.meta.resource_version)
        return Apply(name, ref(name), manifest(size), MANAGER, OWNER, at, item.digest)


def results(outcomes: Outcomes) -> dict[str, str]:
    """Outcomes in short: Done, Skipped, or the cause of a failure."""
    return {
        name: outcome.problem.cause.value if outcome.problem else outcome.result.value
        for name, outcome in outcomes.items()
    }


def on(method: str, name: str) -> Any:
    """Requests of a method about an object."""
    return lambda request: request.method == method and request.path.endswith(f"/{name}")


async def test_empty_plan_sends_nothing() -> None:
    """A converged object costs no request (architecture.md section 2)."""
    world = World()

    assert {} == await world.run()
    assert [] == world.server.requests


async def test_birth_update_patch_delete() -> None:
    """Each kind of action changes the cluster as it says."""
    world = World()
    await world.run(birth("x"), birth("y"))
    born = spec_of(world.server.live(ref("x")))
    update = world.update("x", size=5)
    outcomes = await world.run(update)
    live = world.server.live(ref("y"))
    assert live is not None
    at = Precondition(live["metadata"]["uid"], live["metadata"]["resourceVersion"])
    outcomes |= await world.run(Patch("patch", ref("y"), {"spec": {"size": 7}}, MANAGER, at))
    patched = spec_of(world.server.live(ref("y")))
    live = world.server.live(ref("y"))
    assert live is not None
    at = Precondition(live["metadata"]["uid"], live["metadata"]["resourceVersion"])
    outcomes |= await world.run(Delete("delete", ref("y"), at))

    assert {"size": 1} == born
    assert {"size": 5} == spec_of(world.server.live(ref("x")))
    assert {"size": 7} == patched
    assert world.server.live(ref("y")) is None
    assert {"x": "Done", "patch": "Done", "delete": "Done"} == results(outcomes)


async def test_outcomes_keep_the_order_of_the_plan() -> None:
    """One outcome for each action, in the order of the plan."""
    world = World()
    outcomes = await world.run(birth("b"), birth("a", "b"), birth("c"))

    assert ["b", "a", "c"] == list(outcomes)


async def test_failure_skips_dependants_only() -> None:
    """What depends on a failed action, directly or not, is skipped; the rest is done."""
    world = World()
    world.server.faults.append(Fault(on("PATCH", "b"), failure(403, "Forbidden", "exceeded quota: q")))
    outcomes = await world.run(birth("a"), birth("b"), birth("c", "b"), birth("d", "c"), birth("e", "a"))

    assert {"a": "Done", "b": "QuotaExceeded", "c": "Skipped", "d": "Skipped", "e": "Done"} == results(
        outcomes
    )
    assert Result.SKIPPED == outcomes["d"].result
    assert world.server.live(ref("c")) is None


async def test_independent_actions_run_side_by_side() -> None:
    """A child that hangs holds up its dependants only."""
    world = World()
    hold = asyncio.Event()
    world.server.faults.append(Fault(on("PATCH", "slow"), hold=hold))
    run = asyncio.create_task(world.run(birth("slow"), birth("quick"), birth("after", "slow")))
    await asyncio.sleep(1)
    while_held = [world.server.live(ref(name)) is not None for name in ("slow", "quick", "after")]
    hold.set()

    assert [True, True, False] == while_held
    assert {"slow": "Done", "quick": "Done", "after": "Done"} == results(await run)


async def test_own_child_that_was_out_of_sight_is_not_born_again() -> None:
    """Rules A8, I14: what a newborn gets is not for a child that lives; it is shown, then decided about."""
    world = World()
    before = world.server.put(ref("x"), {"spec": {"size": 9}}, owner=OWNER)
    labelled = Manifest.of({"metadata": {"labels": {"ours": "yes"}}, "spec": {"size": 3}})
    outcomes = await world.run(replace(birth("x"), manifest=labelled))
    live = world.server.live(ref("x"))
    assert live is not None

    assert {"x": "Stale"} == results(outcomes)
    assert ({"size": 9}, before["metadata"]["uid"]) == (live["spec"], live["metadata"]["uid"])
    assert {"ours": "yes"} == live["metadata"]["labels"]


@pytest.mark.parametrize("owner", ["", "someone-else"])
async def test_foreign_object_is_left_alone(owner: str) -> None:
    """Rule A8: an object that nobody or another controls is a NameConflict and stays byte for byte."""
    world = World()
    before = dict(world.server.put(ref("x"), {"spec": {"size": 9}}, owner=owner))
    outcomes = await world.run(birth("x"), birth("y", "x"))

    assert {"x": "NameConflict", "y": "Skipped"} == results(outcomes)
    assert before == world.server.live(ref("x"))


async def test_own_child_on_its_way_out() -> None:
    """A child that is being deleted is not written to; it is born again when it is gone."""
    world = World()
    body = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"size": 9}}
    world.server.put(ref("x"), body, owner=OWNER)

    assert {"x": "Stale"} == results(await world.run(birth("x")))
    assert {"size": 9} == spec_of(world.server.live(ref("x")))


async def test_conflict_without_a_holder_is_stale() -> None:
    """A 409 whose object is gone a moment later, or never was (a quota's own conflict), is tried again."""
    world = World()
    conflict = failure(409, "Conflict", 'Operation cannot be fulfilled on resourcequotas "q"')
    world.server.faults.append(Fault(on("PATCH", "x"), conflict))

    assert {"x": "Stale"} == results(await world.run(birth("x")))
    assert {"x": "Done"} == results(await world.run(birth("x")))


async def test_stale_decision_changes_nothing() -> None:
    """Rule A7: an update of an object that moved on, or is gone, is refused and resurrects nothing."""
    world = World()
    await world.run(birth("x"), birth("gone"))
    moved, gone = world.update("x"), world.update("gone")
    world.server.put(ref("x"), {"spec": {"size": 50}})
    del world.server.objects["/apis/example.dev/v1/namespaces/a/things/gone"]
    outcomes = await world.run(moved, gone, Delete("delete", ref("x"), moved.live or Precondition("", "")))

    assert {"x": "Stale", "gone": "Stale", "delete": "Stale"} == results(outcomes)
    assert {"size": 50} == spec_of(world.server.live(ref("x")))
    assert world.server.live(ref("gone")) is None


async def test_deleting_what_is_gone_is_done() -> None:
    """Somebody was faster: the wish is fulfilled."""
    world = World()

    assert {"d": "Done"} == results(await world.run(Delete("d", ref("x"), Precondition("u", "1"))))


async def test_refusal_is_not_sent_again() -> None:
    """Rule A9: what the server refuses for good is sent once, and told each time."""
    world = World()
    await world.run(birth("x"))
    world.server.faults.append(Fault(on("PATCH", "x"), IMMUTABLE, times=100))
    update = world.update("x")
    first = await world.run(update)
    sent = len(world.server.requests)
    again = await world.run(update)

    assert {"x": "Immutable"} == results(first)
    assert first == again
    assert sent == len(world.server.requests)


async def test_refusal_ends_with_its_question() -> None:
    """Another intent, another live object, other owned fields or an hour make it worth asking again."""
    world = World()
    await world.run(birth("x"))
    world.server.faults.append(Fault(on("PATCH", "x"), IMMUTABLE, times=100))
    update = world.update("x")
    assert update.live is not None
    others = [
        world.update("x", size=8),
        Apply("x", ref("x"), update.manifest, MANAGER, OWNER, Precondition("new", "1"), update.live_digest),
        Apply("x", ref("x"), update.manifest, MANAGER, OWNER, update.live, "drifted"),
        Apply("x", ref("x2"), update.manifest, MANAGER, OWNER, update.live, update.live_digest),
    ]
    asked = []
    for other in others:
        await world.run(update)
        before = len(world.server.writes())
        await world.run(other)
        asked.append(len(world.server.writes()) - before)
    await world.run(update)
    before = len(world.server.writes())
    await asyncio.sleep(HOLDS_SECONDS + 1)
    await world.run(update)

    assert [1, 1, 1, 1] == asked
    assert 1 == len(world.server.writes()) - before


async def test_foreign_changes_do_not_renew_a_refusal() -> None:
    """Another controller writing status to the refused object starts no storm (redis-operator#1321)."""
    world = World()
    await world.run(birth("x"))
    world.server.faults.append(Fault(on("PATCH", "x"), IMMUTABLE, times=100))
    await world.run(world.update("x"))
    sent = len(world.server.writes())
    for number in range(5):
        world.server.put(ref("x"), {"status": {"seen": number}})
        await world.run(world.update("x"))

    assert sent == len(world.server.writes())


async def test_refusals_are_forgotten() -> None:
    """An attempt that left the plan, or whose object is gone, leaves nothing behind."""
    world = World()
    world.server.faults.append(Fault(on("PATCH", "x"), IMMUTABLE, times=100))
    await world.run(birth("x"))
    await world.run()
    left_the_plan = dict(world.executor._refusals._known)
    await world.run(birth("x"))
    world.executor.forget(KEY)

    assert {} == left_the_plan
    assert {} == world.executor._refusals._known


async def test_temporary_refusals_are_repeated() -> None:
    """A policy or a quota may say yes later: nothing is remembered."""
    world = World()
    world.server.faults.append(Fault(on("PATCH", "x"), failure(403, "Forbidden", "exceeded quota: q")))

    assert {"x": "QuotaExceeded"} == results(await world.run(birth("x")))
    assert {"x": "Done"} == results(await world.run(birth("x")))


def lost(method: str, name: str, *, commit: bool) -> Fault:
    """The answer never comes."""
    return Fault(on(method, name), commit=commit)


@pytest.mark.parametrize(("commit", "result"), [(True, "Done"), (False, "Unreachable")])
async def test_lost_answer_is_read_back(result: str, *, commit: bool) -> None:
    """Rule A14: where a birth, an update, a POST or a deletion got no answer, the live one decides."""
    world = World()
    await world.run(birth("update"), birth("delete"))
    update, doomed = world.update("update"), world.update("delete")
    assert doomed.live is not None
    world.server.faults += [
        lost("PATCH", "birth", commit=commit),
        lost("PATCH", "update", commit=commit),
        lost("POST", "jobs", commit=commit),
        lost("DELETE", "delete", commit=commit),
    ]
    outcomes = await world.run(
        birth("birth"),
        update,
        Create("create", ref("create", JOB), manifest(), MANAGER, OWNER),
        Delete("delete", ref("delete"), doomed.live),
    )

    assert dict.fromkeys(["birth", "update", "create", "delete"], result) == results(outcomes)


async def test_lost_answer_of_a_patch_is_decided_again() -> None:
    """A merge patch leaves no trace of its author: the key waits for the live revision and decides anew."""
    world = World()
    await world.run(birth("x"))
    live = world.update("x").live
    assert live is not None
    world.server.faults.append(lost("PATCH", "x", commit=True))
    outcomes = await world.run(Patch("p", ref("x"), {"spec": {"size": 4}}, MANAGER, live))
    early = world.written.ready(KEY)
    world.server.deliver(ref("x"), world.store)

    assert {"p": "Unreachable"} == results(outcomes)
    assert (False, [KEY]) == (early, world.ready)


async def test_lost_answer_and_lost_read() -> None:
    """With the server away nothing is known; the repetition meets its own child and is done."""
    world = World()
    world.server.faults += [lost("PATCH", "x", commit=True), Fault(on("GET", "x"))]
    first = await world.run(birth("x"))
    second = await world.run(birth("x"))

    assert ({"x": "Unreachable"}, {"x": "Done"}) == (results(first), results(second))
    assert 1 == len([obj for obj in world.server.objects.values() if obj["spec"] == {"size": 1}])


async def test_unsent_requests_are_not_read_back() -> None:
    """A refused connection surely changed nothing."""
    world = World()
    world.server.faults.append(Fault(on("PATCH", "x"), sent=False))

    assert {"x": "Unreachable"} == results(await world.run(birth("x")))
    assert ["PATCH"] == [request.method for request in world.server.requests]


async def test_throttling_reaches_the_outcome() -> None:
    """429 is repeated by nobody here; the wish of the server is passed on."""
    world = World()
    answer = failure(429, "TooManyRequests", "slow down", headers={"retry-after": "7"})
    world.server.faults.append(Fault(on("PATCH", "x"), answer))
    problem = (await world.run(birth("x")))["x"].problem
    assert problem is not None

    assert (Cause.THROTTLED, 7.0) == (problem.cause, problem.retry_after)


async def test_post_that_was_made_before() -> None:
    """A Job that exists and is ours was created by an earlier try; anybody else's is a conflict."""
    world = World()
    world.server.put(ref("ours", JOB), {"spec": {}}, owner=OWNER)
    world.server.put(ref("theirs", JOB), {"spec": {}}, owner="other")
    outcomes = await world.run(
        Create("ours", ref("ours", JOB), manifest(), MANAGER, OWNER),
        Create("theirs", ref("theirs", JOB), manifest(), MANAGER, OWNER),
    )

    assert {"ours": "Done", "theirs": "NameConflict"} == results(outcomes)


async def test_fenced_writes_do_not_leave() -> None:
    """Facts 1.7: behind a fence nothing is sent, whatever the plan holds."""
    world = World()

    def fence() -> None:
        raise FencedError("not the leader")

    world.client.fence = fence
    outcomes = await world.run(birth("x"), birth("y"), birth("z", "x"))

    assert {"x": "NotLeading", "y": "NotLeading", "z": "Skipped"} == results(outcomes)
    assert [] == world.server.requests


async def test_writes_are_awaited_by_the_key() -> None:
    """Read-your-writes: the key is not ready until the store has seen each write, deletions too."""
    world = World()
    await world.run(birth("x"), birth("y"))
    born = world.written.ready(KEY)
    for name in ("x", "y"):
        world.server.deliver(ref(name), world.store)
    delivered = world.written.ready(KEY)
    doomed = world.update("x").live
    assert doomed is not None
    await world.run(Delete("d", ref("x"), doomed))
    deleted = world.written.ready(KEY)
    world.server.deliver(ref("x"), world.store)

    assert (False, True, False, True) == (born, delivered, deleted, world.written.ready(KEY))


async def test_server_that_stores_another_form_is_settled_with() -> None:
    """Rule A13a: what a webhook changed in our fields reads as desired, and is not applied for ever."""
    world = World()

    def rewrite(request: Request) -> bool:
        if request.method == "PATCH":
            request.body["spec"]["size"] = "rewritten"
        return False

    world.server.faults.append(Fault(rewrite))
    await world.run(birth("x"))
    world.server.deliver(ref("x"), world.store)
    item = world.store.get("a", "x")
    assert item is not None

    assert {"size": "rewritten"} == item.view
    assert manifest().digest == item.digest


async def test_other_managers_intents_are_not_settled() -> None:
    """The store follows the fields of one manager; another's apply says nothing about them."""
    world = World()
    await world.run(birth("x"))
    world.server.deliver(ref("x"), world.store)
    update = world.update("x")
    replicas = Manifest.of({"spec": {"replicas": 3}})
    await world.run(Apply("r", ref("x"), replicas, "modelfleet-replicas", OWNER, update.live))
    world.server.deliver(ref("x"), world.store)
    item = world.store.get("a", "x")
    assert item is not None

    assert manifest().digest == item.digest


async def test_cancelled_write_is_finished_and_noted() -> None:
    """Facts 1.8: a write on the wire is never abandoned; what it did is known afterwards."""
    world = World()
    hold = asyncio.Event()
    world.server.faults.append(Fault(on("PATCH", "x"), hold=hold))
    run = asyncio.create_task(world.run(birth("x"), birth("y", "x")))
    await asyncio.sleep(1)
    run.cancel()
    await asyncio.sleep(1)
    while_held = run.done()
    hold.set()
    await asyncio.wait([run])

    assert (False, True) == (while_held, run.cancelled())
    assert not world.written.ready(KEY)
    assert world.server.live(ref("y")) is None


async def test_write_that_fails_after_cancellation_is_quiet() -> None:
    """The caller is gone: an error of the last write is nobody's unhandled exception."""
    world = World()
    world.server.faults.append(Fault(on("PATCH", "x"), hold=asyncio.Event()))
    run = asyncio.create_task(world.run(birth("x")))
    await asyncio.sleep(1)
    run.cancel()
    await asyncio.wait([run])

    assert run.cancelled()
    assert 30 == asyncio.get_running_loop().time()
