"""What a rule is: one sentence of the API's contract, for the API server and for us.

The CEL expression and the Python predicate say the same thing about the same JSON value; the contract test
runs every case against both. The message names what to write instead. A rule stands on the type or format
it is about, never higher: the API server skips rules of a value that an update leaves alone, so a rule that
a stored object breaks must not block `suspend` (ratcheting, KEP-4008; api.md, "Rules for every kind").

What is not forgiven is a rule that can't be evaluated (seen on 1.36.3). Rules may read a required field
without asking `has` only because no release makes a field required that an earlier one did not.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from modelfleet.api.base import ApiObject, Format

Subject = type[ApiObject] | Format


@dataclass(frozen=True, slots=True)
class Rule:
    """Something that must hold for each value of a type or format."""

    on: Subject
    cel: str
    """CEL over `self`, the JSON value with its defaults."""
    holds: Callable[[Any], bool]
    """The same over the JSON value in Python."""
    message: str
    """Completes "<field>: ...": what is expected and what to write instead."""
    field: str = ""
    """Field of the object the message is about, in wire form with dots; "" for the value itself."""

    def allows(self, new: Any, old: Any) -> bool:
        """Whether the value `new` may follow `old` (None: it is new here)."""
        del old
        return self.holds(new)

    @property
    def transition(self) -> bool:
        """Whether the rule compares with the stored value; such a rule is never skipped."""
        return False

    def validation(self) -> dict[str, Any]:
        """The entry in x-kubernetes-validations."""
        return {"rule": self.cel, "message": self.message} | (
            {"fieldPath": f".{self.field}"} if self.field else {}
        )


@dataclass(frozen=True, slots=True)
class Transition(Rule):
    """A rule about a change: `holds` has nothing to say, the stored value decides."""

    def allows(self, new: Any, old: Any) -> bool:
        """Equal in `field`, where there is an old value."""
        return old is None or at(new, self.field) == at(old, self.field)

    @property
    def transition(self) -> bool:
        """It is about the change."""
        return True


@dataclass(frozen=True, slots=True)
class Across(Rule):
    """A rule about several parts of a large object; it is only applied when one of `reads` changes.

    Without this a rule on `spec` would be checked again on every edit, since `spec` as a whole changes.
    """

    reads: tuple[str, ...] = ()
    """Paths in wire form; the rule reads nothing else."""

    def allows(self, new: Any, old: Any) -> bool:
        """Holds, or nothing it reads has changed."""
        if old is not None and all(at(new, path) == at(old, path) for path in self.reads):
            return True
        return self.holds(new)

    @property
    def transition(self) -> bool:
        """It looks at the stored value itself."""
        return True

    def validation(self) -> dict[str, Any]:
        """The entry in x-kubernetes-validations."""
        same = " && ".join(_same(path) for path in self.reads)
        entry = super(Across, self).validation()  # zero-argument super() does not work in a slots dataclass
        return entry | {"rule": f"(oldSelf.hasValue() && {same}) || ({self.cel})", "optionalOldSelf": True}


def _same(path: str) -> str:
    """CEL for "this part has not changed"; optional syntax would be shorter, but has no cost bound."""
    new, old = _present(f"self.{path}"), _present(f"oldSelf.value().{path}")
    return f"({new}) == ({old}) && (!({new}) || self.{path} == oldSelf.value().{path})"


def _present(path: str) -> str:
    root, names = path.rsplit("()", 1) if "()" in path else ("", path)
    parts = names.split(".")
    start = f"{root}()" if root else ""
    return " && ".join(f"has({start}{'.'.join(parts[: end + 1])})" for end in range(1, len(parts)))


def at(value: Any, path: str) -> Any:
    """The value at a dotted path, or None."""
    for name in path.split("."):
        if not isinstance(value, dict) or name not in value:
            return None
        value = value[name]
    return value


def unchanged(on: type[ApiObject], field: str, message: str) -> Rule:
    """A field that can't change once the object is stored; adding and removing it are changes too."""
    cel = (
        f"has(self.{field}) == has(oldSelf.{field}) && "
        f"(!has(self.{field}) || self.{field} == oldSelf.{field})"
    )
    return Transition(on, cel, lambda _: True, message, field)


def full(pattern: str) -> Callable[[str], bool]:
    """Whether a string matches as a whole; Python's and RE2's syntax agree on all of our patterns."""
    compiled = re.compile(pattern, re.ASCII)
    return lambda text: compiled.fullmatch(text) is not None


def matching(on: Format, pattern: str, message: str) -> Rule:
    """A string must match a regular expression as a whole."""
    if "'" in pattern:
        raise ValueError(f"{pattern!r}: a quote would end the CEL string")
    return Rule(on, f"self.matches(r'^({pattern})$')", full(pattern), message)


def exactly_one(on: type[ApiObject], fields: tuple[str, ...], message: str) -> Rule:
    """An object must have exactly one of some fields: a union."""
    listed = ", ".join(f"has(self.{name})" for name in fields)
    return Rule(
        on, f"[{listed}].exists_one(x, x)", lambda self: sum(name in self for name in fields) == 1, message
    )


def at_most_one(on: type[ApiObject], first: str, second: str, message: str) -> Rule:
    """Two fields exclude each other."""
    return Rule(
        on,
        f"!(has(self.{first}) && has(self.{second}))",
        lambda self: not (first in self and second in self),
        message,
    )
