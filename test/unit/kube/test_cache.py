"""The cache as a whole: several types and namespaces, types that come and go, readiness, catching up."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from modelfleet.kube.cache import Cache, CacheSyncError, Resource
from modelfleet.kube.changes import Change, State
from modelfleet.kube.client import Client
from modelfleet.kube.errors import StatusError
from modelfleet.kube.presence import CRDS
from modelfleet.kube.transport import Guard, Response, Stream
from modelfleet.plan import Api
from test.support.fake_answers import Answer
from test.support.fake_watch_server import FakeWatchServer
from test.support.kinds import CONFIG_MAP, NODE, SCALED_OBJECT
from test.unit.kube.reflector_rig import labels_of, passing

pytestmark = pytest.mark.looptime

NOT_FOUND = Answer(404, "NotFound", "the server could not find the requested resource")
FORBIDDEN = Answer(
    403, "Forbidden", 'x is forbidden: User "jane" cannot list resource "configmaps" in the namespace "b"'
)
CRD_NAME = "scaledobjects.keda.sh"


class FakeTypes:
    """A server of several types; what is not in `served` is 404."""

    def __init__(self, *apis: Api) -> None:
        self.served = {api.plural: FakeWatchServer(kind=api.kind) for api in (CRDS, *apis)}
        self.unknown = 0

    def __getitem__(self, api: Api) -> FakeWatchServer:
        return self.served[api.plural]

    def install(self, api: Api) -> FakeWatchServer:
        """Create the CRD of a type and serve it."""
        self.served[api.plural] = FakeWatchServer(kind=api.kind)
        self[CRDS].put(api.qualified, namespace="", annotations={"bundle": "v1"})
        return self[api]

    def uninstall(self, api: Api) -> None:
        """Delete the CRD; its open watches end a little later, as on the real server."""
        self[CRDS].delete(api.qualified, namespace="")
        self.served.pop(api.plural)

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        timeout: float,  # noqa: ASYNC109 -- the interface's
        guard: Guard | None = None,
    ) -> Response:
        """A list of one type."""
        server = self.served.get(path.rpartition("/")[2])
        if server is None:
            self.unknown += 1
            return NOT_FOUND.response()
        return await server.request(
            method, path, query=query, headers=headers, body=body, timeout=timeout, guard=guard
        )

    @contextlib.asynccontextmanager
    async def stream(
        self,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        idle_timeout: float,
        total_timeout: float,
    ) -> AsyncIterator[Stream]:
        """A watch of one type."""
        server = self.served.get(path.rpartition("/")[2])
        if server is None:
            self.unknown += 1
            response = NOT_FOUND.response()
            raise StatusError.of(response.status, response.headers, response.body)
        opened = server.stream(
            path, query=query, headers=headers, idle_timeout=idle_timeout, total_timeout=total_timeout
        )
        async with opened as stream:
            yield stream

    async def close(self) -> None:
        """Nothing to close."""


def config_maps(**settings: Any) -> Resource[Mapping[str, str]]:
    """A required type."""
    return Resource(api=CONFIG_MAP, view=labels_of, **settings)


def scaled_objects(**settings: Any) -> Resource[Mapping[str, str]]:
    """An optional type."""
    return Resource(api=SCALED_OBJECT, view=labels_of, required=False, **settings)


def new_cache(types: FakeTypes, *namespaces: str) -> Cache:
    """A cache without randomness."""
    return Cache(Client(types), namespaces, jitter=lambda: 0.0)


@contextlib.asynccontextmanager
async def running(cache: Cache, settle: float = 0.5) -> AsyncIterator[None]:
    """Run the cache until the block ends."""
    task = asyncio.create_task(cache.run())
    await passing(settle)
    try:
        yield
        assert not task.done()
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_i15_a_missing_optional_type_is_synced_and_costs_no_polling() -> None:
    """The CRD watch says that nothing changed; the type itself is asked for once (rule I15)."""
    types = FakeTypes(CONFIG_MAP)
    cache = new_cache(types)
    store = cache.add(scaled_objects())
    cache.add(config_maps())
    async with running(cache, settle=600):
        assert State.NOT_INSTALLED is store.state
        assert "ScaledObject (keda.sh/v1alpha1): install the CRD scaledobjects.keda.sh" in store.problem
        assert cache.synced()
        assert cache.crd(SCALED_OBJECT) is None
        assert 1 == types.unknown


async def test_i15_a_type_that_appears_is_picked_up_at_once() -> None:
    """Installing KEDA later needs no restart (rule I15)."""
    types = FakeTypes(CONFIG_MAP)
    cache = new_cache(types)
    store = cache.add(scaled_objects())
    async with running(cache, settle=600):
        server = types.install(SCALED_OBJECT)
        server.put("one")
        await passing(1)

        assert State.SYNCED is store.state
        assert ["one"] == [item.meta.name for item in store.items()]
        crd = cache.crd(SCALED_OBJECT)
        assert crd is not None
        assert {"bundle": "v1"} == crd.meta.annotations


async def test_i15_a_type_whose_crd_is_not_yet_established_is_asked_for_with_pauses() -> None:
    """Between the CRD's creation and its service lies a moment of 404 (rule I15)."""
    types = FakeTypes()
    cache = new_cache(types)
    store = cache.add(scaled_objects())
    async with running(cache):
        types[CRDS].put(CRD_NAME, namespace="")
        await passing(5)
        assert 1 < types.unknown < 6
        assert () == store.items()

        types.served[SCALED_OBJECT.plural] = FakeWatchServer(kind="ScaledObject")
        types[CRDS].put(CRD_NAME, namespace="")
        await passing(0.5)

        assert State.SYNCED is store.state


