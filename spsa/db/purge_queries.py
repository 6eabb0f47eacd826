"""Purges results: they no longer count, and stay on record.

The batch of a purged result becomes `purged` and keeps what was reported. If the iteration is open,
another batch is added, with the same seed; if it is closed, it has fewer games. The counts of the
iterations are computed again from their batches. The caller computes the new theta; it is written
in the same transaction, provided that the run has not changed since.

A purge needs no master lease. Like every write of a master it locks the run's row, and it counts
up `spsa_run.purges`. A master's decision that was made before is then refused, and made again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import func, select, update
from sqlalchemy.orm import contains_eager, joinedload

from spsa.core import Update, Values
from spsa.core.scoring import elo
from spsa.db.base import COUNTS, execute
from spsa.db.database import Database, add, rows
from spsa.db.machine_queries import withdraw_leases
from spsa.db.run_queries import write_event
from spsa.db.tables import (
    IS_PURGED,
    NARROW,
    NOT_PURGED,
    Batch,
    Iteration,
    Purge,
    Run,
    Worker,
    run_columns,
)
from spsa.errors import IllegalTransition, NothingToDo
from spsa.lifecycle import BatchStatus, IterationStatus

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
        return {
            name: value.isoformat() if isinstance(value, datetime) else value
            for name, value in asdict(self).items()
            if value
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PurgePlan:
    """A planned purge: which results, and the run, as it was seen, without them.

    `after` is the end of the replay of the results that are left; None if theta holds none of those
    selected, so that it does not change. `verdicts` has the new estimates of every applied
    iteration that loses games, by its row's id.
    """

    run: Run
    selection: Selection
    matches: Sequence[Batch]
    after: Update | None = None
    verdicts: Mapping[int, Update] = field(default_factory=dict)

    @property
    def theta(self) -> Values:
        return self.run.theta if self.after is None else self.after.theta


class PurgeQueries(Database):
    def purge(self, plan: PurgePlan, actor: str, reason: str) -> Purge:
        """Purge the selected results and write the new theta, in one transaction.

        Raises IllegalTransition: the run has changed since the purge was planned; plan it again.
        """
        seen = plan.run
        row = Purge(
            run_id=seen.id,
            number=seen.purges + 1,
            applied=seen.applied,
            theta_before=seen.theta,
            theta_after=plan.theta,
            selection=plan.selection.to_json(),
            actor=actor,
            reason=reason,
        )
        locked = select(Run).where(Run.id == seen.id).with_for_update()
        with self._write() as connection:
            (run,) = rows(connection, locked)
            if (run.applied, run.purges, run.theta) != (seen.applied, seen.purges, seen.theta):
                raise IllegalTransition(
                    f"run {run.name} has changed: the purge was planned on {seen.applied} results "
                    f"and {seen.purges} purges, the run has {run.applied} and {run.purges}"
                )
            return _purge(connection, plan, row)

    def matching(self, run_id: int, selection: Selection) -> list[Batch]:
        """The counted results that a selection matches, in order, with workers and iterations."""
        known = contains_eager(Batch.iteration).load_only(*NARROW), joinedload(Batch.worker)
        chosen = select(Batch).join(Batch.iteration).where(*_counted(run_id, selection))
        return self._rows(chosen.options(*known).order_by(Iteration.iteration_number, Batch.seq))

    def purges(self, run_id: int) -> list[Purge]:
        """The purges of a run, in order."""
        return self._rows(select(Purge).where(Purge.run_id == run_id).order_by(Purge.number))


def _counted(run_id: int, selection: Selection) -> Iterator[sa.ColumnElement[bool]]:
    """The conditions of a run's counted results that are selected."""
    yield from (Batch.status == BatchStatus.DONE, *_selected(run_id, selection))
    if selection.since is not None:
        yield Batch.reported_at >= selection.since
    if selection.until is not None:
        yield Batch.reported_at < selection.until


