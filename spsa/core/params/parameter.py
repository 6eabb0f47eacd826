"""One number to be tuned, the grid of values that the engine can represent, and orders of two.

Constraints hold for the values that engines get.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from graphlib import CycleError, TopologicalSorter
from math import ceil, floor, inf, nextafter
from typing import Any, Self

from spsa.core.json_values import from_json
from spsa.core.params.placement import Place

Number = int | float
Bounds = Mapping[str, tuple[Number, Number]]

# 0.29 * 100 is 28.999999999999996, and 0.29 has to count as on the grid.
_SLACK = 1e-6
_CONSTRAINT = re.compile(r"\s*(\w+)\s*(<=|<|>=|>)\s*(\w+)\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A named value with its bounds, its step and its place in the engine.

    `value`, `minimum`, `maximum` and `step` are in the unit of params.toml. `value` is the start of
    theta (or the fixed value of a frozen parameter) and need not be on the grid. `integral`
    parameters are whole numbers; with a `scale` the engine gets `value * scale` as a whole number;
    with neither the parameter is continuous. `option` is the UCI option that sends it if no binary
    is built. `line` is its line in params.toml, which comparisons ignore.
    """

    name: str
    value: float
    minimum: float
    maximum: float
    step: float
    place: Place
    option: str
    integral: bool = True
    scale: int | None = None
    group: str = ""
    active: bool = True
    note: str = ""
    line: int | None = field(default=None, compare=False)

    @property
    def unit(self) -> float:
        """The smallest change that the engine can see; 0 for a continuous parameter."""
        per_unit = self._units_per_one
        return 1.0 / per_unit if per_unit else 0.0

    @property
    def _units_per_one(self) -> int:
        """Division by this whole number is exact; multiplication by `unit` is not."""
        return 1 if self.integral else self.scale or 0

    def nearest(self, value: float) -> Number:
        """The value on the grid nearest to `value`; the greater of two equally near ones."""
        per_unit = self._units_per_one
        return self.on_grid(floor(value * per_unit + 0.5)) if per_unit else float(value)

    def on_grid(self, units: int) -> Number:
        """The value that is `units` units large."""
        return units if self.integral else units / self._units_per_one

    def below(self, bound: float, *, strictly: bool) -> Number:
        """The greatest value on the grid that is less than (or equal to) `bound`."""
        per_unit = self._units_per_one
        if not per_unit:
            return nextafter(bound, -inf) if strictly else float(bound)
        units = (
            ceil(bound * per_unit - _SLACK) - 1 if strictly else floor(bound * per_unit + _SLACK)
        )
        return self.on_grid(units)

    def above(self, bound: float, *, strictly: bool) -> Number:
        """The least value on the grid that is greater than (or equal to) `bound`."""
        per_unit = self._units_per_one
        if not per_unit:
            return nextafter(bound, inf) if strictly else float(bound)
        units = (
            floor(bound * per_unit + _SLACK) + 1 if strictly else ceil(bound * per_unit - _SLACK)
        )
        return self.on_grid(units)

    def to_engine(self, value: float) -> Number:
        """The number that is written to the source, or sent over UCI, for `value`."""
        if self.scale is not None:
            return floor(value * self.scale + 0.5)
        return self.nearest(value)

    def to_json(self) -> dict[str, Any]:
        data = asdict(self)
        del data["line"]
        return data | {"place": self.place.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return from_json(cls, data)


@dataclass(frozen=True, slots=True)
class Constraint:
    """`less < greater`, or `less <= greater` when not strict."""

    less: str
    greater: str
    strict: bool = True

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `a < b`, `a <= b`, `a > b` or `a >= b`. Raises ValueError for anything else."""
        found = _CONSTRAINT.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is not an order between two parameters")
        first, sign, second = found.groups()
        less, greater = (first, second) if sign.startswith("<") else (second, first)
        return cls(less, greater, strict=len(sign) == 1)

    def __str__(self) -> str:
        return f"{self.less} {'<' if self.strict else '<='} {self.greater}"

    def holds(self, values: Mapping[str, float]) -> bool:
        less, greater = values[self.less], values[self.greater]
        return less < greater if self.strict else less <= greater


def feasible(parameters: Iterable[Parameter], constraints: Iterable[Constraint]) -> Bounds:
    """The part of each parameter's range that its constraints allow; frozen ones have one value.

    If a lower bound is above its upper bound, no values satisfy the constraints. The constraints
    must not have a cycle.
    """
    named = {parameter.name: parameter for parameter in parameters}
    low = {name: _range(parameter)[0] for name, parameter in named.items()}
    high = {name: _range(parameter)[1] for name, parameter in named.items()}
    rising = upwards(constraints)
    for rule in rising:
        least = named[rule.greater].above(low[rule.less], strictly=rule.strict)
        low[rule.greater] = max(low[rule.greater], least)
    for rule in reversed(rising):
        most = named[rule.less].below(high[rule.greater], strictly=rule.strict)
        high[rule.less] = min(high[rule.less], most)
    return {name: (low[name], high[name]) for name in named}


def upwards(constraints: Iterable[Constraint]) -> tuple[Constraint, ...]:
    """The constraints in topological order: each follows those whose greater side is its lesser
    side.

    Raises CycleError for a cycle.
    """
    below: dict[str, list[Constraint]] = {}
    for constraint in constraints:
        below.setdefault(constraint.greater, []).append(constraint)
    edges = {name: [constraint.less for constraint in rules] for name, rules in below.items()}
    order = TopologicalSorter(edges).static_order()
    return tuple(constraint for name in order for constraint in below.get(name, ()))


def circle(constraints: Iterable[Constraint]) -> tuple[str, ...]:
    """The parameters of one cycle of constraints; empty if there is none."""
    try:
        upwards(constraints)
    except CycleError as error:
        found: list[str] = error.args[1]
        return tuple(found[:-1])  # its last is its first
    return ()


def enforce(
    values: Mapping[str, Number],
    parameters: Iterable[Parameter],
    constraints: Iterable[Constraint],
    bounds: Bounds,
) -> dict[str, Number]:
    """`values` changed as little as needed so that every constraint holds.

    Values are first clipped to the `feasible` bounds. Then the lesser side of a violated constraint
    is lowered, which these bounds always allow. `constraints` are in the order of `upwards`.
    """
    named = {parameter.name: parameter for parameter in parameters}
    kept = {
        name: min(max(value, bounds[name][0]), bounds[name][1]) for name, value in values.items()
    }
    for rule in reversed(tuple(constraints)):
        if not rule.holds(kept):
            kept[rule.less] = named[rule.less].below(kept[rule.greater], strictly=rule.strict)
    return kept


def _range(parameter: Parameter) -> tuple[Number, Number]:
    if parameter.active:
        return parameter.nearest(parameter.minimum), parameter.nearest(parameter.maximum)
    frozen = parameter.nearest(parameter.value)
    return frozen, frozen