async def test_i15_a_type_that_disappears_empties_its_store_and_may_come_back() -> None:
    """Deleting a CRD deletes its objects: their owners are told, and nothing is concluded from ghosts."""
    types = FakeTypes()
    cache = new_cache(types)
    store = cache.add(scaled_objects())
    changes: list[tuple[Change, str]] = []
    store.subscribe(lambda event: changes.append((event.change, event.item.meta.name)))
    async with running(cache):
        first = types.install(SCALED_OBJECT)
        first.put("one")
        await passing(1)

        types.uninstall(SCALED_OBJECT)
        await passing(1)
        assert (State.NOT_INSTALLED, ()) == (store.state, store.items())
        assert [] == first.streams

        types.install(SCALED_OBJECT).put("two")
        await passing(1)
        assert State.SYNCED is store.state
        assert [(Change.ADDED, "one"), (Change.DELETED, "one"), (Change.ADDED, "two")] == changes


async def test_i15_without_permission_for_crds_a_missing_type_is_polled() -> None:
    """A namespaced installation may not read CRDs: every 30 s the type itself is asked for (rule I15)."""
    types = FakeTypes()
    types[CRDS].meet("", FORBIDDEN, times=float("inf"))
    cache = new_cache(types)
    store = cache.add(scaled_objects())
    async with running(cache, settle=299):
        assert 9 <= types.unknown <= 11

        types.served[SCALED_OBJECT.plural] = FakeWatchServer(kind="ScaledObject")
        await passing(31)
        assert State.SYNCED is store.state


async def test_i15_a_missing_required_type_is_named_by_the_one_who_waits_for_it() -> None:
    """Readiness that never comes must say why (rule I15, controller-runtime #1219)."""
    types = FakeTypes(SCALED_OBJECT)
    cache = new_cache(types)
    cache.add(scaled_objects())
    cache.add(config_maps())
    async with running(cache):
        with pytest.raises(CacheSyncError) as raised:
            await cache.wait_synced(120)

        assert (
            "not in sync after 120 s: ConfigMap: the server does not serve ConfigMap (v1): "
            "install the CRD configmaps" == str(raised.value)
        )
        assert not cache.synced()


async def test_i12_waiting_for_sync_ends_when_the_last_store_is_in_sync() -> None:
    """The cache is in sync when every store is, and not before (rule I12)."""
    types = FakeTypes(CONFIG_MAP, SCALED_OBJECT)
    types[SCALED_OBJECT].meet("", Answer(500, "InternalError"), times=2)
    cache = new_cache(types)
    cache.add(config_maps())
    cache.add(scaled_objects())
    async with running(cache):
        assert not cache.synced()

        await cache.wait_synced(None)

        assert cache.synced()
        assert {State.SYNCED} == {store.state for store in cache.stores.values()}


