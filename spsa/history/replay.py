"""Computes theta again from a run's seed and results, bit for bit; plans and carries out purges.

A run with purges has one chain of thetas for every number of purges, from the results that counted
then. The replay skips an iteration that has no game left, as if it had never been opened.

Theta after a purge is the replay of the run from its start over the remaining results, to the bit.
The played points do not change, and neither do the open iterations: theta becomes what it would be
if the run had played the same points and had never counted the purged games. The log of steps is
not rewritten; a purge is one more entry between two of its steps.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from spsa.algorithms.tuning import Tuning
from spsa.core import Update
from spsa.core.params import PlayedValues, Space
from spsa.core.scoring import Tally
from spsa.db import Store
from spsa.db.base import counts_of
from spsa.db.purge_queries import PurgePlan, Selection
from spsa.db.read_queries import Parts
from spsa.db.tables import Batch, Iteration, Purge, Run
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
        self, results: Iterable[Batch], change: Callable[[Tally, Tally], Tally]
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


def updated(
    tuning: Tuning,
    state: Mapping[str, Any],
    theta: Mapping[str, float],
    iteration: Iteration,
    parts: Sequence[Tally] = (),
) -> Update:
    """The update of theta by a tuning iteration, with its parts by time control."""
    if iteration.k is None or iteration.a_k is None or iteration.c_k is None:
        raise IllegalTransition(f"iteration {iteration.iteration_number} moves no theta")
    played = PlayedValues(dict(iteration.plus_parameters), dict(iteration.minus_parameters))
    outcome = tuning.outcome(
        theta, played, iteration.tally, k=iteration.k, a_k=iteration.a_k, c_k=iteration.c_k
    )
    return tuning.update(state, theta, outcome, parts)


def results_of(store: Store, run: Run, k: int) -> Results:
    """The iterations that theta holds through the result k."""
    tuned = store.iterations(run.id, purpose=Purpose.TUNE)
    held = [it for it in tuned if it.k is not None and it.k <= k]
    return Results(held, store.games_by_time_control(run))


def counted_after(purges: int, results: Results, purged: Iterable[Batch]) -> Results:
    """The results with the games that counted after this number of purges."""
    later = (one for one in purged if one.purge > purges and not one.played_again)
    return results.changed(later, Tally.__add__)


def replay(tuning: Tuning, results: Results) -> Iterator[Update]:
    """The start, and theta after each result, in their order."""
    theta, state = tuning.start()
    last = Update(k=0, theta=theta, state=state, delta={})
    yield last
    for iteration in results.iterations:
        if iteration.tally.pairs:
            parts = results.parts.get(iteration.id, ())
            last = updated(tuning, last.state, last.theta, iteration, parts)
        else:
            still = dict.fromkeys(theta, 0.0)
            last = replace(last, k=last.k + 1, delta=still, gradient=None, elo=None, bounded=False)
        yield last


def theta_at(store: Store, run: Run, tuning: Tuning, k: int, *, as_applied: bool = False) -> Update:
    """Theta after the result k, and what else was known then; NothingToDo if there is no such yet.

    With `as_applied` it is of the games that counted when k was applied, else of those that do now.
    """
    if k > run.applied:
        raise NothingToDo(
            f"run {run.name} has {plural(run.applied, 'result')}, so no theta of k={k}"
        )
    results = results_of(store, run, k)
    if as_applied:
        purges = sum(purge.applied < k for purge in store.purges(run.id))
        results = counted_after(purges, results, store.batches(run.id, purged=True))
    *_, last = replay(tuning, results)
    return last


_TRIES = 20  # how often a purge is planned again if the run has changed, as each iteration does


def plan(store: Store, run: Run, tuning: Tuning, selection: Selection) -> PurgePlan:
    """Plan a purge of a run; NothingToDo if no counted result is selected."""
    matches = store.matching(run.id, selection)
    if not matches:
        raise NothingToDo(f"no counted result of run {run.name} is selected: nothing to purge")
    held, lost = results_of(store, run, run.applied), {one.iteration_id for one in matches}
    found = PurgePlan(run=run, selection=selection, matches=matches)
    if not any(it.id in lost for it in held.iterations):
        return found
    _, *updates = replay(tuning, held.changed(matches, Tally.without))
    both = zip(held.iterations, updates, strict=True)
    verdicts = {it.id: new for it, new in both if it.id in lost}
    return replace(found, after=updates[-1], verdicts=verdicts)


def carry_out(store: Store, tuning: Tuning, plan_: PurgePlan, actor: str, reason: str) -> Purge:
    """Carry out a plan; if the run has moved meanwhile, plan the same selection again.

    Raises NothingToDo: another purge has taken the results.
    """
    for _ in range(_TRIES):
        try:
            return store.purge(plan_, actor, reason)
        except IllegalTransition as error:
            refused = error
            plan_ = plan(store, store.run(plan_.run.name), tuning, plan_.selection)
    raise refused


def moved(plan_: PurgePlan) -> dict[str, float]:
    """How far every active parameter would move, in its steps, the farthest first."""
    after, before = plan_.theta, plan_.run.theta
    active = Space.from_json(plan_.run.space).active
    apart = {p.name: (after[p.name] - before[p.name]) / p.step for p in active}
    return dict(sorted(apart.items(), key=lambda one: -abs(one[1])))
