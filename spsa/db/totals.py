"""Stored totals of a run's and a worker's games, so that reading them does not get slower.

They cover the complete iterations; the transaction that completes an iteration adds to them. A
reader adds the games of the few other iterations. After a purge, which changes complete iterations,
`recount` computes them anew from the rows.
"""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy import func, select, update

from spsa.core.limits import COUNTS
from spsa.db.schema import IS_ABANDONED, IS_OPEN, batches, iterations, runs, steps, workers
from spsa.lifecycle import BatchStatus, IterationStatus, Purpose

SUMMED = (*COUNTS, "void_games")
PLAYED = ("batches", "games", "void_games", "time_losses")
_VOIDS = func.json_each(batches.c.voids).table_valued("key", "value")
_OF_A_REASON = sa.cast(sa.cast(_VOIDS.c.value, sa.Text), sa.BigInteger)
HAS_VOIDS = func.length(sa.cast(batches.c.voids, sa.Text)) > len("null")
OWN_VOID_GAMES = sa.case(
    (HAS_VOIDS, select(func.sum(_OF_A_REASON)).select_from(_VOIDS).scalar_subquery()), else_=0
)
"""Void games of the worker that reported a batch.

`void_games` of a batch has those of failed attempts too, `failed_void_games` of a worker its own.
"""

UNSETTLED = (IS_OPEN, IS_ABANDONED)
"""The iterations that no total includes: two queries, because each has an index of its own."""


def totals_with(iteration_id: int, bounded: bool) -> dict[str, Any]:
    """A run's totals with one more complete iteration; `bounded`: its step was."""
    added = {
        name: runs.c[name]
        + select(iterations.c[name]).where(iterations.c.id == iteration_id).scalar_subquery()
        for name in SUMMED
    }
    return {**added, "bounded_steps": runs.c.bounded_steps + int(bounded)}


def add_to_workers(connection: sa.Connection, iteration_id: int) -> None:
    """Add to each worker's totals what it played of an iteration that was just completed."""
    share = _shares(iterations.c.id == iteration_id).subquery()
    # locked in the order of their ids, as in every other transaction
    locked = select(workers.c.id).where(workers.c.id.in_(select(share.c.worker_id)))
    connection.execute(locked.order_by(workers.c.id).with_for_update(key_share=True))
    connection.execute(
        update(workers)
        .where(workers.c.id == share.c.worker_id)
        .values({name: workers.c[name] + share.c[name] for name in PLAYED})
    )


def recount(connection: sa.Connection, run_id: int) -> None:
    """Compute the totals of a run and of all workers anew."""
    mine = sa.and_(iterations.c.run_id == run_id, iterations.c.purpose == Purpose.TUNE)
    complete = iterations.c.status == IterationStatus.COMPLETE
    sums = _sums(iterations, SUMMED)
    totals = connection.execute(select(*sums).where(mine, complete)).one()._mapping
    bounded = select(func.count()).where(steps.c.run_id == run_id, steps.c.bounded)
    connection.execute(
        update(runs)
        .where(runs.c.id == run_id)
        .values(**totals, bounded_steps=bounded.scalar_subquery())
    )
    _recount_workers(connection, complete)


def _recount_workers(connection: sa.Connection, complete: sa.ColumnElement[bool]) -> None:
    connection.execute(select(workers.c.id).order_by(workers.c.id).with_for_update(key_share=True))
    connection.execute(update(workers).values(dict.fromkeys(PLAYED, 0)))
    share = _shares(complete).subquery()
    connection.execute(
        update(workers)
        .where(workers.c.id == share.c.worker_id)
        .values({name: share.c[name] for name in PLAYED})
    )


def total_of(connection: sa.Connection, run_id: int) -> Mapping[str, int]:
    """All counted tuning games of a run: the stored totals, and those of its other iterations."""
    row = select(*(runs.c[name] for name in SUMMED)).where(runs.c.id == run_id)
    parts = [connection.execute(row).one()]
    for condition in UNSETTLED:
        mine = (iterations.c.run_id == run_id, iterations.c.purpose == Purpose.TUNE, condition)
        parts.append(connection.execute(select(*_sums(iterations, SUMMED)).where(*mine)).one())
    return {name: sum(int(part._mapping[name]) for part in parts) for name in SUMMED}


def unsettled_shares() -> sa.Subquery:
    """What each worker has leased and played of the iterations that no total includes."""
    shares = [_shares(condition, leased=True) for condition in UNSETTLED]
    return sa.union_all(*shares).subquery()


def _sums(table: sa.Table, names: tuple[str, ...]) -> list[sa.Label[int]]:
    return [func.coalesce(func.sum(table.c[name]), 0).label(name) for name in names]


def _shares(condition: sa.ColumnElement[bool], leased: bool = False) -> sa.Select[Any]:
    """One row a worker: its sums over the batches of the iterations that meet the condition."""

    def games(status: BatchStatus) -> sa.Label[int]:
        counted = sa.case((batches.c.status == status, batches.c.games), else_=0)
        return func.sum(counted).label("games" if status is BatchStatus.DONE else "games_leased")

    chosen = select(iterations.c.id).where(condition)
    done = sa.case((batches.c.status == BatchStatus.DONE, 1), else_=0)
    lost_on_time = batches.c.plus_time_losses + batches.c.minus_time_losses
    return (
        select(
            batches.c.worker_id,
            func.sum(done).label("batches"),
            games(BatchStatus.DONE),
            func.sum(OWN_VOID_GAMES).label("void_games"),
            func.sum(lost_on_time).label("time_losses"),
            *([games(BatchStatus.LEASED)] if leased else []),
        )
        # no join: SQLite would read all batches by the index of workers
        .where(batches.c.worker_id.is_not(None), batches.c.iteration_id.in_(chosen))
        .group_by(batches.c.worker_id)
    )
