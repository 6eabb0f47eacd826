"""Computes theta again from a run's seed and results; it is the same, bit for bit.

A run with purges has one chain of thetas for every number of purges, from the results that counted
then. The replay skips an iteration that has no game left, as if it had never been opened.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from spsa.algorithms.tuning import PlayedGames, Tuning
from spsa.core.params import PlayedValues
from spsa.core.scoring import Tally
from spsa.db.base import counts_of
from spsa.db.purge_queries import ReportedResult
from spsa.db.tables import Iteration
from spsa.errors import IllegalTransition


@dataclass(frozen=True, slots=True)
class ReplayedState:
    """Theta and the rule's state after the result k, and the step to it; k = 0 is the start.

    `gradient` and `elo` are the estimates from the games of k alone; None without games.
    """

    k: int
    theta: Mapping[str, float]
    state: Mapping[str, Any]
    delta: Mapping[str, float] = field(default_factory=dict)
    gradient: Mapping[str, float] | None = None
    elo: float | None = None


def games_of(iteration: Iteration) -> PlayedGames:
    """The played values and the result of a tuning iteration."""
    if iteration.k is None or iteration.a_k is None or iteration.c_k is None:
        raise IllegalTransition(f"iteration {iteration.iteration_number} moves no theta")
    return PlayedGames(
        k=iteration.k,
        a_k=iteration.a_k,
        c_k=iteration.c_k,
        played=PlayedValues(dict(iteration.plus_parameters), dict(iteration.minus_parameters)),
        tally=iteration.tally,
    )


def counted_after(
    purges: int, results: Iterable[Iteration], purged: Iterable[ReportedResult]
) -> list[Iteration]:
    """The results with the games that counted after this number of purges."""
    back: dict[int, Tally] = {}
    for one in purged:
        if one.purge > purges and not one.played_again:
            back[one.iteration_id] = back.get(one.iteration_id, Tally()) + one.tally
    return [with_tally(it, it.tally + back.get(it.id, Tally())) for it in results]


def with_tally(iteration: Iteration, tally: Tally) -> Iteration:
    """The same iteration with these games."""
    if tally == iteration.tally:
        return iteration
    counts: dict[str, Any] = {**counts_of(tally), "games_played": tally.games}
    return replace(iteration, **counts)


def replay(tuning: Tuning, results: Iterable[Iteration]) -> Iterator[ReplayedState]:
    """The start, and the moment after each result, in their order."""
    moment = ReplayedState(0, *tuning.start())
    yield moment
    for iteration in results:
        yield (moment := _after(tuning, moment, games_of(iteration)))


def _after(tuning: Tuning, before: ReplayedState, games: PlayedGames) -> ReplayedState:
    if not games.tally.pairs:
        unmoved = dict.fromkeys(before.theta, 0.0)
        return replace(before, k=games.k, delta=unmoved, gradient=None, elo=None)
    update = tuning.update(before.state, before.theta, games)
    return ReplayedState(
        k=games.k,
        theta=dict(update.theta),
        state=update.state,
        delta=update.delta,
        gradient=update.gradient,
        elo=update.elo,
    )
