"""What a real API server makes of our requests: births, preconditions, ownership (rules A1-A12).

The tests look at the world through `World`, which shares no code with the client.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from structlog.testing import capture_logs

from modelfleet.kube.auth import load_access
from modelfleet.kube.client import BIRTH, Client
from modelfleet.kube.errors import StatusError
from modelfleet.kube.transport import AiohttpTransport
from modelfleet.plan import Ref
from test.support.cluster import Cluster
from test.support.kinds import CONFIG_MAP, DEPLOYMENT, NAMESPACE
from test.support.world import World

pytestmark = pytest.mark.contract

MANAGER = "modelfleet-controller"
Object = dict[str, Any]


@pytest.fixture
async def transport(cluster: Cluster) -> AsyncIterator[AiohttpTransport]:
    """To the API server, as administrator."""
    transport = AiohttpTransport(await load_access(str(cluster.kubeconfig)))
    yield transport
    await transport.close()


@pytest.fixture
def client(transport: AiohttpTransport) -> Client:
    """Strict, as in all our tests (rule A12)."""
    return Client(transport, field_validation="Strict")


@pytest.fixture
def ref(namespace: str) -> Ref:
    """A name that is free."""
    return Ref(CONFIG_MAP, namespace, "settings")


def settings(**data: str) -> Object:
    """A manifest without its address."""
    return {"data": data}


async def born(client: Client, ref: Ref, body: Object) -> Object:
    """Apply to a free name."""
    return await client.apply(ref, body, manager=MANAGER, uid=None, resource_version=BIRTH)


async def applied(client: Client, ref: Ref, live: Object, body: Object) -> Object:
    """Apply to a live object."""
    meta = live["metadata"]
    return await client.apply(
        ref, body, manager=MANAGER, uid=meta["uid"], resource_version=meta["resourceVersion"]
    )


async def test_a_birth_takes_a_free_name_and_only_that(client: Client, ref: Ref, api: World) -> None:
    """201 when it is free, 409 when it is held, be it by ourselves; what holds it is not touched."""
    first = await born(client, ref, settings(a="1"))
    with pytest.raises(StatusError) as caught:
        await born(client, ref, settings(a="2"))
    assert (409, "Conflict") == (caught.value.code, caught.value.reason)
    assert first == await api.get(CONFIG_MAP, ref.namespace, ref.name)


async def test_a_birth_does_not_take_over_a_foreign_object(client: Client, ref: Ref, api: World) -> None:
    """Force is about fields; the precondition comes first (rule A8)."""
    body = {"metadata": {"name": ref.name, "namespace": ref.namespace}, **settings(a="theirs")}
    foreign = await api.create(CONFIG_MAP, body)
    with pytest.raises(StatusError, match="409 Conflict"):
        await born(client, ref, settings(a="ours"))
    assert foreign == await api.get(CONFIG_MAP, ref.namespace, ref.name)


@pytest.mark.parametrize("version", ["2", BIRTH])
async def test_a_stale_apply_is_refused(client: Client, ref: Ref, api: World, version: str) -> None:
    """An older revision: 409, nothing written (rule A14)."""
    live = await born(client, ref, settings(a="1"))
    with pytest.raises(StatusError) as caught:
        await client.apply(
            ref, settings(a="2"), manager=MANAGER, uid=live["metadata"]["uid"], resource_version=version
        )
    assert 409 == caught.value.code
    assert live == await api.get(CONFIG_MAP, ref.namespace, ref.name)


async def test_an_apply_meant_for_an_earlier_incarnation_is_refused(
    client: Client, ref: Ref, api: World
) -> None:
    """409 as well: the revision is looked at before the uid, which alone would be a 422 (rule A7)."""
    former = await born(client, ref, settings(a="1"))
    await api.delete(CONFIG_MAP, ref.namespace, ref.name)
    live = await born(client, ref, settings(a="1"))
    with pytest.raises(StatusError) as caught:
        await applied(client, ref, former, settings(a="2"))
    assert 409 == caught.value.code
    assert live == await api.get(CONFIG_MAP, ref.namespace, ref.name)


async def test_an_apply_to_a_deleted_object_does_not_resurrect_it(
    client: Client, ref: Ref, api: World
) -> None:
    """The uid makes the difference between update and create (rule A7)."""
    live = await born(client, ref, settings(a="1"))
    await api.delete(CONFIG_MAP, ref.namespace, ref.name)
    with pytest.raises(StatusError) as caught:
        await applied(client, ref, live, settings(a="2"))
    assert 409 == caught.value.code
    assert await api.find(CONFIG_MAP, ref.namespace, ref.name) is None


async def test_a_stale_update_is_refused(client: Client, ref: Ref, api: World) -> None:
    """PUT, as the Lease is renewed."""
    live = await born(client, ref, settings(a="1"))
    newer = await client.update(ref, {**live, **settings(a="2")}, manager=MANAGER)
    with pytest.raises(StatusError) as caught:
        await client.update(ref, {**live, **settings(a="3")}, manager=MANAGER)
    assert 409 == caught.value.code
    assert newer == await api.get(CONFIG_MAP, ref.namespace, ref.name)


async def test_a_stale_merge_patch_is_refused(client: Client, ref: Ref, api: World) -> None:
    """Its precondition is uid and resourceVersion in the patch."""
    live = await born(client, ref, settings(a="1"))
    pins = {"uid": live["metadata"]["uid"], "resourceVersion": live["metadata"]["resourceVersion"]}
    newer = await client.patch(ref, {"metadata": pins, **settings(b="2")}, manager="other")
    assert {"a": "1", "b": "2"} == newer["data"]
    with pytest.raises(StatusError) as caught:
        await client.patch(ref, {"metadata": pins, **settings(b="3")}, manager="other")
    assert 409 == caught.value.code
    assert newer == await api.get(CONFIG_MAP, ref.namespace, ref.name)


async def test_a_json_patch_tests_before_it_writes(client: Client, ref: Ref) -> None:
    """A failed test is the server's refusal."""
    await born(client, ref, settings(a="1"))
    patch = [{"op": "test", "path": "/data/a", "value": "9"}, {"op": "remove", "path": "/data/a"}]
    with pytest.raises(StatusError) as caught:
        await client.patch(ref, patch, manager="other", content_type="json")
    assert 422 == caught.value.code


