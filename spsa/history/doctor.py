"""Checks the invariants of a run: its rows by themselves, and against the replay of its rule.

The checks change nothing, and each is one comparison. The replay is the same to the bit on the
machine that moved theta, but another processor or another libm may round a logarithm differently,
so values that agree with it to a billionth are no violation; the log itself is compared to the bit.

A run with purges has one chain of thetas for every number of purges. A step belongs to the chain of
its time, a purge leads to the next chain, and an iteration belongs to the chain on which it was
opened.
"""

import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, groupby
from math import inf, isclose
from pathlib import Path
from typing import Any, NamedTuple

from spsa.algorithms.state import alike
from spsa.algorithms.tuning import Tuning
from spsa.builds.artifacts import verify
from spsa.core import Update, Values, derived_seed
from spsa.core.game_settings import games_by_share
from spsa.core.scoring import Tally
from spsa.db import Store
from spsa.db.read_queries import Parts
from spsa.db.tables import Batch, Iteration, Purge, Run, Step
from spsa.errors import TuningError
from spsa.history.replay import Results, counted_after, replay
from spsa.lifecycle import BatchStatus, IterationStatus, Purpose

_TOLERANCE = 1e-9

Chain = Sequence[Update]


class Comparison(NamedTuple):
    """Two values that have to be the same, of an iteration or of a whole run.

    `found` is that of `what`; `right` is that of `source`, which is believed.
    """

    iteration: Iteration | None
    what: str
    found: Any
    source: str
    right: Any

    def __str__(self) -> str:
        place = "" if self.iteration is None else f" iteration {self.iteration.iteration_number}"
        return f"{place}: {self.what}: {self.found}; {self.source}: {self.right}"

    def is_same(self, tolerance: float = 0.0) -> bool:
        """Whether both values are the same.

        Floats are compared to the bit, or with a tolerance: that of values below 1, the step of
        most parameters, is absolute.
        """
        found, right = self.found, self.right
        if not (isinstance(found, float) and isinstance(right, int | float)):
            return bool(found == right)
        if tolerance:
            return isclose(found, right, rel_tol=tolerance, abs_tol=tolerance)
        return struct.pack("<d", found) == struct.pack("<d", right)


@dataclass(frozen=True, slots=True)
class RunRows:
    """All rows of a run, each list in order; iterations also by the ids of their rows."""

    run: Run
    iterations: Mapping[int, Iteration]
    batches: Mapping[int, Sequence[Batch]]  # by the id of the iteration's row
    steps: Sequence[Step]
    purges: Sequence[Purge]
    purged: Sequence[Batch]
    parts: Parts  # by time control, of a run with several

    def of(self, iteration: Iteration) -> Sequence[Batch]:
        return self.batches.get(iteration.id, ())

    @property
    def tuned(self) -> list[Iteration]:
        return [it for it in self.iterations.values() if it.purpose is Purpose.TUNE]

    def log(self) -> Iterator[tuple[str, Iteration | None, Step | Purge]]:
        """The steps and purges in the order in which they were made, each with its name.

        Also the iteration of a step.
        """
        between = list(self.purges)
        for step in self.steps:
            while between and between[0].applied < step.k:
                yield f"purge {between[0].number}", None, between.pop(0)
            yield f"step k={step.k}", self.iterations.get(step.iteration_id), step
        for purge in between:
            yield f"purge {purge.number}", None, purge


def check_run(store: Store, run: Run, tuning: Tuning | None = None) -> list[str]:
    """All violations of a run's invariants, each a sentence.

    With `tuning`, its rule, proposals and theta are computed again, unless the log has gaps.
    """
    rows = _read(store, run)
    gaps = _different(chain(_numbers(rows), _steps(rows), _purges(rows)))
    found = _different(chain(_counts(rows), _time_controls(rows), _log(rows)))
    if tuning is not None and not gaps:  # else there is no log to replay
        found += _replayed(rows, tuning)
    found += _different(_engines(store, rows))
    return [f"run {rows.run.name}{one}" for one in (*gaps, *found)]


