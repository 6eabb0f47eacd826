"""The parameter space: parameters, constraints, and the values that engines get.

Theta is a vector over the active parameters, in file order, in units of their steps (u = value /
step), so that no algorithm depends on the units of params.toml. Theta itself is never rounded; the
values for engines always are.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from spsa.core.json_values import as_written, from_json, to_json
from spsa.core.parameter import Bounds, Constraint, Number, Parameter, enforce, feasible, upwards

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Grid:
    """The range and the unit of every active parameter, in steps; shape (n,) each.

    `lower` and `upper` are whole multiples of `unit`, and lie at least one unit apart.
    """

    lower: Vector
    upper: Vector
    unit: Vector


def straddle(grid: Grid, centre: Vector, offset: Vector) -> tuple[Vector, Vector]:
    """The points centre + offset and centre - offset, inside the bounds and still symmetric.

    An offset that is not zero is at least half a unit, because both sides might round to the same
    number otherwise. If a side would leave the bounds, the centre moves and the difference stays;
    only a range narrower than twice the offset shortens the difference.
    """
    reach = np.maximum(np.abs(offset), grid.unit / 2)
    reach = np.where(offset == 0.0, 0.0, np.minimum(reach, (grid.upper - grid.lower) / 2))
    middle = np.clip(centre, grid.lower + reach, grid.upper - reach)
    signed = np.copysign(reach, offset)
    return middle + signed, middle - signed


def round_together(
    grid: Grid, plus: Vector, minus: Vector, uniform: Vector
) -> tuple[Vector, Vector]:
    """Both points in whole units (steps if continuous), with one shared draw for each parameter.

    The mean of floor(v + U) is v. With the same U for both, the difference is within one unit of
    the wanted one and keeps its sign; with offsets of at least half a unit it is never 0.
    """
    unit = np.where(grid.unit > 0.0, grid.unit, 1.0)
    low, high = np.minimum(plus, minus), np.maximum(plus, minus)
    first, last = np.rint(grid.lower / unit), np.rint(grid.upper / unit)
    # A rounding error must not turn a wanted difference of one unit into 0 or 2.
    apart = np.round((high - low) / unit, 9)
    least = (apart >= 1.0).astype(np.float64)
    drawn = low / unit + uniform
    below = np.clip(np.floor(drawn), first, last - least)
    above = np.clip(below + np.floor(drawn % 1.0 + apart), first, last)
    below, above = (
        np.where(grid.unit > 0.0, units, exact) for units, exact in ((below, low), (above, high))
    )
    rising = plus >= minus
    return np.where(rising, above, below), np.where(rising, below, above)


Values = dict[str, Number]


@dataclass(frozen=True, slots=True)
class PlayedValues:
    """The values of the plus and the minus engine: every parameter, also frozen ones."""

    plus: Values
    minus: Values


@dataclass(frozen=True)  # no slots: the vectors below are computed once
class Space:
    parameters: tuple[Parameter, ...]
    constraints: tuple[Constraint, ...] = ()

    _last_read: ClassVar[tuple[Mapping[str, Any], "Space"] | None] = None

    @cached_property
    def active(self) -> tuple[Parameter, ...]:
        """The parameters of theta, in file order."""
        return tuple(parameter for parameter in self.parameters if parameter.active)

    @cached_property
    def step(self) -> Vector:
        """Steps in the units of params.toml, shape (n,)."""
        return self._vector("step")

    @cached_property
    def lower(self) -> Vector:
        """Minima in steps, shape (n,)."""
        return self._vector("minimum") / self.step

    @cached_property
    def upper(self) -> Vector:
        """Maxima in steps, shape (n,)."""
        return self._vector("maximum") / self.step

    @cached_property
    def unit(self) -> Vector:
        """The smallest changes of engine values, in steps, shape (n,); 0 if continuous."""
        return self._vector("unit") / self.step

    def start(self) -> Vector:
        """Theta at the start, in steps, shape (n,)."""
        return self._vector("value") / self.step

    def clip(self, theta: Vector) -> Vector:
        """The nearest theta inside the bounds."""
        return np.clip(theta, self.lower, self.upper)

    def natural(self, theta: Vector) -> dict[str, float]:
        """Every parameter in the unit of params.toml, not rounded; frozen ones keep their value."""
        moved = dict(zip(self._names, (theta * self.step).tolist(), strict=True))
        return {p.name: moved.get(p.name, p.value) for p in self.parameters}

    def steps(self, values: Mapping[str, float]) -> Vector:
        """The inverse of `natural`; frozen parameters in `values` are ignored.

        Raises UnusableState: one of the others is missing.
        """
        with as_written("a column of theta"):
            return np.array([values[name] for name in self._names], dtype=np.float64) / self.step

    def far_steps(self, better: Mapping[str, float] | None) -> dict[Parameter, Number]:
        """These steps where those here are far from them."""
        known = {p: (better or {}).get(p.name, p.step) for p in self.active}
        far = {p: step for p, step in known.items() if not 0.7 < step / p.step < 1.4}
        return {p: int(step) if p.integral else float(step) for p, step in far.items()}

    def step_advice(self, better: Mapping[str, float] | None) -> str:
        """The same as lines for params.toml; else empty."""
        far = self.far_steps(better).items()
        told = [f"\nstep = {step:g}  # of [{p.name}], instead of {p.step:g}" for p, step in far]
        joined = "".join(told)
        return joined and f"the games suggest other steps; as lines of params.toml:{joined}"

    def rounded(self, theta: Vector) -> Values:
        """The playable values nearest to theta that satisfy the constraints."""
        natural = self.natural(self.clip(theta))
        return self._kept({p.name: p.nearest(natural[p.name]) for p in self.parameters})

    def playable(self, values: Mapping[str, float]) -> Values:
        """The same of values that may lie outside the bounds, as those of an earlier space may.

        Frozen parameters take their values, too.
        """
        wide = Space(tuple(_reaching(p, values[p.name]) for p in self.parameters), self.constraints)
        return wide.rounded(wide.steps(values))

    def realise(self, centre: Vector, offset: Vector, uniform: Vector) -> PlayedValues:
        """The values of plus and minus, `offset` away from `centre`; all of shape (n,).

        `uniform` has one draw from [0, 1) for each parameter, shared by both sides. An offset of 0
        does not perturb the parameter. Constraints hold on both sides, which may shorten the
        difference: an update has to use that of the values, not the offset.
        """
        grid = Grid(self.lower, self.upper, self.unit)
        sides = round_together(grid, *straddle(grid, centre, offset), uniform)
        plus, minus = (self._kept(self._values(side)) for side in sides)
        return PlayedValues(plus, minus)

    def options(self, values: Mapping[str, float]) -> Values:
        """The UCI options for `values`: name -> number."""
        return {p.option: p.to_engine(values[p.name]) for p in self.parameters}

    def to_json(self) -> dict[str, Any]:
        return {
            "parameters": to_json([replace(p, line=None) for p in self.parameters]),
            "constraints": to_json(self.constraints),
        }

    def fixed(self) -> dict[str, Any]:
        """All that a run keeps, whatever its files become, as JSON.

        Not the values of active parameters, which move, nor groups, notes, lines and order.
        """
        fixed: dict[str, Any] = {f"constraint {c}": "one" for c in self.constraints}
        for p in self.parameters:
            own = {**to_json(p), "frozen": None if p.active else p.value}
            moves = ("name", "value", "active", "group", "note", "line")
            fixed[p.name] = {key: part for key, part in own.items() if key not in moves}
        return fixed

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Space":
        """The space that `to_json` gave; UnusableState if the JSON is anything else.

        The same object gives the same space again, because many values of one run need it.
        """
        if cls._last_read is not None and cls._last_read[0] is data:
            return cls._last_read[1]
        with as_written("a column `space`"):
            space = from_json(cls, data)
            space._bounds, space._upwards  # noqa: B018 - a constraint of unknown names, a circle
        cls._last_read = data, space
        return space

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(parameter.name for parameter in self.active)

    @cached_property
    def _bounds(self) -> Bounds:
        return feasible(self.parameters, self.constraints)

    @cached_property
    def _upwards(self) -> tuple[Constraint, ...]:
        return upwards(self.constraints)

    def _vector(self, attribute: str) -> Vector:
        values = [getattr(parameter, attribute) for parameter in self.active]
        return np.array(values, dtype=np.float64)

    def _values(self, side: Vector) -> Values:
        """One side of `round_together` as numbers of the engine."""
        values: Values = {p.name: p.nearest(p.value) for p in self.parameters}
        for parameter, number in zip(self.active, side.tolist(), strict=True):
            continuous = parameter.unit == 0.0
            values[parameter.name] = (
                number * parameter.step if continuous else parameter.on_grid(int(number))
            )
        return values

    def _kept(self, values: Values) -> Values:
        return enforce(values, self.parameters, self._upwards, self._bounds)


def _reaching(parameter: Parameter, value: float) -> Parameter:
    """The parameter with bounds that reach to a value, which it has if it is frozen."""
    near = parameter.nearest(value)
    return replace(
        parameter,
        value=value,
        minimum=min(parameter.minimum, near),
        maximum=max(parameter.maximum, near),
    )
