"""Purges results: they no longer count, and stay on record.

A purge copies each result to `spsa_struck` as it was reported. If the iteration is open, the batch
becomes `ready` again, with its seed and without the attempt. If the iteration is closed, the batch
stays `purged` and the iteration has fewer games. The caller computes the new theta; it is written
in the same transaction, provided that the run has not changed since.

A purge needs no master lease. Like every write of a master it locks the run's row, and it counts
up `spsa_run.purges`. A master's decision that was made before is then refused, and made again.
"""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy import select, update

from spsa.core.limits import COUNTS
from spsa.db.database import may_become
from spsa.db.machine_queries import withdraw_leases
from spsa.db.purge_records import (
    PurgeRecordQueries,
    counted,
    reported_within,
    selected,
    write_verdicts,
)
from spsa.db.purge_values import NewPurge, Purge, Selection
from spsa.db.row_values import columns_of, purge_of
from spsa.db.run_status import write_event
from spsa.db.schema import (
    IS_LEASED,
    IS_OPEN,
    batches,
    iterations,
    purged,
    purges,
    runs,
    seconds_from_now,
)
from spsa.db.totals import recount
from spsa.errors import IllegalTransition, NothingToDo
from spsa.lifecycle import BATCH, BatchStatus

_COSTS = ("plus_nodes", "minus_nodes", "moves", "plus_time_losses", "minus_time_losses", "seconds")
_KEPT = (
    *("iteration_id", "seq", "games", "worker_id", "claim_id", "attempt", "slot"),
    *(*COUNTS, "void_games", "voids", *_COSTS, "reported_at"),
)
_CLEARED: Mapping[str, Any] = {
    **dict.fromkeys((*COUNTS, "void_games", *_COSTS, "think_seconds"), 0),
    **dict.fromkeys(
        (
            "claim_id",
            "lease_expires_at",
            "voids",
            "void_log",
            "void_worker_id",
            "reported_at",
            "slot",
        )
    ),
    "scale": 1,
}


class PurgeQueries(PurgeRecordQueries):
    """The query that purges results."""

    def purge(self, run_id: int, new: NewPurge) -> Purge:
        """Purge the selected results and write the new theta, in one transaction.

        Repeated after an unknown outcome, it finds its row and changes nothing.

        Raises:
            IllegalTransition: the run has changed since the purge was planned; plan it again.
            NothingToDo: no counted result is selected.
        """
        with self._write() as connection:
            run = connection.execute(
                select(runs).where(runs.c.id == run_id).with_for_update()
            ).one_or_none()
            if run is None:
                raise NothingToDo(f"there is no run with the id {run_id}")
            if (known := _known(connection, run_id, new)) is not None:
                return known
            _refuse_outdated(run, new)
            return _purge(connection, run, new)


def _known(connection: sa.Connection, run_id: int, new: NewPurge) -> Purge | None:
    """The row of this very purge, if it was committed and only the response was lost."""
    row = connection.execute(
        select(purges).where(purges.c.run_id == run_id, purges.c.number == new.purges + 1)
    ).one_or_none()
    if row is None:
        return None
    found = (row.actor, row.reason, row.selection, row.applied, row.theta_after)
    request = (new.actor, new.reason, new.selection.to_json())
    expected = (*request, new.applied, dict(new.theta_after))
    return purge_of(row) if found == expected else None


def _refuse_outdated(run: Any, new: NewPurge) -> None:
    planned_on = (new.applied, new.purges, new.changes, dict(new.theta_before))
    if (run.applied, run.purges, run.changes, run.theta) != planned_on:
        raise IllegalTransition(
            f"run {run.name} has changed: the purge was planned on {new.applied} results and "
            f"{new.purges} purges, the run has {run.applied} and {run.purges}"
        )


def _purge(connection: sa.Connection, run: Any, new: NewPurge) -> Purge:
    """Do the purge; like all transactions it locks rows in the order run, batch, iteration."""
    purge = connection.execute(purges.insert().values(_row(run, new)).returning(*purges.c)).one()
    _copy(connection, run.id, purge.id, new.selection)
    _free(connection, purge.id)
    withdrawn = _withdraw(connection, run.id, new.selection)
    games = write_verdicts(connection, purge.id, new)
    if not games:
        raise NothingToDo(f"no counted result of run {run.name} is selected")
    done = connection.execute(
        update(purges).where(purges.c.id == purge.id).values(games=games).returning(*purges.c)
    ).one()
    connection.execute(update(runs).where(runs.c.id == run.id).values(_run_columns(new)))
    recount(connection, run.id)
    detail = {"number": done.number, "reason": new.reason, "games": games, "withdrawn": withdrawn}
    write_event(connection, run.id, "purge", new.actor, detail | {"of": new.selection.to_json()})
    return purge_of(done)


def _row(run: Any, new: NewPurge) -> dict[str, Any]:
    return {
        "run_id": run.id,
        "number": new.purges + 1,
        "applied": new.applied,
        "theta_before": dict(new.theta_before),
        "theta_after": dict(new.theta_after),
        "games": 0,
        "selection": new.selection.to_json(),
        "actor": new.actor,
        "reason": new.reason,
        "at": seconds_from_now(0),
    }


def _copy(connection: sa.Connection, run_id: int, purge_id: int, selection: Selection) -> None:
    """Copy the selected results, as they were reported."""
    kept = [batches.c[name] for name in _KEPT]
    columns: list[Any] = [sa.literal(purge_id), IS_OPEN, *kept]
    results = select(*columns).join(iterations, iterations.c.id == batches.c.iteration_id)
    results = results.where(*counted(run_id), *selected(selection), *reported_within(selection))
    names = ("purge_id", "played_again", *_KEPT)
    connection.execute(purged.insert().from_select(names, results))


def _free(connection: sa.Connection, purge_id: int) -> None:
    """Empty the batches of the purged results: `ready` again, or `purged` for good."""
    of = sa.and_(
        purged.c.purge_id == purge_id,
        purged.c.iteration_id == batches.c.iteration_id,
        purged.c.seq == batches.c.seq,
    )
    connection.execute(
        update(batches)
        .where(
            select(purged.c.id).where(of, purged.c.played_again).exists(),
            may_become(batches.c.status, BATCH, BatchStatus.READY),
            batches.c.status == BatchStatus.DONE,
        )
        .values(status=BatchStatus.READY, attempt=batches.c.attempt - 1, **_CLEARED)
    )
    connection.execute(
        update(batches)
        .where(
            select(purged.c.id).where(of, ~purged.c.played_again).exists(),
            may_become(batches.c.status, BATCH, BatchStatus.PURGED),
        )
        .values(status=BatchStatus.PURGED, **_CLEARED)
    )


def _withdraw(connection: sa.Connection, run_id: int, selection: Selection) -> int:
    """Withdraw leased batches whose results would be selected once reported; how many."""
    if selection.until is not None:
        return 0
    leased = (
        select(batches.c.id)
        .join(iterations, iterations.c.id == batches.c.iteration_id)
        .where(iterations.c.run_id == run_id, IS_OPEN, IS_LEASED, *selected(selection))
    )
    return withdraw_leases(connection, batches.c.id.in_(leased))


def _run_columns(new: NewPurge) -> dict[str, Any]:
    """The columns of the run's row that a purge changes."""
    return columns_of(new.estimates) | {
        "theta": dict(new.theta_after),
        "state": dict(new.state),
        "purges": new.purges + 1,
    }
