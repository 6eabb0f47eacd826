"""How much Elo a run has gained, as far as its rule believes to know it.

The filters of `mixture` estimate it (`spsa.algorithms.mixture`), also those that watch the games of
a rule without a belief. The whole path is judged by what is known now.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import numpy as np

from spsa.algorithms import Vector
from spsa.algorithms.filter_bank import HYPOTHESES, Bank
from spsa.algorithms.mixture import Mixture
from spsa.algorithms.observing import Observation, Observed
from spsa.core.scoring import elo, standard_error
from spsa.db.history_rows import MatchLine
from spsa.db.store import Compared, Run
from spsa.errors import UnusableState
from spsa.lab.strength import StrengthCurve, strength_curve
from spsa.master.session import tuning_of

_PARTS = 60  # of the games to come, for the integration of the variances


@dataclass(frozen=True, slots=True)
class EstimatedGain:
    """Elo over the start for each point of a path: a belief and no measurement.

    `deviation` stays as a key of the JSON; no honest one is known.
    """

    elo: tuple[float, ...]
    deviation: None = None


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters of a run and their state; `is_own` if they are the rule, and chose the points."""

    mixture: Mixture
    bank: Bank
    is_own: bool

    @property
    def elo_per_step(self) -> Vector:
        """h, shape (J, 1)."""
        return self.mixture.per_step * (200 / log(10))

    @property
    def pairs(self) -> float:
        """The game pairs that they have seen."""
        return float(self.bank.pairs[0])

    def misfit(self, results: int) -> float:
        """The mean squared error of the best filter's predictions, over what chance explains.

        About 1 if the model is right; chi_j is that sum (`spsa.algorithms.mixture`).
        """
        return float(self.bank.surprise.min()) / max(1, results)

    def elo_of(self, pairs: float) -> float:
        """Elo that so many more pairs are expected to gain.

        That is h_j times what the variances v_j lose. Of many iterations of B pairs each,

            dv/dp = -(1 - lambda_j) A_j^2 v^2 / (tau^2 + B A_j^2 sum v),   A_j = 2 c h_j ln 10 / 200

        which is integrated in small parts, each with the sum at its start and the present c. What
        the filters disagree about is left out.
        """
        bank, each = self.bank, pairs / _PARTS
        squared = (2.0 * self.mixture.width(bank) * self.mixture.per_step) ** 2
        kept = 1.0 - HYPOTHESES.forgetting
        variance = bank.variance
        for _ in range(_PARTS):
            known = bank.tau2 + self.mixture.problem.pairs * squared * _sum(variance)
            variance = variance / (1.0 + kept * each * squared / known * variance)
        lost = self.elo_per_step * (_sum(bank.variance) - _sum(variance))
        return float(np.sum(bank.weight() * lost))


def _sum(variance: Vector) -> Vector:
    total: Vector = variance.sum(axis=-1, keepdims=True)
    return total


def filters_of(run: Run) -> Filters | None:
    """The filters of a run; None where its rule holds no such belief, or it has no result.

    Raises:
        UnusableState: this program cannot read the run's settings or its state.
    """
    if run.applied == 0:
        return None
    rule = tuning_of(run).rule
    return _filters(rule, rule.load(run.state))


def estimated_gain(run: Run, path: Vector) -> EstimatedGain | None:
    """The gain along a path of theta in steps, shape (points, n), the start first.

    None where the rule of the run holds no such belief, or its state cannot be read.
    """
    try:
        found = filters_of(run)
    except UnusableState:
        return None
    return None if found is None else EstimatedGain(tuple(found.bank.gained(path).tolist()))


def gain_of_parameter(run: Run, path: Vector, column: int) -> EstimatedGain | None:
    """The part of `estimated_gain` that one parameter has; the parts of all add up to its Elo."""
    alone = np.tile(path[0], (len(path), 1))
    alone[:, column] = path[:, column]
    return estimated_gain(run, alone)


def _filters(rule: Observed, state: Observation) -> Filters | None:
    witness = None if state.notes is None else state.notes.witness
    for one, its_state in ((rule.rule, state.rule), (rule.witness, witness)):
        if isinstance(one, Mixture) and isinstance(its_state, Bank):
            return Filters(one, its_state, one is rule.rule)
    return None


def measured_gain(matches: Sequence[MatchLine], least: int = 1) -> StrengthCurve | None:
    """The curve through all matches of theta against the start under one time control.

    None if fewer than `least` different thetas were measured.
    """
    told = [match for match in matches if match.asked.against == "start" and match.k]
    control = _time_control([match.asked for match in told])
    told = [match for match in told if match.asked.time_control == control]
    if len({match.k for match in told}) < least:
        return None
    return strength_curve(
        [match.k for match in told],
        [elo(match.tally).value for match in told],
        [standard_error(match.tally) for match in told],
    )


def _time_control(asked: Sequence[Compared]) -> str | None:
    """That of background validations, else the tuning's, else the one that was used last."""
    background = [one.time_control for one in asked if one.background]
    own = not asked or any(one.time_control is None for one in asked)
    return background[-1] if background else None if own else asked[-1].time_control
