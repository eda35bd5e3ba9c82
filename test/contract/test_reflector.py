"""Reflectors against a real API server: with WatchList and without, across restarts, gaps and refusals."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from hack.cluster.controlplane import ControlPlane
from modelfleet.kube.auth import load_access
from modelfleet.kube.cache import Cache, Resource
from modelfleet.kube.changes import Change, Event, State
from modelfleet.kube.client import Client, RequestRecord
from modelfleet.kube.course import Ending, ending_of
from modelfleet.kube.errors import StatusError
from modelfleet.kube.reflector_metrics import NoMetrics
from modelfleet.kube.store import Store
from modelfleet.kube.transport import AiohttpTransport
from modelfleet.plan import Api
from test.support.cluster import Cluster
from test.support.kinds import CONFIG_MAP, CRD, DEPLOYMENT, NODE
from test.support.mutation import MutationDetector
from test.support.proxy import FaultProxy
from test.support.waiting import wait_for
from test.support.world import Object, World

pytestmark = pytest.mark.contract


@dataclass
class Plane:
    """A control plane of this module's own, since its tests restart it."""

    processes: ControlPlane
    cluster: Cluster
    watch_list: bool


@pytest.fixture(scope="module", params=[True, False], ids=["watch-list", "no-watch-list"])
def plane(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plane]:
    """One server with the WatchList gate as it comes, one with it off (rule I11)."""
    gates = {} if request.param else {"WatchList": False}
    with ControlPlane(tmp_path_factory.mktemp("plane"), audit=False, feature_gates=gates) as processes:
        yield Plane(processes, Cluster(processes.kubeconfig, processes.kubectl_binary), request.param)


@pytest.fixture
def cluster(plane: Plane) -> Cluster:
    """What `namespace` and `api` of this module work with."""
    return plane.cluster


class Causes(NoMetrics):
    """Keeps why lists were taken."""

    def __init__(self) -> None:
        self.lists: list[str] = []

    def listed(self, api: Api, namespace: str, cause: str) -> None:  # noqa: ARG002 -- the interface's
        """One more list."""
        self.lists.append(cause)


@dataclass
class Watched:
    """A running cache and what it did."""

    cache: Cache
    store: Store[str]
    events: list[Event[str]]
    requests: list[RequestRecord]
    lists: list[str]
    """Causes of the lists taken."""

    def count(self, verb: str, resource: str = "configmaps") -> int:
        """Requests so far."""
        return Counter((record.verb, record.resource) for record in self.requests)[verb, resource]

    def versions(self) -> dict[str, str]:
        """Name to resourceVersion of everything in the store."""
        return {item.meta.name: item.meta.resource_version for item in self.store.items()}


def data_of(obj: Any) -> str:
    """A view of a ConfigMap."""
    return str(obj.get("data", {}).get("n", ""))


@contextlib.asynccontextmanager
async def watching(
    kubeconfig: Any, *namespaces: str, resource: Resource[str] | None = None, synced: bool = True
) -> AsyncIterator[Watched]:
    """Watch ConfigMaps (or another type) until the block ends."""
    transport = AiohttpTransport(await load_access(str(kubeconfig)))
    requests: list[RequestRecord] = []
    causes = Causes()
    cache = Cache(Client(transport, observe=requests.append), namespaces, metrics=causes)
    store = cache.add(resource or Resource(api=CONFIG_MAP, view=data_of))
    watched = Watched(cache, store, [], requests, causes.lists)
    store.subscribe(watched.events.append)
    detector = MutationDetector(store)
    task = asyncio.create_task(cache.run())
    try:
        if synced:
            await cache.wait_synced(30)
        yield watched
        assert not task.done()
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await transport.close()
    detector.verify()


def config_map(namespace: str, name: str, n: int = 0, **metadata: Any) -> Object:
    """A small object."""
    return {"metadata": {"namespace": namespace, "name": name, **metadata}, "data": {"n": str(n)}}


async def live_versions(api: World, namespace: str, kind: Api = CONFIG_MAP) -> dict[str, str]:
    """The server's own word."""
    return {
        obj["metadata"]["name"]: obj["metadata"]["resourceVersion"] for obj in await api.list(kind, namespace)
    }


