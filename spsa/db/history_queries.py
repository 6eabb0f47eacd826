"""A run from its start to now, in as few rows as a picture needs however long the run is."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import func, select

from spsa.core.limits import COUNTS
from spsa.core.scoring import Tally
from spsa.core.stored_json import as_written, finite
from spsa.db.database import Database
from spsa.db.entries import Values
from spsa.db.history_rows import (
    ResultGroup,
    ThetaPoint,
    WorkerPart,
    WorkerShare,
)
from spsa.db.schema import batches, changes, iterations, purges, runs, steps, workers
from spsa.db.totals import HAS_VOIDS, OWN_VOID_GAMES
from spsa.lifecycle import BatchStatus, IterationStatus, Purpose

MAX_ITERATIONS = 2**31 - 1

_KS = 500  # numbers in one IN (...)


class HistoryQueries(Database):
    """How a run came to where it is; reads only."""

    def theta_path(self, run_id: int, ks: Sequence[int]) -> list[ThetaPoint]:
        """Theta after each of these results, in their order; those not applied are left out.

        Where a purge or a person has changed theta after a result, it is theta after that.
        """
        found: dict[int, ThetaPoint] = {}
        with self._read() as connection:
            for i in range(0, len(ks), _KS):
                found.update(_points(connection, run_id, ks[i : i + _KS]))
        return [found[k] for k in ks if k in found]

    def result_groups(self, run_id: int, iterations_per_group: int) -> list[ResultGroup]:
        """The results of every so many iterations, summed; in order."""
        with self._read() as connection:
            return [
                ResultGroup(
                    first_k=row.first_k,
                    last_k=row.last_k,
                    tally=_tally(row),
                    void_games=int(row.void_games),
                )
                for row in connection.execute(_groups(run_id, iterations_per_group))
            ]

    def worker_parts(
        self, run_id: int, iterations_per_group: int, after: int = 0, through: int | None = None
    ) -> list[WorkerPart]:
        """What each worker has played of every so many tuning iterations of a run.

        Only of those after the iteration k = `after`, and not later than k = `through`, if given.
        """
        with self._read() as connection:
            played = _reported(connection, run_id, after, through)
            return [_part(row) for row in connection.execute(_parts(iterations_per_group, played))]

    def worker_shares(
        self, run_id: int, after: int = 0, through: int | None = None
    ) -> list[WorkerShare]:
        """What each worker has played of these tuning iterations of a run, most games first."""
        parts = self.worker_parts(run_id, MAX_ITERATIONS, after, through)
        return sorted((part.share for part in parts), key=lambda share: -share.tally.games)


def _groups(run_id: int, iterations_per_group: int) -> sa.Select[Any]:
    group = (iterations.c.k - 1) // iterations_per_group
    return (
        select(
            func.min(iterations.c.k).label("first_k"),
            func.max(iterations.c.k).label("last_k"),
            *_sums(iterations, (*COUNTS, "void_games")),
        )
        .where(
            iterations.c.run_id == run_id,
            iterations.c.purpose == Purpose.TUNE,
            iterations.c.status == IterationStatus.COMPLETE,
        )
        .group_by(group)
        .order_by(group)
    )


def _reported(
    connection: sa.Connection, run_id: int, after: int, through: int | None
) -> list[sa.ColumnElement[bool]]:
    """What is true of the batches that are done of a run's tuning iterations between two k.

    SQLite finds the iterations by k. As ids go up with k, PostgreSQL finds the batches by them; it
    takes too many for such a part as long as it does not see the ids themselves.
    """
    mine = (iterations.c.run_id == run_id, iterations.c.purpose == Purpose.TUNE)
    ids = select(iterations.c.id).where(*mine)
    found = [*mine, batches.c.status == BatchStatus.DONE]
    if after:
        first = connection.scalar(ids.where(iterations.c.k == after + 1))
        found += [iterations.c.k > after, batches.c.iteration_id >= sa.literal(first)]
    if through is not None:
        last = connection.scalar(ids.where(iterations.c.k == through))
        found += [iterations.c.k <= through, batches.c.iteration_id <= sa.literal(last)]
    return found


def _parts(iterations_per_group: int, of: Sequence[sa.ColumnElement[bool]]) -> sa.Select[Any]:
    nodes = batches.c.plus_nodes + batches.c.minus_nodes
    lost_on_time = batches.c.plus_time_losses + batches.c.minus_time_losses
    # plus 0: SQLite would read all batches in the order of the index of workers otherwise
    worker = (batches.c.worker_id + 0).label("worker_id")
    group = ((iterations.c.k - 1) // iterations_per_group).label("part")
    reported = (
        select(
            worker,
            group,
            func.count().label("batches"),
            func.sum(nodes).label("nodes"),
            func.sum(lost_on_time).label("time_losses"),
            _count_of(HAS_VOIDS).label("void_batches"),
            _count_of(lost_on_time > 0).label("late_batches"),
            func.sum(OWN_VOID_GAMES).label("void_games"),
            func.min(batches.c.scale).label("least_scale"),
            func.max(batches.c.scale).label("most_scale"),
            *_sums(batches, (*COUNTS, "seconds", "think_seconds")),
        )
        .select_from(batches.join(iterations))
        .where(*of)
        .group_by(worker, group)
    )
    sums = reported.subquery()
    return (
        select(workers.c.name.label("worker"), workers.c.host.label("machine"), sums)
        .select_from(sums.join(workers, workers.c.id == sums.c.worker_id))
        .order_by(workers.c.id, sums.c.part)
    )


def _count_of(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
    return func.sum(sa.case((condition, 1), else_=0))


def _points(connection: sa.Connection, run_id: int, ks: Sequence[int]) -> dict[int, ThetaPoint]:
    """By k; what came later replaces what came earlier: start, steps, purges and changes."""
    found: dict[int, ThetaPoint] = {}
    for statement in _sources(run_id, ks):
        for k, theta, at in connection.execute(statement):
            if k not in found or at >= found[k].at:
                found[k] = ThetaPoint(k=k, theta=_values(theta), at=at)
    return found


def _sources(run_id: int, ks: Sequence[int]) -> Sequence[sa.Select[Any]]:
    start = select(sa.literal(0), runs.c.start_theta, runs.c.created_at)
    applied = select(steps.c.k, steps.c.theta_after, steps.c.created_at)
    purged = select(purges.c.applied, purges.c.theta_after, purges.c.at)
    changed = select(changes.c.applied, changes.c.theta_after, changes.c.at)
    return (
        *((start.where(runs.c.id == run_id),) if 0 in ks else ()),
        applied.where(steps.c.run_id == run_id, steps.c.k.in_(ks)),
        purged.where(
            purges.c.run_id == run_id, purges.c.applied > 0, purges.c.applied.in_(ks)
        ).order_by(purges.c.number),
        changed.where(
            changes.c.run_id == run_id, changes.c.applied > 0, changes.c.applied.in_(ks)
        ).order_by(changes.c.number),
    )


def _values(theta: Any) -> Values:
    with as_written("a column `theta_after`"):
        return finite(theta)


def _sums(table: sa.Table, names: Sequence[str]) -> list[sa.Label[Any]]:
    return [func.sum(table.c[name]).label(name) for name in names]


def _tally(row: Any) -> Tally:
    """PostgreSQL makes a decimal number of a sum."""
    wins, losses, draws, *ptnml = (int(getattr(row, name)) for name in COUNTS)
    return Tally(wins, losses, draws, (ptnml[0], ptnml[1], ptnml[2], ptnml[3], ptnml[4]))


def _share(row: Any) -> WorkerShare:
    return WorkerShare(
        worker=row.worker,
        machine=row.machine,
        batches=row.batches,
        tally=_tally(row),
        void_games=int(row.void_games),
        time_losses=int(row.time_losses),
        nodes=int(row.nodes),
        seconds=float(row.seconds),
        think_seconds=float(row.think_seconds),
        least_scale=row.least_scale,
        most_scale=row.most_scale,
    )


def _part(row: Any) -> WorkerPart:
    return WorkerPart(
        group=row.part,
        share=_share(row),
        void_batches=int(row.void_batches),
        late_batches=int(row.late_batches),
    )
