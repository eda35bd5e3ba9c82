"""A cluster in memory, small enough to see through: objects, field ownership, stores.

It keeps what decisions depend on: server-side apply by several field managers with force, ownership by field,
the default of a Deployment's replicas, preconditions, generations and resourceVersions. Lists are atomic.
What the real API server does beyond that is checked against the real one (test/contract).
"""

import copy
import itertools
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from modelfleet.kube.store import Store
from modelfleet.plan import Api, Apply, Delete, Key, Outcome, Outcomes, Patch, Plan, Ref, Result, intent
from modelfleet.reconcilers.inference import InferenceReconciler, Observed, resources
from modelfleet.reconcilers.inference.apis import DEPLOYMENT, INFERENCE_SERVICE

NAMESPACE, NAME, UID = "models", "echo", "uid-of-echo"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = Key(NAMESPACE, NAME)
Leaf = tuple[str, ...]
_REPLICAS: Leaf = ("spec", "replicas")


def leaves(value: Mapping[str, Any], path: Leaf = ()) -> dict[Leaf, Any]:
    """Every scalar, list and empty map of a tree, by path."""
    found: dict[Leaf, Any] = {}
    for key, inner in value.items():
        where = (*path, key)
        found |= leaves(inner, where) if isinstance(inner, Mapping) and inner else {where: inner}
    return found


def tree(flat: Mapping[Leaf, Any], prefix: str = "") -> dict[str, Any]:
    """The inverse of `leaves`; with a prefix, the FieldsV1 notation of it."""
    root: dict[str, Any] = {}
    for path, value in flat.items():
        node = root
        for key in path[:-1]:
            node = node.setdefault(prefix + key, {})
        node[prefix + path[-1]] = value
    return root


