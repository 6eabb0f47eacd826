"""Purges results: they no longer count, and stay on record.

A purge copies each result to `spsa_purged` as it was reported. If the iteration is open, the batch
becomes `ready` again, with its seed and without the attempt. If the iteration is closed, the batch
stays `purged` and the iteration has fewer games. The counts of the iterations are computed again
from their batches. The caller computes the new theta; it is written in the same transaction,
provided that the run has not changed since.

A purge needs no master lease. Like every write of a master it locks the run's row, and it counts
up `spsa_run.purges`. A master's decision that was made before is then refused, and made again.
"""

from typing import Any

import sqlalchemy as sa
from sqlalchemy import bindparam, func, insert, select, update

from spsa.core.scoring import elo
from spsa.db.base import COUNTS, time_from_now
from spsa.db.batch_tables import Batch, PurgedBatch
from spsa.db.database import rows
from spsa.db.machine_queries import withdraw_leases
from spsa.db.purge_records import NewPurge, PurgeRecordQueries, Selection, counted, selected
from spsa.db.run_status import write_event
from spsa.db.run_tables import IS_OPEN, Iteration, Purge, Run, estimate_columns
from spsa.db.statements import execute
from spsa.errors import IllegalTransition, NothingToDo
from spsa.lifecycle import BatchStatus, IterationStatus, Purpose

_KEPT = (
    *("iteration_id", "seq", "games", "worker_id", "claim_id", "attempt", "slot", *COUNTS),
    *("void_games", "voids", "plus_nodes", "minus_nodes", "moves", "plus_time_losses"),
    *("minus_time_losses", "seconds", "reported_at"),
)


class PurgeQueries(PurgeRecordQueries):
    """The query that purges results."""

    def purge(self, run_id: int, new: NewPurge) -> Purge:
        """Purge the selected results and write the new theta, in one transaction.

        Repeated after an unknown outcome, it finds its row and changes nothing.

        Raises:
            IllegalTransition: the run has changed since the purge was planned; plan it again.
            NothingToDo: no counted result is selected.
        """
        locked = select(Run).where(Run.id == run_id).with_for_update()
        with self._write() as connection:
            run = next(iter(rows(connection, locked)), None)
            if run is None:
                raise NothingToDo(f"there is no run with the id {run_id}")
            if (known := _known(connection, run_id, new)) is not None:
                return known
            _refuse_outdated(run, new)
            return _purge(connection, run, new)


def _known(connection: sa.Connection, run_id: int, new: NewPurge) -> Purge | None:
    """The row of this very purge, if it was committed and only the response was lost."""
    same = select(Purge).where(Purge.run_id == run_id, Purge.number == new.purges + 1)
    request = (new.actor, new.reason, new.selection.to_json(), new.applied, dict(new.theta_after))
    for row in rows(connection, same):
        if (row.actor, row.reason, row.selection, row.applied, row.theta_after) == request:
            return row
    return None


def _refuse_outdated(run: Run, new: NewPurge) -> None:
    planned_on = (new.applied, new.purges, dict(new.theta_before))
    if (run.applied, run.purges, run.theta) != planned_on:
        raise IllegalTransition(
            f"run {run.name} has changed: the purge was planned on {new.applied} results and "
            f"{new.purges} purges, the run has {run.applied} and {run.purges}"
        )


def _purge(connection: sa.Connection, run: Run, new: NewPurge) -> Purge:
    """Do the purge; like all transactions it locks rows in the order run, batch, iteration."""
    number, of = new.purges + 1, new.selection.to_json()
    purge_id = _record(connection, run, number, new)
    execute(connection, "purge", purge_id=purge_id)
    withdrawn = _withdraw(connection, run.id, new.selection)
    games = _recount(connection, purge_id)
    if not games:
        raise NothingToDo(f"no counted result of run {run.name} is selected")
    _write_verdicts(connection, purge_id, new)
    connection.execute(update(Purge).where(Purge.id == purge_id).values(games=games))
    after = {"theta": dict(new.theta_after), "state": dict(new.state), "purges": number}
    after |= estimate_columns(new.estimates)
    connection.execute(update(Run).where(Run.id == run.id).values(after))
    detail = {"number": number, "reason": new.reason, "games": games, "withdrawn": withdrawn}
    write_event(connection, run.id, "purge", new.actor, {**detail, "of": of})
    return rows(connection, select(Purge).where(Purge.id == purge_id))[0]


