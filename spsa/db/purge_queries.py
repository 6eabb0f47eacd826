"""Results are struck out: what was counted counts no more, and stays on record.

A struck result is copied to `spsa_struck` as it was reported. Its batch is `ready` again where its
iteration is still open, with its own seed and without the attempt; in a closed iteration it is
`purged` for good, and the iteration has fewer games. Whatever theta is then comes from outside:
here it is written in the same transaction, if the run is still the one that it was computed from.
A purge needs no mastership. It locks the run's row as every write of a master does, and counts in
`spsa_run.purges`, which whatever a master has decided is compared with: it looks again.
"""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy import select, update

from spsa.db.database import COUNTS, may_become
from spsa.db.purge_records import PurgeRecordQueries, counting, meant, reported
from spsa.db.purge_values import NewPurge, Purge, Selection
from spsa.db.row_values import columns_of, purge_of
from spsa.db.run_status import write_event
from spsa.db.schema import IS_OPEN, batches, iterations, purges, runs, seconds_from_now, struck
from spsa.db.totals import recount
from spsa.db.uncounting import uncount
from spsa.errors import IllegalTransition, NothingToDo
from spsa.lifecycle import BATCH, BatchStatus

_COSTS = ("plus_nodes", "minus_nodes", "moves", "plus_time_losses", "minus_time_losses", "seconds")
_KEPT = (
    *("iteration_id", "seq", "games", "worker_id", "claim_id", "attempt", "slot"),
    *(*COUNTS, "void_games", "voids", *_COSTS, "reported_at"),
)
_CLEARED: Mapping[str, Any] = {
    **dict.fromkeys((*COUNTS, "void_games", *_COSTS, "think_seconds"), 0),
    **dict.fromkeys(("claim_id", "lease_expires_at", "voids", "reported_at", "slot")),
}


class PurgeQueries(PurgeRecordQueries):
    """Where a person strikes out results."""

    def purge(self, run_id: int, new: NewPurge) -> Purge:
        """Strike out what is meant, in one transaction with what theta is without it.

        Done again after an unknown outcome it finds its row and changes nothing.

        Raises:
            IllegalTransition: the run is not what the purge was decided on; look at it again.
            NothingToDo: nothing that counts is meant.
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
            return _struck_out(connection, run, new)


def _known(connection: sa.Connection, run_id: int, new: NewPurge) -> Purge | None:
    """The row of this very purge, if it was done and only its answer was lost."""
    row = connection.execute(
        select(purges).where(purges.c.run_id == run_id, purges.c.number == new.purges + 1)
    ).one_or_none()
    if row is None:
        return None
    theirs = (row.actor, row.reason, row.selection, row.applied, row.theta_after)
    said = (new.actor, new.reason, new.selection.to_json())
    ours = (*said, new.applied, dict(new.theta_after))
    return purge_of(row) if theirs == ours else None


def _refuse_outdated(run: Any, new: NewPurge) -> None:
    decided_on = (new.applied, new.purges, dict(new.theta_before))
    if (run.applied, run.purges, run.theta) != decided_on:
        raise IllegalTransition(
            f"run {run.name} has moved on: the purge was decided on {new.applied} results after "
            f"{new.purges} purges, it holds {run.applied} after {run.purges}"
        )


def _struck_out(connection: sa.Connection, run: Any, new: NewPurge) -> Purge:
    """Everything of a purge; rows are taken in the order run, batch, iteration as everywhere."""
    purge = connection.execute(purges.insert().values(_row(run, new)).returning(*purges.c)).one()
    _copy(connection, run.id, purge.id, new.selection)
    _free(connection, purge.id)
    withdrawn = _withdraw(connection, run.id, new.selection)
    games = uncount(connection, purge.id, new)
    if not games:
        raise NothingToDo(f"nothing of run {run.name} that counts is meant")
    done = connection.execute(
        update(purges).where(purges.c.id == purge.id).values(games=games).returning(*purges.c)
    ).one()
    connection.execute(update(runs).where(runs.c.id == run.id).values(_left(new)))
    recount(connection, run.id)
    told = {"number": done.number, "reason": new.reason, "games": games, "withdrawn": withdrawn}
    write_event(connection, run.id, "purge", new.actor, told | {"of": new.selection.to_json()})
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
    """The record of what is struck, as it was reported."""
    kept = [batches.c[name] for name in _KEPT]
    columns: list[Any] = [sa.literal(purge_id), IS_OPEN, *kept]
    results = select(*columns).join(iterations, iterations.c.id == batches.c.iteration_id)
    results = results.where(*counting(run_id), *meant(selection), *reported(selection))
    names = ("purge_id", "played_again", *_KEPT)
    connection.execute(struck.insert().from_select(names, results))


def _free(connection: sa.Connection, purge_id: int) -> None:
    """The batches of what was struck: to be played again, or struck for good."""
    of = sa.and_(
        struck.c.purge_id == purge_id,
        struck.c.iteration_id == batches.c.iteration_id,
        struck.c.seq == batches.c.seq,
    )
    connection.execute(
        update(batches)
        .where(
            select(struck.c.id).where(of, struck.c.played_again).exists(),
            may_become(batches.c.status, BATCH, BatchStatus.READY),
            batches.c.status == BatchStatus.DONE,
        )
        .values(status=BatchStatus.READY, attempt=batches.c.attempt - 1, **_CLEARED)
    )
    connection.execute(
        update(batches)
        .where(
            select(struck.c.id).where(of, ~struck.c.played_again).exists(),
            may_become(batches.c.status, BATCH, BatchStatus.PURGED),
        )
        .values(status=BatchStatus.PURGED, **_CLEARED)
    )


def _withdraw(connection: sa.Connection, run_id: int, selection: Selection) -> int:
    """Take back what is being played and would be meant as soon as it is reported; how many."""
    if selection.until is not None:
        return 0
    held = (
        select(batches.c.id)
        .join(iterations, iterations.c.id == batches.c.iteration_id)
        .where(
            iterations.c.run_id == run_id,
            IS_OPEN,
            batches.c.status == BatchStatus.LEASED,
            *meant(selection),
        )
    )
    taken = connection.execute(
        update(batches)
        .where(
            batches.c.id.in_(held),
            may_become(batches.c.status, BATCH, BatchStatus.READY),
            batches.c.status == BatchStatus.LEASED,
        )
        .values(
            status=BatchStatus.READY,
            attempt=batches.c.attempt - 1,
            claim_id=None,
            lease_expires_at=None,
        )
    )
    return taken.rowcount


def _left(new: NewPurge) -> dict[str, Any]:
    """What a purge leaves in the run's row."""
    return columns_of(new.estimates) | {
        "theta": dict(new.theta_after),
        "state": dict(new.state),
        "purges": new.purges + 1,
    }
