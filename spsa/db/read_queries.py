"""The queries that only read: runs, iterations, the log of steps, workers, events."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import func, select

from spsa.core.words import words_of
from spsa.db.base import COUNTS, sums_of, tally_of, time_from_now, written_out
from spsa.db.batch_tables import Batch, Worker
from spsa.db.database import Database, rows
from spsa.db.engine_tables import EngineFile
from spsa.db.rows import Costs, Totals, WorkerRow
from spsa.db.run_tables import (
    IS_ABANDONED,
    IS_OPEN,
    Event,
    Iteration,
    Run,
    Step,
)
from spsa.errors import NothingToDo
from spsa.lifecycle import BatchStatus, Purpose


class ReadQueries(Database):
    """The queries that only read."""

    def find_run(self, name: str) -> Run | None:
        """The run of this name, if there is one."""
        with self._read() as connection:
            return next(iter(rows(connection, select(Run).where(Run.name == name))), None)

    def run(self, name: str | None = None) -> Run:
        """The run of this name, or the newest one.

        Raises:
            NothingToDo: there is none; names the runs that exist.
        """
        chosen = select(Run).order_by(Run.id.desc()).limit(1)
        if name is not None:
            chosen = chosen.where(Run.name == name)
        with self._read() as connection:
            for found in rows(connection, chosen):
                return found
            names = connection.scalars(select(Run.name).order_by(Run.id)).all()
        known = f"; the runs are: {', '.join(names)}" if names else ""
        wanted = "there is no run yet" if name is None else f"there is no run named {name!r}"
        raise NothingToDo(wanted + known)

    def runs(self) -> list[Run]:
        """All runs, oldest first."""
        with self._read() as connection:
            return rows(connection, select(Run).order_by(Run.id))

    def iterations(
        self, run_id: int, *, purpose: Purpose | None = None, last: int | None = None
    ) -> list[Iteration]:
        """The iterations of a run in order; only the newest `last` if that is given."""
        statement = select(Iteration).where(Iteration.run_id == run_id)
        if purpose is not None:
            statement = statement.where(written_out(Iteration.purpose, purpose))
        statement = statement.order_by(Iteration.iteration_number.desc()).limit(last)
        with self._read() as connection:
            return rows(connection, statement)[::-1]

    def open_iterations(self, run_id: int) -> list[Iteration]:
        """The iterations that are pending or being played, in order."""
        statement = (
            select(Iteration)
            .where(Iteration.run_id == run_id, IS_OPEN)
            .order_by(Iteration.id)  # the order of the index; the numbers grow with it
        )
        with self._read() as connection:
            return rows(connection, statement)

    def steps(self, run_id: int) -> list[Step]:
        """The log of the steps of theta, in order."""
        with self._read() as connection:
            return rows(connection, select(Step).where(Step.run_id == run_id).order_by(Step.k))

    def totals(self, run_id: int) -> Totals:
        """The sums over all counted tuning games of a run, plus against minus."""
        names = (*COUNTS, "void_games")
        mine = (Iteration.run_id == run_id, Iteration.purpose == Purpose.TUNE)
        bounded = select(func.count()).where(Step.run_id == run_id, Step.bounded)
        with self._read() as connection:
            sums = connection.execute(select(*sums_of(Iteration, names)).where(*mine)).one()
            return Totals(
                tally=tally_of(sums),
                void_games=int(sums.void_games),
                bounded_steps=connection.scalar(bounded) or 0,
            )

    def costs(self, run_id: int) -> Costs:
        """The sums over all reported games of a run: seconds, plies and results."""
        sums = sums_of(Batch, (*COUNTS, "games", "moves", "seconds"))
        reported = (Iteration.run_id == run_id, Batch.status == BatchStatus.DONE)
        with self._read() as connection:
            row = connection.execute(select(*sums).join(Iteration).where(*reported)).one()
            return Costs(
                games=int(row.games),
                plies=int(row.moves),
                seconds=float(row.seconds),
                tally=tally_of(row),
            )

    def age_seconds(self, run_id: int) -> float:
        """How long ago a run was created, by the database's clock."""
        statement = select(Run.created_at, time_from_now(0).label("now"))
        with self._read() as connection:
            row = connection.execute(statement.where(Run.id == run_id)).one()
            return float((row.now - row.created_at).total_seconds())

    def games_in_the_last(self, run_id: int, seconds: float) -> int:
        """How many games of a run were reported within the last `seconds`."""
        since = time_from_now(-seconds)
        reported = (
            select(func.coalesce(func.sum(Batch.games), 0))
            .join(Iteration)
            .where(
                Iteration.run_id == run_id,
                Batch.status == BatchStatus.DONE,
                Batch.reported_at > since,
            )
        )
        # nothing can have been reported since of an iteration that was complete before; one query
        # for each index
        parts = (IS_OPEN, IS_ABANDONED, Iteration.completed_at > since)
        with self._read() as connection:
            return sum(int(connection.scalar(reported.where(part)) or 0) for part in parts)

    def batches(self, run_id: int) -> list[Batch]:
        """Every batch of a run, in order of iteration and sequence."""
        statement = (
            select(Batch)
            .join(Iteration)
            .where(Iteration.run_id == run_id)
            .order_by(Iteration.iteration_number, Batch.seq)
        )
        with self._read() as connection:
            return rows(connection, statement)

    def engines(self, run_id: int) -> list[EngineFile]:
        """The binaries that a run's iterations use, without their bytes."""
        sides = (Iteration.plus_sha256, Iteration.minus_sha256)
        used = sa.union(*(select(side).where(Iteration.run_id == run_id) for side in sides))
        with self._read() as connection:
            return rows(connection, select(EngineFile).where(EngineFile.sha256.in_(used)))

    def workers(self) -> list[WorkerRow]:
        """All workers with their sums, the most recently seen first."""
        with self._read() as connection:
            return [_worker(row) for row in connection.execute(_workers())]

    def events(
        self, run_id: int | None, last: int = 100, *, kinds: Sequence[str] | None = None
    ) -> list[Event]:
        """The newest `last` events of a run, of these kinds if given; oldest first.

        None for the events that belong to no run.
        """
        wanted = () if kinds is None else (Event.kind.in_(kinds),)
        statement = (
            select(Event)
            .where(Event.run_id == run_id, *wanted)
            .order_by(Event.id.desc())
            .limit(last)
        )
        with self._read() as connection:
            return rows(connection, statement)[::-1]


