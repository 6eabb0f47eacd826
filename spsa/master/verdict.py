"""The Elo that a run has gained, as far as its rule believes to know it, and what to do next.

All of it is computed from the run's row alone: a restarted master and every command come to the
same. The filters of `mixture` estimate the gain, and the whole path is judged by what is known now.
The number has no interval: on most synthetic engines the true gain is half to twice the number, on
some a fifth or five times, and the games do not tell on which. `python -m benches.verdict` compares
both.
"""

from dataclasses import dataclass
from enum import StrEnum
from math import floor, sqrt
from shlex import quote

import numpy as np

from spsa.algorithms.filter_bank import Bank
from spsa.algorithms.mixture import MAX_MISFIT, Mixture
from spsa.core.params import Space, Vector
from spsa.db.tables import Run
from spsa.errors import UnusableState
from spsa.lifecycle import RunStatus
from spsa.master.session import tuning_of
from spsa.text import plural

_AT_BOUND = 0.01  # steps
_MANY = 0.25  # of the parameters
_FEWEST = 50  # games; fewer say nothing


def misfit(bank: Bank, results: int) -> float:
    """The mean squared error of the best filter's predictions, over what chance explains.

    About 1 if the model is right; chi_j is that sum (`spsa.algorithms.mixture`).
    """
    return float(bank.surprise.min()) / results


def filters_of(run: Run) -> tuple[tuple[Mixture, Bank] | None, str]:
    """A run's rule and filters, or None and why the Elo gained is not known, as a clause."""
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
    rule, bank = observed.rule, state.rule
    if not (isinstance(rule, Mixture) and isinstance(bank, Bank)):
        return None, f"{run.algorithm} does not estimate it"
    if many := too_many_at_bounds(theta, space.lower, space.upper):
        return None, f"theta is at a bound of {plural(many, 'parameter')}"
    if (games := round(2 * float(bank.pairs[0]))) < _FEWEST:
        return None, f"it rests on {plural(games, 'game')}, too few"
    return (rule, bank), ""


def too_many_at_bounds(theta: Vector, lower: Vector, upper: Vector) -> int:
    """How many parameters are at a bound, if that are so many that the estimate does not hold.

    All in steps; else 0.
    """
    bounded = np.minimum(theta - lower, upper - theta) < _AT_BOUND
    return int(bounded.sum()) if bounded.mean() > _MANY else 0


WORTHWHILE = 1.0
"""Elo: a run goes on as long as more games are expected to bring as much as this."""

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

    `more` is None where nothing can be expected. It is for the planned games that are left, or for
    as many as the run has played, if they are more.
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
    (rule, bank), space = filters, Space.from_json(run.space)
    path = np.array([space.steps(run.start_theta), space.steps(run.theta)])
    gained, missed = float(bank.gained(path)[-1]), misfit(bank, run.applied)
    if missed > MAX_MISFIT * limit:
        scatter = (
            f"{planned[1]}; results scatter {sqrt(missed):.1f} times as widely as the rule "
            "predicts, so it cannot say what more games bring"
        )
        return Verdict(gained, "", None, planned[0], scatter)
    played = float(bank.pairs[0])
    left = 0 if run.has_ended else rule.problem.pairs * (run.max_iterations - run.applied)
    which = "the planned games that are left" if left > played else "as many games again"
    pairs = max(played, left)
    more = MoreGames(games=round(2 * pairs), elo=rule.elo_of(bank, pairs))
    return Verdict(gained, "", more, *_advice(run, which, more, WORTHWHILE * limit))


def _as_planned(run: Run) -> tuple[Advice, str]:
    """What to do where the games do not say what more games bring."""
    if run.applied >= run.max_iterations:
        return Advice.STOP, "all planned games are played"
    if run.finished_at is not None:
        return Advice.STOP, "the run is over"
    return Advice.GO_ON, "play the planned games"


def _advice(run: Run, which: str, more: MoreGames, worthwhile: float) -> tuple[Advice, str]:
    elo = floor(100 * more.elo) / 100  # not rounded up to what is worthwhile
    brings = f"{which} ({more.games:,}) are expected to bring {elo:+.2f} Elo"
    if run.status is RunStatus.STOPPED:
        return Advice.STOP, f"{brings}; only `spsa-master run --from` goes on from it"
    if more.elo < worthwhile:
        return Advice.STOP, f"{brings}, less than {worthwhile:g} Elo"
    if run.finished_at is not None or run.applied >= _NEARLY * run.max_iterations:
        extends = f"`spsa-master set --run {quote(run.name)} --iterations N` extends the run"
        return Advice.EXTEND, f"{brings}; {extends}"
    return Advice.GO_ON, brings
