"""How precise a run can be, and other ways to make the same run.

The distance to the best values is assumed as in the simulated runs: by the Elo to gain and by the
steps between start and optimum (`Prospect`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from spsa.algorithms import method
from spsa.algorithms.settings import values
from spsa.lab.planning.prospect import Prospect, RunDesign
from spsa.lab.planning.question import Question
from spsa.lab.theory.design import GainDesign, Goal, Landscape, cautious, direct
from spsa.lab.theory.process import at_once, in_turn, noise_of_game

_RULES = ("mixture", "spsa", "fishtest")
_CUTS = (4, 2, 0.5, 0.25)
_BUDGETS = (0.5, 2, 4)
_STRETCHES = (0.5, 2.0)


def alternatives(design: RunDesign) -> Iterator[tuple[str, RunDesign]]:
    """The design as it is, and what differs from it in one respect each, with a name."""
    yield "as it is", design
    yield from _rules(design)
    yield from _depths(design)
    yield from _cuts(design)
    yield from _budgets(design)
    for stretch in _STRETCHES:
        yield f"steps x {stretch:g}", replace(design, stretch=stretch)


def _rules(design: RunDesign) -> Iterator[tuple[str, RunDesign]]:
    for rule in _RULES:
        if rule != design.algorithm or design.settings:
            yield f'algorithm = "{rule}"', replace(design, algorithm=rule, settings={})


def _depths(design: RunDesign) -> Iterator[tuple[str, RunDesign]]:
    for depth in {1, 2 * design.depth} - {design.depth}:
        yield f"iterations_in_flight = {depth}", replace(design, depth=depth, grows=False)


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
class Precise:
    """Gains and games that end within `precision` Elo of the best with `confidence`, 0 to 1.

    `r` and `c` (in steps) are settings of the rule. `games` are enough for the start to be
    forgotten, wherever it was; `direct_games`, with `direct_r`, is the fewest if the `stake` is as
    assumed, None where the start is within the precision already.
    """

    stake: float
    precision: float
    confidence: float
    c: float
    r: float
    games: int
    iterations: int
    direct_r: float | None
    direct_games: int | None


def precise(question: Question, precision: float | None, confidence: float) -> Iterator[Precise]:
    """One design a stake; without a wanted precision, for a tenth of it.

    Raises ValueError for a draw rate that leaves nothing to be decided.
    """
    chosen = values(method("constant").settings, question.design.settings)
    c = float(chosen["c"] or 0.0)
    for stake in question.stakes:
        goal = Goal(precision=precision or stake / 10, confidence=confidence)
        landscape = _landscape(question, stake, c, one_by_one=chosen["perturbation"] == "fdsa")
        slow, quick = cautious(goal, landscape), _direct(goal, landscape, stake)
        yield Precise(
            stake=stake,
            precision=goal.precision,
            confidence=confidence,
            c=c,
            r=slow.r,
            games=slow.games,
            iterations=ceil(slow.games / question.shape.games),
            direct_r=None if quick is None else quick.r,
            direct_games=None if quick is None else quick.games,
        )


def _landscape(question: Question, stake: float, c: float, *, one_by_one: bool) -> Landscape:
    n = len(question.space.active)
    prospect = Prospect(stake=stake, draw_rate=question.draw_rate)
    perturbation = np.full(n, c)
    return Landscape(
        loss=np.full(n, stake / (n * prospect.mean_square_distance)),
        moment=in_turn(perturbation) if one_by_one else at_once(perturbation),
        noise=noise_of_game(question.draw_rate),
    )


def _direct(goal: Goal, landscape: Landscape, stake: float) -> GainDesign | None:
    wanted = goal.mean_loss(landscape.loss.size)
    return None if stake <= wanted else direct(goal, landscape, stake)
