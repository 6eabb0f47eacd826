"""The master lease, and all that a master needs to know of its run, read in one transaction.

At most one master advances a run. The lease is in the run's row, with an epoch that grows with
every acquisition; every write of a master checks it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

import sqlalchemy as sa
from sqlalchemy import func, or_, select, update

from spsa.core import Builds
from spsa.db.base import COUNTS, execute, sums_of, tally_of, time_from_now
from spsa.db.database import Database, rows
from spsa.db.tables import IS_OPEN, NOT_PURGED, Batch, Iteration, Run, SetAsideRow, Worker
from spsa.errors import MasterLeaseLost
from spsa.lifecycle import BatchStatus
from spsa.protocol import ACTIVE_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class MasterLease:
    """The right to advance a run; each acquisition has its own `epoch`."""

    run_id: int
    master_id: str
    epoch: int


LEASES_EXPIRED = "every worker that claimed it disappeared without a report"
"""What is said of a batch that no machine gave back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedBatch:
    """A batch that waits for another attempt, and who could make it.

    `machines` have failed it or lost its lease. Workers that are active may play its iteration if
    `is_suited`, and if `is_wanted` the machine of one of them has not given this batch up.
    """

    id: int
    iteration_number: int
    seq: int
    reason: str  # of the last failure
    machines: int
    max_attempts: int
    is_suited: bool
    is_wanted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFailures:
    """The batches that a machine failed recently, and what was played of the same iterations.

    `sha256` is the binary that failed each time; None if that is unknown or differs.
    """

    machine: str
    batches: int
    sha256: str | None
    batch_ids: tuple[int, ...]
    reason: str  # of the last one
    played: int  # batches that this machine has reported
    played_by_others: int
    set_aside: frozenset[str | None]  # binaries whose batches the machine does not get; None: all


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacles:
    """What may keep a run from going on; `spsa.master.decide` says what does.

    `miscounted` says how an open iteration that has nothing left to play differs from its batches,
    if one does. `failures` are those of the last hour, and `others_active` says whether a machine
    without any is active.
    """

    tried: Sequence[TriedBatch] = ()
    miscounted: str | None = None
    failures: Sequence[MachineFailures] = ()
    others_active: bool = False


def obstacles(connection: sa.Connection, run_id: int) -> Obstacles:
    """The obstacles of a run; the rows of its tried batches are locked."""
    tried = execute(connection, "tried", run_id=run_id, reason=LEASES_EXPIRED).mappings()
    # only the iterations that have nothing left to play
    left = (BatchStatus.READY, BatchStatus.LEASED, BatchStatus.FAILED)
    to_play = select(Batch.id).where(Batch.iteration_id == Iteration.id, Batch.status.in_(left))
    played = Iteration.games_played == Iteration.target_games
    over = (Iteration.run_id == run_id, IS_OPEN, or_(played, ~to_play.exists()))
    # an expired lease is no failure: a machine may be switched off at any time
    recent = execute(connection, "failures.recent", run_id=run_id).all()
    by_machine = groupby(recent, key=lambda row: row.machine)
    failures = [_failures_of(connection, machine, list(own)) for machine, own in by_machine]
    other = Worker.host.not_in([one.machine for one in failures])
    seen = Worker.last_seen_at > time_from_now(-ACTIVE_SECONDS)
    return Obstacles(
        tried=[TriedBatch(**row) for row in tried],
        miscounted=miscounted(connection, *over),
        failures=failures,
        others_active=connection.scalar(select(Worker.id).where(seen, other).limit(1)) is not None,
    )


def miscounted(connection: sa.Connection, *which: sa.ColumnElement[bool]) -> str | None:
    """How the counts of the first such iteration differ from the sums over its batches, if any."""
    for one in rows(connection, select(Iteration).where(*which).order_by(Iteration.id)):
        its = (Batch.iteration_id == one.id, NOT_PURGED)
        sums = select(*sums_of(Batch, (*COUNTS, "void_games"))).where(*its)
        counted, batches = _shown(one), _shown(connection.execute(sums).one())
        if counted != batches:
            return (
                f"iteration {one.iteration_number} has {counted}, and its batches have "
                f"{batches}: `spsa-master doctor` shows both"
            )
    return None


def _shown(row: Any) -> str:
    tally = tally_of(row)
    counts = f"+{tally.wins} -{tally.losses} ={tally.draws}, pairs {list(tally.pentanomial)}"
    return f"{tally.games} games ({counts}) and {row.void_games} void ones"


