"""The words of schema violations; their verdicts are compared with jsonschema's in test_validate.py."""

from typing import Any

import pytest

from modelfleet.api.keywords import check


@pytest.mark.parametrize(
    ("kind", "suffix", "empty", "one", "units"),
    [
        ("string", "Length", "", "a", ("character", "characters")),
        ("array", "Items", [], [1], ("item", "items")),
        ("object", "Properties", {}, {"a": 1}, ("entry", "entries")),
    ],
)
def test_sizes_count_in_english(kind: str, suffix: str, empty: Any, one: Any, units: tuple[str, str]) -> None:
    """One is singular, none and several are plural, whatever is counted."""
    singular, plural = units

    def said(bound: str, number: int, value: Any) -> list[str]:
        return [message for _, message in check({"type": kind, f"{bound}{suffix}": number}, value)]

    assert [
        [f"must have at least 1 {singular}, has 0"],
        [f"must have at least 2 {plural}, has 1"],
        [f"must have at most 0 {plural}, has 1"],
        [],
    ] == [said("min", 1, empty), said("min", 2, one), said("max", 0, one), said("max", 1, one)]
