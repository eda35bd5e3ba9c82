"""Plans against a real API server: births, conflicts, refusals and lost answers (rules A6-A9, A14, I14)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from modelfleet.kube.auth import load_access
from modelfleet.kube.cache import Cache
from modelfleet.kube.client import Client
from modelfleet.kube.resource import Resource
from modelfleet.kube.transport import AiohttpTransport
from modelfleet.plan import (
    Action,
    Api,
    Apply,
    Cause,
    Delete,
    Key,
    Manifest,
    Outcomes,
    Patch,
    Plan,
    Precondition,
    Ref,
)
from modelfleet.runtime.executor import Executor
from modelfleet.runtime.written import Written
from test.support.audit import AuditLog, Mark, writes
from test.support.cluster import Cluster
from test.support.faults import DropResponse
from test.support.kinds import CONFIG_MAP, DEPLOYMENT, NAMESPACE, RESOURCE_QUOTA, SERVICE, path_of
from test.support.proxy import FaultProxy
from test.support.waiting import wait_for
from test.support.world import Object, World

pytestmark = pytest.mark.contract

MANAGER = "modelfleet-controller"
LABEL = "app.kubernetes.io/managed-by"
OWNER = "2b6f9c0e-0000-4000-8000-000000000001"
UNSERVED = Api("example.dev", "v1", "Nothing", "nothings")


def manifest(api: Api, **spec: Any) -> Manifest:
    """A child of ours."""
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": OWNER, "controller": True}
    metadata = {"labels": {LABEL: "modelfleet"}, "ownerReferences": [owner]}
    body = {"apiVersion": api.api_version, "kind": api.kind, "metadata": metadata}
    return Manifest.of({**body, **({"data": spec} if api == CONFIG_MAP else {"spec": spec})})


def service(port: int = 80) -> Manifest:
    """A Service."""
    return manifest(SERVICE, ports=[{"name": "http", "port": port, "protocol": "TCP"}], selector={"app": "x"})


def deployment(**more: Any) -> Manifest:
    """A Deployment."""
    labels = more.pop("labels", {"app": "x"})
    container = {"name": "c", "image": "example.com/c:1", "args": more.pop("args", ["serve"])}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return manifest(DEPLOYMENT, selector={"matchLabels": labels}, template=template, **more)


class Bench:
    """An executor with its stores, in the test's namespace."""

    def __init__(self, client: Client, cache: Cache, namespace: str) -> None:
        self.namespace = namespace
        self.key = Key(namespace, "owner")
        self.stores = {
            api: cache.add(
                Resource(api=api, view=lambda _: None, label_selector=f"{LABEL}=modelfleet", manager=MANAGER)
            )
            for api in (SERVICE, DEPLOYMENT, CONFIG_MAP)
        }
        self.written = Written(self.stores, lambda _: None)
        self.executor = Executor(client, self.stores, self.written)

    async def run(self, *actions: Action) -> Outcomes:
        """Carry out one plan."""
        return await self.executor.run(Plan(actions), self.key)

    async def seen(self) -> None:
        """Wait until the stores show what was written."""
        await wait_for(lambda: self.written.ready(self.key), describe="read-your-writes")

    def ref(self, api: Api, name: str = "x") -> Ref:
        """An object in the namespace."""
        return Ref(api, self.namespace, name)

    def birth(self, wanted: Manifest, api: Api, name: str = "x", *after: str) -> Apply:
        """An apply that must create."""
        return Apply(api.plural, self.ref(api, name), wanted, MANAGER, OWNER, after=after)

    def update(self, wanted: Manifest, api: Api, name: str = "x") -> Apply:
        """An apply decided from the store."""
        item = self.stores[api].get(self.namespace, name)
        assert item is not None
        at = Precondition(item.meta.uid, item.meta.resource_version)
        return Apply(api.plural, self.ref(api, name), wanted, MANAGER, OWNER, at, item.digest)


@asynccontextmanager
async def bench_at(kubeconfig: str, namespace: str) -> AsyncIterator[Bench]:
    """A bench with running reflectors."""
    transport = AiohttpTransport(await load_access(kubeconfig))
    client = Client(transport, field_validation="Strict")
    cache = Cache(client, [namespace])
    bench = Bench(client, cache, namespace)
    reflectors = asyncio.create_task(cache.run())
    try:
        await cache.wait_synced(30)
        yield bench
    finally:
        reflectors.cancel()
        await asyncio.gather(reflectors, return_exceptions=True)
        await transport.close()