async def test_a_field_left_out_is_removed_and_foreign_ones_stay(
    client: Client, ref: Ref, api: World
) -> None:
    """Full intent each time: what we stop saying goes, what others own doesn't (rule A3)."""
    live = await born(
        client,
        ref,
        {
            "metadata": {"labels": {"keep": "x", "drop": "x"}, "annotations": {"drop": "x"}},
            **settings(a="1", b="1"),
        },
    )
    foreign = {"metadata": {"annotations": {"theirs": "x"}}, **settings(c="1")}
    live = await api.merge(CONFIG_MAP, ref.namespace, ref.name, foreign)
    live = await applied(client, ref, live, {"metadata": {"labels": {"keep": "x"}}, **settings(a="1")})
    assert ({"keep": "x"}, {"theirs": "x"}, {"a": "1", "c": "1"}) == (
        live["metadata"]["labels"],
        live["metadata"]["annotations"],
        live["data"],
    )


async def test_an_owned_field_is_taken_back_by_force(client: Client, ref: Ref, api: World) -> None:
    """Drift is repaired without a conflict between managers (rule A1)."""
    await born(client, ref, settings(a="1"))
    edited = await api.merge(CONFIG_MAP, ref.namespace, ref.name, settings(a="edited"))
    assert {"a": "1"} == (await applied(client, ref, edited, settings(a="1")))["data"]


async def test_the_same_apply_changes_nothing(client: Client, ref: Ref) -> None:
    """No new revision, so no event and no work for anybody."""
    live = await born(client, ref, settings(a="1"))
    again = await applied(client, ref, live, settings(a="1"))
    assert live["metadata"]["resourceVersion"] == again["metadata"]["resourceVersion"]