async def in_step(watched: Watched, api: World, namespace: str) -> None:
    """Wait until the store equals the server."""

    async def equal() -> bool:
        return await live_versions(api, namespace) == watched.versions()

    await wait_for(equal, describe=lambda: f"store: {watched.versions()}")


async def test_i10_the_store_follows_the_server(plane: Plane, api: World, namespace: str) -> None:
    """First list, then every change, in order and with the bodies' views (rules I10, I11, I16)."""
    await api.create(CONFIG_MAP, config_map(namespace, "old"))
    async with watching(plane.cluster.kubeconfig, namespace) as watched:
        await api.create(CONFIG_MAP, config_map(namespace, "new", 1))
        await api.merge(CONFIG_MAP, namespace, "old", {"data": {"n": "2"}})
        await api.delete(CONFIG_MAP, namespace, "new")
        await in_step(watched, api, namespace)
        await wait_for(lambda: len(watched.events) >= 4)

        told = [(e.change, e.item.meta.name, e.item.view, e.initial) for e in watched.events]
        assert [
            (Change.ADDED, "old", "0", True),
            (Change.ADDED, "new", "1", False),
            (Change.MODIFIED, "old", "2", False),
            (Change.DELETED, "new", "1", False),
        ] == [entry for entry in told if entry[1] in ("old", "new")]
        assert (0 if plane.watch_list else 1) == watched.count("list")


async def test_i2_a_large_type_comes_in_pages_or_as_a_stream(
    plane: Plane, api: World, namespace: str
) -> None:
    """More objects than fit a page are all there (rules I2, I11)."""
    for start in range(0, 600, 50):
        await asyncio.gather(
            *(api.create(CONFIG_MAP, config_map(namespace, f"o{n}", n)) for n in range(start, start + 50))
        )
    async with watching(plane.cluster.kubeconfig, namespace) as watched:
        assert await live_versions(api, namespace) == watched.versions()
        assert (0 if plane.watch_list else 2) == watched.count("list")


async def test_i8_a_restarted_server_is_resumed(plane: Plane, api: World, namespace: str) -> None:
    """The API server dies and comes back on the same data: nothing is lost, nothing is made up (rule I8)."""
    await api.create(CONFIG_MAP, config_map(namespace, "stays"))
    async with watching(plane.cluster.kubeconfig, namespace) as watched:
        seen = watched.store.seen(namespace)
        await asyncio.to_thread(plane.processes.stop_apiserver, 0)
        await asyncio.to_thread(plane.processes.start_apiserver)
        await api.create(CONFIG_MAP, config_map(namespace, "after"))
        await in_step(watched, api, namespace)

        assert seen < watched.store.seen(namespace)
        assert State.SYNCED is watched.store.state
        assert Change.DELETED not in {event.change for event in watched.events}


async def test_i6_the_future_is_refused_to_lists_and_silent_for_watches(plane: Plane, namespace: str) -> None:
    """A restored etcd looks like this: silence must end in a list, and that list at the quorum (rule I6)."""
    transport = AiohttpTransport(await load_access(str(plane.cluster.kubeconfig)))
    client = Client(transport)
    future = {"resourceVersion": "1000000000"}
    try:
        query = future | {"allowWatchBookmarks": "true", "timeoutSeconds": "3"}
        opened = client.watch(CONFIG_MAP, namespace, query=query, idle_timeout=20, total_timeout=20)
        async with opened as stream:
            assert [] == [line async for line in stream]

        with pytest.raises(StatusError) as refused:
            await client.list_page(
                CONFIG_MAP, namespace, query=future | {"resourceVersionMatch": "NotOlderThan"}
            )
        assert Ending.TOO_LARGE is ending_of(refused.value)
    finally:
        await transport.close()


