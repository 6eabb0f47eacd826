"""Checks the invariants of a run: its rows by themselves, and against the replay of its rule.

The checks change nothing. The replay is the same to the bit on the machine that moved theta, but
another processor or another libm may round a logarithm differently, so values that agree with it to
a billionth are no violation; the log itself is compared to the bit.

A run with purges has one chain of thetas for every number of purges. A step belongs to the chain of
its time, a purge leads to the next chain, and an iteration belongs to the chain on which it was
opened.
"""

from collections.abc import Iterable, Iterator, Sequence
from math import inf
from pathlib import Path

from spsa.algorithms.state import alike
from spsa.algorithms.tuning import Tuning
from spsa.builds.artifacts import verify
from spsa.core import Update
from spsa.db import Store
from spsa.db.tables import Iteration, Purge, Run
from spsa.errors import TuningError
from spsa.history.invariants import CHECKS, LOG_CHECKS, Comparison, RunRows, compare_values, read
from spsa.history.replay import Results, counted_after, replay

_TOLERANCE = 1e-9

Chain = Sequence[Update]


def check_run(store: Store, run: Run, tuning: Tuning | None = None) -> list[str]:
    """All violations of a run's invariants, each a sentence.

    Args:
        tuning: the run's rule, to compute all its proposals and theta again; None skips that, and
            so do gaps in the log.
    """
    rows = read(store, run)
    gaps, found = (
        _different(one for check in checks for one in check(rows))
        for checks in (LOG_CHECKS, CHECKS)
    )
    if tuning is not None and not gaps:  # else there is no log to replay
        found += _replayed(rows, tuning)
    found += _different(_engines(store, rows))
    return [f"run {rows.run.name}{one}" for one in (*gaps, *found)]


def _different(compared: Iterable[Comparison], tolerance: float = 0.0) -> list[str]:
    return [str(one) for one in compared if not one.is_same(tolerance)]


def _engines(store: Store, rows: RunRows) -> Iterator[Comparison]:
    """The binaries of open iterations that are neither in the database nor in a file by hash."""
    for it in rows.iterations.values():
        for sha256, path in it.files.items() if it.is_open else ():
            try:
                if store.file(sha256) is None:
                    verify(Path(path), sha256)
            except TuningError as error:
                yield Comparison(it, "the engine", error, "its hash", sha256)


def _replayed(rows: RunRows, tuning: Tuning) -> Iterator[str]:
    """Where steps and proposals differ from the replay.

    After a step that differs, all later ones differ too: together they are one violation.
    """
    steps = Results([rows.iterations[step.iteration_id] for step in rows.steps], rows.parts)
    chains = [
        list(replay(tuning, counted_after(number, steps, rows.purged)))
        for number in (0, *(purge.number for purge in rows.purges))
    ]
    start, last = chains[0][0].theta, chains[-1][-1]
    same_start = compare_values(None, "the start", rows.run.start_theta, "the rule's", start)
    yield from _different(same_start, _TOLERANCE)
    logged = [(k, _different(one, _TOLERANCE)) for k, one in _steps(rows, chains)]
    sound = min((k for k, wrong in logged if wrong), default=inf)
    yield from _summed_up([wrong for _, wrong in logged if wrong])
    if sound == inf:
        yield from _different(_state(rows, last), _TOLERANCE)
    openings = (_opening(rows, tuning, chains, it) for it in rows.tuned if it.opened_on < sound)
    yield from _summed_up([wrong for one in openings if (wrong := _different(one, _TOLERANCE))])


def _summed_up(wrong: Sequence[list[str]]) -> Iterator[str]:
    """The first violation, with the number of those that follow."""
    for (first, *_), *others in [wrong] if wrong else []:
        follow = f"; {len(others)} more differ from there on: "
        yield first + f"{follow}did another version of the rule move it?" if others else first


def _steps(rows: RunRows, chains: Sequence[Chain]) -> Iterator[tuple[int, list[Comparison]]]:
    """Each entry of the log beside the replay, with the k after it."""
    purges, source = 0, "replayed"
    for name, it, entry in rows.log():
        purges += isinstance(entry, Purge)
        k = entry.applied if isinstance(entry, Purge) else entry.k
        right = chains[purges][k]
        delta = right.delta if isinstance(entry, Purge) else entry.delta
        moved = compare_values(it, f"delta of {name}", delta, source, right.delta)
        what, theta = f"theta after {name}", entry.theta_after
        yield k, [*moved, *compare_values(it, what, theta, source, right.theta)]


def _state(rows: RunRows, last: Update) -> Iterator[Comparison]:
    """The rule's state and the estimates in the run's row."""
    same, found = alike(rows.run.state, last.state, _TOLERANCE), rows.run.estimates.by_name()
    yield Comparison(None, "the rule's state matches its results", same, "always", True)
    for name, right in last.estimates.by_name().items():
        what = f"the run's estimates.{name}"
        yield from compare_values(None, what, found[name] or {}, "replayed", right or {})


def _opening(
    rows: RunRows, tuning: Tuning, chains: Sequence[Chain], it: Iteration
) -> Iterator[Comparison]:
    """An iteration was opened on the right results, and plays the proposal of the rule."""
    k = it.k or 0
    allowed = min(max(it.opened_on, 0, k - it.in_flight), k - 1)
    yield Comparison(it, "opened_on", it.opened_on, f"with {it.in_flight} in flight", allowed)
    purges = min(it.opened_purges, len(chains) - 1)
    yield Comparison(it, "opened_purges", it.opened_purges, "purges so far, at most", purges)
    if not 0 <= it.opened_on < len(chains[purges]):
        return
    base = chains[purges][it.opened_on]
    proposal = tuning.propose(base.state, base.theta, k)
    gains = {"a_k": it.a_k or 0.0, "c_k": it.c_k or 0.0}
    for what, found, right in (
        ("its row", gains, {"a_k": proposal.a_k, "c_k": proposal.c_k}),
        ("base", it.base_parameters, proposal.base),
        ("plus", it.plus_parameters, proposal.played.plus),
        ("minus", it.minus_parameters, proposal.played.minus),
    ):
        yield from compare_values(it, what, found, "proposed", right)