def _record(connection: sa.Connection, run: Run, number: int, new: NewPurge) -> int:
    """Write the purge's row, and copy the selected results as they were reported; its id."""
    values = {
        "run_id": run.id,
        "number": number,
        "applied": new.applied,
        "theta_before": dict(new.theta_before),
        "theta_after": dict(new.theta_after),
        "games": 0,
        "selection": new.selection.to_json(),
        "actor": new.actor,
        "reason": new.reason,
        "at": time_from_now(0),
    }
    purge_id = connection.execute(insert(Purge).values(values).returning(Purge.id)).scalar_one()
    kept = (getattr(Batch, name) for name in _KEPT)
    results = select(sa.literal(purge_id), IS_OPEN, *kept).join(
        Iteration, Iteration.id == Batch.iteration_id
    )
    results = results.where(*counted(run.id, new.selection))
    names = ("purge_id", "played_again", *_KEPT)
    connection.execute(insert(PurgedBatch).from_select(names, results))
    return purge_id


def _withdraw(connection: sa.Connection, run_id: int, selection: Selection) -> int:
    """Withdraw leased batches whose results would be selected once reported; how many."""
    if selection.until is not None:
        return 0
    return withdraw_leases(connection, Iteration.run_id == run_id, *selected(selection))


def _recount(connection: sa.Connection, purge_id: int) -> int:
    """Count the games of the iterations that lost some again; returns how many were purged.

    Their rows are locked first: the sums must not miss a report that has just been counted.
    """
    games = func.coalesce(func.sum(PurgedBatch.games), 0)
    of_purge = PurgedBatch.purge_id == purge_id
    lost = Iteration.id.in_(select(PurgedBatch.iteration_id).where(of_purge))
    connection.execute(select(Iteration.id).where(lost).order_by(Iteration.id).with_for_update())
    played = Batch.plus_wins + Batch.minus_wins + Batch.draws
    sums = {name: _sum(getattr(Batch, name)) for name in (*COUNTS, "void_games")}
    sums |= {"games_played": _sum(played)}
    sums |= {"purged_games": _sum(Batch.games, Batch.status == BatchStatus.PURGED)}
    connection.execute(update(Iteration).where(lost).values(sums))
    return int(connection.execute(select(games).where(of_purge)).scalar_one())


def _sum(column: Any, *conditions: sa.ColumnElement[bool]) -> sa.ScalarSelect[Any]:
    """The sum over the batches of an iteration."""
    total = select(func.coalesce(func.sum(column), 0))
    return total.where(Batch.iteration_id == Iteration.id, *conditions).scalar_subquery()


def _write_verdicts(connection: sa.Connection, purge_id: int, new: NewPurge) -> None:
    """Write the new estimates of the complete iterations that lost games.

    Raises:
        IllegalTransition: other iterations lost games than the purge was planned on.
    """
    lost = select(PurgedBatch.iteration_id).where(PurgedBatch.purge_id == purge_id)
    complete = Iteration.status == IterationStatus.COMPLETE
    affected = select(Iteration).where(Iteration.id.in_(lost), complete).order_by(Iteration.id)
    found = rows(connection, affected)
    if {it.id for it in found if it.k is not None} != set(new.verdicts):
        raise IllegalTransition("the purge was planned on other results than it would purge")
    statement = (
        update(Iteration)
        .where(Iteration.id == bindparam("row"))
        .values(gradient_estimate=bindparam("gradient"), elo_diff=bindparam("elo"))
    )
    if found:
        connection.execute(statement, [_estimates(it, new) for it in found])


def _estimates(it: Iteration, new: NewPurge) -> dict[str, Any]:
    """The estimates from the games that a complete iteration has left."""
    if it.purpose is Purpose.VALIDATE:
        value = elo(it.tally).value if it.tally.pairs else None
        return {"row": it.id, "gradient": None, "elo": value}
    verdict = new.verdicts[it.id]
    gradient = None if verdict.gradient is None else dict(verdict.gradient)
    return {"row": it.id, "gradient": gradient, "elo": verdict.elo}
