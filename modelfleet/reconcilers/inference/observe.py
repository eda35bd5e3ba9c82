"""Everything one decision about an InferenceService needs, taken from the stores at one moment.

Children are found by owner UID, never by name (A6): an object that merely has a child's name is not ours.
A store that has not synced, or may not be read, says so (`Seen.state`), because its emptiness means nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from modelfleet.api.inference import InferenceService
from modelfleet.api.meta import OWNER_LABEL
from modelfleet.api.validate import InvalidObject, Violation, read
from modelfleet.compiler import Children, compile_inference
from modelfleet.kube.objects import Item
from modelfleet.kube.store import State, Store
from modelfleet.plan import Api, Key, Manifest
from modelfleet.reconcilers.inference.apis import (
    CHILDREN,
    DEPLOYMENT,
    ENDPOINT_SLICE,
    HTTP_ROUTE,
    INFERENCE_SERVICE,
    POD,
    POD_DISRUPTION_BUDGET,
    SCALED_OBJECT,
    SERVICE,
)
from modelfleet.reconcilers.inference.replicas import Replicas, next_step
from modelfleet.reconcilers.inference.views import EndpointSliceView, InferenceServiceView, PodView

BY_SERVICE = "inferenceservice"
"""Index of pods and endpoint slices by `namespace/name` of their InferenceService."""

_REMEMBERED = 1024
"""Specs kept in compiled form. An object is born in about six passes, each of which would check and compile
it anew: 0.2 ms for a small spec, 6 ms for one that uses every field (test/unit/compiler/specs)."""

_Compiled = tuple[InferenceService | None, tuple[Violation, ...], Children | None]
Stores = Mapping[Api, Store[Any]]
"""By resource type; one for each of `resources()`."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the store of one child kind shows of one InferenceService."""

    state: State
    problem: str = ""
    children: tuple[Item[Any], ...] = ()
    """Objects of the kind that our object controls, sorted by name."""

    def named(self, name: str) -> Item[Any] | None:
        """The child of that name, if we have it."""
        return next((item for item in self.children if item.meta.name == name), None)


@dataclass(frozen=True, slots=True)
class Observed:
    """One InferenceService and its surroundings."""

    key: Key
    item: Item[InferenceServiceView]
    spec: InferenceService | None
    """The typed object; None when what is stored can't be read as one."""
    violations: tuple[Violation, ...]
    """Why it can't; empty when `spec` is there."""
    wanted: Children | None
    """The compiled children; None when there is no `spec`."""
    seen: Mapping[Api, Seen]
    """By child kind."""
    step: Replicas
    """The next step of the replica count's ownership."""
    intents: Mapping[Api, Manifest]
    """By child kind, what modelfleet-controller wants now; kinds the spec doesn't ask for are absent."""
    pods: tuple[Item[PodView], ...] = ()
    """Pods carrying our label, sorted by name."""
    ready_endpoints: int = 0
    """Addresses of the Service that take traffic now."""


def observe(key: Key, stores: Stores) -> Observed | None:
    """Read the stores; None when the object is gone."""
    item: Item[InferenceServiceView] | None = stores[INFERENCE_SERVICE].get(key.namespace, key.name)
    if item is None:
        return None
    meta = item.meta
    spec, violations, wanted = _compiled(meta.namespace, meta.name, meta.uid, item.view.spec)
    seen = {api: _seen(stores[api], item.meta.uid) for api in CHILDREN}
    step = Replicas(own=None) if wanted is None else _replicas_step(wanted, seen)
    return Observed(
        key=key,
        item=item,
        spec=spec,
        violations=violations,
        wanted=wanted,
        seen=seen,
        step=step,
        intents={} if wanted is None else _intents(wanted, step),
        pods=stores[POD].by_index(BY_SERVICE, str(key)),
        ready_endpoints=_ready_endpoints(stores[ENDPOINT_SLICE], key)
        if seen[SERVICE].named(meta.name)
        else 0,
    )


def labelled(item: Item[Any]) -> tuple[str, ...]:
    """Index function of `BY_SERVICE`."""
    name = item.meta.labels.get(OWNER_LABEL)
    return (f"{item.meta.namespace}/{name}",) if name else ()


@lru_cache(maxsize=_REMEMBERED)
def _compiled(namespace: str, name: str, uid: str, spec: bytes) -> _Compiled:
    """Read and compile a spec; a pure function of its arguments, whose results are not changed."""
    body = {
        "apiVersion": INFERENCE_SERVICE.api_version,
        "kind": INFERENCE_SERVICE.kind,
        "metadata": {"name": name, "namespace": namespace, "uid": uid},
        "spec": msgspec.json.decode(spec),
    }
    try:
        isvc = read(body)
    except InvalidObject as invalid:
        return None, tuple(invalid.violations), None
    return isvc, (), compile_inference(isvc, owner_uid=uid)


def _replicas_step(wanted: Children, seen: Mapping[Api, Seen]) -> Replicas:
    scalers = seen[SCALED_OBJECT]
    deployment = seen[DEPLOYMENT].named(wanted.name)
    return next_step(
        scaled=wanted.scaled,
        suspended=wanted.suspended,
        minimum=wanted.min_replicas,
        live=None if deployment is None else deployment.view,
        scaler_exists=bool(scalers.children) or scalers.state in (State.SYNCING, State.FORBIDDEN),
    )


def _intents(wanted: Children, step: Replicas) -> dict[Api, Manifest]:
    intents = {
        DEPLOYMENT: wanted.deployment(step.own),
        SERVICE: wanted.service,
        SCALED_OBJECT: wanted.scaled_object,
        HTTP_ROUTE: wanted.http_route,
        POD_DISRUPTION_BUDGET: wanted.pod_disruption_budget,
    }
    return {api: manifest for api, manifest in intents.items() if manifest is not None}


def _seen(store: Store[Any], uid: str) -> Seen:
    controlled = (
        item for item in store.by_owner(uid) if (owner := item.meta.controller) and owner.uid == uid
    )
    return Seen(store.state, store.problem, tuple(controlled))


def _ready_endpoints(store: Store[EndpointSliceView], key: Key) -> int:
    slices = store.by_index(BY_SERVICE, str(key))
    return sum(item.view.ready for item in slices if item.view.service == key.name)