class World:
    """The cluster, and one reconciler that looks at it."""

    def __init__(self, spec: Any, *, absent: tuple[Api, ...] = ()) -> None:
        """`absent`: resource types the cluster does not serve."""
        self._versions = itertools.count(1)
        self.stores: dict[Api, Store[Any]] = {resource.api: Store(resource) for resource in resources()}
        self.reconciler = InferenceReconciler(self.stores)
        self.absent = set(absent)
        self.values: dict[Ref, dict[Leaf, Any]] = {}
        self.owners: dict[Ref, dict[str, set[Leaf]]] = {}
        self.extra: dict[Ref, dict[str, Any]] = {}
        """What no manager applies: server-set metadata and status."""
        self.replicas_seen: list[int] = []
        """spec.replicas of the Deployment after each write."""
        self.edit(spec)

    def edit(self, spec: Any) -> None:
        """Write the user's object; a changed spec is a new generation."""
        ref = Ref(INFERENCE_SERVICE, NAMESPACE, NAME)
        generation = self.extra.get(ref, {}).get("generation", 0) + 1
        self.extra[ref] = {"uid": UID, "generation": generation, "whole": {"spec": spec}}
        self._touch(ref)

    def apply(self, action: Apply) -> None:
        """Server-side apply with force; raises AssertionError when a precondition does not hold."""
        ref, before = action.ref, copy.deepcopy(self.values.get(action.ref))
        if action.live is None:
            assert ref not in self.values, f"birth of {ref} meets a live object"
            self.values[ref], self.owners[ref] = {}, {}
            self.extra[ref] = {"uid": f"uid-{next(self._versions)}", "generation": 0}
        else:
            assert (action.live.uid, action.live.resource_version) == self.version(ref)
        wanted = leaves(intent(action.manifest.body))
        values, owners = self.values[ref], self.owners[ref]
        for leaf in owners.get(action.manager, set()) - wanted.keys():
            if not any(leaf in held for manager, held in owners.items() if manager != action.manager):
                del values[leaf]
        for leaf, value in wanted.items():
            self._set(ref, leaf, value, except_for=action.manager)
        owners[action.manager] = set(wanted)
        if ref.api == DEPLOYMENT:
            values.setdefault(_REPLICAS, 1)
        if values != before:
            self.extra[ref]["generation"] += 1
        self._touch(ref)
        self._note(ref)

    def set_field(self, api: Api, leaf: Leaf, value: Any, manager: str) -> None:
        """An update by somebody else, such as KEDA through the scale subresource."""
        ref = Ref(api, NAMESPACE, NAME)
        if self.values[ref].get(leaf) != value:
            self._set(ref, leaf, value, except_for=manager)
            self.extra[ref]["generation"] += 1
        self.owners[ref].setdefault(manager, set()).add(leaf)
        self._touch(ref)
        self._note(ref)

    def set_status(self, api: Api, status: dict[str, Any], *, name: str = NAME) -> None:
        """What the controller of a kind reports."""
        ref = Ref(api, NAMESPACE, name)
        self.extra[ref]["status"] = status
        self._touch(ref)

    def put(
        self, api: Api, name: str, whole: dict[str, Any], *, created: str = "2026-01-01T00:00:00Z"
    ) -> None:
        """An object nobody applies: a pod, an endpoint slice, somebody else's child."""
        ref = Ref(api, NAMESPACE, name)
        self.extra[ref] = {
            "uid": f"uid-{next(self._versions)}",
            "generation": 1,
            "created": created,
            "whole": whole,
        }
        self._touch(ref)

    def remove(self, ref: Ref) -> None:
        """The object is gone."""
        for table in (self.values, self.owners, self.extra):
            table.pop(ref, None)

    def terminate(self, ref: Ref) -> None:
        """Somebody's finalizer keeps a deleted object."""
        self.extra[ref]["deleting"] = True
        self._touch(ref)

    def version(self, ref: Ref) -> tuple[str, str]:
        """UID and resourceVersion."""
        return self.extra[ref]["uid"], self.extra[ref]["version"]

    def replicas(self) -> int:
        """spec.replicas of the Deployment."""
        return int(self.values[Ref(DEPLOYMENT, NAMESPACE, NAME)][_REPLICAS])

    def managers_of_replicas(self) -> set[str]:
        """Field managers that own spec.replicas."""
        owners = self.owners[Ref(DEPLOYMENT, NAMESPACE, NAME)]
        return {manager for manager, held in owners.items() if _REPLICAS in held}

    def look(self) -> Observed:
        """Bring the stores up to date and observe."""
        for api, store in self.stores.items():
            if api in self.absent:
                store.feed().withdraw(f"no CustomResourceDefinition {api}")
                continue
            items = [store.resource.decode(self.wire(ref)) for ref in self.extra if ref.api == api]
            store.feed().replace(items, next(self._versions))
        observed = self.reconciler.observe(KEY, NOW)
        assert observed is not None
        return observed

    def step(self, refuse: Callable[[str], Any] = lambda _name: None) -> tuple[Plan, Outcomes]:
        """One pass; `refuse` gives the problem an action meets, by its name."""
        plan = self.reconciler.plan(self.look())
        outcomes: Outcomes = {}
        for action in plan.actions:
            if any(outcomes[name].result is not Result.DONE for name in action.after):
                outcomes[action.name] = Outcome(action.name, Result.SKIPPED)
            elif (problem := refuse(action.name)) is not None:
                outcomes[action.name] = Outcome(action.name, Result.FAILED, problem)
            else:
                self._carry_out(action)
                outcomes[action.name] = Outcome(action.name, Result.DONE)
        return plan, outcomes

    def converge(self, passes: int = 10) -> list[list[str]]:
        """Pass until nothing is left to do; the names of the actions of each pass that had some."""
        history: list[list[str]] = []
        for _ in range(passes):
            plan, _outcomes = self.step()
            if not plan.actions:
                return history
            history.append([action.name for action in plan.actions])
        raise AssertionError(f"no end after {passes} passes: {history}")

    def wire(self, ref: Ref) -> dict[str, Any]:
        """The object as the API server sends it."""
        extra = self.extra[ref]
        body = tree(self.values.get(ref, {})) | extra.get("whole", {})
        metadata = {
            **body.get("metadata", {}),
            "name": ref.name,
            "namespace": ref.namespace,
            "uid": extra["uid"],
            "resourceVersion": extra["version"],
            "generation": extra["generation"],
            "creationTimestamp": extra.get("created", "2026-01-01T00:00:00Z"),
            "managedFields": [
                {
                    "manager": manager,
                    "operation": "Apply" if manager.startswith("modelfleet-") else "Update",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": tree({leaf: {} for leaf in held}, "f:"),
                }
                for manager, held in self.owners.get(ref, {}).items()
            ]
            + extra.get("managedFields", []),
        }
        if extra.get("deleting"):
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        status = {"status": extra["status"]} if "status" in extra else {}
        return {
            "apiVersion": ref.api.api_version,
            "kind": ref.api.kind,
            **body,
            "metadata": metadata,
            **status,
        }

    def _carry_out(self, action: Any) -> None:
        match action:
            case Apply():
                self.apply(action)
            case Patch(body={"spec": {"ports": ports}}):
                assert (action.live.uid, action.live.resource_version) == self.version(action.ref)
                self.extra[action.ref].pop("managedFields", None)
                self.set_field(action.ref.api, ("spec", "ports"), ports, action.manager + "/patch")
            case Delete():
                assert (action.live.uid, action.live.resource_version) == self.version(action.ref)
                self.remove(action.ref)

    def _set(self, ref: Ref, leaf: Leaf, value: Any, *, except_for: str) -> None:
        if self.values[ref].get(leaf) != value:
            for manager, held in self.owners[ref].items():
                if manager != except_for:
                    held.discard(leaf)
        self.values[ref][leaf] = value

    def _touch(self, ref: Ref) -> None:
        self.extra[ref]["version"] = str(next(self._versions))

    def _note(self, ref: Ref) -> None:
        if ref.api == DEPLOYMENT:
            self.replicas_seen.append(self.replicas())
