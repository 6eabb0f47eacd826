"""A run from its start to now: theta, and sums over its games."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import func, select

from spsa.core import Values
from spsa.core.scoring import Tally
from spsa.db.base import COUNTS, sums_of, tally_of, time_from_now
from spsa.db.database import Database, values_of
from spsa.db.tables import IS_ABANDONED, IS_OPEN, Batch, Iteration, Purge, Run, Step, Worker
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """All tuning games of a run, and how many of its steps were bounded."""

    tally: Tally
    void_games: int
    bounded_steps: int


Parts = Mapping[int, Sequence[Tally]]
"""The tallies of the time controls of a run, by the ids of its iterations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeControlGames:
    """The games that count of one time control, by its number; `seconds` is the sum over games."""

    time_control: int
    tally: Tally
    seconds: float


_ALL = 2**31 - 1  # iterations in one group
_KS = 500  # numbers in one IN (...)


class HistoryQueries(Database):
    def theta_path(self, run_id: int, ks: Sequence[int]) -> list[ThetaPoint]:
        """Theta after each of these results, in their order; those not applied are left out.

        Where a purge has changed theta after a result, it is theta after that.
        """
        start = select(sa.literal(0), Run.start_theta, Run.created_at).where(Run.id == run_id)
        steps = select(Step.k, Step.theta_after, Step.created_at).where(Step.run_id == run_id)
        purges = select(Purge.applied, Purge.theta_after, Purge.at).order_by(Purge.number)
        purges = purges.where(Purge.run_id == run_id, Purge.applied > 0)
        found: dict[int, ThetaPoint] = {}
        with self._read() as connection:
            for i in range(0, len(ks), _KS):
                asked = ks[i : i + _KS]
                changed = (steps.where(Step.k.in_(asked)), purges.where(Purge.applied.in_(asked)))
                for statement in (start, *changed):  # the later ones replace
                    for k, theta, at in connection.execute(statement):
                        if k not in found or at >= found[k].at:
                            found[k] = ThetaPoint(k=k, theta=theta, at=at)
        return [found[k] for k in ks if k in found]

    def worker_parts(
        self, run_id: int, iterations_per_group: int, after: int = 0
    ) -> list[WorkerShare]:
        """What each worker has played of every so many tuning iterations of a run.

        Only of those after the iteration k = `after`.
        """
        mine = (Iteration.run_id == run_id, Iteration.purpose == Purpose.TUNE)
        played = [*mine, Batch.status == BatchStatus.DONE]
        with self._read() as connection:
            if after:
                # SQLite finds the iterations by k. As ids go up with k, PostgreSQL finds the
                # batches by them, if it sees the id itself.
                at = select(Iteration.id).where(*mine, Iteration.k == after + 1)
                first = sa.literal(connection.scalar(at))
                played += [Iteration.k > after, Batch.iteration_id >= first]
            parts = _parts(iterations_per_group, played)
            return values_of(WorkerShare, connection.execute(parts))

    def worker_shares(self, run_id: int, after: int = 0) -> list[WorkerShare]:
        """The same of all these iterations together, most games first."""
        shares = self.worker_parts(run_id, _ALL, after)
        return sorted(shares, key=lambda share: -share.tally.games)

    def games_by_time_control(self, run: Run, iteration_id: int | None = None) -> "Parts":
        """What the batches of each time control brought, of a run with several; else nothing.

        Of all its tuning iterations, or of one; zeros where all of them are purged.
        """
        found: dict[int, list[Tally]] = {}
        if not (count := len(run.game_settings.time_controls)):
            return found
        mine = (Iteration.run_id == run.id, Iteration.purpose == Purpose.TUNE)
        one = () if iteration_id is None else (Batch.iteration_id == iteration_id,)
        was_played = Batch.status.in_((BatchStatus.DONE, BatchStatus.PURGED))
        played = (was_played, Batch.time_control < count)
        group = (Batch.iteration_id, Batch.time_control, Batch.status)
        sums = select(*group, *sums_of(Batch, COUNTS)).join(Iteration).group_by(*group)
        with self._read() as connection:
            for row in connection.execute(sums.where(*mine, *one, *played)):
                parts = found.setdefault(row.iteration_id, [Tally()] * count)
                if row.status is BatchStatus.DONE:
                    parts[row.time_control] = tally_of(row)
        return found

    def time_control_games(self, run_id: int, *matches: int) -> list[TimeControlGames]:
        """The sums by time control over a run's tuning games, or over those of these matches."""
        its = [Iteration.match_number.in_(matches), ~IS_ABANDONED]
        if not matches:
            its = [Iteration.purpose == Purpose.TUNE]
        sums = select(Batch.time_control, *sums_of(Batch, (*COUNTS, "seconds"))).join(Iteration)
        sums = sums.where(Iteration.run_id == run_id, *its, Batch.status == BatchStatus.DONE)
        ordered = sums.group_by(Batch.time_control).order_by(Batch.time_control)
        return self._values(TimeControlGames, ordered)

    def totals(self, run_id: int, through: int = _ALL) -> Totals:
        """The sums over all counted tuning games of a run through result k, plus against minus."""
        bounded = select(func.count()).where(Step.run_id == run_id, Step.bounded)
        sums = sums_of(Iteration, (*COUNTS, "void_games"))
        totals = select(*sums, bounded.scalar_subquery().label("bounded_steps"))
        mine = (Iteration.run_id == run_id, Iteration.purpose == Purpose.TUNE)
        return self._values(Totals, totals.where(*mine, Iteration.k <= through))[0]

    def games_in_the_last(self, run_id: int, seconds: float) -> int:
        """How many games of a run were reported within the last `seconds`."""
        since = time_from_now(-seconds)
        reported = (Batch.status == BatchStatus.DONE, Batch.reported_at > since)
        games = select(func.coalesce(func.sum(Batch.games), 0)).join(Iteration)
        games = games.where(Iteration.run_id == run_id, *reported)
        # nothing can have been reported since of an iteration that was complete before; one query
        # for each index
        parts = (IS_OPEN, IS_ABANDONED, Iteration.completed_at > since)
        with self._read() as connection:
            return sum(connection.execute(games.where(part)).scalar_one() for part in parts)


def _parts(iterations_per_group: int, of: Sequence[sa.ColumnElement[bool]]) -> sa.Select[Any]:
    late = Batch.plus_time_losses + Batch.minus_time_losses
    # plus 0: SQLite would read all batches in the order of the index of workers otherwise
    worker = (Batch.worker_id + 0).label("worker_id")
    group = ((Iteration.k - 1) // iterations_per_group).label("group")
    summed = {
        "nodes": Batch.plus_nodes + Batch.minus_nodes,
        "time_losses": late,
        "void_games": Batch.own_void_games,
        "void_batches": sa.case((Batch.own_void_games > 0, 1), else_=0),
        "late_batches": sa.case((late > 0, 1), else_=0),
    }
    sums = (
        select(
            worker,
            group,
            func.count().label("batches"),
            func.min(Batch.scale).label("least_scale"),
            func.max(Batch.scale).label("most_scale"),
            *(func.sum(column).label(name) for name, column in summed.items()),
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