async def test_the_list_of_managers_does_not_grow(client: Client, ref: Ref) -> None:
    """One constant manager: its one entry is replaced each time (rule A11)."""
    live = await born(client, ref, settings(a="0"))
    for number in range(1, 13):
        live = await applied(client, ref, live, settings(a=str(number)))
    assert [(MANAGER, "Apply")] == [(e["manager"], e["operation"]) for e in live["metadata"]["managedFields"]]


async def test_status_is_applied_to_its_subresource(client: Client, namespace: str) -> None:
    """The server keeps the two apart, also in ownership (facts 1.5)."""
    ref = Ref(DEPLOYMENT, namespace, "web")
    live = await born(client, ref, deployment())
    live = await client.apply(
        ref,
        {"status": {"observedGeneration": 7}},
        manager=MANAGER,
        uid=live["metadata"]["uid"],
        resource_version=live["metadata"]["resourceVersion"],
        subresource="status",
    )
    assert 7 == live["status"]["observedGeneration"]
    assert [(MANAGER, ""), (MANAGER, "status")] == sorted(
        (entry["manager"], entry.get("subresource", "")) for entry in live["metadata"]["managedFields"]
    )


async def test_a_misspelt_field_fails_in_tests(client: Client, namespace: str, api: World) -> None:
    """Strict validation names the field and writes nothing; an apply never takes one (rule A12)."""
    web = Ref(DEPLOYMENT, namespace, "web")
    with pytest.raises(StatusError) as created:
        await client.create(web, deployment(replica=3), manager=MANAGER)
    with pytest.raises(StatusError) as applied_:
        await born(client, web, deployment(replica=3))
    assert (400, 500) == (created.value.code, applied_.value.code)
    assert 'unknown field "spec.replica"' in created.value.message
    assert ".spec.replica: field not declared in schema" in applied_.value.message
    assert await api.find(DEPLOYMENT, namespace, "web") is None


async def test_the_servers_warnings_are_logged(transport: AiohttpTransport, namespace: str) -> None:
    """In production an object with a field too many is taken, and we are told (rule A12)."""
    client = Client(transport)
    body = {"metadata": {"name": "web"}, **deployment(replica=3)}
    with capture_logs() as logs:
        await client.create(Ref(DEPLOYMENT, namespace, "web"), body, manager=MANAGER)
    assert [('unknown field "spec.replica"', "deployments.apps")] == [
        (e["warning"], e["resource"]) for e in logs
    ]


@pytest.mark.parametrize("stale", ["uid", "version"])
async def test_a_delete_is_for_one_incarnation_at_one_revision(
    client: Client, ref: Ref, api: World, stale: str
) -> None:
    """Anything else is refused (rule A6)."""
    live = await born(client, ref, settings(a="1"))
    uid, version = live["metadata"]["uid"], live["metadata"]["resourceVersion"]
    with pytest.raises(StatusError) as caught:
        await client.delete(
            ref,
            uid="00000000-0000-0000-0000-000000000000" if stale == "uid" else uid,
            resource_version="2" if stale == "version" else version,
        )
    assert 409 == caught.value.code
    assert live == await api.get(CONFIG_MAP, ref.namespace, ref.name)
    await client.delete(ref, uid=uid, resource_version=version)
    assert await api.find(CONFIG_MAP, ref.namespace, ref.name) is None


async def test_a_post_of_a_held_name_says_so(client: Client, ref: Ref) -> None:
    """409 AlreadyExists, not Conflict."""
    await client.create(ref, settings(a="1"), manager=MANAGER)
    with pytest.raises(StatusError) as caught:
        await client.create(ref, settings(a="1"), manager=MANAGER)
    assert (409, "AlreadyExists") == (caught.value.code, caught.value.reason)


async def test_an_object_of_a_mebibyte_comes_and_goes(client: Client, ref: Ref) -> None:
    """Written, read, listed and watched; the largest thing etcd takes by default is 1.5 MiB."""
    text = "x" * (1024 * 1024 - 100)
    live = await born(client, ref, settings(small="1"))
    query = {"resourceVersion": live["metadata"]["resourceVersion"]}
    async with client.watch(
        CONFIG_MAP, ref.namespace, query=query, idle_timeout=30, total_timeout=60
    ) as stream:
        await applied(client, ref, live, settings(a=text))
        line = await anext(aiter(stream))
    assert len(line) > len(text)
    assert text == (await client.get(ref))["data"]["a"]
    page = await client.list_page(CONFIG_MAP, ref.namespace)
    assert text == next(item for item in page["items"] if item["metadata"]["name"] == ref.name)["data"]["a"]


