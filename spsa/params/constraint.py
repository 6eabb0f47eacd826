"""Declared order between two parameters, kept on the values that the engine really gets."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from spsa.params.parameter import Number, Parameter

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

    A lower bound above its upper bound means that no set of values keeps the constraints.
    """
    named = {parameter.name: parameter for parameter in parameters}
    bounds = {name: _range(parameter) for name, parameter in named.items()}
    constraints = tuple(constraints)
    # As in Bellman-Ford: without a cycle len(named) rounds reach the fixed point; with one, the
    # ranges only shrink further.
    for _ in range(len(named) + 1):
        for constraint in constraints:
            _tighten(bounds, named, constraint)
    return bounds


def in_circles(constraints: Iterable[Constraint]) -> frozenset[str]:
    """The parameters that a chain of constraints leads back to."""
    above: dict[str, set[str]] = {}
    for constraint in constraints:
        above.setdefault(constraint.less, set()).add(constraint.greater)
    return frozenset(name for name in above if name in _reachable(above, name))


def enforce(
    values: Mapping[str, Number],
    parameters: Iterable[Parameter],
    constraints: Iterable[Constraint],
    bounds: Bounds,
) -> dict[str, Number]:
    """`values` moved as little as needed so that every constraint holds.

    First into the `feasible` bounds; then the lesser side gives way, which those bounds allow it
    to do whatever the greater one is.
    """
    named = {parameter.name: parameter for parameter in parameters}
    kept = {
        name: min(max(value, bounds[name][0]), bounds[name][1]) for name, value in values.items()
    }
    constraints = tuple(constraints)
    while broken := [constraint for constraint in constraints if not constraint.holds(kept)]:
        for less, greater, strict in ((c.less, c.greater, c.strict) for c in broken):
            kept[less] = min(kept[less], named[less].below(kept[greater], strictly=strict))
    return kept


def _range(parameter: Parameter) -> tuple[Number, Number]:
    if parameter.active:
        return parameter.nearest(parameter.minimum), parameter.nearest(parameter.maximum)
    frozen = parameter.nearest(parameter.value)
    return frozen, frozen


def _tighten(
    bounds: dict[str, tuple[Number, Number]], named: Mapping[str, Parameter], rule: Constraint
) -> None:
    less, greater = bounds[rule.less], bounds[rule.greater]
    highest = named[rule.less].below(greater[1], strictly=rule.strict)
    lowest = named[rule.greater].above(less[0], strictly=rule.strict)
    bounds[rule.less] = (less[0], min(less[1], highest))
    bounds[rule.greater] = (max(greater[0], lowest), greater[1])


def _reachable(edges: Mapping[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = list(edges.get(start, ()))
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting.extend(edges.get(name, ()))
    return seen
