"""InferenceService: a Deployment and a Service, on demand a ScaledObject, an HTTPRoute and a budget."""

from modelfleet.reconcilers.inference.observe import Observed
from modelfleet.reconcilers.inference.reconciler import InferenceReconciler
from modelfleet.reconcilers.inference.resources import keys_of, resources

__all__ = ["InferenceReconciler", "Observed", "keys_of", "resources"]
