"""Kubernetes quantities: parse, compare and write them exactly as apimachinery does.

The API server rewrites a quantity to its canonical form ("1000m" to "1", "1024Mi" to "1Gi", "0.5" to
"500m"), and what it rewrites differs from a manifest on every pass (rule A2). The compiler therefore
writes `canonical(q)`. Source: k8s.io/apimachinery/pkg/api/resource, quantity.go and suffix.go; checked
against a real API server in test/contract/test_quantity.py.
"""

import re
from fractions import Fraction

_SYNTAX = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<rest>[0-9]*))?"
    r"(?:(?P<binary>[KMGTPE]i)|[eE](?P<exponent>[+-]?[0-9]{1,2})|(?P<decimal>[numkMGTPE]?))",
    re.ASCII,
)
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
"""Index n is a factor of 1024**n."""
_DECIMAL = {-9: "n", -6: "u", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P", 18: "E"}
_EXPONENT_OF = {suffix: exponent for exponent, suffix in _DECIMAL.items()}
_EXACT_DIGITS = 18
"""math.go, maxInt64Factors: numbers of at most this many digits stay int64 and may keep their spelling."""
NANO = -9
MILLI = -3
"""Smallest powers of ten: of any quantity, and of a container's resources (SetDefaults_ResourceList)."""
LIMIT = 2**63
"""Quantities are int64; beyond it apimachinery caps or misprints them, so we refuse them."""


class _Parsed:
    """One matched quantity: its spelling and its exact value."""

    def __init__(self, text: str) -> None:
        match = _SYNTAX.fullmatch(text)
        if match is None or not (match["whole"] or match["rest"]):
            raise ValueError(
                f"{text!r} is no quantity: write a number with an optional unit, such as 500m, 2 or 16Gi"
            )
        self.text = text
        self.whole = match["whole"].lstrip("0") or "0"
        self.rest = match["rest"] or ""
        self.binary = match["binary"]
        self.scientific = match["exponent"] is not None
        self.exponent = int(match["exponent"]) if self.scientific else _EXPONENT_OF[match["decimal"] or ""]
        number = Fraction(int(self.whole + self.rest), 10 ** len(self.rest))
        factor = 1024 ** _BINARY.index(self.binary) if self.binary else Fraction(10) ** self.exponent
        self.magnitude = round_up(number * factor, NANO)
        self.sign = "-" if match["sign"] == "-" and self.magnitude else ""
        if self.magnitude >= LIMIT:
            raise ValueError(f"{text!r} is too large a quantity: write one below 8Ei")

    @property
    def keeps_spelling(self) -> bool:
        """Whether ParseQuantity takes the text for canonical and stores it as it is: "1e3", "0100m"."""
        digits = self.whole + self.rest
        if self.binary:
            factor = _BINARY.index(self.binary)
            precise = 15 - len(self.whole) - int(factor * 10 * 3 / 10) - 1 >= 0
            return precise and not self.rest and int(self.whole) % 8 != 0
        scale = self.exponent - len(self.rest)
        return (
            len(digits) <= _EXACT_DIGITS
            and scale >= NANO
            and scale % 3 == 0
            and not digits.endswith("000")
            and not digits.startswith("0")
        )


def round_up(value: Fraction, exponent: int) -> Fraction:
    """The smallest multiple of 10**exponent that is not below a non-negative value."""
    unit = Fraction(10) ** exponent
    return -(-value // unit) * unit


def parse(text: str) -> Fraction:
    """The exact value the API server gives a quantity, rounded up to nanos.

    Raises:
        ValueError: the text is no quantity, or not below 2**63; the message says how to write one.
    """
    parsed = _Parsed(text)
    return -parsed.magnitude if parsed.sign else parsed.magnitude


def canonical(text: str, *, smallest: int = NANO) -> str:
    """How the API server writes a quantity back; `smallest` is MILLI for a container's requests and limits.

    Raises:
        ValueError: as `parse`.
    """
    parsed = _Parsed(text)
    value = round_up(parsed.magnitude, smallest)
    if not value:
        return "0"
    if parsed.keeps_spelling and value == parsed.magnitude:
        return text
    if parsed.binary and value.denominator == 1 and value >= 1024:  # noqa: PLR2004  # the base of binary units
        return parsed.sign + _in_binary(int(value))
    mantissa, exponent = _in_decimal(value)
    unit = (
        f"e{exponent}" if parsed.scientific and exponent else "" if parsed.scientific else _DECIMAL[exponent]
    )
    return f"{parsed.sign}{mantissa}{unit}"


def _in_binary(value: int) -> str:
    power = 0
    while value % 1024 == 0:
        value //= 1024
        power += 1
    return f"{value}{_BINARY[power]}"


def _in_decimal(value: Fraction) -> tuple[int, int]:
    """Mantissa and exponent, the largest multiple of 3 that leaves the mantissa whole."""
    scaled, exponent = int(value * 10**9), NANO
    while scaled % 1000 == 0:
        scaled //= 1000
        exponent += 3
    return scaled, exponent
