"""How precise a run can be, and other ways to make the same run.

The distance to the best values is assumed as in the simulated runs: by the Elo to gain and by the
steps between start and optimum (`EngineAssumptions`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from spsa.algorithms import rule_entry
from spsa.algorithms.settings import values
from spsa.planning.constant_gains import (
    GainDesign,
    Goal,
    Landscape,
    at_once,
    cautious,
    direct,
    in_turn,
    noise_of_game,
)
from spsa.planning.plan_inputs import PlanInputs
from spsa.planning.recovery import EngineAssumptions, RunDesign

_RULES = ("mixture", "spsa", "fishtest")
_CUTS = (4, 2, 0.5, 0.25)
_BUDGETS = (0.5, 2, 4)
_STRETCHES = (0.5, 2.0)


def alternatives(design: RunDesign) -> Iterator[tuple[str, RunDesign]]:
    """The design as it is, and its variants, which differ in one setting; with names."""
    yield "as it is", design
    yield from _rules(design)
    yield from _numbers_in_flight(design)
    yield from _cuts(design)
    yield from _budgets(design)
    for stretch in _STRETCHES:
        yield f"steps x {stretch:g}", replace(design, stretch=stretch)


def _rules(design: RunDesign) -> Iterator[tuple[str, RunDesign]]:
    for rule in _RULES:
        if rule != design.algorithm or design.settings:
            yield f'algorithm = "{rule}"', replace(design, algorithm=rule, settings={})


def _numbers_in_flight(design: RunDesign) -> Iterator[tuple[str, RunDesign]]:
    for in_flight in {1, 2 * design.in_flight} - {design.in_flight}:
        yield (
            f"iterations_in_flight = {in_flight}",
            replace(design, in_flight=in_flight, grows=False),
        )


def _cuts(design: RunDesign) -> Iterator[tuple[str, RunDesign]]:
    """The same games in fewer or more iterations."""
    problem = design.problem
    for cut in _CUTS:
        pairs, iterations = round(problem.pairs * cut), round(problem.iterations / cut)
        if pairs >= 1 and iterations >= 1:
            cut_problem = replace(problem, pairs=pairs, iterations=iterations)
            yield f"games_per_iteration = {2 * pairs}", replace(design, problem=cut_problem)


def _budgets(design: RunDesign) -> Iterator[tuple[str, RunDesign]]:
    problem = design.problem
    for times in _BUDGETS:
        iterations = round(problem.iterations * times)
        if iterations >= 1:
            longer = replace(problem, iterations=iterations)
            yield f"max_iterations x {times:g}", replace(design, problem=longer)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrecisionDesign:
    """Gains and games that end within `precision` Elo of the best with `confidence`, 0 to 1.

    `r` and `c` (in steps) are settings of the rule. After `games` the influence of any start is
    gone. `direct_games`, with `direct_r`, is the least number if there is just `elo_to_gain`;
    None if the start is within the precision already.
    """

    elo_to_gain: float  # Elo to gain; the field is a key of `plan --json`
    precision: float
    confidence: float
    c: float
    r: float
    games: int
    iterations: int
    direct_r: float | None
    direct_games: int | None


def precise(
    inputs: PlanInputs, precision: float | None, confidence: float
) -> Iterator[PrecisionDesign]:
    """One design for each Elo to gain; the default precision is a tenth of that.

    Raises ValueError for a draw rate of 1.
    """
    chosen = values(rule_entry("constant").settings, inputs.design.settings)
    c = float(chosen["c"] or 0.0)
    for elo in inputs.elos_to_gain:
        goal = Goal(precision=precision or elo / 10, confidence=confidence)
        landscape = _landscape(inputs, elo, c, one_by_one=chosen["perturbation"] == "fdsa")
        slow, quick = cautious(goal, landscape), _direct(goal, landscape, elo)
        yield PrecisionDesign(
            elo_to_gain=elo,
            precision=goal.precision,
            confidence=confidence,
            c=c,
            r=slow.r,
            games=slow.games,
            iterations=ceil(slow.games / inputs.shape.games),
            direct_r=None if quick is None else quick.r,
            direct_games=None if quick is None else quick.games,
        )


def _landscape(inputs: PlanInputs, elo: float, c: float, *, one_by_one: bool) -> Landscape:
    n = len(inputs.space.active)
    assumptions = EngineAssumptions(elo_to_gain=elo, draw_rate=inputs.draw_rate)
    perturbation = np.full(n, c)
    return Landscape(
        loss=np.full(n, elo / (n * assumptions.mean_square_distance)),
        moment=in_turn(perturbation) if one_by_one else at_once(perturbation),
        noise=noise_of_game(inputs.draw_rate),
    )


def _direct(goal: Goal, landscape: Landscape, elo: float) -> GainDesign | None:
    wanted = goal.mean_loss(landscape.loss.size)
    return None if elo <= wanted else direct(goal, landscape, elo)
