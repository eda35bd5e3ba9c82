"""From what is seen to what must change: one read of this file tells what the controller does.

- A child whose live digest equals the wanted one gets no action: a reconcile of a converged object sends
  nothing (rule A13).
- Every write to an existing object carries its uid and resourceVersion (A7); a birth carries none and must
  find its name free.
- A Service exists before the route that points to it, a Deployment before the ScaledObject that scales it.
  Suspending turns the latter around: the scaler is paused before the pods go, or it would bring them back.
- Children that are no longer wanted are deleted, never when the wanted set is unknown (A6); an autoscaler
  goes before the Deployment is touched.
- Nothing is created while the object is being deleted; its children go with it (owner references).
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from modelfleet.api.meta import MANAGER, REPLICAS_MANAGER
from modelfleet.compiler import Children
from modelfleet.kube.objects import Item
from modelfleet.kube.store import State
from modelfleet.plan import Action, Api, Apply, Delete, Manifest, Patch, Plan, Precondition, Ref
from modelfleet.reconcilers.inference.apis import CHILDREN, DEPLOYMENT, HTTP_ROUTE, SCALED_OBJECT, SERVICE
from modelfleet.reconcilers.inference.observe import Observed
from modelfleet.reconcilers.inference.views import ServiceView, port_key

HAND_OVER = "replicas"
"""Name of the action by which modelfleet-replicas takes hold of the replica count, or lets go of it."""


def action_name(api: Api) -> str:
    """Name of the action that applies the child of a kind, and of its outcome."""
    return api.kind.lower()


def removal_name(api: Api, name: str) -> str:
    """Name of the action that deletes a child that is no longer wanted."""
    return f"remove-{api.kind.lower()}-{name}"


def make_plan(observed: Observed) -> Plan:
    """Decide what must change; an empty plan when nothing must."""
    wanted = observed.wanted
    if wanted is None or observed.item.meta.deleting:
        return Plan()
    actions: list[Action] = list(_removals(observed, wanted))
    for api in _order(wanted):
        after = tuple(action.name for action in actions if _waits_for(api, action, wanted))
        action = _for_child(observed, wanted, api, after)
        if action is not None:
            actions.append(action)
    return Plan(tuple(actions))


def _order(wanted: Children) -> tuple[Api, ...]:
    if not wanted.suspended:
        return CHILDREN
    return (SCALED_OBJECT, *(api for api in CHILDREN if api != SCALED_OBJECT))


def _waits_for(api: Api, earlier: Action, wanted: Children) -> bool:
    """Whether the child of a kind must stay as it is when an earlier action does not get done."""
    pair = (api, earlier.ref.api)
    if pair == (DEPLOYMENT, SCALED_OBJECT):
        return wanted.suspended or isinstance(earlier, Delete)
    born = isinstance(earlier, Apply) and earlier.live is None
    return born and pair in ((HTTP_ROUTE, SERVICE), (SCALED_OBJECT, DEPLOYMENT))


def _for_child(observed: Observed, wanted: Children, api: Api, after: tuple[str, ...]) -> Action | None:
    """The one action the child of a kind needs, if it needs one."""
    seen, intent = observed.seen[api], observed.intents.get(api)
    if intent is None or seen.state is not State.SYNCED:
        return None
    live = seen.named(wanted.name)
    if live is not None and live.meta.deleting:
        return None  # its name is free once it is gone, and its last event wakes us
    ref = Ref(api, wanted.namespace, wanted.name)
    if live is not None:
        return _for_live(observed, wanted, live, ref, after)
    return Apply(action_name(api), ref, intent, MANAGER, observed.item.meta.uid, after=after)


def _for_live(
    observed: Observed, wanted: Children, live: Item[Any], ref: Ref, after: tuple[str, ...]
) -> Action | None:
    intent = observed.intents[ref.api]
    name, uid, pinned = action_name(ref.api), observed.item.meta.uid, _precondition(live)
    if live.digest != intent.digest:
        if ref.api == SERVICE and (way := _clear_the_way(live, intent)) is not None:
            return Patch(name, ref, way, MANAGER, pinned, after)
        return Apply(name, ref, intent, MANAGER, uid, pinned, live.digest, after)
    if ref.api == DEPLOYMENT and (observed.step.withdraw or observed.step.hand_over is not None):
        manifest = wanted.replicas(observed.step.hand_over)
        return Apply(HAND_OVER, ref, manifest, REPLICAS_MANAGER, uid, pinned, live.digest, after)
    return None


def _clear_the_way(live: Item[ServiceView], intent: Manifest) -> dict[str, Any] | None:
    """A patch that replaces a port of our name that somebody else holds; None when there is none (A5).

    Ports are told apart by number, so an apply would put ours next to the edited one, and the server refuses
    two ports of one name. Applied is what remains to be decided, in the next pass.
    """
    (ours,) = intent.body["spec"]["ports"]
    if not set(live.view.rivals) - {port_key(ours)}:
        return None
    return {"spec": {"ports": [ours, *msgspec.json.decode(live.view.others)]}}


def _removals(observed: Observed, wanted: Children) -> Iterator[Delete]:
    for api in CHILDREN:
        seen = observed.seen[api]
        kept = wanted.name if api in observed.intents else None
        if seen.state is not State.SYNCED:
            continue
        for item in seen.children:
            if item.meta.name != kept and not item.meta.deleting:
                ref = Ref(api, item.meta.namespace, item.meta.name)
                yield Delete(removal_name(api, item.meta.name), ref, _precondition(item))


def _precondition(item: Item[Any]) -> Precondition:
    return Precondition(item.meta.uid, item.meta.resource_version)
