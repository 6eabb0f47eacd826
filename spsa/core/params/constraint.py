"""Declared order between two parameters, kept on the values that the engine really gets."""

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
        """Read `a < b`, `a <= b`, or the same turned round. Raises ValueError with a sentence."""
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
    """The part of each parameter's range that its constraints leave, frozen ones at their value.

    A lower bound above its upper bound means that no set of values keeps the constraints. These
    must have no circle.
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
    """The constraints in such an order that one pass settles the lesser sides first.

    Each one stands behind all those whose greater side is its lesser side. Raises CycleError for a
    circle.
    """
    below: dict[str, list[Constraint]] = {}
    for constraint in constraints:
        below.setdefault(constraint.greater, []).append(constraint)
    edges = {name: [constraint.less for constraint in rules] for name, rules in below.items()}
    order = TopologicalSorter(edges).static_order()
    return tuple(constraint for name in order for constraint in below.get(name, ()))


def circle(constraints: Iterable[Constraint]) -> tuple[str, ...]:
    """The parameters of one circle of constraints; empty if there is none."""
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
    """`values` moved as little as needed so that every constraint holds.

    First into the `feasible` bounds; then the lesser side gives way, which those bounds allow it
    to do whatever the greater one is. `constraints` are in the order of `upwards`.
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