async def test_i9_a_deletion_behind_our_back_is_told(plane: Plane, api: World, namespace: str) -> None:
    """Deleted while we were cut off, its history gone with the server's memory: still told (rules I6, I9)."""
    owner = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "owner",
        "uid": "7d5c2f0e-0000-4000-8000-000000000001",
    }
    await api.create(CONFIG_MAP, config_map(namespace, "goes", ownerReferences=[owner]))
    async with FaultProxy(plane.cluster.server, plane.cluster.ca) as proxy:
        kubeconfig = plane.cluster.kubeconfig_for(
            admin_token(plane.cluster, namespace), server=proxy.url, ca=proxy.ca, name="proxied"
        )
        async with watching(kubeconfig, namespace) as watched:
            assert ["goes"] == [i.meta.name for i in watched.store.by_owner(owner["uid"])]
            proxy.pause()
            await api.delete(CONFIG_MAP, namespace, "goes")
            await api.create(CONFIG_MAP, config_map(namespace, "later"))
            await asyncio.to_thread(plane.processes.restart_apiserver)
            await proxy.down()
            proxy.resume()
            await proxy.up()
            await in_step(watched, api, namespace)

            last = [event for event in watched.events if event.change is Change.DELETED]
            assert [("goes", owner["uid"], True)] == [
                (event.item.meta.name, event.item.meta.owners[0].uid, event.final_state_unknown)
                for event in last
            ]
            assert () == watched.store.by_owner(owner["uid"])
            assert "expired" in watched.lists


async def test_i14_an_object_that_loses_the_label_leaves(plane: Plane, api: World, namespace: str) -> None:
    """The server tells a filtered watch of a lost label as of a deletion (rule I14)."""
    await api.create(CONFIG_MAP, config_map(namespace, "one", labels={"app": "x"}))
    await api.create(CONFIG_MAP, config_map(namespace, "other"))
    resource = Resource(api=CONFIG_MAP, view=data_of, label_selector="app=x")
    async with watching(plane.cluster.kubeconfig, namespace, resource=resource) as watched:
        assert ["one"] == list(watched.versions())
        await api.merge(CONFIG_MAP, namespace, "one", {"metadata": {"labels": {"app": "y"}}})
        await wait_for(lambda: not watched.store.items())

        event = watched.events[-1]
        assert (Change.DELETED, True, {"app": "x"}) == (
            event.change,
            event.final_state_unknown,
            event.item.meta.labels,
        )


async def test_i15_a_missing_permission_is_named_and_its_grant_noticed(
    plane: Plane, api: World, namespace: str
) -> None:
    """403 names verb, kind, namespace and service account; the grant needs no restart (rule I15)."""
    kubeconfig = plane.cluster.kubeconfig_for(plane.cluster.token(namespace, "default"), name="poor")
    await api.create(CONFIG_MAP, config_map(namespace, "one"))
    async with watching(kubeconfig, namespace, synced=False) as watched:
        await wait_for(lambda: watched.store.state is State.FORBIDDEN)
        assert watched.store.problem.startswith(
            f"service account {namespace}/default may not watch ConfigMap in namespace {namespace}: "
        )

        plane.cluster.kubectl(
            "create", "role", "reader", "--verb=get,list,watch", "--resource=configmaps", f"-n={namespace}"
        )
        plane.cluster.kubectl(
            "create",
            "rolebinding",
            "reader",
            "--role=reader",
            f"--serviceaccount={namespace}:default",
            f"-n={namespace}",
        )
        await wait_for(lambda: watched.store.state is State.SYNCED, deadline=60)
        assert "" == watched.store.problem
        assert await live_versions(api, namespace) == watched.versions()


async def test_i15_a_custom_type_comes_and_goes(plane: Plane, api: World, namespace: str) -> None:
    """A CRD that is created, deleted and created again: no restart, no polling, no ghosts (rule I15)."""
    kind = Api("example.com", "v1", "Widget", f"widgets{namespace[2:]}")
    resource = Resource(api=kind, view=data_of, required=False)
    async with watching(plane.cluster.kubeconfig, namespace, resource=resource) as watched:
        assert State.NOT_INSTALLED is watched.store.state
        assert watched.cache.synced()

        for round_ in ("first", "second"):
            await api.create(CRD, widget_crd(kind))
            await wait_for(lambda: watched.store.state is State.SYNCED)
            widget = {"metadata": {"name": round_, "namespace": namespace}}
            await wait_for(partial(created, api, kind, widget))
            await wait_for(lambda: len(watched.store) == 1)
            crd = watched.cache.crd(kind)
            assert crd is not None
            assert "yes" == crd.meta.annotations["example.com/bundle"]

            await api.delete(CRD, "", kind.qualified)
            await wait_for(lambda: watched.store.state is State.NOT_INSTALLED)
            assert 0 == len(watched.store)
            await wait_for(lambda: gone(api, CRD, kind.qualified))

        told = [(event.change, event.item.meta.name) for event in watched.events]
        births_and_deaths = [entry for entry in told if entry[0] is not Change.MODIFIED]
        assert [
            (Change.ADDED, "first"),
            (Change.DELETED, "first"),
            (Change.ADDED, "second"),
            (Change.DELETED, "second"),
        ] == births_and_deaths


