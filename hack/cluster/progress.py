"""How long the missing parts will take, from what they took elsewhere and how fast this machine has been.

Pure: the caller brings the clock. The estimate of a part is its recorded time scaled by the ratio seen on the
finished parts of its lane, since a quick network says nothing about the compiler. The ratio starts with some
recorded pace as evidence, so that one quick part does not promise that all are. A build that overruns its
estimate counts as nearly done, never as negative.
"""

from dataclasses import dataclass, field

MAX_FACTOR = 20.0
"""20 times slower is not a machine to wait for."""
PRIOR_SECONDS = 120.0
"""So many seconds at the recorded pace weigh against what is measured: about two of the larger Go builds."""


@dataclass
class Part:
    """Something to be built or fetched."""

    name: str
    expected: float
    """Seconds on the machine where the numbers were taken."""
    lane: str = ""
    """Parts of one lane are made one after the other and tell about each other's pace."""
    started: float | None = None
    finished: float | None = None


@dataclass
class Progress:
    """Parts in the order they are made."""

    parts: list[Part] = field(default_factory=list)

    def add(self, name: str, expected: float, *, lane: str = "") -> Part:
        """Append a part."""
        part = Part(name, expected, lane)
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

    def factor(self, lane: str = "") -> float:
        """A lane's time over the recorded one; 1 before anything is finished in it."""
        expected = actual = PRIOR_SECONDS
        for part in self.parts:
            if part.lane == lane and part.started is not None and part.finished is not None:
                expected += part.expected
                actual += part.finished - part.started
        return min(actual / expected, MAX_FACTOR)

    def remaining(self, now: float) -> float:
        """Seconds until the last part is made."""
        left = 0.0
        for part in self.parts:
            if part.finished is None:
                spent = now - part.started if part.started is not None else 0.0
                left += max(part.expected * self.factor(part.lane) - spent, 0.0)
        return left

    def line(self, now: float) -> str:
        """What is being made, since when, what is left and about how long; empty when nothing is."""
        part = self.current
        if part is None or part.started is None:
            return ""
        own = f"{clock(now - part.started)} of about {clock(part.expected * self.factor(part.lane))}"
        then = f"; then {', '.join(self.waiting)}" if self.waiting else ""  # last: a narrow terminal cuts it
        remaining = self.remaining(now)
        left = f"about {clock(remaining)} left" if remaining else "longer than usual"
        return f"building {part.name} ({self.done + 1}/{len(self.parts)}, {own}), {left}{then}"


def clock(seconds: float) -> str:
    """`45 s`, `2:05 min`."""
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60}:{whole % 60:02d} min"  # noqa: PLR2004  # seconds