_SAID = ("name", "host", "platform", "cores", "concurrency", "nps", "scale", "version", "sandbox")
_SUMMED = ("batches", "games", "games_leased", "void_games", "time_losses")


def _workers() -> sa.Select[Any]:
    played = _played().subquery()
    own = {"void_games": Worker.failed_void_games}
    sums = {name: func.coalesce(played.c[name], 0) + own.get(name, 0) for name in _SUMMED}
    return (
        select(
            *(getattr(Worker, name) for name in (*_SAID, "provides", "last_seen_at")),
            time_from_now(0).label("now"),
            *(total.label(name) for name, total in sums.items()),
        )
        .outerjoin(played, played.c.worker_id == Worker.id)
        .order_by(Worker.last_seen_at.desc())
    )


def _played() -> sa.Select[Any]:
    """One row a worker: the sums over the batches that it holds or held last."""

    def total(status: BatchStatus, number: Any) -> sa.ColumnElement[Any]:
        return func.sum(sa.case((Batch.status == status, number), else_=0))

    worker_id = (Batch.worker_id + 0).label("worker_id")  # no index: all rows are read in any case
    return (
        select(
            worker_id,
            total(BatchStatus.DONE, 1).label("batches"),
            total(BatchStatus.DONE, Batch.games).label("games"),
            total(BatchStatus.LEASED, Batch.games).label("games_leased"),
            func.sum(Batch.own_void_games).label("void_games"),
            func.sum(Batch.plus_time_losses + Batch.minus_time_losses).label("time_losses"),
        )
        .where(Batch.worker_id.is_not(None))
        .group_by(worker_id)
    )


def _worker(row: Any) -> WorkerRow:
    sums: dict[str, Any] = {name: int(getattr(row, name)) for name in _SUMMED}
    return WorkerRow(
        **{name: getattr(row, name) for name in _SAID},
        **sums,
        provides=words_of(row.provides),
        seconds_since_seen=max(0.0, (row.now - row.last_seen_at).total_seconds()),
    )
