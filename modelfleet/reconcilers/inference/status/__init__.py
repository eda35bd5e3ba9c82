"""The truth about an InferenceService, recomputed whole on each pass from what is seen and what was refused.

Nothing is read back from the former status, nothing ticks, and a condition that does not apply is absent: so
a pass over an unchanged cluster gives the same bytes and no write (facts 1.5).
"""

from modelfleet.plan import DesiredStatus, Outcomes
from modelfleet.reconcilers.inference.observe import Observed
from modelfleet.reconcilers.inference.status.fields import status_fields
from modelfleet.reconcilers.inference.status.ready import progress, ready
from modelfleet.reconcilers.inference.status.route import route_ready
from modelfleet.reconcilers.inference.status.scaling import scaling_ready
from modelfleet.reconcilers.inference.status.serving import serving
from modelfleet.reconcilers.inference.status.workload import workload_ready

__all__ = ["make_status"]


def make_status(observed: Observed, outcomes: Outcomes) -> DesiredStatus:
    """The whole status our field manager wants."""
    workload = workload_ready(observed, outcomes)
    scaling = scaling_ready(observed, outcomes)
    route = route_ready(observed, outcomes)
    parts = [part for part in (workload, scaling, route) if part is not None]
    verdict = ready(observed, outcomes, parts)
    motion = progress(observed, outcomes, verdict)
    conditions = (verdict, motion, serving(observed, scaling, route), *parts)
    return DesiredStatus(
        observed_generation=observed.item.meta.generation,
        conditions=tuple(condition for condition in conditions if condition is not None),
        fields=status_fields(observed, route),
    )
