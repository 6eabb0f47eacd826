"""The gains and games that the rule `constant` needs for a given precision, by its theory.

The distance of the best values is assumed as for simulated runs: from the Elo to gain and from the
steps between start and optimum (`Prospect`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

import numpy as np

from spsa.algorithms import method
from spsa.algorithms.settings import values
from spsa.lab.planning.prospect import Prospect
from spsa.lab.planning.question import Question
from spsa.lab.theory.design import GainDesign, Goal, Landscape, cautious, direct
from spsa.lab.theory.process import at_once, in_turn, noise_of_game


@dataclass(frozen=True, slots=True, kw_only=True)
class Precise:
    """Gains and games that end within `precision` Elo of the best with `confidence`, 0 to 1.

    `r` and `c` (in steps) are settings of the rule. After `games` the influence of any start is
    gone. `direct_games`, with `direct_r`, is the least number if there is just `stake` Elo to gain;
    None if the start is within the precision already.
    """

    stake: float  # Elo to gain; the field is a key of `plan --json`
    precision: float
    confidence: float
    c: float
    r: float
    games: int
    iterations: int
    direct_r: float | None
    direct_games: int | None


def precise(question: Question, precision: float | None, confidence: float) -> Iterator[Precise]:
    """One design for each Elo to gain; the default precision is a tenth of that.

    Raises ValueError for a draw rate of 1.
    """
    chosen = values(method("constant").settings, question.design.settings)
    c = float(chosen["c"] or 0.0)
    for elo in question.elos_to_gain:
        goal = Goal(precision=precision or elo / 10, confidence=confidence)
        landscape = _landscape(question, elo, c, one_by_one=chosen["perturbation"] == "fdsa")
        slow, quick = cautious(goal, landscape), _direct(goal, landscape, elo)
        yield Precise(
            stake=elo,
            precision=goal.precision,
            confidence=confidence,
            c=c,
            r=slow.r,
            games=slow.games,
            iterations=ceil(slow.games / question.shape.games),
            direct_r=None if quick is None else quick.r,
            direct_games=None if quick is None else quick.games,
        )


def _landscape(question: Question, elo: float, c: float, *, one_by_one: bool) -> Landscape:
    n = len(question.space.active)
    prospect = Prospect(elo_to_gain=elo, draw_rate=question.draw_rate)
    perturbation = np.full(n, c)
    return Landscape(
        loss=np.full(n, elo / (n * prospect.mean_square_distance)),
        moment=in_turn(perturbation) if one_by_one else at_once(perturbation),
        noise=noise_of_game(question.draw_rate),
    )


def _direct(goal: Goal, landscape: Landscape, elo: float) -> GainDesign | None:
    wanted = goal.mean_loss(landscape.loss.size)
    return None if elo <= wanted else direct(goal, landscape, elo)
