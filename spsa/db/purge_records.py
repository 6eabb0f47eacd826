"""What was struck out and what would be: everything about purges that is only read."""

from collections.abc import Iterator
from datetime import datetime

import sqlalchemy as sa
from sqlalchemy import func, select

from spsa.db.database import Database
from spsa.db.purge_values import Purge, PurgedBatch, PurgedTotals, PurgeMatch, Selection
from spsa.db.row_values import match_of, purge_of, struck_of
from spsa.db.schema import (
    IS_OPEN,
    batches,
    iterations,
    purges,
    seconds_from_now,
    shown,
    struck,
    workers,
)
from spsa.lifecycle import BatchStatus, IterationStatus


class PurgeRecordQueries(Database):
    """What anybody may ask about results that were struck out, or that might be."""

    def clock(self) -> datetime:
        """What the time is, by the database."""
        with self._read() as connection:
            return connection.execute(select(seconds_from_now(0))).scalar_one()

    def matching(self, run_id: int, selection: Selection) -> list[PurgeMatch]:
        """The results that count and that a selection means, in order."""
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
            .where(*counting(run_id), *meant(selection), *reported(selection))
            .order_by(iterations.c.iteration_number, batches.c.seq)
        )
        with self._read() as connection:
            return [match_of(row) for row in connection.execute(statement)]

    def purges(self, run_id: int) -> list[Purge]:
        """The purges of a run, in order."""
        statement = select(purges).where(purges.c.run_id == run_id).order_by(purges.c.number)
        with self._read() as connection:
            return [purge_of(row) for row in connection.execute(statement)]

    def struck(self, run_id: int) -> list[PurgedBatch]:
        """Every result of a run that was struck out, in the order of the purges."""
        statement = (
            select(
                *shown(struck),
                purges.c.number.label("purge"),
                iterations.c.iteration_number,
                workers.c.name.label("worker"),
            )
            .join(purges, purges.c.id == struck.c.purge_id)
            .join(iterations, iterations.c.id == struck.c.iteration_id)
            .join(workers, workers.c.id == struck.c.worker_id)
            .where(purges.c.run_id == run_id)
            .order_by(purges.c.number, iterations.c.iteration_number, struck.c.seq)
        )
        with self._read() as connection:
            return [struck_of(row) for row in connection.execute(statement)]

    def struck_totals(self, run_id: int) -> PurgedTotals:
        """How much of a run was struck out; looks at nothing but what was struck."""
        again = sa.case((struck.c.played_again, struck.c.games), else_=0)
        sums = (
            select(
                func.coalesce(func.sum(struck.c.games), 0).label("games"),
                func.coalesce(func.sum(again), 0).label("played_again"),
            )
            .join(purges, purges.c.id == struck.c.purge_id)
            .where(purges.c.run_id == run_id)
        )
        hit = select(struck.c.iteration_id)
        emptied = select(func.count()).where(
            iterations.c.run_id == run_id,
            iterations.c.id.in_(hit),
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


def counting(run_id: int) -> Iterator[sa.ColumnElement[bool]]:
    """The results of a run that count, over batches that are joined with their iterations."""
    yield iterations.c.run_id == run_id
    yield batches.c.status == BatchStatus.DONE


def meant(selection: Selection) -> Iterator[sa.ColumnElement[bool]]:
    """Who and where, over the same."""
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


def reported(selection: Selection) -> Iterator[sa.ColumnElement[bool]]:
    """When, over the same."""
    if selection.since is not None:
        yield batches.c.reported_at >= selection.since
    if selection.until is not None:
        yield batches.c.reported_at < selection.until
