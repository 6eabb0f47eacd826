"""All that a master needs to know of its run, read in one transaction."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import and_, case, func, or_, select

from spsa.core import limits
from spsa.core.builds import Builds
from spsa.db.database import Database
from spsa.db.exhausted_batches import ACTIVE_SECONDS, fail_exhausted, machine_failures
from spsa.db.master_lease import MasterLeaseQueries
from spsa.db.row_values import iteration_of, run_of
from spsa.db.rows import Failure, Iteration, MasterLease, Run, RunOverview, RunView
from spsa.db.run_status import pause_for_failure
from spsa.db.schema import (
    IS_LEASED,
    IS_OPEN,
    MISCOUNTED,
    SUITED,
    batches,
    iterations,
    runs,
    seconds_from_now,
    workers,
)
from spsa.lifecycle import BatchStatus, RunStatus

# A row that was damaged by hand, for example with a NaN, does not enter the mean.
_SECONDS = sa.case((batches.c.seconds.between(*limits.SECONDS), batches.c.seconds), else_=0.0)


class RunViewQueries(MasterLeaseQueries):
    """The query that a master repeats; its cost does not grow with the run."""

    def tick(
        self, master_lease: MasterLease, lease_seconds: float, builds: Builds | None = None
    ) -> RunView:
        """Renew the master lease, fail batches that no machine can play, and read the run.

        A run with such a batch, or with an iteration whose counts are not the sums of its batches,
        is paused with the reason. `builds` is written for those who look at the run.

        Raises:
            MasterLeaseLost: another master holds this run.
        """
        with self._write() as connection:
            self._locked_run(connection, master_lease, lease_seconds=lease_seconds, builds=builds)
            fail_exhausted(connection, master_lease.run_id)
            _pause_miscounted(connection, master_lease.run_id)
            return _view(connection, master_lease.run_id)


def _pause_miscounted(connection: sa.Connection, run_id: int) -> None:
    """Prevent a step on counts that are not the sums over the batches."""
    running = (runs.c.id == run_id, runs.c.status == RunStatus.RUNNING)
    open_ones = select(iterations.c.id).join(runs, runs.c.id == iterations.c.run_id)
    ids = connection.scalars(open_ones.where(*running, IS_OPEN)).all()
    # ids as values: with a subquery the planner would sum up all iterations first
    found = connection.execute(
        select(iterations.c.iteration_number)
        .join(MISCOUNTED, MISCOUNTED.c.iteration_id == iterations.c.id)
        .where(MISCOUNTED.c.iteration_id.in_(ids))
        .limit(1)
    ).one_or_none()
    if found is not None:
        reason = (
            f"the counts of iteration {found.iteration_number} are not the sums of its batches: "
            "`spsa-master doctor` shows both"
        )
        pause_for_failure(connection, run_id, "master", reason)


def _view(connection: sa.Connection, run_id: int) -> RunView:
    newest = select(func.max(iterations.c.k)).where(iterations.c.run_id == run_id)
    open_ones = _open_iterations(connection, run_id)
    ids = [iteration.id for iteration in open_ones]
    run = run_of(connection.execute(select(runs).where(runs.c.id == run_id)).one())
    last = _last_applied(connection, run)
    work = _work(connection, ids if last is None else [*ids, last])
    leased = _with_status(work, BatchStatus.LEASED)
    seen = connection.execute(_active(ids)).one()
    return RunView(
        run=run,
        opened=connection.scalar(newest) or 0,
        open=open_ones,
        failures=_failures(connection, ids),
        ready_games=sum(int(row.games) for row in _with_status(work, BatchStatus.READY)),
        leased_games=sum(int(row.games) for row in leased),
        leased_batches=sum(row.batches for row in leased),
        game_seconds=_game_seconds(work, last),
        machine_failures=machine_failures(connection, run_id),
        active_workers=seen[0],
        active_slots=int(seen[1]),
    )


def _active(ids: Sequence[int]) -> sa.Select[Any]:
    """How many workers were seen recently that may play the newest open iteration; their slots."""
    counted = select(func.count(), func.coalesce(func.sum(workers.c.concurrency), 0)).where(
        workers.c.last_seen_at > seconds_from_now(-ACTIVE_SECONDS)
    )
    if not ids:
        return counted
    suited = select(SUITED.c.worker_id).where(SUITED.c.iteration_id == max(ids))
    return counted.where(workers.c.id.in_(suited))


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
    """The id of the iteration that was applied last."""
    statement = select(iterations.c.id).where(
        iterations.c.run_id == run.id, iterations.c.k == run.applied
    )
    last: int | None = connection.scalar(statement)
    return last


def _work(connection: sa.Connection, ids: Sequence[int]) -> Sequence[Any]:
    """Batches, games and seconds of these iterations, by status."""
    statement = (
        select(
            batches.c.iteration_id,
            batches.c.status,
            func.count().label("batches"),
            func.sum(batches.c.games).label("games"),
            func.sum(_SECONDS).label("seconds"),
        )
        .where(batches.c.iteration_id.in_(ids))
        .group_by(batches.c.iteration_id, batches.c.status)
    )
    return connection.execute(statement).all()


def _with_status(work: Sequence[Any], status: BatchStatus) -> list[Any]:
    return [row for row in work if row.status == status]


def _game_seconds(work: Sequence[Any], last: int | None) -> float | None:
    """The mean seconds of a game in the iteration that was applied last, or else in the open ones.

    The open ones are second choice, because their short games are reported first.
    """
    done = _with_status(work, BatchStatus.DONE)
    chosen = [row for row in done if row.iteration_id == last] or done
    games = sum(row.games for row in chosen)
    return sum(row.seconds for row in chosen) / games or None if games else None


_IS_IN_USE = and_(IS_LEASED, batches.c.lease_expires_at >= seconds_from_now(0))
_OWN = ("name", "status", "priority", "share", "applied", "max_iterations")


class RunOverviewQueries(Database):
    """The query for an overview of the runs."""

    def run_overviews(self) -> list[RunOverview]:
        """All runs in the order of scheduling; ended runs come last, the most recent first."""
        with self._read() as connection:
            return [
                RunOverview(**{**row._mapping, "status": RunStatus(row.status)})
                for row in connection.execute(_overviews())
            ]


def _overviews() -> sa.Select[tuple[object, ...]]:
    open_ones = (
        select(iterations.c.run_id, func.count(batches.c.id).label("slots"))
        .select_from(
            iterations.outerjoin(
                batches, and_(batches.c.iteration_id == iterations.c.id, _IS_IN_USE)
            )
        )
        .where(IS_OPEN)
        .group_by(iterations.c.run_id)
        .subquery()
    )
    ended = case((runs.c.finished_at.is_(None), 0), else_=1)
    return (
        select(
            *(runs.c[name] for name in _OWN),
            func.coalesce(open_ones.c.slots, 0).label("slots"),
            and_(
                runs.c.master_id.is_not(None), runs.c.lease_expires_at >= seconds_from_now(0)
            ).label("has_master"),
            or_(runs.c.finished_at.is_(None), open_ones.c.run_id.is_not(None)).label("live"),
        )
        .select_from(runs.outerjoin(open_ones, open_ones.c.run_id == runs.c.id))
        .order_by(ended, runs.c.finished_at.desc(), runs.c.priority.desc(), runs.c.id)
    )