async def test_a_type_can_be_watched_by_metadata_alone(plane: Plane, api: World, namespace: str) -> None:
    """PartialObjectMetadata, by stream and by list: the body stays on the server (facts 4.3)."""
    await api.create(CONFIG_MAP, config_map(namespace, "one", 7, labels={"l": "1"}))
    seen: list[Any] = []

    def view(obj: Any) -> str:
        seen.append(sorted(obj))
        return ""

    resource = Resource(api=CONFIG_MAP, view=view, metadata_only=True)
    async with watching(plane.cluster.kubeconfig, namespace, resource=resource) as watched:
        await api.create(CONFIG_MAP, config_map(namespace, "two", 8))
        await in_step(watched, api, namespace)

        assert {"l": "1"} == watched.store.items()[0].meta.labels
        assert ["apiVersion", "kind", "metadata"] == min(seen) == max(seen)


async def test_catching_up_takes_seconds_on_a_quiet_type(plane: Plane, api: World, namespace: str) -> None:
    """A quiet watch hears of the cluster's revision once a minute; a new leader can't wait that long."""
    async with watching(plane.cluster.kubeconfig, namespace) as watched:
        node = {"metadata": {"name": namespace}}
        revision = int((await api.create(NODE, node))["metadata"]["resourceVersion"])
        assert watched.store.seen(namespace) < revision

        async with asyncio.timeout(30):
            await watched.cache.catch_up()

        assert revision <= watched.store.seen(namespace)
        await api.delete(NODE, "", namespace)
        await api.create(CONFIG_MAP, config_map(namespace, "later"))
        await in_step(watched, api, namespace)


async def test_i13_a_deployment_is_kept_without_its_body(plane: Plane, api: World, namespace: str) -> None:
    """What is stored is metadata, a view and digests: nothing holds on to the wire object (rule I13)."""
    labels = {"app": "x"}
    body = {
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "c", "image": "busybox:1.36"}]},
            },
        },
    }
    resource: Resource[str] = Resource(api=DEPLOYMENT, view=lambda _: "", manager="us")
    async with watching(plane.cluster.kubeconfig, namespace, resource=resource) as watched:
        await api.apply(DEPLOYMENT, body, manager="us")
        await wait_for(watched.store.items)

        (item,) = watched.store.items()
        assert ("", 32, "") == (item.view, len(item.digest), item.status_digest)


def admin_token(cluster: Cluster, namespace: str) -> str:
    """A bearer token that may do everything: the proxy forwards no client certificates."""
    binding = f"admin-{namespace}"
    cluster.kubectl(
        "create",
        "clusterrolebinding",
        binding,
        "--clusterrole=cluster-admin",
        f"--serviceaccount={namespace}:default",
    )
    return cluster.token(namespace, "default")


def widget_crd(kind: Api) -> Object:
    """A custom type without a schema."""
    return {
        "metadata": {"name": kind.qualified, "annotations": {"example.com/bundle": "yes"}},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {
                "plural": kind.plural,
                "singular": kind.plural[:-1],
                "kind": kind.kind,
                "listKind": "WidgetList",
            },
            "versions": [
                {
                    "name": kind.version,
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                    },
                }
            ],
        },
    }


async def created(api: World, kind: Api, body: Object) -> bool:
    """Create an object of a type that may not be served by every handler yet."""
    await api.create(kind, body)
    return True


async def gone(api: World, kind: Api, name: str) -> bool:
    """Whether a cluster-scoped object no longer exists."""
    return await api.find(kind, "", name) is None