async def test_i14_each_listed_namespace_has_its_own_reflector() -> None:
    """Watched namespaces are a list and shape the requests, hence the RBAC (rule I14)."""
    types = FakeTypes(CONFIG_MAP)
    server = types[CONFIG_MAP]
    for namespace in ("a", "b", "c"):
        server.put("same", namespace=namespace)
    cache = new_cache(types, "a", "b", "a")
    store = cache.add(config_maps())
    async with running(cache):
        assert ["a", "b"] == sorted(request.namespace for request in server.requests)
        assert {("a", "same"), ("b", "same")} == {(i.meta.namespace, i.meta.name) for i in store.items()}
        assert store.get("c", "same") is None
        assert 0 == store.seen("c")
        assert 2 == len(store)


async def test_i15_one_refused_namespace_makes_the_store_forbidden() -> None:
    """A conclusion from absence needs every namespace; the sentence names the one that is missing."""
    types = FakeTypes(CONFIG_MAP)
    types[CONFIG_MAP].meet("", FORBIDDEN, times=float("inf"), where=lambda request: request.namespace == "b")
    cache = new_cache(types, "a", "b")
    store = cache.add(config_maps())
    async with running(cache):
        assert State.FORBIDDEN is store.state
        assert store.problem.startswith("user jane may not list ConfigMap in namespace b: allow it")
        assert not cache.synced()


async def test_cluster_scoped_types_and_overrides_ignore_the_list_of_namespaces() -> None:
    """A Node has no namespace; a resource may also name namespaces of its own."""
    types = FakeTypes(NODE, CONFIG_MAP)
    types[NODE].put("n1", namespace="")
    cache = new_cache(types, "a", "b")
    nodes = cache.add(Resource(api=NODE, view=labels_of))
    cache.add(config_maps(namespaces=("infra",)))
    async with running(cache):
        assert nodes.get("", "n1") is not None
        assert [""] == [request.namespace for request in types[NODE].requests]
        assert ["infra"] == [request.namespace for request in types[CONFIG_MAP].requests]


async def test_one_type_has_one_store() -> None:
    """Two watches of one type would be two truths (facts 4.3)."""
    cache = new_cache(FakeTypes())
    cache.add(config_maps())

    with pytest.raises(ValueError, match="configmaps is already watched"):
        cache.add(config_maps())


async def test_catching_up_sees_what_the_quorum_holds_now() -> None:
    """Before the first decision as leader: everything the former leader wrote is in the stores."""
    types = FakeTypes(CONFIG_MAP)
    server = types[CONFIG_MAP]
    cache = new_cache(types)
    store = cache.add(config_maps())
    cache.add(scaled_objects())
    async with running(cache):
        server.silence()
        server.put("by-the-former-leader")
        types[CRDS].revision = 4000
        server.meet("list", Answer(503, "ServiceUnavailable"), times=2)
        started = asyncio.get_running_loop().time()

        await cache.catch_up()

        assert store.get("a", "by-the-former-leader") is not None
        assert server.revision <= store.seen("a")
        assert asyncio.get_running_loop().time() - started < 10
        assert {"limit": "1"} == server.asked("list")[-1].query


async def test_catching_up_with_a_quiet_server_is_one_list() -> None:
    """Nothing happened meanwhile: no stream is given up for it."""
    types = FakeTypes(CONFIG_MAP)
    types[CONFIG_MAP].put("one")
    cache = new_cache(types)
    cache.add(config_maps())
    async with running(cache):
        await cache.catch_up()

        assert ["watch", "list"] == [request.verb for request in types[CONFIG_MAP].requests]


async def test_stopping_the_cache_leaves_no_task_and_no_stream() -> None:
    """No task without an owner (architecture.md section 3)."""
    types = FakeTypes(CONFIG_MAP)
    before = asyncio.all_tasks()
    cache = new_cache(types, "a", "b")
    cache.add(config_maps())
    cache.add(scaled_objects())
    async with running(cache):
        assert 2 == len(types[CONFIG_MAP].streams)

    assert before == asyncio.all_tasks()
    assert [] == types[CONFIG_MAP].streams
    assert [] == types[CRDS].streams
