"""The path of each parameter in a few points: for one line of a terminal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, fsum, sqrt

from spsa.db import Store
from spsa.db.history_queries import ThetaPoint
from spsa.db.tables import Run

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
    return trails_of(trail_points(store, run), run)


def trail_points(store: Store, run: Run) -> Sequence[ThetaPoint]:
    """Theta at `POINTS` results at most, evenly apart but for the last."""
    stride = max(1, ceil(run.applied / (POINTS - 1)))
    return store.theta_path(run.id, sampled(run.applied, stride))


def trails_of(path: Sequence[ThetaPoint], run: Run) -> Mapping[str, Trail]:
    return {name: Trail(_values(path, name)) for name in run.start_theta}


def _values(path: Sequence[ThetaPoint], name: str) -> tuple[float, ...]:
    return tuple(point.theta[name] for point in path if name in point.theta)


def extended(path: Sequence[ThetaPoint], point: ThetaPoint) -> Sequence[ThetaPoint]:
    """The path with a later point, again at most `POINTS`, evenly apart but for the last."""
    stride = path[1].k - path[0].k if len(path) > 1 else 1
    is_whole = len(path) < 2 or path[-1].k - path[-2].k >= stride
    longer = [*(path if is_whole and path[-1].k < point.k else path[:-1]), point]
    return longer if len(longer) <= POINTS else [*longer[:-1:2], point]


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