def _failures_of(connection: sa.Connection, machine: str, own: Sequence[Any]) -> MachineFailures:
    ids = list({row.iteration_id for row in own})
    hosts = execute(connection, "failures.played", iteration_ids=ids)
    played = {row.host: row.batches for row in hosts}
    aside = select(SetAsideRow.sha256).where(SetAsideRow.machine == machine)
    binaries = {row.sha256 for row in own}
    return MachineFailures(
        machine=machine,
        batches=len(own),
        sha256=binaries.pop() if len(binaries) == 1 else None,
        batch_ids=tuple(row.batch_id for row in own),
        reason=own[-1].reason,
        played=played.pop(machine, 0),
        played_by_others=sum(played.values()),
        set_aside=frozenset(connection.scalars(aside)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """All that a master's decision depends on: the run, its open iterations, its failed batches.

    `ready_games` wait for a claim, `leased_batches` are being played. `game_seconds` is the mean
    length of recent games; None before any has been reported. `active_slots` are those of workers
    that were seen recently and may play the newest open iteration.
    """

    run: Run
    opened: int  # the highest k that has an iteration
    open: Sequence[Iteration]
    failed: Sequence[Batch]  # of the open iterations: no machine can play them
    ready_games: int
    leased_batches: int
    game_seconds: float | None
    obstacles: Obstacles = Obstacles()
    active_slots: int


class RunViewQueries(Database):
    """The master lease of a run, and the query that its master repeats.

    The cost of that query does not grow with the run.
    """

    def acquire_master_lease(
        self, run_id: int, master_id: str, lease_seconds: float, abandoned: datetime | None = None
    ) -> MasterLease:
        """Become the master of a run; MasterLeaseLost, with its end, if another's lease is live.

        A lease has expired when the database's clock says so. As that may have been set back, one
        with the end `abandoned` has expired, too: the caller knows that its holder is gone.
        """
        free = sa.or_(
            Run.master_id.is_(None),
            Run.master_id == master_id,
            Run.lease_expires_at < time_from_now(),
            Run.lease_expires_at == abandoned,
        )
        taken = {"master_id": master_id, "lease_expires_at": time_from_now(lease_seconds)}
        taking = update(Run).where(Run.id == run_id, free).values(epoch=Run.epoch + 1, **taken)
        with self._write() as connection:
            epoch = connection.scalar(taking.returning(Run.epoch))
            if epoch is None:
                lease = select(Run.master_id, Run.lease_expires_at).where(Run.id == run_id)
                holder, end = connection.execute(lease).one()
                raise MasterLeaseLost(f"the master {holder} holds this run", end, holder or "")
            return MasterLease(run_id=run_id, master_id=master_id, epoch=epoch)

    def release_master_lease(self, master_lease: MasterLease) -> None:
        """Release the lease, so that the next master need not wait until it expires."""
        free = {"master_id": None, "lease_expires_at": None}
        own = (Run.id == master_lease.run_id, Run.epoch == master_lease.epoch)
        with self._write() as connection:
            connection.execute(update(Run).where(*own).values(free))

    @contextmanager
    def _led(self, lease: MasterLease, **changed: Any) -> Iterator[tuple[sa.Connection, Run]]:
        """A transaction with the run's row, locked and with these columns changed.

        Raises MasterLeaseLost: this lease is not valid.
        """
        own = (Run.epoch == lease.epoch, Run.master_id == lease.master_id)
        locked = update(Run).where(Run.id == lease.run_id, *own).values(epoch=Run.epoch, **changed)
        with self._write() as connection:
            if not connection.execute(locked).rowcount:
                raise MasterLeaseLost("another master holds this run now; this one stops")
            yield connection, rows(connection, select(Run).where(Run.id == lease.run_id))[0]

    def tick(
        self, master_lease: MasterLease, lease_seconds: float, builds: Builds | None = None
    ) -> RunView:
        """Renew the master lease, and read the run; `builds` is written for those who look at it.

        Raises MasterLeaseLost: another master holds this run.
        """
        changed: dict[str, Any] = {"lease_expires_at": time_from_now(lease_seconds)}
        if builds is not None:
            changed["builds"] = builds
        with self._led(master_lease, **changed) as (connection, run):
            return _view(connection, run)


def _view(connection: sa.Connection, run: Run) -> RunView:
    mine = Iteration.run_id == run.id
    open_ones = rows(connection, select(Iteration).where(mine, IS_OPEN).order_by(Iteration.id))
    ids = [iteration.id for iteration in open_ones]
    last = connection.scalar(select(Iteration.id).where(mine, Iteration.k == run.applied))
    work = execute(connection, "work", iteration_ids=[*ids, last]).all()
    failed = select(Batch).where(Batch.iteration_id.in_(ids), Batch.status == BatchStatus.FAILED)
    slots = execute(connection, "active_slots", iteration_id=max(ids, default=None))
    return RunView(
        run=run,
        opened=connection.scalar(select(func.max(Iteration.k)).where(mine)) or 0,
        open=open_ones,
        failed=rows(connection, failed.order_by(Batch.iteration_id, Batch.seq)),
        ready_games=sum(row.games for row in work if row.status == BatchStatus.READY),
        leased_batches=sum(row.batches for row in work if row.status == BatchStatus.LEASED),
        game_seconds=_game_seconds(work, last),
        obstacles=obstacles(connection, run.id),
        active_slots=slots.scalar_one(),
    )


def _game_seconds(work: Sequence[Any], last: int | None) -> float | None:
    """The mean seconds of a game in the iteration that was applied last, or else in the open ones.

    The open ones are second choice, because their short games are reported first.
    """
    done = [row for row in work if row.status == BatchStatus.DONE]
    chosen = [row for row in done if row.iteration_id == last] or done
    games = sum(row.games for row in chosen)
    return sum(row.seconds for row in chosen) / games or None if games else None