def _different(compared: Iterable[Comparison], tolerance: float = 0.0) -> list[str]:
    return [str(one) for one in compared if not one.is_same(tolerance)]


def _read(store: Store, run: Run) -> RunRows:
    """Read the rows as they are at one moment."""
    with store.at_one_moment() as frozen:
        batches = groupby(frozen.batches(run.id), lambda b: b.iteration_id)
        return RunRows(
            run=frozen.run(run.name),
            parts=frozen.games_by_time_control(run),
            iterations={it.id: it for it in frozen.iterations(run.id)},
            batches={row: list(group) for row, group in batches},
            steps=frozen.steps(run.id),
            purges=frozen.purges(run.id),
            purged=frozen.batches(run.id, purged=True),
        )


def _values(
    it: Iteration | None, what: str, found: Values, source: str, right: Values
) -> Iterator[Comparison]:
    """The values of each parameter; one that is missing is None."""
    for name in sorted(found.keys() | right.keys()):
        yield Comparison(it, f"{what}, {name}", found.get(name), source, right.get(name))


def _counts(rows: RunRows) -> Iterator[Comparison]:
    """Games count once, neither void nor purged ones; batches add up to their iteration.

    What constraints of the tables refuse is not checked again: split pairs, results that do not
    add up, a complete iteration that lacks games.
    """
    for it in rows.iterations.values():
        batches = rows.of(it)
        done = [b.tally for b in batches if b.status is BatchStatus.DONE]
        voids = sum(b.void_games for b in batches if b.status is not BatchStatus.PURGED)
        gone = [b for b in rows.purged if b.iteration_id == it.id and not b.played_again]
        lost, games = sum(b.tally.games for b in gone), sum(b.games for b in batches)
        added = "the sum over its batches"
        yield Comparison(it, "its tally", it.tally, f"{added} that are done", sum(done, Tally()))
        yield Comparison(it, "void_games", it.void_games, added, voids)
        yield Comparison(it, "purged_games", it.purged_games, f"{added} that are purged", lost)
        yield Comparison(it, "target_games", it.target_games, added, games)


def _time_controls(rows: RunRows) -> Iterator[Comparison]:
    """Every batch has one of the time controls, and each of these its share of an iteration."""
    for it in rows.iterations.values():
        games = Counter[int]()
        for batch in rows.of(it):
            games[batch.time_control] += batch.games
        seed = derived_seed(rows.run.seed, "time_control", it.iteration_number)
        right = dict(enumerate(games_by_share(it.target_games, it.game_settings.shares, seed)))
        found = {number: games[number] for number in sorted(games.keys() | right.keys())}
        yield Comparison(it, "games by time control", found, "by their shares", right)


def _numbers(rows: RunRows) -> Iterator[Comparison]:
    """Iterations and pairs are numbered without gaps, and every batch has its own seed."""
    for place, it in enumerate(rows.iterations.values(), start=1):
        number = it.iteration_number
        yield Comparison(it, "iteration_number", number, "its place in the run", place)
    for place, it in enumerate(rows.tuned, start=1):
        yield Comparison(it, "k", it.k, "its place among the tuning iterations", place)
    pair = 0
    for it in rows.iterations.values():
        for place, batch in enumerate(rows.of(it)):
            name, number = f"batch {batch.seq}", it.iteration_number
            seed = derived_seed(rows.run.seed, "batch", number, batch.seq)
            yield Comparison(it, "seq", batch.seq, "its place in the iteration", place)
            yield Comparison(it, f"first_pair of {name}", batch.first_pair, "the next pair", pair)
            yield Comparison(it, f"seed of {name}", batch.seed, "that of its place", seed)
            pair = batch.first_pair + batch.games // 2


