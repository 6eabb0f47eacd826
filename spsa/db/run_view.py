"""The master lease, and all that a master needs to know of its run, read in one transaction.

At most one master advances a run at a time. The lease is in the run's row, with an epoch that grows
with every acquisition. Every write of a master checks it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import func, or_, select, update

from spsa.core.builds import Builds
from spsa.db.base import COUNTS, execute, sums_of, tally_of, time_from_now
from spsa.db.database import Database, rows
from spsa.db.run_queries import pause_for_failure
from spsa.db.tables import (
    IS_OPEN,
    NOT_PURGED,
    Batch,
    BatchFailure,
    Iteration,
    Run,
    SetAside,
    Worker,
)
from spsa.errors import MasterLeaseLost
from spsa.lifecycle import BatchStatus, RunStatus
from spsa.text import plural


@dataclass(frozen=True, slots=True, kw_only=True)
class MasterLease:
    """The right to advance a run; each acquisition has its own `epoch`."""

    run_id: int
    master_id: str
    epoch: int


class MasterLeaseQueries(Database):
    """Acquire, check and release the master lease of a run."""

    def acquire_master_lease(
        self,
        run_id: int,
        master_id: str,
        lease_seconds: float,
        abandoned: datetime | None = None,
    ) -> MasterLease:
        """Become the master of a run.

        A lease has expired when the database's clock says so. A clock that was set back, as a
        laptop's may be, would say so too late, and the clocks of two processes that share an SQLite
        file may differ. So a lease has expired, too, if its holder has not renewed it for as long
        as it lasts; the caller has to watch that.

        Args:
            abandoned: the end of a lease that the caller has seen unchanged for longer than a lease
                lasts.

        Raises:
            MasterLeaseLost: another master's lease is live; has its end.
        """
        free = sa.or_(
            Run.master_id.is_(None),
            Run.master_id == master_id,
            Run.lease_expires_at < time_from_now(0),
            Run.lease_expires_at == abandoned,
        )
        taken = {"epoch": Run.epoch + 1, "master_id": master_id}
        taken |= {"lease_expires_at": time_from_now(lease_seconds)}
        taking = update(Run).where(Run.id == run_id, free).values(taken).returning(Run.epoch)
        with self._write() as connection:
            epoch = connection.scalar(taking)
            if epoch is None:
                lease = select(Run.master_id, Run.lease_expires_at).where(Run.id == run_id)
                holder, end = connection.execute(lease).one()
                raise MasterLeaseLost(f"the master {holder} holds this run", end)
            return MasterLease(run_id=run_id, master_id=master_id, epoch=epoch)

    def release_master_lease(self, master_lease: MasterLease) -> None:
        """Release the lease, so that the next master need not wait until it expires."""
        free = {"master_id": None, "lease_expires_at": None}
        own = (Run.id == master_lease.run_id, Run.epoch == master_lease.epoch)
        with self._write() as connection:
            connection.execute(update(Run).where(*own).values(free))


def locked_run(
    connection: sa.Connection,
    master_lease: MasterLease,
    *,
    lease_seconds: float | None = None,
    builds: Builds | None = None,
) -> Run:
    """The run's row, locked, if this lease is still valid; else MasterLeaseLost.

    `lease_seconds` renews the lease, `builds` tells what the master builds.
    """
    changed: dict[str, Any] = {"epoch": Run.epoch}
    if lease_seconds is not None:
        changed["lease_expires_at"] = time_from_now(lease_seconds)
    if builds is not None:
        changed["builds"] = builds.to_json()
    own = (
        Run.id == master_lease.run_id,
        Run.epoch == master_lease.epoch,
        Run.master_id == master_lease.master_id,
    )
    if connection.scalar(update(Run).where(*own).values(changed).returning(Run.id)) is None:
        raise MasterLeaseLost("another master holds this run now; this one stops")
    return rows(connection, select(Run).where(Run.id == master_lease.run_id))[0]


ACTIVE_SECONDS = 120
"""A worker that was last seen longer ago does not count as active."""

RECENT_FAILURE_SECONDS = 3600
"""How long a failure counts against a machine."""

LEASES_EXPIRED = "every worker that claimed it disappeared without a report"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFailures:
    """The batches that a machine failed recently, and what was played of the same iterations.

    `sha256` is the binary that failed each time; None if that is unknown or differs.
    """

    machine: str
    batches: int
    sha256: str | None
    reason: str  # of the last one
    played: int  # batches that this machine has reported
    played_by_others: int
    binaries_set_aside: frozenset[str]  # whose batches the machine does not get
    is_set_aside: bool


def fail_exhausted(connection: sa.Connection, run_id: int) -> None:
    """Fail batches that were tried often enough, and pause their run with the reason.

    `exhausted` in protocol.sql says how often that is; claims hand batches out by the same rule.
    """
    ids = execute(connection, "exhausted", run_id=run_id).scalars().all()
    if not ids:
        return
    for row in execute(connection, "exhaust", batch_ids=ids, reason=LEASES_EXPIRED).all():
        number = select(Iteration.iteration_number).where(Iteration.id == row.iteration_id)
        tried = select(func.count()).where(BatchFailure.batch_id == row.id)
        machines = max(1, connection.scalar(tried) or 0)
        place = f"iteration {connection.scalar(number)} batch {row.seq}"
        reason = f"{place}: {row.last_error} (tried by {plural(machines, 'machine')})"
        pause_for_failure(connection, run_id, "master", reason)


def machine_failures(connection: sa.Connection, run_id: int) -> list[MachineFailures]:
    """The machines that failed batches of a run within the last hour, and what was played.

    An expired lease is no such failure: a machine may be switched off at any time.
    """
    # subqueries, not joins, so that both databases start with the few failures of this hour
    batch = select(Batch.iteration_id).where(Batch.id == BatchFailure.batch_id)
    its_iteration = batch.correlate(BatchFailure).scalar_subquery()
    run = select(Iteration.run_id).where(Iteration.id == its_iteration)
    its_run = run.correlate(BatchFailure).scalar_subquery()
    columns = (BatchFailure.machine, BatchFailure.sha256, BatchFailure.reason)
    recent = (
        select(*columns, its_iteration.label("iteration_id"))
        .where(
            its_run == run_id,
            BatchFailure.failures > 0,
            BatchFailure.at > time_from_now(-RECENT_FAILURE_SECONDS),
        )
        .order_by(BatchFailure.machine, BatchFailure.at)
    )
    by_machine: dict[str, list[Any]] = {}
    for row in connection.execute(recent).all():
        by_machine.setdefault(row.machine, []).append(row)
    return [_failures_of(connection, machine, own) for machine, own in by_machine.items()]


def _failures_of(connection: sa.Connection, machine: str, own: Sequence[Any]) -> MachineFailures:
    ids = {row.iteration_id for row in own}
    played = connection.execute(
        select(Worker.host, func.count().label("batches"))
        .join(Batch, Batch.worker_id == Worker.id)
        .where(Batch.iteration_id.in_(ids), Batch.status == BatchStatus.DONE)
        .group_by(Worker.host)
    ).all()
    of_machine = select(SetAside.sha256).where(SetAside.machine == machine)
    aside = connection.scalars(of_machine).all()
    binaries = {row.sha256 for row in own}
    return MachineFailures(
        machine=machine,
        batches=len(own),
        sha256=binaries.pop() if len(binaries) == 1 else None,
        reason=own[-1].reason or "",
        played=sum(row.batches for row in played if row.host == machine),
        played_by_others=sum(row.batches for row in played if row.host != machine),
        binaries_set_aside=frozenset(sha256 for sha256 in aside if sha256 is not None),
        is_set_aside=None in aside,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """All that a master's decision depends on: the run, its open iterations, its failed batches.

    `ready_games` wait for a claim, `leased_games` are being played in `leased_batches`.
    `game_seconds` is the mean length of recent games; None before any has been reported.
    """

    run: Run
    opened: int  # the highest k that has an iteration
    open: Sequence[Iteration]
    failed: Sequence[Batch]  # of the open iterations: no machine can play them
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
    its = (Batch.iteration_id == iteration_id, NOT_PURGED)
    batches = connection.execute(select(*sums).where(*its)).one()
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
    applied = select(Iteration.id).where(Iteration.run_id == run_id, Iteration.k == run.applied)
    last = connection.scalar(applied)
    work = _work(connection, ids if last is None else [*ids, last])
    leased = _with_status(work, BatchStatus.LEASED)
    failed = select(Batch).where(Batch.iteration_id.in_(ids), Batch.status == BatchStatus.FAILED)
    workers, slots = _active(connection, ids)
    return RunView(
        run=run,
        opened=connection.scalar(newest) or 0,
        open=open_ones,
        failed=rows(connection, failed.order_by(Batch.iteration_id, Batch.seq)),
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
    sums = select(func.count(), func.coalesce(func.sum(Worker.concurrency), 0))
    seen = Worker.last_seen_at > time_from_now(-ACTIVE_SECONDS)
    row: Any = (
        execute(connection, "active", iteration_id=max(ids)).one()
        if ids
        else connection.execute(sums.where(seen)).one()
    )
    return row[0], int(row[1])


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
