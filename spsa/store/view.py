"""What a master sees, all in one look."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import func, select, update

from spsa.lifecycle import BATCH, BatchStatus, IterationStatus
from spsa.schema import IS_LEASED, IS_OPEN, batches, iterations, runs, seconds_from_now, workers
from spsa.store.database import may_become
from spsa.store.halting import pause_for_failure
from spsa.store.mastership import MastershipDesk
from spsa.store.reading import iteration_of, run_of
from spsa.store.rows import Failure, Iteration, Mastership, Run, RunView

SEEN_LATELY_SECONDS = 120
"""A worker that has not been heard of for this long is not counted as playing."""


class ViewDesk(MastershipDesk):
    """Where a master looks at the run it moves; what it costs does not grow with the run."""

    def tick(self, mastership: Mastership, lease_seconds: float) -> RunView:
        """Renew the mastership, give up batches that are out of attempts, and look at the run."""
        with self._write() as connection:
            self._lead(connection, mastership, lease_seconds=lease_seconds)
            _fail_exhausted(connection, mastership.run_id)
            return _view(connection, mastership.run_id)


def _fail_exhausted(connection: sa.Connection, run_id: int) -> None:
    """Batches whose last allowed lease ran out: every worker that tried them died or went away.

    One whose row is locked is being reported or renewed just now; the next look is soon enough.
    """
    exhausted = (
        select(batches.c.id)
        .join(iterations, iterations.c.id == batches.c.iteration_id)
        .where(
            iterations.c.run_id == run_id,
            IS_OPEN,
            iterations.c.status == IterationStatus.IN_PROGRESS,
            IS_LEASED,
            batches.c.attempt >= batches.c.max_attempts,
            batches.c.lease_expires_at < seconds_from_now(0),
        )
        .with_for_update(of=batches, skip_locked=True)
    )
    ids = connection.scalars(exhausted).all()
    if not ids:
        return
    failed = connection.execute(
        update(batches)
        .where(batches.c.id.in_(ids), may_become(batches.c.status, BATCH, BatchStatus.FAILED))
        .values(
            status=BatchStatus.FAILED,
            claim_id=None,
            lease_expires_at=None,
            last_error=func.coalesce(
                batches.c.last_error, "every worker that claimed it went away without reporting"
            ),
        )
        .returning(batches.c.iteration_id, batches.c.seq, batches.c.attempt)
    ).all()
    for row in failed:
        reason = (
            f"batch {row.seq} of iteration row {row.iteration_id} was claimed {row.attempt} times "
            "and never reported: do the engines bring the worker down?"
        )
        pause_for_failure(connection, run_id, "master", reason)


def _view(connection: sa.Connection, run_id: int) -> RunView:
    newest = select(func.max(iterations.c.k)).where(iterations.c.run_id == run_id)
    open_ones = _open_iterations(connection, run_id)
    ids = [iteration.id for iteration in open_ones]
    run = run_of(connection.execute(select(runs).where(runs.c.id == run_id)).one())
    last = _last_applied(connection, run)
    work = _work(connection, ids if last is None else [*ids, last])
    leased = _of(work, BatchStatus.LEASED)
    seen = connection.execute(
        select(func.count(), func.coalesce(func.sum(workers.c.concurrency), 0)).where(
            workers.c.last_seen_at > seconds_from_now(-SEEN_LATELY_SECONDS)
        )
    ).one()
    return RunView(
        run=run,
        opened=connection.scalar(newest) or 0,
        open=open_ones,
        failures=_failures(connection, ids),
        ready_games=sum(int(row.games) for row in _of(work, BatchStatus.READY)),
        leased_games=sum(int(row.games) for row in leased),
        leased_batches=sum(row.batches for row in leased),
        game_seconds=_game_seconds(work, last),
        active_workers=seen[0],
        active_slots=int(seen[1]),
    )


def _open_iterations(connection: sa.Connection, run_id: int) -> list[Iteration]:
    statement = (
        select(iterations).where(iterations.c.run_id == run_id, IS_OPEN).order_by(iterations.c.id)
    )
    return [iteration_of(row) for row in connection.execute(statement)]


def _failures(connection: sa.Connection, ids: Sequence[int]) -> list[Failure]:
    statement = (
        select(batches.c.iteration_id, batches.c.seq, batches.c.last_error)
        .where(batches.c.iteration_id.in_(ids), batches.c.status == BatchStatus.FAILED)
        .order_by(batches.c.iteration_id, batches.c.seq)
    )
    return [
        Failure(iteration_id=row.iteration_id, seq=row.seq, error=row.last_error or "")
        for row in connection.execute(statement)
    ]


def _last_applied(connection: sa.Connection, run: Run) -> int | None:
    """The iteration of the latest result."""
    statement = select(iterations.c.id).where(
        iterations.c.run_id == run.id, iterations.c.k == run.applied
    )
    last: int | None = connection.scalar(statement)
    return last


def _work(connection: sa.Connection, ids: Sequence[int]) -> Sequence[Any]:
    """How much of these iterations is to be played, is being played, and has been played."""
    statement = (
        select(
            batches.c.iteration_id,
            batches.c.status,
            func.count().label("batches"),
            func.sum(batches.c.games).label("games"),
            func.sum(batches.c.seconds).label("seconds"),
        )
        .where(batches.c.iteration_id.in_(ids))
        .group_by(batches.c.iteration_id, batches.c.status)
    )
    return connection.execute(statement).all()


def _of(work: Sequence[Any], status: BatchStatus) -> list[Any]:
    return [row for row in work if row.status == status]


def _game_seconds(work: Sequence[Any], last: int | None) -> float | None:
    """What a game has lasted lately: in the iteration of the latest result, if there is one.

    Of those that are still being played the short games are known first.
    """
    done = _of(work, BatchStatus.DONE)
    whole = [row for row in done if row.iteration_id == last] or done
    games = sum(row.games for row in whole)
    return sum(row.seconds for row in whole) / games or None if games else None
