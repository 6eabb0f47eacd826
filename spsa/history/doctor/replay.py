"""Replays the whole run with its rule, and compares proposals and steps with the rows.

On the machine that moved theta the replay is the same to the bit. Another processor or another libm
may round a logarithm differently, so values that agree to a billionth are no violation here; the
log itself is checked to the bit by `spsa.history.doctor.theta`.

A run with purges has one chain of thetas for every number of purges. A step belongs to the chain of
its time, a purge leads to the next chain, and an iteration belongs to the chain on which it was
opened.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf, isclose

from spsa.algorithms.state_json import alike
from spsa.algorithms.tuning import Tuning
from spsa.db.tables import Iteration, Purge, Step
from spsa.history.doctor.run_rows import RunRows, Violation
from spsa.history.doctor.theta import Entry, differences, entries
from spsa.history.replay import ReplayedState, counted_after
from spsa.history.replay import replay as _replayed

_TOLERANCE = 1e-9

Chain = Sequence[ReplayedState]


def replay(rows: RunRows, tuning: Tuning) -> Iterator[Violation]:
    """Compare every proposal and every step with the replay.

    After a step that differs, all later ones differ too: together they are one violation.
    """
    chains = _chains(rows, tuning)
    yield from _differences(rows, None, "the start", rows.run.start_theta, chains[0][0].theta)
    different = [found for found in _steps(rows, tuning, chains) if found[1]]
    yield from _summed_up([found for _, found in different], _span(tuning, rows, chains))
    if not different and len(chains[-1]) == rows.run.applied + 1:
        yield from _state(rows, tuning, chains[-1][-1])
    first = min((k for k, _ in different), default=inf)
    openings = [
        list(_opening(rows, tuning, chains, it)) for it in rows.tuned if it.opened_on < first
    ]
    yield from _summed_up([found for found in openings if found], "")


def _chains(rows: RunRows, tuning: Tuning) -> list[Chain]:
    """The chain for each number of purges."""
    held = list(_results(rows))
    return [
        list(_replayed(tuning, counted_after(purges, held, rows.purged)))
        for purges in range(max(0, rows.run.purges) + 1)
    ]


def _steps(
    rows: RunRows, tuning: Tuning, chains: Sequence[Chain]
) -> Iterator[tuple[int, list[Violation]]]:
    """The violations of each entry of the log, with the k after it."""
    by_id = {it.id: it for it in rows.iterations}
    purges = 0
    for entry in entries(rows):
        purges += isinstance(entry, Purge)
        k = entry.k if isinstance(entry, Step) else entry.applied
        moment = _moment(chains, purges, k)
        if moment is None:
            return  # the log is incomplete, which other checks report
        it = by_id[entry.iteration_id] if isinstance(entry, Step) else None
        yield (
            k,
            [
                violation
                for what, found, right in _comparisons(entry, moment)
                for violation in _differences(rows, it, what, found, right)
            ],
        )


def _moment(chains: Sequence[Chain], purges: int, k: int) -> ReplayedState | None:
    """The moment of a chain after the result k."""
    chain = chains[purges] if purges < len(chains) else ()
    return chain[k] if k < len(chain) else None


Comparison = tuple[str, Mapping[str, float], Mapping[str, float]]


def _comparisons(entry: Entry, moment: ReplayedState) -> Iterator[Comparison]:
    """What is compared, the values of an entry of the log, and those of the replay."""
    if not isinstance(entry, Step):
        yield f"theta after purge {entry.number}", entry.theta_after, moment.theta
        return
    yield f"delta of step k={entry.k}", entry.delta, moment.delta
    yield f"theta after step k={entry.k}", entry.theta_after, moment.theta


def _summed_up(wrong: Sequence[Sequence[Violation]], more: str) -> Iterator[Violation]:
    """The first violation, with the number of those that follow."""
    if not wrong:
        return
    first = wrong[0][0]
    if len(wrong) == 1:
        yield first
        return
    others = f"; {len(wrong) - 1} more differ from there on{more}: "
    yield replace(first, right=first.right + others + "did another version of the rule move it?")


def _span(tuning: Tuning, rows: RunRows, chains: Sequence[Chain]) -> str:
    """How far the run's theta is from the end of the replay."""
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
    """Values below 1, the step of most parameters, are compared like 1."""
    return isclose(one, other, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)


def _state(rows: RunRows, tuning: Tuning, last: ReplayedState) -> Iterator[Violation]:
    """The rule's state and the estimates in the run's row."""
    run, right = rows.run, tuning.estimates(last.state)
    if not alike(run.state, last.state, _TOLERANCE):
        yield rows.violation(None, "the rule's state differs", "it follows from the results")
    found = run.estimates.by_name()
    for name, wanted in right.by_name().items():
        what = f"the run's theta_{name}"
        yield from _differences(rows, None, what, found[name] or {}, wanted or {})


def _results(rows: RunRows) -> Iterator[Iteration]:
    """The applied iterations, as far as the log is complete; other checks report gaps."""
    by_id = {it.id: it for it in rows.iterations}
    for k, step in enumerate(rows.steps, start=1):
        it = by_id.get(step.iteration_id)
        if it is None or step.k != k or it.k != k:
            return
        yield it


def _opening(
    rows: RunRows, tuning: Tuning, chains: Sequence[Chain], it: Iteration
) -> Iterator[Violation]:
    """An iteration was opened on the right results, and plays the proposal of the rule."""
    k = it.k or 0
    least = max(0, k - it.in_flight)
    if not least <= it.opened_on < k:
        needed = f"k={k} with {it.in_flight} in flight needs {least} at least, and none of its own"
        yield rows.violation(it, f"opened on {it.opened_on} results", needed)
    base = _moment(chains, it.opened_purges, it.opened_on)
    if base is None:
        return
    proposal = tuning.propose(base.state, base.theta, k)
    gains = {"a_k": it.a_k or 0.0, "c_k": it.c_k or 0.0}
    yield from _differences(rows, it, "its row", gains, {"a_k": proposal.a_k, "c_k": proposal.c_k})
    for what, found, right in (
        ("base", it.base_parameters, proposal.base),
        ("plus", it.plus_parameters, proposal.played.plus),
        ("minus", it.minus_parameters, proposal.played.minus),
    ):
        yield from _differences(rows, it, what, found, right)
