"""Compares rules on the suite: how much each recovers, with standard errors.

All rules get the same problems, so they are compared by paired differences, whose errors are far
smaller than those of the means.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from spsa.algorithms import Vector
from spsa.lab.simulation.entrants import ENTRANTS, own_width
from spsa.lab.simulation.race import final
from spsa.lab.simulation.suite import Heat, Suite

IDLE = "settled"  # a family without Elo to gain: shown, but not in the means


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonCell:
    """Problems that differ only in random numbers."""

    family: str
    parameters: int
    budget: int


@dataclass(frozen=True, slots=True)
class Found:
    """A mean and its standard error, over `count` problems."""

    mean: float
    error: float
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """A suite, played `pairs` game pairs an iteration with `depth` of them in flight.

    With `same_width` all rules perturb as widely as the default rule, else by their own defaults.
    """

    suite: Suite
    pairs: int
    depth: int = 1
    same_width: bool = True

    def heats(self) -> list[Heat]:
        return list(self.suite.heats(self.pairs))

    def recovered(self, rule: str, heat: Heat) -> dict[ComparisonCell, Vector]:
        """The recovered part of the Elo to gain, for every problem of a heat."""
        field = self.suite.field(heat)
        entrant = ENTRANTS[rule](field, own_width(field) if self.same_width else 1.0)
        state = final(field.race(self.depth), entrant, self.suite.games(heat))
        parts = np.split(field.recovered(entrant.theta(state)), len(heat.families))
        return {
            ComparisonCell(family=family, parameters=heat.parameters, budget=heat.budget): part
            for family, part in zip(heat.families, parts, strict=True)
        }


@dataclass(frozen=True, slots=True)
class Sheet:
    """What one rule recovered, problem by problem."""

    rule: str
    cells: dict[ComparisonCell, Vector]

    def families(self) -> list[str]:
        return list(dict.fromkeys(cell.family for cell in self.cells))

    def overall(self) -> Found:
        """Over all problems with Elo to gain."""
        return found(self.cells[cell] for cell in gainful(self.cells))

    def family(self, name: str) -> Found:
        return found(part for cell, part in self.cells.items() if cell.family == name)

    def budgets(self) -> dict[int, Found]:
        """By budget in game pairs, over all problems with Elo to gain."""
        cells = list(gainful(self.cells))
        return {
            budget: found(self.cells[cell] for cell in cells if cell.budget == budget)
            for budget in sorted({cell.budget for cell in cells})
        }

    def worst(self) -> tuple[float, ComparisonCell]:
        """The least mean of a cell, and the cell."""
        means = {cell: float(part.mean()) for cell, part in self.cells.items()}
        cell = min(means, key=lambda cell: means[cell])
        return means[cell], cell

    def beyond(self, other: "Sheet") -> Found:
        """How much more than `other` this rule recovered, over the problems of both."""
        common = [cell for cell in gainful(self.cells) if cell in other.cells]
        return found(self.cells[cell] - other.cells[cell] for cell in common)


def gainful(cells: Iterable[ComparisonCell]) -> Iterator[ComparisonCell]:
    return (cell for cell in cells if cell.family != IDLE)


def found(parts: Iterable[Vector]) -> Found:
    """Mean and standard error; nan without at least two problems."""
    every = np.concatenate([np.empty(0), *parts])
    if len(every) < 2:
        return Found(float("nan"), float("nan"), len(every))
    return Found(float(every.mean()), float(every.std(ddof=1) / len(every) ** 0.5), len(every))


def ranks(sheets: Sequence[Sheet], family: str) -> dict[str, int]:
    """The rank of every rule in a family, from 1 for the best."""
    means = {sheet.rule: sheet.family(family).mean for sheet in sheets}
    return {rule: 1 + sum(other > mean for other in means.values()) for rule, mean in means.items()}


def sheets(
    done: Iterable[tuple[str, dict[ComparisonCell, Vector]]], order: Sequence[str]
) -> list[Sheet]:
    """The results by rule, whatever order they have."""
    by_rule: dict[str, dict[ComparisonCell, Vector]] = {rule: {} for rule in order}
    for rule, cells in done:
        by_rule[rule].update(cells)
    place = {cell: cell for cells in by_rule.values() for cell in cells}
    known = sorted(place, key=lambda cell: (cell.parameters, cell.budget))
    return [
        Sheet(rule, {cell: cells[cell] for cell in known if cell in cells})
        for rule, cells in by_rule.items()
    ]
