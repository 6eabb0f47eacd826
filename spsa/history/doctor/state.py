"""Statuses that agree with one another, and engines that are what their rows say."""

from collections.abc import Iterator
from pathlib import Path

from spsa.builds.artifacts import verify
from spsa.db.store import Iteration, Run, Store
from spsa.errors import TuningError
from spsa.history.doctor.run_rows import Books, Finding
from spsa.lifecycle import ITERATION, BatchStatus, IterationStatus, Purpose, RunStatus, terminal


def statuses(books: Books) -> Iterator[Finding]:
    ended = terminal(ITERATION)
    for it in books.iterations:
        yield from _status(books, it)
        tuning = it.purpose is Purpose.TUNE
        if tuning and it.status not in ended and books.run.finished_at is not None:
            yield books.finding(it, f"it is {it.status}", f"its run is {books.run.status}")
        if tuning and it.status is IterationStatus.ABANDONED and _is_alive(books.run):
            yield books.finding(it, "it is abandoned", f"its run is {books.run.status}")
    if books.run.status is RunStatus.FINISHED and books.run.applied != books.run.max_iterations:
        yield books.finding(
            None,
            f"finished after {books.run.applied} results",
            f"it was to apply {books.run.max_iterations}",
        )


def _status(books: Books, it: Iteration) -> Iterator[Finding]:
    complete = it.status is IterationStatus.COMPLETE
    if complete and not it.played_out:
        struck = f" and {it.struck_games} struck" if it.struck_games else ""
        found = f"complete with {it.games_played} games{struck}"
        yield books.finding(it, found, f"the target is {it.target_games}")
    if complete != (it.completed_at is not None):
        yield books.finding(it, f"{it.status}, completed_at is {it.completed_at}", "they agree")
    begun = [b for b in books.of(it) if b.status in (BatchStatus.LEASED, BatchStatus.DONE)]
    if it.status is IterationStatus.PENDING and begun:
        yield books.finding(
            it, f"pending, but batch {begun[0].seq} is {begun[0].status}", "it is in progress"
        )
    broken = [b for b in books.of(it) if b.status is BatchStatus.FAILED]
    if broken and _goes_on(books.run, it):
        yield books.finding(
            it,
            f"batch {broken[0].seq} failed ({broken[0].last_error}) and the run goes on",
            "a run with a failed batch is paused",
        )


def _goes_on(run: Run, it: Iteration) -> bool:
    """Whether work of this iteration is handed out for the tune."""
    return (
        run.status is RunStatus.RUNNING
        and it.purpose is Purpose.TUNE
        and it.status not in terminal(ITERATION)
    )


def _is_alive(run: Run) -> bool:
    return run.status in (RunStatus.RUNNING, RunStatus.PAUSED)


def engines(store: Store, books: Books) -> Iterator[Finding]:
    """What an open iteration plays is on the disk or in the database, with its own hash."""
    paths = {engine.sha256: engine.path for engine in store.engines(books.run.id)}
    for it in books.iterations:
        if it.status in terminal(ITERATION):
            continue
        for sha256 in dict.fromkeys((it.plus_sha256, it.minus_sha256)):
            if store.engine_bytes(sha256) is not None:
                continue
            try:
                verify(Path(paths[sha256]), sha256)
            except TuningError as error:
                yield books.finding(it, str(error), f"the engine has the hash {sha256}")
