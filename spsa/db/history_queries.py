"""A run from its start to now, in as few rows as a picture needs however long the run is."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import func, select

from spsa.core.limits import as_written, finite
from spsa.core.scoring import Tally
from spsa.db.base import COUNTS, sums_of, tally_of
from spsa.db.database import Database
from spsa.db.tables import Batch, Iteration, Purge, Run, Step, Values, Worker
from spsa.lifecycle import BatchStatus, Purpose


@dataclass(frozen=True, slots=True, kw_only=True)
class ThetaPoint:
    """Theta after the result k."""

    k: int
    theta: Values
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerShare:
    """What one worker has played of a run's tuning iterations, or of a group of consecutive ones.

    `seconds` is the sum over games by the wall, `think_seconds` of both engines. Times were
    multiplied by `least_scale` to `most_scale`. `void_batches` had a void game on this worker,
    `late_batches` a game that was lost on time.
    """

    worker: str
    machine: str
    group: int = 0
    batches: int
    tally: Tally
    void_games: int
    time_losses: int
    nodes: int
    seconds: float
    think_seconds: float
    least_scale: float = 1.0
    most_scale: float = 1.0
    void_batches: int = 0
    late_batches: int = 0

    @property
    def games_per_hour(self) -> float | None:
        """Of one slot; None where no time is known."""
        return 3600 * self.tally.games / self.seconds if self.seconds > 0 else None

    @property
    def nodes_per_second(self) -> float | None:
        """Of one engine; None where no time is known."""
        return self.nodes / self.think_seconds if self.think_seconds > 0 else None


_WHOLE_NUMBERS = ("batches", "void_games", "time_losses", "nodes", "void_batches", "late_batches")

MAX_ITERATIONS = 2**31 - 1

_KS = 500  # numbers in one IN (...)


class HistoryQueries(Database):
    """How a run came to where it is; reads only."""

    def theta_path(self, run_id: int, ks: Sequence[int]) -> list[ThetaPoint]:
        """Theta after each of these results, in their order; those not applied are left out.

        Where a purge has changed theta after a result, it is theta after that.
        """
        found: dict[int, ThetaPoint] = {}
        with self._read() as connection:
            for i in range(0, len(ks), _KS):
                for statement in _sources(run_id, ks[i : i + _KS]):  # the later ones replace
                    for k, theta, at in connection.execute(statement):
                        if k not in found or at >= found[k].at:
                            found[k] = ThetaPoint(k=k, theta=_values(theta), at=at)
        return [found[k] for k in ks if k in found]

    def worker_parts(
        self, run_id: int, iterations_per_group: int, after: int = 0, through: int | None = None
    ) -> list[WorkerShare]:
        """What each worker has played of every so many tuning iterations of a run.

        Only of those after the iteration k = `after`, and not later than k = `through`, if given.
        """
        with self._read() as connection:
            played = _reported(connection, run_id, after, through)
            return [_share(row) for row in connection.execute(_parts(iterations_per_group, played))]

    def worker_shares(
        self, run_id: int, after: int = 0, through: int | None = None
    ) -> list[WorkerShare]:
        """What each worker has played of these tuning iterations of a run, most games first."""
        shares = self.worker_parts(run_id, MAX_ITERATIONS, after, through)
        return sorted(shares, key=lambda share: -share.tally.games)


def _sources(run_id: int, ks: Sequence[int]) -> Sequence[sa.Select[Any]]:
    """Theta by k: start, steps and purges."""
    start = select(sa.literal(0), Run.start_theta, Run.created_at)
    applied = select(Step.k, Step.theta_after, Step.created_at)
    purged = select(Purge.applied, Purge.theta_after, Purge.at)
    at_ks = (Purge.run_id == run_id, Purge.applied > 0, Purge.applied.in_(ks))
    return (
        *((start.where(Run.id == run_id),) if 0 in ks else ()),
        applied.where(Step.run_id == run_id, Step.k.in_(ks)),
        purged.where(*at_ks).order_by(Purge.number),
    )


def _values(theta: Any) -> Values:
    with as_written("a column `theta_after`"):
        return finite(theta)


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
    late = Batch.plus_time_losses + Batch.minus_time_losses
    # plus 0: SQLite would read all batches in the order of the index of workers otherwise
    worker = (Batch.worker_id + 0).label("worker_id")
    group = ((Iteration.k - 1) // iterations_per_group).label("group")
    sums = (
        select(
            worker,
            group,
            func.count().label("batches"),
            func.sum(Batch.plus_nodes + Batch.minus_nodes).label("nodes"),
            func.sum(late).label("time_losses"),
            _count_of(Batch.own_void_games > 0).label("void_batches"),
            _count_of(late > 0).label("late_batches"),
            func.sum(Batch.own_void_games).label("void_games"),
            func.min(Batch.scale).label("least_scale"),
            func.max(Batch.scale).label("most_scale"),
            *sums_of(Batch, (*COUNTS, "seconds", "think_seconds")),
        )
        .join(Iteration)
        .where(*of)
        .group_by(worker, group)
        .subquery()
    )
    return (
        select(Worker.name.label("worker"), Worker.host.label("machine"), sums)
        .join(sums, Worker.id == sums.c.worker_id)
        .order_by(Worker.id, sums.c.group)
    )


def _count_of(condition: sa.ColumnElement[bool]) -> sa.ColumnElement[int]:
    return func.sum(sa.case((condition, 1), else_=0))


def _share(row: Any) -> WorkerShare:
    plain = ("worker", "machine", "group", "seconds", "think_seconds", "least_scale", "most_scale")
    values: dict[str, Any] = {name: getattr(row, name) for name in plain}
    values |= {name: int(getattr(row, name)) for name in _WHOLE_NUMBERS}
    return WorkerShare(tally=tally_of(row), **values)