def _selected(run_id: int, selection: Selection) -> Iterator[sa.ColumnElement[bool]]:
    """The conditions but those on times, over batches joined with their iterations."""
    yield Iteration.run_id == run_id
    for column, name in ((Worker.name, selection.worker), (Worker.host, selection.host)):
        if name is not None:
            yield Batch.worker_id.in_(select(Worker.id).where(column == name))
    if selection.iterations or selection.batches:
        place = sa.tuple_(Iteration.iteration_number, Batch.seq)
        is_one = Iteration.iteration_number.in_(selection.iterations)
        yield sa.or_(is_one, place.in_(selection.batches))


def _purge(connection: sa.Connection, plan: PurgePlan, row: Purge) -> Purge:
    """Do the purge; like all transactions it locks rows in the order run, batch, iteration."""
    run, number = plan.run, row.number
    chosen = select(Batch.id).join(Iteration).where(*_counted(run.id, plan.selection))
    connection.execute(update(Batch).where(Batch.id.in_(chosen)).values(purge=number))
    execute(connection, "purge", purge=number)
    execute(connection, "purge.again", run_id=run.id, purge=number)
    withdrawn = 0
    if plan.selection.until is None:  # their results would be selected once reported
        withdrawn = withdraw_leases(connection, *_selected(run.id, plan.selection))
    games = _recount(connection, run.id, number)
    if not games:
        raise NothingToDo(f"no counted result of run {run.name} is selected")
    _write_verdicts(connection, plan, number)
    purge_id = add(connection, row, games=games)
    moved = {} if plan.after is None else run_columns(plan.after)
    connection.execute(update(Run).where(Run.id == run.id).values(purges=number, **moved))
    detail = {"number": number, "reason": row.reason, "games": games, "withdrawn": withdrawn}
    write_event(connection, run.id, "purge", row.actor, detail | {"of": row.selection})
    return rows(connection, select(Purge).where(Purge.id == purge_id))[0]


def _lost_by(run_id: int, number: int) -> sa.ColumnElement[bool]:
    """The iteration lost games by this purge."""
    of_purge = select(Batch.iteration_id).where(IS_PURGED, Batch.purge == number)
    return sa.and_(Iteration.run_id == run_id, Iteration.id.in_(of_purge))


def _recount(connection: sa.Connection, run_id: int, number: int) -> int:
    """Count the games of the iterations that lost some again; returns how many were purged.

    Their rows are locked first: the sums must not miss a report that has just been counted.
    """
    lost = _lost_by(run_id, number)
    connection.execute(select(Iteration.id).where(lost).order_by(Iteration.id).with_for_update())
    counted = {name: getattr(Batch, name) for name in (*COUNTS, "void_games")}
    counted["games_played"] = Batch.plus_wins + Batch.minus_wins + Batch.draws
    sums = {name: _sum(column, NOT_PURGED) for name, column in counted.items()}
    sums["purged_games"] = _sum(Batch.games, IS_PURGED, ~Batch.played_again)
    connection.execute(update(Iteration).where(lost).values(sums))
    games = select(func.sum(Batch.games)).join(Iteration)
    of_purge = (IS_PURGED, Batch.purge == number, Iteration.run_id == run_id)
    return connection.scalar(games.where(*of_purge)) or 0


def _sum(column: Any, *conditions: sa.ColumnElement[bool]) -> sa.ScalarSelect[Any]:
    """The sum over the batches of an iteration."""
    total = select(func.coalesce(func.sum(column), 0))
    return total.where(Batch.iteration_id == Iteration.id, *conditions).scalar_subquery()


def _write_verdicts(connection: sa.Connection, plan: PurgePlan, number: int) -> None:
    """Write the new estimates of the complete iterations that lost games.

    Raises IllegalTransition: other iterations lost games than the purge was planned on.
    """
    affected = (_lost_by(plan.run.id, number), Iteration.status == IterationStatus.COMPLETE)
    found = rows(connection, select(Iteration).where(*affected).order_by(Iteration.id))
    if {it.id for it in found if it.k is not None} != set(plan.verdicts):
        raise IllegalTransition("the purge was planned on other results than it would purge")
    for it in found:
        verdict = plan.verdicts.get(it.id)
        columns = (
            {"elo_diff": elo(it.tally).value if it.tally.pairs else None}  # of a validation
            if verdict is None
            else {"gradient_estimate": verdict.gradient, "elo_diff": verdict.elo}
        )
        connection.execute(update(Iteration).where(Iteration.id == it.id).values(columns))
