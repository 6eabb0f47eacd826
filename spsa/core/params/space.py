"""The parameter space: what is tuned, in which unit theta is counted, and what can be played.

Theta is a vector over the active parameters, in file order, in units of their steps (u = value /
step): nothing an algorithm does depends on the unit a parameter happens to be written in. Theta
itself is never rounded; what the engines get always is.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from spsa.core.params.constraint import Bounds, Constraint, enforce, feasible, upwards
from spsa.core.params.parameter import Number, Parameter
from spsa.core.params.perturbation import Grid, Vector, round_together, straddle
from spsa.core.stored_json import as_written

Values = dict[str, Number]


@dataclass(frozen=True, slots=True)
class PlayedValues:
    """What the plus and the minus engine really have: every parameter, frozen ones too."""

    plus: Values
    minus: Values


@dataclass(frozen=True)  # no slots: the vectors below are computed once
class Space:
    parameters: tuple[Parameter, ...]
    constraints: tuple[Constraint, ...] = ()

    @cached_property
    def active(self) -> tuple[Parameter, ...]:
        """The parameters that theta runs over, in file order."""
        return tuple(parameter for parameter in self.parameters if parameter.active)

    @cached_property
    def step(self) -> Vector:
        """Steps in the units of params.toml, shape (n,)."""
        return self._vector("step")

    @cached_property
    def lower(self) -> Vector:
        """Minima in steps, shape (n,)."""
        return _fixed(self._vector("minimum") / self.step)

    @cached_property
    def upper(self) -> Vector:
        """Maxima in steps, shape (n,)."""
        return _fixed(self._vector("maximum") / self.step)

    @cached_property
    def unit(self) -> Vector:
        """The smallest changes that the engine can see, in steps, shape (n,); 0 is continuous."""
        return _fixed(self._vector("unit") / self.step)

    def start(self) -> Vector:
        """Theta where the run starts, in steps, shape (n,)."""
        return self.steps({parameter.name: parameter.value for parameter in self.active})

    def clip(self, theta: Vector) -> Vector:
        """The nearest theta inside the bounds."""
        return np.clip(theta, self.lower, self.upper)

    def natural(self, theta: Vector) -> dict[str, float]:
        """Every parameter in the unit of params.toml, unrounded; frozen ones at their value."""
        moved = dict(zip(self._names, (theta * self.step).tolist(), strict=True))
        return {p.name: moved.get(p.name, p.value) for p in self.parameters}

    def steps(self, values: Mapping[str, float]) -> Vector:
        """The inverse of `natural`; what `values` says of frozen parameters is ignored."""
        return np.array([values[name] for name in self._names], dtype=np.float64) / self.step

    def rounded(self, theta: Vector) -> Values:
        """The playable values nearest to theta, constraints kept: for base, reports and exports."""
        natural = self.natural(self.clip(theta))
        return self._kept({p.name: p.nearest(natural[p.name]) for p in self.parameters})

    def realise(self, centre: Vector, offset: Vector, uniform: Vector) -> PlayedValues:
        """What plus and minus really get around `centre`, each `offset` away; all shape (n,).

        `uniform` holds one draw from [0, 1) a parameter, shared by both sides. An offset of 0
        leaves the parameter alone. Constraints are kept on both sides, which may shorten the
        difference further: an update has to use `difference`, not the offset it asked for.
        """
        grid = Grid(self.lower, self.upper, self.unit)
        sides = round_together(grid, *straddle(grid, centre, offset), uniform)
        plus, minus = (self._kept(self._values(side)) for side in sides)
        return PlayedValues(plus, minus)

    def difference(self, played: PlayedValues) -> Vector:
        """plus - minus as it was played, in steps, shape (n,)."""
        return self.steps(played.plus) - self.steps(played.minus)

    def midpoint(self, played: PlayedValues) -> Vector:
        """The point between plus and minus as it was played, in steps, shape (n,)."""
        return (self.steps(played.plus) + self.steps(played.minus)) / 2

    def options(self, values: Mapping[str, float]) -> Values:
        """The UCI options that deliver `values` without a build: name -> number."""
        return {p.option: p.to_engine(values[p.name]) for p in self.parameters}

    def to_json(self) -> dict[str, Any]:
        return {
            "parameters": [parameter.to_json() for parameter in self.parameters],
            "constraints": [str(constraint) for constraint in self.constraints],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """What `to_json` gave; UnusableState where it is anything else."""
        with as_written("a column `space`"):
            space = cls(
                tuple(Parameter.from_json(parameter) for parameter in data["parameters"]),
                tuple(Constraint.parse(constraint) for constraint in data["constraints"]),
            )
            space._bounds, space._upwards  # noqa: B018 - a constraint of unknown names, a circle
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
        return _fixed(np.array(values, dtype=np.float64))

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


def _fixed(vector: Vector) -> Vector:
    vector.setflags(write=False)
    return vector


_ATTRIBUTES = (
    "minimum", "maximum", "step", "integral", "scale", "active", "place", "option"
)  # fmt: skip


def differences(run: Space, file: Space) -> list[str]:
    """One sentence for everything in which `file` no longer is the space of the run.

    The value of an active parameter is no difference: it moves. That of a frozen one is, because
    the engines are built with it. Groups, notes, lines
    and the order in the file decide nothing: a run goes by its own copy.
    """
    here = {parameter.name: parameter for parameter in run.parameters}
    there = {parameter.name: parameter for parameter in file.parameters}
    return [
        *(f"{name} is gone; the run tunes it" for name in here if name not in there),
        *(f"{name} is new; the run does not know it" for name in there if name not in here),
        *(text for n in here if n in there for text in _changes(here[n], there[n])),
        *(f"constraint {c} is gone" for c in run.constraints if c not in file.constraints),
        *(f"constraint {c} is new" for c in file.constraints if c not in run.constraints),
    ]


def _changes(run: Parameter, file: Parameter) -> Iterator[str]:
    attributes = _ATTRIBUTES if run.active or file.active else (*_ATTRIBUTES, "value")
    for attribute in attributes:
        was, now = getattr(run, attribute), getattr(file, attribute)
        if was != now:
            yield f"{run.name}: {attribute} is {now}; the run has {was}"
