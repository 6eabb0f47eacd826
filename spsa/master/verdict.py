"""The verdict on a run: the Elo gained so far, what more games would bring, and what to do.

It is computed from the run's row alone: a restarted master and every command come to the same.
"""

from dataclasses import dataclass
from enum import StrEnum
from math import sqrt

import numpy as np

from spsa.algorithms.mixture import MAX_MISFIT
from spsa.core.params import Space
from spsa.db.tables import Run
from spsa.lifecycle import RunStatus
from spsa.master.elo_gained import filters_of, gain_of
from spsa.master.session import RunSettings

WORTHWHILE = 1.0
"""Elo: a run goes on as long as its games, doubled, are expected to bring as much as this.

`[spsa] stop_when` replaces it.
"""

_NEARLY = 0.9  # of the planned iterations


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`gained`, in Elo over the start, is None where `unknown` says why.

    `more` is None where nothing can be expected; it is for as many games as the run has played.
    """

    gained: float | None
    unknown: str
    more: MoreGames | None
    advice: Advice
    reason: str


def verdict(run: Run) -> Verdict:
    """The verdict on a run."""
    filters, why = filters_of(run)
    if filters is None:
        return _unknown(run, why)
    space = Space.from_json(run.space)
    path = np.array([space.steps(run.start_theta), space.steps(run.theta)])
    found = gain_of(filters.bank, path).elo[-1]
    misfit, pairs = filters.misfit(run.applied), filters.pairs
    if misfit > MAX_MISFIT:
        advice, reason = _as_planned(run)
        reason += (
            f"; results scatter {sqrt(misfit):.1f} times as widely as the rule predicts, "
            "so it cannot say what more games bring"
        )
        return Verdict(gained=found, unknown="", more=None, advice=advice, reason=reason)
    more = MoreGames(games=round(2 * pairs), elo=filters.elo_of(pairs))
    settings = RunSettings.from_json(run.settings, run.game_settings)
    advice, reason = _advice(run, more, settings.stop_when or WORTHWHILE)
    return Verdict(gained=found, unknown="", more=more, advice=advice, reason=reason)


def _as_planned(run: Run) -> tuple[Advice, str]:
    """What to do where the games do not say what more games bring."""
    if run.applied >= run.max_iterations:
        return Advice.STOP, "all planned games are played"
    if run.finished_at is not None:
        return Advice.STOP, "the run is over"
    return Advice.GO_ON, "play the planned games"


def _unknown(run: Run, why: str) -> Verdict:
    advice, reason = _as_planned(run)
    return Verdict(gained=None, unknown=why, more=None, advice=advice, reason=reason)


def _advice(run: Run, more: MoreGames, worthwhile: float) -> tuple[Advice, str]:
    brings = f"as many games again ({more.games:,}) are expected to bring {more.elo:+.2g} Elo"
    if run.status is RunStatus.STOPPED:
        return (
            Advice.STOP,
            f"{brings}; `spsa-master run --from` starts a run that goes on from this one",
        )
    if more.elo < worthwhile:
        return Advice.STOP, f"{brings}, less than {worthwhile:g} Elo"
    return _longer(run), brings


def _longer(run: Run) -> Advice:
    if run.status is RunStatus.STOPPED:
        return Advice.STOP
    is_over = run.finished_at is not None or run.applied >= _NEARLY * run.max_iterations
    return Advice.EXTEND if is_over else Advice.GO_ON


def enough(run: Run, settings: RunSettings) -> str | None:
    """Why `stop_when` ends this run now; None if it does not.

    It holds for the planned length. A person who changes the length decides, not the verdict.
    """
    if settings.stop_when is None or run.max_iterations != settings.planned_iterations:
        return None
    found = verdict(run)
    return found.reason if found.more is not None and found.advice is Advice.STOP else None
