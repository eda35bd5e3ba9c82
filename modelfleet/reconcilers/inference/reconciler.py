"""The InferenceService reconciler as the runtime sees it: three pure functions over the stores."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from modelfleet.kube.objects import Item
from modelfleet.plan import Api, DesiredStatus, Key, Outcomes, Plan
from modelfleet.reconcilers.inference.apis import INFERENCE_SERVICE
from modelfleet.reconcilers.inference.observe import Observed, Stores, observe
from modelfleet.reconcilers.inference.plan import make_plan
from modelfleet.reconcilers.inference.resources import keys_of
from modelfleet.reconcilers.inference.status import make_status


class InferenceReconciler:
    """One kind's logic; holds nothing but the stores it reads."""

    name = "inferenceservice"
    api = INFERENCE_SERVICE

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    def keys_of(self, api: Api, item: Item[Any]) -> Iterable[Key]:
        """Which InferenceServices an event of a watched object concerns."""
        return keys_of(api, item)

    def observe(self, key: Key, now: datetime) -> Observed | None:  # noqa: ARG002  # no decision depends on time
        """Read the stores; None when the object is gone."""
        return observe(key, self._stores)

    def item(self, observed: Observed) -> Item[Any]:
        """The InferenceService itself."""
        return observed.item

    def live_conditions(self, observed: Observed) -> Sequence[Mapping[str, Any]]:
        """Its conditions as the server returned them."""
        return observed.item.view.conditions()

    def plan(self, observed: Observed) -> Plan:
        """What must change, and nothing when nothing must."""
        return make_plan(observed)

    def status(self, observed: Observed, outcomes: Outcomes) -> DesiredStatus:
        """The truth about the object, also after failures."""
        return make_status(observed, outcomes)
