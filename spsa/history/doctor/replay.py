"""The whole run once more: what its rule proposes and answers, against what the rows say.

On the machine that moved theta this comes out the same to the bit. Another processor or another
libm may round a logarithm the other way, so that what agrees to a billionth is no finding here; the
log itself is checked to the bit by `spsa.history.doctor.theta`.

A run that was purged has a chain for every number of purges, of the games that counted then. A step
is one of the chain that theta was on when it was taken, a purge goes over to the next one, and an
iteration was proposed on the chain that it was opened on.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf, isclose

import spsa.history.replay
from spsa.algorithms.memory import alike
from spsa.algorithms.tuning import Tuning
from spsa.db.store import Iteration, Purge, Step
from spsa.history.doctor.run_rows import RunRows, Violation
from spsa.history.doctor.theta import differences, entries
from spsa.history.replay import Moment, counted_after, noted_from

_HAIR = 1e-9

Chain = Sequence[Moment]


def replay(rows: RunRows, tuning: Tuning) -> Iterator[Violation]:
    """Every proposal and every step, computed from the run's seed and its counts alone.

    Where a step comes out otherwise, so does all that follows: that is one finding.
    """
    chains = _chains(rows, tuning)
    yield from _differences(rows, None, "the start", rows.run.start_theta, chains[0][0].theta)
    astray = [found for found in _steps(rows, tuning, chains) if found[1]]
    yield from _summed_up([found for _, found in astray], _span(tuning, rows, chains))
    if not astray and len(chains[-1]) == rows.run.applied + 1:
        yield from _state(rows, tuning, chains[-1][-1])
    sound = min((k for k, _ in astray), default=inf)
    openings = [
        list(_opening(rows, tuning, chains, it)) for it in rows.tuned if it.opened_on < sound
    ]
    yield from _summed_up([found for found in openings if found], "")


def _chains(rows: RunRows, tuning: Tuning) -> list[Chain]:
    """The thetas by the number of purges."""
    held = list(_results(rows))
    chains: list[Chain] = []
    for purges in range(rows.run.purges):
        results = counted_after(purges, held, rows.purged)
        chains.append(list(spsa.history.replay.replay(tuning, results)))
    notes = noted_from(rows.run, held)
    return [*chains, list(spsa.history.replay.replay(tuning, held, notes))]


def _steps(
    rows: RunRows, tuning: Tuning, chains: Sequence[Chain]
) -> Iterator[tuple[int, list[Violation]]]:
    """What is wrong with each entry of the log, by the results that theta held after it."""
    by_id = {it.id: it for it in rows.iterations}
    purges = 0
    for entry in entries(rows):
        purges += isinstance(entry, Purge)
        k = entry.applied if isinstance(entry, Purge) else entry.k
        if purges >= len(chains) or k >= len(chains[purges]):
            return  # the log is not whole, and other checks have said so
        it = None if isinstance(entry, Purge) else by_id[entry.iteration_id]
        yield (
            k,
            [
                violation
                for what, found, right in _claims(entry, chains[purges][k])
                for violation in _differences(rows, it, what, found, right)
            ],
        )


Claim = tuple[str, Mapping[str, float], Mapping[str, float]]


def _claims(entry: Step | Purge, moment: Moment) -> Iterator[Claim]:
    """What an entry of the log says: its words, its values, and the right ones."""
    if isinstance(entry, Purge):
        yield f"theta after purge {entry.number}", entry.theta_after, moment.theta
        return
    yield f"delta of step k={entry.k}", entry.delta, moment.delta
    yield f"theta after step k={entry.k}", entry.theta_after, moment.theta


def _summed_up(wrong: Sequence[Sequence[Violation]], more: str) -> Iterator[Violation]:
    """The first thing that is wrong, and how many are like it."""
    if not wrong:
        return
    first = wrong[0][0]
    if len(wrong) == 1:
        yield first
        return
    others = f"; {len(wrong) - 1} more from there on come out otherwise{more}: "
    yield replace(first, right=first.right + others + "was another version of its rule at work?")


def _span(tuning: Tuning, rows: RunRows, chains: Sequence[Chain]) -> str:
    """How far the run's theta is from what this program makes of its games."""
    last = chains[-1][-1]
    if last.k != rows.run.applied:
        return ""
    apart = [
        abs(rows.run.theta.get(p.name, inf) - last.theta[p.name]) / p.step
        for p in tuning.space.active
    ]
    return f", theta in the end by up to {max(apart, default=0.0):.3g} steps"


def _differences(
    rows: RunRows,
    it: Iteration | None,
    what: str,
    found: Mapping[str, float],
    right: Mapping[str, float],
) -> Iterator[Violation]:
    return differences(rows, it, what, found, right, _nearly)


def _nearly(one: float, other: float) -> bool:
    """A value counts as at least 1 large, which is what a step is worth for most of them."""
    return isclose(one, other, rel_tol=_HAIR, abs_tol=_HAIR)


def _state(rows: RunRows, tuning: Tuning, last: Moment) -> Iterator[Violation]:
    """What the run's row remembers besides theta."""
    run, right = rows.run, tuning.estimates(last.state)
    if not alike(run.state, last.state, _HAIR):
        yield rows.violation(None, "the rule's state is another", "it follows from the results")
    found = run.estimates.by_name()
    for name, wanted in right.by_name().items():
        what = f"the run's theta_{name}"
        yield from _differences(rows, None, what, found[name] or {}, wanted or {})


def _results(rows: RunRows) -> Iterator[Iteration]:
    """What theta holds, as far as the log is whole; where it is not, other checks have said so."""
    by_id = {it.id: it for it in rows.iterations}
    for k, step in enumerate(rows.steps, start=1):
        it = by_id.get(step.iteration_id)
        if it is None or step.k != k or it.k != k:
            return
        yield it


def _opening(
    rows: RunRows, tuning: Tuning, chains: Sequence[Chain], it: Iteration
) -> Iterator[Violation]:
    """An iteration was opened on the right results, and plays what the rule proposes on them."""
    k = it.k or 0
    least = max(0, k - it.in_flight)
    if not least <= it.opened_on < k:
        needed = f"k={k} with {it.in_flight} in flight needs {least} at least, and none of its own"
        yield rows.violation(it, f"opened on {it.opened_on} results", needed)
    if it.opened_purges >= len(chains) or it.opened_on >= len(chains[it.opened_purges]):
        return
    base = chains[it.opened_purges][it.opened_on]
    proposal = tuning.propose(base.state, base.theta, k)
    gains = {"a_k": it.a_k or 0.0, "c_k": it.c_k or 0.0}
    yield from _differences(rows, it, "its row", gains, {"a_k": proposal.a_k, "c_k": proposal.c_k})
    for what, found, right in (
        ("base", it.base_parameters, proposal.base),
        ("plus", it.plus_parameters, proposal.played.plus),
        ("minus", it.minus_parameters, proposal.played.minus),
    ):
        yield from _differences(rows, it, what, found, right)
