"""Rules compared on the same problems: every rule of the registry, oracles, and other methods.

Every rule has the same problems, so that rules are compared by paired differences: their errors are
far smaller than those of the means.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import log
from types import MappingProxyType
from typing import Any

import numpy as np

from benches.papers.reference_rules import Adam, Averaged, DoG, Kalman, ScheduleFree
from benches.papers.suite import ProblemGroup, ProblemSet, Suite
from spsa.algorithms import RULES, create, rule_settings
from spsa.algorithms.bspsa import Bspsa
from spsa.algorithms.bspsas import Bspsas, sigma_of
from spsa.algorithms.rule import Problem, Rule
from spsa.core.params import Vector
from spsa.planning.simulated_run import SimulatedRule, final

_GAMMA = 0.101
FIRST_VERSION_GAINS = MappingProxyType(
    {"a": 1.0, "c": 0.5, "A": 50.0}
)  # the gains of the first version

RuleFactory = Callable[[ProblemSet, float], SimulatedRule]
"""Creates a rule for the problems of a group, with c_end."""


def wide(problem: Problem) -> float:
    """A last planned perturbation, in steps, wider than the rules' defaults in short runs."""
    return float((1e6 / (problem.pairs * problem.iterations)) ** _GAMMA)


def _registered(name: str, problems: ProblemSet, c_end: float) -> Rule:
    return create(name, _widened(name, problems, c_end), problems.problem)


def _widened(name: str, problems: ProblemSet, c_end: float) -> dict[str, float]:
    """The settings with which a rule's perturbation ends at `c_end`; none if it has no such one."""
    if any(setting.name == "c_end" for setting in rule_settings(name)):
        return {"c_end": c_end}
    if name == "spsa":  # c of the first iteration
        return {"c": c_end * problems.problem.iterations**_GAMMA}
    return {}


def _seed(problems: ProblemSet, _c_end: float) -> Rule:
    return create("spsa", FIRST_VERSION_GAINS, problems.problem)


def _told(rule: type[Bspsas], problems: ProblemSet, c_end: float) -> Rule:
    """A rule that knows the true curvature and the expected distance of every parameter."""
    curvature = np.diagonal(problems.losses.hessian, axis1=-2, axis2=-1)
    return rule(problem=problems.problem, **_prior(problems, _sigma(curvature), c_end))


def _measured(problems: ProblemSet, c_end: float) -> Rule:
    """A rule that knows the mean curvature and the mean distance of a problem."""
    curvature = np.diagonal(problems.losses.hessian, axis1=-2, axis2=-1)
    distance = np.sqrt(np.square(problems.losses.deviation).mean(axis=-1, keepdims=True))
    sigma = _sigma(curvature.mean(axis=-1, keepdims=True))
    return Bspsa(problem=problems.problem, sigma=sigma, distance=distance, c_end=c_end)


def _ceiling(problems: ProblemSet, c_end: float) -> Rule:
    prior = _prior(problems, sigma_of(1.0), c_end)
    return Kalman(problem=problems.problem, **prior, hessian=problems.losses.hessian)


def _averaged(name: str, problems: ProblemSet, c_end: float) -> SimulatedRule:
    return Averaged(_registered(name, problems, c_end), problems.problem)


def _prior(problems: ProblemSet, sigma: Vector | float, c_end: float) -> dict[str, Any]:
    return {"sigma": sigma, "distance": problems.losses.deviation, "c_end": c_end}


def _sigma(curvature: Vector) -> Vector:
    """As `sigma_of`; infinite where a parameter has no effect."""
    with np.errstate(divide="ignore"):
        return np.sqrt(200 / (curvature * log(10)))


def _reference(
    reference: Callable[..., SimulatedRule], problems: ProblemSet, c_end: float
) -> SimulatedRule:
    return reference(problem=problems.problem, c_end=c_end)


COMPARED_RULES: Mapping[str, RuleFactory] = MappingProxyType(
    {
        **{name: partial(_registered, name) for name in RULES},
        "bspsa-measured": _measured,
        "bspsa-told": partial(_told, Bspsa),
        "bspsas-told": partial(_told, Bspsas),
        "kalman-told": _ceiling,
        "adam": partial(_reference, Adam),
        "dog": partial(_reference, DoG),
        "schedule-free": partial(_reference, ScheduleFree),
        "spsa-averaged": partial(_averaged, "spsa"),
        "fishtest-averaged": partial(_averaged, "fishtest"),
        "seed-literally": _seed,
    }
)


