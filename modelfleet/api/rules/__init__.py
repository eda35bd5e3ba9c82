"""The rule table: every rule of every kind, once, for the CRDs, `modelfleet validate` and the tests."""

from modelfleet.api.rules.container import CONTAINER_RULES
from modelfleet.api.rules.formats import FORMAT_RULES
from modelfleet.api.rules.pod import POD_RULES
from modelfleet.api.rules.rule import Rule
from modelfleet.api.rules.scaling import SCALING_RULES
from modelfleet.api.rules.serving import SERVING_RULES

RULES: tuple[Rule, ...] = FORMAT_RULES + CONTAINER_RULES + POD_RULES + SCALING_RULES + SERVING_RULES

__all__ = ["RULES", "Rule"]
