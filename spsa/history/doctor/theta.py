"""Checks of statuses and hashes, and that theta is the sum of one step an iteration, to the bit."""

import struct
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from spsa.builds.artifacts import verify
from spsa.db import Store
from spsa.db.tables import Iteration, Purge, Run, Step
from spsa.errors import TuningError
from spsa.history.doctor.run_rows import RunRows, Violation
from spsa.lifecycle import ITERATION, BatchStatus, IterationStatus, Purpose, RunStatus, terminal


def _to_the_bit(one: float, other: float) -> bool:
    return struct.pack("<d", one) == struct.pack("<d", other)


def log(rows: RunRows) -> Iterator[Violation]:
    """Every complete tuning iteration has one step, in the order of k."""
    completed = [it for it in rows.tuned if it.status is IterationStatus.COMPLETE]
    logged = {step.iteration_id: step for step in rows.steps}
    for it in completed:
        step = logged.pop(it.id, None)
        if step is None:
            yield rows.violation(it, "complete without a step", "one step moved theta by it")
        elif step.k != it.k:
            yield rows.violation(it, f"its step has k={step.k}", f"its own k is {it.k}")
    for step in logged.values():
        yield rows.violation(None, f"step k={step.k} has no completed iteration", "it has one")
    ks = [step.k for step in rows.steps]
    if ks != list(range(1, rows.run.applied + 1)):
        yield rows.violation(
            None,
            f"the log has the steps {ks}",
            f"the run has applied {rows.run.applied} results, each once",
        )


def chain(rows: RunRows) -> Iterator[Violation]:
    """Theta is the start plus the replay of the log, purges and all, to the bit."""
    by_id = {it.id: it for it in rows.iterations}
    theta = rows.run.start_theta
    for entry in entries(rows):
        if isinstance(entry, Step):
            yield from _step(rows, by_id.get(entry.iteration_id), entry, theta)
        else:
            what = f"theta before purge {entry.number}"
            yield from differences(rows, None, what, entry.theta_before, theta)
        theta = entry.theta_after
    yield from differences(rows, None, "the run's theta", rows.run.theta, theta)


def _step(
    rows: RunRows, it: Iteration | None, step: Step, theta: Mapping[str, float]
) -> Iterator[Violation]:
    yield from differences(rows, it, f"theta before step k={step.k}", step.theta_before, theta)
    after = {name: x + step.delta.get(name, 0.0) for name, x in step.theta_before.items()}
    yield from differences(rows, it, f"theta after step k={step.k}", step.theta_after, after)


Entry = Step | Purge
"""What moves theta."""


def entries(rows: RunRows) -> Iterator[Entry]:
    """The steps and purges, in the order in which they were made."""
    between = list(rows.purges)
    for step in rows.steps:
        while between and between[0].applied < step.k:
            yield between.pop(0)
        yield step
    yield from between


def differences(
    rows: RunRows,
    it: Iteration | None,
    what: str,
    found: Mapping[str, float],
    right: Mapping[str, float],
    same: Callable[[float, float], bool] = _to_the_bit,
) -> Iterator[Violation]:
    """The parameters in which two sets of values are not the `same`."""
    if found.keys() != right.keys():
        yield rows.violation(
            it, f"{what} has {sorted(found)}", f"the parameters are {sorted(right)}"
        )
    for name in sorted(found.keys() & right.keys()):
        if not same(found[name], right[name]):
            yield rows.violation(
                it, f"{what} has {name} = {found[name]!r}", f"it is {right[name]!r}"
            )


def masters(rows: RunRows) -> Iterator[Violation]:
    """Epochs never decrease: a master that lost its lease moves theta no more."""
    by_id = {it.id: it for it in rows.iterations}
    for before, after in pairwise(rows.steps):
        if after.epoch < before.epoch:
            yield rows.violation(
                by_id.get(after.iteration_id),
                f"step k={after.k} is of epoch {after.epoch}",
                f"step k={before.k} is of epoch {before.epoch} already",
            )
    last = max((step.epoch for step in rows.steps), default=0)
    if last > rows.run.epoch:
        yield rows.violation(
            None, f"the run is at epoch {rows.run.epoch}", f"its log is at {last} already"
        )


def statuses(rows: RunRows) -> Iterator[Violation]:
    ended = terminal(ITERATION)
    for it in rows.iterations:
        yield from _status(rows, it)
        tuning = it.purpose is Purpose.TUNE
        if tuning and it.status not in ended and rows.run.finished_at is not None:
            yield rows.violation(it, f"it is {it.status}", f"its run is {rows.run.status}")
        if tuning and it.status is IterationStatus.ABANDONED and _is_alive(rows.run):
            yield rows.violation(it, "it is abandoned", f"its run is {rows.run.status}")
    if rows.run.status is RunStatus.FINISHED and rows.run.applied != rows.run.max_iterations:
        yield rows.violation(
            None,
            f"finished after {rows.run.applied} results",
            f"it was to apply {rows.run.max_iterations}",
        )


def _status(rows: RunRows, it: Iteration) -> Iterator[Violation]:
    complete = it.status is IterationStatus.COMPLETE
    if complete and not it.is_played:
        purged = f" and {it.purged_games} purged" if it.purged_games else ""
        found = f"complete with {it.games_played} games{purged}"
        yield rows.violation(it, found, f"the target is {it.target_games}")
    if complete != (it.completed_at is not None):
        yield rows.violation(it, f"{it.status}, completed_at is {it.completed_at}", "they agree")
    begun = [b for b in rows.of(it) if b.status in (BatchStatus.LEASED, BatchStatus.DONE)]
    if it.status is IterationStatus.PENDING and begun:
        yield rows.violation(
            it, f"pending, but batch {begun[0].seq} is {begun[0].status}", "it is in progress"
        )
    failed = [b for b in rows.of(it) if b.status is BatchStatus.FAILED]
    if failed and _is_handed_out(rows.run, it):
        yield rows.violation(
            it,
            f"batch {failed[0].seq} failed ({failed[0].last_error}) and the run goes on",
            "a run with a failed batch is paused",
        )


def _is_handed_out(run: Run, it: Iteration) -> bool:
    """Whether batches of this tuning iteration are handed out."""
    return (
        run.status is RunStatus.RUNNING
        and it.purpose is Purpose.TUNE
        and it.status not in terminal(ITERATION)
    )


def _is_alive(run: Run) -> bool:
    return run.status in (RunStatus.RUNNING, RunStatus.PAUSED)


def engines(store: Store, rows: RunRows) -> Iterator[Violation]:
    """The binaries of open iterations are in a file or in the database, with their hashes."""
    paths = {engine.sha256: engine.path for engine in store.engines(rows.run.id)}
    for it in rows.iterations:
        if it.status in terminal(ITERATION):
            continue
        for sha256 in dict.fromkeys((it.plus_sha256, it.minus_sha256)):
            if store.file(sha256) is not None:
                continue
            try:
                verify(Path(paths[sha256]), sha256)
            except TuningError as error:
                yield rows.violation(it, str(error), f"the engine has the hash {sha256}")
