"""The path of each parameter in a few points: for one line of a terminal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, fsum, sqrt

from spsa.db.history_rows import ThetaPoint
from spsa.db.store import Run, Store

POINTS = 16
_LEVELS = "▁▂▃▄▅▆▇█"
_WIDTH = 11


@dataclass(frozen=True, slots=True)
class Trail:
    """Theta of one parameter at some results, the start first."""

    values: tuple[float, ...]

    @property
    def signal_to_noise(self) -> float | None:
        """See `signal_to_noise`."""
        return signal_to_noise(self.values)

    @property
    def sparkline(self) -> str:
        """A character a point, from the path's lowest value to its highest; empty at the start."""
        if len(self.values) < 2:
            return ""
        low, high = min(self.values), max(self.values)
        top = len(_LEVELS) - 1
        scale = top / (high - low) if high > low else 0.0
        return "".join(_LEVELS[round((value - low) * scale)] for value in self.values)


def trails(store: Store, run: Run) -> Mapping[str, Trail]:
    """The trail of every parameter of a run, by name."""
    stride = max(1, ceil(run.applied / (POINTS - 1)))
    path = store.theta_path(run.id, sampled(run.applied, stride))
    return {name: Trail(_values(path, name)) for name in run.start_theta}


def _values(path: Sequence[ThetaPoint], name: str) -> tuple[float, ...]:
    return tuple(point.theta[name] for point in path if name in point.theta)


def sampled(applied: int, stride: int) -> list[int]:
    """0, the end, and every `stride` results between."""
    return [*range(0, applied, stride), applied]


def signal_to_noise(path: Sequence[float]) -> float | None:
    """How far a path has led, over how far a random walk of the same steps leads (one deviation).

    Steps without a trend give values below 2 in 95% of cases. None before the first step.
    """
    steps = [after - before for before, after in pairwise(path)]
    walk = sqrt(fsum(step * step for step in steps))
    return abs(fsum(steps)) / walk if walk > 0.0 else None


def gauge(value: float, minimum: float, maximum: float) -> str:
    """Where a value is between its bounds: `──●────────`."""
    part = (value - minimum) / (maximum - minimum) if maximum > minimum else 0.5
    place = round(min(max(part, 0.0), 1.0) * (_WIDTH - 1))
    return "─" * place + "●" + "─" * (_WIDTH - 1 - place)
