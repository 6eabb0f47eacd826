"""How much Elo a run has gained, as far as its rule believes to know it.

The filters of `mixture` estimate it. The whole path is judged by what is known now. The number has
no interval: on most synthetic engines the true gain is half to twice the number, on some a fifth or
five times, and the games do not tell on which. `python -m benches.verdict` compares both.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

import numpy as np
import numpy.typing as npt

from spsa.algorithms import Vector
from spsa.algorithms.filter_bank import HYPOTHESES, Bank
from spsa.algorithms.mixture import Mixture
from spsa.algorithms.observing import Observation, Observed
from spsa.core.params import Space
from spsa.core.scoring import elo, standard_error
from spsa.core.stored_json import as_written
from spsa.db.read_queries import MatchLine
from spsa.db.tables import Compared, Run
from spsa.errors import UnusableState
from spsa.master.session import tuning_of
from spsa.planning.strength import StrengthCurve, strength_curve

_PARTS = 60  # of the games to come, for the integration of the variances
_AT_BOUND = 0.01  # steps
_MANY = 0.25  # of the parameters


@dataclass(frozen=True, slots=True)
class EstimatedGain:
    """Elo over the start for each point of a path: a belief and no measurement.

    `deviation` stays as a key of the JSON; no honest one is known.
    """

    elo: tuple[float, ...]
    deviation: None = None


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters that are the rule of a run, and their state."""

    mixture: Mixture
    bank: Bank

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


def filters_of(run: Run) -> tuple[Filters | None, str]:
    """The filters of a run, or None and why the Elo gained is not known, as a clause."""
    if run.applied == 0:
        return None, "there is no result yet"
    try:
        rule = tuning_of(run).rule
        state = rule.load(run.state)
        with as_written("a column `theta` or `start_theta`"):
            space = Space.from_json(run.space)
            _, theta = (space.steps(values) for values in (run.start_theta, run.theta))
    except UnusableState:
        return None, "this program cannot read the state of the run"
    filters = _filters(rule, state)
    if filters is None:
        return None, f"{run.algorithm} does not estimate it"
    bounded = at_a_bound(theta, space.lower, space.upper)
    if is_bounded(bounded):
        names = [p.name for p, at in zip(space.active, bounded.tolist(), strict=True) if at]
        more = f" and of {len(names) - 3} more" if len(names) > 3 else ""
        return None, f"theta is at a bound of {', '.join(names[:3])}{more}"
    return filters, ""


def at_a_bound(theta: Vector, lower: Vector, upper: Vector) -> npt.NDArray[np.bool_]:
    """Which parameters are at a bound; all in steps."""
    return np.minimum(theta - lower, upper - theta) < _AT_BOUND


def is_bounded(bounded: npt.NDArray[np.bool_]) -> bool:
    """Whether so many are at a bound that the estimate does not hold."""
    return bool(bounded.mean() > _MANY)


def gain_of_parameter(run: Run, path: Vector, column: int) -> EstimatedGain | None:
    """The part of the gain along a path that one parameter has; the parts of all add up to its Elo.

    `path` is theta in steps, shape (points, n), the start first. None where the gain is not known.
    """
    filters, _ = filters_of(run)
    alone = np.tile(path[0], (len(path), 1))
    alone[:, column] = path[:, column]
    return None if filters is None else gain_of(filters.bank, alone)


def _filters(rule: Observed, state: Observation) -> Filters | None:
    if isinstance(rule.rule, Mixture) and isinstance(state.rule, Bank):
        return Filters(rule.rule, state.rule)
    return None


def gain_of(bank: Bank, path: Vector) -> EstimatedGain:
    """The gain along a path of theta in steps, shape (points, n), the start first."""
    return EstimatedGain(tuple(bank.gained(path).tolist()))


def measured_gain(matches: Sequence[MatchLine]) -> StrengthCurve | None:
    """The curve through all matches of theta against the start under one time control.

    None if fewer than two thetas were measured: a match alone says what it measured itself.
    """
    told = [match for match in matches if match.compared.against == "start" and match.k]
    control = _time_control([match.compared for match in told])
    told = [match for match in told if match.compared.time_control == control]
    if len({match.k for match in told}) < 2:
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
