"""The vocabulary of change: refs, manifests, actions, outcomes and desired status; values only.

Nothing here does I/O, reads a clock or imports another package of ours.
"""

from modelfleet.plan.actions import Action, Apply, Create, Delete, Patch, Plan, Precondition, Propagation
from modelfleet.plan.manifest import Manifest, canonical, digest_of, intent
from modelfleet.plan.outcomes import Cause, Outcome, Outcomes, Problem, Result
from modelfleet.plan.refs import Api, Key, Ref
from modelfleet.plan.status import Condition, ConditionStatus, DesiredStatus

__all__ = [
    "Action",
    "Api",
    "Apply",
    "Cause",
    "Condition",
    "ConditionStatus",
    "Create",
    "Delete",
    "DesiredStatus",
    "Key",
    "Manifest",
    "Outcome",
    "Outcomes",
    "Patch",
    "Plan",
    "Precondition",
    "Problem",
    "Propagation",
    "Ref",
    "Result",
    "canonical",
    "digest_of",
    "intent",
]
