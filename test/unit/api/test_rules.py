"""The rule table: every rule is broken by a case, and its two forms belong together."""

import pytest

from modelfleet.api.base import ApiObject, Format
from modelfleet.api.inference import InferenceService, Service
from modelfleet.api.rules import RULES, Rule
from modelfleet.api.rules.rule import Across, matching, unchanged
from modelfleet.api.schema import RULES_KEY, object_schema
from modelfleet.api.validate import validate
from test.unit.api.cases import CASES, isvc
from test.unit.api.test_schema import nodes


def test_every_rule_stands_somewhere() -> None:
    """A rule on a type or format that no field has would never be checked."""
    standing = {
        rule for _, node in nodes(object_schema(InferenceService)) for rule in node.get(RULES_KEY, ())
    }
    assert [] == [rule.message for rule in RULES if rule not in standing]


def test_every_rule_is_broken_by_a_case() -> None:
    """The contract test proves a rule's two forms equal only where a case breaks it."""
    said = {
        violation.message
        for case in CASES
        if "refused" in case
        for violation in validate(
            isvc(case.get("spec"), **case.get("metadata", {})),
            isvc(case["old"]) if "old" in case else None,
        )
    }
    assert [] == [rule.message for rule in RULES if rule.message not in said]


def test_messages_name_a_remedy() -> None:
    """A message completes "<field>: " and says what is expected."""
    assert [] == [rule.message for rule in RULES if not rule.message.startswith(("must ", "can't "))]


def test_rules_on_the_whole_spec_look_at_what_changed() -> None:
    """`spec` changes with every edit; a plain rule there would block `suspend` once it is tightened."""
    on_spec = [rule for rule in RULES if isinstance(rule.on, type) and rule.on.__name__.endswith("Spec")]
    assert [] == [rule.message for rule in on_spec if not isinstance(rule, Across)]


class _Thing(ApiObject):
    """Has one field."""


def test_unchanged() -> None:
    """Adding and removing a field are changes as well; without a stored object there is nothing to keep."""
    rule = unchanged(_Thing, "size", "can't be changed")
    assert [True, True, False, False, False] == [
        rule.allows({"size": 1}, None),
        rule.allows({"size": 1}, {"size": 1}),
        rule.allows({"size": 2}, {"size": 1}),
        rule.allows({}, {"size": 1}),
        rule.allows({"size": 1}, {}),
    ]


def test_across() -> None:
    """A rule across parts is applied when one of them changes, and only then."""
    rule = Across(_Thing, "false", lambda _: False, "must not be", reads=("a.b", "c"))
    assert [False, True, True, False] == [
        rule.allows({"c": 1}, None),
        rule.allows({"c": 1, "d": 2}, {"c": 1}),
        rule.allows({"a": {"b": 1, "x": 1}}, {"a": {"b": 1}}),
        rule.allows({"a": {"b": 2}}, {"a": {"b": 1}}),
    ]
    assert (
        "(has(self.a) && has(self.a.b)) == (has(oldSelf.value().a) && has(oldSelf.value().a.b))"
        in rule.validation()["rule"]
    )


def test_pattern_with_a_quote() -> None:
    """A quote in a pattern would end the CEL string around it."""
    with pytest.raises(ValueError, match="a quote would end the CEL string"):
        matching(Format("x"), "it's", "must match")


def test_rules_apply_to_subtypes() -> None:
    """A readiness probe is a probe."""
    probe = object_schema(InferenceService)["properties"]["spec"]["properties"]["container"]["properties"][
        "readinessProbe"
    ]
    said: list[Rule] = list(probe[RULES_KEY])
    assert "must have exactly one of httpGet, tcpSocket, grpc and exec" in [rule.message for rule in said]
    assert Service not in [rule.on for rule in said]
