"""The world as an outsider sees it: a plain aiohttp client, independent of the client under test.

It decodes with the standard library and knows no caches, so that a defect of `modelfleet.kube` can't hide
itself from the test that should find it.
"""

import json
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import aiohttp

from modelfleet.plan import Api
from test.support.cluster import Cluster
from test.support.kinds import path_of

Object = dict[str, Any]


class WorldError(AssertionError):
    """The API server refused a request of the test itself."""

    def __init__(self, method: str, path: str, code: int, status: Mapping[str, Any]) -> None:
        self.code = code
        self.status = status
        super().__init__(f"{method} {path}: {code} {status.get('reason')}: {status.get('message')}")


class World:
    """Reads and edits objects as administrator, or with a bearer token."""

    def __init__(self, cluster: Cluster, *, server: str = "", token: str = "") -> None:
        self._cluster = cluster
        self._server = server or cluster.server
        self._headers = {"User-Agent": "modelfleet-test"} | (
            {"Authorization": f"Bearer {token}"} if token else {}
        )
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(ssl=self._cluster.ssl, limit=64)
        self._session = aiohttp.ClientSession(connector=connector, headers=self._headers)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._session is not None
        await self._session.close()

    async def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str = "application/json",
        **query: str,
    ) -> Object:
        """One request; raises `WorldError` unless it is a 2xx."""
        assert self._session is not None, "use `async with World(...)`"
        async with self._session.request(
            method,
            self._server + path,
            params=query,
            data=None if body is None else json.dumps(body),
            headers={"Content-Type": content_type},
            timeout=aiohttp.ClientTimeout(total=30),
        ) as answer:
            text = await answer.text()
            content = json.loads(text) if text.startswith("{") else {"message": text}
            if answer.status >= 300:
                raise WorldError(method, path, answer.status, content)
            return dict(content)

    async def find(self, api: Api, namespace: str, name: str) -> Object | None:
        """The object, or None when it (or its type) does not exist."""
        try:
            return await self.request("GET", path_of(api, namespace, name))
        except WorldError as error:
            if error.code == 404:
                return None
            raise

    async def get(self, api: Api, namespace: str, name: str) -> Object:
        """The object; raises `WorldError` when it does not exist."""
        return await self.request("GET", path_of(api, namespace, name))

    async def list(self, api: Api, namespace: str = "", **query: str) -> list[Object]:
        """All objects of a namespace, or of all; none when the type does not exist."""
        try:
            items: list[Object] = (await self.request("GET", path_of(api, namespace), **query))["items"]
        except WorldError as error:
            if error.code == 404:
                return []
            raise
        return items

    async def create(self, api: Api, body: Object) -> Object:
        """POST; apiVersion and kind are filled in."""
        full = {"apiVersion": api.api_version, "kind": api.kind, **body}
        return await self.request("POST", path_of(api, body["metadata"].get("namespace", "")), full)

    async def apply(self, api: Api, body: Object, *, manager: str = "test", subresource: str = "") -> Object:
        """Forced server-side apply by a manager of the test's own."""
        full = {"apiVersion": api.api_version, "kind": api.kind, **body}
        meta = body["metadata"]
        path = path_of(api, meta.get("namespace", ""), meta["name"], subresource)
        return await self.request(
            "PATCH",
            path,
            full,
            content_type="application/apply-patch+yaml",
            fieldManager=manager,
            force="true",
        )

    async def merge(
        self, api: Api, namespace: str, name: str, patch: Object, subresource: str = ""
    ) -> Object:
        """JSON merge patch."""
        path = path_of(api, namespace, name, subresource)
        return await self.request("PATCH", path, patch, content_type="application/merge-patch+json")

    async def delete(self, api: Api, namespace: str, name: str, *, propagation: str = "Background") -> None:
        """DELETE; an object that is gone already is fine."""
        try:
            await self.request("DELETE", path_of(api, namespace, name), propagationPolicy=propagation)
        except WorldError as error:
            if error.code != 404:
                raise
