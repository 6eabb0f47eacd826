"""A run from its start to now, in as few rows as a picture needs however long the run is."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy import func, select

from spsa.core.stored_json import as_written, finite
from spsa.db.base import COUNTS, sums_of, tally_of
from spsa.db.batch_tables import Batch, Worker
from spsa.db.database import Database
from spsa.db.entries import Values
from spsa.db.rows import ResultGroup, ThetaPoint, WorkerPart, WorkerShare
from spsa.db.run_tables import Iteration, Purge, Run, Step
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
                    tally=tally_of(row),
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
    group = (Iteration.k - 1) // iterations_per_group
    return (
        select(
            func.min(Iteration.k).label("first_k"),
            func.max(Iteration.k).label("last_k"),
            *sums_of(Iteration, (*COUNTS, "void_games")),
        )
        .where(
            Iteration.run_id == run_id,
            Iteration.purpose == Purpose.TUNE,
            Iteration.status == IterationStatus.COMPLETE,
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
    mine = (Iteration.run_id == run_id, Iteration.purpose == Purpose.TUNE)
    ids = select(Iteration.id).where(*mine)
    found = [*mine, Batch.status == BatchStatus.DONE]
    if after:
        first = connection.scalar(ids.where(Iteration.k == after + 1))
        found += [Iteration.k > after, Batch.iteration_id >= sa.literal(first)]
    if through is not None:
        last = connection.scalar(ids.where(Iteration.k == through))
        found += [Iteration.k <= through, Batch.iteration_id <= sa.literal(last)]
    return found


def _parts(iterations_per_group: int, of: Sequence[sa.ColumnElement[bool]]) -> sa.Select[Any]:
    nodes = Batch.plus_nodes + Batch.minus_nodes
    lost_on_time = Batch.plus_time_losses + Batch.minus_time_losses
    # plus 0: SQLite would read all batches in the order of the index of workers otherwise
    worker = (Batch.worker_id + 0).label("worker_id")
    group = ((Iteration.k - 1) // iterations_per_group).label("part")
    reported = (
        select(
            worker,
            group,
            func.count().label("batches"),
            func.sum(nodes).label("nodes"),
            func.sum(lost_on_time).label("time_losses"),
            _count_of(Batch.own_void_games > 0).label("void_batches"),
            _count_of(lost_on_time > 0).label("late_batches"),
            func.sum(Batch.own_void_games).label("void_games"),
            func.min(Batch.scale).label("least_scale"),
            func.max(Batch.scale).label("most_scale"),
            *sums_of(Batch, (*COUNTS, "seconds", "think_seconds")),
        )
        .join(Iteration)
        .where(*of)
        .group_by(worker, group)
    )
    sums = reported.subquery()
    return (
        select(Worker.name.label("worker"), Worker.host.label("machine"), sums)
        .join(sums, Worker.id == sums.c.worker_id)
        .order_by(Worker.id, sums.c.part)
    )


def _count_of(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
    return func.sum(sa.case((condition, 1), else_=0))


def _points(connection: sa.Connection, run_id: int, ks: Sequence[int]) -> dict[int, ThetaPoint]:
    """By k; what came later replaces what came earlier: start, steps and purges."""
    found: dict[int, ThetaPoint] = {}
    for statement in _sources(run_id, ks):
        for k, theta, at in connection.execute(statement):
            if k not in found or at >= found[k].at:
                found[k] = ThetaPoint(k=k, theta=_values(theta), at=at)
    return found


def _sources(run_id: int, ks: Sequence[int]) -> Sequence[sa.Select[Any]]:
    start = select(sa.literal(0), Run.start_theta, Run.created_at)
    applied = select(Step.k, Step.theta_after, Step.created_at)
    purged = select(Purge.applied, Purge.theta_after, Purge.at)
    return (
        *((start.where(Run.id == run_id),) if 0 in ks else ()),
        applied.where(Step.run_id == run_id, Step.k.in_(ks)),
        purged.where(Purge.run_id == run_id, Purge.applied > 0, Purge.applied.in_(ks)).order_by(
            Purge.number
        ),
    )


def _values(theta: Any) -> Values:
    with as_written("a column `theta_after`"):
        return finite(theta)


def _share(row: Any) -> WorkerShare:
    return WorkerShare(
        worker=row.worker,
        machine=row.machine,
        batches=row.batches,
        tally=tally_of(row),
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
