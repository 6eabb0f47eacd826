"""Reads the results that a purge would select, and those that purges have removed."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import bindparam, func, select, update

from spsa.core.limits import COUNTS
from spsa.core.scoring import elo
from spsa.db.database import Database, tally_of
from spsa.db.purge_values import NewPurge, Purge, PurgedBatch, PurgedTotals, PurgeMatch, Selection
from spsa.db.row_values import match_of, purge_of, purged_batch_of
from spsa.db.schema import (
    IS_OPEN,
    batches,
    iterations,
    purged,
    purges,
    seconds_from_now,
    shown,
    workers,
)
from spsa.errors import IllegalTransition
from spsa.lifecycle import BatchStatus, IterationStatus, Purpose


class PurgeRecordQueries(Database):
    """The queries about purges that change nothing."""

    def clock(self) -> datetime:
        """The current time of the database."""
        with self._read() as connection:
            return connection.execute(select(seconds_from_now(0))).scalar_one()

    def matching(self, run_id: int, selection: Selection) -> list[PurgeMatch]:
        """The counted results that a selection matches, in order."""
        statement = (
            select(
                *shown(batches),
                *(iterations.c[name] for name in ("iteration_number", "purpose", "k")),
                IS_OPEN.label("is_open"),
                workers.c.name.label("worker"),
                workers.c.host,
            )
            .join(iterations, iterations.c.id == batches.c.iteration_id)
            .join(workers, workers.c.id == batches.c.worker_id)
            .where(*counted(run_id), *selected(selection), *reported_within(selection))
            .order_by(iterations.c.iteration_number, batches.c.seq)
        )
        with self._read() as connection:
            return [match_of(row) for row in connection.execute(statement)]

    def purges(self, run_id: int) -> list[Purge]:
        """The purges of a run, in order."""
        statement = select(purges).where(purges.c.run_id == run_id).order_by(purges.c.number)
        with self._read() as connection:
            return [purge_of(row) for row in connection.execute(statement)]

    def purged_batches(self, run_id: int, iteration_id: int | None = None) -> list[PurgedBatch]:
        """Every purged result of a run, or of one of its iterations, in the order of the purges."""
        statement = (
            select(
                *shown(purged),
                purges.c.number.label("purge"),
                iterations.c.iteration_number,
                workers.c.name.label("worker"),
            )
            .join(purges, purges.c.id == purged.c.purge_id)
            .join(iterations, iterations.c.id == purged.c.iteration_id)
            .join(workers, workers.c.id == purged.c.worker_id)
            .where(purges.c.run_id == run_id)
            .order_by(purges.c.number, iterations.c.iteration_number, purged.c.seq)
        )
        if iteration_id is not None:
            statement = statement.where(purged.c.iteration_id == iteration_id)
        with self._read() as connection:
            return [purged_batch_of(row) for row in connection.execute(statement)]

    def purged_totals(self, run_id: int) -> PurgedTotals:
        """How many games of a run were purged; reads the rows of purged results only."""
        again = sa.case((purged.c.played_again, purged.c.games), else_=0)
        sums = (
            select(
                func.coalesce(func.sum(purged.c.games), 0).label("games"),
                func.coalesce(func.sum(again), 0).label("played_again"),
            )
            .join(purges, purges.c.id == purged.c.purge_id)
            .where(purges.c.run_id == run_id)
        )
        emptied = select(func.count()).where(
            iterations.c.run_id == run_id,
            iterations.c.id.in_(select(purged.c.iteration_id)),
            iterations.c.k.is_not(None),
            iterations.c.status == IterationStatus.COMPLETE,
            iterations.c.games_played == 0,
        )
        with self._read() as connection:
            row = connection.execute(sums).one()
            return PurgedTotals(
                games=int(row.games),
                played_again=int(row.played_again),
                emptied=connection.scalar(emptied) or 0,
            )


def counted(run_id: int) -> Iterator[sa.ColumnElement[bool]]:
    """The conditions of a run's counted results, over batches joined with their iterations."""
    yield iterations.c.run_id == run_id
    yield batches.c.status == BatchStatus.DONE


def selected(selection: Selection) -> Iterator[sa.ColumnElement[bool]]:
    """The conditions on worker, machine, iteration and batch, over the same."""
    for column, name in ((workers.c.name, selection.worker), (workers.c.host, selection.host)):
        if name is not None:
            yield batches.c.worker_id.in_(select(workers.c.id).where(column == name))
    places = [
        sa.and_(iterations.c.iteration_number == number, batches.c.seq == seq)
        for number, seq in selection.batches
    ]
    if selection.iterations:
        places.append(iterations.c.iteration_number.in_(selection.iterations))
    if places:
        yield sa.or_(*places)


def reported_within(selection: Selection) -> Iterator[sa.ColumnElement[bool]]:
    """The conditions on the time of the report, over the same."""
    if selection.since is not None:
        yield batches.c.reported_at >= selection.since
    if selection.until is not None:
        yield batches.c.reported_at < selection.until


def write_verdicts(connection: sa.Connection, purge_id: int, new: NewPurge) -> int:
    """Write the new estimates of the iterations that lost games; how many games were purged.

    The trigger spsa_count has already subtracted the games from the rows of the iterations.

    Raises:
        IllegalTransition: other iterations lost games than the purge was planned on.
    """
    affected = connection.execute(_affected(purge_id)).all()
    complete = [row for row in affected if row.status == IterationStatus.COMPLETE]
    if {row.id for row in complete if row.k is not None} != set(new.verdicts):
        raise IllegalTransition("the purge was planned on other results than it would purge")
    if complete:
        connection.execute(_update(), [_values(row, new) for row in complete])
    return sum(int(row.purged_now) for row in affected)


def _affected(purge_id: int) -> sa.Select[Any]:
    """The iterations that lost games, with the counts that remain."""
    columns = ("id", "k", "purpose", "status", *COUNTS)
    return (
        select(
            *(iterations.c[name] for name in columns),
            func.sum(purged.c.games).label("purged_now"),
        )
        .join(purged, purged.c.iteration_id == iterations.c.id)
        .where(purged.c.purge_id == purge_id)
        .group_by(iterations.c.id)
        .order_by(iterations.c.id)
    )


def _update() -> sa.Update:
    return (
        update(iterations)
        .where(iterations.c.id == bindparam("row"))
        .values(gradient_estimate=bindparam("gradient"), elo_diff=bindparam("elo"))
    )


def _values(row: Any, new: NewPurge) -> dict[str, Any]:
    """The estimates from the games that a complete iteration has left."""
    if row.purpose == Purpose.VALIDATE:
        left = tally_of(row)
        return {"row": row.id, "gradient": None, "elo": elo(left).value if left.pairs else None}
    verdict = new.verdicts[row.id]
    gradient = None if verdict.gradient is None else dict(verdict.gradient)
    return {"row": row.id, "gradient": gradient, "elo": verdict.elo}
