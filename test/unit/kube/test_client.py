"""What each method asks for, and what becomes of answers (rules A1, A6, A7, A12, A14)."""

import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from modelfleet.kube.auth import Access
from modelfleet.kube.client import BIRTH, Client, RequestRecord
from modelfleet.kube.errors import StatusError, TransportError
from modelfleet.kube.paths import collection_path, object_path
from modelfleet.kube.transport import AiohttpTransport
from modelfleet.plan import Api, Propagation, Ref
from test.support.kinds import CONFIG_MAP, DEPLOYMENT, NAMESPACE
from test.unit.kube.fake_apiserver import FakeApiServer, Handler, Seen, serving

WEB = Ref(DEPLOYMENT, "models", "web")
WEB_PATH = "/apis/apps/v1/namespaces/models/deployments/web"


async def ok(_: web.Request) -> web.Response:
    """200 and an empty object."""
    return web.json_response({})


@asynccontextmanager
async def client_of(handler: Handler = ok, **settings: Any) -> AsyncIterator[tuple[Client, FakeApiServer]]:
    """A client of a server that answers like this."""
    async with serving(handler) as server:
        transport = AiohttpTransport(Access(server.url))
        try:
            yield Client(transport, **settings), server
        finally:
            await transport.close()


async def sent_by(call: Callable[[Client], Awaitable[Any]], **settings: Any) -> Seen:
    """The one request a call makes."""
    async with client_of(**settings) as (client, server):
        await call(client)
    assert 1 == len(server.seen)
    return server.seen[0]


ADDRESS = {"apiVersion": "apps/v1", "kind": "Deployment"}
APPLIED = {"fieldManager": "m", "force": "true", "fieldValidation": "Warn"}
WRITTEN = {"fieldManager": "m", "fieldValidation": "Warn"}


@pytest.mark.parametrize(
    ("call", "method", "path", "query", "content_type", "body"),
    [
        (
            lambda c: c.apply(WEB, {"spec": {"a": 1}}, manager="m", uid=None, resource_version=BIRTH),
            "PATCH",
            WEB_PATH,
            APPLIED,
            "application/apply-patch+yaml",
            {
                **ADDRESS,
                "metadata": {"name": "web", "namespace": "models", "resourceVersion": "1"},
                "spec": {"a": 1},
            },
        ),
        (
            lambda c: c.apply(
                WEB,
                {"kind": "Wrong", "metadata": {"labels": {"a": "b"}, "name": "wrong", "namespace": "wrong"}},
                manager="m",
                uid="u1",
                resource_version="7",
                subresource="status",
            ),
            "PATCH",
            WEB_PATH + "/status",
            APPLIED,
            "application/apply-patch+yaml",
            {
                **ADDRESS,
                "metadata": {
                    "labels": {"a": "b"},
                    "name": "web",
                    "namespace": "models",
                    "uid": "u1",
                    "resourceVersion": "7",
                },
            },
        ),
        (
            lambda c: c.create(WEB, {"spec": {}}, manager="m"),
            "POST",
            "/apis/apps/v1/namespaces/models/deployments",
            WRITTEN,
            "application/json",
            {**ADDRESS, "metadata": {"name": "web", "namespace": "models"}, "spec": {}},
        ),
        (
            lambda c: c.update(WEB, {"metadata": {"resourceVersion": "7"}}, manager="m"),
            "PUT",
            WEB_PATH,
            WRITTEN,
            "application/json",
            {**ADDRESS, "metadata": {"name": "web", "namespace": "models", "resourceVersion": "7"}},
        ),
        (
            lambda c: c.patch(WEB, {"spec": {"a": None}}, manager="m"),
            "PATCH",
            WEB_PATH,
            WRITTEN,
            "application/merge-patch+json",
            {"spec": {"a": None}},
        ),
        (
            lambda c: c.patch(WEB, [{"op": "test", "path": "/a"}], manager="m", content_type="json"),
            "PATCH",
            WEB_PATH,
            WRITTEN,
            "application/json-patch+json",
            [{"op": "test", "path": "/a"}],
        ),
        (
            lambda c: c.delete(WEB, uid="u1", resource_version="7", propagation=Propagation.FOREGROUND),
            "DELETE",
            WEB_PATH,
            {},
            "application/json",
            {
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "preconditions": {"uid": "u1", "resourceVersion": "7"},
                "propagationPolicy": "Foreground",
            },
        ),
        (
            lambda c: c.apply(Ref(NAMESPACE, "", "n"), {}, manager="m", uid=None, resource_version=BIRTH),
            "PATCH",
            "/api/v1/namespaces/n",
            APPLIED,
            "application/apply-patch+yaml",
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "resourceVersion": "1"}},
        ),
    ],
)
async def test_each_write_carries_address_manager_and_precondition(  # noqa: PLR0917  # a table
    call: Callable[[Client], Awaitable[Any]],
    method: str,
    path: str,
    query: dict[str, str],
    content_type: str,
    body: object,
) -> None:
    """The reference is the address, whatever the body says; a birth has no uid."""
    seen = await sent_by(call)
    assert (method, path, query) == (seen.method, seen.path, seen.query)
    assert (content_type, body) == (seen.headers["content-type"], json.loads(seen.body))


