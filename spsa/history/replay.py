"""Computes theta again from a run's seed and results; it is the same, bit for bit.

A run with purges has one chain of thetas for every number of purges, from the results that counted
then. The replay skips an iteration that has no game left, as if it had never been opened.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from spsa.algorithms.tuning import PlayedGames, Tuning
from spsa.core import Update
from spsa.core.params import PlayedValues
from spsa.core.scoring import Tally
from spsa.db import Store
from spsa.db.base import counts_of
from spsa.db.purge_queries import ReportedResult
from spsa.db.tables import Iteration, Run
from spsa.errors import IllegalTransition, NothingToDo
from spsa.lifecycle import Purpose
from spsa.text import plural


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


def results_of(store: Store, run: Run, k: int) -> list[Iteration]:
    """The iterations that theta holds through the result k, in order."""
    tuned = store.iterations(run.id, purpose=Purpose.TUNE)
    return [it for it in tuned if it.k is not None and it.k <= k]


def counted_after(
    purges: int, results: Iterable[Iteration], purged: Iterable[ReportedResult]
) -> list[Iteration]:
    """The results with the games that counted after this number of purges."""
    back = games_by_iteration(one for one in purged if one.purge > purges and not one.played_again)
    return [with_tally(it, it.tally + back.get(it.id, Tally())) for it in results]


def games_by_iteration(results: Iterable[ReportedResult]) -> dict[int, Tally]:
    """The games of these results, by the ids of the rows of their iterations."""
    games: dict[int, Tally] = {}
    for one in results:
        games[one.iteration_id] = games.get(one.iteration_id, Tally()) + one.tally
    return games


def with_tally(iteration: Iteration, tally: Tally) -> Iteration:
    """The same iteration with these games."""
    if tally == iteration.tally:
        return iteration
    counts: dict[str, Any] = {**counts_of(tally), "games_played": tally.games}
    return replace(iteration, **counts)


def replay(tuning: Tuning, results: Iterable[Iteration]) -> Iterator[Update]:
    """The start, and theta after each result, in their order."""
    theta, state = tuning.start()
    last = Update(k=0, theta=theta, state=state, delta={}, estimates=tuning.estimates(state))
    yield last
    for iteration in results:
        yield (last := _after(tuning, last, games_of(iteration)))


def _after(tuning: Tuning, before: Update, games: PlayedGames) -> Update:
    if games.tally.pairs:
        return tuning.update(before.state, before.theta, games)
    unmoved = dict.fromkeys(before.theta, 0.0)
    return replace(before, k=games.k, delta=unmoved, gradient=None, elo=None, bounded=False)


def theta_at(store: Store, run: Run, tuning: Tuning, k: int, *, as_applied: bool = False) -> Update:
    """Theta after the result k, and what else was known then.

    Args:
        as_applied: whether with the games that counted when k was applied; otherwise with those
            that count now.

    Raises:
        NothingToDo: the run has fewer results.
    """
    if k > run.applied:
        raise NothingToDo(
            f"run {run.name} has {plural(run.applied, 'result')}, so no theta of k={k}"
        )
    results = results_of(store, run, k)
    if as_applied:
        purges = sum(purge.applied < k for purge in store.purges(run.id))
        results = counted_after(purges, results, store.purged_batches(run.id))
    *_, last = replay(tuning, results)
    return last