@pytest.fixture
async def bench(cluster: Cluster, namespace: str) -> AsyncIterator[Bench]:
    """As administrator, straight to the server."""
    async with bench_at(str(cluster.kubeconfig), namespace) as bench:
        yield bench


@pytest.fixture
def audited(cluster: Cluster, namespace: str) -> Callable[[], list[str]]:
    """Writes to objects of the namespace since the test began: code, verb, resource."""
    assert cluster.audit_log is not None
    log = AuditLog(cluster.audit_log)
    start: Mark = log.mark()
    return lambda: [
        f"{e.code} {e.verb} {e.resource}" for e in writes(log.since(start)) if e.namespace == namespace
    ]


def causes(outcomes: Outcomes) -> dict[str, str]:
    """Outcomes in short."""
    return {name: o.problem.cause.value if o.problem else o.result.value for name, o in outcomes.items()}


async def test_birth_then_nothing_to_do(bench: Bench, api: World, audited: Callable[[], list[str]]) -> None:
    """Children are born with one owner of their fields, and read as what was wanted once they are seen."""
    outcomes = await bench.run(
        bench.birth(service(), SERVICE), bench.birth(deployment(), DEPLOYMENT, "x", "services")
    )
    await bench.seen()
    live = await api.get(SERVICE, bench.namespace, "x")
    owned = [(m["manager"], m["operation"]) for m in live["metadata"]["managedFields"]]

    assert {"services": "Done", "deployments": "Done"} == causes(outcomes)
    assert [(MANAGER, "Apply")] == owned
    assert service().digest == bench.update(service(), SERVICE).live_digest
    assert deployment().digest == bench.update(deployment(), DEPLOYMENT).live_digest
    assert ["201 patch services", "201 patch deployments.apps"] == audited()


@pytest.mark.parametrize("owner", [None, "2b6f9c0e-0000-4000-8000-00000000000f"])
async def test_foreign_object_is_untouched(bench: Bench, api: World, owner: str | None) -> None:
    """Rule A8: a foreign object of the name is told, and not one byte of it changes."""
    owners = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "boss", "uid": owner, "controller": True}]
    metadata = {"name": "x", **({"ownerReferences": owners} if owner else {})}
    body = {"metadata": metadata, "spec": {"ports": [{"port": 9}]}}
    before = await api.request("POST", path_of(SERVICE, bench.namespace), body)
    outcomes = await bench.run(bench.birth(service(), SERVICE))
    problem = outcomes["services"].problem
    assert problem is not None

    assert {"services": "NameConflict"} == causes(outcomes)
    assert ("ConfigMap boss" if owner else "nobody") in problem.message
    assert before == await api.get(SERVICE, bench.namespace, "x")


async def test_own_child_without_its_label_is_put_right(bench: Bench, api: World) -> None:
    """Rule I14: a child that left the watch by losing its label is neither lost nor doubled."""
    await bench.run(bench.birth(service(), SERVICE))
    await bench.seen()
    born = await api.get(SERVICE, bench.namespace, "x")
    path = path_of(SERVICE, bench.namespace, "x")
    change = {"metadata": {"labels": {LABEL: None}}}
    await api.request("PATCH", path, change, content_type="application/merge-patch+json")
    await wait_for(lambda: bench.stores[SERVICE].get(bench.namespace, "x") is None)
    outcomes = await bench.run(bench.birth(service(), SERVICE))
    await bench.seen()
    live = await api.get(SERVICE, bench.namespace, "x")

    assert {"services": "Stale"} == causes(outcomes)
    assert (born["metadata"]["uid"], "modelfleet") == (
        live["metadata"]["uid"],
        live["metadata"]["labels"][LABEL],
    )
    assert service().digest == bench.update(service(), SERVICE).live_digest


REFUSED: list[tuple[str, Callable[[], Manifest], str]] = [
    ("immutable", lambda: deployment(labels={"app": "y"}), "Immutable"),
    ("invalid", lambda: deployment(replicas=-1), "Invalid"),
    ("wrong type", lambda: deployment(replicas="three"), "Invalid"),
    ("unknown field", lambda: deployment(nonsense=1), "Invalid"),
]