NO_ELO_TO_GAIN = "settled"  # a family without Elo to gain: shown, but not in the means


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonCell:
    """Problems that differ only in random numbers."""

    family: str
    parameters: int
    budget: int


@dataclass(frozen=True, slots=True)
class MeanAndError:
    """A mean and its standard error, over `count` problems."""

    mean: float
    error: float
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonSettings:
    """A suite, played `pairs` game pairs an iteration with `in_flight` of them in flight.

    With `same_width` rules that have a c_end get that of `wide`, else their own defaults.
    """

    suite: Suite
    pairs: int
    in_flight: int = 1
    same_width: bool = True

    def groups(self) -> list[ProblemGroup]:
        return list(self.suite.groups(self.pairs))

    def recovered(self, rule: str, group: ProblemGroup) -> dict[ComparisonCell, Vector]:
        """The recovered part of the Elo to gain, for every problem of a group."""
        problems = self.suite.problems(group)
        played_rule = COMPARED_RULES[rule](
            problems, wide(problems.problem) if self.same_width else 1.0
        )
        state = final(problems.simulated_run(self.in_flight), played_rule, self.suite.games(group))
        parts = np.split(problems.recovered(played_rule.theta(state)), len(group.families))
        return {
            ComparisonCell(family=family, parameters=group.parameters, budget=group.budget): part
            for family, part in zip(group.families, parts, strict=True)
        }


@dataclass(frozen=True, slots=True)
class RuleResults:
    """What one rule recovered, problem by problem."""

    rule: str
    cells: dict[ComparisonCell, Vector]

    def families(self) -> list[str]:
        return list(dict.fromkeys(cell.family for cell in self.cells))

    def overall(self) -> MeanAndError:
        """Over all problems with Elo to gain."""
        return found(self.cells[cell] for cell in with_elo_to_gain(self.cells))

    def family(self, name: str) -> MeanAndError:
        return found(part for cell, part in self.cells.items() if cell.family == name)

    def worst(self) -> tuple[float, ComparisonCell]:
        """The least mean of a cell, and the cell."""
        means = {cell: float(part.mean()) for cell, part in self.cells.items()}
        cell = min(means, key=lambda cell: means[cell])
        return means[cell], cell

    def gain_over(self, other: "RuleResults") -> MeanAndError:
        """How much more than `other` this rule recovered, over the problems of both."""
        common = [cell for cell in with_elo_to_gain(self.cells) if cell in other.cells]
        return found(self.cells[cell] - other.cells[cell] for cell in common)


def with_elo_to_gain(cells: Iterable[ComparisonCell]) -> Iterator[ComparisonCell]:
    return (cell for cell in cells if cell.family != NO_ELO_TO_GAIN)


def found(parts: Iterable[Vector]) -> MeanAndError:
    """Mean and standard error; nan without at least two problems."""
    every = np.concatenate([np.empty(0), *parts])
    if len(every) < 2:
        return MeanAndError(float("nan"), float("nan"), len(every))
    return MeanAndError(
        float(every.mean()), float(every.std(ddof=1) / len(every) ** 0.5), len(every)
    )


def ranks(results: Sequence[RuleResults], family: str) -> dict[str, int]:
    """The rank of every rule in a family, from 1 for the best."""
    means = {result.rule: result.family(family).mean for result in results}
    return {rule: 1 + sum(other > mean for other in means.values()) for rule, mean in means.items()}


def results(
    done: Iterable[tuple[str, dict[ComparisonCell, Vector]]], order: Sequence[str]
) -> list[RuleResults]:
    """The results by rule, whatever order they have."""
    by_rule: dict[str, dict[ComparisonCell, Vector]] = {rule: {} for rule in order}
    for rule, cells in done:
        by_rule[rule].update(cells)
    place = {cell: cell for cells in by_rule.values() for cell in cells}
    known = sorted(place, key=lambda cell: (cell.parameters, cell.budget))
    return [
        RuleResults(rule, {cell: cells[cell] for cell in known if cell in cells})
        for rule, cells in by_rule.items()
    ]
