"""The compiler is deterministic to the byte, and its output is reviewed as files."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from test.unit.compiler.golden import SPECS, golden, load, rendered


@pytest.mark.parametrize("spec", SPECS, ids=lambda path: path.stem)
def test_rendering(spec: Path) -> None:
    """The same spec gives the same bytes in every release; see test.unit.compiler.golden to change them."""
    assert golden(spec).read_text() == rendered(load(spec))


def test_no_rendering_is_left_over() -> None:
    """Each golden file belongs to a spec."""
    assert {spec.name for spec in SPECS} == {
        path.name for path in (Path(__file__).parent / "golden").iterdir()
    }


def shuffled(value: Any, chance: random.Random) -> Any:
    """The same JSON value with the keys of its maps in another order."""
    if isinstance(value, dict):
        items = list(value.items())
        chance.shuffle(items)
        return {key: shuffled(inner, chance) for key, inner in items}
    if isinstance(value, list):
        return [shuffled(inner, chance) for inner in value]
    return value


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(SPECS), st.randoms(use_true_random=False))
def test_key_order_and_repetition_change_nothing(spec: Path, chance: random.Random) -> None:
    """Maps have no order on the wire; a rendering that depended on it would roll pods for nothing."""
    body = load(spec)
    before = json.dumps(body)
    again = rendered(shuffled(body, chance))
    assert rendered(body) == again
    assert before == json.dumps(body), "compiling must not change the object it is given"