@pytest.mark.parametrize(
    ("call", "path", "query", "accept"),
    [
        (lambda c: c.get(WEB), WEB_PATH, {}, "application/json"),
        (
            lambda c: c.list_page(DEPLOYMENT, "models", query={"limit": "1"}),
            "/apis/apps/v1/namespaces/models/deployments",
            {"limit": "1"},
            "application/json",
        ),
        (
            lambda c: c.list_page(DEPLOYMENT, metadata_only=True),
            "/apis/apps/v1/deployments",
            {},
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        ),
        (lambda c: c.raw("GET", "/version", query={"a": "b"}), "/version", {"a": "b"}, "application/json"),
    ],
)
async def test_each_read_asks_for_what_it_needs(
    call: Callable[[Client], Awaitable[Any]], path: str, query: dict[str, str], accept: str
) -> None:
    """No body, no content type."""
    seen = await sent_by(call)
    assert ("GET", path, query, accept) == (seen.method, seen.path, seen.query, seen.headers["accept"])
    assert (b"", None) == (seen.body, seen.headers.get("content-type"))


async def test_user_agent_and_strictness_are_settings() -> None:
    """Tests validate strictly, production warns (rule A12)."""
    seen = await sent_by(
        lambda c: c.create(WEB, {}, manager="m"), user_agent="modelfleet/1", field_validation="Strict"
    )
    assert ("modelfleet/1", "Strict") == (seen.headers["user-agent"], seen.query["fieldValidation"])


async def test_a_watch_hands_out_lines() -> None:
    """Undecoded: the reflector decodes each once."""

    async def handler(_: web.Request) -> web.Response:
        return web.Response(body=b'{"a":1}\n{"b":2}\n', headers={"Warning": '299 - "old version"'})

    records: list[RequestRecord] = []
    async with client_of(handler, observe=records.append) as (client, server):
        with capture_logs() as logs:
            async with client.watch(
                DEPLOYMENT, "models", query={"resourceVersion": "7"}, idle_timeout=10, total_timeout=10
            ) as stream:
                assert [b'{"a":1}', b'{"b":2}'] == [line async for line in stream]
    seen = server.seen[0]
    assert ("/apis/apps/v1/namespaces/models/deployments", {"watch": "1", "resourceVersion": "7"}) == (
        seen.path,
        seen.query,
    )
    assert [("watch", 200, "deployments.apps")] == [(r.verb, r.code, r.resource) for r in records]
    assert ["old version"] == [entry["warning"] for entry in logs]


GONE = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}


async def test_a_refused_watch_is_a_status_error() -> None:
    """As for any other request; it is counted once."""

    async def handler(_: web.Request) -> web.Response:
        return web.json_response(GONE, status=410)

    records: list[RequestRecord] = []
    async with client_of(handler, observe=records.append) as (client, _):
        with pytest.raises(StatusError) as caught:
            async with client.watch(DEPLOYMENT, idle_timeout=10, total_timeout=10, metadata_only=True):
                raise AssertionError
    assert (410, "too old", True) == (caught.value.code, caught.value.message, caught.value.gone)
    assert [("watch", 410)] == [(r.verb, r.code) for r in records]


async def test_a_refusal_is_a_status_error_with_the_wait_it_asks_for() -> None:
    """The client repeats nothing: the caller decides anew (rule A14)."""

    async def handler(_: web.Request) -> web.Response:
        status = {"kind": "Status", "reason": "TooManyRequests", "message": "slow down", "code": 429}
        return web.json_response(status, status=429, headers={"Retry-After": "2"})

    async with client_of(handler) as (client, server):
        with pytest.raises(StatusError, match="429 TooManyRequests: slow down") as caught:
            await client.apply(WEB, {}, manager="m", uid=None, resource_version=BIRTH)
    assert (2.0, True, 1) == (caught.value.retry_after, caught.value.retriable, len(server.seen))


@pytest.mark.parametrize(
    ("body", "message"), [("<html>", "is not JSON"), ("[]", "not a JSON object"), ("", "is not JSON")]
)
async def test_a_success_that_is_no_object_leaves_the_outcome_open(body: str, message: str) -> None:
    """Something between us and the server answered, or it broke while it did."""

    async def handler(_: web.Request) -> web.Response:
        return web.Response(text=body)

    async with client_of(handler) as (client, _):
        with pytest.raises(TransportError, match=message) as caught:
            await client.create(WEB, {}, manager="m")
    assert caught.value.unknown_outcome


