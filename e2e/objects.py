"""What is in the cluster, read through kubernetes_asyncio: it shares no code with the controller's client.

Objects are plain JSON, as the API server sends them. kubectl stays for what a user does with it.
"""

from typing import Any

from kubernetes_asyncio.client import ApiClient, CoreV1Api, CustomObjectsApi

Object = dict[str, Any]

GROUPS = {
    "inferenceservices": ("modelfleet.dev", "v1alpha1"),
    "deployments": ("apps", "v1"),
    "replicasets": ("apps", "v1"),
    "scaledobjects": ("keda.sh", "v1alpha1"),
    "httproutes": ("gateway.networking.k8s.io", "v1"),
}
"""Group and version of each kind that has a group."""


class Objects:
    """The objects of one namespace."""

    def __init__(self, client: ApiClient, namespace: str) -> None:
        """`client` stays the caller's to close."""
        self._client = client
        self._core = CoreV1Api(client)
        self._grouped = CustomObjectsApi(client)
        self.namespace = namespace

    async def get(self, kind: str, name: str) -> Object:
        """One object; `kind` is the plural."""
        if kind in GROUPS:
            return dict(
                await self._grouped.get_namespaced_custom_object(*GROUPS[kind], self.namespace, kind, name)
            )
        if kind != "services":
            raise ValueError(f"no API known for {kind}; add it to GROUPS")
        return self._plain(await self._core.read_namespaced_service(name, self.namespace))

    async def labelled(self, kind: str, selector: str) -> list[Object]:
        """The objects of a kind that carry a label."""
        if kind in GROUPS:
            listed = await self._grouped.list_namespaced_custom_object(
                *GROUPS[kind], self.namespace, kind, label_selector=selector
            )
            return list(listed["items"])
        read = {"services": self._core.list_namespaced_service, "pods": self._core.list_namespaced_pod}[kind]
        return list(self._plain(await read(self.namespace, label_selector=selector))["items"])

    async def has_fake_nodes(self) -> bool:
        """Whether KWOK plays the nodes."""
        return bool((await self._core.list_node(label_selector="type=kwok")).items)

    def _plain(self, model: object) -> Object:
        return dict(self._client.sanitize_for_serialization(model))
