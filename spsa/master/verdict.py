"""The Elo that a run has gained, as far as its rule believes to know it, and what to do next.

All of it is computed from the run's row alone: a restarted master and every command come to the
same. The filters of `mixture` estimate the gain, and the whole path is judged by what is known now.
The number has no interval: on most synthetic engines the true gain is half to twice the number, on
some a fifth or five times, and the games do not tell on which. `python -m benches.verdict` compares
both.
"""

from dataclasses import dataclass
from enum import StrEnum
from math import floor, log, sqrt

import numpy as np

from spsa.algorithms.filter_bank import FORGETTING, Bank
from spsa.algorithms.mixture import MAX_MISFIT, Mixture
from spsa.algorithms.rule import total
from spsa.core.params import Space, Vector
from spsa.db.tables import Run
from spsa.errors import UnusableState
from spsa.lifecycle import RunStatus
from spsa.master.session import tuning_of
from spsa.text import plural

_PARTS = 60  # of the games to come, for the integration of the variances
_AT_BOUND = 0.01  # steps
_MANY = 0.25  # of the parameters
_FEWEST = 50  # games; fewer say nothing


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
        return float(self.bank.surprise.min()) / results

    def elo_of(self, pairs: float) -> float:
        """Elo that so many more pairs are expected to gain.

        That is h_j times what the variances v_j lose. Of many iterations of B pairs each,

            dv/dp = -(1 - lambda_j) A_j^2 v^2 / (tau^2 + B sum A_j^2 v)
            A_j   = 2 c_i h_j ln 10 / 200

        which is integrated in small parts, each with the sum at its start and the present c. What
        the filters disagree about is left out.
        """
        bank, each = self.bank, pairs / _PARTS
        squared = (2.0 * self.mixture.widths(bank) * self.mixture.per_step) ** 2
        kept = 1.0 - FORGETTING
        variance = bank.variance
        for _ in range(_PARTS):
            known = bank.tau2 + self.mixture.problem.pairs * total(squared * variance)
            variance = variance / (1.0 + kept * each * squared / known * variance)
        lost = total(bank.variance) - total(variance)
        return float(np.sum(bank.weight() * (self.elo_per_step * lost)))


def filters_of(run: Run) -> tuple[Filters | None, str]:
    """The filters of a run, or None and why the Elo gained is not known, as a clause."""
    if not run.tunes:
        return None, "nothing is tuned"
    if run.applied == 0:
        return None, "there is no result yet"
    try:
        observed = tuning_of(run).observed
        state = observed.load(run.state)
        space = Space.from_json(run.space)
        _, theta = (space.steps(values) for values in (run.start_theta, run.theta))
    except UnusableState:
        return None, "this program cannot read the state of the run"
    if not (isinstance(observed.rule, Mixture) and isinstance(state.rule, Bank)):
        return None, f"{run.algorithm} does not estimate it"
    if many := too_many_at_bounds(theta, space.lower, space.upper):
        return None, f"theta is at a bound of {plural(many, 'parameter')}"
    found = Filters(observed.rule, state.rule)
    if (games := round(2 * found.pairs)) < _FEWEST:
        return None, f"it rests on {plural(games, 'game')}, too few"
    return found, ""


def too_many_at_bounds(theta: Vector, lower: Vector, upper: Vector) -> int:
    """How many parameters are at a bound, if that are so many that the estimate does not hold.

    All in steps; else 0.
    """
    bounded = np.minimum(theta - lower, upper - theta) < _AT_BOUND
    return int(bounded.sum()) if bounded.mean() > _MANY else 0


WORTHWHILE = 1.0
"""Elo: a run goes on as long as its games, doubled, are expected to bring as much as this."""

_NEARLY = 0.9  # of the planned iterations
_STAYS = 1.5
"""A verdict that said "stop" says it until the numbers are so many times beyond their limits.

Both vary by a few percent from result to result, so a verdict without a past would change with
them near a limit.
"""


class Advice(StrEnum):
    """What to do with a run."""

    STOP = "stop"
    GO_ON = "go on"
    EXTEND = "extend"


@dataclass(frozen=True, slots=True, kw_only=True)
class MoreGames:
    """Elo that so many more games are expected to bring."""

    games: int
    elo: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """`gained`, in Elo over the start, is None where `unknown` says why.

    `more` is None where nothing can be expected; it is for as many games as the run has played.
    """

    gained: float | None
    unknown: str
    more: MoreGames | None
    advice: Advice
    reason: str


def verdict(run: Run, *, said_stop: bool = False) -> Verdict:
    """The verdict on a run; `said_stop` where the last one that was recorded said to stop."""
    limit, planned = _STAYS if said_stop else 1.0, _as_planned(run)
    filters, why = filters_of(run)
    if filters is None:
        return Verdict(None, why, None, *planned)
    space = Space.from_json(run.space)
    path = np.array([space.steps(run.start_theta), space.steps(run.theta)])
    gained, misfit = float(filters.bank.gained(path)[-1]), filters.misfit(run.applied)
    if misfit > MAX_MISFIT * limit:
        scatter = (
            f"{planned[1]}; results scatter {sqrt(misfit):.1f} times as widely as the rule "
            "predicts, so it cannot say what more games bring"
        )
        return Verdict(gained, "", None, planned[0], scatter)
    more = MoreGames(games=round(2 * filters.pairs), elo=filters.elo_of(filters.pairs))
    return Verdict(gained, "", more, *_advice(run, more, WORTHWHILE * limit))


def _as_planned(run: Run) -> tuple[Advice, str]:
    """What to do where the games do not say what more games bring."""
    if run.applied >= run.max_iterations:
        return Advice.STOP, "all planned games are played"
    if run.finished_at is not None:
        return Advice.STOP, "the run is over"
    return Advice.GO_ON, "play the planned games"


def _advice(run: Run, more: MoreGames, worthwhile: float) -> tuple[Advice, str]:
    elo = floor(100 * more.elo) / 100  # not rounded up to what is worthwhile
    brings = f"as many games again ({more.games:,}) are expected to bring {elo:+.2f} Elo"
    if run.status is RunStatus.STOPPED:
        goes_on = "`spsa-master run --from` starts a run that goes on from this one"
        return Advice.STOP, f"{brings}; {goes_on}"
    if more.elo < worthwhile:
        return Advice.STOP, f"{brings}, less than {worthwhile:g} Elo"
    is_over = run.finished_at is not None or run.applied >= _NEARLY * run.max_iterations
    return (Advice.EXTEND if is_over else Advice.GO_ON), brings