async def test_raw_text_is_text() -> None:
    """/readyz answers `ok`."""

    async def handler(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async with client_of(handler) as (client, _):
        assert "ok" == await client.raw("GET", "/readyz")


async def test_every_request_is_recorded() -> None:
    """Also those without an answer, as code 0."""
    answers = [200, 409, 0]

    async def handler(request: web.Request) -> web.Response:
        code = answers.pop(0)
        if not code:
            assert request.transport is not None
            request.transport.abort()
        return web.json_response({}, status=code or 200)

    records: list[RequestRecord] = []
    async with client_of(handler, observe=records.append, host="h:1") as (client, server):
        for _ in range(3):
            try:
                await client.create(WEB, {}, manager="m")
            except (StatusError, TransportError):
                continue
    assert [("create", "POST", "h:1", "deployments.apps", code) for code in (200, 409, 0)] == [
        (r.verb, r.method, r.host, r.resource, r.code) for r in records
    ]
    assert [(len(server.seen[0].body), 2), (len(server.seen[1].body), 2), (len(server.seen[2].body), 0)] == [
        (r.request_bytes, r.response_bytes) for r in records
    ]
    assert all(r.seconds > 0 for r in records)


async def test_warnings_are_logged_with_the_resource() -> None:
    """A misspelt field in production must not go unseen (rule A12)."""

    async def handler(_: web.Request) -> web.Response:
        return web.json_response({}, headers={"Warning": '299 - "unknown field \\"spec.a\\""'})

    async with client_of(handler) as (client, _):
        with capture_logs() as logs:
            await client.create(WEB, {}, manager="m")
            await client.create(WEB, {}, manager="m")
    assert [('unknown field "spec.a"', "deployments.apps")] == [(e["warning"], e["resource"]) for e in logs]


async def test_neither_bodies_nor_credentials_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    """At any level, by anybody: they may be Secrets (facts 1.9)."""

    async def handler(_: web.Request) -> web.Response:
        return web.json_response({"data": "s3cret"}, status=422)

    caplog.set_level(logging.DEBUG)
    async with client_of(handler) as (client, _):
        with capture_logs() as logs, pytest.raises(StatusError) as caught:
            await client.create(Ref(CONFIG_MAP, "n", "c"), {"data": {"a": "s3cret"}}, manager="m")
    assert "s3cret" not in f"{caplog.text} {logs} {caught.value} {caught.value!r}"


async def test_an_update_without_a_resource_version_is_a_mistake() -> None:
    """The server would overwrite whatever is there."""
    async with client_of() as (client, server):
        with pytest.raises(
            ValueError, match=r"update of Deployment models/web needs metadata\.resourceVersion"
        ):
            await client.update(WEB, {"metadata": {}}, manager="m")
    assert [] == server.seen


@pytest.mark.parametrize(
    ("api", "namespace", "path"),
    [
        (DEPLOYMENT, "", "/apis/apps/v1/deployments"),
        (DEPLOYMENT, "n", "/apis/apps/v1/namespaces/n/deployments"),
        (CONFIG_MAP, "n", "/api/v1/namespaces/n/configmaps"),
        (NAMESPACE, "ignored", "/api/v1/namespaces"),
        (Api("g/h", "v1", "K", "ks"), "a b", "/apis/g%2Fh/v1/namespaces/a%20b/ks"),
    ],
)
def test_paths_of_collections(api: Api, namespace: str, path: str) -> None:
    """Core resources have no group; cluster-scoped ones no namespace."""
    assert path == collection_path(api, namespace)


@pytest.mark.parametrize(
    ("ref", "subresource", "path"),
    [
        (WEB, "", WEB_PATH),
        (WEB, "status", WEB_PATH + "/status"),
        (Ref(NAMESPACE, "", "n"), "", "/api/v1/namespaces/n"),
        (Ref(CONFIG_MAP, "n", "a/../b?c#d"), "", "/api/v1/namespaces/n/configmaps/a%2F..%2Fb%3Fc%23d"),
    ],
)
def test_paths_of_objects(ref: Ref, subresource: str, path: str) -> None:
    """A name can't reach another path."""
    assert path == object_path(ref, subresource)


@pytest.mark.parametrize(
    "ref", [Ref(DEPLOYMENT, "", "web"), Ref(DEPLOYMENT, "n", ""), Ref(CONFIG_MAP, "n", "..")]
)
def test_incomplete_references_have_no_path(ref: Ref) -> None:
    """They would address a collection: a delete of that is a disaster."""
    with pytest.raises(ValueError, match="needs a"):
        object_path(ref)
