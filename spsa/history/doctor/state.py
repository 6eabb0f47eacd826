"""Checks that statuses agree with each other, and that engines have their hashes."""

from collections.abc import Iterator
from pathlib import Path

from spsa.builds.artifacts import verify
from spsa.db.store import Iteration, Run, Store
from spsa.errors import TuningError
from spsa.history.doctor.run_rows import RunRows, Violation
from spsa.lifecycle import ITERATION, BatchStatus, IterationStatus, Purpose, RunStatus, terminal


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
        purged = f" and {it.struck_games} purged" if it.struck_games else ""
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
            if store.engine_bytes(sha256) is not None:
                continue
            try:
                verify(Path(paths[sha256]), sha256)
            except TuningError as error:
                yield rows.violation(it, str(error), f"the engine has the hash {sha256}")
