"""Plain lists: what a reflector uses where the server has no WatchList (rules I1, I2).

A list from the quorum is read in pages, all of one snapshot; a list "not older than" is served from the
server's watch cache, which ignores a limit or goes to etcd because of it, so it gets none.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

from modelfleet.kube.client import Client
from modelfleet.kube.objects import MalformedObjectError
from modelfleet.plan import Api

PAGE_SIZE = 500
"""client-go's default (pager.go)."""
_BREATH = 200
"""Objects handed out between two turns of the event loop: about 10 ms of decoding (facts 4.2)."""


class Listing:
    """One list of a type in a namespace ("" is all of them)."""

    def __init__(
        self,
        client: Client,
        api: Api,
        namespace: str,
        *,
        label_selector: str = "",
        metadata_only: bool = False,
        not_older_than: str = "",
    ) -> None:
        """`not_older_than` is a resourceVersion, or "" to read from the quorum."""
        self.resource_version = 0
        """Of the snapshot; known after the first object, or the end."""
        self._client = client
        self._api = api
        self._namespace = namespace
        self._selector = {"labelSelector": label_selector} if label_selector else {}
        self._metadata_only = metadata_only
        self._not_older_than = not_older_than

    async def objects(self) -> AsyncIterator[dict[str, Any]]:
        """Every object of the list, with apiVersion and kind as a watch has them.

        Raises:
            KubeError: The request failed; 410 in the middle means the snapshot is gone and the list has to
                start over (rule I2).
            MalformedObjectError: The answer is no list.
        """
        query = self._first_query()
        while query:
            page = await self._client.list_page(
                self._api, self._namespace, query=query, metadata_only=self._metadata_only
            )
            items, version, following = _page(self._api, page)
            self.resource_version = version
            for count, obj in enumerate(items, 1):
                obj.setdefault("apiVersion", self._api.api_version)
                obj.setdefault("kind", self._api.kind)
                yield obj
                if count % _BREATH == 0:
                    await asyncio.sleep(0)
            query = {"limit": str(PAGE_SIZE), "continue": following, **self._selector} if following else {}

    def _first_query(self) -> dict[str, str]:
        if self._not_older_than:
            return {
                "resourceVersion": self._not_older_than,
                "resourceVersionMatch": "NotOlderThan",
                **self._selector,
            }
        return {"limit": str(PAGE_SIZE), **self._selector}


async def latest_version(client: Client, api: Api, namespace: str) -> int:
    """The resourceVersion the quorum has reached for a type, at the cost of one object's metadata."""
    page = await client.list_page(api, namespace, query={"limit": "1"}, metadata_only=True)
    return _page(api, page)[1]


def _page(api: Api, page: Mapping[str, Any]) -> tuple[list[dict[str, Any]], int, str]:
    """Objects, resourceVersion and continue token."""
    metadata, items = page.get("metadata"), page.get("items")
    if items is None and str(page.get("kind", "")).endswith("List"):
        items = []
    if not isinstance(metadata, dict) or not isinstance(items, list):
        raise MalformedObjectError(f"the answer to a list of {api} is of kind {page.get('kind')!r}, no list")
    version = metadata.get("resourceVersion")
    if not isinstance(version, str) or not version.isdigit():
        raise MalformedObjectError(f"a list of {api} has resourceVersion {version!r}")
    if not all(isinstance(obj, dict) for obj in items):
        raise MalformedObjectError(f"a list of {api} holds something that is no object")
    return items, int(version), str(metadata.get("continue") or "")
