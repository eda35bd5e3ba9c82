"""How long the missing parts will take, from what they took elsewhere and how fast this machine has been.

Pure: the caller brings the clock. The estimate of a part is its recorded time scaled by the ratio seen on the
parts that are finished; a build that overruns its estimate counts as nearly done, never as negative.
"""

from dataclasses import dataclass, field

MIN_FACTOR, MAX_FACTOR = 0.02, 20.0
"""A warm Go build cache makes a part 50 times faster than the recorded cold build; 20 times slower is not a
machine to wait for."""


@dataclass
class Part:
    """Something to be built or fetched."""

    name: str
    expected: float
    """Seconds on the machine where the numbers were taken."""
    started: float | None = None
    finished: float | None = None


@dataclass
class Progress:
    """Parts in the order they are made."""

    parts: list[Part] = field(default_factory=list)

    def add(self, name: str, expected: float) -> Part:
        """Append a part."""
        part = Part(name, expected)
        self.parts.append(part)
        return part

    @property
    def current(self) -> Part | None:
        """The part being made: the first that started and has not finished."""
        return next((part for part in self.parts if part.started is not None and part.finished is None), None)

    @property
    def waiting(self) -> list[str]:
        """Names of the parts not yet begun."""
        return [part.name for part in self.parts if part.started is None]

    @property
    def done(self) -> int:
        """How many parts are finished."""
        return sum(part.finished is not None for part in self.parts)

    def factor(self) -> float:
        """This machine's time over the recorded one; 1 before anything is finished."""
        ended = [part for part in self.parts if part.started is not None and part.finished is not None]
        expected = sum(part.expected for part in ended)
        actual = sum((part.finished or 0) - (part.started or 0) for part in ended)
        return min(max(actual / expected, MIN_FACTOR), MAX_FACTOR) if expected else 1.0

    def remaining(self, now: float) -> float:
        """Seconds until the last part is made."""
        factor = self.factor()
        left = 0.0
        for part in self.parts:
            if part.finished is None:
                spent = now - part.started if part.started is not None else 0.0
                left += max(part.expected * factor - spent, 0.0)
        return left

    def line(self, now: float) -> str:
        """What is being made, since when, what is left and about how long; empty when nothing is."""
        part = self.current
        if part is None or part.started is None:
            return ""
        own = f"{clock(now - part.started)} of about {clock(part.expected * self.factor())}"
        then = f"; then {', '.join(self.waiting)}" if self.waiting else ""  # last: a narrow terminal cuts it
        remaining = self.remaining(now)
        left = f"about {clock(remaining)} left" if remaining else "longer than usual"
        return f"building {part.name} ({self.done + 1}/{len(self.parts)}, {own}), {left}{then}"


def clock(seconds: float) -> str:
    """`45 s`, `2:05 min`."""
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60}:{whole % 60:02d} min"  # noqa: PLR2004  # seconds