@pytest.mark.parametrize(
    ("wanted", "cause"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
async def test_refusals_are_sent_once(
    bench: Bench, audited: Callable[[], list[str]], wanted: Callable[[], Manifest], cause: str
) -> None:
    """Rule A9: what the server will always refuse reaches it once, however often it is planned."""
    await bench.run(bench.birth(deployment(), DEPLOYMENT))
    await bench.seen()
    update = bench.update(wanted(), DEPLOYMENT)
    outcomes = [await bench.run(update) for _ in range(5)]

    assert [{"deployments": cause}] * 5 == [causes(o) for o in outcomes]
    assert 2 == len(audited())


async def test_refused_child_is_tried_again_when_it_changes(bench: Bench, api: World) -> None:
    """Rule A9: deleting the child whose field can't change is the remedy the message names, and it works."""
    await bench.run(bench.birth(deployment(), DEPLOYMENT))
    await bench.seen()
    wanted = deployment(labels={"app": "y"})
    refused = await bench.run(bench.update(wanted, DEPLOYMENT))
    problem = refused["deployments"].problem
    assert problem is not None
    await api.request("DELETE", path_of(DEPLOYMENT, bench.namespace, "x"))
    await wait_for(lambda: bench.stores[DEPLOYMENT].get(bench.namespace, "x") is None)

    assert "spec.selector" in problem.message
    assert "delete the Deployment" in problem.message
    assert {"deployments": "Done"} == causes(await bench.run(bench.birth(wanted, DEPLOYMENT)))


async def test_stale_decisions(bench: Bench, api: World) -> None:
    """Rules A6, A7: updates and deletions decided from the past change nothing and resurrect nothing."""
    for name in ("moved", "gone", "reborn"):
        await bench.run(bench.birth(service(), SERVICE, name))
    await bench.seen()
    updates = {name: bench.update(service(81), SERVICE, name) for name in ("moved", "gone", "reborn")}
    path = path_of(SERVICE, bench.namespace, "moved")
    change = {"metadata": {"annotations": {"by": "somebody"}}}
    await api.request("PATCH", path, change, content_type="application/merge-patch+json")
    for name in ("gone", "reborn"):
        await api.request("DELETE", path_of(SERVICE, bench.namespace, name))
    body = {"metadata": {"name": "reborn"}, "spec": {"ports": [{"port": 9}]}}
    await api.request("POST", path_of(SERVICE, bench.namespace), body)
    found = {}
    for name, update in updates.items():
        assert update.live is not None
        delete = Delete("delete", update.ref, update.live)
        patch = Patch("patch", update.ref, {"metadata": {"labels": {"a": "b"}}}, MANAGER, update.live)
        found[name] = causes(await bench.run(update, delete, patch))

    stale = {"services": "Stale", "delete": "Stale", "patch": "Stale"}
    assert stale == found["moved"]
    assert stale == found["reborn"]
    assert {"services": "Stale", "delete": "Done", "patch": "NotFound"} == found["gone"]
    assert 80 == (await api.get(SERVICE, bench.namespace, "moved"))["spec"]["ports"][0]["port"]
    assert 9 == (await api.get(SERVICE, bench.namespace, "reborn"))["spec"]["ports"][0]["port"]
    assert await api.find(SERVICE, bench.namespace, "gone") is None


async def test_update_patch_and_delete(bench: Bench, api: World) -> None:
    """The ways to change a live child, each awaited by its key; a Service answers DELETE with itself."""
    await bench.run(bench.birth(service(), SERVICE), bench.birth(deployment(), DEPLOYMENT))
    await bench.seen()
    await bench.run(bench.update(service(81), SERVICE))
    await bench.seen()
    at = bench.update(deployment(), DEPLOYMENT).live
    assert at is not None
    await bench.run(Patch("patch", bench.ref(DEPLOYMENT), {"spec": {"paused": True}}, MANAGER, at))
    await bench.seen()
    changed = await api.get(SERVICE, bench.namespace, "x"), await api.get(DEPLOYMENT, bench.namespace, "x")
    doomed = [bench.update(service(), SERVICE), bench.update(deployment(), DEPLOYMENT)]
    outcomes = await bench.run(*(Delete(d.name, d.ref, d.live) for d in doomed if d.live))
    await bench.seen()

    assert (81, True) == (changed[0]["spec"]["ports"][0]["port"], changed[1]["spec"]["paused"])
    assert {"services": "Done", "deployments": "Done"} == causes(outcomes)
    assert [None, None] == [bench.stores[api_].get(bench.namespace, "x") for api_ in (SERVICE, DEPLOYMENT)]


async def test_lost_answers_converge(cluster: Cluster, namespace: str, api: World) -> None:
    """Rule A14: writes that took effect without an answer are found and not repeated."""
    account = f"--serviceaccount={namespace}:default"
    cluster.kubectl("create", "rolebinding", "all", "--clusterrole=cluster-admin", account, "-n", namespace)
    token = cluster.token(namespace, "default")
    async with FaultProxy(cluster.server, cluster.ca) as proxy:
        path = cluster.kubeconfig_for(token, server=proxy.url, ca=proxy.ca, name=f"lost-{namespace}")
        async with bench_at(str(path), namespace) as bench:
            proxy.on(DropResponse(), verb="apply", resource="services")
            born = await bench.run(bench.birth(service(), SERVICE))
            await bench.seen()
            proxy.on(DropResponse(), verb="apply", resource="services")
            updated = await bench.run(bench.update(service(81), SERVICE))
            await bench.seen()
            doomed = bench.update(service(81), SERVICE).live
            assert doomed is not None
            live = await api.get(SERVICE, namespace, "x")
            proxy.on(DropResponse(), verb="delete", resource="services")
            deleted = await bench.run(Delete("delete", bench.ref(SERVICE), doomed))

            assert [{"services": "Done"}] * 2 == [causes(born), causes(updated)]
            assert {"delete": "Done"} == causes(deleted)
            assert 2 == len(proxy.requests("apply", "services"))
            assert 81 == live["spec"]["ports"][0]["port"]
            assert await api.find(SERVICE, namespace, "x") is None


async def test_namespace_being_deleted(bench: Bench, api: World) -> None:
    """Nothing can be born in it, and the outcome says so."""
    body = {"metadata": {"name": f"{bench.namespace}-end", "finalizers": ["example.dev/hold"]}}
    doomed = (await api.request("POST", path_of(NAMESPACE), body))["metadata"]["name"]
    await api.request("DELETE", path_of(NAMESPACE, name=doomed))
    birth = Apply("services", Ref(SERVICE, doomed, "x"), service(), MANAGER, OWNER)
    outcomes = await bench.run(birth)
    release = {"metadata": {"finalizers": None}}
    path = path_of(NAMESPACE, name=doomed)
    await api.request("PATCH", path, release, content_type="application/merge-patch+json")

    assert {"services": "NamespaceTerminating"} == causes(outcomes)


async def test_other_refusals_have_their_causes(bench: Bench, api: World) -> None:
    """A quota, a missing type, a missing namespace and an object too large are told apart."""
    quotas = path_of(RESOURCE_QUOTA, bench.namespace)
    hard = {"hard": {"count/configmaps": "0"}}
    quota: Object = await api.request("POST", quotas, {"metadata": {"name": "none"}, "spec": hard})
    await api.request(
        "PUT", f"{quotas}/none/status", {**quota, "status": {**hard, "used": {"count/configmaps": "0"}}}
    )
    big = deployment(args=["x" * 1_700_000])
    outcomes = await bench.run(
        Apply("quota", bench.ref(CONFIG_MAP), manifest(CONFIG_MAP, a="b"), MANAGER, OWNER),
        Apply("type", bench.ref(UNSERVED), manifest(UNSERVED), MANAGER, OWNER),
        Apply("namespace", Ref(SERVICE, "nowhere", "x"), service(), MANAGER, OWNER),
        Apply("size", bench.ref(DEPLOYMENT), big, MANAGER, OWNER),
    )

    assert {
        "quota": Cause.QUOTA_EXCEEDED.value,
        "type": Cause.NOT_INSTALLED.value,
        "namespace": Cause.NOT_FOUND.value,
        "size": Cause.TOO_LARGE.value,
    } == causes(outcomes)


async def test_missing_permission_is_named(cluster: Cluster, bench: Bench) -> None:
    """403 names verb, kind and service account, and what to do."""
    path = cluster.kubeconfig_for(cluster.token(bench.namespace, "default"), name=f"poor-{bench.namespace}")
    transport = AiohttpTransport(await load_access(str(path)))
    try:
        executor = Executor(Client(transport), bench.stores, bench.written)
        outcomes = await executor.run(Plan((bench.birth(service(), SERVICE),)), bench.key)
    finally:
        await transport.close()
    problem = outcomes["services"].problem
    assert problem is not None

    assert Cause.FORBIDDEN == problem.cause
    for word in ("patch", '"services"', f"system:serviceaccount:{bench.namespace}:default", "RBAC"):
        assert word in problem.message
