"""The parameters of a run as they stand: value, bounds, the way there, and what is known."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from math import ceil, isclose

from spsa.core.json_values import as_written
from spsa.core.parameter import Parameter
from spsa.core.params import Space
from spsa.db import Store
from spsa.db.read_queries import ThetaPoint
from spsa.db.tables import Run
from spsa.report.table import Column, View, number, values

AT_BOUND_STEPS = 0.5
POINTS = 16
"""Of a path on one line of a terminal, with the start."""

_LEVELS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterStatus(Parameter):
    """A parameter whose `value` is that of theta now, with what else is known of it.

    `supported` is None as long as nothing is known. `better_step` is the step that the games
    suggest, where the present one looks far too large or small. `path` is theta at some results,
    the start first; it is empty where it was not read.
    """

    start: float
    played: float
    supported: float | None
    better_step: float | None
    path: tuple[float, ...] = ()

    @property
    def steps_moved(self) -> float:
        return (self.value - self.start) / self.step

    @property
    def in_steps(self) -> tuple[float, ...]:
        """The path from the start: (theta - start) / step."""
        return tuple((value - self.path[0]) / self.step for value in self.path)

    @property
    def other_supported(self) -> float | None:
        """`supported` where it says something that theta, a sum of rounded steps, does not."""
        other = self.supported
        same = other is None or isclose(other, self.value, abs_tol=1e-6 * self.step)
        return None if same else other

    @property
    def bound(self) -> str:
        """Which bound theta is at, within half a step, unless it moves away; empty if at none."""
        near = AT_BOUND_STEPS * self.step
        if self.value - self.minimum < near and self.value <= self.start:
            return "min"
        return "max" if self.maximum - self.value < near and self.value >= self.start else ""

    @property
    def state(self) -> str:
        """`at max`, `frozen`, `step looks 3 times too large: try 27`, or nothing."""
        if not self.active:
            return "frozen"
        return ", ".join(filter(None, (self.bound and f"at {self.bound}", self.step_looks)))

    @property
    def step_looks(self) -> str:
        if self.better_step is None:
            return ""
        factor, how = self.step / self.better_step, "large"
        if factor < 1.0:
            factor, how = 1 / factor, "small"
        times = f"{factor:.{1 if factor < 9.95 else 0}f}".removesuffix(".0")
        return f"step looks {times} times too {how}: try {number(self.better_step)}"


PARAMETERS = View(
    "parameters",
    (
        Column("name", "name", kind="name"),
        Column("start", "start", rank=3),
        Column("value", "now"),
        *values("supported", "better_step"),
        Column("", "supported", "other_supported", rank=5, note="by all games together"),
        Column("played", "played as", rank=8),
        Column("steps_moved", "steps moved", show="{:+.2f}".format, rank=2),
        Column("path", "path", show=lambda path: sparkline(path), kind="word", rank=1),
        Column("minimum", "min", rank=9),
        Column("maximum", "max", rank=9),
        Column("bound"),
        Column(
            "", "state", "state", kind="word", rank=4, alarm=lambda p: p.active and bool(p.bound)
        ),
        Column("group", "group", kind="text", rank=10),
        *values("active", "step"),
    ),
    empty="There are no parameters.",
)


def parameters(run: Run, path: Sequence[ThetaPoint] = ()) -> tuple[ParameterStatus, ...]:
    """Every parameter of a run with its start, its present value, and its way by this path."""
    space, known = Space.from_json(run.space), asdict(run.estimates)
    with as_written("a column `theta` or `start_theta`"):
        played = space.rounded(space.steps(run.theta))
        return tuple(
            ParameterStatus(
                **{one.name: getattr(p, one.name) for one in fields(p)}
                | {what: (values or {}).get(p.name) for what, values in known.items()}
                | {"value": run.theta[p.name]},
                start=run.start_theta[p.name],
                played=played[p.name],
                path=tuple(point.theta[p.name] for point in path if p.name in point.theta),
            )
            for p in space.parameters
        )


def trail(store: Store, run: Run) -> Sequence[ThetaPoint]:
    """Theta at `POINTS` results at most, evenly apart but for the last."""
    return store.theta_path(run.id, sampled(run.applied, max(1, ceil(run.applied / (POINTS - 1)))))


def sampled(applied: int, stride: int) -> list[int]:
    """0, the end, and every `stride` results between."""
    return [*range(0, applied, stride), applied]


def sparkline(path: Sequence[float]) -> str:
    """A character a point, from the path's lowest value to its highest; empty at the start."""
    if len(path) < 2:
        return ""
    low, high = min(path), max(path)
    top = len(_LEVELS) - 1
    scale = top / (high - low) if high > low else 0.0
    return "".join(_LEVELS[round((value - low) * scale)] for value in path)
