"""Quantities; what the API server makes of them is test/contract/test_quantity.py."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modelfleet.api.quantity import LIMIT, MILLI, NANO, canonical, parse, round_up

DIGITS = st.integers(0, 10**9).map(str)
QUANTITIES = st.builds(
    "{}{}{}".format,
    DIGITS,
    st.one_of(st.just(""), DIGITS.map(".{}".format)),
    st.sampled_from(
        ["", "n", "u", "m", "k", "M", "G", "Ki", "Mi", "Gi", "e0", "e1", "e2", "E3", "e-3", "e-7"]
    ),
).filter(lambda text: "Gi" not in text or len(text) < 12)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1000m", "1"),
        ("1024Mi", "1Gi"),
        ("1536Mi", "1536Mi"),
        ("0.5", "500m"),
        ("1.5Gi", "1536Mi"),
        ("1000", "1k"),
        ("1e3", "1e3"),  # apimachinery keeps a spelling that it takes for canonical
        ("1e4", "10e3"),
        ("0100m", "0100m"),
        ("0Gi", "0"),
        ("1023Ki", "1023Ki"),
        ("1.1Ki", "1126400m"),
        ("0.1n", "1n"),
        ("-1500m", "-1500m"),
    ],
)
def test_canonical(text: str, expected: str) -> None:
    """A quantity is written as the API server writes it."""
    assert expected == canonical(text)


def test_container_resources_are_rounded_up_to_a_thousandth() -> None:
    """SetDefaults_ResourceList rounds requests and limits, and so does the canonical form for them."""
    assert ("1m", "100u") == (canonical("100u", smallest=MILLI), canonical("100u"))


@given(QUANTITIES)
def test_canonical_means_the_same(text: str) -> None:
    """Writing a quantity in its canonical form changes no value."""
    assert parse(text) == parse(canonical(text))


@given(QUANTITIES)
def test_canonical_is_stable(text: str) -> None:
    """The canonical form of a canonical form is itself, else every apply would differ from the last."""
    assert canonical(text) == canonical(canonical(text))


@given(QUANTITIES, QUANTITIES)
def test_rounding_keeps_the_order(first: str, second: str) -> None:
    """A larger quantity never becomes a smaller request."""
    low, high = sorted((first, second), key=parse)
    assert parse(canonical(low, smallest=MILLI)) <= parse(canonical(high, smallest=MILLI))


@given(st.fractions(0, 10**6))
def test_round_up_is_the_next_step(value: Fraction) -> None:
    """Rounding goes up, by less than one step."""
    step = Fraction(10) ** NANO
    assert 0 <= round_up(value, NANO) - value < step


@pytest.mark.parametrize(
    "text", ["", ".", "Gi", "1GB", "1 Gi", "0x10", "1e", "e3", "1.2.3", "\N{ARABIC-INDIC DIGIT ONE}", "1Ki\n"]
)
def test_no_quantity(text: str) -> None:
    """What is no quantity is refused with an example of one."""
    with pytest.raises(ValueError, match="500m, 2 or 16Gi"):
        parse(text)


@pytest.mark.parametrize("text", ["8Ei", "1e19", "9223372036854775808", "1e99"])
def test_beyond_int64(text: str) -> None:
    """Quantities are int64; apimachinery would cap or misprint a larger one."""
    with pytest.raises(ValueError, match="below 8Ei"):
        canonical(text)
    assert parse("9223372036854775807") == LIMIT - 1
