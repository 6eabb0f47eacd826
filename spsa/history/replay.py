"""Computes theta again from a run's seed and results; it is the same, bit for bit.

A run with purges has one chain of thetas for every number of purges, from the results that counted
then. The replay skips an iteration that has no game left, as if it had never been opened.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from spsa.algorithms.tuning import PlayedGames, Tuning
from spsa.core import Update
from spsa.core.params import PlayedValues
from spsa.core.scoring import Tally
from spsa.db import Store
from spsa.db.base import counts_of
from spsa.db.history_queries import Parts
from spsa.db.purge_queries import ReportedResult
from spsa.db.tables import Iteration, Run
from spsa.errors import IllegalTransition, NothingToDo
from spsa.lifecycle import Purpose
from spsa.text import plural


@dataclass(frozen=True, slots=True)
class Results:
    """Tuning iterations in the order of k, with the games that count.

    Of a run with several time controls, `parts` are the games of each, by the ids of the rows.
    """

    iterations: Sequence[Iteration]
    parts: Parts = field(default_factory=dict)

    def changed(
        self, results: Iterable[ReportedResult], change: Callable[[Tally, Tally], Tally]
    ) -> "Results":
        """The same with these games as well, by `Tally.__add__`, or without them."""
        iterations = {it.id: it for it in self.iterations}
        parts = {row: list(each) for row, each in self.parts.items()}
        for one in results:
            if one.iteration_id in iterations:
                it = iterations[one.iteration_id]
                tally = change(it.tally, one.tally)
                counts: dict[str, Any] = {**counts_of(tally), "games_played": tally.games}
                iterations[it.id] = replace(it, **counts)
            if one.iteration_id in parts:
                own, number = parts[one.iteration_id], one.time_control
                own[number] = change(own[number], one.tally)
        return Results(list(iterations.values()), parts)


def games_of(iteration: Iteration, parts: Sequence[Tally] = ()) -> PlayedGames:
    """The played values and the result of a tuning iteration, with those of its time controls."""
    if iteration.k is None or iteration.a_k is None or iteration.c_k is None:
        raise IllegalTransition(f"iteration {iteration.iteration_number} moves no theta")
    return PlayedGames(
        k=iteration.k,
        a_k=iteration.a_k,
        c_k=iteration.c_k,
        played=PlayedValues(dict(iteration.plus_parameters), dict(iteration.minus_parameters)),
        tally=iteration.tally,
        by_time_control=parts,
    )


def results_of(store: Store, run: Run, k: int) -> Results:
    """The iterations that theta holds through the result k."""
    tuned = store.iterations(run.id, purpose=Purpose.TUNE)
    held = [it for it in tuned if it.k is not None and it.k <= k]
    return Results(held, store.games_by_time_control(run))


def counted_after(purges: int, results: Results, purged: Iterable[ReportedResult]) -> Results:
    """The results with the games that counted after this number of purges."""
    later = (one for one in purged if one.purge > purges and not one.played_again)
    return results.changed(later, Tally.__add__)


def replay(tuning: Tuning, results: Results) -> Iterator[Update]:
    """The start, and theta after each result, in their order."""
    theta, state = tuning.start()
    last = Update(k=0, theta=theta, state=state, delta={}, estimates=tuning.estimates(state))
    yield last
    for iteration in results.iterations:
        games = games_of(iteration, results.parts.get(iteration.id, ()))
        yield (last := _after(tuning, last, games))


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
