"""All that a master needs to know of its run, read in one transaction."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy import and_, case, func, or_, select

from spsa.core.builds import Builds
from spsa.db.base import COUNTS, sums_of, tally_of, time_from_now
from spsa.db.batch_tables import IS_LEASED, Batch
from spsa.db.database import Database, rows
from spsa.db.exhausted_batches import MachineFailures, fail_exhausted, machine_failures
from spsa.db.master_lease import MasterLease, MasterLeaseQueries, locked_run
from spsa.db.run_status import pause_for_failure
from spsa.db.run_tables import IS_OPEN, Iteration, Run
from spsa.db.statements import execute
from spsa.lifecycle import BatchStatus, RunStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedBatch:
    """A batch of an open iteration that is out of attempts, and why."""

    iteration_id: int
    seq: int
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """All that a master's decision depends on: the run, its open iterations, its failed batches.

    `ready_games` wait for a claim, `leased_games` are being played in `leased_batches`.
    `game_seconds` is the mean length of recent games; None before any has been reported.
    """

    run: Run
    opened: int  # the highest k that has an iteration
    open: Sequence[Iteration]
    failures: Sequence[FailedBatch]
    ready_games: int
    leased_games: int
    leased_batches: int
    game_seconds: float | None
    machine_failures: Sequence[MachineFailures] = ()
    active_workers: int
    active_slots: int
    miscounted: str | None = None  # why the next result cannot be applied


class RunViewQueries(MasterLeaseQueries):
    """The query that a master repeats; its cost does not grow with the run."""

    def tick(
        self, master_lease: MasterLease, lease_seconds: float, builds: Builds | None = None
    ) -> RunView:
        """Renew the master lease, fail batches that no machine can play, and read the run.

        A run with such a batch, or with an iteration whose counts are not the sums over its
        batches, is paused with the reason. `builds` is written for those who look at the run.

        Raises:
            MasterLeaseLost: another master holds this run.
        """
        with self._write() as connection:
            locked_run(connection, master_lease, lease_seconds=lease_seconds, builds=builds)
            fail_exhausted(connection, master_lease.run_id)
            miscounted = _miscounted(connection, master_lease.run_id)
            return replace(_view(connection, master_lease.run_id), miscounted=miscounted)


def _miscounted(connection: sa.Connection, run_id: int) -> str | None:
    """Compare the open iterations that have nothing left to play; why one cannot be applied."""
    left = (BatchStatus.READY, BatchStatus.LEASED, BatchStatus.FAILED)
    to_play = select(Batch.id).where(Batch.iteration_id == Iteration.id, Batch.status.in_(left))
    played = Iteration.games_played + Iteration.purged_games == Iteration.target_games
    ids = connection.scalars(
        select(Iteration.id).where(
            Iteration.run_id == run_id, IS_OPEN, or_(played, ~to_play.exists())
        )
    )
    reasons = [pause_if_miscounted(connection, one) for one in ids.all()]
    return next(filter(None, reasons), None)


def pause_if_miscounted(connection: sa.Connection, iteration_id: int) -> str | None:
    """Pause a run whose iteration has other counts than its batches; says both figures.

    Returns None if they agree.
    """
    one = rows(connection, select(Iteration).where(Iteration.id == iteration_id))[0]
    sums = sums_of(Batch, (*COUNTS, "void_games"))
    batches = connection.execute(select(*sums).where(Batch.iteration_id == iteration_id)).one()
    if _shown(one) == _shown(batches):
        return None
    reason = (
        f"iteration {one.iteration_number} has {_shown(one)}, and its batches have "
        f"{_shown(batches)}: `spsa-master doctor` shows both"
    )
    running = Run.status == RunStatus.RUNNING
    if connection.scalar(select(Run.id).where(Run.id == one.run_id, running)) is not None:
        pause_for_failure(connection, one.run_id, "master", reason)
    return reason


def _shown(row: Any) -> str:
    tally = tally_of(row)
    counts = f"+{tally.wins} -{tally.losses} ={tally.draws}, pairs {list(tally.pentanomial)}"
    return f"{tally.games} games ({counts}) and {int(row.void_games)} void ones"


def _view(connection: sa.Connection, run_id: int) -> RunView:
    newest = select(func.max(Iteration.k)).where(Iteration.run_id == run_id)
    open_ones = rows(
        connection,
        select(Iteration).where(Iteration.run_id == run_id, IS_OPEN).order_by(Iteration.id),
    )
    ids = [iteration.id for iteration in open_ones]
    run = rows(connection, select(Run).where(Run.id == run_id))[0]
    last = _last_applied(connection, run)
    work = _work(connection, ids if last is None else [*ids, last])
    leased = _with_status(work, BatchStatus.LEASED)
    workers, slots = _active(connection, ids)
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
        active_workers=workers,
        active_slots=slots,
    )


def _active(connection: sa.Connection, ids: Sequence[int]) -> tuple[int, int]:
    """How many workers were seen recently that may play the newest open iteration; their slots."""
    if ids:
        row = execute(connection, "active", iteration_id=max(ids)).one()
    else:
        row = execute(connection, "active.any").one()
    return row.workers, int(row.slots)


def _failures(connection: sa.Connection, ids: Sequence[int]) -> list[FailedBatch]:
    failed = (
        select(Batch.iteration_id, Batch.seq, Batch.last_error)
        .where(Batch.iteration_id.in_(ids), Batch.status == BatchStatus.FAILED)
        .order_by(Batch.iteration_id, Batch.seq)
    )
    return [
        FailedBatch(iteration_id=row.iteration_id, seq=row.seq, error=row.last_error or "")
        for row in connection.execute(failed)
    ]


def _last_applied(connection: sa.Connection, run: Run) -> int | None:
    """The id of the iteration that was applied last."""
    own = (Iteration.run_id == run.id, Iteration.k == run.applied)
    last: int | None = connection.scalar(select(Iteration.id).where(*own))
    return last


def _work(connection: sa.Connection, ids: Sequence[int]) -> Sequence[Any]:
    """Batches, games and seconds of these iterations, by status."""
    statement = (
        select(
            Batch.iteration_id,
            Batch.status,
            func.count().label("batches"),
            func.sum(Batch.games).label("games"),
            func.sum(Batch.seconds).label("seconds"),
        )
        .where(Batch.iteration_id.in_(ids))
        .group_by(Batch.iteration_id, Batch.status)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOverview:
    """A row of the overview of all runs; `slots` is how many play for the run now."""

    name: str
    status: RunStatus
    priority: int
    share: float
    applied: int
    max_iterations: int
    slots: int
    has_master: bool
    live: bool  # has not ended, or has a validation that is not complete


class RunOverviewQueries(Database):
    """The query for an overview of the runs."""

    def run_overviews(self) -> list[RunOverview]:
        """All runs in the order of scheduling; ended runs come last, the most recent first."""
        with self._read() as connection:
            return [RunOverview(**row._mapping) for row in connection.execute(_overviews())]


_IS_IN_USE = and_(IS_LEASED, Batch.lease_expires_at >= time_from_now(0))
_OWN = (Run.name, Run.status, Run.priority, Run.share, Run.applied, Run.max_iterations)


def _overviews() -> Any:
    slots = func.count(Batch.id).label("slots")
    held = and_(Batch.iteration_id == Iteration.id, _IS_IN_USE)
    open_ones = (
        select(Iteration.run_id, slots)
        .outerjoin_from(Iteration, Batch, held)
        .where(IS_OPEN)
        .group_by(Iteration.run_id)
        .subquery()
    )
    has_master = and_(Run.master_id.is_not(None), Run.lease_expires_at >= time_from_now(0))
    live = or_(Run.finished_at.is_(None), open_ones.c.run_id.is_not(None))
    ended = case((Run.finished_at.is_(None), 0), else_=1)
    return (
        select(
            *_OWN,
            func.coalesce(open_ones.c.slots, 0).label("slots"),
            has_master.label("has_master"),
            live.label("live"),
        )
        .outerjoin_from(Run, open_ones, open_ones.c.run_id == Run.id)
        .order_by(ended, Run.finished_at.desc(), Run.priority.desc(), Run.id)
    )
