"""Where numbers are on a chart: scales, round ticks, and paths of SVG."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, isfinite, log10

from spsa.report.text import number

MAX_LABEL = 9
"""Characters of a tick; what would be longer is written with an exponent."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps `low`..`high` linearly to `start`..`end`, in the units of the SVG."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Values beyond the scale are drawn at its edge."""
        part = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return round(self.start + part * (self.end - self.start), 1)


def span(values: Iterable[float], margin: float = 0.05) -> tuple[float, float]:
    """From the lowest finite value to the highest with a margin around; never empty."""
    finite = [value for value in values if isfinite(value)] or [0.0]
    low, high = min(finite), max(finite)
    room = margin * (high - low) or max(1e-9, 0.05 * abs(high)) if margin else 0.0
    return (low - room, high + room) if high + room > low - room else (low, low + 1.0)


def ticks(low: float, high: float, most: int, least: float = 0.0) -> tuple[float, ...]:
    """At most about so many round numbers within `low`..`high`, `least` apart or more."""
    rough = max((high - low) / most, least)
    unit = 10.0 ** floor(log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
    return tuple(i * step for i in range(ceil(low / step), floor(high / step) + 1))


def labels(values: Sequence[float]) -> tuple[str, ...]:
    """Ticks as texts with as many decimals as tell them apart."""
    if len(values) > 1:
        decimals = max(0, -floor(log10(values[1] - values[0]) + 1e-9))
        texts = tuple(f"{value:.{decimals}f}" for value in values)
        if max(map(len, texts)) <= MAX_LABEL:
            return texts
    return tuple(number(value) for value in values)


def polyline(xs: Sequence[float], ys: Sequence[float]) -> str:
    """The `d` of a path through these points."""
    return "M" + "L".join(f"{x:g},{y:g}" for x, y in zip(xs, ys, strict=True))


def band(xs: Sequence[float], lower: Sequence[float], upper: Sequence[float]) -> str:
    """The `d` of the area between two lines."""
    return polyline([*xs, *reversed(xs)], [*upper, *reversed(lower)]) + "Z"
