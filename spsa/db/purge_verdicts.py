"""Estimates Elo and gradient anew for the iterations that lost games in a purge."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy import bindparam, func, select, update

from spsa.core.scoring import elo
from spsa.db.database import COUNTS, tally_of
from spsa.db.purge_values import NewPurge
from spsa.db.schema import iterations, purged
from spsa.errors import IllegalTransition
from spsa.lifecycle import IterationStatus, Purpose


def write_verdicts(connection: sa.Connection, purge_id: int, new: NewPurge) -> int:
    """Write the new estimates of the iterations that lost games; how many games were purged.

    The trigger spsa_count has already subtracted the games from the rows of the iterations.

    Raises:
        IllegalTransition: other iterations lost games than the purge was planned on.
    """
    affected = connection.execute(_affected(purge_id)).all()
    complete = [row for row in affected if row.status == IterationStatus.COMPLETE]
    if {row.id for row in complete if row.k is not None} != set(new.verdicts):
        raise IllegalTransition("the purge was planned on other results than it would purge")
    if complete:
        connection.execute(_update(), [_values(row, new) for row in complete])
    return sum(int(row.purged_now) for row in affected)


def _affected(purge_id: int) -> sa.Select[Any]:
    """The iterations that lost games, with the counts that remain."""
    columns = ("id", "k", "purpose", "status", *COUNTS)
    return (
        select(
            *(iterations.c[name] for name in columns),
            func.sum(purged.c.games).label("purged_now"),
        )
        .join(purged, purged.c.iteration_id == iterations.c.id)
        .where(purged.c.purge_id == purge_id)
        .group_by(iterations.c.id)
        .order_by(iterations.c.id)
    )


def _update() -> sa.Update:
    return (
        update(iterations)
        .where(iterations.c.id == bindparam("row"))
        .values(gradient_estimate=bindparam("gradient"), elo_diff=bindparam("elo"))
    )


def _values(row: Any, new: NewPurge) -> dict[str, Any]:
    """The estimates from the games that a complete iteration has left."""
    if row.purpose == Purpose.VALIDATE:
        left = tally_of(row)
        return {"row": row.id, "gradient": None, "elo": elo(left).value if left.pairs else None}
    verdict = new.verdicts[row.id]
    gradient = None if verdict.gradient is None else dict(verdict.gradient)
    return {"row": row.id, "gradient": gradient, "elo": verdict.elo}
