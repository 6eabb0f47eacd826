"""What a purge selects and removes, and the queries about it that change nothing."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import func, select

from spsa.core.estimates import Estimates
from spsa.core.scoring import Tally
from spsa.db.base import COUNTS, tally_of, time_from_now
from spsa.db.batch_tables import Batch, PurgedBatch, Worker
from spsa.db.database import Database, rows
from spsa.db.entries import Values
from spsa.db.run_tables import IS_OPEN, Iteration, Purge
from spsa.lifecycle import BatchStatus, Purpose

Place = tuple[int, int]
"""An iteration's number in its run, and a batch's sequence number in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which results to purge: those that meet every condition given here.

    `iterations` and `batches` are one condition: the result is in any of them. Times are those of
    the report, by the database's clock: from `since` on, and before `until`.
    """

    worker: str | None = None
    host: str | None = None
    iterations: tuple[int, ...] = ()
    batches: tuple[Place, ...] = ()
    since: datetime | None = None
    until: datetime | None = None

    def to_json(self) -> dict[str, Any]:
        """The conditions that are given; times in ISO 8601."""
        return {name: _plain(value) for name, value in asdict(self).items() if value}


def _plain(value: Any) -> Any:
    """The value in the form in which JSON returns it."""
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value.isoformat() if isinstance(value, datetime) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeMatch:
    """A counted result that a selection matches; `k` is None in a validation.

    `is_open`: its iteration is still open, so that the batch can be played again.
    """

    iteration_id: int
    iteration_number: int
    purpose: Purpose
    k: int | None
    is_open: bool
    seq: int
    worker: str
    host: str
    tally: Tally
    reported_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgedResult:
    """A purged result, as it was reported; `purge` is the number of the purge."""

    purge: int
    iteration_id: int
    iteration_number: int
    seq: int
    games: int
    played_again: bool
    worker: str
    tally: Tally
    void_games: int
    reported_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgeVerdict:
    """The estimates from the games that an applied iteration has left; None if it has none."""

    gradient: Values | None
    elo: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPurge:
    """A planned purge: which results, the run before it, and the run without them.

    `verdicts` has every applied iteration that loses games, by its row's id.
    """

    selection: Selection
    actor: str
    reason: str
    purges: int
    applied: int
    theta_before: Values
    theta_after: Values
    estimates: Estimates
    state: Mapping[str, Any]
    verdicts: Mapping[int, PurgeVerdict]


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgedTotals:
    """How many games of a run were purged, and how many of them were to be played again."""

    games: int
    played_again: int


class PurgeRecordQueries(Database):
    """The queries about purges that change nothing."""

    def clock(self) -> datetime:
        """The current time of the database."""
        with self._read() as connection:
            return connection.execute(select(time_from_now(0))).scalar_one()

    def matching(self, run_id: int, selection: Selection) -> list[PurgeMatch]:
        """The counted results that a selection matches, in order."""
        statement = (
            select(
                *(Batch.iteration_id, Batch.seq, Batch.reported_at),
                *(getattr(Batch, name) for name in COUNTS),
                *(Iteration.iteration_number, Iteration.purpose, Iteration.k),
                *(IS_OPEN.label("is_open"), Worker.name.label("worker"), Worker.host),
            )
            .join(Iteration, Iteration.id == Batch.iteration_id)
            .join(Worker, Worker.id == Batch.worker_id)
            .where(*counted(run_id, selection))
            .order_by(Iteration.iteration_number, Batch.seq)
        )
        with self._read() as connection:
            return [_with_tally(PurgeMatch, row) for row in connection.execute(statement)]

    def purges(self, run_id: int) -> list[Purge]:
        """The purges of a run, in order."""
        statement = select(Purge).where(Purge.run_id == run_id).order_by(Purge.number)
        with self._read() as connection:
            return rows(connection, statement)

    def purged_batches(self, run_id: int, iteration_id: int | None = None) -> list[PurgedResult]:
        """Every purged result of a run, or of one of its iterations, in the order of the purges."""
        columns = ("iteration_id", "seq", "games", "played_again", "void_games", "reported_at")
        statement = (
            select(
                *(getattr(PurgedBatch, name) for name in (*columns, *COUNTS)),
                *(Purge.number.label("purge"), Iteration.iteration_number),
                Worker.name.label("worker"),
            )
            .join(Purge, Purge.id == PurgedBatch.purge_id)
            .join(Iteration, Iteration.id == PurgedBatch.iteration_id)
            .join(Worker, Worker.id == PurgedBatch.worker_id)
            .where(Purge.run_id == run_id)
            .order_by(Purge.number, Iteration.iteration_number, PurgedBatch.seq)
        )
        if iteration_id is not None:
            statement = statement.where(PurgedBatch.iteration_id == iteration_id)
        with self._read() as connection:
            return [_with_tally(PurgedResult, row) for row in connection.execute(statement)]

    def purged_totals(self, run_id: int) -> PurgedTotals:
        """How many games of a run were purged; reads the rows of purged results only."""
        again = sa.case((PurgedBatch.played_again, PurgedBatch.games), else_=0)
        sums = (
            select(func.sum(PurgedBatch.games), func.sum(again))
            .join(Purge, Purge.id == PurgedBatch.purge_id)
            .where(Purge.run_id == run_id)
        )
        with self._read() as connection:
            games, played_again = connection.execute(sums).one()
            return PurgedTotals(games=int(games or 0), played_again=int(played_again or 0))


def _with_tally(kind: type[Any], row: Any) -> Any:
    """A value with a tally, whose other fields are named like columns of the row."""
    names = (name for name in kind.__dataclass_fields__ if name != "tally")
    return kind(tally=tally_of(row), **{name: getattr(row, name) for name in names})


def counted(run_id: int, selection: Selection) -> Iterator[sa.ColumnElement[bool]]:
    """The conditions of a run's counted results that are selected, over batches joined with their
    iterations."""
    yield Iteration.run_id == run_id
    yield Batch.status == BatchStatus.DONE
    yield from selected(selection)
    if selection.since is not None:
        yield Batch.reported_at >= selection.since
    if selection.until is not None:
        yield Batch.reported_at < selection.until


def selected(selection: Selection) -> Iterator[sa.ColumnElement[bool]]:
    """The conditions on worker, machine, iteration and batch, over the same."""
    for column, name in ((Worker.name, selection.worker), (Worker.host, selection.host)):
        if name is not None:
            yield Batch.worker_id.in_(select(Worker.id).where(column == name))
    places = [
        sa.and_(Iteration.iteration_number == number, Batch.seq == seq)
        for number, seq in selection.batches
    ]
    if selection.iterations:
        places.append(Iteration.iteration_number.in_(selection.iterations))
    if places:
        yield sa.or_(*places)
