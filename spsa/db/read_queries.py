"""The queries that only read: runs, iterations, the log of steps, workers, events."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import sqlalchemy as sa
from sqlalchemy import func, select

from spsa.db.database import Database, tally_of
from spsa.db.history_rows import Change, Costs, EngineRow, Totals
from spsa.db.row_values import (
    batch_of,
    change_of,
    event_of,
    iteration_of,
    run_of,
    step_of,
    worker_of,
)
from spsa.db.rows import (
    BatchRow,
    Event,
    Iteration,
    Run,
    Step,
    WorkerRow,
)
from spsa.db.schema import (
    IS_OPEN,
    batches,
    changes,
    engines,
    events,
    iterations,
    runs,
    seconds_from_now,
    shown,
    steps,
    workers,
    written_out,
)
from spsa.db.totals import PLAYED, UNSETTLED, total_of, unsettled_shares
from spsa.errors import NothingToDo
from spsa.lifecycle import BatchStatus, Purpose


class ReadQueries(Database):
    """The queries that only read."""

    def find_run(self, name: str) -> Run | None:
        """The run of this name, if there is one."""
        with self._read() as connection:
            row = connection.execute(select(runs).where(runs.c.name == name)).one_or_none()
            return None if row is None else run_of(row)

    def run(self, name: str | None = None) -> Run:
        """The run of this name, or the newest one.

        Raises:
            NothingToDo: there is none; names the runs that exist.
        """
        chosen = select(runs).order_by(runs.c.id.desc()).limit(1)
        if name is not None:
            chosen = chosen.where(runs.c.name == name)
        with self._read() as connection:
            row = connection.execute(chosen).one_or_none()
            if row is not None:
                return run_of(row)
            names = connection.scalars(select(runs.c.name).order_by(runs.c.id)).all()
        known = f"; the runs are: {', '.join(names)}" if names else ""
        wanted = "there is no run yet" if name is None else f"there is no run named {name!r}"
        raise NothingToDo(wanted + known)

    def runs(self) -> list[Run]:
        """All runs, oldest first."""
        with self._read() as connection:
            return [run_of(row) for row in connection.execute(select(runs).order_by(runs.c.id))]

    def iterations(
        self, run_id: int, *, purpose: Purpose | None = None, last: int | None = None
    ) -> list[Iteration]:
        """The iterations of a run in order; only the newest `last` if that is given."""
        statement = select(iterations).where(iterations.c.run_id == run_id)
        if purpose is not None:
            statement = statement.where(written_out(iterations.c.purpose, purpose))
        statement = statement.order_by(iterations.c.iteration_number.desc()).limit(last)
        with self._read() as connection:
            return [iteration_of(row) for row in connection.execute(statement)][::-1]

    def steps(self, run_id: int) -> list[Step]:
        """The log of the steps of theta, in order."""
        statement = select(steps).where(steps.c.run_id == run_id).order_by(steps.c.k)
        with self._read() as connection:
            return [step_of(row) for row in connection.execute(statement)]

    def changes(self, run_id: int) -> list[Change]:
        """The changes of a run's space, in order."""
        statement = select(changes).where(changes.c.run_id == run_id).order_by(changes.c.number)
        with self._read() as connection:
            return [change_of(row) for row in connection.execute(statement)]

    def open_iterations(self, run_id: int) -> list[Iteration]:
        """The iterations that are pending or being played, in order."""
        statement = (
            select(iterations)
            .where(iterations.c.run_id == run_id, IS_OPEN)
            .order_by(iterations.c.id)  # the order of the index; the numbers grow with it
        )
        with self._read() as connection:
            return [iteration_of(row) for row in connection.execute(statement)]

    def totals(self, run_id: int) -> Totals:
        """The sums over all counted tuning games of a run, plus against minus."""
        with self._read() as connection:
            counts = total_of(connection, run_id)
            bounded = select(runs.c.bounded_steps).where(runs.c.id == run_id)
            return Totals(
                tally=tally_of(SimpleNamespace(**counts)),
                void_games=counts["void_games"],
                bounded_steps=connection.scalar(bounded) or 0,
            )

    def costs(self, run_id: int) -> Costs:
        """The sums over all reported games of a run: seconds, plies and results."""
        names = ("plus_wins", "minus_wins", "draws", *(f"ptnml_{i}" for i in range(5)))
        sums = [
            func.coalesce(func.sum(batches.c[name]), 0).label(name)
            for name in (*names, "games", "moves", "seconds")
        ]
        reported = sa.and_(iterations.c.run_id == run_id, batches.c.status == BatchStatus.DONE)
        with self._read() as connection:
            row = connection.execute(select(*sums).join(iterations).where(reported)).one()
            return Costs(
                games=int(row.games),
                plies=int(row.moves),
                seconds=float(row.seconds),
                tally=tally_of(row),
            )

    def age_seconds(self, run_id: int) -> float:
        """How long ago a run was created, by the database's clock."""
        statement = select(runs.c.created_at, seconds_from_now(0).label("now"))
        with self._read() as connection:
            row = connection.execute(statement.where(runs.c.id == run_id)).one()
            return float((row.now - row.created_at).total_seconds())

    def games_in_the_last(self, run_id: int, seconds: float) -> int:
        """How many games of a run were reported within the last `seconds`."""
        since = seconds_from_now(-seconds)
        reported = (
            select(func.coalesce(func.sum(batches.c.games), 0))
            .join(iterations)
            .where(
                iterations.c.run_id == run_id,
                batches.c.status == BatchStatus.DONE,
                batches.c.reported_at > since,
            )
        )
        # nothing can have been reported since of an iteration that was complete before
        parts = (*UNSETTLED, iterations.c.completed_at > since)
        with self._read() as connection:
            return sum(int(connection.scalar(reported.where(part)) or 0) for part in parts)

    def batches(self, run_id: int) -> list[BatchRow]:
        """Every batch of a run, in order of iteration and sequence."""
        statement = (
            select(*shown(batches), iterations.c.iteration_number)
            .join(iterations)
            .where(iterations.c.run_id == run_id)
            .order_by(iterations.c.iteration_number, batches.c.seq)
        )
        with self._read() as connection:
            return [batch_of(row) for row in connection.execute(statement)]

    def engines(self, run_id: int) -> list[EngineRow]:
        """The binaries that a run's iterations use."""
        statement = (
            select(engines.c.sha256, engines.c.path, engines.c.build_key, engines.c.size)
            .join(
                iterations,
                sa.or_(
                    iterations.c.plus_sha256 == engines.c.sha256,
                    iterations.c.minus_sha256 == engines.c.sha256,
                ),
            )
            .where(iterations.c.run_id == run_id)
            .distinct()
        )
        with self._read() as connection:
            return [EngineRow(**row._mapping) for row in connection.execute(statement)]

    def workers(self) -> list[WorkerRow]:
        """All workers with their sums, the most recently seen first."""
        with self._read() as connection:
            return [worker_of(row) for row in connection.execute(_workers())]

    def events(
        self, run_id: int | None, last: int = 100, *, kinds: Sequence[str] | None = None
    ) -> list[Event]:
        """The newest `last` events of a run, of these kinds if given; oldest first.

        None for the events that belong to no run.
        """
        wanted = () if kinds is None else (events.c.kind.in_(kinds),)
        statement = (
            select(events)
            .where(events.c.run_id == run_id, *wanted)
            .order_by(events.c.id.desc())
            .limit(last)
        )
        with self._read() as connection:
            return [event_of(row) for row in connection.execute(statement)][::-1]


def _workers() -> sa.Select[Any]:
    names = (
        *("name", "host", "platform", "cores", "concurrency", "nps", "scale"),
        *("version", "confinement", "provides"),
    )
    live = unsettled_shares()
    known = {name: workers.c[name] + _total(live.c[name]) for name in PLAYED}
    known["void_games"] += workers.c.failed_void_games
    return (
        select(
            *(workers.c[name] for name in names),
            workers.c.last_seen_at,
            seconds_from_now(0).label("now"),
            _total(live.c.games_leased).label("games_leased"),
            *(played.label(name) for name, played in known.items()),
        )
        .join(live, live.c.worker_id == workers.c.id, isouter=True)
        .group_by(workers.c.id)
        .order_by(workers.c.last_seen_at.desc())
    )


def _total(shares: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
    # in PostgreSQL the sum of a bigint is numeric
    return sa.cast(func.coalesce(func.sum(shares), 0), sa.BigInteger)
