"""The queries that only read: runs, their iterations and batches, workers, events, and sums."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import and_, func, or_, select
from sqlalchemy.orm import Session, contains_eager, joinedload, load_only, with_expression

from spsa.core import Values
from spsa.core.scoring import Tally
from spsa.db.base import COUNTS, sums_of, tally_of, time_from_now, written_out
from spsa.db.database import Database, rows, values_of
from spsa.db.tables import (
    IS_ABANDONED,
    IS_LEASED,
    IS_OPEN,
    IS_PURGED,
    IS_VALIDATION,
    NOT_PURGED,
    Batch,
    Event,
    Iteration,
    Purge,
    Run,
    Step,
    Worker,
)
from spsa.db.worker_queries import claim_of, shared
from spsa.errors import NothingToDo
from spsa.lifecycle import BatchStatus, IterationStatus, Purpose
from spsa.protocol import Claim, KeptVoid


@dataclass(frozen=True, slots=True, kw_only=True)
class VoidGame:
    """A void game of a batch, with the values of the engine at fault and its binary."""

    batch: Batch
    kept: KeptVoid
    parameters: Values
    options: dict[str, str]
    sha256: str

    @property
    def machine(self) -> str | None:
        return None if self.batch.void_worker is None else self.batch.void_worker.host


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


class ReadQueries(Database):
    def run_overviews(self) -> list[Run]:
        """All runs in the order of scheduling; ended runs come last, the most recent first."""
        in_use = and_(IS_LEASED, Batch.lease_expires_at >= time_from_now())
        open_ones = (
            select(
                Iteration.run_id,
                func.count(Batch.id).label("slots"),
                func.min(Batch.leased_at).label("held_since"),
            )
            .outerjoin_from(Iteration, Batch, and_(Batch.iteration_id == Iteration.id, in_use))
            .where(IS_OPEN)
            .group_by(Iteration.run_id)
            .subquery()
        )
        has_master = and_(Run.master_id.is_not(None), Run.lease_expires_at >= time_from_now())
        live = or_(Run.finished_at.is_(None), open_ones.c.run_id.is_not(None))
        found = select(Run).outerjoin(open_ones, open_ones.c.run_id == Run.id)
        found = found.options(
            load_only(*(getattr(Run, name) for name in _OVERVIEW)),
            with_expression(Run.slots, func.coalesce(open_ones.c.slots, 0)),
            with_expression(Run.held_since, open_ones.c.held_since),
            with_expression(Run.has_master, has_master),
            with_expression(Run.live, live),
        )
        ended = (Run.finished_at.is_not(None), Run.finished_at.desc())
        return self._rows(found.order_by(*ended, Run.priority.desc(), Run.id))

    def find_run(self, name: str) -> Run | None:
        """The run of this name, if there is one."""
        return next(iter(self._rows(select(Run).where(Run.name == name))), None)

    def run(self, name: str | None = None) -> Run:
        """The run of this name, or the newest one; NothingToDo names the runs that exist.

        One that tunes goes before one that has only matches.
        """
        chosen = select(Run).order_by(Run.max_iterations == 0, Run.id.desc()).limit(1)
        for found in self._rows(chosen if name is None else chosen.where(Run.name == name)):
            return found
        names = [run.name for run in self.runs()]
        known = f"; the runs are: {', '.join(names)}" if names else ""
        wanted = "there is no run yet" if name is None else f"there is no run named {name!r}"
        raise NothingToDo(wanted + known)

    def runs(self) -> list[Run]:
        """All runs, oldest first."""
        return self._rows(select(Run).order_by(Run.id))

    def iterations(
        self,
        run_id: int,
        *,
        purpose: Purpose | None = None,
        number: int | None = None,
        match: int | None = None,
        before: int | None = None,
        last: int | None = None,
        columns: Sequence[Any] = (),
    ) -> list[Iteration]:
        """The iterations of a run in order, or those that are asked for; abandoned ones too.

        With `columns` no others can be read, as those of `NARROW`.
        """
        found, at = select(Iteration).where(Iteration.run_id == run_id), Iteration.iteration_number
        if purpose is not None:
            found = found.where(written_out(Iteration.purpose, purpose))
        if number is not None:
            found = found.where(at == number)
        if match is not None:  # the rounds of a validation
            found = found.where(IS_VALIDATION, Iteration.match_number == match)
        if before is not None:
            found = found.where(at < before)
        found = found.options(load_only(*columns)) if columns else found
        return self._rows(found.order_by(at.desc()).limit(last))[::-1]

    def open_iterations(self, run_id: int) -> list[Iteration]:
        """The iterations that are pending or being played, in order."""
        # the order of the index; the numbers grow with it
        mine = select(Iteration).where(Iteration.run_id == run_id, IS_OPEN).order_by(Iteration.id)
        return self._rows(mine)

    def matches(self, run_id: int) -> list[Iteration]:
        """The validations of a run in order.

        A match of several rounds is one iteration: its first round, with the sums over all rounds
        that were not abandoned.
        """
        its, number = (Iteration.run_id == run_id, IS_VALIDATION), Iteration.match_number
        sums = select(
            number,
            func.count(Iteration.completed_at).label("ended"),
            func.count().label("rounds"),
            func.max(Iteration.completed_at).label("completed_at"),
            *sums_of(Iteration, _COUNTED),
        )
        kept = sums.where(*its, ~IS_ABANDONED).group_by(number).subquery()
        firsts = select(Iteration, *kept.c).outerjoin(kept, kept.c.match_number == number)
        ordered = firsts.where(*its, number == Iteration.iteration_number).order_by(number)
        with self._read() as connection, Session(connection) as session:
            return [_match(row[0], row) for row in session.execute(ordered)]

    def steps(self, run_id: int) -> list[Step]:
        """The log of the steps of theta, in order."""
        return self._rows(select(Step).where(Step.run_id == run_id).order_by(Step.k))

    def batches(
        self, run_id: int, iteration_id: int | None = None, *, purged: bool = False
    ) -> list[Batch]:
        """The batches of a run, or of one iteration, in order, each with its worker.

        Only the last ones where games were played again; with `purged` those that purges removed,
        in the order of the purges.
        """
        one = () if iteration_id is None else (Batch.iteration_id == iteration_id,)
        which = IS_PURGED if purged else ~Batch.played_again
        order = (Batch.purge,) if purged else ()
        mine = select(Batch).join(Iteration).where(Iteration.run_id == run_id, which, *one)
        ordered = mine.order_by(*order, Iteration.iteration_number, Batch.seq)
        return self._rows(ordered.options(joinedload(Batch.worker)))

    def played_batch(self, run_id: int, number: int, seq: int) -> tuple[Claim, Tally | None, float]:
        """What a worker played in batch `seq` of the iteration `number`, its counts and its scale.

        The counts are None where the batch has not been reported, or was purged.
        """
        place = (Iteration.run_id == run_id, Iteration.iteration_number == number, Batch.seq == seq)
        chosen = select(Batch).join(Iteration).where(*place).order_by(Batch.id.desc()).limit(1)
        with self._read() as connection:
            batch = next(iter(rows(connection, chosen)), None)
            if batch is None:
                raise NothingToDo(f"the run has no batch {seq} in an iteration {number}")
            claim = claim_of(shared(connection, batch.iteration_id), batch, 0, "")
        return claim, batch.tally if batch.status is BatchStatus.DONE else None, batch.scale

    def void_games(self, run_id: int, last: int) -> list[VoidGame]:
        """The void games that workers have kept of the newest `last` batches with any, in order."""
        kept = select(Batch).where(Batch.void_log.is_not(None), NOT_PURGED)
        known = contains_eager(Batch.iteration), joinedload(Batch.void_worker)
        its = kept.join(Batch.iteration).where(Iteration.run_id == run_id).options(*known)
        newest = its.order_by(Iteration.iteration_number.desc(), Batch.seq.desc()).limit(last)
        return [
            VoidGame(
                batch=batch,
                kept=kept,
                **{n: getattr(batch.iteration, f"{kept.culprit or 'plus'}_{n}") for n in _OF_SIDE},
            )
            for batch in self._rows(newest)[::-1]
            for kept in batch.void_log or ()
        ]

    def clock(self) -> datetime:
        """The current time of the database."""
        with self._read() as connection:
            return connection.execute(select(time_from_now())).scalar_one()

    def workers(self) -> list[Worker]:
        """All workers with their sums, the most recently seen first."""
        found = select(Worker).join(_STATS, _STATS.c.worker == Worker.name)
        sums = (with_expression(getattr(Worker, name), _STATS.c[name]) for name in _SUMS)
        found = found.options(*sums, with_expression(Worker.now, time_from_now()))
        return self._rows(found.order_by(Worker.last_seen_at.desc()))

    def events(
        self, run_id: int, last: int = 100, *, kinds: Sequence[str] | None = None
    ) -> list[Event]:
        """The newest `last` events of a run and of machines, of these kinds if given.

        The oldest is the first.
        """
        wanted = () if kinds is None else (Event.kind.in_(kinds),)
        found = select(Event).where(or_(Event.run_id == run_id, Event.run_id.is_(None)), *wanted)
        return self._rows(found.order_by(Event.id.desc()).limit(last))[::-1]

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


_OF_SIDE = ("parameters", "options", "sha256")
_COUNTED = (*COUNTS, "void_games", "purged_games", "games_played", "target_games")
_OVERVIEW = ("name", "status", "priority", "share", "applied", "max_iterations")

_SUMS = ("batches", "games", "games_leased", "void_games", "time_losses")
_STATS = sa.table("spsa_worker_stats", *map(sa.column, ("worker", *_SUMS)))


def _match(first: Iteration, kept: Any) -> Iteration:
    """A match by its first round and the sums over those that were not abandoned, if any."""
    if kept.rounds is None:
        return first
    counts: dict[str, Any] = {name: getattr(kept, name) for name in _COUNTED}
    if kept.ended == kept.rounds:
        done = IterationStatus.COMPLETE
        return replace(first, status=done, completed_at=kept.completed_at, **counts)
    is_pending = first.status is IterationStatus.PENDING
    status = first.status if is_pending else IterationStatus.IN_PROGRESS
    return replace(first, status=status, completed_at=None, **counts)


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
