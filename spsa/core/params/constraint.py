"""Constraints on the order of two parameters, which hold for the values that engines get."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Self

from spsa.core.params.parameter import Number, Parameter

_CONSTRAINT = re.compile(r"\s*(\w+)\s*(<=|<|>=|>)\s*(\w+)\s*")

Bounds = Mapping[str, tuple[Number, Number]]


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