async def test_an_object_over_every_limit_is_refused_with_a_status(client: Client, ref: Ref) -> None:
    """The server answers before it has read all of it; the answer still arrives."""
    with pytest.raises(StatusError) as caught:
        await born(client, ref, settings(a="x" * (4 * 1024 * 1024)))
    assert 413 == caught.value.code


async def test_metadata_alone_can_be_listed_and_watched(client: Client, ref: Ref) -> None:
    """For kinds of which nothing else is read (facts 4.3)."""
    live = await born(client, ref, settings(a="1"))
    page = await client.list_page(CONFIG_MAP, ref.namespace, metadata_only=True)
    assert ("PartialObjectMetadataList", [["metadata"]]) == (
        page["kind"],
        [sorted(set(item) - {"kind", "apiVersion"}) for item in page["items"]],
    )
    query = {"resourceVersion": page["metadata"]["resourceVersion"]}
    async with client.watch(
        CONFIG_MAP, ref.namespace, query=query, idle_timeout=30, total_timeout=60, metadata_only=True
    ) as stream:
        await applied(client, ref, live, settings(a="2"))
        assert b'"PartialObjectMetadata"' in await anext(aiter(stream))


async def test_pages_follow_each_other(client: Client, namespace: str) -> None:
    """`continue` is opaque and may hold anything."""
    for number in range(3):
        await born(client, Ref(CONFIG_MAP, namespace, f"c{number}"), settings(a="1"))
    names: list[str] = []
    query = {"limit": "2"}
    while True:
        page = await client.list_page(CONFIG_MAP, namespace, query=query)
        names += [item["metadata"]["name"] for item in page["items"]]
        if not page["metadata"].get("continue"):
            break
        query = {"limit": "2", "continue": page["metadata"]["continue"]}
    assert ["c0", "c1", "c2"] == names


async def test_a_watch_ends_cleanly_when_the_server_says_so(client: Client, namespace: str) -> None:
    """The server counts timeoutSeconds; the end is no error (rule I3)."""
    query = {"timeoutSeconds": "1", "allowWatchBookmarks": "true"}
    async with client.watch(CONFIG_MAP, namespace, query=query, idle_timeout=30, total_timeout=30) as stream:
        lines = [line async for line in stream]
    assert all(b"BOOKMARK" in line for line in lines)


async def test_a_resource_version_from_the_future_is_known_as_such(client: Client, namespace: str) -> None:
    """504 with a cause, and how long to wait (rule I6)."""
    query = {"resourceVersion": "999999999", "resourceVersionMatch": "NotOlderThan"}
    with pytest.raises(StatusError) as caught:
        await client.list_page(CONFIG_MAP, namespace, query=query)
    assert caught.value.too_large_resource_version
    assert caught.value.retry_after


async def test_a_namespace_that_is_being_deleted_says_why_it_refuses(
    client: Client, ref: Ref, api: World
) -> None:
    """403 with a cause that the runtime maps."""
    await api.delete(NAMESPACE, "", ref.namespace)
    with pytest.raises(StatusError) as caught:
        await born(client, ref, settings(a="1"))
    assert (403, ["NamespaceTerminating"]) == (
        caught.value.code,
        [cause["reason"] for cause in caught.value.causes],
    )


async def test_the_servers_version_and_health_can_be_asked(client: Client) -> None:
    """JSON and plain text."""
    assert "1" == (await client.raw("GET", "/version"))["major"]
    assert "ok" == await client.raw("GET", "/readyz")


def deployment(**spec: object) -> Object:
    """The least a Deployment must have."""
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {"spec": {"selector": {"matchLabels": labels}, "template": template, **spec}}