def _steps(rows: RunRows) -> Iterator[Comparison]:
    """Each complete tuning iteration has one step, in the order of k."""
    logged = {step.iteration_id: step.k for step in rows.steps}
    complete = {it.id for it in rows.tuned if it.status is IterationStatus.COMPLETE}
    for it in rows.tuned:
        wanted = it.k if it.id in complete else None
        yield Comparison(it, "k of its step", logged.get(it.id), f"as it is {it.status}", wanted)
    ks, applied = [step.k for step in rows.steps], list(range(1, rows.run.applied + 1))
    yield Comparison(None, "the steps of the log", ks, "the results applied, each once", applied)


def _log(rows: RunRows) -> Iterator[Comparison]:
    """Theta is the start plus the log, purges and all, to the bit, and epochs never decrease.

    A master that lost its lease moves theta no more.
    """
    theta, source, highest = rows.run.start_theta, "theta at the start", 0
    for name, it, entry in rows.log():
        yield from _values(it, f"theta before {name}", entry.theta_before, source, theta)
        theta, source = entry.theta_after, f"theta after {name}"
        if isinstance(entry, Step):
            moved = {n: x + entry.delta.get(n, 0.0) for n, x in entry.theta_before.items()}
            yield from _values(it, source, theta, "before it, plus delta", moved)
            what, highest = f"the epoch of {name}", max(highest, entry.epoch)
            yield Comparison(it, what, entry.epoch, "the highest epoch so far", highest)
    yield from _values(None, "the run's theta", rows.run.theta, source, theta)
    epoch, least = rows.run.epoch, "that of its log, at least"
    yield Comparison(None, "the run's epoch", epoch, least, max(highest, epoch))


def _purges(rows: RunRows) -> Iterator[Comparison]:
    """Purges are numbered without gaps, in the order of results, and say what they removed."""
    numbers, wanted = [p.number for p in rows.purges], list(range(1, rows.run.purges + 1))
    yield Comparison(None, "the purges", numbers, "in the run's row", wanted)
    held = [purge.applied for purge in rows.purges]
    right = [min(applied, rows.run.applied) for applied in sorted(held)]
    yield Comparison(None, "the results that purges held", held, "in order", right)
    for purge in rows.purges:
        games = sum(one.tally.games for one in rows.purged if one.purge == purge.number)
        what = f"the games of purge {purge.number}"
        yield Comparison(None, what, purge.games, "the sum over its batches", games)


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
    same_start = _values(None, "the start", rows.run.start_theta, "the rule's", start)
    yield from _different(same_start, _TOLERANCE)
    logged = [(k, _different(one, _TOLERANCE)) for k, one in _replayed_log(rows, chains)]
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


def _replayed_log(rows: RunRows, chains: Sequence[Chain]) -> Iterator[tuple[int, list[Comparison]]]:
    """Each entry of the log beside the replay, with the k after it."""
    purges, source = 0, "replayed"
    for name, it, entry in rows.log():
        purges += isinstance(entry, Purge)
        k = entry.applied if isinstance(entry, Purge) else entry.k
        right = chains[purges][k]
        delta = right.delta if isinstance(entry, Purge) else entry.delta
        moved = _values(it, f"delta of {name}", delta, source, right.delta)
        what, theta = f"theta after {name}", entry.theta_after
        yield k, [*moved, *_values(it, what, theta, source, right.theta)]


def _state(rows: RunRows, last: Update) -> Iterator[Comparison]:
    """The rule's state and the estimates in the run's row."""
    same, found = alike(rows.run.state, last.state, _TOLERANCE), asdict(rows.run.estimates)
    yield Comparison(None, "the rule's state matches its results", same, "always", True)
    for name, right in asdict(last.estimates).items():
        what = f"the run's estimates.{name}"
        yield from _values(None, what, found[name] or {}, "replayed", right or {})


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
    yield Comparison(it, "its row, a_k", it.a_k, "proposed", proposal.a_k)
    yield Comparison(it, "its row, c_k", it.c_k, "proposed", proposal.c_k)
    for what, found, right in (
        ("base", it.base_parameters, proposal.base),
        ("plus", it.plus_parameters, proposal.played.plus),
        ("minus", it.minus_parameters, proposal.played.minus),
    ):
        yield from _values(it, what, found, "proposed", right)
